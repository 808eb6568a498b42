"""Sums of the ledger in Spark against the definition in plain Python, on entries with two prices, open runs and
infinite costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.budgets import Amount, Charge, amount, cost, total
from wordveil.config.schema import LedgerSection
from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import Budget
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release.ledger import SCHEMA, Ledger
from wordveil.spark.release.ledger_report import (
    KEYS,
    Selection,
    find_left,
    list_contexts,
    order_by_cost,
    read_ledger,
    relation_of,
    sum_costs,
)

Entry = dict[str, Any]
NAMES = [field.split()[0] for field in SCHEMA.replace("\n", "").split(",")]
# Prices whose products round differently in another order.
TERMS = {
    "mail": (0.1, 0.7, 1e-13, "euclidean:aa", "any_text"),
    "chat": (1 / 3, 1.1, 0.0, "euclidean:aa", "any_text"),
    "notes": (2.7, 0.3, 3e-14, "angular:bb", "same_length"),
}


def entry(release: str, record: str, author: str | None, run: str, kind: str, **counts: int) -> Entry:
    price, epsilon, delta, metric, relation = TERMS[release]
    blank = dict.fromkeys(NAMES) | {name: 0 for name in NAMES if name.startswith(("reserved", "spent"))}
    terms = {"price": price, "epsilon": epsilon, "delta": delta, "metric": metric, "relation": relation, "epoch": 1}
    return {
        **blank,
        **terms,
        "release": release,
        "record_id": record,
        "author": author,
        "run_id": run,
        "kind": kind,
        **counts,
    }


def make_entries() -> list[Entry]:
    """Three releases with four runs each: the last is open, the one before was abandoned."""
    rng = np.random.default_rng(3)
    entries: list[Entry] = []
    for release in TERMS:
        for run in range(4):
            for number in range(12):
                who = (release, f"r{number}", None if number == 11 else f"a{number % 3}", f"{release}-{run}")
                if rng.random() < 0.2:
                    entries.append(entry(*who, "refuse"))
                    continue
                tokens, drawn = int(rng.integers(5, 90)), int(rng.integers(0, 5))
                entries.append(entry(*who, "reserve", reserved_tokens=tokens, reserved_draws=1))
                back = {"reserved_tokens": -tokens, "reserved_draws": -1}
                if run == 2:
                    entries.append(entry(*who, "abandon", **back, spent_tokens=tokens, spent_draws=1))
                elif run < 2:
                    known = rng.random() < 0.3
                    spent = {"spent_tokens": 0 if known else drawn, "spent_draws": 0 if known else 1}
                    entries.append(entry(*who, "settle", **back, **spent) | {"content_tag": b"tag"})
        # What a corrected author is charged, and what costs nothing.
        entries.append(entry(release, "r1", "a2", f"{release}-1", "attribute", spent_tokens=31, spent_draws=1))
        entries.append(entry(release, "r5", None, f"{release}-1", "withdraw"))
        entries[-1] |= dict.fromkeys(("price", "epsilon", "delta", "metric", "relation"))
    return entries


ENTRIES = make_entries()


@pytest.fixture(scope="module")
def path(spark, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The entries as a ledger, which tests only read."""
    store = DeltaTable(spark, str(tmp_path_factory.mktemp("report") / "ledger"), "ledger")
    Ledger(store).create()
    store.append(
        spark.createDataFrame([tuple(one[name] for name in NAMES) for one in ENTRIES], SCHEMA),
        step="test",
        idempotency_key="test",
    )
    return store.path


def charges(entries: Iterable[Entry], state: str) -> list[tuple[Entry, Charge]]:
    """Contexts that are charged, or reserved by a run that has not ended, one at a time; or versions that came back,
    and are not charged again.
    """
    entries = [one for one in entries if one["kind"] != "withdraw"]
    if state == "returned":
        back = [one for one in entries if one["kind"] == "settle" and not one["spent_draws"]]
        entries = [one | {"returned_draws": 1, "returned_tokens": -one["reserved_tokens"]} for one in back]
    ended = {one["run_id"] for one in ENTRIES if one["kind"] in ("settle", "abandon")}
    return [
        (
            one,
            Charge(
                one[f"{state}_tokens"],
                one["price"],
                one["epsilon"],
                one["metric"],
                Relation(one["relation"]),
                one["delta"],
            ),
        )
        for one in entries
        if one[f"{state}_draws"] > 0 and (state != "reserved" or one["run_id"] not in ended)
    ]


def expected(entries: list[Entry], keys: tuple[str, ...], budget: Budget) -> dict[tuple[Any, ...], dict[str, float]]:
    found = {}
    for key in {tuple(one[name] for name in keys) for one in entries}:
        mine = [one for one in entries if tuple(one[name] for name in keys) == key]
        found[key] = {
            state: total(amount(charge, budget.unit, budget.relation) for _, charge in charges(mine, state))
            for state in ("spent", "reserved", "returned")
        }
        found[key]["used"] = total(
            amount(charge, budget.unit, budget.relation)
            for state in ("spent", "reserved", "returned")
            for _, charge in charges(mine, state)
        )
        both = [charge for state in ("spent", "reserved") for _, charge in charges(mine, state)]
        found[key]["delta"] = total(Amount(charge.delta, charge.tokens) for charge in both)
        found[key]["contexts"] = len(charges(mine, "spent"))
        found[key]["tokens"] = sum(charge.tokens for _, charge in charges(mine, "spent"))
    return found


BUDGETS = [
    Budget("pure", Relation.ANY_TEXT, record=40.0, author=1e4, corpus=1e5),
    Budget("pure", Relation.SAME_LENGTH, record=1e3, author=1e4),
    Budget("euclidean:aa", Relation.ANY_TEXT, record=20.0, author=100.0, corpus=100.0),
]


SOME = [BUDGETS[0], *(pytest.param(budget, marks=pytest.mark.long) for budget in BUDGETS[1:])]


@pytest.mark.parametrize("budget", SOME, ids=lambda budget: f"{budget.unit.split(':')[0]}-{budget.relation}")
def test_sums_are_those_of_the_definition(spark, path: str, budget: Budget):
    table = read_ledger(spark, path, Selection()).persist()
    limits = {"record": budget.record, "author": budget.author, "release": budget.corpus}
    for by, keys in KEYS.items():
        entries = [
            one for one in ENTRIES if (one["author"] is not None if by == "author" else one["kind"] != "attribute")
        ]
        entries = [one for one in entries if one["kind"] != "withdraw"]
        wanted = expected(entries, keys, budget)
        rows = [row.asDict() for row in order_by_cost(sum_costs(table, by, budget, release="mail")).collect()]
        assert {tuple(row[name] for name in keys) for row in rows} == wanted.keys()
        assert [row["spent"] for row in rows] == sorted((row["spent"] for row in rows), reverse=True)
        for row in rows:
            want = wanted[tuple(row[name] for name in keys)]
            names = ("spent", "reserved", "returned", "contexts", "tokens", "delta")
            assert {name: row[name] for name in names} == {name: want[name] for name in names}
            used = row["spent"] + row["reserved"] + row["returned"]
            if by == "release":
                ours = [one for one in ENTRIES if one["release"] == row["release"] and one["kind"] != "withdraw"]
                owned = [
                    {**one, "owner": ("a", one["author"]) if one["author"] else ("r", one["record_id"])} for one in ours
                ]
                used = max(one["used"] for one in expected(owned, ("owner",), budget).values())
                assert row["corpus"] == used
            limited = limits[by] is not None and (by == "author" or row["release"] == "mail") and used < math.inf
            left = limits[by] - used if by == "release" and limited else None
            if limited and by != "release":
                left = limits[by] - row["spent"] - row["reserved"] - row["returned"]
            assert row["left"] == left
    spent = [row.spent for row in sum_costs(table, "release", budget).collect()]
    assert (math.inf in spent) == (budget.relation is Relation.ANY_TEXT)
    left = [row.left for row in sum_costs(table, "author", budget, release="mail").collect()]
    least = 0.0 if None in left else min(left)
    assert find_left(spark, budget, LedgerSection(path=path), "mail")[0]["author"] == least


def test_contexts_are_those_of_the_definition(spark, path: str):
    budget = BUDGETS[0]
    table = read_ledger(spark, path, Selection(author="a1"))
    rows = [row.asDict() for row in order_by_cost(list_contexts(table, budget)).collect()]
    found = {(row["record_id"], row["run_id"], row["state"], row["tokens"], row["cost"]) for row in rows}
    mine = [one for one in ENTRIES if one["author"] == "a1"]
    assert len(found) == len(rows)
    assert found == {
        (
            one["record_id"],
            one["run_id"],
            "attributed" if one["kind"] == "attribute" else state,
            charge.tokens,
            cost(charge, budget.unit, budget.relation),
        )
        for state in ("spent", "reserved")
        for one, charge in charges(mine, state)
    }
    assert [row["cost"] for row in rows] == sorted((row["cost"] for row in rows), reverse=True)


def test_the_relation_is_the_widest_with_finite_costs(spark, path: str):
    assert relation_of(read_ledger(spark, path, Selection())) is Relation.SAME_LENGTH
    assert relation_of(read_ledger(spark, path, Selection(release="mail"))) is Relation.ANY_TEXT
    assert relation_of(read_ledger(spark, path, Selection(release="none"))) is Relation.ANY_TEXT


def test_a_part_of_what_a_limit_is_about_has_nothing_left(spark, tmp_path: Path):
    assert not Selection(release="mail", record="r1").cuts("record")
    assert Selection(author="a1").cuts("record")
    assert Selection(release="mail").cuts("author")
    assert Selection(record="r1").cuts("release")
    with pytest.raises(ReleaseError, match="is not a Delta table"):
        read_ledger(spark, str(tmp_path / "none"), Selection())
