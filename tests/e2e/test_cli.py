"""The commands as a user types them: results, exit codes, errors, kills, spark-submit, the quickstart."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from sparking import KEY, Command, Workspace, clean_environment, corpus, random_texts, read_output
from wordveil.errors import GateError

ROOT = Path(__file__).parents[2]


def run_wordveil(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wordveil", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**clean_environment(), **environment}
    )


def test_build_reports_what_it_built(workspace: Workspace, run: Command):
    config = workspace.write_config()
    code, out, err = run("build", "--config", config, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["words"] == 300
    assert facts["epsilon"] == facts["nominal_epsilon"] == 4.0
    assert facts["epsilon_pure_per_token"] == pytest.approx(4.0 * facts["diameter"])
    assert (workspace.root / "bundles" / facts["fingerprint"] / "manifest.json").exists()
    code, out, _ = run("build", "--config", config)
    assert code == 0
    assert facts["fingerprint"][:8] in out


def test_plan_reads_the_schema_and_prices_the_public_length(spark, workspace: Workspace, run: Command):
    """The files hold a footer and damaged data: a plan that read a row would fail."""
    path = workspace.write_corpus(corpus(2000)) / "part-0.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:2000] = b"\0" * 1996
    path.write_bytes(raw)
    config = workspace.write_config()
    code, out, err = run("plan", "--config", config, "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon_bound"] is None
    built = json.loads(run("build", "--config", config, "--json")[1])
    plan = json.loads(run("plan", "--config", config, "--json")[1])
    assert plan["columns"] == {"id": "string", "body": "string", "day": "string"}
    assert plan["tokens"] == 24
    assert plan["epsilon_pure"] == plan["epsilon_bound"] == pytest.approx(24 * built["epsilon_pure_per_token"])
    assert plan["recovery"] == built["recovery"]
    assert plan["recovery"]["frequency"]["after"][0]["at_most"] is None  # laplace: only a bound is known
    assert (plan["relation"], plan["exposes"]) == ("any_text", ["presence", "column:day"])
    assert run("sanitise", "--config", config)[0] == 8
    assert not (workspace.root / "output").exists()


def test_sanitise_prints_a_table_and_the_same_as_json(spark, workspace: Workspace, run: Command):
    """First in a process and a session of its own."""
    workspace.write_corpus(corpus(50))
    config = workspace.write_config()
    done = run_wordveil("sanitise", "--config", config, "--run-id", "night-1")
    assert done.returncode == 0, done.stderr
    for words in ("records", "50", "unknown words", "tokens a second", "any_text", "night-1", str(workspace.root)[:20]):
        assert words in done.stdout
    _, out, err = run("sanitise", "--config", config, "--overwrite", "--json")
    report = json.loads(out)
    assert (report["records"], report["released"], report["tokens"]) == (50, 50, 50 * 24)
    assert report["epsilon_pure"][0] == report["epsilon_pure"][1]
    assert report["recovery"]["uniform"]["before"] == pytest.approx(1 / 300, rel=1e-5)
    assert "words recovered" in done.stdout
    assert report["run_id"] != "night-1"
    assert KEY not in done.stdout + done.stderr + out + err


def test_the_key_can_come_from_the_environment(
    spark, workspace: Workspace, run: Command, monkeypatch: pytest.MonkeyPatch
):
    workspace.write_corpus(corpus(5))
    config = workspace.write_config(key={"file": None, "env": "TESTS_KEY"})
    code, _, err = run("sanitise", "--config", config)
    assert code == 5
    assert "TESTS_KEY" in err
    monkeypatch.setenv("TESTS_KEY", KEY)
    assert run("sanitise", "--config", config)[0] == 0
    from_file = workspace.write_config("file.yaml", output={"path": str(workspace.root / "second")})
    assert run("sanitise", "--config", from_file)[0] == 0
    assert read_output(workspace.root / "output") == read_output(workspace.root / "second")


def test_errors_come_before_spark_with_their_codes(workspace: Workspace, run: Command, monkeypatch: pytest.MonkeyPatch):
    """None of these starts a JVM: Java is out of reach."""
    workspace.write_corpus(corpus(3))
    config = workspace.write_config(build_missing=False)

    def code(*overrides: str) -> int:
        arguments = [part for override in overrides for part in ("--set", override)]
        return run("sanitise", "--config", config, *arguments)[0]

    assert code("mechanism.epsilon=0") == 2
    assert code("nonsense") == 2
    assert run("sanitise", "--config", config, "--run-id", "../x")[0] == 2
    assert code("key.file=/none") == 5
    assert code() == 4  # no bundle
    assert code("build_missing=true", "mechanism.embedding=/none") == 4
    assert code("build_missing=true", "mechanism.frequencies=/none") == 4
    assert run("sanitise", "--config", "/none.yaml")[0] == 2
    done = run_wordveil("sanitise", "--config", config, "--set", "build_missing=true", PATH="/nowhere", JAVA_HOME="")
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert run_wordveil("sanitize").returncode == 2


def test_errors_can_be_json(workspace: Workspace, run: Command):
    code, out, _ = run(
        "build",
        "--config",
        workspace.write_config(),
        "--set",
        "mechanism.epsilon=-1",
        "--set",
        "text.n_max=0",
        "--json",
    )
    assert code == 2
    assert {fault["where"] for fault in json.loads(out)["faults"]} == {"mechanism.epsilon", "text.n_max"}


def test_an_existing_output_has_its_own_code(spark, workspace: Workspace, run: Command):
    workspace.write_corpus(corpus(3))
    (workspace.root / "output").mkdir()
    assert run("sanitise", "--config", workspace.write_config())[0] == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_killed_job_leaves_no_output_and_no_draft(workspace: Workspace, number: int):
    """The texts are enough for many seconds of work; the signal comes once the draft is being written."""
    texts = [" ".join(random_texts(30, seed=i)) for i in range(1000)]
    workspace.write_corpus(pa.table({"id": list(range(1000)), "body": texts, "day": ["d"] * 1000}), files=8)
    config = workspace.write_config(text={"profile": "strict", "n_max": 2000})
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


@pytest.mark.xdist_group("cluster")  # most of it is processes of its own
def test_spark_submit_runs_the_same_job(spark, workspace: Workspace, run: Command):
    import pyspark

    workspace.write_corpus(corpus(40))
    config = workspace.write_config(spark={"master": None})
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**clean_environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    def run_submit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(submit),
            "--master",
            "local[1]",
            str(ROOT / "jobs" / "sanitise.py"),
            "--config",
            str(config),
            *arguments,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    done = run_submit("--json")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["records"] == 40
    nowhere = run_submit("--set", "spark.master=local[2]")
    assert nowhere.returncode == 7
    assert "spark-submit was given --master local[1]" in nowhere.stdout + nowhere.stderr  # it merges them
    plain = workspace.write_config("plain.yaml", output={"path": str(workspace.root / "plain")})
    assert run("sanitise", "--config", plain)[0] == 0
    assert read_output(workspace.root / "output") == read_output(workspace.root / "plain")


def test_the_quickstart_shows_what_it_promises(tmp_path: Path):
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "quickstart.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**clean_environment(), "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "before",
        "after",
        "Three sentences",
        "One draw serves all places where a word stands (repeat: same)",
        "public clusters of 20 related words",
        "nobody can tell which of the 20 was in the text",
        "each word costs at most E = 8.",
        "recovers 22% of",
        "(without looking: 9.5%)",
        "epsilon_bound =",
        "Files of this quickstart",
        "quickstart/sanitised",
    ):
        assert words in done.stdout
    rows = read_output(tmp_path / "quickstart" / "sanitised", order_by="article")
    assert len(rows) == 300
    assert all(row["status"] == "released" for row in rows)
    assert (tmp_path / "quickstart" / "wordveil.key").stat().st_mode & 0o077 == 0
    suggested = next(line.strip() for line in done.stdout.splitlines() if "profile: strict" in line)
    assert "--set output.path=../quickstart/strict" in " ".join(done.stdout.split())
    assert suggested


def test_the_readme_gives_the_two_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("quickstart", "test"):
        assert f"make {target}" in readme
        assert f"\n{target}:" in makefile
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_keys_are_made_and_identified(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "release.key"
    made = json.loads(run("key", "new", file, "--json")[1])
    digits = file.read_text().strip()
    told = run("key", "fingerprint", "--file", file, "--json")
    assert json.loads(told[1])["fingerprint"] == made["fingerprint"]
    monkeypatch.setenv("SOME_KEY", digits)
    by_name = run("key", "fingerprint", "--env", "SOME_KEY", "--json")
    assert json.loads(by_name[1])["fingerprint"] == made["fingerprint"]
    again = run("key", "new", file, "--json")
    assert again[0] == 5
    assert "never overwritten" in json.loads(again[1])["message"]
    assert run("key", "fingerprint")[0] == 5
    for _, out, err in (told, by_name, again):
        assert digits not in out + err


def test_a_page_that_exists_is_refused_before_anything_is_read(tmp_path: Path, run: Command):
    """Before the configuration too, which is not there."""
    page = tmp_path / "page.html"
    page.write_text("mine")
    for command in (("plan",), ("release", "gate")):
        code, out, err = run(*command, "--config", tmp_path / "none.yaml", "--html", page)
        assert (code, out) == (6, "")
        assert "already exists, and nothing was done" in " ".join(err.split())
    assert page.read_text() == "mine"
    assert run("plan", "--config", tmp_path / "none.yaml", "--html", page / "below.html")[0] == 2


@pytest.mark.parametrize("submitted", [False, True])
def test_a_gate_that_fails_leaves_one_document_under_spark_submit(
    run: Command, submitted: bool, monkeypatch: pytest.MonkeyPatch
):
    """spark-submit writes both streams to its standard output: what reads JSON there must find nothing else."""

    def gate(**_: object) -> None:
        print('{"passed": false}')
        raise GateError("gate: it did not pass.")

    monkeypatch.setattr("wordveil.cli.app.app", gate)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    code, out, err = run("release", "gate", "--json")
    assert code == 3
    assert json.loads(out) == {"passed": False}
    assert ("did not pass" in err) is not submitted
