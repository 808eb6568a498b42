"""Draws of public words on Spark's executors, for vocabularies that take a single machine too long.

A word is drawn there exactly as here (:mod:`wordveil.measures.calibration.drawing`), so that neither the number of
executors nor the division into tasks changes a count.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from wordveil.artifacts.bundle import Bundle, Recipe, open_bundle, write
from wordveil.measures.calibration.drawing import DrawCounter, WordCounts, count_block, split_words
from wordveil.measures.calibration.subjects import BuiltSubject
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.workers import require_workers
from wordveil.spark.sanitise.distribution import distribute
from wordveil.spark.sanitise.worker import BundlePlace, load_bundle

# Tasks of one job for each core: the driver holds the counts of one job at a time.
_TASKS = 4


@dataclass(frozen=True)
class CountWords:
    """What an executor does: it draws the words of a block with the bundle at ``location``."""

    location: BundlePlace
    identity: bytes
    runs: int

    def __call__(self, words: NDArray[np.int32]) -> WordCounts:
        """Return the counts of the block."""
        return count_block(load_bundle(self.location, self.identity).mechanism, words, self.runs)


@dataclass(frozen=True)
class ExecutorCounter:
    """Draws on the executors of a session (:class:`wordveil.measures.calibration.drawing.DrawCounter`), which is called
    once there are words to draw.

    ``built``: the mechanism, which reaches the executors as a temporary bundle. ``how``: how it does: ``auto``,
    ``path`` or ``archive``.
    """

    session: Callable[[], SparkSession]
    built: BuiltSubject
    how: str = "auto"

    def __call__(self, words: NDArray[np.int32], runs: int) -> Iterator[WordCounts]:
        """Count, block by block. Raises :class:`wordveil.errors.SparkJobError` where the job fails."""
        with tempfile.TemporaryDirectory(prefix="wordveil-calibrate-") as directory, job_errors():
            bundle = write_bundle(self.built, Path(directory))
            yield from self._count(bundle, split_words(words, runs), runs)

    def _count(self, bundle: Bundle, blocks: Sequence[NDArray[np.int32]], runs: int) -> Iterator[WordCounts]:
        spark = self.session()
        require_workers(spark)
        count = CountWords(distribute(spark, bundle, self.how), bundle.identity, runs)
        context = spark.sparkContext
        step = _TASKS * context.defaultParallelism
        for start in range(0, len(blocks), step):
            part = blocks[start : start + step]
            yield from context.parallelize(part, len(part)).map(count).collect()


def count_on_executors(session: Callable[[], SparkSession], how: str = "auto") -> Callable[[BuiltSubject], DrawCounter]:
    """Return what makes a counter of a mechanism; parameters as :class:`ExecutorCounter` has them."""
    return lambda built: ExecutorCounter(session, built, how)


def write_bundle(built: BuiltSubject, store: Path) -> Bundle:
    """Write a mechanism into a store as a bundle, and open it."""
    subject = built.subject
    settings = subject.settings.at_epsilon(built.epsilon).recipe()
    recipe = Recipe(subject.mechanism, settings, subject.padding, "calibration", subject.embedding.digest)
    return open_bundle(write(store, subject.embedding, built.artifact, recipe, {}))
