"""Poincare embeddings: words as points of the open unit ball, general ones near the centre, special ones near the rim.

Nickel and Kiela 2017, "Poincare Embeddings for Learning Hierarchical Representations". The compiled descent uses only
+, -, *, / and square roots, in the order written, for equal bits on every machine. gensim's PoincareModel uses powers,
exponentials and NumPy's generator, which another machine or version may round or draw differently; it is imported when
a model is made.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from wordveil.arrays import Float32, Float64, Int64
from wordveil.compiled import compiled, compiled_part, find_first_from
from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training.hypernyms import HypernymGraph, PoincareSettings, build_hierarchy, read_pairs
from wordveil.errors import EmbeddingError
from wordveil.neighbours.blocks import BuildContext

if TYPE_CHECKING:
    from gensim.models.poincare import PoincareModel

MAX_DRAWS = 10_000.0
"""Largest mean number of draws for each pair. Beyond it training would take over 0.1 s a pair, and is refused."""

# PoincareModel._sample_negatives draws again until all words fit if a word's hypernyms are a smaller share of the words
# than this.
_FEW = 0.01
# The largest power of e that is computed: far beyond MAX_DRAWS, and without overflow.
_LARGEST_POWER = 100.0


def make_model(graph: HypernymGraph, settings: PoincareSettings, source: str) -> PoincareModel:
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


def train_model(model: PoincareModel, settings: PoincareSettings, steps: Callable[[int, int], None]) -> None:
    """Train a model like ``PoincareModel.train``: burn-in, then epochs. ``steps`` gets the epochs done and all."""
    with _silence_gensim(), threadpool_limits(limits=1):
        for epoch, rate in enumerate(settings.rates):
            steps(epoch, len(settings.rates))
            model.train_alpha = rate
            model.train(1)
    steps(len(settings.rates), len(settings.rates))


def read_points(model: PoincareModel, size: int) -> Float64:
    """Read the points ``(size, dimension)`` of a model of a graph with ``size`` words, in the graph's order."""
    rows = [model.kv.key_to_index[str(row)] for row in range(size)]
    return np.asarray(model.kv.vectors[rows], np.float64)


def estimate_draws(graph: HypernymGraph, negative: int) -> float:
    """Estimate how often gensim draws for a pair until all words fit, on average over the pairs.

    gensim draws ``negative`` words by their number of links, and draws all again if one is a hypernym or repeats. With
    h the share of a word's hypernyms among all links, and s the sum of the squared shares of the others, a draw
    succeeds with a probability of about (1 - h)^negative exp(-s / (1 - h)^2 negative (negative - 1) / 2), the second
    factor as in the birthday problem.
    """
    size = len(graph.words)
    share = graph.links / graph.links.sum()
    words, hypernyms = graph.edges.T
    hypernym_counts = np.bincount(words, minlength=size)
    mass = np.bincount(words, share[hypernyms], minlength=size)
    rest = np.maximum(1.0 - mass, np.finfo(float).tiny)
    squares = np.maximum(np.square(share).sum() - np.bincount(words, np.square(share[hypernyms]), minlength=size), 0.0)
    power = -negative * np.log(rest) + squares / np.square(rest) * (negative * (negative - 1) / 2)
    expected = np.where(hypernym_counts / size < _FEW, np.exp(np.minimum(power, _LARGEST_POWER)), 1.0)
    return float((expected * hypernym_counts).sum() / hypernym_counts.sum())


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


LARGEST_NORM = 1.0 - 1e-5
"""Largest norm of a point: the paper's projection has epsilon = 1e-5 (section 3.1)."""

_WIDTH = 0.001
# Less by a few units of float32's last digit, so that rounding to float32 cannot push a point out.
_RIM = LARGEST_NORM - 2.0**-22

ReadPairs = Callable[[Path, PoincareSettings], pa.Table]


def train_or_load(
    path: Path, settings: PoincareSettings, kept: Path, work: BuildContext, read: ReadPairs = read_pairs
) -> Embedding:
    """Load the embedding of the pairs at ``path`` from the directory ``kept``, or train it and keep it there.

    ``read`` returns a table of :data:`wordveil.embeddings.training.hypernyms.PAIR_SCHEMA`. Raises
    :class:`EmbeddingError`.
    """
    trained = kept / settings.digest(embeddings.digest_source(str(path)))
    if not trained.exists():
        work.progress(f"reading the pairs of {path}")
        graph = build_hierarchy(read(path, settings), settings, str(path))
        _keep(embed(graph, settings, str(path), work), trained)
    return embeddings.load(str(trained), "wordveil")


def embed(graph: HypernymGraph, settings: PoincareSettings, source: str, work: BuildContext) -> Embedding:
    """Train an embedding of ``graph``, in its order, as float32 points of norm at most :data:`LARGEST_NORM`."""
    points = project_to_ball(train(graph, settings, source, work))
    words, pairs = len(graph.words), len(graph.edges)
    described = f"{source}: Poincare embedding of {words:,} words by {pairs:,} hypernym pairs, seed {settings.seed}"
    return embeddings.check_embedding(list(graph.words), points, described)


def train(graph: HypernymGraph, settings: PoincareSettings, source: str, work: BuildContext) -> Float64:
    """Train points ``(len(graph.words), dimension)``: equal bit for bit for equal arguments.

    ``compiled`` is so on every machine, ``gensim`` on one machine with the same versions. Raises
    :class:`EmbeddingError` if too few words are not hypernyms of some word.
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
    model = make_model(graph, settings, source)
    train_model(model, settings, work.steps)
    return read_points(model, size)


def _train_compiled(graph: HypernymGraph, settings: PoincareSettings, work: BuildContext) -> Float64:
    """Train points by the compiled loop: equal for equal arguments on every machine.

    They start uniform within :data:`_WIDTH` in each coordinate. Contrasting words are drawn uniformly, as in the paper,
    but during burn-in in proportion to links ** 3/4, which places the general words first (the authors' published code
    draws by links then, too).
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


def project_to_ball(points: Float64) -> Float32:
    """Convert points to float32, and project those with a norm over :data:`LARGEST_NORM` to just within it."""
    rounded = points.astype(np.float32)
    norms = np.linalg.norm(rounded.astype(np.float64), axis=1)
    shrunk = points * (_RIM / np.maximum(norms, LARGEST_NORM))[:, None]
    return np.where(norms[:, None] > LARGEST_NORM, shrunk, points).astype(np.float32)


def _keep(made: Embedding, path: Path) -> None:
    """Write the embedding atomically. Another process may have written an equal one meanwhile."""
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


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TRIES = 100
# Points at no distance have no direction to move in: the derivative is taken to be 0.
_SMALLEST = 1e-12


@compiled_part
def mix_state(state: np.uint64) -> np.uint64:
    """Compute SplitMix64's output for a ``state`` (Steele, Lea, Flood 2014), for training alone and never for noise."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def scatter_points(seed: int, size: int, dimension: int, width: float) -> Float64:
    """Draw initial points ``(size, dimension)``, uniform in ``[-width, width)`` in each coordinate."""
    points = np.empty((size, dimension))
    state = mix_state(np.uint64(seed))
    for row in range(size):
        for column in range(dimension):
            state += _GOLDEN
            points[row, column] = width * ((mix_state(state) >> np.uint64(11)) * 2.0**-52 - 1.0)
    return points


@compiled
def shuffle_indices(seed: int, epoch: int, size: int) -> Int64:
    """Shuffle the numbers below ``size`` into the order of an epoch (Fisher-Yates)."""
    order = np.arange(size)
    state = mix_state(mix_state(np.uint64(seed)) + np.uint64(epoch + 1) * _GOLDEN)
    for last in range(size - 1, 0, -1):
        state += _GOLDEN
        other = np.int64(mix_state(state) % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]
    return order


@compiled_part
def _related(hypernyms: Int64, begin: int, end: int, word: int) -> bool:
    """Return whether ``word`` is among the sorted ``hypernyms[begin:end]``."""
    index = find_first_from(word, begin, end, hypernyms)
    return bool(index < len(hypernyms) and hypernyms[index] == word)


@compiled
def _step(points: Float64, row: int, gradient: Float64, rate: float, largest: float) -> None:
    """Move a point against its Euclidean ``gradient`` by the inverse metric, inside the ball (equation 5)."""
    square = 0.0
    for column in range(points.shape[1]):
        square += points[row, column] * points[row, column]
    scale = rate * (1.0 - square) * (1.0 - square) / 4.0
    square = 0.0
    for column in range(points.shape[1]):
        points[row, column] -= scale * gradient[column]
        square += points[row, column] * points[row, column]
    if square > largest * largest:
        shrink = largest / np.sqrt(square)
        for column in range(points.shape[1]):
            points[row, column] *= shrink


@compiled
def _draw(others: Int64, word: int, hypernyms: Int64, begin: int, end: int, lottery: Int64, state: np.uint64) -> int:
    """Fill ``others``, from entry 1 on, with words other than ``word`` and its hypernyms. Return its length."""
    filled = 1
    for _ in range(_TRIES * (len(others) - 1)):
        if filled == len(others):
            break
        state += _GOLDEN
        drawn = lottery[np.int64(mix_state(state) % np.uint64(len(lottery)))]
        if drawn != word and not _related(hypernyms, begin, end, drawn):
            others[filled] = drawn
            filled += 1
    return filled


@compiled
def _contrast(points: Float64, word: int, others: Int64, weights: Float64, mine: Float64, theirs: Float64) -> None:
    """Compute the Euclidean gradients of the loss of ``word`` with ``others`` into ``mine`` and ``theirs``.

    The first of ``others`` is its hypernym. The derivative of a distance is equation 4, with its numerator written by
    |x - y|^2, which does not cancel. ``weights``: a buffer as long as ``others``.
    """
    room, total = 1.0, 0.0
    for column in range(points.shape[1]):
        room -= points[word, column] * points[word, column]
        mine[column] = 0.0
    for number in range(len(others)):
        apart, space = 0.0, 1.0
        for column in range(points.shape[1]):
            here, there = points[word, column], points[others[number], column]
            apart += (here - there) * (here - there)
            space -= there * there
        # gamma = 1 + excess, and exp(-arcosh(gamma)) = 1 / (gamma + sqrt(gamma^2 - 1)).
        excess = 2.0 * apart / (room * space)
        root = np.sqrt(excess * (excess + 2.0))
        weights[number] = 1.0 / (1.0 + excess + root)
        total += weights[number]
        slope = 4.0 / (room * space * root) if root > _SMALLEST else 0.0
        near, far = slope * (1.0 + apart / room), slope * (1.0 + apart / space)
        for column in range(points.shape[1]):
            here, there = points[word, column], points[others[number], column]
            theirs[number, 0, column] = near * here - slope * there
            theirs[number, 1, column] = far * there - slope * here
    for number in range(len(others)):
        pull = (1.0 if number == 0 else 0.0) - weights[number] / total
        for column in range(points.shape[1]):
            mine[column] += pull * theirs[number, 0, column]
            theirs[number, 1, column] *= pull


@compiled
def descend(
    points: Float64,
    edges: Int64,
    offsets: Int64,
    order: Int64,
    lottery: Int64,
    seed: int,
    epoch: int,
    negative: int,
    rate: float,
    largest: float,
) -> None:
    """Run one epoch: for every edge (u, v) a step down the loss of equation 6.

    It is -log(exp(-d(u, v)) / sum over v' of exp(-d(u, v'))), where v' are v and ``negative`` words drawn from
    ``lottery`` that are neither u nor hypernyms of u, or fewer if such words are rare. ``points`` ``(words, n)`` are
    changed; ``edges`` ``(m, 2)`` are sorted, ``edges[offsets[u]:offsets[u + 1]]`` are those of u; ``order`` ``(m,)`` is
    that of the steps; ``largest`` bounds a point's norm.
    """
    hypernyms = np.ascontiguousarray(edges[:, 1])
    others = np.empty(negative + 1, np.int64)
    weights = np.empty(negative + 1)
    mine = np.empty(points.shape[1])
    theirs = np.empty((negative + 1, 2, points.shape[1]))
    start = mix_state(mix_state(mix_state(np.uint64(seed))) + np.uint64(epoch + 1) * _GOLDEN)
    for edge in order:
        word = edges[edge, 0]
        others[0] = hypernyms[edge]
        state = mix_state(start + np.uint64(edge + 1) * _GOLDEN)
        filled = _draw(others, word, hypernyms, offsets[word], offsets[word + 1], lottery, state)
        _contrast(points, word, others[:filled], weights, mine, theirs)
        _step(points, word, mine, rate, largest)
        for number in range(filled):
            _step(points, others[number], theirs[number, 1], rate, largest)
