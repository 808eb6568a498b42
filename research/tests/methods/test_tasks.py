"""The laboratory's tasks are done well on clean texts, and by chance where labels or words are random."""

from __future__ import annotations

import numpy as np
import pytest

from support.classifier_checks import TASK_CHECKS
from support.made_texts import TOPICS, topic_embedding
from wordveil.scores.documents import Documents
from wordveil_research.methods.fasttext import FastText, PretrainedFastText
from wordveil_research.methods.neighbours import NearestTexts
from wordveil_research.methods.sentences import SentenceVectors

CLASSIFIERS = [
    FastText(),
    PretrainedFastText(embedding=topic_embedding()),
    NearestTexts(topic_embedding()),
    NearestTexts(topic_embedding(), "emd"),
    SentenceVectors(topic_embedding()),
]


@pytest.mark.parametrize("check", TASK_CHECKS)
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda classifier: classifier.name)
def test_a_task_keeps_to_what_all_do(check, classifier):
    check(classifier)


@pytest.mark.parametrize("classifier", [FastText(), NearestTexts(topic_embedding())])
def test_texts_without_words_teach_nothing(classifier):
    with pytest.raises(ValueError, match="Expected at least one text with a word"):
        classifier.fit(Documents(["", "-"], np.array([0, 1]), TOPICS), 0)


def make_halves(count: int, seed: int, half: int) -> Documents:
    """Make texts of three topics, in one half of the words of each topic, and words of none."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(TOPICS)
    own = 20 * labels[:, None] + 10 * half + rng.integers(0, 10, (count, 4))
    chosen = np.hstack([own, rng.integers(60, 90, (count, 4))])
    words = np.array(topic_embedding().words.to_pylist())[chosen]
    return Documents([" ".join(row) for row in words.tolist()], labels, TOPICS)


def test_public_vectors_tell_the_topic_of_words_that_no_text_had():
    known, asked = make_halves(30, 1, half=0), make_halves(200, 2, half=1)
    shares = {}
    for classifier in (FastText(), PretrainedFastText(embedding=topic_embedding())):
        fitted = classifier.fit(known, 0)
        shares[classifier.name] = np.mean(fitted.predict(asked.texts) == asked.labels)
    assert shares["fasttext"] < 0.45
    assert shares["fasttext-pretrained"] > 0.95
    words, vectors = topic_embedding().words.to_pylist(), topic_embedding().vectors
    assert np.array_equal(fitted.model.model.get_word_vector(words[15]), vectors[15])  # in no text that it learned from
    assert not np.array_equal(fitted.model.model.get_word_vector(words[5]), vectors[5])
