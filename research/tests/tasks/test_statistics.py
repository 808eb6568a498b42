"""Statistics of a word's outputs are those of the definition, exactly from tables and nearly from draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.toys import KEYS, build_mechanism, random_embedding, toy_embedding
from wordveil.measures.calibration.statistics import measure_laws
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.tables.mechanism import TableMechanism
from wordveil.mechanisms.tables.table import probabilities
from wordveil_research.tasks.statistics import (
    DistinctOutputs,
    KeepProbability,
    LargestEntropy,
    LeastEntropy,
    OutputLaw,
    SupportSize,
    find_laws,
    measure_words,
)

SIZE = 40
EMBEDDING = random_embedding(SIZE, 3)
WORDS = np.array([0, 7, 39], np.int32)
TABLES: dict[str, dict[str, Any]] = {
    "exponential": {"epsilon": 3.0, "neighbours": 10},
    "syntf": {"epsilon": 9.0, "neighbours": 10},
}


def table_mechanism(name: str, *, padding: bool = True) -> TableMechanism:
    mechanism = build_mechanism(EMBEDDING, TABLES[name], padding=padding, mechanism=name)
    assert isinstance(mechanism, TableMechanism)
    return mechanism


def least_cover(law: np.ndarray, eta: float) -> int:
    """Return the definition: the fewest outputs that together have 1 - eta."""
    falling = np.cumsum(np.sort(law)[::-1])
    return int(np.argmax(falling >= 1 - eta - 1e-12)) + 1


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_of_a_table_they_are_exact(name: str, padding: bool):
    mechanism = table_mechanism(name, padding=padding)
    laws = [probabilities(mechanism.table, word) for word in WORDS.tolist()]
    n_w = measure_words(KeepProbability(), mechanism, WORDS)
    assert n_w.tolist() == [law[word] for law, word in zip(laws, WORDS, strict=True)]
    for eta in (0.0, 0.01, 0.05, 0.3, 0.9):
        found = measure_words(SupportSize(eta), mechanism, WORDS).tolist()
        assert found == [SIZE + padding if eta == 0 else least_cover(law, eta) for law in laws]
        assert eta > 0.3 or found != [least_cover(law, eta + 0.3) for law in laws]


def test_a_table_s_law_is_complete():
    mechanism = table_mechanism("exponential")
    for law in find_laws(mechanism, WORDS):
        assert law.draws is None
        assert law.probabilities.sum() + law.unlisted * law.other == pytest.approx(1, abs=1e-12)
        dense = probabilities(mechanism.table, law.word)
        assert [law.probability(output) for output in range(SIZE + 1)] == dense.tolist()
        assert law.other <= law.probabilities.min()


def test_they_are_the_statistics_of_all_laws_at_once():
    mechanism, words = table_mechanism("exponential"), np.arange(SIZE, dtype=np.int32)
    values = measure_laws(mechanism.word_laws(), 40, 0.02)
    assert values.stays == pytest.approx(measure_words(KeepProbability(), mechanism, words))
    assert values.distinct == pytest.approx(measure_words(DistinctOutputs(40), mechanism, words))
    assert np.log2(values.possible) == pytest.approx(measure_words(LargestEntropy(), mechanism, words))
    assert -np.log2(values.likeliest) == pytest.approx(measure_words(LeastEntropy(), mechanism, words))


class _Untabled(Mechanism):
    """A table's draws without its table."""

    def __init__(self, mechanism: TableMechanism) -> None:
        self._mechanism = mechanism

    build = load = examples = None  # type: ignore[assignment]

    @property
    def max_tokens(self) -> int:
        return self._mechanism.max_tokens

    def draw(self, batch, keys):
        return self._mechanism.draw(batch, keys)


def test_draws_come_near_the_exact_figures_and_not_near_others():
    mechanism, draws = table_mechanism("exponential"), 20_000
    exact = measure_words(KeepProbability(), mechanism, WORDS)
    found = measure_words(KeepProbability(), _Untabled(mechanism), WORDS, draws, KEYS)
    deviation = np.sqrt(exact * (1 - exact) / draws)
    assert (np.abs(found - exact) < 4 * deviation).all()
    other = measure_words(KeepProbability(), mechanism.at_epsilon(3.5), WORDS)
    assert (np.abs(found - other) > 4 * deviation).all()
    assert measure_words(SupportSize(0.0), _Untabled(mechanism), WORDS, draws, KEYS).tolist() == [SIZE + 1] * len(WORDS)
    near = measure_words(SupportSize(0.05), _Untabled(mechanism), WORDS, draws, KEYS)
    assert near == pytest.approx(measure_words(SupportSize(0.05), mechanism, WORDS), abs=2)


def test_a_laplace_word_stays_as_often_as_its_cell_is_hit(line_mechanism):
    """One dimension: noise is Laplace(1/eps), and a word's cell ends half way to its neighbours."""
    n_w = measure_words(KeepProbability(), line_mechanism, np.array([1], np.int32), 20_000, KEYS)
    assert n_w[0] == pytest.approx(1 - np.exp(-1) / 2 - np.exp(-3) / 2, abs=0.015)


@pytest.fixture
def line_mechanism() -> Mechanism:
    return build_mechanism(toy_embedding(["near", "next", "far"], [1.0, 2.0, 5.0]), {"epsilon": 2.0}, padding=False)


def test_of_draws_shares_are_counted():
    law = OutputLaw.of_draws(3, np.array([3, 3, 1, 9, 3, 1, 3, 3, 3, 3], np.int32))
    assert (law.ids.tolist(), law.draws) == ([1, 3, 9], 10)
    assert [law.probability(output) for output in (3, 1, 9, 0, 10)] == [0.7, 0.2, 0.1, 0.0, 0.0]
    assert KeepProbability().measure(law) == 0.7
    assert [SupportSize(eta).measure(law) for eta in (0, 0.05, 0.1, 0.29, 0.3, 0.5)] == [3, 3, 2, 2, 1, 1]
    assert KeepProbability().measure(OutputLaw.of_draws(5, np.array([3], np.int32))) == 0.0


def test_unlisted_outputs_are_left_out_first():
    law = OutputLaw(0, np.array([0, 1], np.int32), np.array([0.5, 0.3]), unlisted=20, other=0.01)
    assert [SupportSize(eta).measure(law) for eta in (0, 0.05, 0.2, 0.45, 0.5)] == [22, 17, 2, 2, 1]


def test_a_share_out_of_range_is_refused():
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="eta"):
            SupportSize(wrong)


def test_different_outputs_of_some_draws_and_entropies():
    law = OutputLaw(0, np.array([0, 1], np.int32), np.array([0.5, 0.3]), unlisted=20, other=0.01)
    laws = np.array([0.5, 0.3, *[0.01] * 20])
    for runs in (1, 2, 1_000):
        assert DistinctOutputs(runs).measure(law) == pytest.approx((1 - (1 - laws) ** runs).sum())
    assert DistinctOutputs(3).measure(law) != pytest.approx(DistinctOutputs(4).measure(law), rel=0.05)
    certain = OutputLaw(0, np.array([0], np.int32), np.array([1.0]), unlisted=4)
    assert [one.measure(certain) for one in (DistinctOutputs(5), LargestEntropy(), LeastEntropy())] == [1.0, 0.0, 0.0]
    assert LargestEntropy().measure(law) == pytest.approx(np.log2(22))
    assert LeastEntropy().measure(law) == 1.0
    with pytest.raises(ValueError, match="runs"):
        DistinctOutputs(0)


def test_of_four_draws():
    law = OutputLaw.of_draws(0, np.array([0, 0, 1, 2], np.int32))
    statistics = [KeepProbability(), SupportSize(), DistinctOutputs(), LargestEntropy(), LeastEntropy()]
    assert [statistic.measure(law) for statistic in statistics] == pytest.approx([0.5, 3.0, 3.0, np.log2(3), 1.0])
