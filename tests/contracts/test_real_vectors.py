"""Exact search on real 300-dimensional vectors, where ties and near-duplicates are those of a trained space."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wordveil.neighbours.exact import ExactNearest, scoring_rows

DATA = Path(__file__).parents[3] / "shared" / "data" / "mixed_w2v_300d.f16.npz"


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there")
@pytest.mark.parametrize("epsilon", [5.0, 20.0, 60.0])
def test_noisy_queries_find_their_true_nearest_word(epsilon: float):
    with np.load(DATA) as file:
        vectors = file["vectors"].astype(np.float32)
    rng = np.random.default_rng(int(epsilon))
    noise = rng.standard_normal((300, 200))
    noise *= rng.gamma(300, 1 / epsilon, 200) / np.linalg.norm(noise, axis=0)
    queries = vectors[rng.integers(0, len(vectors), 200)].T + noise
    plain = vectors.astype(np.float64)
    scores = plain @ queries - 0.5 * np.einsum("ij,ij->i", plain, plain)[:, None]
    found = ExactNearest(scoring_rows(vectors), len(vectors)).search(queries)
    assert (found == scores.argmax(axis=0)).all()
