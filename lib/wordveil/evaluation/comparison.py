"""One sentence under each mechanism, at an equal share of words kept and at an equal pure epsilon.

The share is that of words evenly spread over the vocabulary, each of which counts once. All draws are with a throwaway
key; vectors and vocabulary are public, and the sentence is whatever its owner typed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.crypto.keys import make_throwaway_keys
from wordveil.crypto.streams import derive_contexts, id_payload
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.geometry.euclidean import round_up
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.table_mechanism import TableMechanism
from wordveil.mechanisms.tables import listed_probabilities
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

_WORDS, _DRAWS = 300, 5
_NEIGHBOURS = 256
_STEPS, _PURE_STEPS, _NEAR = 14, 6, 0.97
_LEAST, _MOST = 0.05, 500.0
_HYPERBOLIC = ("hyperbolic-laplace", "hyperbolic-fdd")


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
    """A mechanism whose epsilon is free: its settings but epsilon."""

    label: str
    name: str
    settings: dict[str, Any]


def compare(
    embedding: Embedding,
    policy: TextPolicy,
    name: str,
    settings: Mapping[str, Any],
    text: str,
    progress: Callable[[str], None] = lambda _: None,
    model: NgramModel | None = None,
) -> Comparison:
    """Compare mechanism ``name`` with ``settings`` over ``embedding`` to the others on ``text``; ``model``: the
    policy's n-gram model.

    Raises :class:`wordveil.errors.BundleError` where the configured one cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix="wordveil-compare-") as directory:
        bench = _Bench(embedding, policy, model, text, BuildContext(progress, kept=Path(directory)))
        progress("the configured mechanism")
        built = bench.made(_Candidate(_label(name, settings), name, dict(settings)), settings.get("epsilon"))
        configured = built.line
        equal_kept, equal_pure = [], []
        for candidate in _candidates(embedding, name, settings, bench):
            progress(f"fitting {candidate.label}")
            if candidate.name == "random":
                equal_kept.append(bench.made(candidate, None).line)
                equal_pure.append(equal_kept[-1])
                continue
            if candidate.label != configured.mechanism:
                equal_kept.append(bench.at_kept(candidate, configured.kept))
                if configured.pure > 0:  # nothing but random costs nothing
                    equal_pure.extend(bench.at_pure(candidate, configured.pure))
    return Comparison(configured, equal_kept, equal_pure)


def _label(name: str, settings: Mapping[str, Any]) -> str:
    shown = [f"{key} {settings[key]:g}" for key in ("gamma", "neighbours") if settings.get(key)]
    return ", ".join([name, *shown])


def _candidates(embedding: Embedding, name: str, settings: Mapping[str, Any], bench: _Bench) -> list[_Candidate]:
    """The mechanisms to compare: gamma is the configured one, or the median distance of the last listed neighbour."""
    most = min(settings.get("neighbours") or _NEIGHBOURS, embedding.size - 1)
    metric = settings.get("metric") or ("hyperbolic" if name in _HYPERBOLIC else "euclidean")
    gamma = settings.get("gamma") or bench.typical_cut(metric, most)
    tables = {"metric": metric, "neighbours": most}
    found = [
        ("exponential", tables),
        ("exponential", {**tables, "gamma": gamma}),
        *[(additive, {}) for additive in (_HYPERBOLIC if metric == "hyperbolic" else ("laplace",))],
        ("syntf", {"neighbours": most}),
        ("random", {}),
    ]
    return [_Candidate(_label(name, chosen), name, chosen) for name, chosen in found]


@dataclass(frozen=True)
class _Made:
    """A mechanism at one epsilon, and its line."""

    mechanism: Mechanism
    line: Line


class _Bench:
    """Builds mechanisms over one embedding and looks at what they do to the sentence."""

    def __init__(
        self, embedding: Embedding, policy: TextPolicy, model: NgramModel | None, text: str, work: BuildContext
    ) -> None:
        self._embedding = embedding
        self._work = work
        vocabulary = Vocabulary(embedding.words)
        # The sentence is shown as it is: no padding, and nothing but its words decides whether it can be shown.
        shown = replace(policy, length="as_is", n_max=None, refused="quarantine", output="sequence")
        self._codec = Codec(shown, vocabulary, model)
        self._encoded = self._codec.encode(pa.array([text], pa.string()))
        self._words = np.unique(np.arange(_WORDS) * embedding.size // _WORDS).astype(np.int32)

    def made(self, candidate: _Candidate, epsilon: float | None) -> _Made:
        """The mechanism of ``candidate`` at ``epsilon``."""
        settings = candidate.settings if epsilon is None else {**candidate.settings, "epsilon": epsilon}
        kind = MECHANISMS[candidate.name]
        quiet = replace(self._work, progress=lambda _: None)
        built = kind.build(self._embedding, settings, padding=False, work=quiet)
        mechanism = kind.load(self._embedding.size, built.parameters, built.arrays)
        line = Line(candidate.label, epsilon, built.guarantee.pure, self._kept(mechanism), self._text(mechanism))
        return _Made(mechanism, line)

    def typical_cut(self, metric: str, most: int) -> float:
        """The median distance of the nearest word outside a list of ``most``, of all words, to two digits."""
        space = SPACES[metric]
        lists = self._work.lists(space, space.points(self._embedding.vectors), most, math.inf, 2**31)
        return round_up(float(np.median(lists.cut)), 2)

    def at_kept(self, candidate: _Candidate, kept: float) -> Line:
        """The line at the epsilon at which the share of words kept is ``kept``."""
        least = self._least(candidate)
        base = self.made(candidate, max(1.0, least)).mechanism

        def share(epsilon: float) -> float:
            changed = base.at_epsilon(epsilon)
            assert changed is not None
            return self._kept(changed)

        return self.made(candidate, _solve(share, kept, least)).line

    def _least(self, candidate: _Candidate) -> float:
        return max(_LEAST, MECHANISMS[candidate.name].least_epsilon(self._embedding.dimension))

    def at_pure(self, candidate: _Candidate, pure: float) -> list[Line]:
        """The line at an epsilon at which no token loses more than ``pure``, and hardly less; none where each epsilon
        loses more.

        A loss that the build computes is not proportional to epsilon, hence the steps; losses rise with epsilon, so
        they come nearer.
        """
        least = self._least(candidate)
        epsilon, best = max(1.0, least), None
        for _ in range(_PURE_STEPS):
            line = self.made(candidate, epsilon).line
            if line.pure <= pure and (best is None or line.pure > best.pure):
                best = line
            if _NEAR * pure <= line.pure <= pure:
                break
            epsilon = max(_rounded_down(epsilon * pure / line.pure), least)
        return [best] if best else []

    def _kept(self, mechanism: Mechanism) -> float:
        if isinstance(mechanism, TableMechanism):
            return float(np.mean([_own(mechanism, int(word)) for word in self._words]))
        ids = np.repeat(self._words, _DRAWS)
        return float(np.mean(self._drawn(mechanism, ids) == ids))

    def _text(self, mechanism: Mechanism) -> str:
        drawn = self._drawn(mechanism, self._encoded.ids)
        shown: str = self._codec.decode(drawn, self._encoded.offsets, self._encoded.skeleton)[0].as_py()
        return shown

    def _drawn(self, mechanism: Mechanism, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        keys, offsets = make_throwaway_keys(), np.array([0, len(ids)])
        return mechanism.draw(
            TokenBatch(ids, offsets, derive_contexts(keys.context, b"", [b"text"], [id_payload(ids, offsets)])), keys
        ).ids


def _own(mechanism: TableMechanism, word: int) -> float:
    """The probability that a word stays itself."""
    ids, logs, _ = listed_probabilities(mechanism.table, word)
    return float(np.exp(logs[ids == word]).sum())


def _solve(share: Callable[[float], float], wanted: float, least: float) -> float:
    """The epsilon, to three digits and at least ``least``, at which a rising function reaches ``wanted``."""
    low, high = math.log(least), math.log(_MOST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if share(math.exp(middle)) < wanted:
            low = middle
        else:
            high = middle
    return max(float(f"{math.exp(high):.3g}"), least)


def _rounded_down(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.3g}")
