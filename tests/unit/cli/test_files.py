"""What a scheduler reads of a command: the file of --report, whatever becomes of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wordveil.cli.files import local_path, write_report
from wordveil.errors import ConfigError, SparkJobError


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
