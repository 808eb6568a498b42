"""What a run did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunReport:
    """What a run did. Counts are of this run's input; nothing here is text.

    ``epsilon_bound`` and ``epsilon_pure`` are the least and the greatest price of a released record, None where there is
    none (no released record; no pure bound under the relation).
    """

    run_id: str
    release: str
    output: str
    records: int
    released: int
    quarantined: dict[str, int]
    tokens: int
    words: int
    unknown: int
    relation: str
    metric: str
    nominal_epsilon: float
    epsilon: float
    epsilon_bound: tuple[float, float] | None
    epsilon_pure: tuple[float, float] | None
    exposes: tuple[str, ...]
    mechanism_fingerprint: str
    policy_fingerprint: str
    key_fingerprint: str
    seconds: float
    notes: tuple[str, ...] = field(default=())

    @property
    def unknown_rate(self) -> float | None:
        """The share of words outside the vocabulary, in released records."""
        return self.unknown / self.words if self.words else None

    @property
    def tokens_per_second(self) -> float:
        """Tokens drawn a second, over the time from reading to the finished table."""
        return self.tokens / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**self.__dict__, "unknown_rate": self.unknown_rate, "tokens_per_second": self.tokens_per_second}
