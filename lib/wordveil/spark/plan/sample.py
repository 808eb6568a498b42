"""Reads a few records of the corpus as the job reads them, and counts the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wordveil.artifacts.bundle import Bundle
from wordveil.config.artifacts import FindBundle, find_bundle, find_ngrams
from wordveil.config.load import Config
from wordveil.errors import BundleError, ConfigError, Fault
from wordveil.evaluation.preview import (
    Sample,
    UnknownWord,
    WordPreview,
    default_words,
    inspect,
    preview_words,
    sort_words,
)
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import NO_PARAMS, open_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import ignore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A sample is held in the driver's memory; more records would hardly change its figures.
MAX_RECORDS = 100_000
_BATCH = 1024
_A_MILLION = 1_000_000


@dataclass(frozen=True)
class TableSample:
    """A sample and the table it comes from: ``rows`` in all, counted without reading any column but those of
    ``input.where``. ``token_price``: the largest loss of a token.
    """

    sample: Sample
    rows: int
    token_price: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        hours = {
            "core_hours": self.sample.core_hours(self.rows),
            "core_hours_a_million": self.sample.core_hours(_A_MILLION),
        }
        found = self.sample.suggested
        suggested = {**asdict(found), "epsilon_bound": found.n_max * self.token_price} if found else None
        return {**self.sample.to_dict(), "suggested": suggested, "table_rows": self.rows, **hours}


@dataclass(frozen=True)
class Wanted:
    """What a preview should show: ``rows`` of the corpus unless None, and ``words``; drawn with ``bundle``.
    ``unknown``: words that its vocabulary lacks.
    """

    bundle: Bundle
    rows: int | None
    words: list[str]
    unknown: list[UnknownWord]


@dataclass(frozen=True)
class Preview:
    """What a preview shows; empty where nothing was asked for."""

    sample: TableSample | None
    words: list[WordPreview]
    unknown: list[UnknownWord] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The parts that were asked for, as plain values."""
        sample = {"sample": self.sample.to_dict()} if self.sample else {}
        words = {"words": [word.to_dict() for word in self.words]} if self.words else {}
        return {
            **sample,
            **words,
            **({"unknown_words": [asdict(word) for word in self.unknown]} if self.unknown else {}),
        }


def check_preview(config: Config, rows: int | None, words: str | None, find: FindBundle | None = None) -> Wanted | None:
    """Check what to show before Spark starts; None if neither ``rows`` nor ``words`` (separated by commas) are given.
    ``find``: finds the bundle, where a command has other uses of it.

    Raises :class:`ConfigError`, and :class:`BundleError` if there is no bundle: a preview builds none.
    """
    if rows is not None and not 1 <= rows <= MAX_RECORDS:
        raise ConfigError("command line", [Fault("--sample", str(rows), f"allowed: 1 to {MAX_RECORDS:,} records.")])
    if rows is None and words is None:
        return None
    bundle = find() if find else find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: the store has no bundle, and a preview draws with one. Run "
            "`wordveil build` first."
        )
    if words is None:
        return Wanted(bundle, rows, default_words(bundle.vocabulary), [])
    return Wanted(bundle, rows, *sort_words(words.split(","), config.policy, bundle.vocabulary))


def make_preview(
    config: Config,
    wanted: Wanted | None,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None] = ignore,
    *,
    params: Mapping[str, str] = NO_PARAMS,
) -> Preview:
    """Read the sample and draw with throwaway keys; the configuration's key is not loaded. ``params``: those of
    ``input.where``.

    Raises a :class:`WordveilError`.
    """
    if wanted is None:
        return Preview(None, [])
    sample = (
        None
        if wanted.rows is None
        else sample_table(config, wanted.bundle, session, wanted.rows, progress, params=params)
    )
    previews = preview_words(wanted.bundle, wanted.words, config.mechanism.nominal_epsilon, progress=progress)
    return Preview(sample, previews, wanted.unknown)


def sample_table(
    config: Config,
    bundle: Bundle,
    session: Callable[[], SparkSession],
    rows: int,
    progress: Callable[[str], None] = ignore,
    *,
    params: Mapping[str, str] = NO_PARAMS,
) -> TableSample:
    """Read the first ``rows`` records of the corpus and say what the job would do to them.

    The records do not leave this process, and no key is loaded. Duplicate ids are those in the files that were read.
    Raises a :class:`WordveilError`.
    """
    source = open_input(session(), config.input, params)
    table = source.read()
    with job_errors("no sample was read"):
        progress("counting rows")
        number = table.count()
        progress(f"reading {min(rows, number):,} records")
        records = screen_input(source.read_first_files(rows), config.input).select(TEXT_COLUMN, REASON_COLUMN)
        # Collected with the limit last: elsewhere, and with toArrow, a limit shuffles the texts through executors'
        # disks.
        rows_read = records.limit(rows).collect()
    progress("drawing with a throwaway key")
    sample = inspect(_make_batches(rows_read), config.policy, bundle, find_ngrams(config))
    return TableSample(sample, number, bundle.guarantee.pure)


def _make_batches(rows: Sequence[tuple[str | None, str | None]]) -> Iterator[pa.RecordBatch]:
    """Make batches as small as the job's from rows of text and reason."""
    for start in range(0, len(rows), _BATCH):
        texts, reasons = zip(*rows[start : start + _BATCH], strict=True)
        arrays = [pa.array(texts, pa.string()), pa.array(reasons, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, names=[TEXT_COLUMN, REASON_COLUMN])
