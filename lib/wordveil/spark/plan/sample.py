"""Sample of random records of the corpus, read as the job reads them, with counts of the rest.

Each record has the same chance, few files are read, and these are spread over the table. The records of a table form a
line, file after file in the order of their names. A systematic sample of this line with a random start has windows at
equal distances. Each window fixes the number of records taken from the files that it covers, and chance selects them. A
file of c records out of T, of which the windows of N records cover x, gives x of its c, and x is N c / T on average
over the start: so each record has the chance N / T, however files are cut (Särndal, Swensson and Wretman, *Model
Assisted Survey Sampling*, 1992, sections 3.4 and 4.3).

Records of a file are sampled together. If files differ, figures vary more than those of N records drawn singly, at
worst as much as if there were one record for each window.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.bundles import FindBundle, find_bundle, find_ngrams
from wordveil.assembly.field import find_field_frequencies
from wordveil.config.load import Config
from wordveil.config.mechanisms import MechanismSection
from wordveil.crypto.streams import draw_words
from wordveil.errors import BundleError, usage_error
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.input.parameters import NO_PARAMS
from wordveil.input.source import Source
from wordveil.measures.preview import (
    ClusterPreview,
    Sample,
    UnknownWord,
    WordPreview,
    default_words,
    inspect,
    preview_clusters,
    preview_words,
    sort_words,
    writes_representatives,
)
from wordveil.records.schema import REASON_COLUMN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import FILE_COLUMN, InputTable, open_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.versions import from_arrow

MAX_WINDOWS = 32
"""Largest number of windows of a sample."""
MAX_SEED = 2**63 - 1


def spread_records(counts: Mapping[str, int], rows: int, seed: int) -> dict[str, int]:
    """Compute the number of records to take from each file, without files of which none is taken.

    ``counts``: the number of records of each file. ``rows``: the number to take of all, or all if the table has no
    more. ``seed``: decides where windows begin; 0 to :data:`MAX_SEED`.
    """
    names = sorted(counts)
    ends = np.cumsum([0, *(counts[name] for name in names)])
    total = int(ends[-1])
    if total <= rows:
        taken = np.diff(ends)
    elif total < 2 * rows:
        # There is hardly room between windows, and nearly all is read: records are drawn singly.
        chosen = np.sort(np.argsort(draw_words(seed, b"records", total), kind="stable")[:rows])
        taken = np.diff(np.searchsorted(chosen, ends))
    else:
        windows = min(MAX_WINDOWS, rows)
        start = int(draw_words(seed, b"start", 1)[0]) * total >> 64
        # As whole numbers: a window is at most as long as the distance to the next, so none overlap.
        first = [start + number * total // windows for number in range(windows)]
        length = [(number + 1) * rows // windows - number * rows // windows for number in range(windows)]
        taken = np.zeros(len(names), np.int64)
        for low, size in zip(first, length, strict=True):
            for shift in (0, total):  # the line is a circle
                covered = np.clip(ends, low - shift, low - shift + size)
                taken += np.diff(covered)
    return {name: number for name, number in zip(names, taken.tolist(), strict=True) if number}


def draw_rate(number: int, count: int) -> float:
    """Compute each record's chance so that fewer than ``number`` of ``count`` come at most once in a million times."""
    return min(1.0, (number + 5 * math.sqrt(number) + 12) / count)


def choose_records(files: Sequence[str], wanted: Mapping[str, int], seed: int) -> list[int]:
    """Choose by ``seed`` the ascending positions of records to keep: the ``wanted`` number of each of ``files``."""
    left = dict(wanted)
    kept = []
    for position in np.argsort(draw_words(seed, b"kept", len(files)), kind="stable").tolist():
        if left[files[position]] > 0:
            left[files[position]] -= 1
            kept.append(position)
    return sorted(kept)


# A sample is held in the driver's memory; more records would hardly change its figures.
MAX_RECORDS = 100_000
_BATCH = 1024
_A_MILLION = 1_000_000
_RATE, _DRAWN = "__wordveil_rate", "__wordveil_drawn"


@dataclass(frozen=True)
class TableSample:
    """Sample and the table it comes from.

    ``rows``: those of the table, counted without reading columns outside ``input.where``, in ``files``, of which
    ``files_read`` were read. ``token_price``: the largest loss of a token, for each record that is ever drawn if the
    private corpus trained the mechanism's weights. ``seed``: reproduces the sample.
    """

    sample: Sample
    rows: int
    token_price: float
    seed: int = 0
    files: int = 1
    files_read: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        length = self.sample.suggested
        return {
            **self.sample.to_dict(),
            "suggested": {**asdict(length), "epsilon_bound": length.n_max * self.token_price} if length else None,
            "table_rows": self.rows,
            "seed": self.seed,
            "files": self.files,
            "files_read": self.files_read,
            "core_hours": self.sample.core_hours(self.rows),
            "core_hours_a_million": self.sample.core_hours(_A_MILLION),
        }


@dataclass(frozen=True)
class PreviewRequest:
    """Request for a preview: ``rows`` of the input ``source`` unless None, and ``words``, by ``sanitiser``.

    ``unknown``: words that the vocabulary lacks. ``seed``: selects rows; None: a new seed.
    """

    sanitiser: BundleSanitiser
    source: Source
    mechanism: MechanismSection
    rows: int | None
    words: list[str]
    unknown: list[UnknownWord]
    seed: int | None


@dataclass(frozen=True)
class Preview:
    """Preview of rows and words, if requested. ``by_cluster``: only one word of each cluster is ever written."""

    sample: TableSample | None
    words: list[WordPreview]
    unknown: list[UnknownWord] = field(default_factory=list)
    by_cluster: bool = False
    clusters: list[ClusterPreview] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the requested parts as plain values."""
        parts = {
            "sample": self.sample and self.sample.to_dict(),
            "words": [word.to_dict() for word in self.words],
            "clusters": [cluster.to_dict() for cluster in self.clusters],
            "unknown_words": [asdict(word) for word in self.unknown],
        }
        return {name: part for name, part in parts.items() if part}


def check_preview(
    config: Config, rows: int | None, words: str | None, find: FindBundle | None = None, *, seed: int | None = None
) -> PreviewRequest | None:
    """Check what to show before Spark starts; None without ``rows`` and ``words``, separated by commas."""
    if rows is not None and not 1 <= rows <= MAX_RECORDS:
        raise usage_error("--sample", str(rows), f"allowed: 1 to {MAX_RECORDS:,} records.")
    if seed is not None:
        if rows is None:
            raise usage_error("--seed", str(seed), "chooses a sample. Add --sample N.")
        if not 0 <= seed <= MAX_SEED:
            raise usage_error("--seed", str(seed), f"allowed: 0 to {MAX_SEED}.")
    if rows is None and words is None:
        return None
    bundle = find() if find else find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: the store has no bundle, and a preview draws with one. Run "
            "`wordveil build` first."
        )
    draws_words = not (bundle.mechanism.reads_context or bundle.mechanism.draws_texts)
    if not draws_words and words is not None:
        problem = (
            f"{config.mechanism.name} reads a text as a whole, so a word alone says nothing of it. "
            'Show a public sentence: --text "...".'
        )
        raise usage_error("--words", words[:80], problem)
    shown: list[str] = []
    unknown: list[UnknownWord] = []
    if words is not None:
        shown, unknown = sort_words(words.split(","), config.policy, bundle.vocabulary)
    elif draws_words:
        frequencies = find_field_frequencies(config.mechanism, bundle.vocabulary.array)
        shown = default_words(bundle.vocabulary, frequencies, config.policy.language)
    ngrams = find_ngrams(config.text) if rows is not None else None  # words alone are drawn without it
    sanitiser = BundleSanitiser(bundle, config.policy, ngrams, config.text_columns)
    return PreviewRequest(sanitiser, config.source, config.mechanism, rows, shown, unknown, seed)


def make_preview(
    request: PreviewRequest | None,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None] = ignore,
    *,
    params: Mapping[str, str] = NO_PARAMS,
) -> Preview:
    """Read the sample and draw with throwaway keys; the configuration's key is not loaded."""
    if request is None:
        return Preview(None, [])
    bundle, words, sample = request.sanitiser.bundle, request.words, None
    if request.rows is not None:
        sample = _sample_table(request, request.rows, open_input(session(), request.source, params), progress)
    previews = preview_words(bundle, words, request.mechanism.nominal_epsilon, progress=progress)
    by_cluster = writes_representatives(bundle)
    return Preview(sample, previews, request.unknown, by_cluster, preview_clusters(bundle, words))


def _sample_table(
    request: PreviewRequest, rows: int, source: InputTable, progress: Callable[[str], None]
) -> TableSample:
    """Read ``rows`` random records of the corpus and simulate the job on them, in this process, without a key."""
    seed = secrets.randbelow(10**9) if request.seed is None else request.seed  # easy to type
    sanitiser = request.sanitiser
    with job_errors("no sample was read"):
        progress("counting rows")
        counts = {row[0]: row[1] for row in source.read_with_files().groupBy(FILE_COLUMN).count().collect()}
        number = sum(counts.values())
        progress(f"reading {min(rows, number):,} records")
        taken = spread_records(counts, rows, seed)
        names = (*sanitiser.columns.inputs, REASON_COLUMN)
        records = _read_records(source, taken, counts, seed, names)
    progress("drawing with a throwaway key")
    batches = pa.Table.from_pylist(records, pa.schema([(name, pa.string()) for name in names])).to_batches(_BATCH)
    sample = inspect(batches, sanitiser.policy, sanitiser.bundle, sanitiser.ngrams, sanitiser.columns)
    price = sanitiser.bundle.guarantee.pure * (request.mechanism.settings.record_limit or 1)
    return TableSample(sample, number, price, seed, len(counts), len(taken))


def _read_records(
    source: InputTable, taken: Mapping[str, int], counts: Mapping[str, int], seed: int, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Read texts and reason, the columns ``names``, of random records: of each file, ``taken`` of its ``counts``.

    The executors pass on each record with a chance at which too few hardly ever come out, and surplus records are
    dropped here: choosing an exact number there would shuffle the texts through their disks, and so would a limit.
    """
    if not taken:
        return []
    rates = {FILE_COLUMN: [*taken], _RATE: [draw_rate(number, counts[name]) for name, number in taken.items()]}
    table = source.read_with_files(taken)
    table = table.join(F.broadcast(from_arrow(source.spark, pa.table(rates))), FILE_COLUMN)
    table = table.withColumn(_DRAWN, F.rand(seed) < F.col(_RATE))
    records = screen_input(table, source.source, internal=[FILE_COLUMN, _DRAWN]).where(_DRAWN)
    rows = records.select(*names, FILE_COLUMN).collect()
    return [rows[index].asDict() for index in choose_records([row[-1] for row in rows], taken, seed)]
