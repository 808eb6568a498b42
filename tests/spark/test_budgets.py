"""Budgets on Spark decide as the plain definition does, hold over releases, and let refused records in when they allow
it.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from support.budgets import Candidate, Charge, Entry, admit
from support.releases import Lake, States, corpus_with_authors
from support.workspaces import WORDS, Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import ConfigError
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import Budget, RefusedGroup
from wordveil.spark.release.admission import admit_candidates
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.latest import find_most_refused
from wordveil.spark.release.ledger import SCHEMA, Terms
from wordveil.spark.release.ledger_report import Selection, find_left, read_ledger, sum_costs
from wordveil.spark.release.maintenance import reset
from wordveil.spark.release.publish import publish

METRIC = "euclidean:0123456789abcdef"


@pytest.mark.parametrize(
    ("unit", "delta"), [("pure", None), pytest.param("pure", 1e-10, marks=pytest.mark.long), (METRIC, 1.5e-10)]
)
def test_spark_admits_what_the_definition_admits(spark, unit: str, delta: float | None):
    rng = random.Random(7)  # noqa: S311 - a corpus of cases
    names = [f"r{number}" for number in range(40)] + ["ä", "z", "10", "9"]
    authors = ["a", "b", None]
    releases = ["support", "other"]
    limits = {"pure": (31.0, 140.0, 90.0), METRIC: (15.0, 300.0, 120.0)}[unit]
    budget = Budget(unit, Relation.SAME_LENGTH, *limits, delta=delta)
    prices = {"support": 0.3, "other": 0.1}
    deltas = {"support": 1e-13, "other": 4e-13}

    def charge(release: str, tokens: int, relation: Relation) -> Charge:
        return Charge(tokens, prices[release], 7.5, METRIC, relation, deltas[release])

    entries, rows = [], []
    for number in range(60):
        release, record, author = rng.choice(releases), rng.choice(names), rng.choice(authors)
        relation = Relation.SAME_SKELETON if number == 0 else rng.choice([Relation.ANY_TEXT, Relation.SAME_LENGTH])
        one = charge(release, rng.randrange(1, 60), relation)
        entries.append(Entry(release, record.encode(), author, one))
        reserved = rng.random() < 0.5
        part = (one.tokens, 1, 0, 0) if reserved else (0, 0, one.tokens, 1)
        head = (release, "t", record, author, "run", None, "reserve" if reserved else "settle", None, None, 1, "k")
        terms = (one.price, one.epsilon, one.delta, METRIC, str(relation))
        rows.append((*head, *part, *terms))
        if number % 5 == 0:  # a version that came back: it counts, and is not charged again
            entries.append(entries[-1])
            for kind, tag, sign in (("reserve", None, 1), ("settle", b"tag", -1)):
                returned = (*head[:6], kind, None, tag, 1, "k", sign * one.tokens, sign, 0, 0)
                rows.append((*returned, *terms))
    chosen = [(name, rng.choice(authors), rng.randrange(1, 60), rng.random() < 0.2) for name in names]
    asked = [
        Candidate(name.encode(), author, charge("support", tokens, Relation.ANY_TEXT), is_charged)
        for name, author, tokens, is_charged in chosen
    ]
    wanted = admit(budget, "support", asked, entries)
    terms = Terms("support", "t", "run-2", 1, "k", prices["support"], 7.5, deltas["support"], METRIC, "any_text")
    candidates = spark.createDataFrame(
        chosen, "record_id string, author string, tokens bigint, is_charged boolean"
    ).repartition(3)
    found = admit_candidates(candidates, spark.createDataFrame(rows, SCHEMA), terms, budget)
    reasons = {row.record_id: row.reason for row in found.collect()}
    assert reasons == dict(zip(names, wanted, strict=True))
    if delta is None:
        assert len(set(wanted)) >= 4, "the cases show each reason"
    else:
        assert wanted != admit(replace(budget, delta=None), "support", asked, entries), "deltas alone refuse some"


@pytest.fixture(scope="module")
def states(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """Twelve records of three authors, and one of none: before a release has run (``written``); and without the last
    one after a run that left no room to a record, nor to an author (``drawn``).
    """
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("budgets")))
    states = States(lake)
    table = corpus_with_authors(13, authors=3)
    authors = [*table["author"].to_pylist()[:12], None]
    lake.write(table.set_column(table.column_names.index("author"), "author", pa.array(authors)))
    states.keep("written")
    lake.delete("author IS NULL")
    assert lake.run(full(lake)).released == 12
    states.keep("drawn")
    return states


def budget_config(
    lake: Lake,
    release: str = "support",
    changes: str = "scan",
    gate: dict[str, Any] | None = None,
    sections: dict[str, Any] | None = None,
    **budgets: object,
) -> Any:
    """A release with budgets; its record costs what :func:`price` says."""
    output = {"path": str(lake.root / release)}
    return lake.config(
        release=release,
        input={"author": "author", "changes": changes},
        output=output,
        **({"gate": gate} if gate else {}),
        **(sections or {}),
        budgets={"unit": "pure", "relation": "any_text", "delta": 1e-6, **budgets},
    )


def price(lake: Lake) -> float:
    """What a record costs."""
    return 24 * build_bundle(lake.config()).guarantee.pure


def full(lake: Lake, **sections: Any) -> Any:
    """A record's and an author's limit are what is drawn of them first."""
    return budget_config(lake, author=4 * price(lake), record=price(lake), **sections)


def test_an_author_may_spend_once_over_all_releases(lake: Lake):
    """The first in the order of ids come in; refused ones cost nothing and come in when the budget is raised. A null
    author is refused.
    """
    cost, delta = price(lake), build_bundle(lake.config()).guarantee.delta
    with pytest.raises(ConfigError, match=r"budgets\.delta.*is required"):
        lake.run(budget_config(lake, author=2 * cost, delta=None))
    report = lake.run(budget_config(lake, author=2 * cost), run_id="night-1")
    lake.home = lake.root / "support"
    assert (report.released, report.quarantined) == (6, {"over_author_budget": 6, "null_author": 1})
    # Laplace's delta is in the report, in each row, and in the ledger.
    assert 0 < report.delta == 24 * delta <= 24e-12
    assert {row["privacy"]["delta"] for row in lake.draws() if row["privacy"]} == {24 * delta}
    assert {row["delta"] for row in lake.entries()} == {delta}
    # Of a first night all records count. What a later one refuses again does not.
    gated = run_gate(gated_by := budget_config(lake, author=2 * cost, gate={"max_refused_rate": 0.54}), spark_of(lake))
    assert gated.result.results[0].value == pytest.approx(7 / 13)
    signed = publish(gated_by, spark_of(lake)).document["manifest"]
    assert (signed["refused"], signed["records"]) == ({"over_author_budget": 6, "null_author": 1}, 6)
    released = [row["id"] for row in lake.draws() if row["status"] == "released"]
    assert sorted(released) == [f"r{number:05d}" for number in range(6)]
    assert all(row["text"] is None and row["privacy"] is None for row in lake.draws() if row["status"] == "quarantined")
    assert lake.spent() == {
        **{f"r{number:05d}": 24 for number in range(6)},
        **{f"r{number:05d}": 0 for number in range(6, 13)},
    }

    other = lake.run(budget_config(lake, "other", author=3 * cost))
    assert (other.released, other.quarantined) == (3, {"over_author_budget": 9, "null_author": 1})

    again = lake.run(budget_config(lake, author=4 * cost))
    assert (again.records, again.released) == (3, 3), "what is refused for the same reason again is not written again"
    assert sum(lake.spent().values()) == 12 * 24
    gated_by = budget_config(lake, author=4 * cost, gate={"max_refused_rate": 0.0})
    assert run_gate(gated_by, spark_of(lake)).result.passed
    assert publish(gated_by, spark_of(lake)).document["manifest"]["refused"] == {
        "over_author_budget": 3,
        "null_author": 1,
    }
    # An author has used 4 of 8.5 in three runs of two releases, 3 of 9.5 in the two runs of this one.
    config = budget_config(lake, author=8.5 * cost, corpus=9.5 * cost)
    left, lasting = find_left(lake.spark, config.budget, config.ledger, config.release)
    assert left == pytest.approx({"author": 4.5 * cost, "corpus": 6.5 * cost})
    assert lasting == {"author": 3, "corpus": 4}


def spark_of(lake: Lake) -> Any:
    """A function that starts a session, for a command."""
    return lambda: lake.spark


def test_the_most_refused_value_of_each_column_is_found(spark: Any):
    """Small groups are left out, and columns of which nothing is refused."""
    cells = [("router", "w1", 44, 100), ("router", "w2", 0, 60), ("modem", "w1", 9, 30), ("rare", "w1", 29, 29)]
    cells.append((None, "w2", 12, 30))
    rows = [(product, week, "x", number < over) for product, week, over, of in cells for number in range(of)]
    frame = spark.createDataFrame(rows, "product string, `the week` string, kind string, over boolean")
    found = find_most_refused(frame, ["the week", "product"], F.col("over"))
    assert found == (RefusedGroup("the week", "w1", 159, 82), RefusedGroup("product", None, 30, 12))
    assert [str(group) for group in found] == ["the week=w1 51.6%", "product=null 40.0%"]
    assert find_most_refused(frame, ["product"], F.lit(False)) == find_most_refused(frame, [], F.col("over")) == ()


def find_row(lake: Lake, name: str) -> dict[str, Any]:
    """The newest row of a record."""
    rows = [row for row in lake.rows(lake.root / "support" / "draws") if row["id"] == name]
    return max(rows, key=lambda row: row["__seq"])


@pytest.mark.parametrize("changes", ["feed", pytest.param("scan", marks=pytest.mark.long)])
def test_a_refused_edit_leaves_the_last_version_marked_as_stale(drawn: Lake, changes: str):
    """Also where it is undone: whether a text came back must not show."""
    lake, (undone, edited) = drawn, ("r00003", "r00004")
    config = full(lake, changes=changes, gate={"max_stale_rate": 0.17}, on_exceeded="keep_last")
    first, spent = find_row(lake, undone), lake.spent()
    lake.update(f"id IN ('{undone}', '{edited}')", body="another text")
    report = lake.run(config)
    assert (report.records, report.stale, report.refused) == (0, 2, {"over_record_budget": 2})
    marked = {"__seq": find_row(lake, undone)["__seq"], "__reserved": None, "reason": "over_record_budget"}
    assert find_row(lake, undone) == {**first, **marked}
    (rate,) = run_gate(config, lambda: lake.spark).result.results
    assert (rate.passed, rate.value) == (True, pytest.approx(2 / 12))
    publish(config, lambda: lake.spark)
    assert {row["id"] for row in lake.rows(lake.root / "support" / "public") if row["stale"]} == {undone, edited}

    restore_text(lake, undone)
    lake.update(f"id = '{edited}'", note=9)
    report = lake.run(config)
    assert (report.released, report.stale, report.refused) == (0, 0, {"over_record_budget": 2}), "refused again"
    assert (find_row(lake, undone)["text"], find_row(lake, undone)["reason"]) == (first["text"], "over_record_budget")
    assert ({name: tokens for name, tokens in lake.spent().items() if tokens}, lake.reserved()) == (spent, 0)


def restore_text(lake: Lake, name: str) -> None:
    """The record has its first text again."""
    body = next(row["body"] for row in corpus_with_authors(13, authors=3).to_pylist() if row["id"] == name)
    lake.update(f"id = '{name}'", body=body)


@pytest.mark.parametrize("hidden", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("lost", [True, pytest.param(False, marks=pytest.mark.long)])
def test_what_was_charged_comes_back_at_no_price(states: States, lost: bool, hidden: bool):
    """A release loses its tables, or an export its records for a night: nobody has room for them, and they return.
    Where lengths are visible they are let in; where they are hidden, nobody may see that they are what they were.
    """
    returning = [f"r{number:05d}" for number in range(12 if lost else 8)]
    lake = states.restore("drawn" if hidden else "written")
    lake.home = lake.root / "support"
    config = full(lake)
    if not hidden:
        lake.delete("author IS NULL")
        lake.update(None, body=" ".join(WORDS[:2]))
        section = {"text": {"profile": "strict", "length": "as_is"}}
        config = budget_config(lake, relation="same_length", record=price(lake) / 12, sections=section)  # both words
        assert lake.run(config).released == 12
    texts, spent = {row["id"]: row["text"] for row in lake.draws()}, lake.spent()
    if lost:
        shutil.rmtree(lake.home)
        lake.forget()
        reset(config.home, lambda: lake.spark)
    else:
        table = [row for row in DeltaTable(lake.input).to_pyarrow_table().to_pylist() if row["id"] in returning]
        lake.delete("id < 'r00008'")
        assert lake.run(config, full_snapshot=True).withdrawn == 8
        lake.write(pa.Table.from_pylist(table))
    lake.update("id = 'r00003'", body=" ".join(WORDS[2:4]))
    report = lake.run(config)
    refused = returning if hidden else ["r00003"]
    assert (report.released, report.refused) == (len(returning) - len(refused), {"over_record_budget": len(refused)})
    assert {name: row["text"] for name, row in lake.newest().items()} == {**texts, **dict.fromkeys(refused)}
    assert (lake.spent(), lake.reserved()) == ({**spent, **dict.fromkeys(lake.spent().keys() - spent.keys(), 0)}, 0)


@pytest.mark.long
def test_whether_a_text_came_back_decides_over_no_record(drawn: Lake):
    """Two records have the texts A, B, A and A, B, C, and then each another one, and each another author. The same
    happens to both, to the other records of their authors, and to what is left of their limits.
    """
    lake, pair, cost = drawn, ("r00000", "r00001"), price(drawn)
    lake.home = lake.root / "support"
    # Three other records of each author were drawn with their first texts.
    config = budget_config(lake, record=3 * cost, author=7 * cost)
    for texts in ((3, 3), (None, 2), (4, 4)):
        if texts == (4, 4):
            add_records(lake, {"p1": "a0", "p2": "a0", "q1": "a1", "q2": "a1"})
        for name, number in zip(pair, texts, strict=True):
            if number is None:
                restore_text(lake, name)
            else:
                lake.update(f"id = '{name}'", body=WORDS[number])
        lake.run(config)
    names = {"a0": ["p1", "p2", pair[0]], "a1": ["q1", "q2", pair[1]]}
    seen = {author: [lake.newest()[name]["reason"] for name in of] for author, of in names.items()}
    assert seen["a0"] == seen["a1"] == [None, "over_author_budget", "over_record_budget"]
    lake.release(config)
    others = {f"r{number:05d}" for number in range(2, 12)}
    assert {row["id"] for row in lake.rows(lake.home / "public")} == {"p1", "q1", *others}

    for name, author in zip(pair, ("s", "t"), strict=True):
        lake.update(f"id = '{name}'", author=author)
    add_records(lake, {"b1": "s", "b2": "s", "c1": "t", "c2": "t"})
    lake.run(budget_config(lake, record=3 * cost, author=4 * cost))
    newest = lake.newest()
    assert [newest[name]["reason"] for name in ("b1", "b2")] == [None, "over_author_budget"]
    assert [newest[name]["reason"] for name in ("c1", "c2")] == [None, "over_author_budget"]
    assert [lake.spent()[name] for name in pair] == [4 * 24, 6 * 24], "each is charged to two authors"
    entries = read_ledger(lake.spark, str(lake.ledger), Selection())
    rows = {row.author: row for row in sum_costs(entries, "author", config.budget).collect()}
    assert [rows[name].contexts for name in ("a0", "a1", "s", "t")] == [6, 7, 3, 4]
    assert [round(rows[name].left / cost, 6) for name in ("a0", "a1", "s", "t")] == [0, 0, 3, 3]
    assert lake.reserved() == 0


def add_records(lake: Lake, authors: dict[str, str]) -> None:
    """New records, by name, of these authors."""
    count = len(authors)
    lake.write(
        pa.table(
            {
                "id": [*authors],
                "body": ["zebra"] * count,
                "day": ["d0"] * count,
                "note": [0] * count,
                "author": [*authors.values()],
            }
        )
    )
