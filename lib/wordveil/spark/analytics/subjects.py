"""Subjects of texts that were drawn whole, counted from a published table: tables of estimates and of trends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from wordveil.arrays import Int64
from wordveil.errors import InputError
from wordveil.measures.estimates import Response, compare_shares, estimate_counts
from wordveil.records.schema import SYMBOLS
from wordveil.release.verify import MANIFEST
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.filesystem import Files

_TEXT, _SYMBOL = "__text", "__symbol"


def read_meanings(spark: SparkSession, table: str) -> list[dict[str, str]]:
    """Read from the manifest of a published table what symbols stand for, by number: passage and keywords."""
    file = Files(spark, f"{table}/{MANIFEST}")
    found: list[dict[str, str]] = json.loads(file.read())["manifest"].get("topics", []) if file.exists() else []
    return found


@dataclass(frozen=True)
class SubjectCounts:
    """Counts of drawn symbols by group.

    ``by``: the columns of groups, with their types. ``groups``: their values, and then the number of the text column.
    ``counts``: int64 ``(groups, symbols)``. ``response``: the law of a draw; None without a row.
    """

    by: tuple[tuple[str, DataType], ...]
    groups: list[tuple[Any, ...]]
    counts: Int64
    meanings: Sequence[dict[str, str]]
    response: Response | None

    @classmethod
    def count(cls, rows: DataFrame, by: Sequence[str], meanings: Sequence[dict[str, str]]) -> Self:
        """Count the symbols of ``rows`` in one pass. Raises :class:`InputError` for rows of several laws."""
        paid = rows.select("privacy.epsilon").distinct().limit(2).collect()
        if len(paid) > 1:
            raise InputError("--table: its rows were drawn with several epsilons, and an estimate needs one law.")
        drawn = rows.select(*map(column, by), F.posexplode(SYMBOLS).alias(_TEXT, _SYMBOL))
        counted = drawn.groupBy(*map(column, by), _TEXT, _SYMBOL).count().collect()
        places: dict[tuple[Any, ...], int] = {}
        for row in counted:
            places.setdefault(tuple(row)[:-2], len(places))
        counts = np.zeros((len(places), len(meanings)), np.int64)
        for row in counted:
            counts[places[tuple(row)[:-2]], row[_SYMBOL]] = row["count"]
        types = tuple((name, rows.schema[name].dataType) for name in by)
        response = Response.of(paid[0].epsilon, len(meanings)) if paid else None
        return cls(types, [*places], counts, meanings, response)

    def list_rows(self, version: int) -> tuple[list[tuple[Any, ...]], StructType]:
        """List the estimate of each subject in each group, with the columns of the table."""
        values: list[tuple[Any, ...]] = []
        if self.response is not None:
            alone, together = (
                estimate_counts(self.counts, self.response, together=number) for number in (1, self.counts.size)
            )
            figures = (alone.counts, alone.low, alone.high, together.low, together.high)
            values = [
                (
                    *(version, *group[:-1], group[-1] + 1, symbol, *self._describe(symbol)),
                    *(int(self.counts[place].sum()), int(self.counts[place, symbol])),
                    *(float(found[place, symbol]) for found in figures),
                )
                for place, group in enumerate(self.groups)
                for symbol in range(len(self.meanings))
            ]
        numbers = ("estimate", "low", "high", "low_of_all", "high_of_all")
        fields = [StructField(name, LongType()) for name in ("records", "drawn")]
        return values, self._schema((), [*fields, *(StructField(name, DoubleType()) for name in numbers)])

    def list_trends(self, version: int, over: str) -> tuple[list[tuple[Any, ...]], StructType]:
        """List how the share of each subject changes from one value of the column ``over`` to the next.

        A change is more than noise with a false discovery rate of 5% over the whole table.
        """
        place = [name for name, _ in self.by].index(over)
        series: dict[tuple[Any, ...], list[tuple[Any, int]]] = {}
        for number, group in enumerate(self.groups):
            if group[place] is not None:
                series.setdefault((*group[:place], *group[place + 1 :]), []).append((group[place], number))
        steps = [
            (others, first, second)
            for others, points in series.items()
            for first, second in pairwise(sorted(points, key=lambda point: point[0]))
        ]
        values: list[tuple[Any, ...]] = []
        if self.response is not None and steps:
            before, after = (self.counts[[step[side][1] for step in steps]] for side in (1, 2))
            found = compare_shares(before, after, self.response)
            for number, (others, first, second) in enumerate(steps):
                group = (*others[:place], second[0], *others[place:])
                values += [
                    (
                        *(version, *group[:-1], first[0], group[-1] + 1, symbol, *self._describe(symbol)),
                        *(float(ends[number, symbol]) for ends in (found.differences, found.low, found.high)),
                        bool(found.are_real[number, symbol]),
                    )
                    for symbol in range(len(self.meanings))
                ]
        fields = [StructField(name, DoubleType()) for name in ("difference", "low", "high")]
        kind = dict(self.by)[over]
        more = [*fields, StructField("more_than_noise", BooleanType())]
        return values, self._schema((StructField(f"{over}_before", kind),), more)

    def sum_up(self) -> tuple[dict[str, Any], ...]:
        """Estimate how many texts had each subject over all groups, the most frequent first."""
        if self.response is None:
            return ()
        drawn = self.counts.sum(axis=0, keepdims=True)
        found = estimate_counts(drawn, self.response)
        return tuple(
            {
                "symbol": symbol,
                "keywords": self.meanings[symbol]["keywords"],
                "drawn": int(drawn[0, symbol]),
                "estimate": float(found.counts[0, symbol]),
                "low": float(found.low[0, symbol]),
                "high": float(found.high[0, symbol]),
            }
            for symbol in np.argsort(-found.counts[0], kind="stable").tolist()
        )

    def _describe(self, symbol: int) -> tuple[str, str]:
        return self.meanings[symbol]["keywords"], self.meanings[symbol]["passage"]

    def _schema(self, more: Sequence[StructField], figures: Sequence[StructField]) -> StructType:
        return StructType(
            [
                StructField("public_version", LongType()),
                *(StructField(name, kind) for name, kind in self.by),
                *more,
                *(StructField(name, IntegerType()) for name in ("text_column", "symbol")),
                *(StructField(name, StringType()) for name in ("keywords", "passage")),
                *figures,
            ]
        )
