"""Contrast of two samples of outputs with different laws: an event is chosen on one half and tested on the other."""

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
    """Power of an event to distinguish two samples.

    ``event``: for people. ``hits``: how often it came in the half of each sample that tests it. ``draws``: the sizes of
    these halves. ``p_value``: the probability of such a difference, or a greater one, under one law: Fisher's exact
    test, one-sided.
    """

    event: str
    hits: tuple[int, int]
    draws: tuple[int, int]
    p_value: float

    def __str__(self) -> str:
        return f"{self.event}: {self.hits[0]} of {self.draws[0]} against {self.hits[1]} of {self.draws[1]}"


def find_contrast(
    first: Sequence[Hashable], second: Sequence[Hashable], *, is_ordered: bool = False
) -> Contrast | None:
    """Find an event that the first of two samples has more often.

    The event is chosen on every second value of both samples. The other values test it, so the p-value is valid
    whatever was chosen. Under one law, counts of the event are hypergeometric given their sum.

    ``first``, ``second``: independent values of each law. ``is_ordered``: whether they are numbers, and events their
    ranges, more frequent in either sample.

    Returns
    -------
    Contrast or None
        None where a sample has fewer than four values.
    """
    if min(len(first), len(second)) < 4:
        return None
    if is_ordered:
        chosen, event = _choose_range(np.array(first[::2], float), np.array(second[::2], float))
    else:
        chosen, event = _choose_values(first[::2], second[::2])
    likely, unlikely = first[1::2], second[1::2]
    hits = sum(map(chosen, likely)), sum(map(chosen, unlikely))
    draws = len(likely), len(unlikely)
    return Contrast(event, hits, draws, _compute_tail(hits[0], sum(hits), *draws))


def find_least_hits(draws: int, alpha: float) -> int | None:
    """Find the least count of an event, absent from the other sample, for which Fisher's p-value is at most ``alpha``.

    Both halves have ``draws`` values that test it. None if there is no such count.
    """
    return next((hits for hits in range(1, draws + 1) if _compute_tail(hits, hits, draws, draws) <= alpha), None)


@cache
def _compute_tail(hits: int, both: int, first: int, second: int) -> float:
    """Compute the probability that ``hits`` or more of ``both`` events fall on the first of two samples of these
    sizes.
    """
    return min(1.0, float(hypergeom.sf(hits - 1, first + second, both, first)))


def _choose_values(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[Event, str]:
    """Choose the values that are more frequent in the first sample, or the complement of those that are less
    frequent.
    """
    ours, theirs = Counter(first), Counter(second)
    share = {value: ours[value] / len(first) - theirs[value] / len(second) for value in {*ours, *theirs}}
    more = frozenset(value for value, difference in share.items() if difference > 0)
    less = frozenset(value for value, difference in share.items() if difference < 0)
    # Values that neither half has may come too: they belong to the side that has more single values.
    singles = [sum(count == 1 for count in counts.values()) for counts in (ours, theirs)]
    if singles[0] > singles[1]:
        return (lambda value: value not in less), "any other value"
    return (lambda value: value in more), f"one of {len(more)} values" if len(more) != 1 else "one value"


def _choose_range(first: Float64, second: Float64) -> tuple[Event, str]:
    """Choose the range above or below a number that separates the samples best."""
    cuts = np.unique(np.concatenate([first, second]))
    below = [np.searchsorted(np.sort(sample), cuts, "left") for sample in (first, second)]
    difference = below[1] / len(second) - below[0] / len(first)
    best = int(np.argmax(np.abs(difference)))
    cut = float(cuts[best])
    if difference[best] >= 0:
        return (lambda value: value >= cut), f"{cut:g} or more"
    return (lambda value: value < cut), f"less than {cut:g}"
