"""Meaning of epsilon for mechanisms that draw whole texts: subjects that stay, and links, for numbers of clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordveil.evaluation.linkage import CANDIDATES, bound_linkage

CLUSTERS = (16, 37, 64, 100, 200, 400)
"""Numbers of clusters that are shown beside the configured one."""


@dataclass(frozen=True)
class TextMeaning:
    """Meaning of an epsilon and a number of clusters.

    ``stays``: the probability that a text keeps its subject. ``linked``: the share of 10,000 records that the best
    attacker links to their originals, where all subjects are equally frequent. ``at_most``: the probability that one
    record is linked, whatever its subject.
    """

    epsilon: float
    clusters: int
    stays: float
    linked: float
    at_most: float


def measure_text_meaning(epsilons: Sequence[float], clusters: int) -> list[TextMeaning]:
    """Measure epsilons, each with ``clusters`` and with :data:`CLUSTERS`, by the law of randomised response.

    The best attacker names one of the candidates of the drawn subject, of which there are ``1 / clusters`` of all.
    """
    rows = []
    for epsilon in epsilons:
        for count in sorted({*CLUSTERS, clusters}):
            stays = 1 / (1 + count * math.exp(-epsilon))
            linked = stays * min(count / CANDIDATES, 1)
            rows.append(TextMeaning(epsilon, count, stays, linked, bound_linkage(epsilon, CANDIDATES)))
    return rows
