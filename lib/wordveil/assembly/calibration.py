"""Calibration of a configuration: the meaning of epsilons for its public vocabulary. It reads no corpus and no key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool
from wordveil.assembly.bundles import open_parts
from wordveil.assembly.field import find_field_fit
from wordveil.assembly.passages import is_text, list_names, read_strings
from wordveil.assembly.remote import fetch
from wordveil.config.checks import find_place_faults
from wordveil.config.load import Config, load_config
from wordveil.config.mechanisms import HYPERNYMS, MechanismSection
from wordveil.config.yaml_file import read_yaml
from wordveil.embeddings.training.hypernyms import read_pairs
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError, ConfigError, Fault, PublicFileError, usage_error
from wordveil.evaluation.text_meaning import TextMeaning, judge_subjects, measure_text_meaning
from wordveil.input.locations import make_absolute
from wordveil.measures.calibration.figures import K_NOTE, NO_K_NOTE, Calibration, FoundEpsilon
from wordveil.measures.calibration.meaning import THRESHOLD, WORDS, Subject, WordPlan, measure_meaning
from wordveil.measures.calibration.statistics import RUNS, WordHierarchy
from wordveil.measures.calibration.targets import MATCHES, UnreachableError, check_target, find_target, match
from wordveil.measures.recovery import load_built, require_law
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.scores.documents import Documents
from wordveil.text.choices import DrawnUnit
from wordveil.text.codec import Codec
from wordveil.version import __version__

KEY = "mechanism.epsilon"
# Fills in a missing epsilon while one is searched for. The search does not depend on it.
_ANY = 1.0


@dataclass(frozen=True)
class Request:
    """Request for a calibration: the options of the command line by name, as they were typed.

    ``words``, ``runs`` and ``threshold`` are those of :class:`wordveil.measures.calibration.meaning.WordPlan`.
    ``labelled``: a file of public labelled texts.
    """

    config: Path
    overrides: Sequence[str] = ()
    epsilon: str | None = None
    target: Sequence[str] = ()
    match: Path | None = None
    by: str = MATCHES[0]
    words: int = WORDS
    runs: int = RUNS
    threshold: float = THRESHOLD
    labelled: Path | None = None

    def check(self) -> None:
        """Raise :class:`ConfigError` with every fault of the command line."""
        if faults := [*self._find_faults()]:
            raise ConfigError("command line", faults)

    def _find_faults(self) -> Iterator[Fault]:
        for part in [] if self.epsilon is None else self.epsilon.split(","):
            value = _read_number(part)
            if value is None or not 0 < value < math.inf:
                yield Fault("--epsilon", part.strip()[:80], "is no number above 0. Write e.g. --epsilon 1,2,5,10,20.")
        for text in self.target:
            yield from _find_target_faults(text)
        if self.epsilon is None and not self.target and self.match is None:
            problem = "is required, or --target or --match: there is no default. Write e.g. --epsilon 1,2,5,10,20."
            yield Fault("--epsilon", "", problem)
        if self.by not in MATCHES:
            yield Fault("--by", self.by[:80], f"should be one of {', '.join(MATCHES)}.")
        if not 0 <= self.threshold < 1:
            yield Fault("--threshold", f"{self.threshold:g}", "should be a probability from 0 to less than 1.")

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Epsilons of a checked request, rising and each once."""
        return () if self.epsilon is None else tuple(sorted({float(part) for part in self.epsilon.split(",")}))

    @property
    def targets(self) -> list[tuple[str, float]]:
        """Figures of a checked request that an epsilon should give, by name
        (:data:`wordveil.measures.calibration.targets.TARGETS`).
        """
        return [(name.strip(), float(value)) for name, _, value in (text.partition("=") for text in self.target)]

    @property
    def plan(self) -> WordPlan:
        """Plan for measuring words of a checked request."""
        return WordPlan(self.words, self.runs, self.threshold)

    def load(self) -> Config:
        """Read the configuration at the first epsilon of the request. It needs no ``mechanism.epsilon`` of its own.

        Raises :class:`ConfigError` with every fault of the file, for an epsilon that the mechanism cannot have, and for
        a mechanism without one.
        """
        section = read_yaml(self.config).get("mechanism")
        written = section if isinstance(section, dict) else {}
        kind = MECHANISMS.get(str(written.get("name")))
        if kind is not None and not kind.settings_type.has_epsilon():
            problem = "has no epsilon to choose. Name another mechanism."
            raise ConfigError(str(self.config), [Fault("mechanism.name", kind.name, problem)])
        has_own = written.get("epsilon") is not None
        tried = self.epsilons or (() if has_own else (_ANY,))
        configs = [load_config(self.config, [*self.overrides, f"{KEY}={value!r}"]) for value in tried]
        return configs[0] if configs else load_config(self.config, self.overrides)


def _find_target_faults(text: str) -> Iterator[Fault]:
    name, _, number = (part.strip() for part in text.partition("="))
    try:
        check_target(name, math.nan if (value := _read_number(number)) is None else value)
    except ValueError as error:
        yield Fault("--target", text[:80], f"should be NAME=VALUE, such as share_kept=0.3. {error}")


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


VOCABULARY_NOTE = "The two mechanisms have different vocabularies: the figures that are equal are of different words."
_EXACT_NOTE = "The mechanism knows its probabilities: its figures are computed, for all words of the vocabulary."
_DRAWN_NOTE = "The mechanism draws noise: its figures are counts of draws, and those of an attacker are lower bounds."


def run_calibration(request: Request, config: Config, work: BuildContext) -> Calibration:
    """Find the epsilons of a checked request, those that reach its targets included, and measure their meaning.

    ``config``: from :meth:`Request.load`. Raises :class:`wordveil.errors.ConfigError` for a fault of the configuration
    to match, and if no epsilon gives a target; :class:`wordveil.errors.BundleError` if a mechanism cannot be built, or
    is not one of single words; and :class:`wordveil.errors.EmbeddingError` or :class:`wordveil.errors.PublicFileError`
    if public data cannot be read.
    """
    other = None if request.match is None else load_config(request.match)
    with open_subject(config, work) as (subject, fitted):
        answers, notes = list(_find_targets(subject, request, work)), list(fitted)
        if other is not None:
            equal, is_same = _match(subject, other, request, work)
            answers.append(equal)
            notes.extend([] if is_same else [VOCABULARY_NOTE])
        hierarchy = _read_hierarchy(config.mechanism, subject) if request.epsilons or answers else None
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


def _read_hierarchy(section: MechanismSection, subject: Subject) -> WordHierarchy | None:
    """Read the pairs that the embedding was trained from, or the package's, or return None if it has no pair."""
    words = subject.embedding.words
    if section.embedding_format == HYPERNYMS:
        pairs = fetch("mechanism.embedding", section.embedding)
        found = WordHierarchy.of(words, read_pairs(Path(pairs), section.training_settings))
    else:
        found = WordHierarchy.shipped(words)
    return found if found.known.any() else None


def _find_targets(subject: Subject, request: Request, work: BuildContext) -> Iterator[FoundEpsilon]:
    for name, value in request.targets:
        work.progress(f"looking for {name}={value:g}")
        with _reaching("--target", f"{name}={value:g}"):
            yield find_target(subject, name, value)


def _match(subject: Subject, config: Config, request: Request, work: BuildContext) -> tuple[FoundEpsilon, bool]:
    """Find the epsilon at which a mechanism equals another configuration's, and whether both have the same words."""
    work.progress(f"matching {config.mechanism.name}")
    with open_subject(config, work) as (other, _), _reaching("--match", str(request.match)):
        built = other.build(config.mechanism.nominal_epsilon)
        return match(subject, built, request.by), other.embedding.words.equals(subject.embedding.words)


@contextmanager
def _reaching(option: str, value: str) -> Iterator[None]:
    try:
        yield
    except UnreachableError as error:
        raise usage_error(option, value, str(error)) from None


@contextmanager
def open_subject(config: Config, work: BuildContext) -> Iterator[tuple[Subject, tuple[str, ...]]]:
    """Open the mechanism of a configuration with its epsilon free, and remarks on how its public files fit.

    Raises as :func:`open_parts`, and :class:`BundleError` if its words alone describe no text.
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


_LABELLED = "--labelled"
TEXT, LABEL = "text", "label"
"""Columns of a labelled sample."""


def calibrate_texts(request: Request, config: Config, clusters: int, work: BuildContext) -> list[TextMeaning]:
    """Measure what the epsilons of a checked request mean for whole texts, by numbers of subjects.

    ``clusters``: the configured number. Raises :class:`ConfigError` and :class:`PublicFileError` for a labelled
    sample that cannot serve, before anything is built; otherwise as :func:`open_parts`.
    """
    sample = None
    if request.labelled is not None:
        sample = _read_sample(str(request.labelled), config.places, config.policy.unit)
    meanings = measure_text_meaning(request.epsilons, clusters)
    return meanings if sample is None else _judge_sample(sample, meanings, config, work)


def _read_sample(source: str, places: Mapping[str, str | None], unit: DrawnUnit) -> Documents:
    """Read a public sample of labelled texts, which lies in none of the places of records, by setting."""
    place = make_absolute(source)
    if faults := [*find_place_faults(_LABELLED, place, places)]:
        raise ConfigError("command line", faults)
    if unit != DrawnUnit.TEXT:
        raise usage_error(_LABELLED, source, "is judged by one draw a text. Add --set text.unit=text.")
    where = f"{_LABELLED} = {source}"
    if not Path(place).exists():
        raise PublicFileError(f"{where}: no such file. Name a public file with the columns {TEXT} and {LABEL}.")
    texts, labels = read_strings(Path(place), where, lambda schema: _find_columns(schema, where))
    # A text that occurs several times says no more than once.
    pairs = dict.fromkeys(zip(texts.to_pylist(), labels.to_pylist(), strict=True))
    sample = Documents.of([text for text, _ in pairs], [label for _, label in pairs])
    if len(sample.names) < 2 or len({*_split(sample).tolist()}) < 2:
        problem = f"{len(sample):,} texts have {len(sample.names):,} different labels: too few to tell labels apart"
        raise PublicFileError(f"{where}: {problem}. Name a larger sample.")
    return sample


def _find_columns(schema: pa.Schema, where: str) -> list[str]:
    """Return the columns of a sample. A label may also be a number, or true and false."""
    for name, others in ((TEXT, ()), (LABEL, (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))):
        if name not in schema.names:
            has = list_names(schema.names)
            raise PublicFileError(f"{where}: has no column `{name}`, but {has}. Write a text and its label in a row.")
        kind = schema.field(name).type
        if not any(fits(kind) for fits in (is_text, *others)):
            raise PublicFileError(f"{where}: its column `{name}` is {kind}. Write {name}s there.")
    return [TEXT, LABEL]


def _split(sample: Documents) -> Bool:
    """Choose half of the texts to learn from, by their content: equal ones fall on one side, whatever their order."""
    return np.array([sha256(text.encode()).digest()[0] % 2 == 0 for text in sample.texts], np.bool_)


def _judge_sample(
    sample: Documents, meanings: Sequence[TextMeaning], config: Config, work: BuildContext
) -> list[TextMeaning]:
    """Add the accuracy of a sample's drawn subjects to ``meanings``, where there are passages for so many subjects."""
    section, is_learned, judged = config.mechanism, _split(sample), []
    settings: Any = section.settings
    counts = sorted({meaning.clusters for meaning in meanings})
    with open_parts(config, work) as parts:
        texts = pa.array(sample.texts, pa.string())
        encoded = Codec(config.policy, Vocabulary(parts.embedding.words)).encode(texts)
        quiet = replace(parts.work, progress=lambda _: None, steps=lambda _done, _all: None)
        for number, count in enumerate(counts):
            work.progress(f"finding {count:,} subjects")
            work.steps(number, len(counts))
            at_count = [meaning for meaning in meanings if meaning.clusters == count]
            # Keywords need no passage for each subject, and draws are the same.
            chosen = replace(settings, clusters=count, output="keywords")
            try:
                built = section.mechanism.build(parts.embedding, chosen, padding=True, work=quiet, inputs=parts.inputs)
            except BundleError as error:
                if count == settings.clusters:
                    raise
                judged += [replace(meaning, problem=str(error)) for meaning in at_count]
                continue
            with load_built(section.mechanism, built, count) as mechanism:
                assert mechanism.encoder is not None
                found = mechanism.encoder.encode(encoded.ids, encoded.offsets, texts)
                symbols, rows = np.unique(found, return_inverse=True)
                for meaning in at_count:
                    moved = mechanism.at_epsilon(meaning.epsilon)
                    assert moved is not None
                    laws = np.stack([require_law(moved, symbol) for symbol in symbols.tolist()])
                    accuracy = judge_subjects(rows.astype(np.int32), sample.labels, is_learned, laws)
                    judged.append(replace(meaning, accuracy=accuracy))
    return sorted(judged, key=lambda meaning: (meaning.epsilon, meaning.clusters))


def _list_facts(config: Config, subject: Subject, plan: WordPlan, *, is_exact: bool) -> Mapping[str, str]:
    section = config.mechanism
    fit = find_field_fit(config, subject.embedding)
    size = subject.embedding.size
    settings = {name: value for name, value in section.recipe.items() if name != "epsilon"}
    measured = f"{size if is_exact else min(plan.words, size):,} of {size:,}"
    return {
        "mechanism": subject.mechanism,
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items() if value not in (None, []))
        or "none",
        "embedding": section.names["embedding"],
        **({"fit to your field": fit.describe()} if fit else {}),
        "dimension": f"{subject.embedding.dimension:,}",
        "words measured": measured,
        "draws of a word": f"{plan.runs:,}",
        "threshold of K_w and inputs": f"{plan.threshold:g}",
        "wordveil": __version__,
    }
