"""Figures on the meaning of an epsilon for a vocabulary, for the terminal, the HTML page and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64, Int32
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.calibration.statistics import WordCounts, WordValues
from wordveil.measures.suitability import COSINE, measure_rows_of
from wordveil.privacy.guarantees import uncap
from wordveil.privacy.recovery import round_figure
from wordveil.scores.counts import Bin, count_bins

FORMAT_VERSION = 2


@dataclass(frozen=True)
class WordFigure:
    """Statistic of words: one number for each of them.

    ``name``: such as ``N_w``, ``S_w``, ``inputs`` or ``moved``. ``definition``: a sentence with the unit. ``average``:
    mean over the measured words. ``worst``: value of the least protected word, ``worst_word``: the largest ``N_w``, the
    least ``S_w``; for ``inputs`` an output of at least one word. ``quantiles``: 5%, 25%, 50%, 75% and 95% over the
    words. ``is_exact``: computed from the mechanism's probabilities, not counted in draws. ``histogram``: number of
    words by value, in units of 1 / ``scale`` (``scale`` is the planned draws of a word for ``N_w``, else 1); empty if
    values are not whole. An exact ``S_w`` is rounded.
    """

    name: str
    definition: str
    average: float
    worst: float
    worst_word: str
    quantiles: tuple[float, float, float, float, float]
    is_exact: bool
    histogram: tuple[Bin, ...] = ()
    scale: int = 1


@dataclass(frozen=True)
class LikelyOutputs:
    """Public word and its likeliest outputs: words with falling probabilities."""

    word: str
    outputs: tuple[tuple[str, float], ...]
    is_exact: bool


@dataclass(frozen=True)
class EpsilonMeaning:
    """Meaning of one epsilon.

    ``epsilon``: as configured (``mechanism.epsilon``), per unit of the mechanism's metric, or a loss of a pure
    mechanism. ``pure_epsilon``: certified loss of one token between any two words, in nats. ``delta``: probability, per
    token, of exceeding it. ``nearest_loss``: median loss between a word and its nearest neighbour, in nats, exact or a
    bound; None if unknown. ``share_kept``: share of words that stay themselves; each word counts once.
    ``share_in_cluster``: share that stays in its cluster, if one word is written for each, or None. ``recovery``:
    recovery and leakage of the best attacker (:meth:`wordveil.privacy.recovery.Recovery.to_dict`); None if single words
    do not represent a text. ``utility``: result of :func:`wordveil.measures.calibration.meaning.bound_utility`.
    """

    epsilon: float
    pure_epsilon: float
    delta: float
    nearest_loss: float | None
    share_kept: float
    share_in_cluster: float | None
    words: tuple[WordFigure, ...]
    recovery: Mapping[str, Any] | None
    utility: Mapping[str, float]
    examples: tuple[LikelyOutputs, ...]


@dataclass(frozen=True)
class FoundEpsilon:
    """Epsilon that meets a target.

    ``target``: such as ``share_kept=0.3``, or the mechanism that was matched. ``epsilon``: rounded to few digits, for a
    configuration. ``low``, ``high``: epsilons below ``low`` miss the target on one side, epsilons above ``high`` on the
    other, except with a probability of 5% if figures were drawn. ``reached``: the figure at ``epsilon``. ``is_exact``:
    figures were computed, not drawn.
    """

    target: str
    epsilon: float
    low: float
    high: float
    reached: float
    is_exact: bool


@dataclass(frozen=True)
class Calibration:
    """Meanings of some epsilons, rising, of one mechanism over one vocabulary.

    ``facts``: embedding, words, draws, threshold of ``K_w`` and ``inputs``, and versions, in the order to show.
    """

    mechanism: str
    facts: Mapping[str, str]
    meanings: tuple[EpsilonMeaning, ...]
    found: tuple[FoundEpsilon, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"format_version": FORMAT_VERSION, **asdict(self)}


MOVED_WORDS = 1_000
"""Largest number of words whose moves are measured: each needs its distances to all others."""
_ROWS = 128


@dataclass(frozen=True)
class Moves:
    """Mean moves of some words, without padding among the outputs.

    ``words``: int32 ``(words,)``, ids. ``distances``: float64 ``(words,)``, the mean distance between a word and its
    output in ``metric``, a name of :data:`wordveil.geometry.spaces.SPACES`. ``cosines``: float64 ``(words,)``, the mean
    cosine of their vectors.
    """

    words: Int32
    distances: Float64
    cosines: Float64
    metric: str


def choose_metric(name: str) -> str:
    """Return the mechanism's metric without its cap, or the Euclidean one if it is no metric of vectors."""
    name = uncap(name)
    return name if name in SPACES else "euclidean"


def measure_moves(embedding: Embedding, metric: str, rows: Iterable[tuple[Int32, Float64]]) -> Moves:
    """Measure how far words move in a metric of :func:`choose_metric`, to about three digits.

    ``rows``: words, int32 ``(count,)``, with the probability or count of each output, float64 ``(count, outputs)``. A
    word that always becomes padding has no distance (NaN).
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
    words, apart, alike = (np.concatenate([block[i] for block in parts]) for i in range(3))
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
            taken = block.take(indices)
            shares = np.zeros((len(indices), size + 1))
            shares[np.repeat(np.arange(len(indices)), np.diff(taken.offsets)), taken.ids] = taken.counts
            yield taken.words, shares


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
K_NOTE = (
    "K_w is that of Feyisetan, Diethe and Drake 2019, section VI-B, but for a mean: how many outputs of a word lie "
    "below the one that comes out, in the hierarchy of hypernyms. The paper's minimum over outputs is 0 for every "
    "word, since the lowest output has none below it. inputs is a definition of wordveil."
)
NO_K_NOTE = "K_w needs a hierarchy, and the pairs of hypernyms have no two words of this vocabulary: it is left out."


def summarise_values(values: WordValues, names: pa.StringArray, runs: int, threshold: float) -> Iterator[WordFigure]:
    """Yield ``N_w``, ``S_w``, ``K_w`` if there is a hierarchy, ``inputs``, ``H0`` and ``H_inf``, each in six digits.

    ``runs``: draws of each word. ``threshold``: probability above which ``K_w`` and ``inputs`` count an output.
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
    """Yield the figures ``moved`` and ``cosine``, in that order."""
    make = _Maker(names, is_exact=is_exact)
    over = f"mean over {len(moves.words):,} words evenly spread over the vocabulary; padding is left out"
    is_known = ~np.isnan(moves.distances)
    words, apart, alike = moves.words[is_known], moves.distances[is_known], moves.cosines[is_known]
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
