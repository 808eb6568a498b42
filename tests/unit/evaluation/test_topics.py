"""Terms are compared by their counts. Topics of made texts are found, and matched with those that share most terms."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from support.made_texts import TOPICS, RandomWords, make_topic_texts, topic_embedding
from wordveil.evaluation.topics import MIN_DOCUMENTS, SHOWN, compare_terms, find_topics, match_topics, measure_terms

ORIGINAL = ["The cat, the dog.", "the CAT sat"]
RELEASED = ["the mat the dog", "a cat sat"]


def test_terms_of_a_few_texts():
    """Original: the 3, cat 2, dog 1, sat 1. Released: the 2, a 1, cat 1, dog 1, mat 1, sat 1."""
    found = compare_terms(ORIGINAL, RELEASED, top=2)
    # The most frequent two: the and cat; the and a, which is the first of those with one.
    assert found.overlap == pytest.approx(1 / 3)
    assert found.variation == pytest.approx((1 / 7 + 1 / 7 + 1 / 7 + 1 / 7 + 0 + 0 + 2 / 7 - 2 / 7 + 0) / 2)
    assert found.rank_correlation == pytest.approx(stats.spearmanr([3, 2, 1, 1], [2, 1, 1, 1]).statistic)
    assert (found.ranked, found.terms) == (4, 6)


def test_the_same_texts_agree_and_random_ones_do_not():
    texts = [f"{text} {' '.join(['aah'] * place)}" for place, text in enumerate(make_topic_texts(60, 1).texts)]
    same = compare_terms(texts, texts[::-1])
    assert (same.overlap, same.variation) == (1.0, 0.0)
    assert same.rank_correlation == pytest.approx(1.0)
    drawn = compare_terms(texts, RandomWords(topic_embedding().words).sanitise(texts, 1), top=10)
    assert drawn.variation > 0.3
    assert drawn.rank_correlation < 0.4
    disjoint = compare_terms(["a b"], ["c d"])
    assert (disjoint.overlap, disjoint.variation) == (0.0, 1.0)
    empty = compare_terms(["a b"], [""])
    assert (empty.overlap, empty.variation, empty.rank_correlation) == (0.0, None, None)


def test_topics_are_matched_so_that_they_share_most():
    rng = np.random.default_rng(4)
    for _ in range(20):
        one, other = ([rng.choice(list("abcdefghij"), 4, replace=False).tolist() for _ in range(5)] for _ in range(2))
        found = match_topics(one, other)
        sums = [
            sum(len(set(a) & set(other[place])) / 4 for a, place in zip(one, order, strict=True))
            for order in permutations(range(5))
        ]
        assert sum(found.overlaps) == pytest.approx(max(sums))
        assert sorted(place for _, place in found.pairs) == list(range(5))
    assert match_topics([["a", "b"], ["c", "d"]], [["d", "c"], ["a", "x"]]).pairs == ((0, 1), (1, 0))


BEFORE = make_topic_texts(80, 1, share=0.7).texts


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
    few = BEFORE[:40]
    same = {(one.subject, one.figure): one.value for one in measure_terms(few, few, "release", 1, 3)}
    assert same["release", "topic-overlap"] == same["release", "top-overlap"] == 1
    assert same["release", "total-variation"] == 0


def test_stop_words_and_rare_terms_are_in_no_topic():
    texts = ["the cat sat"] * 5 + ["the dog ran"] * 5 + ["unicorn the"] * (MIN_DOCUMENTS - 1)
    assert {term for terms in find_topics(texts, 2, 1, ["the"]) for term in terms} == {"cat", "sat", "dog", "ran"}
