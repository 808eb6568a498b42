"""Perplexity is that of a law over words, and tells fluent texts from random ones."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from support.made_texts import RandomWords, topic_embedding
from wordveil.embeddings.embedding import load
from wordveil.evaluation.classifiers import cut_words
from wordveil_research.tasks.perplexity import DISCOUNT, BigramLaw, count_bigrams, measure_perplexity

FITTED = ["the cat sat", "The cat ran.", "a dog sat"]
FLUENT = [
    "He went to the door and looked out into the night.",
    "She had been in the house for a long time, and she did not want to leave it.",
    "I do not know what you mean, said the old man.",
]


def chance_of(law: BigramLaw, before: str, after: str) -> float:
    numbers = law.index.numbers(cut_words([f"{before} {after}"]).words).astype(np.int64)
    return float(law.find_shares(numbers[:1], numbers[1:])[0])


def test_probabilities_of_a_few_texts():
    """Of 9 words and 6 kinds: the 2, cat 2, sat 2, ran 1, a 1, dog 1; one is added to each."""
    law = BigramLaw.fit(FITTED)
    single = {"the": 3 / 15, "cat": 3 / 15, "sat": 3 / 15, "ran": 2 / 15, "a": 2 / 15, "dog": 2 / 15}
    # "the" is followed by "cat" twice: one kind of follower.
    assert chance_of(law, "the", "cat") == pytest.approx((2 - DISCOUNT) / 2 + DISCOUNT / 2 * single["cat"])
    assert chance_of(law, "the", "dog") == pytest.approx(DISCOUNT / 2 * single["dog"])
    # "cat" is followed by "sat" and "ran" once each; "sat" by nothing.
    assert chance_of(law, "cat", "sat") == pytest.approx((1 - DISCOUNT) / 2 + DISCOUNT * single["sat"])
    assert chance_of(law, "sat", "cat") == pytest.approx(single["cat"])
    # A text begins with "the" twice, with "a" once.
    begins = (2 - DISCOUNT) / 3 + 2 * DISCOUNT / 3 * single["the"]
    cat = (2 - DISCOUNT) / 2 + DISCOUNT / 2 * single["cat"]
    found = law.measure(["The cat", "", "zebra dog"])
    assert found.bits.tolist() == pytest.approx([-math.log2(begins * cat), 0, -math.log2(single["dog"])])
    assert (found.words.tolist(), found.unknown) == ([2, 0, 1], 1)
    assert found.perplexity == pytest.approx((begins * cat * single["dog"]) ** (-1 / 3))


@pytest.mark.parametrize("law", [BigramLaw.fit(FITTED), BigramLaw.open()], ids=["fitted", "demo"])
def test_the_words_that_may_follow_add_up_to_one(law: BigramLaw):
    every = np.arange(len(law.words))
    rng = np.random.default_rng(1)
    for before in [-1, 0, 1, *rng.integers(0, len(every), 20).tolist()]:
        shares = law.find_shares(np.full(len(every), before), every)
        assert shares.sum() == pytest.approx(1)
        assert shares[0] == 0  # the beginning follows nothing
        assert (shares[1:] > 0).all()


def test_random_words_and_disorder_are_surprising():
    law = BigramLaw.open()
    rng = np.random.default_rng(2)
    mixed = [" ".join(rng.permutation(text.split())) for text in FLUENT]
    drawn = RandomWords(load("demo").words).sanitise(FLUENT, 1)
    fluent, disorder, random = (law.measure(texts).perplexity for texts in (FLUENT, mixed, drawn))
    assert 5 * fluent < disorder
    assert 5 * disorder < random


def test_scores_hold_the_share_of_words_that_count():
    perplexity, known = measure_perplexity(BigramLaw.open(), [*FLUENT, "zzyzx"], "release", "made", 0)
    assert perplexity.low < perplexity.value < perplexity.high
    assert perplexity.higher_is_better is False
    assert known.value == pytest.approx(perplexity.count / known.count)
    assert known.count == sum(len(cut_words([text]).words) for text in FLUENT) + 1
    nothing, share = measure_perplexity(BigramLaw.fit(FITTED), ["zebra"], "release", "made", 0)
    assert (nothing.value, nothing.low, share.value) == (None, None, 0.0)
    assert measure_perplexity(BigramLaw.fit(FITTED), [""], "release", "made", 0)[1].value is None


def test_words_are_needed():
    with pytest.raises(ValueError, match="at least one word to count"):
        BigramLaw.fit(["", "..."])
    with pytest.raises(ValueError, match="at least one word that the bigram model knows"):
        assert BigramLaw.fit(FITTED).measure(["zebra"]).perplexity


def test_pairs_are_counted_within_a_text():
    texts = ["A b a b", "b zz a", "", "c"]
    bigrams = count_bigrams(cut_words(texts), pa.array([*"abcdef"]))
    pairs, words = Counter(), Counter()
    for text in texts:
        row = ["", *text.lower().split()]
        words.update(word for word in row if word != "zz")
        pairs.update(pair for pair in pairwise(row) if "zz" not in pair)
    names = bigrams.words.to_pylist()
    counted = {
        (names[row], names[bigrams.followers[entry]]): int(bigrams.pair_counts[entry])
        for row in range(len(names))
        for entry in range(bigrams.first[row], bigrams.first[row + 1])
    }
    assert counted == dict(pairs)
    assert {name: count for name, count in zip(names, bigrams.counts.tolist(), strict=True) if count} == dict(words)


def test_words_are_cut_alike_for_every_task():
    words = cut_words(["Don\u2019t STOP, well-known!", "", " x "])
    assert words.words.to_pylist() == ["don't", "stop", "well", "known", "x"]
    assert words.offsets.tolist() == [0, 4, 4, 5]
    assert words.text_of.tolist() == [0, 0, 0, 0, 2]
    assert words.join() == ["don't stop well known", "", "x"]
    assert cut_words([]).join() == []
    assert len(topic_embedding().words) == 90
