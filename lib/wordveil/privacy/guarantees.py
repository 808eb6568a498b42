"""Guarantee of one token's replacement: the metric in which epsilon counts, the certified constants."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

CAPPED = "-capped"
"""Suffix of the name of a metric whose distances stop growing at gamma."""


@dataclass(frozen=True)
class Metric:
    """Distance between the symbols of one vocabulary (words, unknown word, padding).

    Epsilons add up only under the same metric. Two embeddings, or one embedding with padding at two heights, are
    different metrics even if both are Euclidean: ``digest`` (hexadecimal) identifies the stored points.
    """

    name: str
    digest: str

    @property
    def identifier(self) -> str:
        """Name as written in the ``privacy`` column: ``euclidean:1f0c9a...``."""
        return f"{self.name}:{self.digest[:16]}"

    @property
    def is_capped(self) -> bool:
        """True if distances stop growing at gamma."""
        return self.name.endswith(CAPPED)


def uncap(name: str) -> str:
    """Remove the cap from the name of a metric, if it has one."""
    return name.removesuffix(CAPPED)


@dataclass(frozen=True)
class WordGuarantee:
    """Metric differential privacy of one token.

    For all symbols ``w``, ``v`` and every set ``S`` of outputs, ``P_w(S) <= exp(epsilon * d(w, v) + slack) P_v(S) +
    delta``. Where ``delta`` is 0, that is a bound of the log probability ratio.

    ``metric``: the distance ``d``. ``nominal_epsilon``: as configured, per unit of ``d``. ``epsilon``: the constant
    that is true, per unit of ``d``. ``diameter``: an upper bound of the largest ``d(w, v)`` over all symbols, unknown
    word and padding included. ``slack``: what integer or rounded arithmetic adds per token, beyond the distance.
    ``largest``: the largest loss between any two symbols, where the build computed it from the mechanism itself; None
    where only ``epsilon * diameter + slack`` is known. ``delta``: the probability, per token and between any two
    symbols, by which the bound may be exceeded, since noise drawn from finitely many bits has a largest length; 0 where
    the arithmetic is exact. Proved for noise whose directions and radii are real numbers; the effect of their finite
    grids and of rounding in float64 is not.
    """

    metric: Metric
    nominal_epsilon: float
    epsilon: float
    diameter: float
    slack: float = 0.0
    delta: float = 0.0
    largest: float | None = None

    def __post_init__(self) -> None:
        for name in ("nominal_epsilon", "epsilon", "diameter", "slack", "delta"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"Expected {name}={value} in [0, inf).")
        if self.largest is not None and not 0 <= self.largest < math.inf:
            raise ValueError(f"Expected largest={self.largest} in [0, inf).")

    def bound(self, distance: float) -> float:
        """Bound the loss of one token between two symbols at most ``distance`` apart.

        The bound is ``epsilon * distance + slack``. Beyond the diameter there are no symbols, so it is :attr:`pure`
        from there on, for an infinite distance too. It is exceeded with a probability of at most ``delta``.

        ``distance``: in units of ``metric``, 0 or more. The loss is finite, in nats. At distance 0 it is ``slack``: two
        words may share a point and not a row. Raises :class:`ValueError` if the distance is negative or NaN.
        """
        if not distance >= 0:
            raise ValueError(f"Expected distance={distance} in [0, inf].")
        bound = self.epsilon * min(distance, self.diameter) + self.slack
        return bound if self.largest is None else min(bound, self.largest)

    @property
    def pure(self) -> float:
        """Bound on the loss of one token between any two symbols: ``bound(diameter)``, in nats."""
        return self.bound(self.diameter)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> WordGuarantee:
        """Read the values of a manifest."""
        return cls(**{**values, "metric": Metric(**values["metric"])})


CORPUS_METRIC = "corpus"
"""The name of a metric under which any two corpora that differ are at distance 1."""


def charge_corpus(guarantee: WordGuarantee, weights: str, n_max: int, max_records: int) -> WordGuarantee:
    """Convert the guarantee of one symbol to one between any two corpora.

    Every draw from weights that the private corpus trained depends on every record, and each record pays for all that
    will ever be drawn (:attr:`wordveil.privacy.events.Composition.CORPUS`). That is true only if all of it is drawn at
    one price, and counted in one ledger. So all that decides the price enters the digest of the metric: draws at
    another price have another metric, and a ledger with a draw under one accepts none under another.

    ``guarantee``: what it guarantees between any two texts, whatever the weights are. ``weights``: what identifies the
    weights (:attr:`wordveil.mechanisms.base.Mechanism.private_weights`). ``n_max``: the public number of tokens of a
    record. ``max_records``: the most records that are ever drawn from the weights. The converted guarantee has the same
    :attr:`WordGuarantee.pure` and delta. Its metric identifies weights, price and both numbers.
    """
    named = f"{weights} {guarantee.pure.hex()} {guarantee.delta.hex()} {n_max} {max_records}"
    metric = Metric(CORPUS_METRIC, hashlib.sha256(named.encode()).hexdigest())
    return WordGuarantee(metric, guarantee.nominal_epsilon, guarantee.pure, diameter=1.0, delta=guarantee.delta)
