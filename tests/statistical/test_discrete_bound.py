"""The whole mechanism, through a real bundle, keeps the bound it states: audited with samples in 1, 2 and 3 dimensions.

For inputs w and v an audit has two phases. Samples of M(w) and M(v) choose the event, a set of outputs that tells w
from v best; fresh samples test it. With probability 1 - alpha no true bound is rejected, since the claim falls only
when the Clopper-Pearson bounds of the event's probabilities, at alpha / (2m) each for m audits, differ by more than it
allows.

Words, unknown word and padding are audited in every ordered pair. Half of the true epsilon is rejected, so the audit
has power; and so are mechanisms that copy padding or unknown words through, or whose noise is half as wide.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from support.intervals import least_chance, most_chance
from support.toys import (
    KEYS,
    bundle_array,
    bundle_points,
    counted_contexts,
    laplace_bundle,
    make_bundle,
    token_batch,
    toy_embedding,
)
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.streams import KeyedStream
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import Mechanism, TokenBatch

Counts = NDArray[np.int64]
Pair = tuple[int, int]

EPSILON = 2.0
# Padding lies so near to the words that half of its loss can be told from the whole with the samples below.
LOW = 0.6
WORDS = ("left", "middle", "right", "far")
SIZE, PAD, UNKNOWN = 4, 4, 5
VECTORS = {
    1: [[-1.0], [0.25], [1.0], [2.5]],
    2: [[-1.0, 0.1], [0.25, 0.2], [1.0, -0.1], [2.5, 0.0]],
    3: [[-1.0, 0.1, 0.0], [0.25, 0.2, 0.1], [1.0, -0.1, 0.0], [2.5, 0.0, 0.2]],
}
PAIRS: list[Pair] = list(itertools.permutations(range(6), 2))
SAMPLES = 40_000
ALPHA = 1e-6
_CHUNK = 200


def pairs_with(symbol: int) -> list[Pair]:
    return [pair for pair in PAIRS if symbol in pair]


@pytest.fixture(scope="module", params=sorted(VECTORS))
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    embedding = toy_embedding(WORDS, VECTORS[request.param])
    return make_bundle(
        tmp_path_factory.mktemp("store"), embedding, {"epsilon": EPSILON, "pad_height": LOW}, padding=True
    )


def draws(mechanism: Mechanism, series: int) -> Counts:
    """How often each input (row) gave each output (column), in ``SAMPLES`` draws each. A series is drawn once."""
    rows = []
    for symbol in range(SIZE + 2):
        ids = np.full(SAMPLES, symbol, np.int32)
        offsets = np.arange(0, SAMPLES + 1, _CHUNK, dtype=np.int64)
        contexts = counted_contexts(len(offsets) - 1, series=series * 100 + symbol)
        drawn = mechanism.draw(TokenBatch(ids, offsets, contexts), KEYS)
        rows.append(np.bincount(drawn.ids, minlength=SIZE + 2))
    return np.stack(rows)


def least_loss(hits: int, other: int, alpha: float) -> float:
    """A lower bound of ln(P/Q) that holds with probability 1 - 2 alpha."""
    low = least_chance(hits, SAMPLES, alpha)
    return float(np.log(low / most_chance(other, SAMPLES, alpha))) if low > 0 else -np.inf


def events(outputs: int) -> Iterator[list[int]]:
    """Every set of outputs except none and all."""
    for count in range(1, outputs):
        yield from map(list, itertools.combinations(range(outputs), count))


def choose_event(p: Counts, q: Counts, alpha: float) -> list[int]:
    return max(events(len(p)), key=lambda event: least_loss(int(p[event].sum()), int(q[event].sum()), alpha))


def losses(mechanism: Mechanism, pairs: list[Pair]) -> dict[Pair, float]:
    """For each pair a loss that the mechanism has at least; all hold at once with probability ``1 - ALPHA``."""
    choosing, testing = draws(mechanism, 1), draws(mechanism, 2)
    alpha = ALPHA / (2 * len(pairs))
    found = {}
    for w, v in pairs:
        event = choose_event(choosing[w], choosing[v], alpha)
        found[w, v] = least_loss(int(testing[w][event].sum()), int(testing[v][event].sum()), alpha)
    return found


def rejected(found: dict[Pair, float], bundle: Bundle, epsilon: float) -> set[Pair]:
    """The pairs that refute ``epsilon * distance``."""
    points = bundle_points(bundle)
    return {(w, v) for (w, v), loss in found.items() if loss > epsilon * np.linalg.norm(points[w] - points[v])}


def test_true_epsilon_stands_and_half_of_it_falls(bundle: Bundle) -> None:
    assert bundle.guarantee.epsilon == EPSILON
    found = losses(bundle.mechanism, PAIRS)
    assert not rejected(found, bundle, EPSILON)
    fallen = rejected(found, bundle, EPSILON / 2)
    words_alone = {pair for pair in fallen if max(pair) < SIZE}
    assert words_alone
    assert fallen & set(pairs_with(PAD))
    assert fallen & set(pairs_with(UNKNOWN))


class _Sabotaged(Laplace):
    """Laplace over the arrays of a real bundle, to be broken."""

    @classmethod
    def of(cls, bundle: Bundle) -> _Sabotaged:
        return cls.load(SIZE, bundle.manifest["content"]["parameters"], {"index": bundle_array(bundle, "index")})


class _NarrowNoise(_Sabotaged):
    def _noise(
        self, stream: KeyedStream, context: NDArray[np.uint8], position: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        return super()._noise(stream, context, position) / 2


class _CopiesPadding(_Sabotaged):
    copied = PAD

    def draw(self, batch: TokenBatch, keys: object) -> TokenBatch:
        drawn = super().draw(batch, keys)
        return TokenBatch(np.where(batch.ids == self.copied, batch.ids, drawn.ids), drawn.offsets, drawn.contexts)


class _CopiesUnknown(_CopiesPadding):
    copied = UNKNOWN


def test_a_mechanism_that_is_not_sabotaged_draws_the_same(bundle: Bundle) -> None:
    batch = token_batch([[*range(SIZE + 2)] * 50])
    drawn = [mechanism.draw(batch, KEYS).ids.tolist() for mechanism in (bundle.mechanism, _Sabotaged.of(bundle))]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("sabotage", "symbol"),
    [(_NarrowNoise, 0), (_NarrowNoise, PAD), (_NarrowNoise, UNKNOWN), (_CopiesPadding, PAD), (_CopiesUnknown, UNKNOWN)],
)
def test_sabotage_is_rejected(sabotage: type[_Sabotaged], symbol: int, bundle: Bundle) -> None:
    pairs = pairs_with(symbol)
    assert rejected(losses(sabotage.of(bundle), pairs), bundle, EPSILON)


@pytest.mark.parametrize("n", sorted(VECTORS))
def test_padding_at_its_own_height_stands(n: int, tmp_path: Path) -> None:
    bundle = laplace_bundle(tmp_path, toy_embedding(WORDS, VECTORS[n]), EPSILON, padding=True)
    assert not rejected(losses(bundle.mechanism, PAIRS), bundle, EPSILON)


def test_without_padding_the_bound_stands_too(tmp_path: Path) -> None:
    bundle = laplace_bundle(tmp_path, toy_embedding(WORDS, VECTORS[1]), EPSILON, padding=False)
    pairs = [pair for pair in PAIRS if PAD not in pair]
    found = losses(bundle.mechanism, pairs)
    assert not rejected(found, bundle, EPSILON)
    assert rejected(found, bundle, EPSILON / 2)
