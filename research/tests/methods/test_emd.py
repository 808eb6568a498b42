"""The Earth Mover's distance is that of SciPy's linear program, and its bounds exclude no text that is near."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from support.made_texts import make_topic_texts, topic_embedding
from wordveil_research.methods.bags import WordVectors
from wordveil_research.methods.emd import MoverIndex, measure_emd
from wordveil_research.methods.neighbours import NearestTexts, count_votes, find_nearest


def solve_linear(first: np.ndarray, second: np.ndarray, costs: np.ndarray) -> float:
    """Return the least cost of moving masses: the flows out of each place and into each place are given."""
    rows, columns = costs.shape
    out = np.kron(np.eye(rows), np.ones(columns))
    into = np.kron(np.ones(rows), np.eye(columns))
    found = linprog(costs.ravel(), A_eq=np.vstack([out, into]), b_eq=np.concatenate([first, second]), method="highs")
    return float(found.fun)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 6), (5, 1), (7, 4), (12, 12), (30, 17)])
def test_the_distance_is_that_of_a_linear_program(rows: int, columns: int):
    rng = np.random.default_rng(rows * 100 + columns)
    for _ in range(5):
        first, second = rng.dirichlet(np.ones(rows)), rng.dirichlet(np.ones(columns))
        costs = cdist(rng.normal(size=(rows, 6)), rng.normal(size=(columns, 6)))
        found = measure_emd(first, second, costs)
        assert found == pytest.approx(solve_linear(first, second, costs), abs=1e-9)
        # Moving each word to the nearest one is cheaper, and moving all to all in proportion dearer.
        assert first @ costs.min(axis=1) <= found + 1e-12
        assert found <= first @ costs @ second + 1e-12


def test_words_in_other_places_are_at_distance_zero():
    bags = WordVectors(topic_embedding()).make_bags(["aah abh aah", "abh, AAH aah!"])
    costs = cdist(topic_embedding().vectors[:2], topic_embedding().vectors[:2])
    assert bags.ids.tolist() == [0, 1, 0, 1]
    assert bags.shares.tolist() == pytest.approx([2 / 3, 1 / 3] * 2)
    assert measure_emd(bags.words_of(0)[1], bags.words_of(1)[1], costs) == 0


@pytest.fixture(scope="module")
def index() -> MoverIndex:
    vectors = WordVectors(topic_embedding())
    return MoverIndex(vectors.make_bags([*make_topic_texts(150, 1).texts, "", "漢字"]), vectors.vectors)


def distances(index: MoverIndex, ids: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """From one text to all that have words, without any bound."""
    known = [index.bags.words_of(text) for text in range(len(index.bags)) if index.bags.sizes[text]]
    costs = [cdist(index.vectors[ids], index.vectors[other]) for other, _ in known]
    return np.array([measure_emd(shares, its, cost) for (_, its), cost in zip(known, costs, strict=True)])


@pytest.mark.parametrize("count", [1, 5, 40])
def test_bounds_exclude_no_near_text(index: MoverIndex, count: int):
    asked = WordVectors(topic_embedding()).make_bags(make_topic_texts(12, 2).texts)
    solved = 0
    for text in range(12):
        ids, shares = asked.words_of(text)
        every = distances(index, ids, shares)
        found = index.search(ids, shares, count)
        assert found.texts.tolist() == np.argsort(every, kind="stable")[:count].tolist()
        assert found.distances == pytest.approx(np.sort(every)[:count], abs=1e-6)
        solved += found.solved
    assert solved < 12 * 150 * (0.5 if count < 40 else 0.9)  # the bounds spare work


def test_bounds_are_never_above_the_distance(index: MoverIndex):
    asked = WordVectors(topic_embedding()).make_bags(make_topic_texts(6, 3).texts)
    for text in range(6):
        ids, shares = asked.words_of(text)
        costs = index._measure_costs(ids)
        every = distances(index, ids, shares)
        back = index._bound_back(np.arange(len(every)), shares, costs)
        assert (index._bound_all(ids, shares, costs) <= every + 1e-6).all()
        assert (back <= every + 1e-6).all()
        assert (back > every * 0.5).mean() > 0.5  # and no bound of nothing


def test_a_text_finds_itself_and_equal_texts_in_their_order():
    vectors = WordVectors(topic_embedding())
    texts = make_topic_texts(30, 4).texts
    index = MoverIndex(vectors.make_bags([*texts, *texts]), vectors.vectors)
    found = index.search(*vectors.make_bags(texts).words_of(7), 2)
    assert found.texts.tolist() == [7, 37]
    assert found.distances.tolist() == [0, 0]
    assert len(index.search(*vectors.make_bags(texts).words_of(7), 100).texts) == 60


def test_neighbours_vote_and_the_nearest_decides_ties():
    assert count_votes(np.array([[2, 1, 1, 0, 0], [0, 1, 1, 1, 0], [2, 0, 1, 3, 4]])).tolist() == [1, 1, 2]
    known = np.array([[0.0], [1.0], [1.0], [5.0]])
    assert find_nearest(np.array([[0.9], [6.0]]), known, 3).tolist() == [[1, 2, 0], [3, 1, 2]]


@pytest.mark.parametrize("distance", ["mean", "emd"])
def test_texts_are_classified_by_the_texts_that_are_nearest(distance: str):
    """The nearest five by brute force, over distances that SciPy measures."""
    known, asked = make_topic_texts(80, 5, share=0.2), make_topic_texts(25, 6, share=0.2)
    vectors = WordVectors(topic_embedding())
    bags, other = vectors.make_bags(known.texts), vectors.make_bags(asked.texts)
    if distance == "mean":
        every = cdist(other.average(vectors.vectors), bags.average(vectors.vectors))
    else:
        index = MoverIndex(bags, vectors.vectors)
        every = np.stack([distances(index, *other.words_of(text)) for text in range(25)])
    expected = count_votes(known.labels[np.argsort(every, axis=1, kind="stable")[:, :5]])
    assert NearestTexts(topic_embedding(), distance).fit(known, 0).predict(asked.texts).tolist() == expected.tolist()
