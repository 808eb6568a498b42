"""Exact search on real vectors, where ties and near-duplicates are those of a trained space."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.embeddings.embedding import load
from wordveil.neighbours.exact import ExactNearest, scoring_rows


@pytest.mark.parametrize("epsilon", [5.0, 20.0, 60.0])
def test_noisy_queries_find_their_true_nearest_word(epsilon: float):
    check_search(load("demo").vectors, epsilon)


def check_search(vectors: np.ndarray, epsilon: float) -> None:
    """The nearest word is that by all scores in float64."""
    rng = np.random.default_rng(int(epsilon))
    dimension = vectors.shape[1]
    noise = rng.standard_normal((dimension, 200))
    noise *= rng.gamma(dimension, 1 / epsilon, 200) / np.linalg.norm(noise, axis=0)
    queries = vectors[rng.integers(0, len(vectors), 200)].T + noise
    plain = vectors.astype(np.float64)
    scores = plain @ queries - 0.5 * np.einsum("ij,ij->i", plain, plain)[:, None]
    found = ExactNearest(scoring_rows(vectors), len(vectors)).search(queries)
    assert (found == scores.argmax(axis=0)).all()
