"""Metrics, and the unit in which epsilon counts their distance."""

from __future__ import annotations

from dataclasses import dataclass

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
