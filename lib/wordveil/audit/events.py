"""Events of two-phase tests: sets of outputs that are likely for one word and unlikely for another.

An event is chosen from draws that the test does not see again. Half of them rank the outputs by their likelihood
ratios, and the other half choose a set from that ranking. With the same draws for both, a set that came by chance alone
would look best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.scores.binomial import bound_above, bound_below

# How many single outputs and, at most, how many sets of the ranking are tried; and how many outputs of a set are shown.
_SINGLES, _SETS, _SHOWN = 32, 48, 3


@dataclass(frozen=True)
class Event:
    """Set of outputs.

    ``outputs``: int64, rising. ``is_rest``: whether the event is every output but these. ``name``: for people; empty
    where the outputs themselves say it.
    """

    outputs: Int64
    is_rest: bool = False
    name: str = ""

    def count(self, drawn: Int64) -> int:
        """Count those of ``drawn``, int64 ``(draws,)``, that are in the event."""
        inside = int(np.isin(drawn, self.outputs).sum())
        return len(drawn) - inside if self.is_rest else inside

    def describe(self, show: Callable[[int], str]) -> str:
        """Describe the event in words. ``show``: an output for people."""
        if self.name:
            return self.name
        some = ", ".join(show(output) for output in self.outputs[:_SHOWN].tolist())
        if len(self.outputs) == 1:
            return f"{'any output but' if self.is_rest else 'the output'} {some}"
        more = ", ..." if len(self.outputs) > _SHOWN else ""
        return f"{'none' if self.is_rest else 'one'} of {len(self.outputs):,} outputs ({some}{more})"


@dataclass(frozen=True)
class Claim:
    """Claim that ``P(S) <= exp(bound) Q(S) + delta`` for every event ``S``.

    ``P`` and ``Q`` are the laws of two words' outputs.
    """

    bound: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.bound < math.inf:
            raise ValueError(f"Expected bound={self.bound} in [0, inf).")
        if not 0 <= self.delta < 1:
            raise ValueError(f"Expected delta={self.delta} in [0, 1).")


def find_excess(bound: float | Float64, delta: float | Float64, low: Float64, high: Float64) -> Float64:
    """Compute by how much ``ln((low - delta) / high)`` exceeds ``bound``, in nats: float64 of the shape of all.

    ``low``: a lower bound of ``P(S)``; ``high``: an upper bound of ``Q(S)``. Minus infinity if ``low`` is not above
    ``delta``.
    """
    with np.errstate(divide="ignore"):
        losses = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.asarray(losses - bound)


def name_events(first: int, second: int, symbols: Mapping[str, int], known: Collection[int] | None) -> list[Event]:
    """List events that are tried for every pair of words, besides those that draws suggest.

    ``first``, ``second``: the words' ids. ``symbols``, ``known``: see :class:`wordveil.audit.two_phase.Naming`.
    """
    events = [Event(np.array([first]), name="the word itself"), Event(np.array([second]), name="the other word")]
    events += [Event(np.array([output]), name=name) for name, output in symbols.items()]
    if known is not None:
        outside = Event(np.unique(np.fromiter(known, np.int64)), is_rest=True, name="an output outside the known ones")
        events.append(outside)
    return events


def choose_event(likely: Int64, unlikely: Int64, claim: Claim, named: list[Event], draws: int, tail: float) -> Event:
    """Choose the event that most probably refutes a claim.

    ``likely``, ``unlikely``: int64 ``(draws,)``, outputs of the word whose probability should be large, and of the
    other word. ``claim``: the claim to refute. ``named``: events to try in any case. ``draws``: how many draws of each
    word the test will have. ``tail``: the tail of each bound of the test.
    """
    likely_half, unlikely_half = len(likely) // 2, len(unlikely) // 2
    order, hits = _rank_outputs(likely, unlikely, likely_half, unlikely_half)
    spans, counted = _list_candidates(hits)
    of_named = [(event.count(likely[likely_half:]), event.count(unlikely[unlikely_half:])) for event in named]
    # Named events come first: they win ties, since their names say more.
    counted = np.concatenate([np.array(of_named, np.int64).reshape(-1, 2), counted])
    scaled = counted * (draws / np.array([len(likely) - likely_half, len(unlikely) - unlikely_half]))
    low, high = bound_below(scaled[:, 0], draws, tail), bound_above(scaled[:, 1], draws, tail)
    best = int(np.argmax(find_excess(claim.bound, claim.delta, low, high)))
    if best < len(named):
        return named[best]
    start, stop, is_rest = spans[best - len(named)].tolist()
    return Event(np.sort(order[start:stop]), bool(is_rest))


def _rank_outputs(likely: Int64, unlikely: Int64, likely_half: int, unlikely_half: int) -> tuple[Int64, Int64]:
    """Rank the outputs of the first halves by falling likelihood ratio, and count each in the second halves.

    Counts are int64 ``(2, outputs + 1)``, where the last column counts all outputs outside the ranking.
    """
    first, second = likely[:likely_half], unlikely[:unlikely_half]
    outputs, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    above = np.bincount(codes[:likely_half], minlength=len(outputs))
    below = np.bincount(codes[likely_half:], minlength=len(outputs))
    # Half an occurrence added to each keeps outputs that came only once from leading.
    order = np.lexsort((-above, -(above + 0.5) / (below + 0.5)))
    hits = np.empty((2, len(outputs) + 1), np.int64)
    for row, fresh in enumerate((likely[likely_half:], unlikely[unlikely_half:])):
        codes = np.minimum(np.searchsorted(outputs, fresh), len(outputs) - 1)
        came = np.bincount(codes[outputs[codes] == fresh], minlength=len(outputs))
        hits[row] = np.append(came[order], len(fresh) - came.sum())
    return outputs[order], hits


def _list_candidates(hits: Int64) -> tuple[Int64, Int64]:
    """List single outputs, the first ones of the ranking, and all outputs but the last ones, with their counts.

    Candidates are int64 ``(candidates, 3)``, start and stop in the ranking and whether it is all but these; counts in
    the second halves are int64 ``(candidates, 2)``.
    """
    count = hits.shape[1] - 1
    sizes = np.unique(np.geomspace(1, count, _SETS).astype(np.int64))
    singles = np.argsort(-hits[0, :-1], kind="stable")[:_SINGLES]
    starts = np.concatenate([singles, np.zeros_like(sizes), count - sizes])
    stops = np.concatenate([singles + 1, sizes, np.full_like(sizes, count)])
    is_rest = np.arange(len(starts)) >= len(singles) + len(sizes)
    below = np.concatenate([np.zeros((2, 1), np.int64), hits[:, :-1].cumsum(axis=1)], axis=1)
    inside = below[:, stops] - below[:, starts]
    counted = np.where(is_rest, hits.sum(axis=1, keepdims=True) - inside, inside)
    return np.stack([starts, stops, is_rest], axis=1), counted.T
