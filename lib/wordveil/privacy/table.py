"""Promise of a shuffled table, and what it is for a number of rows (docs/proofs/shuffling.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TIE = 2.0**-60
"""Probability that two rows have equal places in the secret order."""
MOST_ROWS = 10**10


@dataclass(frozen=True)
class TablePrivacy:
    """Central guarantee of a table for replacing the text of one of its records, for everyone who sees it.

    ``local_epsilon``: the loss of the record's own draw, which holds for whoever can tie its row to the record.
    ``records``: all rows that are published together. ``groups``: the number of groups of equal kept columns.
    ``rows``: of the smallest group, by which ``epsilon`` holds with ``delta``. ``symbols``: the number of symbols of
    randomised response, or None for any randomiser.
    """

    local_epsilon: float
    epsilon: float
    delta: float
    records: int
    groups: int
    rows: int
    symbols: int | None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TablePrivacy:
        """Read plain values, in which numbers may be strings, as in signed manifests."""
        from pydantic import TypeAdapter  # workers do without it

        return TypeAdapter(cls).validate_python(values)

    def is_true(self) -> bool:
        """Return whether ``epsilon`` follows from the other figures, with a delta below one over the records."""
        terms = TableTerms(self.local_epsilon, self.symbols, self.epsilon, self.delta)
        is_counted = self.rows >= 1 and self.groups >= 1 and self.rows * self.groups <= self.records
        is_counted &= 0 < self.delta * self.records < 1 and self.local_epsilon > 0
        try:
            return is_counted and (self.epsilon >= self.local_epsilon or terms.holds_for(self.rows))
        except ValueError:  # no figures of a table
            return False


@dataclass(frozen=True)
class TableTerms:
    """Terms of shuffled tables: the promised ``epsilon`` and ``delta``, for draws of a loss of ``local_epsilon``."""

    local_epsilon: float
    symbols: int | None
    epsilon: float
    delta: float

    def holds_for(self, rows: int) -> bool:
        """Return whether the promise holds for a group of so many rows."""
        from wordveil.privacy.shuffling import bound_delta  # it loads NumPy, which the command line does without

        if rows < 1:
            return False
        bound = bound_delta(self.local_epsilon, rows, self.epsilon, self.symbols)
        return bound + rows * _TIE <= self.delta

    def find_least_rows(self) -> int | None:
        """Find the smallest group for which the promise holds, to a hundredth.

        Return None beyond :data:`MOST_ROWS`, and where delta is not below one over so many rows.
        """
        guess = self.local_epsilon + math.log(-math.log(self.delta)) - 2 * math.log(self.epsilon)
        high = max(1, round(math.exp(min(guess, math.log(MOST_ROWS)))))
        while not self.holds_for(high):
            if high == MOST_ROWS:
                return None
            high = min(4 * high, MOST_ROWS)
        low = high
        while low > 1 and self.holds_for(low):
            low, high = low // 4, low
        while high - low > max(1, high // 100):
            middle = round(math.sqrt(low * high)) if low else high // 2
            middle = min(max(middle, low + 1), high - 1)
            low, high = (low, middle) if self.holds_for(middle) else (middle, high)
        return high if high * self.delta < 1 else None

    def measure(self, rows: int, groups: int = 1, records: int | None = None) -> TablePrivacy:
        """Compute what a table is whose smallest group has so many rows. ``records``: all rows; by default those."""
        from wordveil.privacy.shuffling import bound_epsilon

        epsilon = self.local_epsilon
        if (delta := self.delta - rows * _TIE) > 0:
            epsilon = bound_epsilon(epsilon, rows, delta, self.symbols)
        return TablePrivacy(
            self.local_epsilon, epsilon, self.delta, records or rows * groups, groups, rows, self.symbols
        )
