"""The staircase, row by row and in Python's whole numbers: floors, lists, the knapsack, padding, the unknown word, and
a certificate that finds what is broken.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from support.exact_tables import TOTAL, WORD, common_law, drawn, exact_log, law_of, symbols
from support.repository import NEEDS_ANNOY
from support.toys import law_of_word, random_embedding, toy_embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, Pairs, PublicInputs
from wordveil.mechanisms.staircase.floor_tables import (
    Floors,
    build_floor_table,
    certify_floors,
    find_budget,
    lists_of,
    masses_of,
    share_masses,
)
from wordveil.mechanisms.staircase.mechanism import Staircase, StaircaseSettings
from wordveil.mechanisms.tables.table import AliasTable
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.similar import round_directions


def build(
    embedding: Embedding, settings: StaircaseSettings, inputs: PublicInputs = NO_INPUTS, *, padding: bool = False
) -> MechanismArtifact:
    return Staircase.build(embedding, settings, padding=padding, work=BuildContext(), inputs=inputs)


@dataclass(frozen=True, eq=False)
class Case:
    """A vocabulary, settings and inputs."""

    embedding: Embedding
    settings: StaircaseSettings
    inputs: PublicInputs
    padding: bool


def loaded(embedding: Embedding, built: MechanismArtifact) -> Staircase:
    return Staircase.load(embedding.size, built.parameters, built.arrays)


def cases(count: int = 24) -> Iterator[Any]:
    """Random small vocabularies and settings, every kind of input among them."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(4, 50))
        embedding = random_embedding(size, int(rng.integers(1, 6)), seed)
        frequencies = rng.dirichlet(np.full(size, 0.5)) + 1e-6
        pairs = classes = other = None
        if seed % 4 == 1:
            count_ = int(rng.integers(1, 3 * size))
            pairs = Pairs(
                rng.integers(0, size, count_).astype(np.int32),
                rng.integers(0, size, count_).astype(np.int32),
                rng.choice([0.1, 0.5, 0.9], count_),
            )
        if seed % 3 == 1:
            classes = rng.integers(0, int(rng.integers(1, size)), size).astype(np.int32)
        if seed % 5 == 1:
            some = np.sort(rng.permutation(size)[: max(1, size // 2)])
            words = [embedding.words[int(word)].as_py() for word in some]
            other = toy_embedding([*words, "elsewhere"], rng.standard_normal((len(some) + 1, 3)))
        padding = bool(seed % 2)
        floor_mass = [0.05, 0.3, 0.7, None][seed % 4]
        epsilon = float(rng.uniform(5.0, 9.0) if floor_mass == 0.05 else rng.uniform(2.5, 8.0))
        share = 0.25 if padding and seed % 4 == 3 else None
        settings = StaircaseSettings(
            epsilon=epsilon, alpha=float(rng.choice([0.0, 0.5, 0.75, 1.0])), floor_mass=floor_mass, pad_share=share
        )
        inputs = PublicInputs(frequencies / frequencies.sum(), other, pairs, classes)
        yield pytest.param(Case(embedding, settings, inputs, padding), id=str(seed))


EACH = pytest.mark.parametrize("case", list(cases()))


@cache
def built_of(case: Case) -> tuple[MechanismArtifact, dict[int, list[int]]]:
    """What is built of a case, and the law of each symbol."""
    built = build(case.embedding, case.settings, case.inputs, padding=case.padding)
    return built, {
        symbol: law_of(built.arrays, symbol) for symbol in symbols(case.embedding.size, padding=case.padding)
    }


def order_of(case: Case, word: int) -> list[int]:
    """All words as the list of ``word`` takes them, from the definition alone, in whole numbers."""
    size, inputs = case.embedding.size, case.inputs
    names = case.embedding.words.to_pylist()
    known = set(inputs.similarity.words.to_pylist()) if inputs.similarity else set(names)
    if inputs.similarity and names[word] in known:
        place = {name: row for row, name in enumerate(inputs.similarity.words.to_pylist())}
        whole = round_directions(inputs.similarity.vectors).astype(int).tolist()
        points = {other: whole[place[name]] for other, name in enumerate(names) if name in place}
    else:
        points = dict(enumerate(round_directions(case.embedding.vectors).astype(int).tolist()))
    best: dict[int, float] = {}
    if inputs.pairs:
        for left, right, similarity in zip(*(array.tolist() for array in vars(inputs.pairs).values()), strict=True):
            if left == word:
                best[right] = max(similarity, best.get(right, -math.inf))

    def key(other: int) -> tuple[Any, ...]:
        if other == word:
            return (0,)
        if other in best:
            return (1, -best[other], other)
        if other in points:
            return (2, -sum(a * b for a, b in zip(points[word], points[other], strict=True)), other)
        return (3, 0, other)

    allowed = [
        other for other in range(size) if inputs.classes is None or inputs.classes[other] == inputs.classes[word]
    ]
    return sorted(allowed, key=key)


@EACH
def test_certificate_is_the_largest_loss_and_within_epsilon(case: Case):
    built, found = built_of(case)
    worst = 0.0
    for output in range(case.embedding.size + case.padding):
        column = [law[output] for law in found.values()]
        worst = max(worst, exact_log(max(column), min(column)))
    assert worst <= built.guarantee.epsilon <= case.settings.epsilon
    assert built.guarantee.pure == built.guarantee.epsilon
    assert worst <= certify_floors(AliasTable.of(built.arrays), padding=case.padding) <= worst + 1e-8


@EACH
def test_rows_are_floors_and_lists_filled_by_similarity(case: Case):
    built, found = built_of(case)
    size = case.embedding.size
    masses = common_law(built.arrays)
    for probability, mass in zip(found[size + 1], masses, strict=True):  # the unknown word has the floors alone
        assert Fraction(probability, TOTAL) == pytest.approx(float(Fraction(mass, WORD)), rel=1e-12)
    common = int(built.arrays["alike"][:size].min())
    budget = find_budget(case.settings.epsilon, common)
    if case.settings.floor_mass is not None and case.inputs.classes is None:
        assert common == round(case.settings.floor_mass * WORD)
    ceiling = math.exp(case.settings.epsilon)
    for word in range(size):
        order = order_of(case, word)
        base, left, listed = int(built.arrays["alike"][word]), budget, set()
        for other in order:
            if left == 0:
                break
            listed.add(other)
            ratio = found[word][other] / (common * masses[other])
            if masses[other] <= left:
                assert ratio == pytest.approx(ceiling, rel=3e-8)
            else:  # the last one in part
                part = left / masses[other]
                assert ratio == pytest.approx(1 + (ceiling - 1) * part, rel=1e-6)
            left -= min(left, masses[other])
        assert (base == common) == (left == 0)
        for other in set(range(len(masses))) - listed:
            assert found[word][other] == base * masses[other]
            assert 1 <= base / common <= ceiling


@EACH
def test_what_it_says_of_itself_is_what_it_draws(case: Case):
    built, found = built_of(case)
    mechanism, size = loaded(case.embedding, built), case.embedding.size
    together = mechanism.word_laws()
    assert together is not None
    stays = mechanism.stay_probabilities(np.arange(size, dtype=np.int32))
    for symbol, law in found.items():
        exact = np.array([probability / TOTAL for probability in law])
        np.testing.assert_allclose(mechanism.probabilities(symbol), exact, rtol=1e-12)
        if symbol < size:
            np.testing.assert_allclose(law_of_word(together, symbol), exact, rtol=1e-12)
            assert stays[symbol] == pytest.approx(exact[symbol], rel=1e-12)
    rng = np.random.default_rng(3)
    ids = rng.choice([*found], 300).astype(np.int32)
    words = rng.integers(0, 2**64, (300, 2), dtype=np.uint64)
    words[:9] = [[a, b] for a in (0, 2**63, 2**64 - 1) for b in (0, 2**63, 2**64 - 1)]
    expected = [drawn(built.arrays, *map(int, one)) for one in np.column_stack([ids.astype(np.uint64), words])]
    assert mechanism.table.draw(ids, words).tolist() == expected


# Floors.


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.75, 1.0, 2.0])
def test_floors_follow_frequencies(alpha: float):
    frequencies = np.random.default_rng(0).dirichlet(np.full(500, 2.0))
    masses = share_masses(frequencies, alpha, WORD - 12345)
    assert sum(masses.tolist()) == WORD - 12345
    expected = frequencies**alpha / (frequencies**alpha).sum()
    np.testing.assert_allclose(masses / 2.0**64, np.maximum(expected, 1e-3 / 500), rtol=1e-2 if alpha > 1 else 1e-9)
    assert masses.min() >= 0.99e-3 / 500 * 2**64


# Padding.


@pytest.mark.parametrize("epsilon", [2.5, 6.0, 12.0, 25.0, 60.0, 300.0])
def test_padding_share_default_is_the_largest_possible(epsilon: float):
    embedding = random_embedding(100, 4)
    settings = StaircaseSettings(epsilon=epsilon)
    back = law_of(build(embedding, settings, padding=True).arrays, 100)[100] / TOTAL
    assert back >= 0.7 / -math.expm1(-epsilon) - 1e-8
    fine = math.floor(back * 1e6) / 1e6
    smaller = build(embedding, dataclasses.replace(settings, pad_share=fine), padding=True)
    assert law_of(smaller.arrays, 100)[100] / TOTAL == pytest.approx(fine, rel=1e-9)
    with pytest.raises(BundleError, match=rf"pad_share = .*at most {fine:g} of padding"):
        build(embedding, dataclasses.replace(settings, pad_share=back + 1e-5), padding=True)


# Refusals and notes.


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("share", [None, 0.2])
def test_epsilon_too_small_is_refused_with_the_least_that_works(padding: bool, share: float | None):
    embedding = random_embedding(60, 4)
    settings = StaircaseSettings(epsilon=0.9, pad_share=share)
    with pytest.raises(BundleError, match=r"mechanism\.epsilon = 0\.9, mechanism\.floor_mass = 0\.3:") as caught:
        build(embedding, settings, padding=padding)
    words = str(caught.value).replace(",", "").rstrip(".").split(" above ")
    epsilon, floor_mass = float(words[1].split()[0]), float(words[2])
    for good, bad in (
        ({"epsilon": epsilon + 1e-3}, {"epsilon": epsilon - 2e-3}),
        ({"floor_mass": floor_mass + 1e-3}, {"floor_mass": floor_mass - 2e-3}),
    ):
        build(embedding, dataclasses.replace(settings, **good), padding=padding)
        with pytest.raises(BundleError, match="all words"):
            build(embedding, dataclasses.replace(settings, **bad), padding=padding)


def test_too_large_tables_are_refused_with_what_makes_them_small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordveil.mechanisms.staircase.mechanism.MAX_COLUMNS", 500)
    with pytest.raises(BundleError, match=r"mechanism\.epsilon = 3: the lists of all 60 words .* Raise mechanism"):
        build(random_embedding(60, 4), StaircaseSettings(epsilon=3.0))
    build(random_embedding(60, 4), StaircaseSettings(epsilon=9.0))


@pytest.mark.parametrize("name", StaircaseSettings.input_files)
def test_a_file_that_was_not_read_is_refused(name: str):
    with pytest.raises(BundleError, match=rf"mechanism\.{name} = some\.tsv"):
        build(random_embedding(60, 4), StaircaseSettings(epsilon=5.0, **{name: "some.tsv"}))


@NEEDS_ANNOY
def test_lists_by_trees_keep_the_bound_and_say_what_they_miss(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordveil.neighbours.similar._TREES", 2)
    embedding, settings = random_embedding(1200, 60), StaircaseSettings(epsilon=5.0, search="annoy")
    built = build(embedding, settings)
    mechanism = loaded(embedding, built)
    assert built.guarantee.pure <= 5.0
    assert mechanism.search == "annoy"
    assert 0.1 < mechanism.search_recall < 1
    (note,) = built.notes
    assert f"{mechanism.search_recall:.1%} of the words that exact lists have" in note
    exact = loaded(embedding, build(embedding, StaircaseSettings(epsilon=5.0)))
    assert (exact.search, exact.search_recall) == ("exact", 1.0)


# At other epsilons.


@pytest.mark.parametrize("floor_mass", [0.3, None])
def test_at_a_larger_epsilon_it_is_what_a_build_there_is(floor_mass: float | None):
    embedding = random_embedding(150, 4)
    classes = (np.arange(150) % 9).astype(np.int32)
    settings = StaircaseSettings(epsilon=3.5, floor_mass=floor_mass)
    for inputs in (NO_INPUTS, PublicInputs(classes=classes)):
        mechanism = loaded(embedding, build(embedding, settings, inputs))
        for epsilon in (3.5, 4.0, 6.1, 11.0, 30.0):
            there = build(embedding, settings.at_epsilon(epsilon), inputs)
            changed = mechanism.at_epsilon(epsilon)
            assert changed is not None
            for name, array in there.arrays.items():
                np.testing.assert_array_equal(changed.table.arrays[name], array, err_msg=name)
        assert mechanism.at_epsilon(3.4) is None
    assert loaded(embedding, build(embedding, settings, padding=True)).at_epsilon(6.0) is None


# Broken tables.


def test_a_word_without_a_floor_is_an_infinite_loss():
    table = AliasTable.of(build(random_embedding(40, 3), StaircaseSettings(epsilon=5.0)).arrays)
    masses = masses_of(table)
    masses[0] += masses[3]
    masses[3] = 0
    floors = Floors(masses, int(table.alike[0]), find_budget(5.0, int(table.alike[0])))
    without = build_floor_table(floors, *lists_of(table), None)
    assert certify_floors(without, padding=False) == math.inf
    assert min(law_of(without.arrays, 0)) == 0


def test_lists_that_hold_more_than_the_knapsack_allows_are_found():
    """Each row adds up to 1, so that a longer list at the full ratio has to come out of the floors."""
    epsilon = 4.0
    table = AliasTable.of(build(random_embedding(40, 3), StaircaseSettings(epsilon=epsilon)).arrays)
    assert certify_floors(table, padding=False) <= epsilon
    alike = table.alike.copy()
    alike[5] = int(alike[5]) * 9 // 10  # one row's floors pay for a list that holds more
    assert certify_floors(dataclasses.replace(table, alike=alike), padding=False) > epsilon + 0.05
    # Lists that are too short at the same floors lift what they hold above the ceiling.
    budget = find_budget(epsilon, int(table.alike[0]))
    floors = Floors(masses_of(table), int(table.alike[0]), budget * 8 // 10)
    assert certify_floors(build_floor_table(floors, *lists_of(table), None), padding=False) > epsilon + 0.05


@pytest.mark.parametrize("symbol", [60, 61])
def test_a_broken_row_of_padding_or_of_the_unknown_word_is_found(symbol: int):
    table = AliasTable.of(build(random_embedding(60, 3), StaircaseSettings(epsilon=4.0), padding=True).arrays)
    alike, itself = table.alike.copy(), table.itself.copy()
    alike[symbol], itself[symbol] = WORD // 10, WORD - WORD // 10
    changed = dataclasses.replace(table, alike=alike, itself=itself)
    assert certify_floors(changed, padding=True) > 4.5
    worst = max(
        exact_log(max(column), min(column))
        for column in zip(*(law_of(changed.arrays, row) for row in symbols(60, padding=True)), strict=True)
    )
    assert certify_floors(changed, padding=True) >= worst


def test_a_build_that_breaks_its_bound_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "wordveil.mechanisms.staircase.mechanism.find_budget",
        lambda epsilon, common: find_budget(epsilon, common) * 9 // 10,
    )
    with pytest.raises(BundleError, match=r"mechanism\.epsilon = 4: rounding"):
        build(random_embedding(60, 3), StaircaseSettings(epsilon=4.0))
