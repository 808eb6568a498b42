"""The exact loss of tables is that of all pairs of dense rows, and draws of other probabilities are told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support import toys
from wordveil.audit.bundle import exceeds, find_deviation, find_excess
from wordveil.audit.two_phase import WordPair
from wordveil.measures.losses import find_loss, find_supremum
from wordveil.mechanisms.laws import WordLaws


class Listed:
    """A mechanism that is nothing but laws; the unknown word draws from the common one."""

    name = "listed"

    def __init__(self, laws: WordLaws | None, rows):
        self.laws, self.rows = laws, rows

    def word_laws(self):
        return self.laws

    def probabilities(self, symbol):
        return self.rows[symbol] if symbol < len(self.rows) else self.rows[-1]


def random_laws(rng, size, outputs, *, everywhere=(), never=()):
    """Laws with random lists; ``everywhere``: outputs that all words list; ``never``: outputs without a share."""
    common = rng.random(outputs)
    common[list(never)] = 0.0
    common /= common.sum()
    shares = rng.uniform(0.2, 0.8, size)
    ids, extras, offsets = [], [], [0]
    for word in range(size):
        listed = np.union1d(rng.choice(outputs, rng.integers(1, outputs // 2), replace=False), list(everywhere))
        more = rng.random(len(listed)) + 1e-3
        ids.append(listed.astype(np.int32))
        extras.append((1 - shares[word]) * more / more.sum())
        offsets.append(offsets[-1] + len(listed))
    return WordLaws(common, shares, np.array(offsets), np.concatenate(ids), np.concatenate(extras))


def dense(laws):
    return np.stack([toys.law_of_word(laws, word) for word in range(len(laws.shares))])


def largest(rows):
    rows = rows[:, rows.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        return float((np.log(rows.max(axis=0)) - np.log(rows.min(axis=0))).max())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("everywhere", "never"), [((), ()), ((0, 3), ()), ((3,), (3, 5))])
def test_the_supremum_of_lists_is_that_of_all_pairs(seed, everywhere, never):
    laws = random_laws(np.random.default_rng(seed), 12, 15, everywhere=everywhere, never=never)
    rows = np.concatenate([dense(laws), [laws.common]])
    found = find_supremum(Listed(laws, rows), 12, [13])
    assert found.nats == pytest.approx(largest(rows), rel=1e-12)
    assert found.high == pytest.approx(rows[:, found.output].max())
    assert found.low == pytest.approx(rows[:, found.output].min())
    # The same without lists, row by row.
    assert find_supremum(Listed(None, rows), 12, [12]).nats == pytest.approx(found.nats, rel=1e-12)


def test_an_output_that_one_word_never_has_makes_it_infinite():
    laws = random_laws(np.random.default_rng(0), 6, 9)
    laws.shares[2] = 0.0
    found = find_supremum(Listed(laws, np.concatenate([dense(laws), [laws.common]])), 6, [7])
    assert (found.nats, found.unlikely, found.low) == (math.inf, 2, 0.0)


def test_the_loss_of_a_pair_is_seen_in_both_directions():
    mechanism = Listed(None, np.array([[0.5, 0.5, 0.0], [0.4, 0.2, 0.4]]))
    assert find_loss(mechanism, 0, 1).nats == math.inf
    assert find_loss(mechanism, 0, 1).likely == 1
    mechanism = Listed(None, np.array([[0.5, 0.5], [0.2, 0.8]]))
    assert find_loss(mechanism, 1, 0).nats == pytest.approx(math.log(2.5))
    loss, bound = find_excess(mechanism, [WordPair(0, 1, 3.0), WordPair(1, 0, 0.5)])
    assert (bound, exceeds(loss.nats, bound)) == (0.5, True)
    assert find_excess(mechanism, []) is None


def test_a_claim_is_exceeded_by_more_than_rounding_and_by_nan():
    assert not exceeds(1 + 1e-10, 1.0)
    assert exceeds(1 + 1e-8, 1.0)
    assert exceeds(math.inf, 1e6)
    assert exceeds(math.nan, 1.0)


def test_draws_of_other_probabilities_are_told():
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(6), 8)
    mechanism, words = Listed(None, rows), np.arange(8, dtype=np.int32)

    def draw(shift):
        return np.array([rng.choice(6, 500, p=np.roll(row, shift)) for row in rows])

    p_values = [find_deviation(mechanism, words, draw(0), seed)[1] for seed in range(20)]
    assert min(p_values) > 1e-4
    assert max(p_values) > 0.3
    assert find_deviation(mechanism, words, draw(1), 0)[1] < 1e-9
    rows[0] = [1, 0, 0, 0, 0, 0]
    assert find_deviation(mechanism, words[:1], np.ones((1, 3), np.int64), 0) == (1.0, 0.0)
    assert find_deviation(mechanism, words[:1], np.full((1, 3), 6), 0) == (1.0, 0.0)
