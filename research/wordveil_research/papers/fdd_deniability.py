"""Table IV of Feyisetan, Diethe, Drake (ICDM 2019): how deniable words are after hyperbolic and Euclidean noise.

A word is drawn 1,000 times. ``N_w`` is how often it stays itself, and ``S_w`` how many different words come out. Of
these ``K_w`` lie below the one that comes out, on average, in the package's pairs of hypernyms (section VI-B;
:mod:`wordveil.measures.calibration.statistics`). The paper sets epsilon so that the worst word of both spaces has the
same ``N_w``, and compares the means over words: at an equal worst case its hyperbolic noise leaves an average word more
than 20 times as deniable.

Here epsilon is found by bisection on the mechanisms' own draws, with the same keys at each step, over the words that
both embeddings share. Since an epsilon counts distances of its own space, each row also has the true constant, and the
loss that it allows between a word and its nearest neighbour: equal ``N_w`` is not equal privacy.

Other rows have the noise as the paper prints it, in its 100 dimensions (:mod:`wordveil_research.papers.printed_noise`),
beside the Moebius translation of the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.embeddings.embedding import DEMO, DEMO_POINCARE, Embedding, check_embedding, load
from wordveil.measures.calibration.statistics import WordHierarchy
from wordveil.measures.recovery import load_built
from wordveil.measures.search import find_epsilon
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Group, Measurement, Score, find_mean_interval
from wordveil_research.papers.printed_noise import Walk, add, find_nearest, translate
from wordveil_research.papers.repeats import find_score
from wordveil_research.papers.rows import POINCARE_2, POINCARE_100, find_near, load_embedding
from wordveil_research.papers.tables import merge_cells
from wordveil_research.runner.base import Cell, Experiment, Surroundings

DRAWS = 1_000
TARGETS = (100, 200, 400, 700)
"""The ``N_w`` of the worst word: the paper compares at such values."""
LOSSES = (5.0, 10.0, 20.0, 40.0, 70.0)
"""The certified losses between a word and its nearest neighbour, at which mechanisms are compared besides."""
WALKS = tuple(
    Walk(epsilon, sigma, steps)
    for epsilon in (0.125, 8.0)
    for sigma in (1.0, 0.1, 0.01, 0.001)
    for steps in (100, 1_000)
)
"""The settings of the printed noise: the paper states none but epsilon."""
PRINTED = {"as printed": add, "Moebius": translate}
"""How the noise of a walk moves a word."""
# Precision in the logarithm of epsilon.
_FINE = 0.01
_MOST = 300.0


@dataclass(frozen=True)
class Contender:
    """A mechanism over an embedding (:func:`wordveil_research.papers.rows.load_embedding`), by default the run's."""

    mechanism: str
    embedding: str = ""


CONTENDERS = {
    "laplace": Contender("laplace"),
    "hyperbolic-fdd, 10-D": Contender("hyperbolic-fdd", DEMO_POINCARE),
    "hyperbolic-fdd, 2-D": Contender("hyperbolic-fdd", POINCARE_2),
    "hyperbolic-laplace, 2-D": Contender("hyperbolic-laplace", POINCARE_2),
}


@dataclass(frozen=True)
class Counts:
    """What 1,000 draws of each word gave: ``N_w`` and ``S_w``, int64 ``(words,)``, and how often each output came,
    int64 ``(words, outputs)``.
    """

    stays: NDArray[np.int64]
    outputs: NDArray[np.int64]
    came: NDArray[np.int64]


class FDDTable4(Experiment):
    """See the module."""

    name: ClassVar[str] = "fdd-table4"
    title: ClassVar[str] = "Deniability at an equal worst case (Feyisetan, Diethe, Drake 2019, Table IV)"
    version: ClassVar[int] = 3
    embedding: ClassVar[str] = DEMO

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan each mechanism at each target, and at each loss; each walk of the printed noise."""
        words, targets, losses = (10, TARGETS[-1:], LOSSES[1:2]) if around.is_quick else (50, TARGETS, LOSSES)
        cells = [
            Cell(f"{name}, {part} {value:g}", {"row": name, "part": part, "value": value, "words": words})
            for part, values in ((_WORST, targets), (_NEAREST, losses))
            for value in values
            for name in CONTENDERS
        ]
        embedding, walks = (POINCARE_2, WALKS[:1]) if around.is_quick else (POINCARE_100, WALKS)
        for walk in walks:
            settings = {"part": _PRINTED, "words": words, "embedding": embedding, **asdict(walk)}
            cells.append(Cell(f"as printed, {_name_walk(walk)}", settings))
        return cells

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        """Find the epsilon of one cell, and count with other keys; or draw the printed noise."""
        values = cell.settings
        if values["part"] == _PRINTED:
            walk = Walk(values["epsilon"], values["sigma"], values["burn_in"])
            return list(_measure_walk(walk, load_embedding(values["embedding"], around.work), values["words"]))
        contender, count = CONTENDERS[values["row"]], values["words"]
        embedding = _shared_embedding(contender.embedding or around.embedding, around.embedding, around.work)
        kind = MECHANISMS[contender.mechanism]
        chosen = (np.arange(count) * embedding.size // count).astype(np.int32)
        made: Any = kind.settings_type  # each of these mechanisms has an epsilon
        built = kind.build(embedding, made(epsilon=_MOST), padding=False, work=BuildContext())
        extra = built.guarantee.epsilon - _MOST  # what the true constant has beyond the configured one
        near = find_near(embedding, built.guarantee.metric.name)
        least = max(1e-2, kind.min_epsilon(embedding.dimension))
        with load_built(kind, built, embedding.size) as mechanism:
            if values["part"] == _WORST:
                epsilon = _find_epsilon(mechanism, chosen, values["value"], least)
            else:
                epsilon = max(least, values["value"] / near - extra)
            counts = count_outputs(_at(mechanism, epsilon), chosen, _keys("measure"))
        task = f"{values['part']} {values['value']:g}"
        below = WordHierarchy.shipped(embedding.words).count_below(_pad_columns(counts.came, embedding.size))
        return list(_score(values["row"], task, epsilon, epsilon + extra, near, counts, below))

    def report(
        self,
        around: Surroundings,
        results: Mapping[str, Sequence[Score]],
    ) -> Evaluation:
        """Report the table, and sentences on what it shows."""
        scores = merge_cells(results)
        facts = {
            "embeddings": f"{around.embedding} for laplace, demo-poincare (10 dimensions) and one trained in 2 "
            f"dimensions, all reduced to the {len(_shared_words(around.embedding)):,} words that they share",
            "draws": f"{DRAWS} of each of the words measured, evenly spread over these",
            "hierarchy of K_w": "the package's pairs of a word and its hypernyms, up to the root",
        }
        notes = (*_note_findings(scores), *_DIFFERENCES)
        return Evaluation(self.title, facts, scores, notes=notes, is_private=False)


def count_outputs(mechanism: Mechanism[Any], words: NDArray[np.int32], keys: ReleaseKeys) -> Counts:
    """Draw each word 1,000 times.

    Parameters
    ----------
    mechanism
        draws one output for each token.
    words
        int32 ``(words,)``: ids.
    keys
        to draw with.
    """
    drawn = draw_tokens(mechanism, np.repeat(words, DRAWS), b"deniability", keys).reshape(len(words), DRAWS)
    stays = (drawn == words[:, None]).sum(axis=1)
    outputs = int(drawn.max()) + 1
    cells = np.arange(len(words))[:, None] * outputs + drawn
    came = np.bincount(cells.ravel(), minlength=len(words) * outputs).reshape(len(words), outputs)
    return Counts(stays, (came > 0).sum(axis=1), came)


def _name_walk(walk: Walk) -> str:
    return f"epsilon {walk.epsilon:g}, sigma {walk.sigma:g}, burn-in {walk.burn_in:,}"


def _measure_walk(walk: Walk, embedding: Embedding, count: int) -> Iterator[Score]:
    """Measure what the printed noise of one walk does, added as printed and by Moebius translation."""
    points, names = embedding.vectors.astype(np.float64), embedding.words.to_pylist()
    chosen = np.arange(count) * embedding.size // count
    noise = walk.draw(embedding.dimension, count, DRAWS, np.random.default_rng(0))
    for name, move in PRINTED.items():
        drawn = np.array(
            [find_nearest(move(points[word], own), points) for word, own in zip(chosen, noise, strict=True)]
        )
        stays = (drawn == chosen[:, None]).sum(axis=1)
        came = np.bincount(drawn.ravel(), minlength=embedding.size)
        most = np.argsort(-came, kind="stable")[:_MOST_COMMON].tolist()
        shares = ", ".join(f"{names[word]} {came[word] / drawn.size:.0%}" for word in most)
        measurement = Measurement(f"{name}, {embedding.dimension}-D", _name_walk(walk), "draws", Group.PRIVACY)
        figures = {
            _STAYS: (float(stays.mean()), find_mean_interval(stays.astype(np.float64), 0), ""),
            "worst N_w": (float(stays.max()), None, ""),
            _COMMON: (float(came[most].sum() / drawn.size), None, shares),
        }
        for figure, (value, interval, note) in figures.items():
            yield measurement.make_score(
                figure, value, interval, count, _DEFINITIONS[figure], higher_is_better=False, note=note
            )


def _pad_columns(came: NDArray[np.int64], size: int) -> csr_array:
    """Return the counts with a column for each of ``size`` words."""
    return csr_array(np.pad(came, ((0, 0), (0, size - came.shape[1]))))


def _at(mechanism: Mechanism[Any], epsilon: float) -> Mechanism[Any]:
    found = mechanism.at_epsilon(epsilon)
    if found is None:
        raise ValueError(f"Expected a mechanism whose epsilon can be changed, got {mechanism.name}.")
    return found


def _find_epsilon(mechanism: Mechanism[Any], words: NDArray[np.int32], target: int, least: float) -> float:
    """Find the epsilon where the worst word stays ``target`` times of 1,000; the least that there is where even that is
    too large.
    """
    keys = _keys("calibrate")

    def count(epsilon: float) -> float:
        return float(count_outputs(_at(mechanism, epsilon), words, keys).stays.max())

    return find_epsilon(count, target, math.sqrt(least * _MOST), least, _MOST, fine=_FINE).epsilon


def _keys(purpose: str) -> ReleaseKeys:
    """Public keys, for draws of public words."""
    return MasterKey(sha256(b"wordveil: deniability of public words").digest()).for_release(purpose)


@cache
def _shared_words(euclidean: str) -> tuple[str, ...]:
    known = set(load(euclidean).words.to_pylist())
    return tuple(word for word in load(DEMO_POINCARE).words.to_pylist() if word in known)


def _shared_embedding(name: str, euclidean: str, work: Path) -> Embedding:
    whole = load_embedding(name, work)
    place = {word: row for row, word in enumerate(whole.words.to_pylist())}
    words = _shared_words(euclidean)
    return check_embedding(list(words), whole.vectors[[place[word] for word in words]], whole.source)


_STAYS, _OUTPUTS, _LOSS = "mean N_w", "mean S_w", "nearest-loss"
_WORST, _NEAREST, _PRINTED = "worst N_w", "loss to the nearest", "as printed"
_COMMON, _MOST_COMMON = "commonest outputs", 3
_DEFINITIONS = {
    _STAYS: f"How often a word stays itself in {DRAWS} draws, mean over words.",
    _OUTPUTS: f"How many different words come out of {DRAWS} draws of a word, mean over words.",
    "worst N_w": f"How often the word stays itself that stays most often in {DRAWS} draws.",
    "least S_w": f"The different outputs of the word that has the fewest in {DRAWS} draws.",
    "mean K_w": f"How many outputs of {DRAWS} draws of a word lie below the one that comes out, mean over draws and "
    "words.",
    "least K_w": "The same of the word for which it is least, of the words drawn.",
    "epsilon": "The configured epsilon, found by bisection.",
    "true constant": "The certified loss of a token for each unit of the mechanism's own distance.",
    "nearest-loss": "The certified loss between a word and its nearest neighbour, median over words.",
    _COMMON: f"The share of the {_MOST_COMMON} commonest outputs among all draws of all words.",
}
"""Of each figure."""


def _score(
    name: str, task: str, epsilon: float, true: float, near: float, counts: Counts, below: NDArray[np.float64]
) -> Iterator[Score]:
    def make(figure: str, value: float, interval: tuple[float, float] | None = None) -> Score:
        better = None if figure == "epsilon" else figure.endswith(("S_w", "K_w"))
        group = Group.TEXT if figure.endswith("S_w") else Group.PRIVACY
        return Measurement(name, task, "draws", group).make_score(
            figure, value, interval, len(counts.stays), _DEFINITIONS[figure], higher_is_better=better
        )

    yield make(_STAYS, float(counts.stays.mean()), find_mean_interval(counts.stays.astype(np.float64), 0))
    yield make(_OUTPUTS, float(counts.outputs.mean()), find_mean_interval(counts.outputs.astype(np.float64), 0))
    yield make("worst N_w", float(counts.stays.max()))
    yield make("least S_w", float(counts.outputs.min()))
    yield make("mean K_w", float(np.nanmean(below)), find_mean_interval(below[~np.isnan(below)], 0))
    yield make("least K_w", float(np.nanmin(below)))
    yield make("epsilon", epsilon)
    yield make("true constant", true)
    yield make("nearest-loss", true * near)


_DIFFERENCES = (
    (
        "The printed noise has an infinite loss, so that no row compares it at an equal one. The paper does not state "
        "the size of a step and the burn-in, on which its figures depend."
    ),
    (
        "The paper compares 300-dimensional GloVe and 100-dimensional Poincare vectors. Its epsilons of the two are "
        "nominal, and count different distances; the second half of the table therefore compares at an equal certified "
        "loss between a word and its nearest neighbour."
    ),
    (
        "Where a target is below what any epsilon reaches, the row has the least epsilon that there is, and its "
        "figures say by how much it misses the target. The noise of Eq. 7 in n dimensions costs at least n a unit."
    ),
    (
        "Words that lie far from all others keep a floor under N_w that no additive noise in few dimensions lowers: "
        "noise in a uniform direction crosses the plane between two words that are d apart with a probability of the "
        "order of exp(-(n - 1) d / 2) in hyperbolic space, however strong it is."
    ),
)


def _note_findings(scores: Sequence[Score]) -> Iterator[str]:
    """For each target and loss: how often an average word stays, and what its nearest neighbour is allowed to lose."""
    for part, values in ((_WORST, TARGETS), (_NEAREST, LOSSES)):
        for value in values:
            found = [_describe(scores, name, f"{part} {value:g}") for name in CONTENDERS]
            if any(found):
                yield f"{part} {value:g}, an average word stays: {'; '.join(text for text in found if text)}."
    for score in scores:
        if score.figure == _COMMON:
            stays = find_score(scores, score.subject, task=score.task, figure=_STAYS)
            if stays is not None and stays.value is not None:
                yield (
                    f"{score.subject}, {score.task}: an average word stays {stays.value:.0f} times of {DRAWS}; most "
                    f"draws are {score.note}."
                )


def _describe(scores: Sequence[Score], name: str, task: str) -> str:
    stays, worst, loss = (find_score(scores, name, task=task, figure=one) for one in (_STAYS, "worst N_w", _LOSS))
    if not (stays and worst and loss) or stays.value is None or worst.value is None or loss.value is None:
        return ""
    return f"{name} {stays.value:.0f} times of {DRAWS} (worst {worst.value:.0f}, nearest-loss {loss.value:.1f})"
