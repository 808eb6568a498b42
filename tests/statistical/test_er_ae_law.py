"""The whole mechanism, beside the law of whole sequences: every text, every output, and variants that are wrong.

For a vocabulary of three words and sequences of two symbols the law of each text is enumerated: from what the generator
says after each prefix, by the laws of a choice in real numbers. Draws follow it; the loss between any two texts is at
most twice that of a token. Draws of broken variants do not follow it. Those that give more away than the bound allows
are caught by the bound, with Clopper-Pearson intervals at :data:`ALPHA`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from reference.symbol_laws import softmax_rr_law, two_set_law
from support.intervals import least_chance, most_chance, p_value
from support.toys import KEYS, counted_contexts, token_batch, toy_embedding
from wordveil.arrays import Float64
from wordveil.generators.inference import GeneratorState, WholeNumberGenerator
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.er_ae import mechanism as er_ae
from wordveil.mechanisms.er_ae.mechanism import ErAe, ErAeSettings
from wordveil.mechanisms.er_ae.symbol_choice import STEPS
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.neighbours.blocks import BuildContext

SIZE, LENGTH, EPSILON, SETS = 3, 2, 4.0, 2
# With this epsilon a text's bound is one that so many draws can refute.
LOW = 1.0
PAD, UNKNOWN = SIZE, SIZE + 1
EMBEDDING = toy_embedding(("left", "middle", "right"), np.array([[-1.0, 0.3], [0.2, 1.0], [1.0, -0.8]]))
EACH_CHOICE = pytest.mark.parametrize("choice", ["softmax-rr", "two-set"])
EACH_PADDING = pytest.mark.parametrize("padding", [False, True])
DRAWS, ALPHA = 12_000, 1e-6


@pytest.fixture(autouse=True)
def large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks decide no result; large ones are faster for so small a generator."""
    monkeypatch.setattr(er_ae, "_BLOCK", 4096)


def make_weights(*, sure: bool) -> GeneratorWeights:
    """A generator that is sure of the first word; or one that is sure of nothing, and moved by what it wrote."""
    weights = make_repeating_weights(EMBEDDING, LENGTH)
    if sure:
        return weights
    arrays = {name: array.copy() for name, array in weights.arrays.items()}
    arrays["output"] *= 0.3
    arrays["output_bias"] *= 0.3
    arrays["generator.0.bias"][:] = 0
    arrays["generator.0.input"][: EMBEDDING.dimension] *= 8
    return replace(weights, arrays=arrays)


@cache
def build(choice: str, *, padding: bool, epsilon: float = EPSILON, sure: bool = False) -> MechanismArtifact:
    candidates = SETS if padding else 1  # two symbols are left out
    settings = ErAeSettings(epsilon=epsilon, model="generator.npz", choice=choice, candidates=candidates)  # type: ignore[arg-type]
    inputs = PublicInputs(generator=make_weights(sure=sure))
    return ErAe.build(EMBEDDING, settings, padding=padding, work=BuildContext(), inputs=inputs)


def load(choice: str, *, padding: bool) -> ErAe:
    built = build(choice, padding=padding)
    return ErAe.load(SIZE, built.parameters, built.arrays)


@cache
def enumerate_law(text: tuple[int, ...], choice: str, *, padding: bool, sure: bool = False) -> Float64:
    """The probability of each pair of outputs, float64 ``(4, 4)``: words, then padding."""
    built = build(choice, padding=padding, sure=sure)
    shape = GeneratorShape(**built.parameters["shape"])
    generator = WholeNumberGenerator(shape, {name: held for name, held in built.arrays.items() if name != "coins"})
    sequence = np.array([text], np.int32)

    def choose(prefix: tuple[int, ...]) -> Float64:
        state = generator.begin(sequence)
        for symbol in (shape.start, *prefix):
            weights = generator.advance(state, np.array([symbol], np.int32))[0]
        row = weights[: shape.outputs if padding else SIZE].astype(np.float64)
        row /= row.sum()
        candidates = built.parameters["candidates"]
        return two_set_law(row, candidates, EPSILON) if candidates else softmax_rr_law(row, EPSILON)

    found = np.zeros((SIZE + 1, SIZE + 1))
    for first, chance in enumerate(choose(())):
        if first == shape.end_column:
            found[PAD, PAD] += chance
            continue
        for second, then in enumerate(choose((first,))):
            found[first, min(second, PAD)] += chance * then
    return found


def count(mechanism: ErAe, text: tuple[int, ...], series: int) -> NDArray[np.int64]:
    drawn = mechanism.draw(token_batch([text] * DRAWS, counted_contexts(DRAWS, series)), KEYS).ids
    pairs = drawn.reshape(-1, LENGTH)
    return np.bincount(pairs[:, 0] * (SIZE + 1) + pairs[:, 1], minlength=(SIZE + 1) ** 2)


def likelihood(mechanism: ErAe, text: tuple[int, ...], choice: str, *, padding: bool, series: int = 0) -> float:
    return p_value(count(mechanism, text, series), enumerate_law(text, choice, padding=padding).ravel())


TRIED = [(0, 1), (2, 2), (1, PAD), (PAD, PAD), (UNKNOWN, 0)]


@EACH_CHOICE
@EACH_PADDING
def test_sequences_follow_their_law(choice: str, padding: bool) -> None:
    mechanism = load(choice, padding=padding)
    for series, text in enumerate(TRIED):
        if padding or PAD not in text:
            assert likelihood(mechanism, text, choice, padding=padding, series=series) > 1e-5, text


@EACH_CHOICE
@EACH_PADDING
def test_texts_differ_by_at_most_the_bound_of_their_tokens(choice: str, padding: bool) -> None:
    texts = itertools.product([0, 1, 2, *([PAD] if padding else []), UNKNOWN], repeat=LENGTH)
    laws = np.array([enumerate_law(text, choice, padding=padding, sure=True) for text in texts])
    assert laws.sum(axis=(1, 2)) == pytest.approx(1, abs=1e-12)
    laws = laws if padding else laws[:, :SIZE, :SIZE]
    logs = np.log(laws)
    largest = float((logs.max(axis=0) - logs.min(axis=0)).max())
    bound = LENGTH * build(choice, padding=padding).guarantee.pure
    assert largest <= bound + 1e-12
    # One token's bound does not hold for a text: a word decides about all that is written.
    assert largest > build(choice, padding=padding).guarantee.pure * 1.05


# Variants that are wrong, each by one thing.


class ReadsOriginals(WholeNumberGenerator):
    """Wrong on purpose: the generator continues the original text, as in training."""

    def begin(self, sequences: NDArray[np.int32]) -> GeneratorState:
        self.before = np.insert(sequences, 0, self.shape.start, axis=1)
        self.place = 0
        return super().begin(sequences)

    def advance(self, state: GeneratorState, symbols: NDArray[np.int32]) -> NDArray[np.uint32]:
        self.place += 1
        return super().advance(state, np.full_like(symbols, self.before[0, self.place - 1]))


class CopiesPadding(er_ae._Drawing):
    """Wrong on purpose: padding stays padding."""

    def draw_all(self) -> NDArray[np.int32]:
        return np.where(self.batch.ids == PAD, PAD, super().draw_all()).astype(np.int32)


class EndsWithOriginal(CopiesPadding):
    """Wrong on purpose: what is written ends where the original ends, neither before nor behind."""

    def draw_all(self) -> NDArray[np.int32]:
        drawn = super().draw_all()
        return np.where((self.batch.ids != PAD) & (drawn == PAD), 0, drawn).astype(np.int32)


@EACH_CHOICE
def test_originals_that_are_read_again_are_told(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(er_ae, "WholeNumberGenerator", ReadsOriginals)
    assert likelihood(load(choice, padding=True), (2, UNKNOWN), choice, padding=True) < 1e-9


def refutes(built: MechanismArtifact, one: tuple[int, ...], other: tuple[int, ...], event: NDArray[np.bool_]) -> bool:
    """Whether draws of two texts refute the bound, by how often they are in a set of outputs, bool ``(4, 4)``."""
    mechanism = ErAe.load(SIZE, built.parameters, built.arrays)
    hits, rare = (int(count(mechanism, text, series)[event.ravel()].sum()) for series, text in ((1, one), (2, other)))
    bound = math.exp(LENGTH * built.guarantee.pure)
    return bool(least_chance(hits, DRAWS, ALPHA / 2) > bound * most_chance(rare, DRAWS, ALPHA / 2))


def outputs(first: slice, second: slice) -> NDArray[np.bool_]:
    event = np.zeros((SIZE + 1, SIZE + 1), bool)
    event[first, second] = True
    return event


ANY, A_WORD, LEFT = slice(None), slice(SIZE), slice(1)


@EACH_CHOICE
@pytest.mark.parametrize("kind", [CopiesPadding, EndsWithOriginal])
def test_a_length_that_comes_through_is_told(
    kind: type[CopiesPadding], choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, event = build(choice, padding=True, epsilon=LOW), outputs(ANY, A_WORD)
    assert not refutes(built, (1, 2), (1, PAD), event)
    monkeypatch.setattr(er_ae, "_Drawing", kind)
    assert refutes(built, (1, 2), (1, PAD), event)
    assert likelihood(load(choice, padding=True), (1, PAD), choice, padding=True) < 1e-9


@EACH_CHOICE
def test_a_missing_floor_is_told(choice: str) -> None:
    """Coins that always fall on what the generator draws: nothing but its softmax hides the text."""
    built, event = build(choice, padding=True, epsilon=LOW, sure=True), outputs(LEFT, ANY)
    assert not refutes(built, (0, 0), (2, 2), event)
    coins = {"coins": np.full(STEPS + 1, 2**64 - 1, np.uint64)}
    assert refutes(replace(built, arrays={**built.arrays, **coins}), (0, 0), (2, 2), event)
