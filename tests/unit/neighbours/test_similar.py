"""Lists of similar words: exact by brute force in whole numbers, the same for any blocks, and Annoy's near them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.repository import NEEDS_ANNOY
from wordveil.neighbours import similar
from wordveil.neighbours.blocks import BuildContext, TooManyEntriesError
from wordveil.neighbours.similar import Partners, SimilarLists, SimilarTask, find_similar, round_directions

WHOLE = 2**64


def task_of(size: int, dimension: int, share: float, seed: int = 0, **more: Any) -> SimilarTask:
    rng = np.random.default_rng(seed)
    masses = (rng.dirichlet(np.ones(size)) * WHOLE * 0.99).astype(np.uint64)
    vectors = rng.standard_normal((size, dimension)).astype(np.float32)
    return SimilarTask(vectors, masses, int(share * WHOLE), Partners.none(size), **{"search": "exact", **more})


def find(task: SimilarTask, most: int = 2**40) -> SimilarLists:
    return find_similar(task, BuildContext(), lambda lengths: int(lengths.sum()), most)


def by_hand(task: SimilarTask, word: int) -> list[int]:
    """The list of a word over all words: products in int64, the lower word first among equals."""
    whole = round_directions(task.vectors).astype(np.int64)
    products = whole @ whole[word]
    order = [other for other in np.lexsort((np.arange(task.size), -products)).tolist() if other != word]
    left, found = task.budget - min(task.budget, int(task.masses[word])), []
    for other in order:
        if left <= 0:
            break
        found.append(other)
        left -= int(task.masses[other])
    return found


def lists(found: SimilarLists) -> list[list[int]]:
    return [part.tolist() for part in np.split(found.ids, found.offsets[1:-1])]


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2, 0.9])
@pytest.mark.parametrize("dimension", [1, 2, 50])
def test_lists_are_those_of_whole_numbers(dimension: int, share: float):
    """All words are ties in one dimension."""
    task = task_of(300, dimension, share)
    assert lists(find(task)) == [by_hand(task, word) for word in range(300)]


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_blocks_do_not_matter(rows: int, monkeypatch: pytest.MonkeyPatch):
    task = task_of(200, 8, 0.1)
    expected = find(task)
    monkeypatch.setattr(similar, "MAX_ROWS", rows)
    found = find(task)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.offsets, expected.offsets)
    assert (found.recall, found.sampled) == (1.0, 0)


@pytest.mark.parametrize("dimension", [1, 3, 300, 3000])
def test_products_of_directions_are_exact_in_any_order(dimension: int):
    rng = np.random.default_rng(1)
    vectors = (rng.standard_normal((60, dimension)) * 10.0 ** rng.uniform(-8, 8, (60, 1))).astype(np.float32)
    vectors[0] = 1.0
    vectors[1] = -1.0
    whole = round_directions(vectors)
    assert (whole == np.rint(whole)).all()
    squares = (whole.astype(np.int64) ** 2).sum(axis=1)
    assert squares.max() < 2**24
    assert squares.min() > 0.9 * 2**24 or dimension == 3000
    exact = whole.astype(np.int64) @ whole.astype(np.int64).T
    order = rng.permutation(dimension)
    assert np.array_equal(whole @ whole.T, exact)
    assert np.array_equal(whole[:, order] @ whole[:, order].T, exact)
    if dimension > 3:
        # Directions of any greater length would not be.
        longer = np.rint(whole * 300).astype(np.float32)
        assert not np.array_equal(longer @ longer.T, longer.astype(np.int64) @ longer.astype(np.int64).T)
    true = vectors.astype(float) / np.linalg.norm(vectors.astype(float), axis=1)[:, None]
    assert not round_directions(np.zeros((1, dimension), np.float32)).any()
    np.testing.assert_allclose(exact / 4095.0**2, true @ true.T, atol=3e-2 if dimension == 3000 else 6e-3)


def pairs(*entries: tuple[int, int, float]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    words, others, similarities = zip(*entries, strict=True)
    return np.array(words, np.int32), np.array(others, np.int32), np.array(similarities)


def test_partners_come_by_falling_similarity_each_once():
    partners = Partners.of(*pairs((1, 3, 0.5), (1, 2, 0.9), (1, 3, 0.95), (1, 1, 9.0), (1, 0, 0.9), (3, 1, -1.0)), 5)
    assert partners.starts.tolist() == [0, 0, 3, 3, 4, 4]
    assert partners.ids.tolist() == [3, 0, 2, 1]


def test_partners_first_in_their_list_and_once():
    task = task_of(100, 4, 0.3)
    far = by_hand(replace(task, budget=WHOLE - 1), 7)[-2:]
    paired = replace(task, partners=Partners.of(*pairs((7, far[1], 0.5), (7, far[0], 0.4)), 100))
    found = lists(find(paired))
    assert found[7][:2] == [far[1], far[0]]
    assert len(set(found[7])) == len(found[7])
    plain = [other for other in by_hand(replace(task, budget=WHOLE - 1), 7) if other not in far]
    assert found[7][2:] == plain[: len(found[7]) - 2]
    assert found[8] == by_hand(task, 8)


def test_lists_stay_in_their_class():
    classes = (np.arange(120) % 5).astype(np.int32)
    classes[119] = 77
    task = task_of(120, 4, 0.05, classes=classes)
    task = replace(task, partners=Partners.of(*pairs((0, 1, 1.0), (0, 5, 0.1)), 120))
    found = lists(find(task))
    assert all(classes[other] == classes[word] for word, listed in enumerate(found) for other in listed)
    assert found[0][0] == 5
    assert found[119] == []
    inside = replace(task, budget=WHOLE - 1)
    assert all(len(listed) == (classes == classes[word]).sum() - 1 for word, listed in enumerate(lists(find(inside))))


def test_words_that_another_embedding_lacks_come_last():
    rng = np.random.default_rng(4)
    known = rng.random(80) < 0.6
    other = np.where(known[:, None], rng.standard_normal((80, 6)), 0).astype(np.float32)
    task = replace(task_of(80, 3, 0.999), other=other, known=known, budget=WHOLE - 1)
    found = lists(find(task))
    for word in range(80):
        listed = found[word]
        assert len(listed) == 79
        if known[word]:
            assert listed[known.sum() - 1 :] == [place for place in range(80) if not known[place]]
            ordered = by_hand(replace(task, vectors=other), word)
            assert listed[: known.sum() - 1] == [place for place in ordered if known[place]]
        else:
            assert listed == by_hand(task, word)


def test_too_many_entries_are_refused():
    task = task_of(100, 4, 0.3)
    entries = len(find(task).ids)
    assert len(find(task, entries).ids) == entries
    with pytest.raises(TooManyEntriesError):
        find(task, entries - 1)


@NEEDS_ANNOY
def test_annoy_finds_near_lists_and_says_how_near():
    task = task_of(1000, 20, 0.02)
    exact = find(task)
    trees = replace(task, search="annoy")
    found = find(trees)
    assert found.sampled == 200
    shares = [
        len(set(mine) & set(true)) / max(len(true), 1) for mine, true in zip(lists(found), lists(exact), strict=True)
    ]
    assert np.mean(shares) == pytest.approx(found.recall, abs=0.05)
    assert 0.5 < found.recall < 1
    for word, listed in enumerate(lists(found)):
        reached = int(task.masses[listed].sum()) + int(task.masses[word])
        assert reached >= task.budget
        assert not listed or reached - int(task.masses[listed[-1]]) < task.budget
    assert np.array_equal(find(trees).ids, found.ids)


@NEEDS_ANNOY
def test_annoy_classes_partners_and_lacking_words_served():
    rng = np.random.default_rng(4)
    known = rng.random(90) < 0.6
    other = np.where(known[:, None], rng.standard_normal((90, 6)), 0).astype(np.float32)
    classes = (np.arange(90) % 2).astype(np.int32)
    task = replace(
        task_of(90, 3, 0.3),
        search="annoy",
        other=other,
        known=known,
        classes=classes,
        partners=Partners.of(*pairs((0, 4, 1.0), (3, 5, 1.0)), 90),
    )
    found, exact = find(task), find(replace(task, search="exact"))
    # So few words are all looked at, except those that come last: the most frequent of these come first.
    assert found.recall > 0.9
    assert lists(found)[0][0] == 4
    assert all(classes[other] == classes[word] for word, listed in enumerate(lists(found)) for other in listed)
    sums = [[int(task.masses[listed].sum()) for listed in lists(one)] for one in (found, exact)]
    assert all(
        mine + int(task.masses[word]) >= task.budget or mine == true
        for word, (mine, true) in enumerate(zip(*sums, strict=True))
    )


def test_auto_is_exact_up_to_many_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(similar, "MAX_EXACT", 100)
    monkeypatch.setattr(similar, "grow_trees", lambda *_: pytest.fail("no trees here"))
    assert find(task_of(100, 4, 0.1, search="auto")).sampled == 0
    assert find(task_of(101, 4, 0.1, search="exact")).sampled == 0
    with pytest.raises(pytest.fail.Exception):
        find(task_of(101, 4, 0.1, search="auto"))


@NEEDS_ANNOY
def test_masses_may_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch):
    """2^64 is 0 in 64 bits: the trees are asked for few words all the same, and a short list is filled up."""
    task = task_of(400, 20, 0.05)
    task.masses[7] += np.uint64(WHOLE - sum(task.masses.tolist()))
    asked = []

    class Trees:
        def get_nns_by_item(self, word: int, count: int) -> list[int]:
            asked.append(count)
            return [word, (word + 1) % 400]  # fewer than it was asked for

    monkeypatch.setattr(similar, "grow_trees", lambda *_: Trees())
    for budget in (task.budget, WHOLE - 1):
        asked.clear()
        found = lists(find(replace(task, search="annoy", budget=budget)))
        common = np.argsort(-task.masses.astype(float), kind="stable").tolist()
        for word, listed in enumerate(found):
            taken = {word, *listed}
            assert sum(int(task.masses[other]) for other in taken) >= budget
            if len(listed) > 1:
                assert taken <= {word, (word + 1) % 400, *common[: len(taken)]}
        assert (min(asked) < 100) == (budget == task.budget)
