"""Do draws that should be independent agree more often than chance?

Noise that is used twice is worse than little noise: two outputs of one word then say what one says, and two versions of
a text show where they differ. Outputs of one word are compared place by place: at two positions of a record, in two
records, and in two versions of a record that differ elsewhere.

**The test.** Two series ``x`` and ``y`` of outputs of one word are compared at every second place. At the other places
the values of ``y`` are put in random order first. Were all draws independent, both comparisons would agree with the
same probability, whatever the law of the outputs is; and as each draw takes part in one comparison, all of these
would be independent. Fisher's exact test says how probable so many more agreements are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from wordveil.audit.findings import Finding, Verdict
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.output_law import as_records
from wordveil.mechanisms.base import Mechanism

Outputs = NDArray[np.integer]
CLAIM = "Draws at other positions, in other records and in other versions of a record are independent."
LAGS = (1, 2**8, 2**16)
# How many pairs of places are compared, at least.
COMPARED = 2_000


@dataclass(frozen=True)
class Agreement:
    """How often two series agree at the same place, and how often by chance; of ``places`` each, and the p-value."""

    together: int
    apart: int
    places: int
    p_value: float


def compare_outputs(left: Outputs, right: Outputs, *, seed: int) -> Agreement:
    """Whether two series of outputs of one word agree more often than independent ones would; see the module.

    Parameters
    ----------
    left, right
        integers ``(places,)``: independent draws of one law, if the claim is true.
    seed
        of the random order.

    Raises
    ------
    ValueError
        where the series differ in length, or have fewer than four places.
    """
    if left.shape != right.shape or left.ndim != 1 or len(left) < 4:
        raise ValueError(f"Expected two series of one length, at least 4; got {left.shape} and {right.shape}.")
    even = len(left) // 2 * 2
    shuffled = np.random.default_rng(seed).permutation(right[1:even:2])
    together, apart = int((left[:even:2] == right[:even:2]).sum()), int((left[1:even:2] == shuffled).sum())
    places = even // 2
    p_value = float(hypergeom.sf(together - 1, 2 * places, together + apart, places))
    return Agreement(together, apart, places, min(p_value, 1.0))


def split_lag(drawn: Outputs, lag: int) -> tuple[Outputs, Outputs]:
    """Outputs of one series and those ``lag`` places later, each in one pair only."""
    first = np.arange(len(drawn) - lag)
    first = first[first // lag % 2 == 0]
    return drawn[first], drawn[first + lag]


def audit_repetition(
    mechanism: Mechanism[Any],
    keys: ReleaseKeys,
    words: Sequence[int],
    *,
    alpha: float,
    seed: int = 0,
    lags: Sequence[int] = LAGS,
) -> Finding:
    """Whether a mechanism's draws repeat between positions, records or versions of a record.

    Parameters
    ----------
    mechanism
        one that draws each word apart from others.
    keys
        no release's keys.
    words
        at least two words. Those that mostly stay themselves show nothing.
    alpha
        the probability that sound draws are refuted.
    seed
        which records.
    lags
        at which distances of positions draws are compared, where a record may be so long.
    """
    started = time.process_time()
    found: list[tuple[str, Agreement]] = []
    draws = 0
    for place, word in enumerate(words):
        for name, left, right in _draw_series(mechanism, keys, word, words[place - 1], seed, lags):
            found.append((name, compare_outputs(left, right, seed=seed)))
            draws += 2 * len(left)
    return summarise_agreements(found, alpha, draws, time.process_time() - started)


def summarise_agreements(found: Sequence[tuple[str, Agreement]], alpha: float, draws: int, seconds: float) -> Finding:
    """The finding ``repetition`` of some comparisons, by name, corrected for their number (Bonferroni)."""
    name, best = min(found, key=lambda one: one[1].p_value)
    p_value = min(best.p_value * len(found), 1.0)
    return Finding(
        test="repetition",
        verdict=Verdict.REFUTED if p_value <= alpha else Verdict.NOT_REFUTED,
        claim=CLAIM,
        evidence=f"{name}: {best.together:,} of {best.places:,} pairs of outputs are equal; by chance {best.apart:,}.",
        p_value=p_value,
        draws=draws,
        seconds=seconds,
    )


def _draw_series(
    mechanism: Mechanism[Any], keys: ReleaseKeys, word: int, other: int, seed: int, lags: Sequence[int]
) -> Iterator[tuple[str, Outputs, Outputs]]:
    """Pairs of series of one word's outputs, with what they have in common."""
    possible = [lag for lag in lags if lag + COMPARED <= mechanism.max_tokens]
    longest = max(possible, default=0) + COMPARED
    name = b"repetition %d %d" % (seed, word)
    drawn = _draw(mechanism, keys, np.full(longest, word), name)
    for lag in possible:
        yield f"positions {lag:,} apart", *split_lag(drawn, lag)
    part = drawn[:COMPARED]
    yield "two records", part, _draw(mechanism, keys, np.full(COMPARED, word), name + b" other")
    version = _draw(mechanism, keys, np.append(np.full(longest - 1, word), other), name)
    yield "two versions of a record that differ in their last word", part[:-1], version[: COMPARED - 1]


def _draw(mechanism: Mechanism[Any], keys: ReleaseKeys, ids: Outputs, name: bytes) -> Outputs:
    batch = as_records(ids.astype(np.int32), np.array([0, len(ids)]), [name], keys)
    return mechanism.draw(batch, keys).ids
