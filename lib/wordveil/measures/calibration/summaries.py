"""Statistics of many words as figures: an average, the least protected word, quantiles, a histogram."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64, Int32
from wordveil.measures.calibration.figures import WordFigure
from wordveil.measures.calibration.moves import Moves
from wordveil.measures.calibration.values import WordValues
from wordveil.privacy.recovery import round_figure
from wordveil.scores.histogram import Bin, count_bins

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
