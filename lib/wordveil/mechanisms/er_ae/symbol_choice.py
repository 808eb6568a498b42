r"""Choice of one symbol from a softmax of private origin: pure, whatever the softmax.

A row holds the weights of ``s`` columns (a softmax that is not normalised), and depends on private text. Any two rows
lead to a column with probabilities at most a factor ``e^E`` apart, ``E = eps / 2 + ln(s - 1)`` (docs/proofs/er-ae.md).
``sigma`` is the logistic function.

- ``softmax-rr``: draw a column from the row. Keep it with probability ``sigma(eps / 2)``, else take one of the other
  ``s - 1`` uniformly.
- ``two-set`` (Bo, Ding, Fung, Iqbal 2021, Algorithm 1): draw ``k`` columns from the row, with replacement. The distinct
  ones are the set; it has ``m`` columns, which hold a part ``P`` of the row. The set is rated by the mean ``P / m`` of
  its columns, its complement by ``(1 - P) / (s - m)``. Choose the set with probability ``sigma(eps / 2 * (the set's
  rating - the complement's))``, and a column of what is chosen uniformly. The set must never be shown: given it, the
  row is not hidden.

The authors' code rates a set by its sum and takes a second exponential step within it; here means, as in the paper's
text. Any ratings in [0, 1] lead to the same bounds of the coins.

**Whole numbers.** Coins are 64-bit thresholds from a table that the build computes, one for each of :data:`STEPS` steps
of the difference of ratings; the step is part of the rating. A column is drawn from a row by ``floor(word * total /
2^64)``, and from ``n`` equally likely ones by ``floor(word * n / 2^64)``. :meth:`SymbolChoice.certify` takes the least
and the most probability from these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
from scipy.special import logit

from wordveil.arrays import Int32, Int64, UInt32, UInt64, freeze
from wordveil.compiled import compiled
from wordveil.geometry.euclidean import round_up
from wordveil.scores.counts import bound_above, bound_below

# Every number of the loops is an unsigned 64-bit integer or a float64 of few, correctly rounded operations in a fixed
# order, so that every machine chooses the same columns.
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled
def scale_word(word: np.uint64, limit: np.uint64) -> np.uint64:
    """Compute ``floor(word * limit / 2**64)``, the upper half of a product of 128 bits."""
    high, low = word >> _HALF, word & _LOW
    upper, lower = limit >> _HALF, limit & _LOW
    first = high * lower + ((low * lower) >> _HALF)
    second = low * upper + (first & _LOW)
    return np.uint64(high * upper + (first >> _HALF) + (second >> _HALF))


@compiled
def find_step(share: float, items: int, columns: int, last: int) -> int:
    """Find the step, of a table of ``last + 1`` coins, for a set with ``share`` of the row.

    The step maps the set's mean probability less that of the other columns, between -1 and 1, to 0 .. ``last``. It
    rises with ``share``, rounding included, since each operation does.
    """
    rating = share / items - (1.0 - share) / (columns - items)
    return min(max(int((rating + 1.0) * (0.5 * last) + 0.5), 0), last)


@compiled
def draw_columns(row: UInt32, words: UInt64, drawn: Int64) -> np.uint64:
    """Draw a column for each word by the weights of ``row``, uniformly if all are 0. Return their sum.

    ``drawn``: receives the columns, rising.
    """
    total = np.uint64(0)
    for weight in row:
        total += np.uint64(weight)
    if total == np.uint64(0):
        for index in range(len(words)):
            drawn[index] = np.int64(scale_word(words[index], np.uint64(len(row))))
        drawn.sort()
        return total
    targets = np.empty(len(words), np.uint64)
    for index in range(len(words)):
        targets[index] = scale_word(words[index], total)
    targets.sort()
    column, below = 0, np.uint64(row[0])
    for index in range(len(words)):
        while below <= targets[index]:
            column += 1
            below += np.uint64(row[column])
        drawn[index] = column
    return total


@compiled
def choose_kept(weights: UInt32, rows: Int64, columns: int, coin: np.uint64, words: UInt64) -> Int32:
    """Draw a column for each token; keep it if word 1 is below ``coin``, or else draw another uniformly."""
    out = np.empty(len(rows), np.int32)
    drawn = np.empty(1, np.int64)
    for token in range(len(rows)):
        draw_columns(weights[rows[token], :columns], words[:1, token].copy(), drawn)
        if words[1, token] >= coin:
            other = np.int64(scale_word(words[2, token], np.uint64(columns - 1)))
            out[token] = other + (other >= drawn[0])
        else:
            out[token] = drawn[0]
    return out


@compiled
def choose_from_sets(
    weights: UInt32, rows: Int64, columns: int, candidates: int, coins: UInt64, words: UInt64
) -> Int32:
    """Draw ``candidates`` columns for each token; a coin decides whether the output is uniform in or outside them."""
    out = np.empty(len(rows), np.int32)
    drawn = np.empty(candidates, np.int64)
    for token in range(len(rows)):
        row = weights[rows[token], :columns]
        total = draw_columns(row, words[:candidates, token].copy(), drawn)
        items, held = 0, np.uint64(0)
        for column in drawn:
            if items == 0 or drawn[items - 1] != column:
                drawn[items] = column
                items += 1
                held += np.uint64(row[column])
        share = items / columns if total == np.uint64(0) else np.float64(held) / np.float64(total)
        coin = coins[find_step(share, items, columns, len(coins) - 1)]
        if words[candidates, token] < coin:
            out[token] = drawn[np.int64(scale_word(words[candidates + 1, token], np.uint64(items)))]
            continue
        other = np.int64(scale_word(words[candidates + 1, token], np.uint64(columns - items)))
        for item in range(items):  # they rise: each that is not beyond moves the column by 1
            if drawn[item] <= other:
                other += 1
        out[token] = other
    return out


STEPS = 2**14
"""Number of steps of the difference of two ratings, from -1 to 1."""
CHOICES = 2**16
"""Number of choices that show epsilon to an audit."""
_WHOLE = 2**64


def make_coins(epsilon: float) -> UInt64:
    """Count the words, of all 2^64, for which a coin falls on the set: uint64 ``(STEPS + 1,)``.

    Their share is ``sigma(eps / 2 * x)`` for ``x`` from -1 to 1, rounded towards a half so that neither side gets more
    than its share; at least one word falls on each. Raises :class:`ValueError` unless epsilon is positive and finite.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"Expected epsilon={epsilon} in (0, inf).")
    middle = STEPS // 2
    with localcontext(prec=60):
        ratio, power, upper = (-Decimal(epsilon) / STEPS).exp(), Decimal(1), []
        for _ in range(middle + 1):
            upper.append(min(int(_WHOLE / (1 + power)), _WHOLE - 1))
            power *= ratio
    return np.array([_WHOLE - coin for coin in upper[:0:-1]] + upper, np.uint64)


@dataclass(frozen=True)
class SymbolChoice:
    """Choice of one of ``columns`` symbols.

    ``coins``: uint64 ``(STEPS + 1,)`` (:func:`make_coins`). ``candidates``: columns drawn for the set, ``k``; 0 for
    ``softmax-rr``.
    """

    coins: UInt64
    columns: int
    candidates: int = 0

    def __post_init__(self) -> None:
        if self.coins.shape != (STEPS + 1,):
            raise ValueError(f"Expected coins of shape ({STEPS + 1},), got {self.coins.shape}.")
        least = max(self.candidates, 0) + 2
        if not (self.candidates >= 0 and least <= self.columns < 2**31):
            raise ValueError(f"Expected columns={self.columns} of at least {least} for candidates={self.candidates}.")

    @property
    def blocks(self) -> int:
        """Number of blocks of two random words that a choice takes."""
        return (max(self.candidates, 1) + 3) // 2

    # Frozen: golden outputs; raise sampler_version.
    def draw(self, weights: UInt32, rows: Int64, words: UInt64) -> Int32:
        """Choose a column for each token: int32 ``(count,)``.

        ``weights``: uint32 ``(any, columns or more)``, unnormalised softmaxes; only the first ``columns`` count, as
        uniform if all are 0. ``rows``: int64 ``(count,)``. ``words``: uint64 ``(2 * blocks, count)``, independent and
        uniform.
        """
        if self.candidates:
            return choose_from_sets(weights, rows, self.columns, self.candidates, freeze(self.coins), words)
        return choose_kept(weights, rows, self.columns, self.coins[-1], words)

    def certify(self) -> float:
        """Bound the loss of a choice between any two rows, in nats, rounded up, from its whole numbers."""
        # By the module's proof each column's probability is an average over drawn sets, so that it lies between the
        # least and the most that a column has given any set. These are ratios of words of 128 bits: counted exactly,
        # for sets of each size and both ends of the ratings, they bound the loss between any two rows.
        bounds = [bound for items in range(1, max(self.candidates, 1) + 1) for bound in self._bounds(items)]
        with localcontext(prec=60):
            loss = float((Decimal(max(bounds)) / Decimal(min(bounds))).ln())
        return round_up(loss * (1 + 1e-15), 12)

    def largest_loss(self) -> float:
        """Compute the loss between two rows with all their weight on one column each: the largest of any two."""
        kept = int(self.coins[-1])
        return math.log(kept) + math.log(self.columns - 1) - math.log(_WHOLE - kept)

    def find_epsilon(self, alpha: float, random_words: Callable[[tuple[int, int]], UInt64]) -> tuple[float, float]:
        """Estimate an interval for epsilon from :data:`CHOICES` choices of a row with all its weight on one column.

        The choice keeps that column with probability ``sigma(epsilon / 2)``. ``alpha``: probability of an epsilon
        outside.
        """
        row = np.zeros((1, self.columns), np.uint32)
        row[0, 0] = 2**31
        words = random_words((2 * self.blocks, CHOICES))
        kept = int((self.draw(row, np.zeros(CHOICES, np.int64), words) == 0).sum())
        low, high = bound_below(kept, CHOICES, alpha / 2), bound_above(kept, CHOICES, alpha / 2)
        return 2 * float(logit(low)), 2 * float(logit(high))

    def _bounds(self, items: int) -> tuple[int, int, int, int]:
        """Compute the least and most of 2^128 for a column in a set of ``items``, and for one outside it."""
        others, last = self.columns - items, STEPS
        shares = (0.0, 1.0) if self.candidates else (1.0, 1.0)
        low, high = (int(self.coins[find_step(share, items, self.columns, last)]) for share in shares)
        return (
            low * (_WHOLE // items),
            high * -(-_WHOLE // items),
            (_WHOLE - high) * (_WHOLE // others),
            (_WHOLE - low) * -(-_WHOLE // others),
        )
