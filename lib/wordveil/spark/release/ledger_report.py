"""Reports of the ledger, summed in Spark: spent, reserved and remaining costs by record, author, release or context."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add, sub
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.config.schema import LedgerSection
from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import PURE, Budget, count_runs_left
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release.admission import cost, owner, price_of, total
from wordveil.spark.release.ledger import ABANDON, ATTRIBUTE, COSTS, RESERVE, SETTLE, TABLE, count_returned

Scope = Literal["record", "author", "release"]
KEYS: dict[Scope, tuple[str, ...]] = {
    "record": ("release", "record_id"),
    "author": ("author",),
    "release": ("release",),
}
"""Columns that name a row of a report, by scope."""


@dataclass(frozen=True)
class Selection:
    """Selection of the ledger's entries. None: all."""

    release: str | None = None
    author: str | None = None
    record: str | None = None

    def cuts(self, by: Scope) -> bool:
        """Return whether it leaves out part of the sum of a row of ``by``, so that no limit applies."""
        given = {name for name in ("release", "author", "record") if getattr(self, name) is not None}
        return not given <= {"record": {"release", "record"}, "author": {"author"}, "release": {"release"}}[by]


def read_ledger(spark: SparkSession, path: str, selection: Selection) -> DataFrame:
    """Read the entries of the ledger at ``path``. Raises :class:`ReleaseError` if there is none."""
    chosen = {"release": selection.release, "author": selection.author, "record_id": selection.record}
    conditions = (F.col(name) == wanted for name, wanted in chosen.items() if wanted is not None)
    return reduce(DataFrame.where, conditions, _read_entries(spark, path).where(F.col("kind").isin(*COSTS)))


def _read_entries(spark: SparkSession, path: str) -> DataFrame:
    table = DeltaTable(spark, path, "ledger")
    if not table.exists():
        raise ReleaseError(
            f"ledger {path}: is not a Delta table. The first run of a release makes the ledger: name the ledger.path "
            "of a release that has run."
        )
    table.check()
    return table.read()


def list_tables(spark: SparkSession, path: str, release: str | None) -> list[dict[str, Any]]:
    """List what the publications of shuffled releases added, in order, for each record of it.

    ``rows``: of the smallest group. ``local_epsilon`` is the loss of a record's own draw. ``epsilon_sum`` and
    ``delta_sum`` add up the publications of a release: they hold for somebody who has a record in each (basic
    composition).
    """
    entries = _read_entries(spark, path).where(F.col("kind") == TABLE)
    if release is not None:
        entries = entries.where(F.col("release") == release)
    number = F.regexp_extract("run_id", r"(\d+)$", 1).cast("int").alias("publication")
    parts = enumerate(("records", "rows", "groups"), 1)
    pattern = r"(\d+) rows, (\d+) in the smallest of (\d+) groups"
    counts = [F.regexp_extract("reason", pattern, place).cast("long").alias(name) for place, name in parts]
    named = entries.select("release", number, *counts, F.col("price").alias("local_epsilon"), "epsilon", "delta")
    found = [row.asDict() for row in named.orderBy("release", "publication").collect()]
    for name in ("epsilon", "delta"):
        sums: dict[str, float] = {}
        for row in found:
            sums[row["release"]] = row[f"{name}_sum"] = sums.get(row["release"], 0.0) + row[name]
    return found


def relation_of(entries: DataFrame) -> Relation:
    """Find the widest relation for which the costs of all entries are finite; ``any_text`` if there is none."""
    held = [Relation(row.relation) for row in entries.select("relation").distinct().collect()]
    fitting = (wanted for wanted in Relation if all(relation.covers(wanted) for relation in held))
    return next(fitting, Relation.ANY_TEXT)


def sum_costs(
    entries: DataFrame, by: Scope, budget: Budget, *, release: str | None = None, limited: bool = True
) -> DataFrame:
    """Sum a row for each record, author or release.

    Costs are in the unit and for the relation of ``budget``, exactly as admission counts them, and infinite if the
    budget does not cover them. ``returned`` counts versions that came back, which are not charged again. ``delta`` sums
    the deltas of what is spent and reserved. ``left`` is the rest of the limit; null unless ``limited`` by a finite
    sum. A row of a release also has ``corpus``, the maximum that an author (or a record without one) has used in it.
    Entries without an author count for no author. ``release``: the release whose records and corpus are limited;
    authors are limited over all releases.
    """
    keys = KEYS[by]
    # Charges to a further author only count for authors.
    counted = F.col("author").isNotNull() if by == "author" else F.col("kind") != ATTRIBUTE
    sums = _used(entries.where(counted), keys, budget)
    named = [*keys, "contexts", "tokens", "spent", "reserved", "returned", "delta"]
    used = F.col("spent") + F.col("reserved") + F.col("returned")
    if by == "release":
        owners = _used(entries.withColumn("owner", owner()), ("release", "owner"), budget)
        max_used = owners.groupBy("release").agg(F.max("used").alias("corpus"))
        sums = sums.join(max_used, "release", "left").withColumn("corpus", F.coalesce("corpus", F.lit(0.0)))
        used = F.col("corpus")
        named.append("corpus")
    limit = {"record": budget.record, "author": budget.author, "release": budget.corpus}[by]
    left: Column = F.lit(None).cast("double")
    if limited and limit is not None:
        ours = F.lit(True) if by == "author" else F.col("release") == (release or "")
        parts = [used] if by == "release" else [F.col(name) for name in ("spent", "reserved", "returned")]
        left = F.when(ours & (used != math.inf), reduce(sub, parts, F.lit(limit)))
    return sums.select(*named, left.alias("left"))


def count_runs(entries: DataFrame) -> int:
    """Count the runs that have charged something."""
    return entries.where(F.col("spent_draws") > 0).select("release", "run_id").distinct().count()


def find_left(
    spark: SparkSession, budget: Budget | None, ledger: LedgerSection | None, release: str
) -> tuple[dict[str, float], dict[str, int]]:
    """Find what is left of each limit to the key with the least, and its further runs by :func:`count_runs_left`.

    Both are by scope. They are empty without budgets, and before the first run. Nothing is left where no sum bounds
    what was used, such as that of two releases with other relations.
    """
    if budget is None or ledger is None or not DeltaTable(spark, ledger.path, "ledger").exists():
        return {}, {}
    left: dict[str, float] = {}
    runs: dict[str, int] = {}
    all_entries = read_ledger(spark, ledger.path, Selection())
    ours = all_entries.where(F.col("release") == release)
    for scope in budget.limits:
        # The limit of an author holds for all releases together.
        entries = all_entries if scope == "author" else ours
        costs = sum_costs(entries, "release" if scope == "corpus" else scope, budget, release=release)
        if (row := costs.orderBy(F.col("left").asc_nulls_first()).first()) is None:
            continue
        left[scope] = row["left"] or 0.0
        if (count := count_runs_left(row.asDict(), count_runs(entries))) is not None:
            runs[scope] = count
    return left, runs


def list_contexts(entries: DataFrame, budget: Budget) -> DataFrame:
    """List a row for each context that is charged, or reserved by an open run, and for each further author."""
    ended = entries.where(F.col("kind").isin(SETTLE, ABANDON)).select("release", "run_id").distinct()
    # There are few runs and many contexts.
    open_ = entries.where(F.col("kind") == RESERVE).join(F.broadcast(ended), ["release", "run_id"], "left_anti")
    spent = entries.where(F.col("kind").isin(SETTLE, ABANDON) & (F.col("spent_draws") > 0))
    further = entries.where((F.col("kind") == ATTRIBUTE) & (F.col("spent_draws") > 0))

    def describe(frame: DataFrame, state: str, counted: str) -> DataFrame:
        tokens = F.col(f"{counted}_tokens")
        quantity = tokens if budget.unit == PURE else F.lit(1).cast("bigint")
        return frame.select(
            *("release", "record_id", "author", "run_id", "epoch"),
            tokens.alias("tokens"),
            "epsilon",
            cost(price_of(budget), quantity).alias("cost"),
            (tokens * F.col("delta")).alias("delta"),
            *("metric", "relation"),
            F.lit(state).alias("state"),
        )

    charged = describe(spent, "spent", "spent").unionByName(describe(open_, "reserved", "reserved"))
    return charged.unionByName(describe(further, "attributed", "spent"))


def order_by_cost(rows: DataFrame) -> DataFrame:
    """Order ``rows``, the most expensive first, then by name."""
    first = "cost" if "cost" in rows.columns else "spent"
    names = [name for name in ("release", "author", "record_id", "run_id") if name in rows.columns]
    return rows.orderBy(F.col(first).desc(), *names)


def _used(entries: DataFrame, keys: tuple[str, ...], budget: Budget) -> DataFrame:
    """Sum each key's contexts, tokens, ``spent``, ``reserved``, ``returned``, ``delta``, and all costs as ``used``."""
    kinds = ("spent", "reserved", "returned")
    returned = {"returned_tokens": count_returned("tokens"), "returned_draws": count_returned("draws")}
    priced = (
        entries.withColumns(returned)
        .groupBy(*keys, price_of(budget).alias("unit_price"), F.col("delta").alias("unit_delta"))
        .agg(*(F.sum(f"{kind}_{unit}").alias(f"{kind}_{unit}") for kind in kinds for unit in ("tokens", "draws")))
    )
    unit = "tokens" if budget.unit == PURE else "draws"
    quantities: dict[str, Any] = {kind: (F.col(f"{kind}_{unit}"), F.col(f"{kind}_draws")) for kind in kinds}
    quantities["used"] = tuple(reduce(add, parts) for parts in zip(*quantities.values(), strict=True))
    collected = [
        F.collect_list(F.when(draws != 0, F.struct("unit_price", quantity.alias("quantity")))).alias(name)
        for name, (quantity, draws) in quantities.items()
    ]
    deltas = F.struct(
        F.col("unit_delta").alias("unit_price"), (F.col("spent_tokens") + F.col("reserved_tokens")).alias("quantity")
    )
    sums = priced.groupBy(*keys).agg(
        F.sum("spent_draws").alias("contexts"),
        F.sum("spent_tokens").alias("tokens"),
        *collected,
        F.collect_list(deltas).alias("delta"),
    )
    return sums.withColumns({name: total(F.col(name)) for name in (*quantities, "delta")})
