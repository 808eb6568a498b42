"""Clusters that are subtrees of hypernyms: a partition, each hypernym above its words, and what is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.toys import build_tree, load_built, random_embedding
from wordveil.arrays import Int32, Int64
from wordveil.errors import BundleError
from wordveil.mechanisms.inputs import Pairs, PublicInputs
from wordveil.mechanisms.tree import cuts
from wordveil.mechanisms.tree.cuts import Subtrees, choose_subtrees
from wordveil.mechanisms.tree.mechanism import Tree

SIZE = 400
# dog 1, cat 2, poodle 3, tabby 4 and animal 0; red 6, blue 7 and colour 5; 8 and 9 have no hypernym.
SMALL = [(1, 0), (2, 0), (3, 0), (4, 0), (3, 1), (4, 2), (6, 5), (7, 5)]


def pairs_of(edges: list[tuple[int, int]]) -> Pairs:
    low, high = np.array(sorted(set(edges)), np.int32).T
    return Pairs(low, high, np.ones(len(low)))


def random_edges(seed: int, *, circles: int = 0) -> list[tuple[int, int]]:
    """All hypernyms of words with up to three direct ones, for about 300 of 400 words in an order of their own."""
    rng = np.random.default_rng(seed)
    above: list[set[int]] = []
    for word in range(300):
        direct = rng.integers(0, max(1, word // 3), int(rng.integers(1, 4))).tolist() if word else []
        above.append(set(direct).union(*(above[other] for other in direct)))
    edges = {(word, other) for word, others in enumerate(above) for other in others}
    edges |= {(high, low) for low, high in sorted(edges)[:: max(1, len(edges) // circles)]} if circles else set()
    named = rng.permutation(SIZE)
    return [(int(named[low]), int(named[high])) for low, high in edges]


def faults(
    found: Subtrees, edges: list[tuple[int, int]], classes: np.ndarray, counts: list[int], least: int
) -> set[str]:
    """What subtrees break of what they promise, by the pairs alone."""
    above = {
        word: {high for low, high in edges if low == word and classes[low] == classes[high]} for word in range(SIZE)
    }
    below = {high: len({low for low, other in edges if other == high}) for _, high in edges}
    chosen = found.hypernyms.tolist()
    broken = set()
    for number, hypernym in enumerate(chosen):
        words = np.flatnonzero(found.labels == number).tolist()
        broken |= {"small"} if len(words) < least else set()
        broken |= {"not its own"} if hypernym not in words else set()
        broken |= {"not above"} if any(hypernym not in above[word] for word in words if word != hypernym) else set()
        broken |= {"classes"} if len({*classes[words].tolist()}) > 1 else set()
    for word, label in enumerate(found.labels.tolist()):
        ranks = sorted((below[high], high) for high in above[word] | ({word} & set(chosen)) if high in chosen)
        broken |= {"left"} if label < 0 and ranks else set()
        broken |= {"not specific"} if label >= 0 and ranks[0][1] != chosen[label] else set()
    rests = np.bincount(classes[found.labels < 0])
    broken |= {"few left"} if ((rests > 0) & (rests < least)).any() else set()
    broken |= {"many"} if found.clusters > counts[0] else set()
    return broken


def random_case(seed: int, *, circles: int = 0) -> tuple[list[tuple[int, int]], Int64, Int32, list[int], int]:
    """Pairs, weights, classes, counts and the least number of words."""
    rng = np.random.default_rng(seed)
    classes = (rng.random(SIZE) < (0.2 if seed % 2 else 0)).astype(np.int32)
    counts, least = [int(rng.integers(10, 60))], int(rng.integers(1, 9))
    return random_edges(seed, circles=circles), rng.integers(1, 1000, SIZE), classes, counts, least


@pytest.mark.parametrize("circles", [0, 40])
@pytest.mark.parametrize("seed", range(3))
def test_each_word_is_below_the_most_specific_chosen_hypernym(seed: int, circles: int):
    edges, weights, classes, counts, least = random_case(seed, circles=circles)
    found = choose_subtrees(pairs_of(edges), weights, classes, counts, least)
    assert faults(found, edges, classes, counts, least) == set()
    assert len(found.hypernyms) > 2


def test_the_order_of_pairs_and_their_similarities_do_not_matter():
    edges, weights, _, counts, least = random_case(0)
    pairs, rng = pairs_of(edges), np.random.default_rng(1)
    turn = rng.permutation(len(edges))
    shuffled = Pairs(pairs.words[turn], pairs.others[turn], rng.random(len(turn)))
    found, other = (choose_subtrees(each, weights, None, counts, least) for each in (pairs, shuffled))
    assert other.labels.tolist() == found.labels.tolist()
    assert other.hypernyms.tolist() == found.hypernyms.tolist()


def test_what_is_broken_is_found(monkeypatch: pytest.MonkeyPatch):
    edges, weights, classes, counts, least = random_case(1)
    found = choose_subtrees(pairs_of(edges), weights, classes, counts, least)
    labels = found.labels.copy()
    labels[labels == 0] = 1
    assert {"small", "not its own", "not above"} <= faults(replace(found, labels=labels), edges, classes, counts, least)
    labels = np.where(found.labels == 0, -1, found.labels).astype(np.int32)
    assert "left" in faults(replace(found, labels=labels), edges, classes, counts, least)
    turned = replace(found, hypernyms=found.hypernyms[::-1])
    assert {"not its own", "not above", "not specific"} <= faults(turned, edges, classes, counts, least)
    # Without what a hypernym must leave, clusters are too small; in circles one loses its own word.
    monkeypatch.setattr(cuts, "_may_take", lambda *_: True)
    broken = set()
    for seed in range(3):
        edges, weights, classes, counts, least = random_case(seed, circles=40)
        broken |= faults(choose_subtrees(pairs_of(edges), weights, classes, counts, 5), edges, classes, counts, 5)
    assert {"small", "not its own"} <= broken


def test_the_heaviest_are_split_most_evenly():
    def choose(weights: list[int], clusters: int, least: int) -> dict[int, list[int]]:
        found = choose_subtrees(pairs_of(SMALL), np.array(weights), None, [clusters], least)
        return {
            hypernym: np.flatnonzero(found.labels == label).tolist()
            for label, hypernym in enumerate(found.hypernyms.tolist())
        }

    alike = [1] * 10
    # Of the 8 words that have or are a hypernym animal takes 5; of these dog takes 2, as cat would.
    assert choose(alike, 3, 2) == {0: [0, 2, 4], 1: [1, 3]}
    assert choose(alike, 4, 2) == {0: [0, 2, 4], 1: [1, 3], 5: [5, 6, 7]}
    # Colour would leave two words, which are too few for a cluster.
    assert choose(alike, 3, 3) == {0: [0, 1, 2, 3, 4]}
    assert [*choose([1] * 5 + [9] * 3 + [1] * 2, 2, 2)] == [5]
    assert choose([1, 1, 2, 1, 2, *[1] * 5], 3, 2) == {0: [0, 1, 3], 2: [2, 4]}


def built(inputs: PublicInputs, **settings: Any) -> Any:
    chosen = {"output": "hypernym", "pairs": "demo", "padding": True, **settings}
    return build_tree(random_embedding(SIZE, 8), inputs, **chosen)


@pytest.mark.parametrize("counts", [(40,), (40, 4)], ids=str)
@pytest.mark.parametrize("classed", [False, True])
def test_written_is_the_hypernym_or_the_most_frequent_word(counts: tuple[int, ...], classed: bool):
    edges, rng = random_edges(3), np.random.default_rng(3)
    classes = (rng.random(SIZE) < 0.2).astype(np.int32)
    frequencies = rng.random(SIZE) + 0.1
    inputs = PublicInputs(frequencies / frequencies.sum(), pairs=pairs_of(edges), classes=classes)
    named = {"classes": "stop-words:en"} if classed else {}
    artifact = built(inputs, clusters=counts, least=3, losses=(0.0, 1.5)[: len(counts)], **named)
    rows, written = artifact.arrays["rows"], artifact.arrays["written"]
    assert artifact.parameters["counts"] == [*counts, 1]
    hypernyms = {(low, high) for low, high in edges} | {(word, word) for word in range(SIZE)}
    raised = 0
    for row in range(counts[0]):
        words = np.flatnonzero(rows[:SIZE] == row)
        assert len(words) >= 3
        assert written[row] in words
        assert len({*classes[words].tolist()}) == 1 or not classed
        is_subtree = all((word, written[row]) in hypernyms for word in words.tolist())
        raised += is_subtree
        assert is_subtree or written[row] == words[np.argmax(frequencies[words])]
    assert f"{raised} of {counts[0]} clusters are a hypernym and words below it" in " ".join(artifact.notes)
    tree = load_built(Tree, SIZE, artifact)
    words = np.arange(SIZE, dtype=np.int32)
    assert tree.stay_probabilities(words) == pytest.approx([tree.probabilities(word)[word] for word in range(SIZE)])
    assert tree.probabilities(5).argmax() == written[rows[5]]


def test_where_words_suffice_for_fewer_clusters_there_are_fewer():
    edges = [(word, word % 5) for word in range(5, SIZE)]
    artifact = built(PublicInputs(pairs=pairs_of(edges)), clusters=(100,), least=3)
    assert artifact.parameters["counts"] == [5, 1]
    assert sorted(artifact.arrays["written"][:5].tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(BundleError, match=r"clusters = \[100, 20\].*words suffice for 5 lowest clusters. Lower least"):
        built(PublicInputs(pairs=pairs_of(edges)), clusters=(100, 20), least=3, losses=(0.0, 1.0))


def test_what_cannot_be_is_refused():
    with pytest.raises(BundleError, match=r"mechanism.pairs is not set.*Set it to demo"):
        built(PublicInputs(), clusters=(40,))
    few = PublicInputs(pairs=pairs_of(SMALL))
    with pytest.raises(
        BundleError, match=r"clusters = \[40\], for 400 words: mechanism.pairs has no hypernym with 20 w"
    ):
        built(few, clusters=(40,))
    with pytest.raises(BundleError, match="too few clusters for one"):
        built(PublicInputs(pairs=pairs_of(random_edges(0))), clusters=(2,), least=200)


def test_kept_clusters_of_other_pairs_are_not_taken(tmp_path):
    def cut(seed: int) -> list[int]:
        inputs = PublicInputs(pairs=pairs_of(random_edges(seed)))
        return built(inputs, clusters=(30,), least=2, kept=tmp_path).arrays["rows"].tolist()

    first = cut(0)
    assert cut(1) != first
    assert cut(0) == first
