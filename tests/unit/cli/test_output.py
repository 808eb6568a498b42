"""What is to be copied is printed whole on a narrow terminal, and progress is lines where there is none."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from wordveil.cli import output
from wordveil.cli.release_tables import long_run_ids, runs_table

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


def test_paths_in_a_sentence_and_in_a_list_are_not_broken(narrow: io.StringIO):
    output.print_table("DAGs", {"files": [f"{PATH}1", f"{PATH}2"], "input": f"{PATH} of yesterday"})
    lines = narrow.getvalue().splitlines()
    assert {f"{PATH}1", f"{PATH}2", f"{PATH} of yesterday"} <= set(lines)
    output.print_table("Plan", {"run": "20261120T020000Z-abcdef01", "note": "many short words " * 9})
    told = narrow.getvalue().splitlines()[len(lines) + 1 :]
    assert all(line[0] in "\u2502\u250c\u2514" for line in told)


def test_run_ids_are_whole(narrow: io.StringIO):
    run = {"run_id": "20261120T020000Z-abcdef01", "kind": "sanitise", "input_version": 12345, "epoch": 1}
    runs = [{**run, "state": "abandoned"}, {**run, "run_id": "scheduled-" * 6, "state": "finished"}]
    output.print_rows(runs_table(runs))
    assert run["run_id"] in narrow.getvalue()
    assert "abandoned" in narrow.getvalue()
    assert long_run_ids(runs) == ["scheduled-" * 6]


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
