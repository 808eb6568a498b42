"""Budgets on Spark decide as the plain definition does, hold over releases, and let refused records in when they allow
it.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from support.budgets import Candidate, Charge, Entry, admit
from support.releases import Lake, corpus_with_authors
from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import ConfigError, ReleaseError
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import Budget
from wordveil.spark.release.admission import admit_candidates
from wordveil.spark.release.ledger import SCHEMA, Terms

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
        rows.append((*head, *part, one.price, one.epsilon, one.delta, METRIC, str(relation)))
    chosen = [(name, rng.choice(authors), rng.randrange(1, 60)) for name in names]
    wanted = admit(
        budget,
        "support",
        [
            Candidate(name.encode(), author, charge("support", tokens, Relation.ANY_TEXT))
            for name, author, tokens in chosen
        ],
        entries,
    )
    terms = Terms("support", "t", "run-2", 1, "k", prices["support"], 7.5, deltas["support"], METRIC, "any_text")
    candidates = spark.createDataFrame(chosen, "record_id string, author string, tokens bigint").repartition(3)
    found = admit_candidates(candidates, spark.createDataFrame(rows, SCHEMA), terms, budget)
    reasons = {row.record_id: row.reason for row in found.collect()}
    assert reasons == dict(zip(names, wanted, strict=True))
    if delta is None:
        assert len(set(wanted)) >= 4, "the cases show each reason"
    else:
        asked = [
            Candidate(name.encode(), author, charge("support", tokens, Relation.ANY_TEXT))
            for name, author, tokens in chosen
        ]
        assert wanted != admit(replace(budget, delta=None), "support", asked, entries), "deltas alone refuse some"


@pytest.fixture
def lake(spark, workspace: Workspace) -> Lake:
    """Twelve records of three authors, and one of none."""
    lake = Lake(spark, workspace)
    table = corpus_with_authors(13, authors=3)
    authors = [*table["author"].to_pylist()[:12], None]
    lake.write(table.set_column(table.column_names.index("author"), "author", pa.array(authors)))
    return lake


def budget_config(lake: Lake, release: str = "support", **budgets: object) -> object:
    """A release with budgets; its record costs what :func:`price` says."""
    output = {"path": str(lake.root / release)}
    return lake.config(
        release=release,
        input={"author": "author"},
        output=output,
        budgets={"unit": "pure", "relation": "any_text", "delta": 1e-6, **budgets},
    )


def price(lake: Lake) -> float:
    """What a record costs."""
    return 24 * build_bundle(lake.config()).guarantee.pure


def test_an_author_may_spend_once_over_all_releases(lake: Lake):
    """The first in the order of ids come in; refused ones cost nothing and come in when the budget is raised. A null
    author is refused.
    """
    cost = price(lake)
    report = lake.run(budget_config(lake, author=2 * cost))
    lake.home = lake.root / "support"
    assert (report.released, report.quarantined) == (6, {"over_author_budget": 6, "null_author": 1})
    released = [row["id"] for row in lake.draws() if row["status"] == "released"]
    assert sorted(released) == [f"r{number:05d}" for number in range(6)]
    assert all(row["text"] is None and row["privacy"] is None for row in lake.draws() if row["status"] == "quarantined")
    assert lake.spent() == {
        **{f"r{number:05d}": 24 for number in range(6)},
        **{f"r{number:05d}": 0 for number in range(6, 13)},
    }

    other = lake.run(budget_config(lake, "other", author=3 * cost))
    assert (other.released, other.quarantined) == (3, {"over_author_budget": 9, "null_author": 1})

    assert lake.run(budget_config(lake, author=2 * cost)).changes == "none"
    again = lake.run(budget_config(lake, author=4 * cost))
    assert (again.records, again.released) == (3, 3), "what is refused for the same reason again is not written again"
    assert sum(lake.spent().values()) == 12 * 24


def test_a_run_that_is_to_fail_draws_and_charges_nothing_and_may_begin_again(lake: Lake):
    """And an edit counts against its record."""
    cost = price(lake)
    with pytest.raises(ReleaseError, match="7 records would exceed"):
        lake.run(budget_config(lake, author=2 * cost, on_exceeded="fail"), run_id="night-1")
    assert lake.entries() == []
    lake.sql("UPDATE {input} SET author = 'a0' WHERE author IS NULL")
    report = lake.run(budget_config(lake, author=5 * cost, record=cost, on_exceeded="fail"), run_id="night-1")
    assert report.released == 13

    lake.sql("UPDATE {input} SET body = 'another text' WHERE id = 'r00003'")
    config = budget_config(lake, author=100 * cost, record=cost)
    report = lake.run(config)
    assert (report.records, report.quarantined) == (1, {"over_record_budget": 1})
    assert lake.run(config).changes == "none"


def test_impossible_budgets_are_named(lake: Lake):
    with pytest.raises(ConfigError, match=r"budgets\.record"):
        lake.run(budget_config(lake, record=price(lake) / 2))
    with pytest.raises(ConfigError, match=r"budgets\.relation.*infinitely"):
        lake.config(text={"profile": "readable"}, budgets={"unit": "pure", "relation": "any_text", "record": 5.0})
