"""Topics of made texts are found, and those of random words are not."""

from __future__ import annotations

import pytest

from support.made_texts import TOPICS, RandomWords, make_topic_texts, topic_embedding
from wordveil.evaluation.topics import MIN_DOCUMENTS, SHOWN, find_topics, measure_terms

BEFORE = make_topic_texts(150, 1, share=0.7).texts


def test_topics_have_the_words_of_made_topics():
    words = topic_embedding().words.to_pylist()
    own = [set(words[20 * number : 20 * (number + 1)]) for number in range(len(TOPICS))]
    found = find_topics(BEFORE, 3, 1)
    assert [len(terms) for terms in found] == [SHOWN] * 3
    best = [max(range(3), key=lambda number: len(own[number] & set(terms))) for terms in found]
    assert sorted(best) == [0, 1, 2]
    assert all(len(own[number] & set(terms)) >= SHOWN - 2 for number, terms in zip(best, found, strict=True))
    assert find_topics(BEFORE, 3, 1) == found


def test_topics_found_again_in_originals_alone():
    random = RandomWords(topic_embedding().words).sanitise(BEFORE, 2)
    scores = {(one.subject, one.figure): one.value for one in measure_terms(BEFORE, random, "release", 1, 3)}
    assert scores["release", "topic-overlap"] < 0.4 < 0.8 < scores["original", "topic-overlap"]
    same = {(one.subject, one.figure): one.value for one in measure_terms(BEFORE, BEFORE, "release", 1, 3)}
    assert same["release", "topic-overlap"] == same["release", "top-overlap"] == 1
    assert same["release", "total-variation"] == 0


def test_stop_words_and_rare_terms_are_in_no_topic():
    texts = ["the cat sat"] * 5 + ["the dog ran"] * 5 + ["unicorn the"] * (MIN_DOCUMENTS - 1)
    found = {term for terms in find_topics(texts, 2, 1, ["the"]) for term in terms}
    assert found == {"cat", "sat", "dog", "ran"}


@pytest.mark.parametrize("texts", [[""], ["once"], []])
def test_texts_without_frequent_terms_have_no_topics(texts):
    assert find_topics(texts, 2, 1) == []
    assert measure_terms(texts, texts, "release", 1, 2)[-1].value is None
    assert len(measure_terms(texts, texts, "release", 1, 0)) == 3
