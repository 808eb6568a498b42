"""Tables of random embeddings and settings keep what is recorded of them, by Python's whole numbers.

Each case is built as a user builds it. :mod:`exact_tables` reads the finished arrays and compares the loss of every
pair of symbols with the guarantee. Broken builds show that it finds what it looks for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.exact_tables import WORD, drawn, exact_findings, findings, symbols, word_distances
from support.toys import build, random_embedding, toy_embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.tables import exponential
from wordveil.mechanisms.tables.table import AliasTable
from wordveil.neighbours.lists import NeighbourLists

SEED = 20
# So many tables in the gate, of 10,000.
SHORT, MANY = 50, 200
# A refusal names what to change.
NAMED = re.compile(r"mechanism\.(epsilon|gamma|neighbours|metric|name)|epsilon=")
MOST_REFUSED = 0.3
METRICS = ("euclidean", "manhattan", "angular", "hyperbolic")
WORDS = random_embedding(1000, 1).words.to_pylist()
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """What a user asks for. ``pairwise``: whether the build may check every pair, which it does up to 600 words."""

    embedding: Embedding
    settings: dict[str, Any]
    padding: bool
    pairwise: bool

    def build(self, monkeypatch: pytest.MonkeyPatch) -> MechanismArtifact:
        with monkeypatch.context() as patch:
            if not self.pairwise:
                patch.setattr(exponential, "_EXHAUSTIVE", 0)
            return build(self.embedding, self.settings, padding=self.padding, mechanism="exponential")

    def findings(self, built: MechanismArtifact) -> list[str]:
        return findings(built.arrays, built.guarantee, self.embedding.vectors, padding=self.padding)


# Random embeddings.


def random_shape(rng: np.random.Generator, size: int, n: int) -> FloatArray:
    """Words anywhere, in clusters, in one place, near a line, at whole numbers, or far from the origin."""
    shape, anywhere = int(rng.integers(6)), rng.standard_normal((size, n))
    if shape == 1:
        return anywhere[rng.integers(0, 1 + size // 8, size)] + anywhere * 10.0 ** rng.uniform(-9, 0, (size, 1))
    if shape == 2:
        return anywhere[rng.integers(0, 1 + size // 3, size)]
    if shape == 3:
        return rng.uniform(-1, 1, (size, 1)) * rng.standard_normal(n) + anywhere * 10.0 ** rng.uniform(-8, -3)
    if shape == 4:  # many equal distances, and many words in the same direction, whose vectors are not equal
        return rng.integers(-6, 7, (size, n)).astype(np.float64)
    return anywhere if shape == 0 else 1000 + anywhere * 10.0 ** rng.uniform(-3, 1)


def random_size(rng: np.random.Generator) -> int:
    if rng.uniform() < 0.004:
        return int(rng.integers(601, 640))
    return int(rng.integers(2, 12)) if rng.uniform() < 0.3 else int(rng.integers(12, 64))


def scaled(rng: np.random.Generator, vectors: FloatArray) -> FloatArray:
    """One scale for all coordinates, and now and then one for each, down to where float32 ends."""
    vectors = vectors * 10.0 ** rng.uniform(-9, 9)
    if rng.uniform() < 0.3:
        vectors = vectors * 10.0 ** rng.uniform(-9, 9, vectors.shape[1])
    if rng.uniform() < 0.2 and vectors.shape[1] > 1:
        vectors[:, 0] = 1.0
        vectors[:, 1:] *= 10.0 ** rng.uniform(-45, -9) / np.abs(vectors[:, 1:]).max().clip(1e-30)
    return vectors


def within_limits(vectors: FloatArray) -> FloatArray:
    """The vectors, the longest of a length that is supported, and none of it 0 as float32."""
    longest = np.linalg.norm(vectors, axis=1).max()
    if not 1e-9 < longest < 1e9:
        vectors = vectors / (longest or 1.0)
    empty = ~vectors.astype(np.float32).any(axis=1)
    vectors[empty, 0] = 0.5 * max(np.abs(vectors).max(), 1e-8)
    return vectors


def in_the_ball(rng: np.random.Generator, vectors: FloatArray) -> FloatArray:
    """All points in the ball; near its edge some, or all."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    edge = 1 - 10.0 ** rng.uniform(-6, -0.1)
    if rng.uniform() < 0.2:
        return vectors * (edge / lengths)
    return vectors * (edge / lengths.max())


def random_vectors(rng: np.random.Generator, metric: str) -> NDArray[np.float32]:
    vectors = within_limits(scaled(rng, random_shape(rng, random_size(rng), int(rng.choice([1, 2, 3, 5, 12, 40])))))
    if metric == "hyperbolic":
        vectors = within_limits(in_the_ball(rng, vectors))
    return vectors.astype(np.float32)


# Random settings.


def random_case(number: int) -> Case:
    rng = np.random.default_rng([SEED, number])
    metric = str(rng.choice(METRICS))
    vectors = random_vectors(rng, metric)
    embedding = toy_embedding(WORDS[: len(vectors)], vectors)
    settings = random_settings(rng, embedding, metric)
    if rng.uniform() < 0.6:
        settings["neighbours"] = int(rng.choice([1, 2, 5, max(1, len(vectors) // 2), len(vectors), 100]))
    return Case(embedding, settings, padding=bool(rng.integers(2)), pairwise=bool(rng.integers(2)))


def random_settings(rng: np.random.Generator, embedding: Embedding, metric: str) -> dict[str, Any]:
    """Epsilon and gamma mostly so that some words are told apart and some are not; epsilon now and then anywhere."""
    apart = word_distances(embedding.vectors, metric)[0].astype(np.float64)
    apart = apart[apart > 0] if apart.any() else np.ones(1)
    typical = np.quantile(apart, rng.uniform(0, 1, 2))
    epsilon = 10.0 ** rng.uniform(-2.5, 2.5) / typical[0] if rng.uniform() < 0.85 else 10.0 ** rng.uniform(-8, 12)
    settings = {"epsilon": max(epsilon, 1e-9), "metric": metric, "tight": bool(rng.uniform() < 0.4)}
    return settings if rng.uniform() < 0.4 else {**settings, "gamma": float(typical[1] * 10.0 ** rng.uniform(-1, 1))}


# The fuzz.


def check(numbers: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build and check the cases of these numbers; all that is found is told at once."""
    seen: Counter[str] = Counter()
    wrong = []
    for number in numbers:
        case = random_case(number)
        try:
            built = case.build(monkeypatch)
        except (BundleError, ValueError) as error:
            seen["refused"] += 1
            if not NAMED.search(str(error)):
                wrong.append((number, f"refused without a setting: {error}"))
            continue
        seen["built"] += 1
        wrong += [(number, finding) for finding in case.findings(built)]
    assert not wrong
    assert seen["refused"] <= MOST_REFUSED * len(numbers)
    assert seen["built"] >= len(numbers) / 2


@pytest.mark.parametrize(
    "numbers",
    [
        *(range(first, first + SHORT) for first in range(0, MANY, SHORT)),
        *(pytest.param(range(first, first + 500), marks=pytest.mark.long) for first in range(MANY, 10_200, 500)),
    ],
    ids=str,
)
def test_random_tables_keep_their_bounds(numbers: range, monkeypatch: pytest.MonkeyPatch):
    check(numbers, monkeypatch)


@pytest.mark.long
def test_losses_in_80_digits_keep_their_bounds_with_no_margin(monkeypatch: pytest.MonkeyPatch):
    """Every pair's loss, distance and bound of the smaller of 400 tables; and an epsilon that is smaller by one part in
    a thousand is noticed.
    """
    checked, noticed = 0, 0
    for number in range(400):
        case = random_case(number)
        if case.embedding.size > 24:
            continue
        try:
            built = case.build(monkeypatch)
        except (BundleError, ValueError):
            continue
        checked += 1
        given = (built.arrays, built.guarantee, case.embedding.vectors)
        assert not exact_findings(*given, padding=case.padding), number
        less = replace(built.guarantee, epsilon=built.guarantee.epsilon * 0.999, largest=None)
        noticed += bool(exact_findings(built.arrays, less, case.embedding.vectors, padding=case.padding))
    assert checked >= 100
    assert noticed >= checked / 4


# What is drawn is what was decoded.


def telling_words(
    rng: np.random.Generator, arrays: Mapping[str, NDArray[Any]], symbol: int
) -> Iterator[tuple[int, int]]:
    """Words ``A`` on both sides of every change of law, with words ``B`` on both sides of every threshold, and some at
    random.
    """
    alike, itself = int(arrays["alike"][symbol]), int(arrays["itself"][symbol])
    start, stop = (int(place) for place in arrays["starts"][symbol : symbol + 2])
    room = WORD // (stop - start)
    entries = arrays["alias"][start:stop].tolist()
    edges = [column * room + side + entry // len(entries) for column, entry in enumerate(entries) for side in (-1, 0)]
    seconds = [0, WORD - 1, *edges, *(int(word) for word in rng.integers(0, WORD, 20, np.uint64))]
    for first in (0, alike - 1, alike, alike + itself - 1, alike + itself, WORD - 1):
        yield from ((first, second) for second in seconds if 0 <= first < WORD and 0 <= second < WORD)


def test_a_table_draws_what_its_format_says(monkeypatch: pytest.MonkeyPatch):
    built = 0
    for number in range(60):
        case, rng = random_case(number), np.random.default_rng(number)
        try:
            arrays = case.build(monkeypatch).arrays
        except BundleError:
            continue
        built += 1
        for symbol in rng.choice(symbols(case.embedding.size, padding=case.padding), 3).tolist():
            words = list(telling_words(rng, arrays, symbol))
            found = AliasTable.of(arrays).draw(np.full(len(words), symbol, np.int32), np.array(words, np.uint64))
            assert found.tolist() == [drawn(arrays, symbol, *pair) for pair in words]
    assert built > 30


# Embeddings that float32 scores got wrong once: lists that missed nearer words, and a slack of 2e-12 where 0.8 was
# true.


@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize(
    ("metric", "across", "epsilon"),
    [("euclidean", 1e-22, 1e23), ("manhattan", 1e-22, 1e23), ("angular", 1e-10, 1e9), ("hyperbolic", 1e-22, 1e9)],
)
def test_words_near_the_end_of_float32_keep_their_bound(
    metric: str, across: float, epsilon: float, pairwise: bool, monkeypatch: pytest.MonkeyPatch
):
    vectors = np.stack([np.full(150, 0.5), np.random.default_rng(0).uniform(0, across, 150)], axis=1)
    settings = {"epsilon": epsilon, "metric": metric, "neighbours": 10}
    case = Case(toy_embedding(WORDS[:150], vectors), settings, True, pairwise)
    assert case.findings(case.build(monkeypatch)) == []


@pytest.mark.parametrize("pairwise", [True, False])
def test_words_of_one_direction_keep_their_bound_when_rounded(pairwise: bool, monkeypatch: pytest.MonkeyPatch):
    """Angles of 0 come out as 1e-16, and the loss between such words is over epsilon times 0: the slack covers it."""
    directions = np.random.default_rng(1).integers(1, 10, (20, 3))
    vectors = np.concatenate([directions, 3 * directions, 7 * directions])
    case = Case(toy_embedding(WORDS[:60], vectors), {"epsilon": 1e9, "metric": "angular"}, True, pairwise)
    built = case.build(monkeypatch)
    assert case.findings(built) == []
    assert built.guarantee.largest is not None
    for wrong in ({"slack": 1e-9}, {"largest": built.guarantee.largest - 1e-6}):
        assert case.findings(replace(built, guarantee=replace(built.guarantee, **wrong))) != []


# What the fuzz finds where something is broken. Small vocabularies are not checked pair by pair here, so that the build
# itself passes.


def share_found(
    numbers: range, monkeypatch: pytest.MonkeyPatch, edit: Callable[[MechanismArtifact], MechanismArtifact]
) -> float:
    """Of the cases of these numbers that are built, the share of which the checker finds something."""
    found = []
    for number in numbers:
        case = replace(random_case(number), pairwise=False)
        case.settings.update(neighbours=5, tight=False)
        try:
            built = case.build(monkeypatch)
        except BundleError:
            continue
        found.append(bool(case.findings(edit(built))))
    assert len(found) > len(numbers) / 2
    return float(np.mean(found))


def forget_half(patch: pytest.MonkeyPatch) -> None:
    weigh = exponential.symbol_rows
    patch.setattr(
        exponential, "symbol_rows", lambda lists, beta, most, *, padding: weigh(lists, 2 * beta, most, padding=padding)
    )


def miss_nearest(patch: pytest.MonkeyPatch) -> None:
    """Leave out of the list of the first word the nearest other one."""
    find = exponential.find_lists

    def without_nearest(*arguments: Any) -> NeighbourLists:
        lists = find(*arguments)
        other = (np.arange(len(lists.ids)) < lists.offsets[1]) & (lists.ids != 0)
        if not other.any():
            return lists
        missed = int(np.where(other, lists.distances, np.inf).argmin())
        offsets = np.concatenate([[0], lists.offsets[1:] - 1])
        return replace(
            lists, offsets=offsets, ids=np.delete(lists.ids, missed), distances=np.delete(lists.distances, missed)
        )

    patch.setattr(exponential, "find_lists", without_nearest)


def without_tail(built: MechanismArtifact) -> MechanismArtifact:
    alike = built.arrays["alike"].copy()
    alike[0] = 0
    return replace(built, arrays={**built.arrays, "alike": alike})


@pytest.mark.parametrize(
    ("break_build", "edit", "least", "most"),
    [
        (lambda _: None, lambda built: built, 0, 0),
        (forget_half, lambda built: built, 0.5, 1),
        (miss_nearest, lambda built: built, 0.3, 1),
        (lambda _: None, without_tail, 0.8, 1),
    ],
    ids=["sound", "forgotten half", "missed nearest", "no tail"],
)
def test_fuzz_finds_what_is_broken(
    break_build: Callable[[pytest.MonkeyPatch], None],
    edit: Callable[[MechanismArtifact], MechanismArtifact],
    least: float,
    most: float,
    monkeypatch: pytest.MonkeyPatch,
):
    break_build(monkeypatch)
    assert least <= share_found(range(40), monkeypatch, edit) <= most


def test_a_small_vocabulary_with_broken_pairs_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Every pair is checked, so that lists that miss the nearest word do not pass."""
    vectors = np.random.default_rng(4).standard_normal((40, 3))
    vectors[1] = vectors[0] + 1e-3
    case = Case(toy_embedding(WORDS[:40], vectors), {"epsilon": 4.0, "neighbours": 5}, padding=True, pairwise=True)
    assert case.build(monkeypatch)
    miss_nearest(monkeypatch)
    with pytest.raises(BundleError, match=r"would add [\d.]+ to each token's loss, more than 0\.001\. Lower mechanism"):
        case.build(monkeypatch)
