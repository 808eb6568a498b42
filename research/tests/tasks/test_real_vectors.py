"""Exact search on real vectors of 300 dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.test_real_vectors import check_search
from data_sets import DATA, needs_data


@needs_data("mixed_w2v_300d.f16.npz")
@pytest.mark.parametrize("epsilon", [5.0, 20.0, 60.0])
def test_noisy_queries_in_300_dimensions_true_nearest_word(epsilon: float):
    with np.load(DATA / "mixed_w2v_300d.f16.npz") as file:
        check_search(file["vectors"].astype(np.float32), epsilon)
