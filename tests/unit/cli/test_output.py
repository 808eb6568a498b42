"""What commands print on a narrow terminal and without one, and what a scheduler reads of them."""

from __future__ import annotations

import atexit
import io
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from support.evaluations import make_evaluation
from support.workspaces import Command
from wordveil.cli import output
from wordveil.cli.files import local_path, write_report
from wordveil.cli.options import prepare_plain_session
from wordveil.cli.train import show_training
from wordveil.errors import ConfigError, SparkJobError
from wordveil.report.files import write_evaluation
from wordveil.spark.platform import session

DIGEST = "0123456789abcdef" * 4
PATH = "/lake/" + "deeper/" * 20 + "bundles"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard output on a terminal of 80 columns."""
    stream = io.StringIO()
    monkeypatch.setattr(output, "results", Console(file=stream, width=80, highlight=False))
    return stream


def test_digest_and_path_have_their_own_lines_below_the_table(narrow: io.StringIO):
    facts = {"words": 20, "fingerprint": DIGEST, "epsilon_pure_per_token": 8.0, "path": PATH, "[x]": f"[b]{PATH}"}
    output.print_table("Bundle", facts)
    lines = narrow.getvalue().splitlines()
    assert f"fingerprint: {DIGEST}" in lines
    assert lines[lines.index("path:") + 1] == PATH
    assert lines[lines.index("[x]:") + 1] == f"[b]{PATH}"
    table = [line for line in lines if "\u2502" in line]
    assert [line.split()[1] for line in table] == ["words", "epsilon_pure_per_token"]


def test_without_a_terminal_a_stage_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """And one that lasts is named again."""
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with output.show_progress() as (begin, count):
        begin("reading \x1b[1m")
        begin("reading \x1b[1m")
        begin("finding neighbours")
        count(3, 8)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", ["wordveil: reading \\x1b[1m", "wordveil: finding neighbours"])
    monkeypatch.setattr(output, "LINE_INTERVAL", 0.05)
    with output.show_progress() as (begin, count):
        count(1, 2)
        begin("sanitising")
        count(3, 8)
        err, deadline = "", time.monotonic() + 20
        while "done" not in err and time.monotonic() < deadline:
            time.sleep(0.1)
            err += capsys.readouterr().err
    assert err.startswith("wordveil: sanitising\nwordveil: sanitising, 3 of 8 done, 0 s\n")
    with output.show_status() as begin:
        begin("signing")
    assert "wordveil: signing\n" in capsys.readouterr().err


def test_spark_submit_mixes_both_streams_and_gets_no_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with output.show_progress() as (begin, count):
        begin("sanitising")
        count(3, 8)
    assert capsys.readouterr() == ("", "")


def test_a_training_without_a_terminal_tells_each_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    place = {"epoch": 1, "rewarded": True, "seconds": 150.0}
    with show_training() as (_, observe):
        observe({**place, "step": 480, "loss": 2.25}, 2000)
        observe({**place, "step": 500, "validation_loss": 1.5, "validation_accuracy": 0.75}, 2000)
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["step 500 of at most 2,000, with the reward: validation loss 1.500, accuracy 75.0%; 2.5 minutes"]


@pytest.mark.parametrize("has_table", [False, True])
def test_spark_s_own_directory_goes_at_the_end_if_it_is_empty(tmp_path: Path, monkeypatch: Any, has_table: bool):
    ends: list[Any] = []
    made = tmp_path / "spark-warehouse" / ("table" if has_table else "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atexit, "register", lambda *call: ends.append(call))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(session, "build_session", lambda *_, **__: made.mkdir(parents=True, exist_ok=True))
    start = prepare_plain_session()
    start()
    for function, *arguments in ends:
        function(*arguments)
    assert made.exists() == has_table
    made.mkdir(exist_ok=True)
    start()
    assert len(ends) == 1, "it was there before"


def test_report_that_cannot_be_written_is_told_before_any_work(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = []
    with (
        pytest.raises(ConfigError, match=r"--report = .*file/report\.json: cannot be written"),
        write_report("plan", f"{tmp_path}/file/report.json"),
    ):
        done.append(True)
    assert not done


def test_an_error_of_ours_is_reported_without_its_message(tmp_path: Path):
    place = tmp_path / "report.json"
    place.write_text("an old one")
    for error, code in ((ValueError("a secret text"), 1), (SystemExit(143), 143), (SparkJobError("it failed"), 8)):
        with pytest.raises(type(error)), write_report("sanitise", f"file://{place}"):
            assert not place.exists(), "a report of an earlier run is never taken for this one's"
            raise error
        report = json.loads(place.read_text())
        assert report["exit_code"] == code
        assert "secret" not in place.read_text()
    assert report["error"]["message"] == "it failed"
    assert local_path("s3a://bucket/report.json") is None
    assert local_path("file:///a%20b") == Path("/a b")


def test_two_evaluations_are_printed_side_by_side(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output.results, "_width", 200)  # no row of a table is broken
    both = [
        write_evaluation(make_evaluation(attack), tmp_path / name).data for name, attack in (("old", 0.4), ("new", 0.2))
    ]
    page = tmp_path / "both.html"
    code, out, err = run("evaluate", "compare", *both, "--html", page)
    assert code == 0
    (line,) = [line for line in out.splitlines() if "0.200" in line and "better" in line and "0.400" in line]
    assert "authors: svm-characters, adaptive" in line
    assert "this is not a test of their difference" in err
    assert "old: release" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert run("evaluate", "compare", *both, "--html", page)[0] == 6
    values = json.loads(run("evaluate", "compare", *both, "--json")[1])
    assert values["names"] == ["old", "new"]
    assert [pair["change"] for pair in values["pairs"]].count("better") == 2
    code, _, err = run("evaluate", "compare", "a.json", "b.json")
    assert (code, "a.json: cannot be read" in err) == (4, True)
