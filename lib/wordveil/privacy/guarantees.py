"""Guarantee of one token's replacement."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from wordveil.privacy.metrics import Metric


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

        ``distance``: in units of ``metric``, 0 or more.

        Returns
        -------
        float
            the loss in nats, finite. At distance 0 it is ``slack``: two words may share a point and not a row.

        Raises
        ------
        ValueError
            where the distance is negative or NaN.
        """
        if not distance >= 0:
            raise ValueError(f"Expected distance={distance} in [0, inf].")
        bound = self.epsilon * min(distance, self.diameter) + self.slack
        return bound if self.largest is None else min(bound, self.largest)

    @property
    def pure(self) -> float:
        """Bound on the loss of one token between any two symbols: ``bound(diameter)``, in nats."""
        return self.bound(self.diameter)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a manifest."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> WordGuarantee:
        """Read what :meth:`to_dict` returned."""
        return cls(**{**values, "metric": Metric(**values["metric"])})
