"""Meaning of epsilon for mechanisms that draw whole texts: subjects that stay, and links, for numbers of clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.evaluation.linkage import CANDIDATES, bound_linkage
from wordveil.measures.estimates import Estimator
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.scores.counts import find_detectable, find_share_interval
from wordveil.scores.score import Accuracy, Measurement, Score

CLUSTERS = (16, 37, 64, 100, 200, 400)
"""Numbers of clusters that are shown beside the configured one."""


@dataclass(frozen=True)
class TextMeaning:
    """Meaning of an epsilon and a number of clusters.

    ``stays``: the probability that a text keeps its subject. ``linked``: the share of 10,000 records that the best
    attacker links to their originals, where all subjects are equally frequent. ``at_most``: the probability that one
    record is linked, whatever its subject. ``counted``: the records of 10,000 from which on an analyst can tell that a
    subject is there at all (:meth:`wordveil.measures.estimates.Estimator.find_least_count`). ``accuracy``: the share of
    the texts of a public sample whose label the drawn subject tells; None without a sample, or for the ``problem`` that
    so many subjects have.
    """

    epsilon: float
    clusters: int
    stays: float
    linked: float
    at_most: float
    counted: int
    accuracy: Score | None = None
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**vars(self), "accuracy": self.accuracy and self.accuracy.to_dict()}


def measure_text_meaning(epsilons: Sequence[float], clusters: int) -> list[TextMeaning]:
    """Measure epsilons, each with ``clusters`` and with :data:`CLUSTERS`, by the law of randomised response.

    The best attacker names one of the candidates of the drawn subject, of which there are ``1 / clusters`` of all.
    """
    rows = []
    for epsilon in epsilons:
        for count in sorted({*CLUSTERS, clusters}):
            stays = 1 / (1 + count * math.exp(-epsilon))
            linked = stays * min(count / CANDIDATES, 1)
            counted = Estimator(SymbolLaw.of_response(epsilon, count + 1)).find_least_count(CANDIDATES)
            rows.append(TextMeaning(epsilon, count, stays, linked, bound_linkage(epsilon, CANDIDATES), counted))
    return rows


def judge_subjects(symbols: Int32, labels: Int64, is_learned: Bool, laws: Float64) -> Score:
    """Measure the share of texts whose label is the most frequent one of their drawn symbol, exactly by the law.

    ``symbols``: of each text, its row of ``laws``, float64 ``(rows, outputs)``, the probabilities of its draws.
    ``is_learned``: the texts that tell which label is the most frequent one; the others are judged.
    """
    counts = np.zeros((len(laws), int(labels.max()) + 1))
    np.add.at(counts, (symbols[is_learned], labels[is_learned]), 1.0)
    likeliest = (laws.T @ counts).argmax(axis=1)
    named = laws @ (likeliest[:, None] == np.arange(counts.shape[1]))  # probability of a label, by a text's symbol
    judged = labels[~is_learned]
    hits, count = float(named[symbols[~is_learned], judged].sum()), len(judged)
    chance = float(np.bincount(judged).max() / count)
    low, high = find_share_interval(hits, count)
    accuracy = Accuracy(hits / count, low, high, chance, count, find_detectable(chance, count))
    return Measurement("sample", "labels", "most-frequent").make_accuracy(
        accuracy, "Share of texts whose label is the most frequent one of their drawn subject in the other half."
    )
