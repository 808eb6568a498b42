"""Naive Bayes is that of the book, and texts serve it less the more noise they have."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from helpers import KEYS, build_mechanism, random_embedding, token_batch
from wordveil.evaluation.protocols import LabelledTexts
from wordveil.evaluation.registry import UTILITY_TASKS
from wordveil.evaluation.text_classification import NaiveBayes

SIZE = 40


def labelled(texts: list[list[int]], labels: list[int], size: int = SIZE) -> LabelledTexts:
    batch = token_batch(texts)
    return LabelledTexts(batch.ids, batch.offsets, np.array(labels, np.int64), size)


def test_the_example_of_the_book():
    """Manning, Raghavan, Schütze 2008, Table 13.1: Chinese, Beijing, Shanghai, Macao, Tokyo, Japan."""
    task = NaiveBayes.train(labelled([[0, 1, 0], [0, 0, 2], [0, 3], [4, 5, 0]], [1, 1, 1, 0], 6))
    assert np.exp(task.labels).tolist() == pytest.approx([1 / 4, 3 / 4])
    assert np.exp(task.words[:, [0, 4, 5]]).tolist() == [
        pytest.approx([2 / 9, 2 / 9, 2 / 9]),
        pytest.approx([3 / 7, 1 / 14, 1 / 14]),
    ]
    assert task.predict(labelled([[0, 0, 0, 4, 5]], [0], 6)).tolist() == [1]
    assert task.predict(labelled([[4, 5, 4, 5]], [0], 6)).tolist() == [0]
    assert task.score(labelled([[0], [4, 5, 4, 5], [0]], [1, 0, 0], 6)) == pytest.approx(2 / 3)


def test_padding_and_unknown_words_change_nothing():
    plain = NaiveBayes.train(labelled([[0, 1], [2]], [0, 1]))
    noisy = NaiveBayes.train(labelled([[0, SIZE, 1, SIZE + 1], [2, SIZE]], [0, 1]))
    assert noisy.words.tolist() == plain.words.tolist()
    assert noisy.predict(labelled([[SIZE, 2, SIZE + 1], []], [1, 0])).tolist() == [1, 0]


def test_a_label_without_texts_is_never_predicted():
    task = NaiveBayes.train(labelled([[0], [1]], [0, 2]))
    assert set(task.predict(labelled([[2], [0], [1], []], [0, 0, 0, 0])).tolist()) <= {0, 2}


def topics(count: int, seed: int) -> LabelledTexts:
    """Texts of two topics, which share half of the words."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    texts = [rng.integers(10 * label, 30 + 10 * label, 12).tolist() for label in labels]
    return labelled(texts, labels.tolist())


def sanitise(texts: LabelledTexts, epsilon: float) -> LabelledTexts:
    mechanism = build_mechanism(random_embedding(SIZE, 3), {"epsilon": epsilon}, padding=False)
    batch = token_batch([texts.ids[i:j] for i, j in pairwise(texts.offsets.tolist())])
    return LabelledTexts(mechanism.draw(batch, KEYS).ids, texts.offsets, texts.labels, SIZE)


def test_noise_takes_utility_away():
    train, test = topics(300, 1), topics(300, 2)
    scores = [NaiveBayes.train(sanitise(train, epsilon)).score(test) for epsilon in (0.01, 2.0, 1e3)]
    assert scores[2] == NaiveBayes.train(train).score(test)
    assert scores[2] > 0.95
    assert scores[0] < 0.75
    shuffled = LabelledTexts(train.ids, train.offsets, np.random.default_rng(3).permutation(train.labels), SIZE)
    assert NaiveBayes.train(shuffled).score(test) < 0.75


@pytest.mark.parametrize("task", UTILITY_TASKS.values(), ids=UTILITY_TASKS)
def test_texts_that_do_not_fit_are_refused(task):
    empty = labelled([], [])
    with pytest.raises(ValueError, match="at least one text"):
        task.train(empty)
    with pytest.raises(ValueError, match="at least one text"):
        task.train(labelled([[0]], [0])).score(empty)
    with pytest.raises(ValueError, match="at least one text"):
        task.train(labelled([[0], [1]], [0]))


def test_each_is_listed_under_its_name():
    assert {name: task.name for name, task in UTILITY_TASKS.items()} == {"naive-bayes": "naive-bayes"}
