"""Semantic similarity: the cosine between a text's vector and that of its sanitised form.

One of the three measures of Bo, Ding, Fung, Iqbal 2021 (ER-AE), who use a trained encoder. Cosines of different
encoders must not be compared with each other, so each has its own chance level: the cosine with another original.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64
from wordveil.evaluation.utility.encoders import SentenceEncoder
from wordveil.scores.measurement import Measurement, require_pairs
from wordveil.scores.score import Score, find_mean_interval

TASK, FIGURE = "similarity", "cosine"


def find_cosines(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Compute the cosine between vectors row by row, both ``(texts, dimension)``: float64 ``(texts,)``. 0 for zero
    vectors.
    """
    first, second = np.asarray(left, np.float64), np.asarray(right, np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.asarray(np.divide(products, lengths, out=np.zeros(len(lengths)), where=lengths > 0))


def measure_similarity(
    originals: Sequence[str], sanitised: Sequence[str], encoder: SentenceEncoder, subject: str, seed: int = 0
) -> list[Score]:
    """Measure the mean cosine between texts and their sanitised forms.

    ``originals``, ``sanitised``: at least one text, and their sanitised forms in the same order. ``encoder``: gives the
    vectors of texts. ``subject``: as in :class:`wordveil.scores.score.Score`. ``seed``: of the bootstrap and of the
    pairs of originals that give the chance level.

    Raises
    ------
    ValueError
        where there are no texts, or the numbers differ.
    """
    require_pairs(originals, sanitised)
    vectors = encoder.encode(originals)
    cosines = find_cosines(vectors, encoder.encode(sanitised))
    # Each text is compared with the next one in a random circle, so none with itself.
    circle = np.random.default_rng(seed).permutation(len(originals))
    chance = float(find_cosines(vectors[circle], vectors[np.roll(circle, -1)]).mean()) if len(circle) > 1 else None
    return [
        Measurement(subject, TASK, encoder.name).make_score(
            FIGURE,
            float(cosines.mean()),
            find_mean_interval(cosines, seed),
            len(cosines),
            f"Mean cosine between the vectors of a text and of its sanitised form, by the encoder {encoder.name}; the "
            "chance level is that of two different originals.",
            chance=chance,
        )
    ]
