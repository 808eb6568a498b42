"""Counts that a reader of an output can estimate with Spark alone: from its drawn symbols and their public law.

Tables of estimates, of trends and of pairs are made from counts of symbols by group.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructField, StructType, TimestampType

from wordveil.arrays import Int64
from wordveil.errors import InputError, usage_error
from wordveil.measures.estimates import Estimator, PairEstimator, PairSums, compare_shares
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.records.schema import SYMBOLS, SYMBOLS_FILE
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.verify import MANIFEST
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import input_errors, job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.versions import parse_schema

Row = dict[str, Any]
DRAWN, TRENDS, PAIRS = "drawn", "trends", "pairs"
ESTIMATES = {"words": "terms", "texts": "subjects"}
"""Names of the tables in the output's directory; those of estimates by what was drawn."""
MOST_ESTIMATES = 1_000_000
"""Largest number of groups times symbols of a table of estimates."""
_CELL, _SYMBOL = "__cell", "__symbol"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAIRS_AT_ONCE = 1_000_000
"""Largest number of texts times pairs in memory at once."""
_WORD = r"[\p{L}\p{N}]+(?:['\u2019][\p{L}\p{N}]+)*"
_DRAWN_SCHEMA = "public_version bigint, term string, count bigint, documents bigint"
_MEANING = "symbol int, written string, keywords string"
_ESTIMATES = (
    f"{_MEANING}, size int, draws bigint, drawn bigint, estimate double, low double, high double, low_of_all double, "
    "high_of_all double, share double, rank int"
)
_TRENDS = f"{_MEANING}, difference double, low double, high double, more_than_noise boolean"
_PAIRS = (
    "public_version bigint, first int, second int, first_written string, second_written string, together double, "
    "expected double, difference double, low double, high double, more_than_chance boolean"
)


@dataclass(frozen=True)
class Meanings:
    """Law and meaning of an output's symbols, as its manifest or the file beside it says.

    ``rows``: of each symbol, by number: ``written``, ``keywords``, and of words ``size``.
    """

    estimator: Estimator
    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, spark: SparkSession, table: str) -> Self | None:
        """Read them from beside an output; None if nothing describes symbols there.

        Raises :class:`InputError` for a law that cannot be inverted.
        """
        for name in (MANIFEST, SYMBOLS_FILE):
            file = Files(spark, f"{table}/{name}")
            if file.exists():
                try:
                    found = json.loads(file.read())
                    described = found["manifest"].get("symbols") if name == MANIFEST else found
                    if described is None:
                        return None
                    law, rows = SymbolLaw.from_dict(described["law"]), list(described["meanings"])
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise InputError(f"{table}/{name}: does not describe symbols: {error}. Verify the table.") from None
                try:
                    estimator = Estimator(law)
                except ValueError as error:
                    raise InputError(f"{table}/{name}: no counts can be estimated: {error}.") from None
                if len(rows) != estimator.law.size:
                    problem = f"describes {len(rows):,} symbols, and the law is of {estimator.law.size:,}"
                    raise InputError(f"{table}/{name}: {problem}. Verify the table.")
                return cls(estimator, rows)
        return None

    @property
    def unit(self) -> str:
        """Noun for what a draw was made for: words, or texts."""
        return "words" if "size" in self.rows[0] else "texts"

    def describe(self, symbol: int) -> Row:
        """Return the columns that say what a symbol stands for."""
        row = self.rows[symbol]
        return {"symbol": symbol, "written": row["written"], "keywords": row["keywords"]}


@dataclass(frozen=True)
class SymbolCounts:
    """Counts of drawn symbols by group.

    ``by``: the columns of groups, with their types. ``groups``: their values. ``counts``: int64 ``(groups, symbols)``.
    """

    by: tuple[tuple[str, DataType], ...]
    groups: list[tuple[Any, ...]]
    counts: Int64
    meanings: Meanings

    @classmethod
    def count(cls, rows: DataFrame, by: Sequence[str], meanings: Meanings) -> Self:
        """Count the symbols of ``rows`` in one pass over these, after one over the columns ``by``.

        Raises :class:`InputError` for more groups than fit a table, and for numbers that nothing describes.
        """
        size, keys = len(meanings.rows), [column(name) for name in by]
        timed = [isinstance(rows.schema[name].dataType, TimestampType) for name in by]
        # As numbers: PySpark gives times without their zone, and the hour that the end of summer repeats is one then.
        found = [F.unix_micros(key) if is_time else key for key, is_time in zip(keys, timed, strict=True)]
        values = rows.select(*found).distinct().limit(MOST_ESTIMATES // size + 1).collect() if by else [()]
        groups = [tuple(map(_to_time, group, timed)) for group in values]
        if len(groups) * size > MOST_ESTIMATES:
            raise InputError(
                f"--by = {', '.join(by)}: makes more than {MOST_ESTIMATES // size:,} groups, each of {size:,} symbols. "
                "Name fewer columns."
            )
        drawn = rows.select(F.lit(0).cast("bigint").alias(_CELL), SYMBOLS)
        if by:
            # A number is a much faster key than several columns.
            numbered = [(*group, place * size) for place, group in enumerate(groups)]
            names = [f"__{place}" for place in range(len(by))]
            fields = [StructField(name, rows.schema[key].dataType) for name, key in zip(names, by, strict=True)]
            codes = rows.sparkSession.createDataFrame(numbered, StructType([*fields, StructField(_CELL, LongType())]))
            is_same = [key.eqNullSafe(F.col(name)) for key, name in zip(keys, names, strict=True)]
            drawn = rows.join(F.broadcast(codes), reduce(Column.__and__, is_same)).select(_CELL, SYMBOLS)
        drawn = drawn.select(_CELL, F.explode(SYMBOLS).alias(_SYMBOL))
        cells = F.when(F.col(_SYMBOL).between(0, size - 1), F.col(_CELL) + F.col(_SYMBOL))
        counts = np.zeros(len(groups) * size, np.int64)
        for cell, count in drawn.groupBy(cells.alias(_CELL)).count().collect():
            if cell is None:
                raise InputError(f"--table: has symbols beyond the {size:,} that are described. Verify the table.")
            counts[cell] = count
        kinds = tuple((name, rows.schema[name].dataType) for name in by)
        return cls(kinds, groups, counts.reshape(len(groups), size), meanings)

    def sum_up(self) -> SymbolCounts:
        """Add up all groups."""
        return SymbolCounts((), [()], self.counts.sum(axis=0, keepdims=True), self.meanings)

    def estimate(self) -> list[Row]:
        """List the estimate of each symbol in each group, in each the most frequent first."""
        if not self.groups:
            return []
        estimator, rows = self.meanings.estimator, []
        alone, together = (estimator.estimate(self.counts, together=number) for number in (1, self.counts.size))
        for place, group in enumerate(self.groups):
            draws = int(self.counts[place].sum())
            order = np.argsort(-alone.counts[place], kind="stable")
            for rank, symbol in enumerate(order.tolist(), 1):
                estimate = float(alone.counts[place, symbol])
                row = {
                    **dict(zip(self._names, group, strict=True)),
                    **self.meanings.describe(symbol),
                    "size": self.meanings.rows[symbol].get("size"),
                    "draws": draws,
                    "drawn": int(self.counts[place, symbol]),
                    "estimate": estimate,
                }
                ends = (alone.low, alone.high, together.low, together.high)
                names = ("low", "high", "low_of_all", "high_of_all")
                row |= {name: float(end[place, symbol]) for name, end in zip(names, ends, strict=True)}
                rows.append({**row, "share": estimate / max(draws, 1), "rank": rank})
        return rows

    def compare(self, over: str) -> list[Row]:
        """List how the share of each symbol changes from one value of the column ``over`` to the next.

        Values are in order; null, NaN and groups without draws are in none. A change is more than noise with a false
        discovery rate of 5% over all.
        """
        place = self._names.index(over)
        series: dict[tuple[Any, ...], list[tuple[Any, int]]] = {}
        for number, group in enumerate(self.groups):
            value = group[place]
            if value is not None and value == value and self.counts[number].any():  # noqa: PLR0124 - not a number
                series.setdefault((*group[:place], *group[place + 1 :]), []).append((group[place], number))
        steps = [
            (others, first, second)
            for others, points in series.items()
            for first, second in pairwise(sorted(points, key=lambda point: point[0]))
        ]
        if not steps:
            return []
        before, after = (self.counts[[step[side][1] for step in steps]] for side in (1, 2))
        found = compare_shares(before, after, self.meanings.estimator)
        names = [name for name in self._names if name != over]
        return [
            {
                **dict(zip(names, others, strict=True)),
                f"{over}_before": first[0],
                over: second[0],
                **self.meanings.describe(symbol),
                "difference": float(found.differences[number, symbol]),
                "low": float(found.low[number, symbol]),
                "high": float(found.high[number, symbol]),
                "more_than_noise": bool(found.are_real[number, symbol]),
            }
            for number, (others, first, second) in enumerate(steps)
            for symbol in range(len(self.meanings.rows))
        ]

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self.by]

    @staticmethod
    def find_clashes(by: Sequence[str], over: str | None) -> list[str]:
        """List the columns of groups that have the name of a column of the tables, or one that no Delta table has."""
        made = {name.lower() for schema in (_ESTIMATES, _TRENDS) for name in parse_schema(schema).names}
        made |= {"public_version", *([f"{over}_before".lower()] if over else ())}
        return [name for name in by if name.lower() in made or set(name) & set(" ,;{}()\n\t=`")]

    def make_schema(self, over: str | None = None) -> StructType:
        """Make the schema of estimates, or of trends ``over`` a column."""
        kinds = dict(self.by)
        groups = [StructField(name, kind) for name, kind in self.by if name != over]
        if over:
            groups += [StructField(f"{over}_before", kinds[over]), StructField(over, kinds[over])]
        figures = parse_schema(_TRENDS if over else _ESTIMATES)
        return StructType([*parse_schema("public_version bigint").fields, *groups, *figures.fields])


def count_pairs(rows: DataFrame, counts: SymbolCounts, most: int, stop_words: Sequence[str] = ()) -> list[Row]:
    """Estimate how often two of the ``most`` frequent symbols stand in one text, those farthest above chance first.

    Padding and clusters that ``stop_words`` are written for are none of them. Empty if texts have one draw, and for
    laws of nested levels.
    """
    meanings, total = counts.meanings, counts.sum_up()
    estimator = meanings.estimator
    if estimator.weights is None or not counts.groups:
        return []
    padding = estimator.law.size - 1 if estimator.law.padding is not None else -1
    lengths = rows.select(
        F.size(SYMBOLS).cast("double").alias("draws"),
        F.size(F.filter(SYMBOLS, lambda symbol: symbol == padding)).cast("double").alias("pads"),
    ).where("draws > 0")
    sums = lengths.selectExpr(
        "sum(draws * draws)", "sum(draws * pads)", "sum(pads * pads)", "sum(draws)", "sum(pads)", "max(draws)"
    ).first()
    if sums is None or sums[5] is None or sums[5] < 2:
        return []
    found = estimator.estimate(total.counts).counts[0]
    left_out = {padding, *(symbol for symbol, row in enumerate(meanings.rows) if row["written"] in stop_words)}
    order = [symbol for symbol in np.argsort(-found, kind="stable").tolist() if symbol not in left_out]
    pairs = PairEstimator.of(estimator, sorted(order[:most]), found, tuple(sums)[:5])

    most_texts = max(_PAIRS_AT_ONCE // max(len(pairs.ends[0]), 1), 1)

    def sum_pairs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            drawn = batch.column(0)
            for start in range(0, len(drawn), most_texts):
                part = drawn.slice(start, most_texts)
                offsets = np.concatenate([[0], np.cumsum(np.diff(np.asarray(part.offsets)))]).astype(np.int64)
                values = np.asarray(part.flatten()).astype(np.int64)
                found = pairs.sum_up(values, offsets)
                arrays = [np.arange(len(found.together)), np.full(len(found.together), found.texts), *found[1:]]
                yield pa.RecordBatch.from_arrays([pa.array(array) for array in arrays], names=names)

    names = ["pair", *PairSums._fields]
    texts = rows.select(SYMBOLS).where(F.size(SYMBOLS) > 0)
    kinds = "pair bigint, texts bigint, together double, deviations double, squares double"
    added = texts.mapInArrow(sum_pairs, parse_schema(kinds)).groupBy("pair").sum(*names[1:]).orderBy("pair").collect()
    if not added:
        return []
    columns = [np.array(values) for values in zip(*(row[1:] for row in added), strict=True)]
    together, expected, changes = pairs.compare(PairSums(int(columns[0][0]), *columns[1:]))
    first, second = (pairs.symbols[ends].tolist() for ends in pairs.ends)
    rows_of = [
        {
            "first": first[pair],
            "second": second[pair],
            "first_written": meanings.rows[first[pair]]["written"],
            "second_written": meanings.rows[second[pair]]["written"],
            "together": float(together[pair]),
            "expected": float(expected[pair]),
            "difference": float(changes.differences[pair]),
            "low": float(changes.low[pair]),
            "high": float(changes.high[pair]),
            "more_than_chance": bool(changes.are_real[pair] and changes.differences[pair] > 0),
        }
        for pair in range(len(together))
    ]
    return sorted(rows_of, key=lambda row: -row["difference"])


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
    dates, and these periods of them are compared, each named by its first day. ``pairs``: the number of frequent
    symbols whose pairs in one text are counted, without those of ``stop_words``. Without symbols, the written words are
    counted as they came out: those of the column ``text``, in ``min_documents`` texts, that are no stop-words.
    ``page``: symbols are required. Each table is replaced in one commit; those of an earlier analysis are emptied.

    Raises :class:`InputError` for a table that cannot be read, :class:`ConfigError` for an output inside it.
    """
    _check_output(table, output)
    rows, chosen = _read(spark, table, version)
    groups = tuple(dict.fromkeys([*by, *([over] if over else ())]))
    _check_groups(rows, groups, over, text)
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
                _empty_others(spark, output, {DRAWN})
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
            tables[PAIRS] = found, parse_schema(_PAIRS)
        for name, (values, schema) in tables.items():
            made = spark.createDataFrame([(chosen, *row.values()) for row in values], schema)
            _replace(made, f"{output}/{name}")
        _empty_others(spark, output, tables.keys())
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


def _to_time(value: Any, is_time: bool) -> Any:  # noqa: FBT001 - mapped over columns
    """Return microseconds since 1970 as a time in UTC; any other value as it is."""
    return _EPOCH + timedelta(microseconds=value) if is_time and value is not None else value


def _check_groups(rows: DataFrame, groups: Sequence[str], over: str | None, text: str) -> None:
    columns = [name for name in rows.columns if name not in (text, SYMBOLS, "privacy")]
    for name in groups:
        where = f"{'--over' if name == over else '--by'} = {name}:"
        if name not in columns:
            raise InputError(f"{where} the table has no such kept column. It has: {', '.join(columns)}.")
        if isinstance(rows.schema[name].dataType, ArrayType | MapType):
            raise InputError(f"{where} has lists or maps, which make no groups. Name a column of single values.")
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
    day = F.when(F.year(day).between(1, 9999), day)  # Python has no others
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


def _empty_others(spark: SparkSession, output: str, names: Collection[str]) -> None:
    """Empty the tables of an earlier analysis that this one does not have."""
    for name in {DRAWN, *ESTIMATES.values(), TRENDS, PAIRS} - {*names}:
        store = DeltaTable(spark, f"{output}/{name}", "table of analytics")
        if store.exists():
            _replace(store.read().limit(0), store.path)


def _replace(rows: DataFrame, path: str) -> None:
    store = DeltaTable(rows.sparkSession, path, "table of analytics")
    store.create(rows.schema)
    # Delta commits nothing where an empty table is replaced by an empty one.
    if not (rows.isEmpty() and store.read().isEmpty()):
        store.replace(rows.coalesce(1))
