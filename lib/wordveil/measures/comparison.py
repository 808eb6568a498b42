"""One sentence under each mechanism, at an equal share of words kept and at an equal pure epsilon.

The share is that of words evenly spread over the vocabulary, each of which counts once. All draws are with a throwaway
key; vectors and vocabulary are public, and the sentence is whatever its owner typed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.crypto.keys import make_throwaway_keys
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_down, round_up
from wordveil.geometry.spaces import SPACES
from wordveil.measures.output_law import as_record, spread_words, write_tokens
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import ComparisonTerms, MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.drawing import draw_shown, write_words
from wordveil.text.choices import Length, Output, Refused
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.types.lists import PublicLists

_WORDS, _DRAWS = 300, 5
_NEIGHBOURS = 256
_STEPS, _PURE_STEPS, _NEAR = 14, 6, 0.97
# Shares that are measured by draws may miss by this much.
_FEW = 0.01
# Shares that differ by less are shown alike.
_CLOSE = 0.001
_MIN_EPSILON, _MAX_EPSILON = 0.05, 500.0
_NAME = b"text"


@dataclass(frozen=True)
class Line:
    """The sentence under one mechanism.

    ``epsilon``: as configured; None where there is none. ``pure``: the most that a token's replacement loses between
    any two words. ``kept``: the share of the vocabulary's words that stay themselves.
    """

    mechanism: str
    epsilon: float | None
    pure: float
    kept: float
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """The configured mechanism's line, then the others' at its share of words kept, and at its pure epsilon."""

    configured: Line
    equal_kept: list[Line]
    equal_pure: list[Line]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "configured": self.configured.to_dict(),
            "equal_kept": [line.to_dict() for line in self.equal_kept],
            "equal_pure": [line.to_dict() for line in self.equal_pure],
        }


@dataclass(frozen=True)
class _Candidate:
    """A mechanism with its settings, whose epsilon is free."""

    mechanism: type[Mechanism[Any]]
    settings: MechanismSettings
    inputs: PublicInputs = NO_INPUTS

    @property
    def label(self) -> str:
        return self.settings.terms.label(self.mechanism.name)


def compare(
    embedding: Embedding,
    policy: TextPolicy,
    name: str,
    settings: MechanismSettings,
    text: str,
    work: BuildContext | None = None,
    model: NgramModel | None = None,
    inputs: PublicInputs = NO_INPUTS,
) -> Comparison:
    """Compare a mechanism with the others of the registry on one sentence.

    Parameters
    ----------
    embedding : Embedding
        public words and vectors.
    policy : TextPolicy
        how the sentence becomes words.
    name, settings : str, MechanismSettings
        the configured mechanism.
    text : str
        a public sentence.
    work : BuildContext or None
        where progress is reported, a step for each mechanism, and where neighbours and clusters are kept. None: nothing
        is reported or kept.
    model : NgramModel or None
        the policy's n-gram model, if it names one.
    inputs : PublicInputs
        what the configured mechanism is built from beside the embedding. The others get its frequencies alone, since
        their settings name no other files.

    Returns
    -------
    Comparison
        the configured mechanism, and the others at its share of words kept and at its pure epsilon.

    Raises
    ------
    BundleError
        where the configured mechanism cannot be built.
    """
    work = work or BuildContext()
    with tempfile.TemporaryDirectory(prefix="wordveil-compare-") as directory:
        work = work if work.kept else replace(work, kept=Path(directory))
        bench = _Bench(embedding, policy, model, text, work, Path(directory))
        work.progress(f"building {name}")
        chosen = _Candidate(MECHANISMS[name], settings, inputs)
        configured = bench.build(chosen).line
        equal_kept, equal_pure = [], []
        candidates = _candidates(embedding, settings.terms, bench, PublicInputs(inputs.frequencies))
        for number, candidate in enumerate(candidates):
            work.progress(f"fitting {candidate.label}")
            work.steps(number + 1, len(candidates) + 1)
            if not candidate.settings.has_epsilon():
                equal_kept.append(bench.build(candidate).line)
                equal_pure.append(equal_kept[-1])
                continue
            if candidate.label != configured.mechanism:
                matched = bench.match_kept(candidate, configured.kept)
                equal_kept.extend(matched)
                if configured.pure > 0:  # nothing but random costs nothing
                    equal_pure.extend(bench.match_pure(candidate, configured.pure, matched))
        work.steps(len(candidates) + 1, len(candidates) + 1)
    return Comparison(configured, equal_kept, equal_pure)


def _candidates(
    embedding: Embedding, configured: ComparisonTerms, bench: _Bench, inputs: PublicInputs
) -> list[_Candidate]:
    """List the mechanisms to compare. Gamma is the configured one, or the median distance of the last listed
    neighbour.
    """
    neighbours = min(configured.neighbours or _NEIGHBOURS, embedding.size - 1)
    gamma = configured.gamma or bench.measure_cut(configured.metric, neighbours)
    terms = ComparisonTerms(configured.metric, neighbours, gamma)
    return [
        _Candidate(mechanism, settings, inputs)
        for mechanism in MECHANISMS.values()
        for settings in mechanism.comparable_settings(terms)
    ]


@dataclass(frozen=True)
class _Made:
    """A mechanism at one epsilon, and its line."""

    mechanism: Mechanism[Any]
    line: Line


class _Bench:
    """Builds mechanisms over one embedding and looks at what they do to the sentence."""

    def __init__(
        self,
        embedding: Embedding,
        policy: TextPolicy,
        model: NgramModel | None,
        text: str,
        work: BuildContext,
        files: Path,
    ) -> None:
        self._embedding = embedding
        # What mechanisms report of their own steps would hide the comparison's.
        self._work = replace(work, progress=lambda _: None, steps=lambda _done, _all: None)
        self._files = files
        vocabulary = Vocabulary(embedding.words)
        # The sentence is shown as it is: no padding, and only its words decide whether it can be shown.
        shown = replace(policy, length=Length.AS_IS, n_max=None, refused=Refused.QUARANTINE, output=Output.SEQUENCE)
        self._policy = shown
        self._lists = PublicLists.load(policy.language) if policy.draws_types else None
        self._codec = Codec(shown, vocabulary, model, self._lists)
        self._encoded = self._codec.encode(pa.array([text], pa.string()))
        self._words = spread_words(embedding.size, _WORDS)

    def build(self, candidate: _Candidate) -> _Made:
        """Build the mechanism of ``candidate`` and show the sentence under it."""
        kind, settings = candidate.mechanism, candidate.settings
        built = kind.build(self._embedding, settings, padding=False, work=self._work, inputs=candidate.inputs)
        mechanism = kind.load(self._embedding.size, built.parameters, built.arrays, self._write_files(built))
        epsilon = settings.nominal_epsilon if settings.has_epsilon() else None
        line = Line(candidate.label, epsilon, built.guarantee.pure, self._kept(mechanism), self._text(mechanism))
        return _Made(mechanism, line)

    def _write_files(self, built: MechanismArtifact) -> dict[str, Path]:
        return built.write_files(Path(tempfile.mkdtemp(dir=self._files))) if built.files else {}

    def _build_at(self, candidate: _Candidate, epsilon: float) -> _Made:
        return self.build(replace(candidate, settings=candidate.settings.at_epsilon(epsilon)))

    def measure_cut(self, metric: str, neighbours: int) -> float:
        """The median distance of the nearest word outside a list of ``neighbours``, over all words, to two digits."""
        space = SPACES[metric]
        lists = self._work.lists(space, space.points(self._embedding.vectors), neighbours, math.inf, 2**31)
        return round_up(float(np.median(lists.cut)), 2)

    def match_kept(self, candidate: _Candidate, kept: float) -> list[Line]:
        """The line at the epsilon at which the share of words kept is ``kept``; none where no epsilon keeps as many, as
        of a mechanism that writes one word for several, or where that cannot be built.
        """
        least = self._min_epsilon(candidate)
        base: Mechanism[Any] | None = None
        with suppress(BundleError):
            base = self._build_at(candidate, self._first_epsilon(candidate)).mechanism

        def share(epsilon: float) -> float:
            nonlocal base
            changed: Mechanism[Any] | None = None
            with suppress(BundleError):
                known = base.stays_at([epsilon], self._words) if base else None
                if known is not None and not np.isnan(known).any():
                    return float(known.mean())
                changed = base.at_epsilon(epsilon) if base else None
            if changed is None:
                try:
                    # Some mechanisms know themselves at larger epsilons alone: the least that was built serves longest.
                    changed = base = self._build_at(candidate, epsilon).mechanism
                except BundleError:  # what is too large at this epsilon keeps hardly a word
                    return 0.0
            return self._kept(changed)

        if share(_MAX_EPSILON) < kept * _NEAR - _FEW:
            return []
        try:
            return [self._build_at(candidate, _solve(share, kept, least)).line]
        except BundleError:
            return []

    def _first_epsilon(self, candidate: _Candidate) -> float:
        return max(candidate.settings.nominal_epsilon, self._min_epsilon(candidate))

    def _guess_epsilon(self, candidate: _Candidate, pure: float, matched: Sequence[Line]) -> float:
        """Where a loss of ``pure`` may be: at such an epsilon where that is the loss, else in proportion."""
        if candidate.mechanism.is_pure:
            return max(round_down(pure, 3), self._min_epsilon(candidate))
        for line in matched:
            if line.epsilon and line.pure > 0:
                return max(round_down(line.epsilon * pure / line.pure, 3), self._min_epsilon(candidate))
        return self._first_epsilon(candidate)

    def _min_epsilon(self, candidate: _Candidate) -> float:
        return max(_MIN_EPSILON, candidate.mechanism.min_epsilon(self._embedding.dimension))

    def match_pure(self, candidate: _Candidate, pure: float, matched: Sequence[Line]) -> list[Line]:
        """The line at an epsilon at which no token loses more than ``pure``, and hardly less; none where each epsilon
        loses more.

        A loss that the build computes is not proportional to epsilon, hence the steps; losses rise with epsilon, so
        they come nearer. ``matched``: lines of the same mechanism whose loss is known.
        """
        least = self._min_epsilon(candidate)
        epsilon, best = self._guess_epsilon(candidate, pure, matched), None
        for _ in range(_PURE_STEPS):
            try:
                line = self._build_at(candidate, epsilon).line
            except BundleError:  # too large at so small an epsilon
                if epsilon >= round_down(pure, 3):
                    break
                epsilon = round_down(pure, 3)
                continue
            if line.pure <= pure and (best is None or line.pure > best.pure):
                best = line
            if _NEAR * pure <= line.pure <= pure:
                break
            epsilon = max(round_down(epsilon * pure / line.pure, 3), least)
        return [best] if best else []

    def _kept(self, mechanism: Mechanism[Any]) -> float:
        if (known := mechanism.stay_probabilities(self._words)) is not None:
            return float(np.mean(known))
        ids = np.repeat(self._words, _DRAWS)
        written = write_tokens(mechanism, ids, _NAME, make_throwaway_keys())
        rate = measure_keep_rate(ids, written, self._embedding.size).rate
        assert rate is not None
        return rate

    def _text(self, mechanism: Mechanism[Any]) -> str:
        keys, encoded = make_throwaway_keys(), self._encoded
        record = as_record(encoded.ids, _NAME, keys)
        written = write_words(mechanism, record, keys, encoded.pattern)
        values = draw_shown(encoded.shown, record.contexts, keys, self._policy, self._lists)
        shown: str = self._codec.decode(written.batch.ids, encoded.offsets, encoded.skeleton, values)[0].as_py()
        return shown


def _solve(share: Callable[[float], float], wanted: float, least: float) -> float:
    """The epsilon, to three digits and at least ``least``, at which a rising function reaches ``wanted``."""
    low, high = math.log(least), math.log(_MAX_EPSILON)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = share(math.exp(middle))
        if abs(found - wanted) < _CLOSE:
            high = middle
            break
        if found < wanted:
            low = middle
        else:
            high = middle
    return max(float(f"{math.exp(high):.3g}"), least)
