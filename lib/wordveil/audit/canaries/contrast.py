"""Whether two samples of outputs have different laws: an event is chosen on one half and tested on the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from wordveil.arrays import Float64

Event = Callable[[Any], bool]


@dataclass(frozen=True)
class Contrast:
    """How well an event tells two samples apart.

    Attributes
    ----------
    event
        the event, for people.
    one, other
        how often it came in the halves that test it.
    draws
        the sizes of these halves.
    p_value
        the probability of such a difference, or a greater one, under one law: Fisher's exact test, one-sided.
    """

    event: str
    one: int
    other: int
    draws: tuple[int, int]
    p_value: float

    def __str__(self) -> str:
        return f"{self.event}: {self.one} of {self.draws[0]} against {self.other} of {self.draws[1]}"


def find_contrast(one: Sequence[Hashable], other: Sequence[Hashable], *, is_ordered: bool = False) -> Contrast | None:
    """Look for an event that one of two samples has more often.

    The event is chosen on every second value of both samples, so the values that test it are fresh, and the test's
    p-value is valid whatever was chosen. Under one law, counts of the event are hypergeometric given their sum.

    Parameters
    ----------
    one, other
        independent values of each law.
    is_ordered
        whether they are numbers, and events are their ranges.

    Returns
    -------
    Contrast or None
        None where a sample has fewer than four values.
    """
    if min(len(one), len(other)) < 4:
        return None
    if is_ordered:
        chosen, event = _choose_range(np.array(one[::2], float), np.array(other[::2], float))
    else:
        chosen, event = _choose_values(one[::2], other[::2])
    halves = one[1::2], other[1::2]
    hits = [sum(chosen(value) for value in half) for half in halves]
    draws = len(halves[0]), len(halves[1])
    return Contrast(event, hits[0], hits[1], draws, _compute_tail(hits[0], sum(hits), *draws))


def find_least_hits(draws: int, alpha: float) -> int | None:
    """How often an event must come in ``draws`` values that test it, and never in as many others, for Fisher's p-value
    to be ``alpha`` at most; None where that cannot be.
    """
    for hits in range(1, draws + 1):
        if _compute_tail(hits, hits, draws, draws) <= alpha:
            return hits
    return None


@cache
def _compute_tail(hits: int, both: int, one: int, other: int) -> float:
    """The probability that ``hits`` or more of ``both`` events fall on the first of two samples of these sizes."""
    return min(1.0, float(hypergeom.sf(hits - 1, one + other, both, one)))


def _choose_values(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[Event, str]:
    """The values that come more often in the first sample, or their complement, whichever parts the samples better."""
    first, second = Counter(one), Counter(other)
    share = {value: first[value] / len(one) - second[value] / len(other) for value in {*first, *second}}
    more = frozenset(value for value, difference in share.items() if difference > 0)
    less = frozenset(value for value, difference in share.items() if difference < 0)
    # Values that neither half has may come too: they belong to the side that has more single values.
    singles = [sum(1 for count in counts.values() if count == 1) for counts in (first, second)]
    if singles[0] > singles[1]:
        return (lambda value: value not in less), "any other value"
    return (lambda value: value in more), _name_values(more)


def _name_values(values: frozenset[Hashable]) -> str:
    return f"one of {len(values)} values" if len(values) != 1 else "one value"


def _choose_range(one: Float64, other: Float64) -> tuple[Event, str]:
    """The range above or below a number that parts the samples best."""
    cuts = np.unique(np.concatenate([one, other]))
    above = [np.searchsorted(np.sort(sample), cuts, "left") for sample in (one, other)]
    difference = above[1] / len(other) - above[0] / len(one)
    place = int(np.argmax(np.abs(difference)))
    cut = float(cuts[place])
    if difference[place] >= 0:
        return (lambda value: value >= cut), f"{cut:g} or more"
    return (lambda value: value < cut), f"less than {cut:g}"
