"""What is certified of a system, and what the best attacker recovers of single words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64
from wordveil.artifacts.bundle import open_bundle
from wordveil.measures.calibration.meaning import BOUND, Pairs, find_neighbours, measure_loss
from wordveil.measures.recovery import guess_outputs
from wordveil.scores.score import Group, Measurement, Score
from wordveil_research.field.rows import DEMO, Block, Row
from wordveil_research.field.systems import Laboratory, System
from wordveil_research.peers.laws import line_recovery, list_laws
from wordveil_research.peers.processes import DIFFRACTOR, MLDP_TEXT, PYPANTERA, Peer, make_environment

PRIORS = ("uniform", "public")
WORST, KNOWN, NEAREST_LOSS, EPSILON = "worst-loss", "worst-loss-known-words", "nearest-neighbour-loss", "epsilon"
RECOVERED = "recovered"
_DEFINITIONS = {
    EPSILON: "The mechanism's own parameter.",
    WORST: "The largest log probability ratio of a token's outputs between any two inputs, unknown words too, in nats.",
    KNOWN: "The same between two words that the mechanism knows.",
    NEAREST_LOSS: "The same between a word and its nearest neighbour in the embedding, in nats: the median of 200 "
    "words evenly spread over the vocabulary.",
    RECOVERED: "The share of words that the best guesser gets right from one output, who knows the mechanism and how "
    "likely each word is.",
}


@dataclass(frozen=True)
class _Recovered:
    value: float | None
    note: str = ""


def score_privacy(laboratory: Laboratory, row: Row, block: Block, system: System) -> list[Score]:
    """Return the figures of one system that need no text."""
    subject = row.subject(block)
    if not system.is_there:
        return [make_figure(subject, WORST, "token", None, system.reason)]
    losses = [
        make_figure(subject, WORST, "token", system.worst_loss, system.reason),
        make_figure(subject, KNOWN, "token", system.known_loss),
        make_figure(subject, NEAREST_LOSS, "token", *measure_nearest_loss(laboratory, row, system)),
    ]
    if system.epsilon is not None:
        losses.insert(0, make_figure(subject, EPSILON, "token", system.epsilon))
    for prior in PRIORS:
        found = measure_recovered(laboratory, row, block, system, prior)
        chance = float(laboratory.matcher(row.embedding).law(prior).max())
        losses.append(make_figure(subject, RECOVERED, prior, found.value, found.note, chance))
    return losses


def make_figure(
    subject: str, figure: str, task: str, value: float | None, note: str = "", chance: float | None = None
) -> Score:
    """Make a figure of a mechanism, which has no interval."""
    method = "mechanism" if figure != RECOVERED else "best-guesser"
    return Measurement(subject, task, method, Group.PRIVACY).make_score(
        figure,
        value,
        None,
        0,
        _DEFINITIONS[figure],
        chance=chance,
        higher_is_better=False if figure != EPSILON else None,
        note=note,
    )


def measure_recovered(laboratory: Laboratory, row: Row, block: Block, system: System, prior: str) -> _Recovered:
    """Measure what the best attacker recovers, under a prior."""
    matcher = laboratory.matcher(row.embedding)
    law = matcher.law(prior)
    epsilon = system.epsilon or 0.0
    if row.peer == DIFFRACTOR:
        order = laboratory.order(make_environment(DIFFRACTOR, laboratory.environments))
        return _Recovered(line_recovery(law[order], epsilon))
    if row.peer == PYPANTERA:
        return _Recovered(float(guess_outputs(list_laws(*laboratory.nearest(), epsilon), law)[1].sum()))
    if row.peer == MLDP_TEXT:
        like = laboratory.laplace_at(system, block)
        return _Recovered(matcher.recover(like, prior), "by laplace with the same epsilon, whose search is exact")
    if row.peer is not None:
        return _Recovered(None, "it replaces spans, no single words")
    if not system.bundle:
        return _Recovered(1.0)
    mechanism = open_bundle(Path(system.bundle)).mechanism
    known = mechanism.word_laws() is not None or mechanism.probabilities(0) is not None
    note = "" if known else f"at least this: by a guesser that was fitted on {matcher.draws:,} draws"
    return _Recovered(matcher.recover(mechanism, prior), note)


def measure_nearest_loss(laboratory: Laboratory, row: Row, system: System) -> tuple[float, str]:
    """Measure the median loss between a word and its nearest neighbour, and what to know of it."""
    if row.peer is None and not system.bundle:
        return math.inf, ""
    matcher = laboratory.matcher(row.embedding)
    pairs = find_neighbours(matcher.embedding, "euclidean" if row.embedding == DEMO else "hyperbolic")
    if row.peer is not None:
        return _measure_peer(laboratory, row.peer, system, pairs)
    bundle = open_bundle(Path(system.bundle))
    return measure_loss(bundle.mechanism, bundle.guarantee, pairs)


def _measure_peer(laboratory: Laboratory, peer: Peer, system: System, found: Pairs) -> tuple[float, str]:
    words, neighbours, distances = found
    epsilon = system.epsilon or 0.0
    if peer == MLDP_TEXT:
        return float(np.median(epsilon * distances)), BOUND
    if peer == DIFFRACTOR:
        place = np.argsort(laboratory.order(make_environment(DIFFRACTOR, laboratory.environments)))
        return float(np.median(epsilon * np.abs(place[words] - place[neighbours]))), ""
    if peer == PYPANTERA:
        laws = list_laws(*laboratory.nearest(), epsilon)
        listed = laws.ids.reshape(len(laws.shares), -1)
        weights = laws.extras.reshape(listed.shape)
        return float(np.median([_sparse_loss(listed, weights, *pair) for pair in _pairs(words, neighbours)])), ""
    return math.inf, "it hides no words as such"


def _pairs(words: NDArray[np.int64], neighbours: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(words.tolist(), neighbours.tolist(), strict=True))


def _sparse_loss(listed: NDArray[np.int32], weights: Float64, word: int, other: int) -> float:
    if set(listed[word].tolist()) != set(listed[other].tolist()):
        return math.inf
    order, others = np.argsort(listed[word]), np.argsort(listed[other])
    return float(np.abs(np.log(weights[word][order]) - np.log(weights[other][others])).max())
