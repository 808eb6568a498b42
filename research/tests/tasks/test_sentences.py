"""Sentence tasks are read in their parts, and original sentences are above random ones."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_sets import DATA, needs_data
from support.made_texts import RandomWords, load_sentences, make_topic_texts
from wordveil.embeddings.embedding import load
from wordveil.evaluation.linear import LinearWords
from wordveil_research.methods.sentences import SentenceVectors
from wordveil_research.tasks.sentences import (
    SENTENCE_TASKS,
    SentenceTask,
    load_sentence_task,
    measure_folds,
    measure_sentences,
    predict_folds,
)


def check_sentences(task: SentenceTask) -> None:
    """Original sentences are above random ones, which are at chance."""
    embedding = load("demo")
    assert (task.test is not None) == SENTENCE_TASKS[task.name]
    (upper,) = measure_sentences(SentenceVectors(embedding), task, "original", 0)
    random = RandomWords(embedding.words)
    test = task.test and task.test.with_texts(random.sanitise(task.test.texts, 1))
    drawn = SentenceTask(task.name, task.train.with_texts(random.sanitise(task.train.texts, 2)), test)
    (lower,) = measure_sentences(SentenceVectors(embedding), drawn, "random", 0)
    assert upper.low > lower.high + 0.05
    assert upper.low > upper.chance
    # Three standard deviations of so many coins.
    assert lower.value < lower.chance + max(0.05, 1.5 / np.sqrt(lower.count))


def test_original_sentences_are_above_random_ones():
    """News and examples of WordNet."""
    texts = load_sentences(200)
    parts = (texts.take(np.arange(start, len(texts), 2)) for start in (0, 1))
    check_sentences(SentenceTask("trec6", *parts))
    check_sentences(SentenceTask("cr", texts, None))


@needs_data("trec6.jsonl.xz", "cr.jsonl.xz")
def test_published_tasks_originals_above_random_words():
    for name in ("trec6", "cr"):
        check_sentences(load_sentence_task(DATA, name))


def test_tasks_are_read_in_the_parts_that_they_have(tmp_path: Path):
    for name in ("trec6", "cr"):
        with lzma.open(tmp_path / f"{name}.jsonl.xz", "wt") as file:
            for text, label, split in (("a", "x", "train"), ("b", "y", "train"), ("c", "y", "test")):
                file.write(json.dumps({"text": text, "label": label, "split": split}) + "\n")
    whole, parts = (load_sentence_task(tmp_path, name) for name in ("cr", "trec6"))
    assert (whole.train.texts, whole.test) == (["a", "b", "c"], None)
    assert parts.test is not None
    assert (parts.train.texts, parts.test.texts, parts.test.names) == (["a", "b"], ["c"], ("x", "y"))
    assert parts.test.labels.tolist() == [1]


def test_sentence_tasks_are_named():
    with pytest.raises(ValueError, match="Expected one of mr, cr"):
        load_sentence_task(Path(), "mpqa")


def test_cross_validation_each_unseen_text_guessed_once():
    """Where each text is there twice, a classifier that had seen what it is asked would know all labels."""
    clean = make_topic_texts(120, 1)
    texts = replace(clean, labels=np.random.default_rng(2).permutation(clean.labels))
    assert np.mean(predict_folds(LinearWords(cost=100.0), texts, 0) == texts.labels) < 0.5
    fitted = LinearWords(cost=100.0).fit(texts, 0)
    assert np.mean(fitted.predict(texts.texts) == texts.labels) > 0.9
    (score,) = measure_folds(LinearWords(), clean, "original", "made", 0)
    assert score.value > 0.85
    assert score.count == 120
    assert "10 folds" in score.note
