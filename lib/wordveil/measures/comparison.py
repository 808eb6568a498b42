"""Preview of a public sentence before and after a run, and comparison of mechanisms on it.

Mechanisms are compared at an equal share of words kept, over words evenly spread over the vocabulary, and at an equal
pure epsilon. All draws are with a throwaway key; vectors and vocabulary are public, and the sentence is the user's.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_up
from wordveil.geometry.spaces import SPACES
from wordveil.measures.search import Candidate, FigureCache, Matcher, find_epsilon, make_candidate, round_within
from wordveil.measures.token_draws import as_record, spread_words, write_tokens
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import ComparisonTerms, MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.codec import ColumnsCodec, draw_shown, write_words
from wordveil.records.columns import ONE_TEXT
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN, UNKNOWN_COLUMN, WORDS_COLUMN
from wordveil.text.choices import DrawnUnit, Length, Output, Refused
from wordveil.text.codec import Codec, TokenReading
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.types.lists import PublicLists

SENTENCE = (
    "The last train to the coast leaves at seven, and the weather in the mountains will stay dry until Friday evening."
)
"""Example in English, written for this project."""
_RELEASE = "preview"


@dataclass(frozen=True)
class SentencePreview:
    """Sentence under a text policy and a mechanism.

    ``output``: the sanitised sentence; None if it is refused, for ``reason``. ``words``, ``unknown``: words of the
    sentence, and those outside the vocabulary. ``written``: words of the output, to which padding may add. ``tokens``:
    interpretation of each token of the sentence, if words are drawn. ``subjects``: telling words of the sentence's own
    subject and of the drawn one, by name, if one is drawn for the whole. Counts are 0, and ``tokens`` and ``subjects``
    are empty, if the sentence is refused.
    """

    text: str
    output: str | None
    reason: str | None
    words: int
    unknown: int
    written: int
    tokens: list[TokenReading] = field(default_factory=list)
    subjects: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "tokens": [reading._asdict() for reading in self.tokens]}


def preview_sentence(bundle: Bundle, policy: TextPolicy, text: str, model: NgramModel | None = None) -> SentencePreview:
    """Show what a run would write for ``text``, a public sentence. ``model``: the policy's n-gram model."""
    settings = RecordSettings(_RELEASE, "", policy, (), max_records=bundle.count_preview(1))
    sanitiser = RecordSanitiser(settings, bundle, make_throwaway_keys(), model)
    columns = {"id": ["sentence"], TEXT_COLUMN: [text], REASON_COLUMN: pa.nulls(1, pa.string())}
    (batch,) = sanitiser.sanitise(pa.RecordBatch.from_pydict(columns))
    (row,) = batch.to_pylist()
    output = row["text"]
    tokens: list[TokenReading] = []
    subjects: dict[str, str] = {}
    if output is not None and bundle.topics is not None:
        own = ColumnsCodec(ONE_TEXT, policy, bundle, model).encode([pa.array([text], pa.string())]).columns[0].ids
        names = [f"subject of sentence {number + 1}" for number in range(len(own))]
        if policy.unit == DrawnUnit.TEXT:
            own = np.append(own, bundle.vocabulary.lookup(pa.array([output], pa.string())))
            names = ["the subject of the sentence", "the subject that was drawn"]
        telling = dict(enumerate(bundle.topics.keywords.to_pylist()))
        subjects = {
            name: telling.get(symbol, "none: no known word") for name, symbol in zip(names, own.tolist(), strict=True)
        }
    elif output is not None:
        tokens = Codec(policy, bundle.lexicon, model, bundle.lists).explain(text)
    counts = (row[WORDS_COLUMN] or 0, row[UNKNOWN_COLUMN] or 0, len((output or "").split()))
    return SentencePreview(text, output, row["reason"], *counts, tokens, subjects)


def preview_default(bundle: Bundle, policy: TextPolicy, model: NgramModel | None = None) -> SentencePreview | None:
    """Show what a run would write for :data:`SENTENCE`; None if it is refused, or mostly outside the vocabulary."""
    preview = preview_sentence(bundle, policy, SENTENCE, model)
    return None if preview.output is None or 2 * preview.unknown > preview.words else preview


_WORDS, _DRAWS = 300, 5
_NEIGHBOURS = 256
# Their tables grow with the number of words, those of neighbours with its square: 100,000 words take many minutes.
OTHERS_WORDS = 20_000
# At the largest epsilon the share kept may be 3% less than the target, and another 0.01 if it is drawn.
_NEAR, _FEW = 0.97, 0.01
_MIN_EPSILON, _MAX_EPSILON = 0.05, 500.0
_NAME = b"text"


@dataclass(frozen=True)
class MechanismLine:
    """Result of one mechanism on the sentence.

    ``epsilon``: as configured; None if there is none. ``pure``: largest loss of a token between any two words.
    ``kept``: share of the vocabulary's words that stay themselves.
    """

    mechanism: str
    epsilon: float | None
    pure: float
    kept: float
    text: str


@dataclass(frozen=True)
class SentenceComparison:
    """Lines of the configured mechanism, then of the others at its share of words kept, and at its pure epsilon."""

    configured: MechanismLine
    equal_kept: list[MechanismLine]
    equal_pure: list[MechanismLine]


def compare(
    embedding: Embedding,
    policy: TextPolicy,
    name: str,
    settings: MechanismSettings,
    text: str,
    work: BuildContext | None = None,
    model: NgramModel | None = None,
    inputs: PublicInputs = NO_INPUTS,
) -> SentenceComparison:
    """Compare a mechanism with the others of the registry on one sentence.

    ``work``: reports progress, a step for each mechanism, and keeps neighbours and clusters. ``inputs``: for the
    configured mechanism. The others get only its frequencies, since their settings name no other files, and the
    embedding's first 20,000 words. Raises :class:`BundleError` if the configured mechanism cannot be built.
    """
    work = work or BuildContext()
    with tempfile.TemporaryDirectory(prefix="wordveil-compare-") as directory:
        work = work if work.kept else replace(work, kept=Path(directory))
        # Reports of a mechanism's steps would hide the comparison's.
        quiet = replace(work, progress=lambda _: None, steps=lambda _done, _all: None)
        work.progress(f"building {name}")
        bench = _Bench(Matcher(embedding, inputs, quiet), policy, model, text)
        configured = bench.build(make_candidate(name, settings), settings.nominal_epsilon)
        bench = _Bench(_match_others(bench.matcher), policy, model, text)
        equal_kept, equal_pure = [], []
        others = _list_settings(bench.matcher, settings.terms)
        for number, (other, free) in enumerate(others):
            candidate = make_candidate(other, free)
            work.progress(f"fitting {candidate.label}")
            work.steps(number + 1, len(others) + 1)
            if not free.has_epsilon():
                equal_kept.append(bench.build(candidate, 0.0))
                equal_pure.append(equal_kept[-1])
                continue
            if candidate.label != configured.mechanism:
                matched = bench.match_kept(candidate, configured.kept, free.nominal_epsilon)
                equal_kept.extend(matched)
                if configured.pure > 0:  # only random draws cost nothing
                    equal_pure.extend(bench.match_pure(candidate, configured.pure, matched))
        work.steps(len(others) + 1, len(others) + 1)
    return SentenceComparison(configured, equal_kept, equal_pure)


def _match_others(matcher: Matcher) -> Matcher:
    """Make the matcher of the other mechanisms: the first words, and their frequencies."""
    embedding, frequencies = matcher.embedding, matcher.inputs.frequencies
    if embedding.size <= OTHERS_WORDS:
        return replace(matcher, inputs=PublicInputs(frequencies))
    first = replace(embedding, words=embedding.words[:OTHERS_WORDS], vectors=embedding.vectors[:OTHERS_WORDS])
    if frequencies is not None:
        frequencies = frequencies[:OTHERS_WORDS] / math.fsum(frequencies[:OTHERS_WORDS])
    return replace(matcher, embedding=first, inputs=PublicInputs(frequencies))


def _list_settings(matcher: Matcher, configured: ComparisonTerms) -> list[tuple[str, MechanismSettings]]:
    """List the mechanisms to compare, with the configured gamma or the result of :func:`measure_cut`."""
    neighbours = min(configured.neighbours or _NEIGHBOURS, matcher.embedding.size - 1)
    gamma = configured.gamma or measure_cut(matcher, configured.metric, neighbours)
    terms = ComparisonTerms(configured.metric, neighbours, gamma)
    return [
        (name, settings) for name, mechanism in MECHANISMS.items() for settings in mechanism.comparable_settings(terms)
    ]


def measure_cut(matcher: Matcher, metric: str, neighbours: int) -> float:
    """Measure the median distance, to two digits, of the nearest word outside a list of ``neighbours``."""
    space = SPACES[metric]
    lists = matcher.work.lists(space, space.points(matcher.embedding.vectors), neighbours, math.inf, 2**31)
    return round_up(float(np.median(lists.cut)), 2)


class _Bench:
    """Bench that builds mechanisms over one embedding and applies them to the sentence."""

    def __init__(self, matcher: Matcher, policy: TextPolicy, model: NgramModel | None, text: str) -> None:
        self.matcher = matcher
        vocabulary = Vocabulary(matcher.embedding.words)
        # The sentence is shown as it is: no padding, and only its words decide whether it can be shown.
        open_policy = replace(
            policy, length=Length.AS_IS, n_max=None, refused=Refused.QUARANTINE, output=Output.SEQUENCE
        )
        self._policy = open_policy
        self._lists = PublicLists.load(policy.language) if policy.draws_types else None
        self._codec = Codec(open_policy, vocabulary, model, self._lists)
        self._encoded = self._codec.encode(pa.array([text], pa.string()))
        self._words = spread_words(matcher.embedding.size, _WORDS)

    def build(self, candidate: Candidate, epsilon: float) -> MechanismLine:
        """Build a mechanism and show the sentence under it."""
        return self.show(candidate, epsilon, self.matcher.build(candidate, epsilon))

    def show(self, candidate: Candidate, epsilon: float, built: MechanismArtifact) -> MechanismLine:
        """Show the sentence under the build at an epsilon; 0 if there is no epsilon."""
        mechanism = self.matcher.load(candidate, built)
        keep_rate, text = self._kept(mechanism), self._text(mechanism)
        return MechanismLine(candidate.label, epsilon or None, built.guarantee.pure, keep_rate, text)

    def match_kept(self, candidate: Candidate, kept: float, start: float) -> list[MechanismLine]:
        """Find the line at the epsilon at which ``kept`` of the words stay; empty if none keeps as many."""
        min_epsilon = max(_MIN_EPSILON, self.matcher.least_epsilon(candidate))
        figures = FigureCache(
            lambda epsilon: self.matcher.load(candidate, self.matcher.build(candidate, epsilon)),
            self._kept,
            self._kept_at,
        )
        try:
            crossing = find_epsilon(figures.at, kept, start, min_epsilon, _MAX_EPSILON)
            if not crossing.is_reached and crossing.ratio * kept < kept * _NEAR - _FEW:
                return []
            return [self.build(candidate, round_within(crossing.epsilon, min_epsilon))]
        except (BundleError, ValueError):  # a mechanism may be moved to an epsilon at which it is refused
            return []

    def _kept_at(self, base: Mechanism[Any], epsilon: float) -> float | None:
        """Compute the share of words kept when a mechanism is moved to another epsilon; None if it cannot be moved."""
        stays = base.stays_at([epsilon], self._words)
        if stays is not None and not np.isnan(stays).any():
            return float(stays.mean())
        moved = base.at_epsilon(epsilon)
        return None if moved is None else self._kept(moved)

    def match_pure(self, candidate: Candidate, pure: float, matched: Sequence[MechanismLine]) -> list[MechanismLine]:
        """Find the line at the largest epsilon at which no token loses more than ``pure``; empty if each loses more.

        ``matched``: lines of the same mechanism, whose losses give the start.
        """
        guesses = [line.epsilon * pure / line.pure for line in matched if line.epsilon and line.pure > 0]
        start = pure if candidate.by_loss or not guesses else guesses[0]
        try:
            match = self.matcher.at_loss(candidate, pure, start=start, least=_MIN_EPSILON, digits=3)
        except (BundleError, ValueError):
            return []
        return [] if match is None else [self.show(candidate, match.epsilon, match.built)]

    def _kept(self, mechanism: Mechanism[Any]) -> float:
        if (stays := mechanism.stay_probabilities(self._words)) is not None:
            return float(np.mean(stays))
        ids = np.repeat(self._words, _DRAWS)
        written = write_tokens(mechanism, ids, _NAME, make_throwaway_keys())
        rate = measure_keep_rate(ids, written, self.matcher.embedding.size).rate
        assert rate is not None
        return rate

    def _text(self, mechanism: Mechanism[Any]) -> str:
        keys, encoded = make_throwaway_keys(), self._encoded
        record = as_record(encoded.ids, _NAME, keys)
        written = write_words(mechanism, record, keys, encoded.pattern)
        values = draw_shown(encoded.shown, record.contexts, keys, self._policy, self._lists)
        sentence: str = self._codec.decode(written.batch.ids, encoded.offsets, encoded.skeleton, values)[0].as_py()
        return sentence
