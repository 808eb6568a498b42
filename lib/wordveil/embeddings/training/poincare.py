"""Poincare embeddings: words as points of the open unit ball, general words near the centre, special ones near the rim.

Nickel and Kiela 2017, "Poincare Embeddings for Learning Hierarchical Representations".
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training import gensim_trainer
from wordveil.embeddings.training.descent import descend, scatter_points, shuffle_indices
from wordveil.embeddings.training.hypernyms import Hierarchy, build_hierarchy, read_pairs
from wordveil.embeddings.training.settings import TrainingSettings
from wordveil.errors import EmbeddingError
from wordveil.neighbours.blocks import BuildContext

LARGEST_NORM = 1.0 - 1e-5
"""Largest norm of a point: the paper's projection has epsilon = 1e-5 (section 3.1)."""

_WIDTH = 0.001
# Less by a few units of float32's last digit, so that rounding to float32 cannot push a point out.
_RIM = LARGEST_NORM - 2.0**-22

ReadPairs = Callable[[Path, TrainingSettings], pa.Table]


def train_or_load(
    path: Path, settings: TrainingSettings, kept: Path, work: BuildContext, read: ReadPairs = read_pairs
) -> Embedding:
    """Load the embedding of the pairs at ``path`` from the directory ``kept``, or train it and keep it there.

    ``read`` returns the pairs as a table of :data:`wordveil.embeddings.training.hypernyms.PAIR_SCHEMA`. Raises
    :class:`EmbeddingError`.
    """
    trained = kept / settings.digest(embeddings.digest_source(str(path)))
    if not trained.exists():
        work.progress(f"reading the pairs of {path}")
        graph = build_hierarchy(read(path, settings), settings, str(path))
        _keep(embed(graph, settings, str(path), work), trained)
    return embeddings.load(str(trained), "wordveil")


def embed(graph: Hierarchy, settings: TrainingSettings, source: str, work: BuildContext) -> Embedding:
    """Train an embedding with the words of ``graph``, in its order, as float32 points of norm at most
    :data:`LARGEST_NORM`.
    """
    points = project_to_ball(train(graph, settings, source, work))
    words, pairs = len(graph.words), len(graph.edges)
    described = f"{source}: Poincare embedding of {words:,} words by {pairs:,} hypernym pairs, seed {settings.seed}"
    return embeddings.check_embedding(list(graph.words), points, described)


def train(graph: Hierarchy, settings: TrainingSettings, source: str, work: BuildContext) -> NDArray[np.float64]:
    """Train points ``(len(graph.words), dimension)`` by the settings' trainer: equal bit for bit for equal arguments.

    By ``compiled`` on every machine; by ``gensim`` on one machine with the same versions. Raises
    :class:`EmbeddingError` if too few words are not hypernyms of some word, and for an unknown trainer.
    """
    size = len(graph.words)
    max_hypernyms = int(np.bincount(graph.edges[:, 0]).max())
    if max_hypernyms + settings.negative >= size:
        raise EmbeddingError(
            f"{source}: mechanism.training.negative = {settings.negative}: a word has {max_hypernyms} hypernyms among "
            f"{size} words, which leaves too few others. Lower negative, or provide more pairs."
        )
    work.progress(f"training {size:,} words on {len(graph.edges):,} pairs")
    if settings.trainer == "compiled":
        return _train_compiled(graph, settings, work)
    if settings.trainer == "gensim":
        model = gensim_trainer.make_model(graph, settings, source)
        gensim_trainer.train_model(model, settings, work.steps)
        return gensim_trainer.read_points(model, size)
    raise EmbeddingError(
        f"mechanism.training.trainer = {settings.trainer}: unknown trainer. Set it to gensim or compiled."
    )


def _train_compiled(graph: Hierarchy, settings: TrainingSettings, work: BuildContext) -> NDArray[np.float64]:
    """Train points by the compiled loop: equal for equal arguments on every machine.

    They start close to the centre, uniform within :data:`_WIDTH` in each coordinate. The words that pairs are
    contrasted with are drawn uniformly, as in the paper, but during burn-in in proportion to links ** 3/4, which places
    the general words first (the authors' published code draws by links then, too).
    """
    size = len(graph.words)
    offsets = np.searchsorted(graph.edges[:, 0], np.arange(size + 1))
    # links ** 3/4 by square roots, which are the same on every machine; powers are not.
    roots = np.sqrt(graph.links)
    tickets = np.repeat(np.arange(size), np.rint(roots * np.sqrt(roots)).astype(np.int64))
    points = scatter_points(settings.seed, size, settings.dimension, _WIDTH)
    for epoch, rate in enumerate(settings.rates):
        work.steps(epoch, len(settings.rates))
        lottery = tickets if epoch < settings.burn_in else np.arange(size)
        order = shuffle_indices(settings.seed, epoch, len(graph.edges))
        descend(points, graph.edges, offsets, order, lottery, settings.seed, epoch, settings.negative, rate, _RIM)
    work.steps(len(settings.rates), len(settings.rates))
    return points


def project_to_ball(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Convert points to float32, those with a norm over :data:`LARGEST_NORM` projected to just within it."""
    rounded = points.astype(np.float32)
    norms = np.linalg.norm(rounded.astype(np.float64), axis=1)
    shrunk = points * (_RIM / np.maximum(norms, LARGEST_NORM))[:, None]
    return np.where(norms[:, None] > LARGEST_NORM, shrunk, points).astype(np.float32)


def _keep(made: Embedding, path: Path) -> None:
    """Write the embedding atomically. An embedding that another process wrote meanwhile is the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".training-", dir=path.parent))
    try:
        made.save(draft / path.name)
        try:
            (draft / path.name).rename(path)
        except OSError:
            if not path.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
