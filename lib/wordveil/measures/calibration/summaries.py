"""Statistics of many words as figures: an average, the least protected word, quantiles, a histogram, and how far words
move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64, Int32
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.calibration.drawing import WordCounts
from wordveil.measures.calibration.figures import WordFigure
from wordveil.measures.calibration.values import WordValues
from wordveil.measures.suitability import COSINE, measure_rows_of
from wordveil.privacy.metrics import uncap
from wordveil.privacy.recovery import round_figure
from wordveil.scores.counts import Bin, count_bins

MOVED_WORDS = 1_000
"""Whose moves are measured at most: distances of each to all others are needed."""
_ROWS = 128


@dataclass(frozen=True)
class Moves:
    """Mean moves of some words; padding among the outputs is left out.

    ``words``: int32 ``(words,)``, ids. ``distances``: float64 ``(words,)``, the mean distance between the word and its
    output, in ``metric``. ``cosines``: float64 ``(words,)``, the mean cosine of their vectors. ``metric``: a name of
    :data:`wordveil.geometry.spaces.SPACES`.
    """

    words: Int32
    distances: Float64
    cosines: Float64
    metric: str


def choose_metric(name: str) -> str:
    """Choose the metric in which moves are measured, by the name of the mechanism's. It is the same without its cap, or
    the Euclidean one if the mechanism's is no metric of vectors.
    """
    name = uncap(name)
    return name if name in SPACES else "euclidean"


def measure_moves(embedding: Embedding, metric: str, rows: Iterable[tuple[Int32, Float64]]) -> Moves:
    """Measure how far words move in a metric of :func:`choose_metric`, to about three digits.

    ``rows``: words, int32 ``(count,)``, with the probability or count of each output, float64 ``(count, outputs)``;
    outputs beyond the words of the vocabulary are padding. A word that always becomes padding has no distance (NaN).
    """
    distances, cosines = measure_rows_of(embedding.vectors, metric), measure_rows_of(embedding.vectors, COSINE)
    parts: list[tuple[Int32, Float64, Float64]] = []
    for words, weights in rows:
        inside = weights[:, : embedding.size]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = inside / inside.sum(axis=1, keepdims=True)
        apart, alike = distances(words), -cosines(words)
        # Products in float32 leave a word a little away from itself.
        apart[np.arange(len(words)), words] = 0.0
        parts.append((words, _mean(inside, apart), _mean(inside, alike)))
    words, apart, alike = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Moves(words, apart, alike, metric)


def _mean(weights: Float64, values: Float64) -> Float64:
    return np.asarray(np.einsum("ij,ij->i", weights, values))


def split_rows(words: Int32) -> Iterator[Int32]:
    """Split words, int32 ``(words,)``, into blocks whose rows fit into memory."""
    for start in range(0, len(words), _ROWS):
        yield words[start : start + _ROWS]


def spread_counts(blocks: Iterable[WordCounts], size: int) -> Iterator[tuple[Int32, Float64]]:
    """Spread counts into rows, float64 ``(words, size + 1)``, of as many words at a time as fit into memory."""
    for block in blocks:
        for indices in split_rows(np.arange(len(block.words), dtype=np.int32)):
            part = block.take(indices)
            rows = np.zeros((len(indices), size + 1))
            rows[np.repeat(np.arange(len(indices)), np.diff(part.offsets)), part.ids] = part.counts
            yield part.words, rows


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
K_NOTE = (
    "K_w is that of Feyisetan, Diethe and Drake 2019, section VI-B, but for a mean: how many outputs of a word lie "
    "below the one that comes out, in the hierarchy of hypernyms. The paper's minimum over outputs is 0 for every "
    "word, since the lowest output has none below it. inputs is a definition of wordveil."
)
"""Remark on ``K_w`` for readers."""
NO_K_NOTE = "K_w needs a hierarchy, and the pairs of hypernyms have no two words of this vocabulary: it is left out."


def summarise_values(values: WordValues, names: pa.StringArray, runs: int, threshold: float) -> Iterator[WordFigure]:
    """Yield ``N_w``, ``S_w``, ``K_w`` if there is a hierarchy, ``inputs``, ``H0`` and ``H_inf``, each in six digits.

    ``names``: the words of the vocabulary. ``runs``: draws of each word. ``threshold``: of ``K_w`` and ``inputs``.
    """
    make = _Maker(names, is_exact=values.is_exact)
    of, exact = f"{runs:,} draws of the word", values.is_exact
    times = np.rint(values.stays * runs).astype(np.int64)
    yield make(
        "N_w",
        "The probability that a word comes back as itself."
        if exact
        else f"The share of {of} that gave the word itself.",
        (values.words, values.stays),
        np.argmax,
        count_bins(times),
        scale=runs,
    )
    yield make(
        "S_w",
        f"How many different outputs {of} give{', on average' if exact else ''}.",
        (values.words, values.distinct),
        np.argmin,
        count_bins(np.rint(values.distinct).astype(np.int64)),
    )
    if values.below is not None and (placed := ~np.isnan(values.below)).any():
        drawn = "" if exact else f" as counted in {of}"
        subset = "" if len(values.words) == len(names) else f", of {len(values.words):,} words drawn of {len(names):,}"
        yield make(
            "K_w",
            f"Of a word's outputs with a probability above {threshold:g}{drawn}, how many lie below the one that comes "
            f"out, on average; over the {int(placed.sum()):,} words with an output of the hierarchy{subset}.",
            (values.words[placed], values.below[placed]),
            np.argmin,
        )
    among = "words of the vocabulary" if len(values.words) == len(names) else f"{len(values.words):,} words measured"
    yield make(
        "inputs",
        f"How many of the {among} have the word as their output with a probability above {threshold:g}"
        f"{'' if exact else f', as counted in {runs:,} draws of each'}; the worst is the least that is not 0. A "
        "definition of wordveil.",
        (values.outputs, values.reaching.astype(np.float64)),
        lambda reaching: np.argmin(np.where(reaching > 0, reaching, np.inf)),  # an output of no word reveals none
        count_bins(values.reaching),
    )
    yield make(
        "H0",
        "The binary logarithm of the number of outputs that a word can have; bits."
        if exact
        else f"The binary logarithm of the number of outputs that came in {of}; bits. More draws give more.",
        (values.words, np.log2(values.possible)),
        np.argmin,
    )
    yield make(
        "H_inf",
        f"Minus the binary logarithm of the {'probability' if exact else 'share'} of a word's likeliest output; bits.",
        (values.words, 0.0 - np.log2(values.likeliest)),
        np.argmin,
    )


def summarise_moves(moves: Moves, names: pa.StringArray, *, is_exact: bool) -> Iterator[WordFigure]:
    """Yield the figures ``moved`` and ``cosine``, in that order. ``names``: the words of the vocabulary."""
    make = _Maker(names, is_exact=is_exact)
    over = f"mean over {len(moves.words):,} words evenly spread over the vocabulary; padding is left out"
    known = ~np.isnan(moves.distances)
    words, apart, alike = moves.words[known], moves.distances[known], moves.cosines[known]
    yield make(
        "moved", f"The {moves.metric} distance between a word and its output; {over}.", (words, apart), np.argmin
    )
    yield make("cosine", f"The cosine of the vectors of a word and its output; {over}.", (words, alike), np.argmax)


class _Maker:
    """Maker of figures of one vocabulary."""

    def __init__(self, names: pa.StringArray, *, is_exact: bool) -> None:
        self._names = names
        self._is_exact = is_exact

    def __call__(
        self,
        name: str,
        definition: str,
        of_words: tuple[Int32, Float64],
        find_worst: Callable[[Float64], np.intp],
        histogram: tuple[Bin, ...] = (),
        scale: int = 1,
    ) -> WordFigure:
        words, values = of_words
        row = int(find_worst(values))
        low, lower, median, upper, high = (round_figure(float(value)) for value in np.quantile(values, QUANTILES))
        return WordFigure(
            name=name,
            definition=definition,
            average=round_figure(float(values.mean())),
            worst=round_figure(float(values[row])),
            worst_word=self._names[int(words[row])].as_py(),
            quantiles=(low, lower, median, upper, high),
            is_exact=self._is_exact,
            histogram=histogram,
            scale=scale,
        )
