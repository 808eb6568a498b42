"""Poincare embeddings trained by gensim's PoincareModel, one epoch after another.

gensim is imported when a model is made, so that importing this module does not load it. The same seed leads to the same
bits on one machine. gensim uses powers, exponentials and NumPy's generator, which another machine or version may round
or draw differently.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wordveil.embeddings.training.hypernyms import Hierarchy
from wordveil.embeddings.training.settings import TrainingSettings
from wordveil.errors import EmbeddingError

if TYPE_CHECKING:
    from gensim.models.poincare import PoincareModel

MAX_DRAWS = 10_000.0
"""Largest mean number of draws for each pair. Beyond it training is refused: it would take over 0.1 s a pair."""

# PoincareModel._sample_negatives draws again until all words fit if a word's hypernyms are a smaller share of the words
# than this.
_FEW = 0.01
# The largest power of e that is computed: far beyond MAX_DRAWS, and without overflow.
_LARGEST_POWER = 100.0


def make_model(graph: Hierarchy, settings: TrainingSettings, source: str) -> PoincareModel:
    """Make gensim's model, untrained: float64, one thread, and without the regularisation, which the paper lacks.

    Words are named by their rows. Raises :class:`EmbeddingError` if gensim would draw almost endlessly
    (:func:`estimate_draws`).
    """
    expected = estimate_draws(graph, settings.negative)
    if expected > MAX_DRAWS:
        raise EmbeddingError(
            f"{source}: mechanism.training.negative = {settings.negative}: gensim would draw about {expected:,.0f} "
            "times for each pair until it had that many different words that are not hypernyms. Lower negative, or "
            "set trainer: compiled."
        )
    with _silence_gensim():
        from gensim.models.poincare import PoincareModel

        return PoincareModel(
            [(str(word), str(hypernym)) for word, hypernym in graph.edges.tolist()],
            size=settings.dimension,
            alpha=settings.learning_rate,
            negative=settings.negative,
            workers=1,
            regularization_coeff=0.0,
            burn_in=0,  # train_model() does the burn-in, epoch by epoch
            seed=settings.seed,
        )


def train_model(model: PoincareModel, settings: TrainingSettings, steps: Callable[[int, int], None]) -> None:
    """Train a model as ``PoincareModel.train`` does: first the burn-in, then the epochs. ``steps`` gets the number of
    epochs done and the number of all.
    """
    with _silence_gensim(), threadpool_limits(limits=1):
        for epoch, rate in enumerate(settings.rates):
            steps(epoch, len(settings.rates))
            model.train_alpha = rate
            model.train(1)
    steps(len(settings.rates), len(settings.rates))


def read_points(model: PoincareModel, size: int) -> NDArray[np.float64]:
    """Read the points ``(size, dimension)`` of a model of a graph with ``size`` words, in the graph's order."""
    rows = [model.kv.key_to_index[str(row)] for row in range(size)]
    return np.asarray(model.kv.vectors[rows], np.float64)


def estimate_draws(graph: Hierarchy, negative: int) -> float:
    """Estimate how often gensim draws for a pair until all words fit, on average over the pairs.

    gensim draws ``negative`` words by their number of links, and draws all again if one is a hypernym or repeats.
    With h the share of a word's hypernyms among all links, and s the sum of the squared shares of the others, a draw
    succeeds with a probability of about (1 - h)^negative exp(-s / (1 - h)^2 negative (negative - 1) / 2), the second
    factor as in the birthday problem.
    """
    size = len(graph.words)
    share = graph.links / graph.links.sum()
    words, hypernyms = graph.edges.T
    known = np.bincount(words, minlength=size)
    mass = np.bincount(words, share[hypernyms], minlength=size)
    rest = np.maximum(1.0 - mass, np.finfo(float).tiny)
    squares = np.maximum(np.square(share).sum() - np.bincount(words, np.square(share[hypernyms]), minlength=size), 0.0)
    power = -negative * np.log(rest) + squares / np.square(rest) * (negative * (negative - 1) / 2)
    expected = np.where(known / size < _FEW, np.exp(np.minimum(power, _LARGEST_POWER)), 1.0)
    return float((expected * known).sum() / known.sum())


@contextmanager
def _silence_gensim() -> Iterator[None]:
    """Silence gensim's log, which has a line for every thousandth batch. Warnings pass."""
    logger = logging.getLogger("gensim")
    level = logger.level
    logger.setLevel(max(logging.WARNING, level))
    try:
        yield
    finally:
        logger.setLevel(level)
