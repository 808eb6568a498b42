"""What is written for clusters: no word that may not be, and for groups one word that tells no more than the group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.toys import build_tree, law_of_word, load_built, random_embedding
from wordveil.assembly.inputs import read_files
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.errors import BundleError
from wordveil.measures.token_draws import write_tokens
from wordveil.mechanisms.inputs import Groups, Pairs, PublicInputs
from wordveil.mechanisms.tree.cuts import join_small
from wordveil.mechanisms.tree.mechanism import Tree

SIZE = 300
EMBEDDING = random_embedding(SIZE, 8)
PAIRS = Pairs(
    *(np.array(ids, np.int32) for ids in zip(*((w, w // 6) for w in range(1, 240)), strict=True)), np.ones(239)
)


def build(inputs: PublicInputs, *, padding: bool = False, **settings: Any) -> Tree:
    chosen = {"clusters": (12,), "least": 5} | settings
    return load_built(Tree, SIZE, build_tree(EMBEDDING, inputs, padding=padding, **chosen))


def rows(tree: Tree) -> list[int]:
    return tree.table.rows[:SIZE].tolist()


OUTPUTS: list[dict[str, Any]] = [
    {"output": "representative"},
    {"output": "member"},
    {"output": "hypernym", "pairs": "demo"},
    {"clusters": (), "sizes": (12,), "written": "ordinary"},
    {"clusters": (), "sizes": (12, 60), "losses": (0.0, 2.0), "output": "member", "written": "ordinary"},
]


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("settings", OUTPUTS)
def test_what_may_not_be_written_never_is(settings: dict[str, Any], *, padding: bool):
    plain = PublicInputs(pairs=PAIRS)
    free = build(plain, padding=padding, **settings)
    # A cluster that has no other word, and half of all words.
    alone = np.flatnonzero(np.array(rows(free)) == rows(free)[5])
    writable = np.arange(SIZE) % 2 == 0
    writable[alone] = False
    tree = build(replace(plain, writable=writable), padding=padding, **settings)
    assert rows(tree) == rows(free)
    assert tree.table.certify().largest == free.table.certify().largest, "the price does not depend on it"
    drawn = write_tokens(tree, np.arange(SIZE, dtype=np.int32).repeat(20), b"x", make_throwaway_keys())
    assert writable[drawn[drawn < SIZE]].all()
    assert len({*drawn[drawn < SIZE].tolist()}) >= 10
    laws = tree.word_laws()
    stays = tree.stay_probabilities(np.arange(SIZE, dtype=np.int32))
    assert laws is not None
    for word in range(0, SIZE, 11):
        law = tree.probabilities(word)
        assert law.sum() == pytest.approx(1)
        assert not law[:SIZE][~writable].any()
        assert stays[word] == pytest.approx(law[word])
        assert law_of_word(laws, word) == pytest.approx(law)
    assert tree.stays_at([4.0], np.arange(SIZE, dtype=np.int32))[0] == pytest.approx(stays)


def test_the_most_frequent_word_that_may_be_written_stands():
    """Of equals that of the lowest id."""
    writable, frequencies = np.arange(SIZE) % 3 == 2, np.random.default_rng(0).integers(1, 4, SIZE) / 600
    inputs = PublicInputs(frequencies=frequencies, writable=writable)
    tree = build(inputs)
    for row, word in enumerate(tree.table.written.tolist()):
        members = np.flatnonzero((np.array(rows(tree)) == row) & writable)
        assert word == members[np.argmax(frequencies[members])]
    assert build(inputs, written="any").table.written.tolist() != tree.table.written.tolist()


def test_too_few_words_that_may_be_written_are_refused():
    writable = np.zeros(SIZE, np.bool_)
    writable[:3] = True
    with pytest.raises(BundleError, match=r"mechanism.written = ordinary: .* clusters have no word .* written: any"):
        build(PublicInputs(writable=writable))


@pytest.mark.parametrize("settings", OUTPUTS[:3])
def test_groups_are_clusters_of_their_own(settings: dict[str, Any]):
    labels = np.full(SIZE, -1, np.int32)
    labels[40:120:2], labels[41:121:4], labels[7] = 0, 1, 2
    groups = Groups(labels, np.array([90, -1, 7], np.int32))
    inputs = PublicInputs(pairs=PAIRS, groups=groups, classes=labels + 1)
    tree = build(inputs, merge="sensitive", classes="stop-words:en", **settings)
    found = np.array(rows(tree))
    first = np.flatnonzero(labels == 0)
    second = np.flatnonzero(labels > 0)  # one word is too few, and joins the smaller of the others
    assert np.flatnonzero(found == found[40]).tolist() == first.tolist()
    assert np.flatnonzero(found == found[41]).tolist() == second.tolist()
    assert tree.probabilities(40).tolist() == tree.probabilities(118).tolist()
    if settings["output"] in ("representative", "hypernym"):
        assert tree.table.written[found[40]] == 90, "the word that names the group"
    without = build(inputs, **settings)
    assert len({rows(without)[word] for word in second.tolist()}) > 1
    assert tree.table.positions == without.table.positions or settings["output"] == "hypernym"


def test_groups_that_are_too_small_altogether_are_refused():
    labels = np.array([0, 1, -1, -1], np.int32)
    with pytest.raises(BundleError, match=r"mechanism.merge: the embedding has 2 of the words, and .*least = 3"):
        join_small(Groups(labels, np.array([-1, -1], np.int32)), 3)


def test_no_listed_name_is_ordinary():
    for text, ordinary in (
        ("the of guitar tree Smith smith's smiths rose paris thai koizumi said disease", "the of guitar tree disease"),
        ("und haus wolke müller Berlin schmidt's himmel", "und haus wolke himmel"),
    ):
        words = text.split()
        writable = read_files({"written": "ordinary"}).fit(pa.array(words)).inputs.writable
        assert writable is not None
        assert [word for word, fine in zip(words, writable, strict=True) if fine] == ordinary.split()


def test_sensitive_words_have_a_group():
    words = ["tree", "hiv", "cancer", "diabetes", "pregnant", "muslim", "jewish", "gay", "health", "democrat"]
    groups = read_files({"merge": "sensitive"}).fit(pa.array(words)).inputs.groups
    assert groups is not None
    found = groups.labels.tolist()
    assert found[0] == -1
    assert found[1] == found[2] == found[3] == found[4] == found[8] != found[5] == found[6] != found[7] != found[9]
    assert groups.names[found[1]] == 8


def test_a_group_is_named_by_a_word_of_its_own(tmp_path):
    (tmp_path / "groups.tsv").write_text("hiv\tcat\ndog\tpets\nflu\tcat\nfish\tcolour\n", "utf-8")
    words = pa.array(["hiv", "dog", "flu", "cat", "red", "pets"])
    groups = read_files({"merge": str(tmp_path / "groups.tsv")}).fit(words).inputs.groups
    assert groups is not None
    assert groups.labels.tolist() == [0, 1, 0, 0, -1, 1]
    assert groups.names.tolist() == [3, 5]
