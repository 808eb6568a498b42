"""Clusters are of equal size at every level or of any, hold similar words, and are the same whatever the threads."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from wordveil.embeddings.embedding import load
from wordveil.neighbours import clusters
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.clusters import (
    HEAVIEST,
    LONGEST,
    ClusterHierarchy,
    build_hierarchy,
    build_partition,
    count_clusters,
    split_by_weight,
    split_evenly,
    whole_directions,
)


def grouped(count: int, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((1 + count // 8, n))
    return (centres[rng.integers(len(centres), size=count)] + rng.standard_normal((count, n))).astype(np.float32)


def whole(vectors: np.ndarray) -> np.ndarray:
    words = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, words)
    return words


def mean_cosine(vectors: np.ndarray, labels: np.ndarray) -> float:
    units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    same = labels[:, None] == labels
    np.fill_diagonal(same, val=False)
    return float((units @ units.T)[same].mean())


def labels_of(hierarchy: ClusterHierarchy, level: int = 0) -> np.ndarray:
    labels = np.empty(len(hierarchy.order), np.int64)
    sizes = np.diff(hierarchy.bounds[level])
    labels[hierarchy.order] = np.repeat(np.arange(len(sizes)), sizes)
    return labels


@pytest.mark.parametrize("seed", range(6))
def test_sizes_differ_by_one_at_most_at_every_level(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(60, 900))
    sizes = [int(rng.integers(1, 4))]
    while sizes[-1] * 3 < size / 2:
        sizes.append(int(rng.integers(2 * sizes[-1], 3 * sizes[-1] + 1)))
    counts = count_clusters(size, sizes)
    found = build_hierarchy(grouped(size, 6, seed), counts, BuildContext())
    assert sorted(found.order.tolist()) == list(range(size))
    assert [len(bounds) - 1 for bounds in found.bounds] == counts
    for bounds, count in zip(found.bounds, counts, strict=True):
        assert (bounds[0], bounds[-1]) == (0, size)
        assert set(np.diff(bounds).tolist()) <= {size // count, -(-size // count)}
    for below, above in zip(found.bounds, found.bounds[1:], strict=False):
        assert set(above.tolist()) <= set(below.tolist()), "clusters lie inside those of the next level"
    for start, stop in zip(found.bounds[0], found.bounds[0][1:], strict=False):
        assert (np.diff(found.order[start:stop]) > 0).all()


def test_counts_follow_the_wished_sizes():
    assert count_clusters(20_000, [20]) == [1000, 1]
    assert count_clusters(20_000, [1, 20, 400]) == [20_000, 1000, 50, 1]
    assert count_clusters(53_979, [20]) == [2699, 1]
    assert count_clusters(61, [1, 4, 17]) == [61, 16, 4, 1]
    with pytest.raises(ValueError, match=r"at most 20, .*not 25"):
        count_clusters(30, [25])
    with pytest.raises(ValueError, match=r"at most 13, .*not 19"):
        count_clusters(20_000, [19, 20])


def test_products_of_whole_directions_are_exact():
    words = whole(grouped(500, 40))
    exact = words.astype(np.int64) @ words.astype(np.int64).T
    assert (words @ words.T == exact).all()
    assert np.diag(exact).max() <= LONGEST**2 < 2**24
    assert np.diag(exact).min() > 0.97 * LONGEST**2
    assert (whole(np.zeros((1, 3), np.float32)) == 0).all()


def test_clusters_more_than_kept_for_a_word_all_filled():
    words = whole(np.tile(grouped(1, 4), (200, 1)))  # all words wish for the same clusters
    assert np.bincount(split_evenly(words, np.full(50, 4))).tolist() == [4] * 50


def test_clusters_hold_similar_words():
    """The mean cosine of these words is 0.24; balanced k-means without swaps reaches 0.516."""
    vectors = load("demo").vectors[:6000]
    found = build_hierarchy(vectors, count_clusters(len(vectors), [20]), BuildContext())
    units = vectors[found.order].astype(np.float64)
    units /= np.linalg.norm(units, axis=1)[:, None]
    sums = np.add.reduceat(units, found.bounds[0][:-1])
    assert ((sums**2).sum() - len(units)) / (len(units) * 19) > 0.52


def test_many_words_are_split_into_groups_first(monkeypatch):
    vectors = grouped(600, 8)
    whole_thing = mean_cosine(vectors, labels_of(build_hierarchy(vectors, [57, 1], BuildContext())))
    monkeypatch.setattr(clusters, "MOST_PRODUCTS", 600 * 57 * 8 // 5)
    found = build_hierarchy(vectors, [57, 1], BuildContext())
    assert set(np.diff(found.bounds[0]).tolist()) == {10, 11}
    assert mean_cosine(vectors, labels_of(found)) > 0.9 * whole_thing


def reordered(function, values):
    """Like :func:`map`, but begins in another order."""
    values = list(values)
    done = {place: function(values[place]) for place in np.random.default_rng(1).permutation(len(values)).tolist()}
    return [done[place] for place in range(len(values))]


@pytest.mark.parametrize("counts", [[150, 1], [600, 60, 6, 1]])
def test_threads_and_their_order_change_nothing(counts, monkeypatch):
    vectors = grouped(3000, 12)
    expected = build_hierarchy(vectors, counts, BuildContext())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)))
    found = build_hierarchy(vectors, counts, BuildContext())
    assert found.order.tolist() == expected.order.tolist()
    with threadpool_limits(2):
        found = clusters.split_levels(whole(vectors), counts, reordered, lambda *_: None)
    assert found.order.tolist() == expected.order.tolist()


def test_a_build_keeps_clusters_and_finds_them_again(tmp_path: Path, monkeypatch):
    vectors = grouped(300, 6)
    first = build_hierarchy(vectors, [30, 1], BuildContext(kept=tmp_path))
    (file,) = tmp_path.glob("*/hierarchy.npz")
    with monkeypatch.context() as patch:
        patch.setattr(clusters, "split_levels", None)
        again = build_hierarchy(vectors, [30, 1], BuildContext(kept=tmp_path))
    assert again.order.tolist() == first.order.tolist()
    assert [bounds.tolist() for bounds in again.bounds] == [bounds.tolist() for bounds in first.bounds]
    file.write_bytes(file.read_bytes()[:100])
    work = BuildContext(kept=tmp_path)
    assert build_hierarchy(vectors, [30, 1], work).order.tolist() == first.order.tolist()
    work.forget()
    assert not tmp_path.exists()


@pytest.mark.parametrize("seed", range(6))
def test_a_partition_has_its_clusters_and_each_its_least_words(seed):
    rng = np.random.default_rng(seed)
    size, least = int(rng.integers(60, 900)), int(rng.integers(1, 9))
    above = [1, int(rng.integers(2, 5))][: 1 + seed % 2]
    lowest = int(rng.integers(above[-1], size // least + 1))
    counts = [lowest, *above[::-1]]
    weights = rng.integers(1, HEAVIEST, size)
    found = build_partition(grouped(size, 6, seed), weights, counts, least, BuildContext())
    assert sorted(found.order.tolist()) == list(range(size))
    assert [len(bounds) - 1 for bounds in found.bounds] == counts
    assert np.diff(found.bounds[0]).min() >= least
    for bounds, count in zip(found.bounds, counts, strict=True):
        held = np.diff(np.searchsorted(found.bounds[0], bounds))
        assert set(held.tolist()) <= {lowest // count, -(-lowest // count)}, "equally many lowest clusters"
    for start, stop in zip(found.bounds[0], found.bounds[0][1:], strict=False):
        assert (np.diff(found.order[start:stop]) > 0).all()


def test_too_few_words_for_a_partition_are_told():
    with pytest.raises(ValueError, match="40 clusters of 3 words or more need 120 words"):
        build_partition(grouped(119, 6), np.ones(119, np.int64), [40, 1], 3, BuildContext())
    found = build_partition(grouped(120, 6), np.ones(120, np.int64), [40, 1], 3, BuildContext())
    assert set(np.diff(found.bounds[0]).tolist()) == {3}


def test_frequent_words_have_small_clusters():
    vectors, frequent = grouped(3000, 12), np.random.default_rng(1).random(3000) < 0.1
    vectors[frequent, :6] = vectors[~frequent, 6:] = 0
    weights = np.where(frequent, 1000, 1)
    labels = labels_of(build_partition(vectors, weights, [150, 1], 2, BuildContext()))
    sizes = np.bincount(labels)[labels]
    assert sizes[frequent].mean() < sizes[~frequent].mean() / 2
    evenly = labels_of(build_partition(vectors, np.ones(3000, np.int64), [150, 1], 2, BuildContext()))
    assert np.bincount(evenly)[evenly][frequent].mean() > sizes[frequent].mean() * 2


def test_threads_and_kept_files_do_not_change_a_partition(tmp_path: Path, monkeypatch):
    vectors, weights = grouped(3000, 12), np.arange(1, 3001)
    expected = build_partition(vectors, weights, [90, 9, 1], 4, BuildContext(kept=tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)))
    with threadpool_limits(2):
        labels, _ = split_by_weight(whole(vectors), weights, 90, 4, reordered)
    rank = labels_of(expected)
    assert len(set(zip(labels.tolist(), rank.tolist(), strict=True))) == 90, "the same clusters, in another order"
    monkeypatch.setattr(clusters, "split_by_weight", None)
    again = build_partition(vectors, weights, [90, 9, 1], 4, BuildContext(kept=tmp_path))
    assert again.order.tolist() == expected.order.tolist()
    for other in ((np.arange(2, 3002), [90, 9, 1], 4), (weights, [90, 9, 1], 5), (weights, [90, 1], 4)):
        with pytest.raises(TypeError):  # not kept
            build_partition(vectors, *other, BuildContext(kept=tmp_path))
