"""Calibration of a configuration: the meaning of epsilons for its public vocabulary. It reads no corpus and no key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from wordveil.assembly.bundles import open_parts
from wordveil.assembly.calibration_arguments import Request
from wordveil.assembly.remote import fetch
from wordveil.config.load import Config, load_config
from wordveil.config.mechanisms import HYPERNYMS
from wordveil.embeddings.training.hypernyms import read_pairs
from wordveil.errors import usage_error
from wordveil.measures.calibration.figures import Calibration, FoundEpsilon
from wordveil.measures.calibration.hierarchy import WordHierarchy
from wordveil.measures.calibration.meaning import WordPlan, measure_meaning
from wordveil.measures.calibration.subjects import Subject
from wordveil.measures.calibration.summaries import K_NOTE, NO_K_NOTE
from wordveil.measures.calibration.targets import UnreachableError, find_target, match
from wordveil.neighbours.blocks import BuildContext
from wordveil.version import __version__

VOCABULARY_NOTE = "The two mechanisms have different vocabularies: the figures that are equal are of different words."
_EXACT_NOTE = "The mechanism knows its probabilities: its figures are computed, for all words of the vocabulary."
_DRAWN_NOTE = "The mechanism draws noise: its figures are counts of draws, and those of a guesser are lower bounds."


def run_calibration(request: Request, config: Config, work: BuildContext) -> Calibration:
    """Find the epsilons that a checked request asks for, and measure the meaning of these and of its own, rising.

    ``config`` is what :meth:`Request.load` read.

    Raises :class:`wordveil.errors.ConfigError` for a fault of the configuration to match, and where no epsilon gives a
    target; :class:`wordveil.errors.BundleError` where a mechanism cannot be built, or is not one of single words; and
    :class:`wordveil.errors.EmbeddingError` or :class:`wordveil.errors.PublicFileError` where public data cannot be
    read.
    """
    other = None if request.match is None else load_config(request.match)
    with open_subject(config, work) as (subject, fitted):
        answers, notes = list(_find_targets(subject, request, work)), list(fitted)
        if other is not None:
            equal, is_same = _match(subject, other, request, work)
            answers.append(equal)
            notes.extend([] if is_same else [VOCABULARY_NOTE])
        hierarchy = _read_hierarchy(config, subject) if request.epsilons or answers else None
        epsilons = sorted({*request.epsilons, *(answer.epsilon for answer in answers)})
        meanings = []
        for number, epsilon in enumerate(epsilons):
            work.progress(f"measuring epsilon {epsilon:g}")
            work.steps(number, len(epsilons))
            meanings.append(measure_meaning(subject.build(epsilon), request.plan, hierarchy))
    is_exact = all(figure.is_exact for meaning in meanings for figure in meaning.words)
    return Calibration(
        mechanism=subject.mechanism,
        facts=_list_facts(config, subject, request.plan, is_exact=is_exact),
        meanings=tuple(meanings),
        found=tuple(answers),
        notes=(*notes, _EXACT_NOTE if is_exact else _DRAWN_NOTE, K_NOTE if hierarchy else NO_K_NOTE),
    )


def _read_hierarchy(config: Config, subject: Subject) -> WordHierarchy | None:
    """Read the pairs that the embedding was trained from, or those of the package. Return None if no pair has both
    words in the embedding.
    """
    section, words = config.mechanism, subject.embedding.words
    if section.embedding_format == HYPERNYMS:
        pairs = fetch("mechanism.embedding", section.embedding)
        found = WordHierarchy.of(words, read_pairs(Path(pairs), section.training.settings))
    else:
        found = WordHierarchy.shipped(words)
    return found if found.known.any() else None


def _find_targets(subject: Subject, request: Request, work: BuildContext) -> Iterator[FoundEpsilon]:
    for target in request.targets:
        work.progress(f"looking for {target}")
        with _reaching("--target", str(target)):
            yield find_target(subject, target.name, target.value)


def _match(subject: Subject, config: Config, request: Request, work: BuildContext) -> tuple[FoundEpsilon, bool]:
    """Find the epsilon at which a mechanism equals another configuration's, and whether both have the same words."""
    work.progress(f"matching {config.mechanism.name}")
    with open_subject(config, work) as (other, _), _reaching("--match", str(request.match)):
        built = other.build(config.mechanism.nominal_epsilon)
        return match(subject, built, request.by), other.embedding.words.equals(subject.embedding.words)


@contextmanager
def _reaching(option: str, value: str) -> Iterator[None]:
    """Turn a figure that no epsilon gives into a fault of the option that asks for it."""
    try:
        yield
    except UnreachableError as error:
        raise usage_error(option, value, str(error)) from None


@contextmanager
def open_subject(config: Config, work: BuildContext) -> Iterator[tuple[Subject, tuple[str, ...]]]:
    """Open the mechanism of a configuration with its epsilon free, and remarks on how its public files fit.

    Raises as :func:`wordveil.assembly.bundles.open_parts`, and :class:`BundleError` if its words alone describe no
    text.
    """
    section = config.mechanism
    with open_parts(config, work) as parts:
        padding = config.policy.pads
        # A bar of each build would hide that of the epsilons.
        quiet = replace(parts.work, progress=lambda _: None, steps=lambda _done, _all: None)
        yield (
            Subject(section.name, section.settings, parts.embedding, parts.inputs, padding=padding, work=quiet),
            parts.notes,
        )


def _list_facts(config: Config, subject: Subject, plan: WordPlan, *, is_exact: bool) -> Mapping[str, str]:
    size = subject.embedding.size
    settings = {name: value for name, value in config.mechanism.recipe.items() if name != "epsilon"}
    measured = f"{size if is_exact else min(plan.words, size):,} of {size:,}"
    return {
        "mechanism": subject.mechanism,
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items() if value not in (None, []))
        or "none",
        "embedding": config.mechanism.names["embedding"],
        "dimension": f"{subject.embedding.dimension:,}",
        "words measured": measured,
        "draws of a word": f"{plan.runs:,}",
        "threshold of K_w and inputs": f"{plan.threshold:g}",
        "wordveil": __version__,
    }
