"""Admission of candidates by a budget on the current ledger, as defined by the section "Budgets" of docs/guarantees.md.

Candidates are ordered by the bytes of their ids. In each scope a candidate is within the limit if and only if its key's
spent and reserved cost, all candidates of that key before it and itself cost no more. Refused candidates count for
those after them, so that each decision is one running sum and needs no other decision.

Whether a text has come back is a function of the texts. If the length is hidden no decision may depend on it: such a
version counts like any other one, though it is not charged again (:func:`wordveil.spark.release.ledger.count_used`). If
lengths are visible, ``is_charged`` candidates cost nothing and are admitted, whatever has been spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
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
from wordveil.spark.release.ledger import ATTRIBUTE, Terms, count_used

# In this order: the first scope that fails names the reason.
_REASONS = (OVER_RECORD_BUDGET, OVER_AUTHOR_BUDGET, OVER_CORPUS_BUDGET)


def admit_candidates(
    candidates: DataFrame, ledger: DataFrame, terms: Terms, budget: Budget, number: int | None = None
) -> DataFrame:
    """Add ``reason`` to ``candidates`` (record_id, author, tokens, is_charged): null, or the budget that refuses them.

    ``number``: the number of candidates, if known; the ledger's entries of few keys are summed without the others.
    """
    own = ["record_id", "author", "tokens", "is_charged"]
    sums = [*_list_sums(budget, terms.release)]
    costs = {name: F.lit(getattr(terms, name)) for name in ("price", "epsilon", "delta", "metric", "relation")}
    units = (~F.col("is_charged")).cast("bigint")
    asked = {"tokens": units * F.col("tokens"), "draws": units}
    parts = (_part(item, asked, item.key, limit=F.lit(item.limit), rank=F.lit(item.rank)) for item in sums)
    priced = candidates.withColumns(costs).select(*own, F.inline(F.array(*parts)))
    used = {unit: count_used(unit) for unit in ("tokens", "draws")}
    parts = (_part(item, used, F.when(item.counts, item.key), draws=used["draws"]) for item in sums)
    # Files without an entry that counts are not read.
    counted = ledger.where(reduce(or_, (item.counts for item in sums)))
    entries = counted.select(F.inline(F.array(*parts))).where("key is not null")
    if number is not None:
        entries = filter_by_ids(entries, "key", priced.select(F.col("key").alias("__id")), number=number * len(sums))
    over = F.when(F.col("total") > F.col("limit"), F.col("rank"))
    failed = _with_total(priced, entries).groupBy(*own).agg(F.min(over).alias("rank"))
    no_author = F.lit(None).cast("string")
    if budget.author is not None:
        no_author = F.when(F.col("author").isNull(), NULL_AUTHOR)
    record, author, corpus = (F.when(F.col("rank") == rank, name) for rank, name in enumerate(_REASONS))
    reason = F.when(F.col("is_charged"), no_author).otherwise(F.coalesce(record, no_author, author, corpus))
    return failed.select(*own, reason.alias("reason"))


class _Sum(NamedTuple):
    """Limited sum.

    ``rank``: that of its reason. ``key``: the key of the sum, from the columns of a candidate or an entry. ``counts``:
    the sum counts an entry. ``price``: that of a unit, from the columns of an entry.
    """

    rank: int
    limit: float
    key: Column
    counts: Column
    unit: Literal["tokens", "draws"]
    price: Column


def _list_sums(budget: Budget, release: str) -> Iterator[_Sum]:
    """List the limited sums of each scope: the budget's unit, and deltas if the budget limits them."""
    ours = F.col("release") == release
    scopes = (
        # Draws that were charged to a further author have been counted for the record before.
        (budget.record, F.col("record_id"), ours & (F.col("kind") != ATTRIBUTE)),
        (budget.author, owner(), F.col("author").isNotNull()),
        (budget.corpus, owner(), ours),
    )
    for rank, (limit, key, counts) in enumerate(scopes):
        if limit is not None:
            named = F.concat(F.lit(f"{_REASONS[rank]} "), key)
            yield _Sum(rank, limit, named, counts, "tokens" if budget.unit == PURE else "draws", price_of(budget))
            if budget.delta is not None:
                yield _Sum(rank, budget.delta, F.concat(F.lit("delta "), named), counts, "tokens", F.col("delta"))


def _part(item: _Sum, quantities: Mapping[str, Column], key: Column, **further: Column) -> Column:
    """Make the part of a candidate or an entry in a sum: ``key``, ``unit_price``, ``quantity``, and ``further``."""
    named = {"key": key, "unit_price": item.price, "quantity": quantities[item.unit], **further}
    return F.struct(*(value.alias(name) for name, value in named.items()))


def price_of(budget: Budget) -> Column:
    """Return the cost of one unit, a token's price or a draw's epsilon; infinite if the budget does not cover it."""
    covering = [str(relation) for relation in Relation if relation.covers(budget.relation)]
    if budget.unit == PURE:
        return F.when(F.col("relation").isin(covering), F.col("price")).otherwise(F.lit(math.inf))
    same = F.col("relation").isin(covering) & (F.col("metric") == budget.unit)
    return F.when(same, F.col("epsilon")).otherwise(F.lit(math.inf))


def total(parts: Column) -> Column:
    """Sum an array of (unit_price, quantity), in ascending order of price (:mod:`wordveil.release.budgets`)."""
    return F.aggregate(
        F.array_sort(parts), F.lit(0.0), lambda sum_, part: sum_ + cost(part["unit_price"], part["quantity"])
    )


def cost(price: Column, quantity: Column) -> Column:
    """Multiply a quantity by a price. The product is infinite if the price is, even for a quantity of 0."""
    return F.when(price == math.inf, F.lit(math.inf)).otherwise(price * quantity.cast("double"))


def _with_total(asked: DataFrame, entries: DataFrame) -> DataFrame:
    """Add ``total``: the sum of a key once its candidates up to this one, by id, are drawn."""
    used = entries.groupBy("key", "unit_price").agg(F.sum("quantity").alias("quantity"), F.sum("draws").alias("draws"))
    # A context without tokens costs nothing; if the budget does not cover it, its cost is still infinite.
    parts = F.collect_list(F.struct("unit_price", "quantity")).alias("parts")
    spent = used.where("draws <> 0").groupBy("key").agg(parts)
    order = Window.partitionBy("key").orderBy("record_id").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = asked.withColumn("quantity", F.sum("quantity").over(order)).join(spent, "key", "left")
    none = F.array().cast("array<struct<unit_price:double,quantity:bigint>>")
    known, price = F.coalesce("parts", none), F.col("unit_price")
    others = F.filter(known, lambda part: part["unit_price"] != price)
    same = F.filter(known, lambda part: part["unit_price"] == price)
    quantity = F.aggregate(same, F.col("quantity"), lambda sum_, part: sum_ + part["quantity"])
    return running.withColumn("total", total(others) + price * quantity.cast("double"))


def owner() -> Column:
    """Return the key of a record in the corpus: its author, or itself if it has none."""
    return F.coalesce(F.concat(F.lit("author "), "author"), F.concat(F.lit("record "), "record_id"))
