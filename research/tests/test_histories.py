"""Histories of one record's texts: what the sum of its contexts bounds, by all outputs of a tiny mechanism.

``docs/proofs/composition.md`` has the statement. The mechanism keeps a word of three three times as likely as it writes
each other one, so that a text of one word has a loss of ``ln 3``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest

WORDS = range(3)
PRICE = math.log(3)
History = Sequence[int]
HISTORIES = [*product(WORDS, repeat=3)]


def law(history: History) -> dict[tuple[int, ...], Fraction]:
    """The probability of each sequence of outputs: one draw for each distinct text, written for all its versions."""
    texts = sorted(set(history))
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for drawn in product(WORDS, repeat=len(texts)):
        chance = math.prod(Fraction(3 if text == word else 1, 5) for text, word in zip(texts, drawn, strict=True))
        found[tuple(drawn[texts.index(text)] for text in history)] += chance
    return found


def loss(one: History, other: History) -> float:
    """The largest log of a ratio of probabilities, infinite where only one history has an output."""
    mine, theirs = law(one), law(other)
    ratios = (theirs.get(output, Fraction(0)) / chance for output, chance in mine.items())
    return max(math.inf if ratio == 0 else abs(math.log(ratio)) for ratio in ratios)


def pattern(history: History) -> tuple[int, ...]:
    """Which versions are equal: for each the place of the first one that is."""
    return tuple(history.index(text) for text in history)


@pytest.mark.parametrize("one", HISTORIES, ids=lambda one: "".join("abc"[text] for text in one))
def test_the_sum_bounds_histories_with_the_same_equal_versions(one: History):
    charged = PRICE * len(set(one))
    for other in HISTORIES:
        if pattern(one) == pattern(other):
            assert loss(one, other) <= charged + 1e-12
            if all(mine != theirs for mine, theirs in zip(one, other, strict=True)):
                assert loss(one, other) == pytest.approx(charged), "it is tight"
        else:
            assert math.inf in (loss(one, other), loss(other, one)), "no sum bounds it"


def test_charging_a_text_that_came_back_again_bounds_no_more():
    """After a, b, a the first and third output are equal; after a, b, c they need not be."""
    assert loss((0, 1, 2), (0, 1, 0)) == math.inf
    assert loss((0, 1, 0), (1, 2, 1)) == pytest.approx(2 * PRICE)
