"""Attribution among many authors on Spark: the method of :mod:`wordveil_research.methods.koppel`, with its results.

The authors are spread over partitions, each author in one. A partition finds its best author for each snippet and
round, and Spark keeps the best of all partitions. Cosines are computed from whole numbers, so that they do not depend
on which authors share a partition: the answers are exactly those of one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array, vstack

from wordveil.arrays import Int64
from wordveil.errors import InputError
from wordveil.scores.documents import UNKNOWN
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import job_errors
from wordveil_research.methods.koppel import Koppel, Profiles, Scored, Subspace
from wordveil_research.methods.space_free import FeatureCounts

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

_AUTHOR, _TEXT = "author", "text"
_FEATURES = pa.schema([("code", pa.int64()), ("number", pa.int64()), ("texts", pa.int64())])
_WINNERS = pa.schema([("snippet", pa.int64()), ("turn", pa.int64()), ("cosine", pa.float64()), ("place", pa.int64())])
_BLOCK = 1_000
"""Snippets whose winners are one batch."""


@dataclass(frozen=True)
class Attribution:
    """Who wrote each snippet.

    Attributes
    ----------
    names
        the authors, in alphabetical order.
    scored
        the author who wins most rounds, whatever the share, and that share.
    labels
        int64 ``(snippets,)``: the same author where the share exceeds the threshold, else
        :data:`wordveil.scores.documents.UNKNOWN`.
    """

    names: tuple[str, ...]
    scored: Scored
    labels: Int64


@dataclass(frozen=True)
class CountFeatures:
    """The body of ``mapInArrow`` that counts the features of texts, a batch at a time."""

    lower: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the features of a column ``text``."""
        for batch in batches:
            found = FeatureCounts.of(batch.column(_TEXT).to_pylist(), lower=self.lower)
            columns = (found.codes, found.counts, found.texts)
            yield pa.RecordBatch.from_arrays([pa.array(part) for part in columns], schema=_FEATURES)


@dataclass(frozen=True)
class FindWinners:
    """The body of ``mapInArrow`` that finds the best author of a partition for each snippet and round.

    ``shared``: the features, the counts of the snippets, and the names of all authors.
    """

    shared: Broadcast[tuple[Subspace, csr_array, tuple[str, ...]]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read columns ``author`` and ``text``, and return rows where a snippet shares a feature with an author."""
        space, snippets, names = self.shared.value
        labels, counts = [], []
        for batch in batches:
            labels.append(pc.index_in(batch.column(_AUTHOR), pa.array(names, pa.string())).to_numpy())
            counts.append(space.count(batch.column(_TEXT).to_pylist()))
        if not labels:
            return
        table = csr_array(vstack(counts, format="csr"))
        profiles = Profiles.of(space, table, np.concatenate(labels).astype(np.int64))
        for start in range(0, snippets.shape[0], _BLOCK):
            winners = profiles.find_winners(snippets[start : start + _BLOCK])
            rows, turns = np.nonzero(winners.labels != UNKNOWN)
            # Spark keeps the largest cosine and then the largest place, which is the lowest number.
            columns = (rows + start, turns, winners.cosines[rows, turns], -winners.labels[rows, turns])
            yield pa.RecordBatch.from_arrays([pa.array(part) for part in columns], schema=_WINNERS)


def attribute(
    known: DataFrame,
    author: str,
    text: str,
    snippets: Sequence[str],
    settings: Koppel,
    seed: int,
    partitions: int | None = None,
) -> Attribution:
    """Name the author of each snippet, among the authors of a table.

    The table is read four times. Keep it in memory or on disk where reading it is expensive.

    Parameters
    ----------
    known
        texts of known authors. Rows without author or text are left out.
    author, text
        its columns, of strings.
    snippets
        texts, which reach the executors as counts of features.
    settings
        the method.
    seed
        of the rounds. The same seed gives what :meth:`wordveil_research.methods.koppel.Koppel.fit` gives on one
        machine.
    partitions
        over how many partitions authors are spread; None for Spark's own number.

    Raises
    ------
    InputError
        where fewer than two authors have texts.
    SparkJobError
        where a task fails.
    """
    from pyspark.sql import functions as F  # noqa: N812

    context = known.sparkSession.sparkContext
    texts = known.select(column(author).alias(_AUTHOR), column(text).alias(_TEXT)).dropna()
    with job_errors("no author was named"):
        names = tuple(sorted(row[0] for row in texts.select(_AUTHOR).distinct().toLocalIterator()))
        if len(names) < 2:
            raise InputError(f"{author}: has {len(names)} authors with texts. Name a column of at least two authors.")
        space = settings.make_subspace(_choose_features(texts, settings), texts.count(), seed)
        shared = context.broadcast((space, space.count(snippets), names))
        spread = texts.repartition(partitions, _AUTHOR) if partitions else texts.repartition(_AUTHOR)
        body = FindWinners(shared)

        def wordveil_koppel(batches: Any) -> Any:
            return body(batches)

        found = spread.mapInArrow(wordveil_koppel, _to_spark(_WINNERS))
        best = found.groupBy("snippet", "turn").agg(F.max(F.struct("cosine", "place")).alias("best"))
        wins = best.groupBy("snippet", "best.place").agg(F.count("*").alias("wins")).toArrow()
        shared.destroy()
    scored = _choose_authors(wins, len(snippets), settings.iterations)
    return Attribution(names, scored, np.where(scored.shares > settings.threshold, scored.labels, UNKNOWN))


def _choose_features(texts: DataFrame, settings: Koppel) -> FeatureCounts:
    from pyspark.sql import functions as F  # noqa: N812

    body = CountFeatures(settings.lower)

    def wordveil_features(batches: Any) -> Any:
        return body(batches)

    counted = texts.select(_TEXT).mapInArrow(wordveil_features, _to_spark(_FEATURES)).groupBy("code")
    summed = counted.agg(F.sum("number").alias("number"), F.sum("texts").alias("texts"))
    kept = summed.orderBy(F.desc("number"), "code").limit(settings.features).toArrow().sort_by("code")
    return FeatureCounts(*(kept[name].to_numpy() for name in _FEATURES.names))


def _to_spark(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _choose_authors(table: pa.Table, count: int, rounds: int) -> Scored:
    """Choose the author with most wins of each snippet; ties go to the lower number."""
    snippets, places, wins = (table[name].to_numpy() for name in ("snippet", "place", "wins"))
    labels, shares = np.full(count, UNKNOWN, np.int64), np.zeros(count)
    order = np.lexsort((-places, -wins, snippets))
    seen, first = np.unique(snippets[order], return_index=True)
    labels[seen], shares[seen] = -places[order][first], wins[order][first] / rounds
    return Scored(labels, shares)
