"""Pairs of sentences: labels and degrees are found from vectors that carry them, and by chance from random ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.made_texts import make_topic_texts, topic_embedding
from wordveil.errors import InputError
from wordveil.scores.documents import UNKNOWN
from wordveil.scores.score import find_ratio_interval
from wordveil_research.tasks.pairs import (
    GradedPairs,
    LabelledPairs,
    find_correlation_interval,
    load_graded_pairs,
    load_labelled_pairs,
    measure_pairs,
    measure_similarity,
)

NAMES = ("other", "same")


def labelled(count: int, seed: int) -> LabelledPairs:
    """Return pairs of texts, and whether they have one topic: half of them."""
    one, other = make_topic_texts(9 * count, seed, 0.6), make_topic_texts(9 * count, seed + 1, 0.6)
    same = (one.labels == other.labels).astype(np.int64)
    rows = np.sort(np.concatenate([np.flatnonzero(same == value)[: count // 2] for value in (0, 1)]))
    return LabelledPairs(one.take(rows).texts, other.take(rows).texts, same[rows], NAMES)


def graded(count: int, seed: int) -> GradedPairs:
    """Return pairs of texts, of which the second has the first ``0 .. 12`` words of the first one."""
    one, other = make_topic_texts(count, seed, 0.6), make_topic_texts(count, seed + 1, 0.6)
    grades = np.random.default_rng(seed + 1_000).integers(0, 13, count)
    second = [
        " ".join([*first.split()[:grade], *last.split()[grade:]])
        for first, last, grade in zip(one.texts, other.texts, grades.tolist(), strict=True)
    ]
    return GradedPairs(one.texts, second, grades / 2)


def test_labels_of_pairs_are_found():
    train, test = labelled(400, 1), labelled(200, 5)
    (score,) = measure_pairs(topic_embedding(), train, test, "original", "entailment")
    assert score.value > 0.85
    assert (score.chance, score.count, score.figure) == (0.5, 200, "accuracy")
    assert score.low < score.value < score.high


def test_random_labels_of_pairs_give_chance():
    train, test = labelled(400, 1), labelled(200, 5)
    train = replace(train, labels=np.random.default_rng(1).permutation(train.labels))
    (score,) = measure_pairs(topic_embedding(), train, test, "original", "entailment")
    # One standard deviation of 200 texts is 3.5%.
    assert score.value == pytest.approx(0.5, abs=0.11)


def test_second_sentences_matter():
    """A test part whose second sentences are others' has labels that its words do not tell."""
    train, test = labelled(400, 1), labelled(200, 5)
    shuffled = test.with_texts(test.first, np.random.default_rng(2).permutation(test.second).tolist())
    (score,) = measure_pairs(topic_embedding(), train, shuffled, "original", "entailment")
    assert score.value == pytest.approx(0.5, abs=0.11)


@pytest.mark.parametrize("learned", [True, False])
def test_similarity_is_found_and_random_words_have_none(learned: bool):
    train, test = graded(400, 1) if learned else None, graded(200, 5)
    pearson, spearman = measure_similarity(topic_embedding(), train, test, "original", "similarity", 0)
    assert [pearson.figure, spearman.figure] == ["pearson", "spearman"]
    assert min(pearson.value, spearman.value) > 0.5
    assert pearson.low < pearson.value < pearson.high
    assert pearson.method == ("pair-vectors" if learned else "pair-cosine")
    drawn = test.with_texts(test.first, make_topic_texts(200, 77).texts)
    lost, _ = measure_similarity(topic_embedding(), train, drawn, "random", "similarity", 0)
    assert abs(lost.value) < 0.25


def test_correlations_are_those_of_scipy():
    test = graded(60, 5)
    vectors = measure_similarity(topic_embedding(), None, test, "original", "similarity", 0)
    words = topic_embedding()
    place = {word: row for row, word in enumerate(words.words.to_pylist())}
    one, other = (
        np.stack([words.vectors[[place[word] for word in text.split()]].mean(axis=0) for text in part])
        for part in (test.first, test.second)
    )
    cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert vectors[0].value == pytest.approx(stats.pearsonr(cosines, test.grades).statistic, abs=1e-5)
    assert vectors[1].value == pytest.approx(stats.spearmanr(cosines, test.grades).statistic, abs=1e-3)


def test_texts_without_words_have_no_correlation():
    test = graded(20, 5).with_texts([""] * 20, [""] * 20)
    pearson, _ = measure_similarity(topic_embedding(), None, test, "release", "similarity", 0)
    assert pearson.value is None
    assert "equally similar" in pearson.note
    with pytest.raises(ValueError, match="at least three pairs of different similarity"):
        measure_similarity(topic_embedding(), None, replace(test, grades=np.ones(20)), "release", "similarity", 0)


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_pairs_are_read_from_files(tmp_path: Path):
    rows = [
        {"premise": "A man sleeps.", "other": "He is awake.", "gold": "contradiction", "grade": 1.5, "split": "train"},
        {"premise": "A dog runs.", "other": None, "gold": "entailment", "grade": 4, "split": "train"},
        {"premise": "Rain.", "other": "Snow.", "gold": "-", "grade": 3, "split": "test"},
    ]
    path = write(tmp_path / "pairs.jsonl", *rows)
    pairs = load_labelled_pairs(path, "premise", "other", "gold", {"split": "train"})
    assert (pairs.first, pairs.second) == (["A man sleeps.", "A dog runs."], ["He is awake.", ""])
    assert (pairs.labels.tolist(), pairs.names) == ([0, 1], ("contradiction", "entailment"))
    test = load_labelled_pairs(path, "premise", "other", "gold", {"split": "test"}, pairs.names)
    assert test.labels.tolist() == [UNKNOWN]
    assert load_graded_pairs(path, "premise", "other", "grade").grades.tolist() == [1.5, 4.0, 3.0]


def test_degrees_must_be_numbers(tmp_path: Path):
    path = write(tmp_path / "pairs.jsonl", {"a": "x", "b": "y", "grade": "secret"})
    with pytest.raises(InputError, match="column grade: expected a finite number") as caught:
        load_graded_pairs(path, "a", "b", "grade")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="has no column c"):
        load_labelled_pairs(path, "a", "c", "grade")


def test_parts_must_fit():
    pairs = labelled(40, 1)
    with pytest.raises(ValueError, match="as many first as second"):
        pairs.with_texts(pairs.first[1:], pairs.second)
    with pytest.raises(ValueError, match="Expected the same labels in both parts"):
        measure_pairs(topic_embedding(), pairs, replace(pairs, names=("no", "yes")), "original", "made")
    with pytest.raises(ValueError, match="at least two labels"):
        measure_pairs(topic_embedding(), replace(pairs, labels=pairs.labels * 0), pairs, "original", "made")


def test_intervals_hold_what_they_promise():
    """Of 200 samples about 95% of the intervals have the true value inside; an interval of half the width has not."""
    rng = np.random.default_rng(5)
    inside = {"ratio": 0, "correlation": 0, "narrow": 0}
    for seed in range(200):
        wholes = rng.integers(1, 10, 80)
        parts = rng.binomial(wholes, 0.3)
        low, high = find_ratio_interval(parts, wholes, seed)
        inside["ratio"] += low <= 0.3 <= high
        inside["narrow"] += (3 * low + high) / 4 <= 0.3 <= (low + 3 * high) / 4
        one = rng.normal(size=80)
        low, high = find_correlation_interval(one, 0.6 * one + 0.8 * rng.normal(size=80), seed)
        inside["correlation"] += low <= 0.6 <= high
    assert min(inside["ratio"], inside["correlation"]) >= 180
    assert inside["narrow"] < 160
    assert find_ratio_interval(np.array([1]), np.array([4]), 0) == (0.25, 0.25)
