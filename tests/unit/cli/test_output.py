"""What commands print without a terminal, and what a scheduler reads of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.evaluations import make_evaluation
from support.workspaces import Command
from wordveil.cli import output
from wordveil.cli.files import local_path, write_report
from wordveil.errors import ConfigError, SparkJobError
from wordveil.report.files import write_evaluation


def test_without_a_terminal_a_stage_is_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with output.show_progress() as (begin, count):
        begin("reading \x1b[1m")
        begin("reading \x1b[1m")
        begin("finding neighbours")
        count(3, 8)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", ["wordveil: reading \\x1b[1m", "wordveil: finding neighbours"])
    with output.show_status() as begin:
        begin("signing")
    assert "wordveil: signing\n" in capsys.readouterr().err


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
    both = [tmp_path / name / "evaluation.json" for name in ("old", "new")]
    for path, attack in zip(both, (0.4, 0.2), strict=True):
        write_evaluation(make_evaluation(attack), path.parent)
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
