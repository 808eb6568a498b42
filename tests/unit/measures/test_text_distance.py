"""The distance of two texts is the Earth Mover's, its flow moves one onto the other, and its bound holds exactly."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from support import toys
from wordveil.cli.plan_tables import distance_facts
from wordveil.errors import ConfigError, EmbeddingError
from wordveil.measures.text_distance import measure_distance
from wordveil.text.policy import TextPolicy

BAG = TextPolicy(output="bag")
PLACES = dict(zip("abcdefgh", (1.0, 2.0, 3.5, 5.0, 8.0, 8.5, 12.0, 21.0), strict=True))
LINE = toys.toy_embedding(list(PLACES), list(PLACES.values()))


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return toys.laplace_bundle(tmp_path_factory.mktemp("line"), LINE, 0.5, padding=False)


@pytest.mark.parametrize("seed", range(8))
def test_distance_on_a_line_and_its_flow(line, seed):
    rng = np.random.default_rng(seed)
    first, second = (rng.choice(list(PLACES), size).tolist() for size in (6, rng.choice([4, 6, 9])))
    apart = measure_distance(line, TextPolicy(length="sample", n_max=5), (" ".join(first), " ".join(second)))
    expected = wasserstein_distance([PLACES[word] for word in first], [PLACES[word] for word in second])
    assert apart.distance == pytest.approx(expected, rel=1e-6)
    sent, received = Counter(), Counter()
    for move in apart.moves:
        assert move.distance == pytest.approx(abs(PLACES[move.source] - PLACES[move.target]))
        sent[move.source] += move.tokens
        received[move.target] += move.tokens
    assert sent == pytest.approx(Counter(first))
    assert received == pytest.approx({word: 6 / len(second) * count for word, count in Counter(second).items()})
    # On a line the bottleneck is the largest gap between equal quantiles.
    parts = [np.repeat(np.sort([PLACES[word] for word in text]), 36 // len(text)) for text in (first, second)]
    assert apart.bottleneck == pytest.approx(np.abs(parts[0] - parts[1]).max())
    assert apart.epsilon_bound == pytest.approx(0.5 * 5 * apart.bottleneck)
    assert apart.bag_bound is None


def test_loss_of_bag_by_distance_of_sequence_by_position(line):
    texts = ("a b c", "b c a")
    bag, sequence = measure_distance(line, BAG, texts), measure_distance(line, TextPolicy(), texts)
    assert (bag.distance, bag.epsilon_bound, bag.factor) == (0.0, 0.0, 1.0)
    assert sequence.distance == sequence.bag_bound == 0.0
    assert sequence.epsilon_bound == pytest.approx(0.5 * (1.0 + 1.5 + 2.5))
    moved = measure_distance(line, BAG, ("a a b", "c a b"))
    assert moved.bag_bound == moved.epsilon_bound == pytest.approx(0.5 * 3 * moved.distance)
    assert moved.distance == pytest.approx(2.5 / 3)


def test_the_bound_of_a_table_holds_for_every_bag_of_outputs(tmp_path):
    embedding = toys.toy_embedding(["a", "b", "c"], [1.0, 2.0, 2.5])
    bundle = toys.make_bundle(
        tmp_path, embedding, {"epsilon": 3.0, "gamma": 1.2}, padding=False, mechanism="exponential"
    )
    laws = np.stack([bundle.mechanism.probabilities(word) for word in range(3)])

    def bags(ids):
        found = Counter()
        for outputs in product(range(3), repeat=len(ids)):
            found[tuple(sorted(outputs))] += math.prod(
                laws[word, output] for word, output in zip(ids, outputs, strict=True)
            )
        return found

    for first, second in product(product("abc", repeat=2), repeat=2):
        apart = measure_distance(bundle, BAG, (" ".join(first), " ".join(second)), embedding)
        here, there = (bags(["abc".index(word) for word in text]) for text in (first, second))
        assert max(math.log(here[bag] / there[bag]) for bag in here) <= apart.epsilon_bound + 1e-9
        assert (apart.epsilon_bound == 0) == (sorted(first) == sorted(second))
    # The unknown word lies at gamma, and no two words are farther apart.
    assert measure_distance(bundle, BAG, ("a", "zorblax"), embedding).distance == 1.2
    assert measure_distance(bundle, BAG, ("a", "c"), embedding).distance == 1.2
    with pytest.raises(EmbeddingError, match=r"Put the embedding where mechanism\.embedding names it"):
        measure_distance(bundle, BAG, ("a", "c"))


def test_a_text_without_words_is_filled_or_sampled(tmp_path, line):
    padded = toys.laplace_bundle(tmp_path, LINE, 0.5, padding=True)
    apart = measure_distance(padded, TextPolicy(length="pad", n_max=3, output="bag"), ("", "a b"))
    assert apart.tokens == (3, 3)
    assert {(move.source, move.target, move.tokens) for move in apart.moves} == {
        ("padding", "padding", 1.0),
        ("padding", "a", 1.0),
        ("padding", "b", 1.0),
    }
    assert 0 < apart.epsilon_bound <= 3 * padded.guarantee.pure
    sampled = measure_distance(line, TextPolicy(length="sample", n_max=4), ("", "the a"))
    assert sampled.tokens == (1, 2)
    assert {move.source for move in sampled.moves} == {"the unknown word"}
    nothing = measure_distance(line, TextPolicy(), ("!", ""))
    assert (nothing.distance, nothing.epsilon_bound) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("policy", "texts", "why"),
    [
        ({}, ("a b", "a"), "different numbers of tokens"),
        ({}, ("a b", ""), "different numbers of tokens"),
        ({"punctuation": "keep"}, ("a b", "a, b"), "what this configuration shows: length, presence, punctuation"),
        ({"repeat": "same"}, ("a a", "a b"), "what this configuration shows: length, presence, repetition"),
    ],
)
def test_what_a_release_shows_is_bounded_by_nothing(line, policy, texts, why):
    apart = measure_distance(line, TextPolicy(**policy), texts)
    assert (apart.epsilon_bound, apart.bag_bound, apart.factor) == (None, None, None)
    assert why in apart.unbounded
    assert distance_facts(apart)["epsilon between them"].startswith("none: unbounded, since they")


def test_a_word_that_is_drawn_once_is_paid_once(line):
    apart = measure_distance(line, TextPolicy(repeat="same"), ("a a d a", "b b d b"))
    assert apart.epsilon_bound == pytest.approx(0.5)
    assert apart.bag_bound == pytest.approx(1.5)


def test_distance_without_metric_share_of_other_words(tmp_path):
    bundle = toys.make_bundle(
        tmp_path, LINE, {"epsilon": 3.0, "sizes": [4], "losses": []}, padding=False, mechanism="tree"
    )
    apart = measure_distance(bundle, BAG, ("a b c d", "d c h g"))
    assert (apart.metric, apart.distance) == ("discrete", 0.5)
    assert apart.epsilon_bound == pytest.approx(2 * bundle.guarantee.pure)
    assert distance_facts(apart)["metric"] == "any two different words are 1 apart"


def test_a_text_that_is_drawn_as_a_whole_has_no_distance(line):
    class Whole(type(line.mechanism)):
        reads_context = True

    whole = replace(line, mechanism=object.__new__(Whole))
    apart = measure_distance(whole, TextPolicy(), ("a b c", "a b d"))
    assert (apart.composition, apart.distance, apart.moves) == ("text", None, ())
    assert apart.epsilon_bound == pytest.approx(3 * line.guarantee.pure)
    assert measure_distance(whole, TextPolicy(), ("a b", "a b")).epsilon_bound == 0.0
    assert distance_facts(apart)["metric"] == "none: the text is drawn as a whole"


def test_a_text_that_a_run_refuses_is_named(line):
    with pytest.raises(ConfigError, match=r"--against = zorblax: a run would refuse it: unknown_words"):
        measure_distance(line, TextPolicy(unknown="quarantine"), ("a", "zorblax"))
