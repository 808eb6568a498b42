"""Guarantee for the replacement of one token: its metric and its certified constants."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

DISCRETE = "discrete"
"""Name of a metric under which any two words are at distance 1."""
TEXTS = "texts"
"""Name of a metric under which any two symbols of whole texts are at distance 1."""
CAPPED = "-capped"
"""Suffix of the name of a metric whose distances stop growing at gamma."""


@dataclass(frozen=True)
class Metric:
    """Distance between the symbols of one vocabulary (words, unknown word, padding).

    Epsilons add up only under one metric. Two embeddings, or one embedding with padding at two heights, are different
    metrics even if both are Euclidean: ``digest`` (hexadecimal) identifies the stored points.
    """

    name: str
    digest: str

    @property
    def identifier(self) -> str:
        """Name as written in the ``privacy`` column: ``euclidean:1f0c9a...``."""
        return f"{self.name}:{self.digest[:16]}"

    @property
    def is_discrete(self) -> bool:
        """True if any two symbols are at distance 1."""
        return self.name in (DISCRETE, TEXTS)

    @property
    def is_capped(self) -> bool:
        return self.name.endswith(CAPPED)


def uncap(name: str) -> str:
    """Remove the cap from the name of a metric, if it has one."""
    return name.removesuffix(CAPPED)


@dataclass(frozen=True)
class WordGuarantee:
    """Metric differential privacy of one token.

    For all symbols ``w``, ``v`` and every set ``S`` of outputs, ``P_w(S) <= exp(epsilon * d(w, v) + slack) P_v(S) +
    delta``. If ``delta`` is 0, that is a bound on the log probability ratio.

    ``metric``: the distance ``d``. ``nominal_epsilon``: as configured, per unit of ``d``. ``epsilon``: the constant
    that is true, per unit of ``d``. ``diameter``: upper bound on the largest ``d(w, v)`` over all symbols, unknown word
    and padding included. ``slack``: effect of integer or rounded arithmetic per token, beyond the distance.
    ``largest``: largest loss between any two symbols, if the build computed it from the mechanism; None if only
    ``epsilon * diameter + slack`` is known. ``delta``: probability, per token and between any two symbols, of exceeding
    the bound, since noise drawn from finitely many bits has a largest length; 0 if the arithmetic is exact. Proved for
    noise whose directions and radii are real numbers; the effect of their finite grids and of rounding in float64 is
    not.
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
        """Bound the loss of one token between symbols ``distance`` apart, in nats: ``epsilon * distance + slack``.

        It is exceeded with a probability of at most ``delta``. No symbols are farther apart than the diameter, so the
        bound is :attr:`pure` from there on. At distance 0 it is ``slack``: two words may share a point but not a row.
        Raises :class:`ValueError` if the distance is negative or NaN.
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
"""Name of a metric under which any two corpora that differ are at distance 1."""


def charge_corpus(guarantee: WordGuarantee, weights: str, n_max: int, max_records: int) -> WordGuarantee:
    """Convert the guarantee of one symbol, valid under any weights, to one between any two corpora.

    Every draw from weights that the private corpus trained depends on every record, and each record pays for all that
    will ever be drawn (:attr:`wordveil.privacy.events.Composition.CORPUS`). That is true only if all of it is drawn at
    one price, and counted in one ledger. So the metric's digest covers all that decides the price: weights, price,
    ``n_max`` and ``max_records``. A ledger with a draw under one metric accepts none under another.

    ``weights``: their identifier (:attr:`wordveil.mechanisms.base.Mechanism.private_weights`). ``max_records``: the
    most records that are ever drawn from them. :attr:`WordGuarantee.pure` and delta stay as they are.
    """
    named = f"{weights} {guarantee.pure.hex()} {guarantee.delta.hex()} {n_max} {max_records}"
    metric = Metric(CORPUS_METRIC, hashlib.sha256(named.encode()).hexdigest())
    return WordGuarantee(metric, guarantee.nominal_epsilon, guarantee.pure, diameter=1.0, delta=guarantee.delta)
