"""Which candidates a budget admits on the current ledger, as the section "Budgets" of docs/guarantees.md defines it.

Candidates are ordered by the bytes of their ids. In each scope a candidate is within the limit if and only if what its
key has spent or reserved, all candidates of that key before it and itself cost no more. Refused candidates count for
those after them, so that each decision is one running sum and needs no other decision. A context that has been charged
before costs nothing and is let in, whatever has been spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from wordveil.privacy.relations import Relation
from wordveil.release.budgets import (
    NULL_AUTHOR,
    OVER_AUTHOR_BUDGET,
    OVER_CORPUS_BUDGET,
    OVER_RECORD_BUDGET,
    PURE,
    Budget,
)
from wordveil.spark.release.latest import filter_by_ids
from wordveil.spark.release.ledger import ATTRIBUTE, Terms


def admit_candidates(
    candidates: DataFrame, ledger: DataFrame, terms: Terms, budget: Budget, number: int | None = None
) -> DataFrame:
    """``candidates`` (record_id, author, tokens, is_charged) with ``reason``: null, or which budget refuses them.

    ``number``: how many candidates there are, if that is known. What a ledger holds of others than a few is not summed.
    """
    is_charged = F.col("is_charged")
    priced = candidates.withColumns({"owner": owner(), "units": (~is_charged).cast("bigint")})
    ours = ledger.where(F.col("release") == terms.release)
    reason, no_author = F.lit(None).cast("string"), F.lit(None).cast("string")
    scopes = (
        # Draws that were charged to a further author have been counted for the record before.
        ("record_id", budget.record, ours.where(F.col("kind") != ATTRIBUTE), OVER_RECORD_BUDGET),
        ("author", budget.author, ledger.where(F.col("author").isNotNull()), OVER_AUTHOR_BUDGET),
        ("owner", budget.corpus, ours.withColumn("owner", owner()), OVER_CORPUS_BUDGET),
    )
    for key, limit, entries, name in scopes:
        if limit is None:
            continue
        if key == "author":
            no_author = F.when(F.col("author").isNull(), NULL_AUTHOR)
            reason = F.coalesce(reason, no_author)
        if number is not None:
            keys = priced.select(F.col(key).alias("__id"))
            entries = filter_by_ids(entries, key, keys, number=number)  # noqa: PLW2901 - the same, less the others
        for measure in _measures(budget, limit):
            priced = _with_total(priced, _spent(entries, key, measure), key, terms, measure)
            reason = F.coalesce(reason, F.when(F.col(f"{key}_{measure.name}") > measure.limit, name))
    reason = F.when(is_charged, no_author).otherwise(reason)
    return priced.select("record_id", "author", "tokens", "is_charged", reason.alias("reason"))


class _Measure(NamedTuple):
    """One sum that a scope limits. ``price``: of a unit, from the columns of an entry."""

    name: str
    limit: float
    unit: Literal["tokens", "draws"]
    price: Column


def _measures(budget: Budget, limit: float) -> Iterator[_Measure]:
    """What is limited in a scope: the budget's unit, and deltas if the budget limits them."""
    yield _Measure("total", limit, "tokens" if budget.unit == PURE else "draws", price_of(budget))
    if budget.delta is not None:
        yield _Measure("delta_total", budget.delta, "tokens", F.col("delta"))


def price_of(budget: Budget) -> Column:
    """What one unit of an entry costs in the budget: a token's price or a draw's epsilon, infinite where the budget
    does not cover it.
    """
    covering = [str(relation) for relation in Relation if relation.covers(budget.relation)]
    if budget.unit == PURE:
        return F.when(F.col("relation").isin(covering), F.col("price")).otherwise(F.lit(math.inf))
    same = F.col("relation").isin(covering) & (F.col("metric") == budget.unit)
    return F.when(same, F.col("epsilon")).otherwise(F.lit(math.inf))


def total(parts: Column) -> Column:
    """The sum of an array of (unit_price, quantity), in ascending order of price (:mod:`wordveil.release.budgets`)."""
    return F.aggregate(
        F.array_sort(parts), F.lit(0.0), lambda sum_, part: sum_ + cost(part["unit_price"], part["quantity"])
    )


def cost(price: Column, quantity: Column) -> Column:
    """A quantity at a price. It is infinite where the price is, even for a quantity of 0."""
    return F.when(price == math.inf, F.lit(math.inf)).otherwise(price * quantity.cast("double"))


def _spent(entries: DataFrame, key: str, measure: _Measure) -> DataFrame:
    """What each key has used: ``key`` and ``key_parts``, an array of (unit_price, quantity)."""
    used = entries.groupBy(key, measure.price.alias("unit_price")).agg(
        F.sum(F.col(f"reserved_{measure.unit}") + F.col(f"spent_{measure.unit}")).alias("quantity"),
        F.sum(F.col("reserved_draws") + F.col("spent_draws")).alias("draws"),
    )
    # A context without tokens costs nothing; where the budget does not cover it, its cost is still infinite.
    return (
        used.where("draws <> 0")
        .groupBy(key)
        .agg(F.collect_list(F.struct("unit_price", "quantity")).alias(f"{key}_parts"))
    )


def _with_total(candidates: DataFrame, spent: DataFrame, key: str, terms: Terms, measure: _Measure) -> DataFrame:
    """Add what ``key`` will have used once a candidate, and all before it in the order of ids, are drawn."""
    order = Window.partitionBy(key).orderBy("record_id").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    quantity = F.col("units") * F.col("tokens") if measure.unit == "tokens" else F.col("units")
    costs = ("price", "epsilon", "delta", "metric", "relation")
    priced = candidates.join(spent, key, "left").select(
        "*", F.sum(quantity).over(order).alias("running"), *(F.lit(getattr(terms, name)).alias(name) for name in costs)
    )
    priced = priced.withColumn("unit_price", measure.price)
    parts, price = F.col(f"{key}_parts"), F.col("unit_price")
    none = F.array().cast("array<struct<unit_price:double,quantity:bigint>>")
    others = F.coalesce(F.filter(parts, lambda part: part["unit_price"] != price), none)
    same = F.coalesce(F.filter(parts, lambda part: part["unit_price"] == price), none)
    quantity = F.aggregate(same, F.col("running"), lambda sum_, part: sum_ + part["quantity"])
    name = f"{key}_{measure.name}"
    return priced.withColumn(name, total(others) + price * quantity.cast("double")).select(*candidates.columns, name)


def owner() -> Column:
    """Whom a record counts for in the corpus: its author, or itself if it has none."""
    return F.coalesce(F.concat(F.lit("author "), "author"), F.concat(F.lit("record "), "record_id"))
