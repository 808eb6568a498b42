"""Forecast of the records that budgets refuse, by the rule by which a run admits records. No text is read.

Ids, authors and kept columns are those of all records of the input, because a sample has fewer records of each author.
Where lengths are visible and a record costs what its text has, the lengths of a sample are dealt out to the records by
hashes of their ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.config.schema import ReleaseHome
from wordveil.input.columns import fold_name
from wordveil.privacy.events import ReleaseTerms
from wordveil.release.budgets import OVER_AUTHOR_BUDGET, AuthorRecords, Budget, RefusalForecast
from wordveil.spark.input.screening import flag_invalid_ids
from wordveil.spark.input.source import InputTable
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release.admission import admit_candidates
from wordveil.spark.release.latest import filter_by_ids, find_most_refused
from wordveil.spark.release.ledger import SETTLE, Terms, ledger_schema

_ID, _AUTHOR, _TOKENS = "__record", "__author", "__tokens"
# Spark gets so many lengths of a sample, evenly spread over its quantiles.
_MOST_LENGTHS = 1_000


def count_authors(table: InputTable) -> AuthorRecords | None:
    """Count the records of each author of the input, by the column of authors alone; None without one."""
    if table.source.author is None:
        return None
    return _count_authors(table.read().select(column(table.source.author).alias("author")))


def _count_authors(records: DataFrame) -> AuthorRecords | None:
    counts = records.where("author is not null").groupBy("author").count()
    names = {"median": 0.5, "p95": 0.95, "most": 1.0}
    found = [F.expr(f"percentile_approx(count, {share}, 10000)").alias(name) for name, share in names.items()]
    row = counts.agg(F.count(F.lit(1)).alias("authors"), *found).collect()[0]
    return AuthorRecords(**row.asDict()) if row["authors"] else None


def forecast_refusals(
    table: InputTable, budget: Budget, home: ReleaseHome, terms: ReleaseTerms, lengths: Sequence[int | None]
) -> tuple[RefusalForecast, AuthorRecords | None]:
    """Forecast what ``budget`` refuses if a run of the release at ``home`` draws the whole input now.

    Also counts the records of each author among those that could be drawn. A record that the ledger has charged to the
    release counts as unchanged. ``lengths``: the numbers of drawn tokens of the records of a sample, None for those
    refused for their texts; used if ``terms`` have no public number. Raises a :class:`WordveilError` for an input or a
    ledger that cannot be read.
    """
    source, spark = table.source, table.spark
    roles = (source.id, *([source.author] if source.author else []), *source.keep)
    rows = table.read().select(*map(column, {fold_name(name): name for name in roles}.values()))
    named, unsound = flag_invalid_ids(rows, source)
    author = column(source.author).cast("string") if source.author else F.lit(None).cast("string")
    record, tokens = column(source.id).cast("string"), _find_tokens(column(source.id), terms, lengths)
    records = named.where(unsound.isNull()).select(
        record.alias(_ID), author.alias(_AUTHOR), tokens.alias(_TOKENS), *map(column, source.keep)
    )
    records = records.where(F.col(_TOKENS).isNotNull())
    ledger = _read_entries(spark, home.ledger.path)
    decided = _admit(records, ledger, budget, terms).persist()
    try:
        counted = decided.groupBy("reason").agg(
            F.count(F.lit(1)).alias("records"), F.count_distinct("author").alias("of")
        )
        found = {row["reason"]: (row["records"], row["of"]) for row in counted.collect()}
        refused = {reason: found[reason][0] for reason in sorted(reason for reason in found if reason)}
        over = decided.where("reason is not null").select(F.col("record_id").alias("__id"), F.lit(True).alias("__over"))
        number = sum(refused.values())
        marked = filter_by_ids(records, _ID, over, "left", number).withColumn("__over", F.col("__over").isNotNull())
        groups = find_most_refused(marked, source.keep, F.col("__over")) if number else ()
        authors = _count_authors(decided)
    finally:
        decided.unpersist()
    forecast = RefusalForecast(
        records=sum(count for count, _ in found.values()),
        refused=refused,
        authors=found.get(OVER_AUTHOR_BUDGET, (0, 0))[1],
        most_refused=groups,
        by_sample=terms.tokens is None,
    )
    return forecast, authors


def _find_tokens(record_id: Column, terms: ReleaseTerms, lengths: Sequence[int | None]) -> Column:
    """Return the tokens of a record: the public number, or a length of the sample; null if none is to be drawn."""
    if terms.tokens is not None:
        return F.lit(terms.tokens).cast("bigint")
    ordered = sorted(lengths, key=lambda length: -1 if length is None else length)
    count = min(len(ordered), _MOST_LENGTHS)
    dealt = (ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count))
    array = F.expr(f"cast(array({', '.join('null' if one is None else str(one) for one in dealt)}) as array<bigint>)")
    return F.get(array, F.pmod(F.xxhash64(record_id), F.lit(max(count, 1))).cast("int"))


def _read_entries(spark: SparkSession, path: str) -> DataFrame:
    table = DeltaTable(spark, path, "ledger")
    if not table.exists():
        return spark.createDataFrame([], ledger_schema())
    table.check()
    return table.read()


def _admit(records: DataFrame, ledger: DataFrame, budget: Budget, terms: ReleaseTerms) -> DataFrame:
    """Decide over ``records`` as a run does: record_id, author and reason."""
    is_charged = (F.col("release") == terms.release) & (F.col("kind") == SETTLE) & (F.col("spent_draws") > 0)
    charged = ledger.where(is_charged).select(F.col("record_id").alias("__id")).distinct()
    marked = filter_by_ids(records, _ID, charged.withColumn("__charged", F.lit(True)), "left")
    candidates = marked.select(
        F.col(_ID).alias("record_id"),
        F.col(_AUTHOR).alias("author"),
        F.col(_TOKENS).alias("tokens"),
        F.col("__charged").isNotNull().alias("is_charged"),
    )
    priced = Terms.of(terms, tables="", run_id="", epoch=0, epoch_key="")
    return admit_candidates(candidates, ledger, priced, budget).select("record_id", "author", "reason")
