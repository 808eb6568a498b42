"""Test of whether draws that should be independent agree more often than by chance.

Reused noise is worse than too little noise: two versions of a text then show where they differ. Outputs of one word are
compared one by one: at two positions of a record, in two records, and in two versions of a record that differ
elsewhere.

**The test.** Two series ``x`` and ``y`` of outputs of one word are compared at every second index. At the others the
values of ``y`` are shuffled first. If all draws are independent, both comparisons agree with the same probability,
whatever the law of the outputs; and since each draw takes part in one comparison only, all comparisons are independent.
Fisher's exact test then gives the probability of so many more agreements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from wordveil.audit.findings import Finding, Verdict
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.base import Mechanism

Outputs = NDArray[np.integer]
CLAIM = "Draws at other positions, in other records and in other versions of a record are independent."
LAGS = (1, 2**8, 2**16)
# Least number of pairs of outputs to compare.
COMPARED = 2_000


@dataclass(frozen=True)
class Agreement:
    """Agreements of two series at the same index, and by chance, among ``pairs`` each; and the p-value."""

    together: int
    apart: int
    pairs: int
    p_value: float


def compare_outputs(left: Outputs, right: Outputs, *, seed: int) -> Agreement:
    """Test whether two series of outputs of one word agree more often than independent ones would; see the module.

    ``left``, ``right``: integers ``(draws,)``, independent draws of one law, if the claim is true. ``seed``: for the
    random order. Raises :class:`ValueError` if the series differ in length, or have fewer than four values.
    """
    if left.shape != right.shape or left.ndim != 1 or len(left) < 4:
        raise ValueError(f"Expected two series of one length, at least 4; got {left.shape} and {right.shape}.")
    even = len(left) // 2 * 2
    shuffled = np.random.default_rng(seed).permutation(right[1:even:2])
    together, apart = int((left[:even:2] == right[:even:2]).sum()), int((left[1:even:2] == shuffled).sum())
    p_value = float(hypergeom.sf(together - 1, even, together + apart, even // 2))
    return Agreement(together, apart, even // 2, min(p_value, 1.0))


def split_lag(drawn: Outputs, lag: int) -> tuple[Outputs, Outputs]:
    """Pair outputs of one series with those ``lag`` positions later, each in one pair only."""
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
    """Test whether a mechanism's draws repeat between positions, records or versions of a record.

    ``mechanism``: draws each word independently of the others. ``keys``: those of no release. ``words``: at least two;
    words that mostly stay themselves show nothing. ``alpha``: the probability that sound draws are refuted. ``seed``:
    for the records. ``lags``: distances of compared positions, if a record may be so long.
    """
    agreements: list[tuple[str, Agreement]] = []
    draws = 0
    for number, word in enumerate(words):
        for name, left, right in _draw_series(mechanism, keys, word, words[number - 1], seed, lags):
            agreements.append((name, compare_outputs(left, right, seed=seed)))
            draws += 2 * len(left)
    return summarise_agreements(agreements, alpha, draws)


def summarise_agreements(agreements: Sequence[tuple[str, Agreement]], alpha: float, draws: int) -> Finding:
    """Make the finding ``repetition`` of comparisons and their names, corrected for their number (Bonferroni)."""
    name, best = min(agreements, key=lambda named: named[1].p_value)
    p_value = min(best.p_value * len(agreements), 1.0)
    # If all pairs were equal: few pairs, or constant outputs, still could not refute anything.
    could_refute = any(
        hypergeom.sf(one.pairs - 1, 2 * one.pairs, one.pairs + one.apart, one.pairs) * len(agreements) <= alpha
        for _, one in agreements
    )
    verdict = Verdict.REFUTED if p_value <= alpha else Verdict.NOT_REFUTED
    evidence = f"{name}: {best.together:,} of {best.pairs:,} pairs of outputs are equal; by chance {best.apart:,}."
    power = None if could_refute else math.inf
    return Finding("repetition", verdict, CLAIM, evidence, p_value=p_value, power=power, draws=draws)


def _draw_series(
    mechanism: Mechanism[Any], keys: ReleaseKeys, word: int, other: int, seed: int, lags: Sequence[int]
) -> Iterator[tuple[str, Outputs, Outputs]]:
    """Yield pairs of series of one word's outputs, with the distinction of their draws."""
    possible = [lag for lag in lags if lag + COMPARED <= mechanism.max_tokens]
    longest = max(possible, default=0) + COMPARED
    name = b"repetition %d %d" % (seed, word)
    drawn = draw_tokens(mechanism, np.full(longest, word, np.int32), name, keys)
    for lag in possible:
        yield f"positions {lag:,} apart", *split_lag(drawn, lag)
    first = drawn[:COMPARED]
    yield "two records", first, draw_tokens(mechanism, np.full(COMPARED, word, np.int32), name + b" other", keys)
    version = draw_tokens(mechanism, np.append(np.full(longest - 1, word), other).astype(np.int32), name, keys)
    yield "two versions of a record that differ in their last word", first[:-1], version[: COMPARED - 1]
