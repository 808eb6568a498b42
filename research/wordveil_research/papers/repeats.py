"""Put the repetitions of the same measurement together: one figure with an interval for texts and draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wordveil.scores.score import CONFIDENCE, Score

_SHARES = frozenset({"accuracy", "answered", "precision"})


def merge_repeats(repeats: Iterable[Sequence[Score]]) -> list[Score]:
    """Return one score for each subject and key, in the order in which they first occur.

    The value is the mean over repetitions. The interval has two parts, added as independent errors are, by squares: the
    mean distance of the repetitions' own ends, which is about the texts, and Student's interval of the mean of the
    repetitions, which is about the draws. The texts are the same in each. A figure that is measured once keeps its
    interval. One that is infinite anywhere is infinite, and repetitions where it is missing are left out.
    """
    groups: dict[tuple[str, ...], list[Score]] = {}
    for scores in repeats:
        for score in scores:
            groups.setdefault((score.subject, *score.key), []).append(score)
    return [_merge(group) for group in groups.values()]


def _merge(group: Sequence[Score]) -> Score:
    group = [score for score in group if score.value is not None] or group
    first = group[0]
    if len(group) == 1 or first.value is None:
        return first
    for score in group:
        if not math.isfinite(score.value or 0.0):
            return score
    values = np.array([score.value for score in group], np.float64)
    value = float(values.mean())
    if first.low is None or first.high is None:
        if (values == values[0]).all():
            return first
        below = above = 0.0
    else:
        below = float(np.mean([score.value - score.low for score in group]))  # type: ignore[operator]
        above = float(np.mean([score.high - score.value for score in group]))  # type: ignore[operator]
    spread = find_t_half(values)
    low, high = value - math.hypot(below, spread), value + math.hypot(above, spread)
    note = "; ".join(part for part in (first.note, f"mean of {len(values)} draws") if part)
    return replace(first, value=value, low=_inside(low, group), high=_inside(high, group), note=note)


def _inside(end: float, group: Sequence[Score]) -> float:
    """Return an end of an interval, within 0 and 1 where the figure is a share."""
    return min(max(end, 0.0), 1.0) if group[0].figure in _SHARES else end


def find_score(scores: Iterable[Score], subject: str, **wanted: str) -> Score | None:
    """Find the first score of a subject whose fields have these values; None where there is none."""
    for score in scores:
        if score.subject == subject and all(getattr(score, name) == value for name, value in wanted.items()):
            return score
    return None


def find_t_half(values: NDArray[Any]) -> float:
    """Half the width of Student's 95% interval of the mean. ``values``: float64 ``(draws,)``, at least two."""
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * values.std(ddof=1) / math.sqrt(len(values)))
