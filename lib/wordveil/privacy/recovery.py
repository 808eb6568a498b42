"""Recovery of words by the best attacker, as shares of words.

Bayes vulnerability (docs/proofs/recovery.md): nobody with the same prior recovers more words on average. Figures are
functions of public data alone, so they may be published. :mod:`wordveil.measures.recovery` measures them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeVar

Read = TypeVar("Read")
WORD, SUBJECT = "word", "subject"
"""Kinds of what an attacker recovers (:attr:`Recovery.of`)."""


@dataclass(frozen=True)
class Recovered:
    """Share of words that are guessed right after some draws.

    ``draws``: number of independent draws of one word that the attacker sees, 1 or more. ``at_least``, ``at_most``:
    bounds on the best attacker's share, equal if it is exact. ``at_most`` is None if only an attacker fitted on draws
    was measured: the best one may do better.
    """

    draws: int
    at_least: float
    at_most: float | None

    def __post_init__(self) -> None:
        highest = 1.0 if self.at_most is None else self.at_most
        if self.draws < 1 or not 0 <= self.at_least <= highest <= 1:
            raise ValueError(f"Expected draws of at least 1 and 0 <= at_least <= at_most <= 1, got {self}.")


@dataclass(frozen=True)
class PriorRecovery:
    """Recovery of words under one prior.

    ``before``: share of the likeliest word, which an attacker gets right without an output; above 0, at most 1.
    ``after``: shares by rising numbers of draws; the first is 1.
    """

    before: float
    after: tuple[Recovered, ...]

    def __post_init__(self) -> None:
        draws = [item.draws for item in self.after]
        if not 0 < self.before <= 1 or draws[:1] != [1] or draws != sorted(set(draws)):
            raise ValueError(f"Expected before in (0, 1] and rising draws from 1, got {self.before} and {draws}.")

    @property
    def leakage_at_least(self) -> float:
        """Multiplicative Bayes leakage: the ratio of words recovered after one draw and before."""
        return self.after[0].at_least / self.before

    @property
    def leakage_at_most(self) -> float | None:
        """Upper bound on the multiplicative Bayes leakage; None if none is known."""
        highest = self.after[0].at_most
        return None if highest is None else highest / self.before

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "before": self.before,
            "after": [asdict(item) for item in self.after],
            "leakage_at_least": round_figure(self.leakage_at_least),
            "leakage_at_most": None if self.leakage_at_most is None else round_figure(self.leakage_at_most),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned. Numbers may be strings, as in signed manifests."""
        return _read(cls, values)


@dataclass(frozen=True)
class Recovery:
    """Recovery of single words under a ``uniform`` prior, and under their ``frequency`` in public text.

    ``of``: what is recovered: a word, or the subject of a text.
    """

    uniform: PriorRecovery
    frequency: PriorRecovery
    of: str = WORD

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        other = {} if self.of == WORD else {"of": self.of}
        return {"uniform": self.uniform.to_dict(), "frequency": self.frequency.to_dict(), **other}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned."""
        return _read(cls, values)


def _read(kind: type[Read], values: Mapping[str, Any]) -> Read:
    from pydantic import TypeAdapter  # workers do without it

    return TypeAdapter(kind).validate_python(values)


def round_figure(value: float) -> float:
    """Round a figure to six digits: the last digits of sums and logarithms differ between machines."""
    return float(f"{value:.6g}")
