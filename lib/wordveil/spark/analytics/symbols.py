"""Counts of drawn symbols from an output, and tables of estimates, of trends and of pairs made from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, LongType, StructField, StructType

from wordveil.arrays import Int64
from wordveil.errors import InputError
from wordveil.measures.estimates import Estimator, PairEstimator, PairSums, compare_shares
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.records.schema import SYMBOLS, SYMBOLS_FILE
from wordveil.release.verify import MANIFEST
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.versions import parse_schema

Row = dict[str, Any]
MOST_ESTIMATES = 1_000_000
"""Largest number of groups times symbols of a table of estimates."""
_CELL, _SYMBOL = "__cell", "__symbol"
_PAIRS_AT_ONCE = 1_000_000
"""Largest number of texts times pairs in memory at once."""
_MEANING = "symbol int, written string, keywords string"
_ESTIMATES = (
    f"{_MEANING}, size int, draws bigint, drawn bigint, estimate double, low double, high double, low_of_all double, "
    "high_of_all double, share double, rank int"
)
_TRENDS = f"{_MEANING}, difference double, low double, high double, more_than_noise boolean"
PAIRS_SCHEMA = (
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
        found = rows.select(*keys).distinct().limit(MOST_ESTIMATES // size + 1).collect() if by else [()]
        groups = [tuple(group) for group in found]
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
