"""Evaluation of an output against its originals: authors, recovered words and remaining use. It needs no key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pyspark.sql import SparkSession

from wordveil.arrays import Int64
from wordveil.assembly.evaluations import EvaluationContext, load_evaluation
from wordveil.config.load import Config
from wordveil.crypto.streams import draw_words
from wordveil.errors import BundleError, InputError
from wordveil.evaluation.encoders import make_encoder
from wordveil.evaluation.figures import (
    Figures,
    Split,
    measure_attacks,
    measure_tasks,
    measure_texts,
    measure_words,
)
from wordveil.evaluation.pairs import Pairs
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.scores.documents import Documents
from wordveil.scores.evaluation import Evaluation, TextExample
from wordveil.spark.evaluate.pairs import read_pairs
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files, load_path
from wordveil.spark.platform.output import require_complete
from wordveil.spark.platform.progress import ignore
from wordveil.version import __version__

OUTCOME = "nothing was measured"
"""Outcome that an error of a Spark job states."""
_NO_AUTHORS = (
    "no author was named, so no attack on authors was measured. Name the authors' column in evaluation.author or "
    "input.author."
)
_NO_LABELS = "no label was named, so no task was measured. Name a column with topics or classes in evaluation.label."
_STATIC = (
    "a static attacker learns from original texts, an adaptive one from texts that it sanitised itself in the same "
    "way. Only the adaptive figures say something about protection, and other attackers may do better."
)


def evaluate_output(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    progress: Callable[[str], None] = ignore,
) -> Evaluation:
    """Measure a Parquet output against its input.

    ``config``: that of the run that wrote the output. ``params``: those of ``input.where``. Raises :class:`ConfigError`
    if the input lacks a column of ``evaluation``, :class:`BundleError` if there is no bundle or the output was drawn
    with another one, :class:`InputError` if the output is missing, incomplete or has no record of the input, and
    :class:`PlatformError` if a package is missing.
    """
    check_params(config.source.where, params)
    if config.output.shuffle:
        raise InputError(
            f"output.path = {config.output.path}: the rows of a shuffled table have no ids, so none can be laid beside "
            "its original. Write a table with ids from the same bundle elsewhere, and measure that."
        )
    context = load_evaluation(config)
    progress("starting Spark")
    spark = session()
    files = Files(spark, config.output.path)
    if not files.exists():
        raise InputError(
            f"output.path = {config.output.path}: there is no output to measure. Run `wordveil sanitise` first."
        )
    require_complete(files)
    with job_errors(OUTCOME):
        source = open_input(spark, config.source, params)
        progress("reading records")
        output = load_path(spark, spark.read.format("parquet"), config.output.path)
        pairs = read_pairs(source.read(), output, context, context.section.seed)
    facts = {"output": config.output.path, "input": config.source.name}
    if source.latest_version is not None:
        facts["input version"] = f"{source.latest_version}, which may be newer than what the output was made of"
    return measure_pairs(context, pairs, facts, progress)


def measure_pairs(
    context: EvaluationContext, pairs: Pairs, facts: Mapping[str, str], progress: Callable[[str], None] = ignore
) -> Evaluation:
    """Measure all that ``evaluation`` selects. ``facts``: the records' origin. Raises as :func:`evaluate_output`."""
    section = context.section
    check_pairs(context, pairs)
    figures = Figures(scores=measure_words(context.bundle))
    originals, released = pairs.sampled
    if context.author is None:
        figures.notes.append(_NO_AUTHORS)
    elif section.attackers:
        if attacks := attack_authors(context, pairs, section.seed, progress):
            figures.add(attacks)
        figures.notes.append(_STATIC if attacks else _too_few("author", section.min_texts, "released records"))
    if section.label is None:
        figures.notes.append(_NO_LABELS)
    elif section.tasks:
        parts = split_rows(pairs.labels, section.known_share, section.min_texts, section.seed)
        if parts is None:
            figures.notes.append(_too_few("label", section.min_texts, "records among those measured"))
        else:
            progress("training tasks")
            split = _take_parts(pairs, pairs.labels, parts)
            figures.add(measure_tasks(split, section.tasks, section.label, context.embedding, section.seed))
    progress("comparing texts")
    encoder = make_encoder(section.encoder, context.embedding)
    figures.scores += measure_texts(pairs, context.sanitiser, encoder, section.topics, section.seed)
    shown = zip(originals[: section.examples], released[: section.examples], strict=True)
    return Evaluation(
        title=f"Evaluation of {context.release}",
        facts={"release": context.release, **facts, **_describe(context, pairs)},
        scores=tuple(figures.scores),
        confusions=tuple(figures.confusions),
        examples=tuple(TextExample("release", original, released) for original, released in shown),
        notes=tuple(figures.notes),
        is_private=True,
        scope=_say_scope(context, pairs),
    )


def check_pairs(context: EvaluationContext, pairs: Pairs) -> None:
    """Raise :class:`InputError` if there is no record, and :class:`BundleError` for texts of another bundle or policy.

    An adaptive attacker would draw other texts than the release has.
    """
    if not len(pairs):
        raise InputError(
            f"output.path = {context.output}: has no released record that the input {context.source.name} has. "
            "Use the configuration of the run that wrote it, and the same --param."
        )
    if pairs.bundles != {context.bundle.fingerprint}:
        drawn = ", ".join(sorted(map(str, pairs.bundles)))
        raise BundleError(
            f"output.path = {context.output}: was drawn with the bundle {drawn}, and the configuration's is "
            f"{context.bundle.fingerprint}. Use the configuration of the run that wrote it."
        )
    if pairs.policies != {context.policy}:
        raise BundleError(
            f"output.path = {context.output}: was written under another text policy than the configuration's "
            "section text. Use the configuration of the run that wrote it."
        )


def attack_authors(
    context: EvaluationContext,
    pairs: Pairs,
    seed: int,
    progress: Callable[[str], None] = ignore,
    *,
    drawing: int | None = None,
) -> Figures | None:
    """Attack the authors of records. Return None if fewer than two authors have enough of them.

    ``seed``: selects the attacker's known records. ``drawing``: seed of the attacker's key; None: a fresh key.
    """
    section = context.section
    parts = split_rows(pairs.authors, section.known_share, section.min_texts, seed)
    if parts is None:
        return None
    progress("drawing what the attacker knows with a throwaway key")
    redrawn = context.sanitiser.sanitise_records(pairs.records.take(parts[0]), drawing)
    progress("attacking authors")
    return measure_attacks(
        _take_parts(pairs, pairs.authors, parts), redrawn, section.attackers, context.embedding, seed
    )


def split_rows(labels: Sequence[str | None], share: float, least: int, seed: int) -> tuple[Int64, Int64] | None:
    """Split the records of each label at random: a ``share`` of them, but neither none nor all, and the others.

    Records without a label, and labels with fewer than ``least`` (2 or more) records, are in neither part. Returns the
    rows of both parts, ascending, or None if fewer than two labels have enough records.
    """
    names, numbers, counts = np.unique(
        np.array([label or "" for label in labels], np.str_), return_inverse=True, return_counts=True
    )
    is_used = (counts >= least) & (names != "")
    if is_used.sum() < 2:
        return None
    order = np.lexsort((draw_words(seed, b"split", len(numbers)), numbers))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = np.clip(np.rint(share * counts), 1, np.maximum(counts - 1, 1))
    is_known = rank < np.repeat(wanted, counts)
    used = np.repeat(is_used, counts)
    return np.sort(order[used & is_known]).astype(np.int64), np.sort(order[used & ~is_known]).astype(np.int64)


def _take_parts(pairs: Pairs, labels: Sequence[str | None], parts: tuple[Int64, Int64]) -> Split:
    originals, released = pairs.originals, pairs.released
    names = tuple(sorted({labels[row] or "" for row in parts[0].tolist()}))
    documents = Documents.of(originals, [label or "" for label in labels], names)
    known, others = (documents.take(part) for part in parts)
    texts = [[released[row] for row in part.tolist()] for part in parts]
    return Split(known, others, *texts)


def _too_few(what: str, least: int, counted: str) -> str:
    return (
        f"fewer than two {what}s have {least} {counted}, so nothing was measured of them. Raise evaluation.records, or "
        "lower evaluation.min_texts."
    )


def _say_scope(context: EvaluationContext, pairs: Pairs) -> tuple[str, ...]:
    """Describe what was read, in sentences: readers of a figure need to see how much of the release it covers."""
    sentences = [f"Measured on {len(pairs.sample):,} of {pairs.total:,} records."]
    if context.author is not None and context.section.attackers:
        counts, least = pairs.counts, context.section.min_texts
        records = len(pairs.authors) - pairs.authors.count(None)
        of = f"of {counts.enough:,} who have {least} records or more, and {counts.in_all:,} in all"
        sentences.append(f"Attacks on authors were measured on {records:,} records of {counts.chosen:,} authors, {of}.")
    return tuple(sentences)


def _describe(context: EvaluationContext, pairs: Pairs) -> dict[str, str]:
    section = context.section
    facts = {
        "mechanism": f"{context.mechanism}, epsilon {context.bundle.guarantee.epsilon:g}",
        "bundle": context.bundle.fingerprint,
        "records measured": f"{len(pairs.sample):,} of {pairs.total:,}",
        "seed": str(section.seed),
        "wordveil": __version__,
    }
    if context.author is not None:
        counts = pairs.counts
        known = f"the attacker knows {section.known_share:.0%} of each"
        facts["authors"] = f"{counts.chosen:,} of {counts.in_all:,} by {context.author}; {known}"
    if section.label is not None:
        labels = len({label for label in pairs.labels if label is not None})
        facts["labels"] = f"{labels:,} by {section.label}; {section.known_share:.0%} of each are trained on"
    return facts
