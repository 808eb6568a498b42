"""Attackers with context agree with a sum and a search over all sequences of words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.toys import law_of_word, make_bundle, random_embedding
from wordveil.evaluation.context import ContextAttacker, Decoding, PublicLanguage, guess_words, measure_word_recovery
from wordveil.evaluation.context_kernels import STEPS
from wordveil.evaluation.encoders import find_frequencies
from wordveil.evaluation.redrawn import BundleSanitiser, Ragged, redraw
from wordveil.measures.recovery import find_recovered
from wordveil.mechanisms.inputs import Bigrams
from wordveil.mechanisms.laws import WordLaws
from wordveil.scores.score import find_ratio_interval
from wordveil.text.policy import TextPolicy

SIZE = 6
WORDS = pa.array([*"abcdef"])
STRANGER = SIZE + 1


def language_of(texts: list[str], words: pa.StringArray) -> PublicLanguage:
    names = ["", *words.to_pylist()]
    number = {name: index for index, name in enumerate(names)}
    counts, table = np.zeros(len(names), np.int64), np.zeros((len(names), len(names)), np.int64)
    for text in texts:
        row = [number[word] for word in ["", *text.split()]]
        np.add.at(counts, row, 1)
        for pair in pairwise(row):
            table[pair] += 1
    before, after = np.nonzero(table)
    first = np.searchsorted(before, np.arange(len(names) + 1))
    bigrams = Bigrams(pa.array(names), counts, first, after.astype(np.int32), table[before, after])
    return PublicLanguage.of(bigrams, words, find_frequencies(words, bigrams))


def some_language(seed: int) -> PublicLanguage:
    """A few pairs of a few words; the last word occurs in none, and one word is not in the vocabulary."""
    rng = np.random.default_rng(seed)
    names = ["", "d", "b", "zz", "a", "e", "c"]
    table = rng.integers(0, 40, (7, 7)) * (rng.random((7, 7)) < 0.5)
    table[:, 0] = 0
    before, after = np.nonzero(table)
    bigrams = Bigrams(
        words=pa.array(names),
        counts=table.sum(axis=1) + rng.integers(1, 20, 7),
        first=np.searchsorted(before, np.arange(8)),
        followers=after.astype(np.int32),
        pair_counts=table[before, after],
    )
    return PublicLanguage.of(bigrams, WORDS)


def some_laws(seed: int) -> WordLaws:
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.1, 0.9, SIZE)
    listed = [np.sort(rng.choice(SIZE, 2, replace=False)) for _ in range(SIZE)]
    parts = np.concatenate([(1 - share) * rng.dirichlet([1, 1]) for share in shares])
    offsets = np.arange(SIZE + 1) * 2
    return WordLaws(rng.dirichlet(np.ones(SIZE)), shares, offsets, np.concatenate(listed).astype(np.int32), parts)


def dense(laws: WordLaws) -> np.ndarray:
    return np.stack([law_of_word(laws, word) for word in range(len(laws.shares))])


def pair_costs(language: PublicLanguage) -> np.ndarray:
    costs = language.costs
    table = costs.beyond[:, None] + costs.words[None, :SIZE]
    for row in range(SIZE + 2):
        for entry in range(costs.first[row], costs.first[row + 1]):
            follower = costs.followers[entry]
            table[row, follower] = min(table[row, follower], costs.costs[entry])
    return table


def all_sequences(language: PublicLanguage, laws: WordLaws, outputs: list[int], hidden: list[bool]) -> dict[Any, int]:
    step, seen = pair_costs(language), np.rint(-np.log2(dense(laws)) * STEPS).astype(int)
    choices = [range(SIZE) if is_hidden else [output] for output, is_hidden in zip(outputs, hidden, strict=True)]
    found = {}
    for sequence in product(*choices):
        cost, before = 0, SIZE
        for word, output, is_hidden in zip(sequence, outputs, hidden, strict=True):
            # An unknown word follows by its back-off; that its share is 1 changes all sequences alike.
            cost += int(language.costs.beyond[before] if word == STRANGER else step[before, word])
            cost += int(seen[word, output]) if is_hidden else 0
            before = word
        found[sequence] = cost
    return found


def some_records(seed: int) -> tuple[Ragged, np.ndarray, list[tuple[list[int], list[bool]]]]:
    rng = np.random.default_rng(seed)
    rows = []
    for length in (0, 1, 4, 5):
        hidden = (rng.random(length) < 0.75).tolist()
        ids = [int(rng.integers(0, SIZE)) if h else int(rng.choice([1, 3, STRANGER])) for h in hidden]
        rows.append((ids, hidden))
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids, _ in rows])])
    ids = np.array([one for row, _ in rows for one in row], np.int32)
    return Ragged(ids, offsets), np.array([one for _, row in rows for one in row], bool), rows


@pytest.mark.parametrize("seed", range(4))
def test_likeliest_sequence_and_words_as_by_enumeration(seed):
    language, laws = some_language(seed), some_laws(seed)
    sequence, hidden, rows = some_records(seed)
    attacker = ContextAttacker(laws, language, SIZE)
    best, likely = (
        iter(attacker.guess(sequence, hidden, way).tolist()) for way in (Decoding.VITERBI, Decoding.MARGINAL)
    )
    for ids, flags in rows:
        costs = all_sequences(language, laws, ids, flags)
        found = tuple(next(best) if flag else word for word, flag in zip(ids, flags, strict=True))
        assert costs[found] == min(costs.values())
        for place in np.flatnonzero(flags):
            weights = Counter()
            for words, cost in costs.items():
                weights[words[place]] += 2.0 ** (-cost / STEPS)
            assert weights[next(likely)] == pytest.approx(max(weights.values()), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_language_is_a_law_after_each_word(seed):
    language = some_language(seed)
    assert (2.0 ** (-pair_costs(language) / STEPS)).sum(axis=1) == pytest.approx(np.ones(SIZE + 2), abs=0.01)
    assert language.frequencies.sum() == pytest.approx(1)
    assert (pair_costs(language)[:SIZE] != pair_costs(language)[STRANGER]).any()


def test_one_candidate_is_the_guess_without_context():
    laws, language = some_laws(4), some_language(4)
    joint = language.frequencies[:, None] * dense(laws)
    sequence = Ragged(np.arange(SIZE, dtype=np.int32), np.array([0, SIZE]))
    for way in Decoding:
        guessed = ContextAttacker(laws, language, 1).guess(sequence, np.ones(SIZE, bool), way)
        assert guessed.tolist() == joint.argmax(axis=0).tolist()
    with pytest.raises(ValueError, match="candidates = 0"):
        ContextAttacker(laws, language, 0)


EMBEDDING = random_embedding(40, 3)


def markov_texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    names, followers = EMBEDDING.words.to_pylist(), np.random.default_rng(99).integers(0, 40, (40, 3))
    texts = []
    for _ in range(count):
        word, words = int(rng.integers(0, 40)), []
        for _ in range(8):
            words.append(names[word])
            word = int(followers[word, rng.integers(0, 3)])
        texts.append(" ".join(words))
    return texts


@pytest.fixture
def sanitiser(tmp_path: Path):
    def make(**policy: Any) -> BundleSanitiser:
        bundle = make_bundle(
            tmp_path, EMBEDDING, {"epsilon": 5.0, "neighbours": 12}, padding=False, mechanism="exponential"
        )
        return BundleSanitiser(bundle, TextPolicy(**policy))

    return make


def test_scores_say_what_is_gained(sanitiser):
    redrawn = redraw(sanitiser(), [f"{text} stranger" for text in markov_texts(150, 1)], seed=2)
    language = language_of(markov_texts(500, 3), redrawn.words)
    scores = {(score.method, score.figure): score for score in measure_word_recovery(redrawn, language, "release")}
    gain, plain = scores["forward-backward", "gain-by-context"], scores["maximum-posterior", "recovered"]
    assert gain.value == pytest.approx(scores["forward-backward", "recovered"].value - plain.value)
    assert 0 < gain.low < gain.value < gain.high
    assert plain.count == 150 * 8  # strangers are not counted
    assert plain.low < plain.value < plain.high
    exact = scores["maximum-posterior", "recovered-exact"]
    assert exact.value == find_recovered(redrawn.mechanism, language.frequencies, 1)[0]
    assert plain.low - 0.05 < exact.value < plain.high + 0.05
    assert ("viterbi", "recovered-stop-words") not in scores  # there are none


def test_words_that_are_never_hidden_are_no_guess(sanitiser):
    """Copied words are read as they are, and are known not to stand behind others."""
    names = EMBEDDING.words.to_pylist()
    policy = {"stop_words": "keep", "stop_word_list": tuple(names[:10])}
    redrawn = redraw(sanitiser(**policy), markov_texts(60, 1), seed=2)
    assert not redrawn.is_hidden.all()
    guesses, _ = guess_words(redrawn, language_of(markov_texts(500, 3), redrawn.words))
    for name in ("maximum-posterior", *Decoding):
        assert guesses[name].min() >= 10
        assert guesses[name].shape == redrawn.hidden.ids.shape
    capitals, _ = guess_words(
        redraw(sanitiser(**policy, stop_word_capitals="replace"), [names[0].upper()] * 50, seed=2),
        language_of(markov_texts(500, 3), redrawn.words),
    )
    assert any(guessed.min() < 10 for guessed in capitals.values())
    every, _ = guess_words(redraw(sanitiser(), markov_texts(60, 1), seed=2), language_of([], redrawn.words))
    assert all(guessed.min() < 10 for guessed in every.values())


def test_where_the_order_is_hidden_there_is_no_context(sanitiser):
    redrawn = redraw(sanitiser(output="bag"), markov_texts(20, 1), seed=2)
    language = language_of(markov_texts(50, 3), redrawn.words)
    methods = {score.method for score in measure_word_recovery(redrawn, language, "release")}
    assert methods == {"nearest-word", "maximum-posterior"}
    assert measure_word_recovery(redraw(sanitiser(), ["stranger"], 1), language, "release") == []


def test_intervals_are_of_texts_and_not_of_words():
    """Texts whose words are all right or all wrong: the interval is that of as many coins as texts."""
    is_right = np.random.default_rng(0).random(400) < 0.3
    low, high = find_ratio_interval(is_right * 50.0, np.full(400, 50), seed=1)
    width = 2 * 1.96 * np.sqrt(is_right.mean() * (1 - is_right.mean()) / 400)
    assert high - low == pytest.approx(width, rel=0.15)
