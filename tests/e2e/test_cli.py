"""The job as a user starts it: results, exit codes, kills, the quickstart."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from support.pages import check_alone, read_text
from support.repository import ROOT
from support.workspaces import KEY, SMALL, Command, Workspace, clean_environment, corpus, random_texts, read_output
from wordveil.errors import ConfigError
from wordveil.spark.platform.filesystem import replace_file


def test_sanitise_prints_a_table_and_the_same_as_json(
    spark, workspace: Workspace, run: Command, monkeypatch: pytest.MonkeyPatch
):
    """With the key from a file and from the environment, which draw the same."""
    workspace.write_corpus(corpus(50))
    config = workspace.write_config()
    page = workspace.root / "run.html"
    code, table, err = run("sanitise", "--config", config, "--run-id", "night-1", "--html", page)
    assert code == 0, err
    assert "50 of 50 released" in read_text(page.read_text("utf-8"))
    for words in ("records", "50", "unknown words", "tokens a second", "any_text", "night-1", str(workspace.root)[:20]):
        assert words in table
    assert "words recovered" in table
    first = read_output(workspace.root / "output")
    assert run("sanitise", "--config", config)[0] == 6, "an existing output has its own code"
    monkeypatch.setenv("TESTS_KEY", KEY)
    config = workspace.write_config(key={"file": None, "env": "TESTS_KEY"})
    _, out, told = run("sanitise", "--config", config, "--overwrite", "--json")
    report = json.loads(out)
    assert (report["records"], report["released"], report["tokens"]) == (50, 50, 50 * 24)
    assert report["epsilon_pure"][0] == report["epsilon_pure"][1]
    assert report["recovery"]["uniform"]["before"] == pytest.approx(1 / 300, rel=1e-5)
    assert report["run_id"] != "night-1"
    assert read_output(workspace.root / "output") == first
    assert KEY not in table + err + out + told


def test_a_report_elsewhere_is_written_through_spark(spark, tmp_path: Path):
    place = tmp_path / "report.json"
    for text in ("one", "another"):
        replace_file(str(place), text)
        assert place.read_text() == text
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json" and not path.name.startswith(".")] == [
        "report.json"
    ]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "of").write_text("")
    with pytest.raises(ConfigError, match=r"--report = .*full/of/report: cannot be written"):
        replace_file(f"{tmp_path}/full/of/report", "x")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_killed_job_leaves_no_output_and_no_draft(workspace: Workspace, number: int):
    """The texts are enough for many seconds of work; the signal comes once the draft is being written.

    tests/spark/test_canaries.py has it in a process that works on other things before.
    """
    texts = [" ".join(random_texts(100))] * 1000
    workspace.write_corpus(pa.table({"id": list(range(1000)), "body": texts, "day": ["d"] * 1000}), files=8)
    config = workspace.write_config(text={"profile": "strict", "n_max": 2000}, spark={"options": SMALL})
    command = [sys.executable, "-m", "wordveil", "sanitise", "--config", str(config)]
    process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(workspace.root.glob(".output.wordveil-*/_temporary")) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(number)
    process.wait(60)
    assert process.returncode == 128 + number, process.stderr.read()
    assert not (workspace.root / "output").exists()
    assert not list(workspace.root.glob(".output*"))


def run_python(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of this Python that ends well. The ``python3`` that is first on its PATH cannot run a worker."""
    trap = directory.with_name("trap")
    trap.mkdir(exist_ok=True)
    (trap / "python3").write_text("#!/bin/sh\nexit 1\n")
    (trap / "python3").chmod(0o755)
    clean = clean_environment()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**clean, "PATH": f"{trap}:{clean['PATH']}", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_quickstart_shows_what_it_promises_and_readme_follows_it(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """As a new user runs it: in an empty directory, with an environment that is not activated."""
    place = tmp_path / "empty"
    place.mkdir()
    done = run_python(place, "-m", "wordveil", "quickstart", COLUMNS="240")
    for words in (
        "Three articles, and what comes out by each way",
        "one of 100 subjects for a whole article",
        "6 at most between any two, whatever their length",
        "0.81% of the articles, among 10,000 candidates; one with a probability of 3.9% at most",
        "one of 500 clusters of related words for each different word",
        "100% of the articles of 66 different words, the median, among 10,000 candidates",
        "20.7% of the words (8.27% without looking)",
        "42 x 8 = 336 at most: 8 for each different word.",
        "A word is hidden among 20 words at least, 181 in the middle.",
        "passages.yaml, job.yaml  the jobs",
        "passages/, sanitised/  the results",
        "wordveil.key  a key for this quickstart alone",
        "wordveil sanitise --config quickstart/job.yaml --overwrite",
    ):
        assert words in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Open quickstart/estimates.html in a browser")
    lines = [line.split(",")[0] for line in done.stderr.splitlines() if line.startswith("wordveil: ")]
    stages = (
        "writing the articles",
        "clustering passages by subject",
        "starting Spark",
        "counting records",
        "sanitising",
    )
    found = [lines.index(f"wordveil: {stage}") for stage in stages]
    assert found == sorted(found), lines
    assert "wordveil: " not in done.stdout
    home = place / "quickstart"
    assert [path.name for path in place.iterdir()] == ["quickstart"]
    rows, passages = (read_output(home / name, order_by="article") for name in ("sanitised", "passages"))
    assert len(rows) == len(passages) == 300
    assert all(row["status"] == "released" for row in rows + passages)
    assert all(5.999 < row["privacy"]["epsilon_pure"] <= 6 for row in passages)
    key = home / "wordveil.key"
    assert key.stat().st_mode & 0o077 == 0
    assert key.read_text().strip() not in done.stdout + done.stderr
    page = (home / "estimates.html").read_text()
    check_alone(page)
    assert (home / "estimates.html").stat().st_mode & 0o077 == 0
    shown = read_text(page)
    found = re.search(r"300 texts; \d+ of 101 subjects stand out from none; (\d+) of the 101 intervals hold", shown)
    assert found
    assert int(found[1]) >= 85
    assert re.search(r"negotiations agreement treaty compromise cease \d+ \(\d+ to \d+\) true 31 ", shown)

    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    for batch in (2, 3):  # a third of the articles is enough
        shutil.rmtree(home / "corpus" / f"batch={batch}")
    monkeypatch.chdir(place)
    exec(block, {})  # noqa: S102 - our own documentation
    shown = capsys.readouterr().out
    assert "price" in shown
    assert shown.splitlines()[-1] == "100 released"
    again = read_output(home / "sanitised", order_by="article")
    assert [row["text"] for row in again] == [row["text"] for row in rows[:100]], "the same key draws the same"
