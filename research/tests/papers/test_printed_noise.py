"""The printed noise of hyperbolic embeddings: its walk, its two ways to move a word, and what the projection does."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.geometry.hyperbolic import ball_distances
from wordveil_research.papers.printed_noise import EDGE, Walk, add, find_nearest, project, translate


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def find_radii(walk: Walk) -> np.ndarray:
    noise = walk.draw(2, 400, 50, random())
    return ball_distances(noise.reshape(-1, 2).T, np.zeros((2, 1)))


def test_walk_law_of_equation_7_after_burn_in_alone():
    # In rho = tanh(r / 2) its density is rho ((1 - rho) / (1 + rho))^epsilon.
    rho = np.linspace(0, 1, 100_001)
    density = rho * ((1 - rho) / (1 + rho)) ** 3.0
    expected = float((rho * density).sum() / density.sum())
    assert np.tanh(find_radii(Walk(3.0, 0.3, 500)) / 2).mean() == pytest.approx(expected, abs=0.01)
    assert np.tanh(find_radii(Walk(3.0, 0.003, 0)) / 2).mean() < 0.2 * expected


def test_a_translation_keeps_distances_and_a_sum_does_not():
    noise = project(0.3 * random().standard_normal((200, 3)))
    point, origin = np.array([0.6, 0.0, 0.3]), np.zeros((3, 1))
    lengths = ball_distances(noise.T, origin)
    np.testing.assert_allclose(ball_distances(translate(point, noise).T, point[:, None]), lengths, rtol=1e-9)
    assert not np.allclose(ball_distances(add(point, noise).T, point[:, None]), lengths, rtol=0.1)


def test_a_sum_outside_the_ball_comes_back_to_its_edge():
    found = add(np.array([0.9, 0.0]), np.array([[0.5, 0.0], [0.05, 0.0]]))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [EDGE, 0.95])


def test_the_nearest_word_is_that_of_hyperbolic_distance():
    words, points = (project(0.6 * random(seed).standard_normal((300, 4))) for seed in (1, 2))
    distances = np.array([ball_distances(words.T, point[:, None]) for point in points])
    assert (find_nearest(points, words) == distances.argmin(axis=1)).all()
