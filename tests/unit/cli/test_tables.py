"""What the commands of releases and of the ledger print: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest

from support.run_reports import make_run_report
from wordveil.assembly.run_report import RunReport
from wordveil.cli.ledger import plain_row, print_costs
from wordveil.cli.release import read_ids
from wordveil.cli.release_tables import print_report, release_facts, report_facts
from wordveil.cli.tables import show_time
from wordveil.errors import ConfigError
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import Budget, count_runs_left

BUDGET = Budget("pure", Relation.ANY_TEXT)


def test_a_run_that_released_nothing_has_no_epsilon():
    facts = report_facts(make_run_report(released=0, epsilon_bound=None), is_release=True)
    assert (facts["epsilon a record"], facts["pure epsilon"]) == ("nothing released", "nothing released")
    assert report_facts(make_run_report())["pure epsilon"].startswith("none: unbounded")
    assert report_facts(make_run_report())["quarantined"] == "1 (1 null_text)"


RECOVERY = Recovery(
    PriorRecovery(5e-05, (Recovered(1, 0.1234, 0.1234), Recovered(2, 0.2, 0.3), Recovered(20, 0.61, 0.64))),
    PriorRecovery(0.0413, (Recovered(1, 0.223, None), Recovered(20, 0.705, None))),
)


def test_a_run_says_what_an_attacker_recovers():
    facts = report_facts(make_run_report(recovery=RECOVERY.to_dict()))
    assert facts["words recovered"] == (
        "an attacker who knows word frequencies recovers at least 22.3% of the words (without looking: 4.13%); "
        "after 20 draws of one word at least 70.5%"
    )
    assert facts["rare words too"] == (
        "where all words are equally likely, an attacker recovers 12.3% of the words (without looking: 0.005%); "
        "after 20 draws of one word 61% to 64%"
    )
    assert list(facts).index("words recovered") == list(facts).index("pure epsilon") + 1
    assert report_facts(make_run_report())["words recovered"].startswith("not measured")
    assert "rare words too" not in report_facts(make_run_report())
    plain = make_run_report(recovery=RECOVERY.to_dict()).to_dict()
    assert RunReport.from_dict(json.loads(json.dumps(plain))).recovery == RECOVERY.to_dict()


def test_infinite_costs_are_null_in_json_and_unbounded_in_tables(capsys: pytest.CaptureFixture[str]):
    values = {"contexts": 1234, "spent": math.inf, "reserved": 0.5, "corpus": math.inf, "left": None}
    row = plain_row(values, BUDGET)
    assert {**row, "spent": None, "reserved": 0.5, "unbounded": True, "unit": "pure", "for": "any_text"} == row
    print_costs([row], BUDGET, list(values), 20)
    text = capsys.readouterr().out
    assert text.count("unbounded") == 2
    assert "1,234" in text
    assert "none" in text
    assert plain_row({**values, "spent": 1.0, "corpus": 1.0}, BUDGET)["unbounded"] is False


FIGURES = {"contexts": 12, "tokens": 345, "spent": 1200.0, "reserved": 0.0, "returned": 0.0, "delta": 0.0}


@pytest.mark.parametrize(("left", "text"), [(1.9998e-08, "0"), (-1e-9, "0"), (0.0024, "0.0024"), (None, "none")])
def test_left_of_a_budget_is_printed_without_rounding_noise(left, text, capsys: pytest.CaptureFixture[str]):
    row = plain_row({"author": "a", **FIGURES, "left": left}, BUDGET)
    print_costs([row], BUDGET, ["author", *FIGURES, "left"], 20)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "345" in line]
    assert line.replace("│", "").split() == ["a", "12", "345", "1,200", text]


def test_left_of_a_release_is_small_against_its_corpus_limit(capsys: pytest.CaptureFixture[str]):
    row = plain_row({"release": "r", **FIGURES, "spent": 5e8, "corpus": 90.0, "left": 10.0}, BUDGET)
    print_costs([row], BUDGET, ["release", *FIGURES, "corpus", "left"], 20)
    figures = [cell for cell in capsys.readouterr().out.split() if cell[0].isdigit()]
    assert figures == ["12", "345", "500,000,000", "90", "10"]


@pytest.mark.parametrize("author", ["a", "customer-" * 7])
def test_figures_are_whole_at_eighty_columns(author, monkeypatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", "80")
    large = {
        "contexts": 1_234_567,
        "tokens": 123_456_789,
        "spent": 987_654_321.5,
        "reserved": 1234.56,
        "returned": 12.5,
    }
    for figures in ({**FIGURES, "reserved": 8.25}, {**large, "delta": 1.25e-9}):
        row = plain_row({"author": author, **figures, "left": 12345.6}, BUDGET)
        print_costs([row, row], BUDGET, ["author", *figures, "left"], 20)
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        for name, value in {**figures, "left": 12345.6}.items():
            if value:
                assert out.count(name) == (1 if figures["contexts"] == 12 else 2)
                assert f"{value:,.0f}" in out or f"{value:,.6g}" in out, name
    assert "987,654,322" in out
    assert "1.25e-09" in out


def test_the_first_row_says_how_long_its_limit_lasts():
    row = {"author": "a", "spent": 30.0, "left": 70.0}
    assert count_runs_left(row, 3) == 7
    assert count_runs_left({**row, "corpus": 60.0}, 3) == 3, "of a release its most expensive author counts"
    for unlimited, runs in ((row, 0), ({**row, "left": None}, 3), ({**row, "spent": 0.0}, 3)):
        assert count_runs_left(unlimited, runs) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.13, "under a second"),
        (1.3, "1.3 seconds"),
        (66.3, "66 seconds"),
        (132.5, "2.2 minutes"),
        (7199, "120 minutes"),
        (9000, "2.5 hours"),
        (1.2e7, "3,333 hours"),
    ],
)
def test_show_time_takes_the_largest_unit_of_two_or_more(seconds: float, text: str):
    assert show_time(seconds / 3600) == text
    assert show_time(None) == "unknown"


def test_ids_are_the_lines_of_a_file_or_of_standard_input(tmp_path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "ids"
    file.write_bytes("r1\r\n\nr 2\u2028x\n".encode())
    assert read_ids(str(file), "id") == ["r1", "r 2\u2028x"]
    monkeypatch.setattr("sys.stdin", io.StringIO("r3\n"))
    assert read_ids("-", "id") == ["r3"]
    file.write_bytes(b"\xff\xfe\xff")
    for name in (str(file), str(tmp_path / "none")):
        with pytest.raises(ConfigError):
            read_ids(name, "id")


def facts(**changes: Any) -> dict[str, Any]:
    old = {"draws": 2, "public table": 1}
    base = {
        **dict.fromkeys(("writers", "frozen", "gate", "published")),
        "release": "support",
        "path": "lake/support",
        "runs": [],
        "open_runs": [],
        "draws_version": 9,
        "records": {"released": 1200, "withdrawn": 2},
        "withdrawn": {"records": 2, "in_draws": 1, "in_public_table": 0, "files_of_old_versions": old, "gone": False},
    }
    return {**base, **changes}


def test_show_tells_what_is_still_there():
    shown = release_facts(facts())
    assert shown["records"] == "1,200 released, 2 withdrawn"
    assert shown["withdrawn text"].startswith(
        "still exists: 1 records in the draws, 0 in the public table, perhaps more in 3 files"
    )
    assert "writers" not in shown
    assert release_facts(facts(writers="one"))["writers"] == "one, as output.writers states"
    gone = {**facts()["withdrawn"], "gone": True}
    assert release_facts(facts(withdrawn=gone))["withdrawn text"] == "gone"
    assert release_facts(facts(withdrawn={**gone, "records": 0}))["withdrawn text"] == "none"
    published = {"draws_version": 3, "records": 5279, "at": "today", "refused": {"over_author_budget": 790}}
    assert "left out by budgets" not in release_facts(facts(published={**published, "refused": None}))
    left_out = release_facts(facts(published=published))["left out by budgets"]
    assert left_out == "790 (790 over_author_budget). Counts of the table lack records of frequent authors"
    everyone = facts(published={**published, "refused": {"over_record_budget": 1}})
    assert "authors" not in release_facts(everyone)["left out by budgets"]


def test_a_run_that_refused_many_asks_whether_its_columns_fit(capsys: pytest.CaptureFixture[str]):
    print_report(make_run_report(records=400, released=15, quarantined={"duplicate_id": 385}))
    shown = "".join(capsys.readouterr())
    assert "96% of the records are refused: do input.id and input.text fit?" in " ".join(shown.split())
    print_report(make_run_report(records=400, released=390, quarantined={"null_text": 10}))
    assert "are refused" not in "".join(capsys.readouterr())


def test_poorly_covered_records_are_shown_where_there_are_any():
    assert report_facts(make_run_report(poorly_covered=1200))["poorly covered"].startswith(
        "1,200 records, of which a third"
    )
    assert "poorly covered" not in report_facts(make_run_report())


def test_changed_kept_columns_are_shown_where_there_are_any():
    run = report_facts(make_run_report(kept_changed=1200), is_release=True)
    assert run["kept columns"].startswith("1,200 changed: written again with the same text")
    assert "kept columns" not in report_facts(make_run_report(), is_release=True)
    published = {"draws_version": 7, "records": 8, "at": "2026-11-20"}
    assert release_facts(facts(published=published))["published"] == "version 7, 8 records, 2026-11-20"
    shown = release_facts(facts(published={**published, "kept_changed": 3}))["published"]
    assert shown == "version 7, 8 records (kept columns of 3 changed), 2026-11-20"
