"""Counts that a reader of an output can estimate with Spark alone: from its drawn symbols and their public law."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.errors import InputError, usage_error
from wordveil.records.schema import SYMBOLS
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.verify import MANIFEST
from wordveil.spark.analytics.symbols import PAIRS_SCHEMA, Meanings, Row, SymbolCounts, count_pairs
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import input_errors, job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.versions import parse_schema

DRAWN, TRENDS, PAIRS = "drawn", "trends", "pairs"
ESTIMATES = {"words": "terms", "texts": "subjects"}
"""Names of the tables in the output's directory; those of estimates by what was drawn."""
_WORD = r"[\p{L}\p{N}]+(?:['\u2019][\p{L}\p{N}]+)*"
_DRAWN_SCHEMA = "public_version bigint, term string, count bigint, documents bigint"


@dataclass(frozen=True)
class Analysis:
    """Estimates from an output, or its written words where no symbols are published.

    ``table``, ``public_version``, ``output``: what was read (None: no Delta table), and where the tables are.
    ``unit``: words or texts; None without symbols. ``records``: rows. ``totals``: rows of estimates over all groups,
    the most frequent first. ``estimates``, ``trends``, ``pairs``: rows of the tables. ``drawn``: different words of the
    table of written words. ``refused``: the number of records that budgets keep out of the table, by reason, as the
    manifest beside it says; None if it says nothing of budgets. ``least_count``: the count from which a usual symbol
    stands out from none in the smallest group, which has ``least_draws``; both 0 without draws.
    """

    table: str
    public_version: int | None
    output: str
    unit: str | None
    records: int
    totals: tuple[Row, ...] = ()
    estimates: tuple[Row, ...] = ()
    trends: tuple[Row, ...] = ()
    pairs: tuple[Row, ...] = ()
    drawn: int = 0
    refused: dict[str, int] | None = None
    least_draws: int = 0
    least_count: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: totals, and of trends and pairs those that are more than noise."""
        trends = [{name: _plain(value) for name, value in row.items()} for row in self.trends if row["more_than_noise"]]
        pairs = [row for row in self.pairs if row["more_than_chance"]]
        values = {name: value for name, value in vars(self).items() if name != "estimates"}
        return {**values, "totals": list(self.totals), "trends": trends, "pairs": pairs}


def _plain(value: Any) -> Any:
    is_plain = isinstance(value, bool | int | str | None) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def analyse(
    spark: SparkSession,
    table: str,
    output: str,
    *,
    version: int | None = None,
    text: str = "text",
    by: Sequence[str] = (),
    over: str | None = None,
    every: str | None = None,
    pairs: int = 30,
    min_documents: int = 2,
    stop_words: Sequence[str] = (),
    page: bool = False,
    progress: Callable[[str], None] = ignore,
) -> Analysis:
    """Estimate how often texts had each symbol, and write the estimates as Delta tables.

    ``version``: of a Delta table, by default the latest. ``by``: kept columns in whose groups symbols are counted.
    ``over``: a kept column, such as a week, between whose values in order they are compared. ``every``: that column has
    dates, and these periods of them are compared, each named by its first day. ``pairs``: the number of
    frequent symbols whose pairs in one text are counted, without those of ``stop_words``. Without symbols, the written
    words are counted as they came out: those of the column ``text``, in ``min_documents`` texts, that are no
    stop-words. ``page``: symbols are required. Each table is replaced in one commit.

    Raises :class:`InputError` for a table that cannot be read, :class:`ConfigError` for an output inside it.
    """
    _check_output(table, output)
    rows, chosen = _read(spark, table, version)
    groups = tuple(dict.fromkeys([*by, *([over] if over else ())]))
    _check_groups(groups, over, [name for name in rows.columns if name not in (text, SYMBOLS, "privacy")])
    meanings = Meanings.read(spark, table) if SYMBOLS in rows.columns else None
    if groups and meanings is None:
        raise InputError(
            f"--by = {', '.join(groups)}: the table has no symbols, from which counts of groups are estimated. Set "
            "output.symbols: true in a new release, or remove --by."
        )
    if page and meanings is None:
        raise InputError("--html: draws estimates, and the table has no symbols to estimate from. Remove it.")
    if meanings is None and text not in rows.columns:
        raise InputError(f"--text = {text}: the table has no such column. It has: {', '.join(rows.columns)}.")
    with job_errors("the earlier tables are unchanged"):
        if over and every:
            rows = _join_days(rows, over, every)
        refused = _find_refused(spark, table)
        if meanings is None:
            progress("counting written words")
            words = _split_words(rows, text, stop_words)
            counted = _count_terms(words, min_documents).cache()
            try:
                _replace(_stamp(counted, chosen, parse_schema(_DRAWN_SCHEMA)), f"{output}/{DRAWN}")
                return Analysis(table, chosen, output, None, rows.count(), drawn=counted.count(), refused=refused)
            finally:
                counted.unpersist()
        progress("counting symbols")
        counts = SymbolCounts.count(rows, groups, meanings)
        estimates = counts.estimate()
        trends = counts.compare(over) if over else []
        progress("counting pairs")
        found = count_pairs(rows, counts, pairs, stop_words) if pairs > 1 else []
        progress("writing")
        tables = {ESTIMATES[meanings.unit]: (estimates, counts.make_schema())}
        if over:
            tables[TRENDS] = trends, counts.make_schema(over)
        if pairs > 1:
            tables[PAIRS] = found, parse_schema(PAIRS_SCHEMA)
        for name, (values, schema) in tables.items():
            made = spark.createDataFrame([(chosen, *row.values()) for row in values], schema)
            _replace(made, f"{output}/{name}")
        records = rows.count()
    totals = counts.sum_up().estimate() if counts.groups else []
    draws = min((row["draws"] for row in estimates), default=0)
    return Analysis(
        *(table, chosen, output, meanings.unit, records),
        *(tuple(totals), tuple(estimates), tuple(trends), tuple(found)),
        refused=refused,
        least_draws=draws,
        least_count=meanings.estimator.find_least_count(draws) if draws else 0,
    )


def _check_groups(groups: Sequence[str], over: str | None, columns: Sequence[str]) -> None:
    if unknown := [name for name in groups if name not in columns]:
        option = "--over" if unknown[0] == over else "--by"
        raise InputError(f"{option} = {unknown[0]}: the table has no such kept column. It has: {', '.join(columns)}.")
    if clashes := SymbolCounts.find_clashes(groups, over):
        raise InputError(f"--by = {clashes[0]}: cannot be a column of the tables of estimates. Name another.")


def _check_output(table: str, output: str) -> None:
    here, there = (path.rstrip("/") + "/" for path in (output, table))
    if here.startswith(there) or there.startswith(here):
        raise usage_error("--output", output, "is the table, inside it or above it. Choose another path.")


def _read(spark: SparkSession, table: str, version: int | None) -> tuple[DataFrame, int | None]:
    """Read a published Delta table at a version, or the released rows of a job's Parquet output."""
    store = DeltaTable(spark, table, "table")
    if store.exists():
        chosen = store.version() if version is None else version
        with input_errors("--table", table, f"Delta table at version {chosen}"):
            return store.read(chosen), chosen
    if version is not None:
        raise InputError(f"--version = {version}: {table} is no Delta table, which has versions. Remove it.")
    with input_errors("--table", table, "published Delta table, or Parquet output of a job"):
        rows = spark.read.parquet(table)
    return rows.where("status = 'released'") if "status" in rows.columns else rows, None


def _join_days(rows: DataFrame, name: str, period: str) -> DataFrame:
    """Replace dates by the first days of their periods. Raises :class:`InputError` for a value that is no date."""
    day = F.expr(f"try_cast(string(`{name}`) AS date)")
    if not rows.where(column(name).isNotNull() & day.isNull()).isEmpty():
        raise InputError(f"--every = {period}: the column {name} has values that are no dates. Remove it.")
    return rows.withColumn(name, F.trunc(day, period))


def _find_refused(spark: SparkSession, table: str) -> dict[str, int] | None:
    """Read from a table's manifest the number of records that each budget keeps out; None if it does not say."""
    file = Files(spark, f"{table}/{MANIFEST}")
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        if file.exists():
            refused = json.loads(file.read())["manifest"]["refused"]
            return {name: int(refused[name]) for name in BUDGET_REASONS if name in refused}
    return None


def _split_words(rows: DataFrame, text: str, stop_words: Sequence[str]) -> DataFrame:
    """Split each record's text into its words, in lower case, without the stop-words."""
    words = F.regexp_extract_all(F.lower(column(text)), F.lit(_WORD), F.lit(0))
    if stop_words:
        stops = F.array(*map(F.lit, stop_words))
        words = F.filter(words, lambda word: ~F.array_contains(stops, word))
    return rows.select(F.coalesce(words, F.array().cast("array<string>")).alias("words"))


def _count_terms(words: DataFrame, min_documents: int) -> DataFrame:
    """Count how often each term occurs, and in how many documents; the most frequent first."""
    # Numbered in a separate step: together with explode, Spark would number the words and not the records.
    numbered = words.withColumn("document", F.monotonically_increasing_id()).select(
        "document", F.explode("words").alias("term")
    )
    counted = numbered.groupBy("term", "document").agg(F.count(F.lit(1)).alias("here")).groupBy("term")
    terms = counted.agg(F.sum("here").alias("count"), F.count(F.lit(1)).alias("documents"))
    return terms.where(F.col("documents") >= min_documents).orderBy(F.desc("count"), "term")


def _stamp(rows: DataFrame, version: int | None, schema: StructType) -> DataFrame:
    return rows.select(F.lit(version).cast("bigint").alias("public_version"), "*").to(schema)


def _replace(rows: DataFrame, path: str) -> None:
    store = DeltaTable(rows.sparkSession, path, "table of analytics")
    store.create(rows.schema)
    # Delta commits nothing where an empty table is replaced by an empty one.
    if not (rows.isEmpty() and store.read().isEmpty()):
        store.replace(rows.coalesce(1))
