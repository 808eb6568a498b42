"""What clusters of any size are cut by: weights, rarity, classes."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from support.toys import build_tree, random_embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.inputs import PublicInputs, rank_frequencies
from wordveil.mechanisms.tree import build
from wordveil.mechanisms.tree.build import add_rarity, weigh_words
from wordveil.neighbours.clusters import HEAVIEST, share_clusters

FREQUENCIES = rank_frequencies(800)


def cut(inputs: PublicInputs, size: int = 400, **settings: Any) -> list[list[int]]:
    """The words of each lowest cluster."""
    rows = build_tree(random_embedding(size, 8), inputs, **settings).arrays["rows"][:size]
    return [np.flatnonzero(rows == row).tolist() for row in range(rows.max() + 1)]


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.5, 0.75, 1.0, 2.0])
def test_weights_are_the_rounded_powers(exponent: float, monkeypatch: pytest.MonkeyPatch):
    with localcontext(prec=40):
        most = Decimal(FREQUENCIES[0])
        powers = [HEAVIEST * (Decimal(value) / most) ** Decimal(exponent) for value in FREQUENCIES.tolist()]
        expected = [max(int(power.to_integral_value()), 1) for power in powers]
    assert weigh_words(FREQUENCIES, exponent).tolist() == expected
    # With all digits wrong that another machine may have, decimals decide of each word.
    monkeypatch.setattr(build, "_NEAR_HALF", 1.0)
    assert weigh_words(FREQUENCIES, exponent).tolist() == expected


def test_rarity_is_one_more_coordinate(monkeypatch: pytest.MonkeyPatch):
    vectors = random_embedding(800, 8).vectors
    points = add_rarity(vectors, FREQUENCIES, 0.25)
    assert points.dtype == np.float32
    assert points.shape == (800, 9)
    logarithms = np.log(FREQUENCIES)
    expected = np.clip((logarithms - logarithms.mean()) / logarithms.std(), -3, 3)
    assert points[:, -1] / (0.25 * build.LONGEST) == pytest.approx(expected, abs=1e-5)
    units = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    assert points[:, :-1] / build.LONGEST == pytest.approx(units, abs=3e-4)
    assert (add_rarity(3 * vectors, FREQUENCIES, 0.25) == points).mean() > 0.99, "lengths do not count"
    assert not add_rarity(vectors, FREQUENCIES, 0.0)[:, -1].any()
    assert not add_rarity(vectors, np.full(800, 1 / 800), 0.25)[:, -1].any()
    monkeypatch.setattr(build, "_NEAR_HALF", 1.0)
    assert (add_rarity(vectors, FREQUENCIES, 0.25) == points).all()


@pytest.mark.parametrize("seed", range(4))
def test_words_of_different_classes_never_share_a_cluster(seed: int):
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(2, 6))
    classes = np.minimum(rng.geometric(0.5, 400) - 1, kinds - 1).astype(np.int32)
    inputs = PublicInputs(classes=classes)
    clusters = int(rng.integers(kinds, 25))
    found = cut(inputs, clusters=(clusters,), least=3, classes="stop-words:en")
    assert len(found) == clusters
    assert min(map(len, found)) >= 3
    assert {len({*classes[words].tolist()}) for words in found} == {1}
    mixed = cut(inputs, clusters=(clusters,), least=3)
    assert any(len({*classes[words].tolist()}) > 1 for words in mixed), "classes are used where they are named"


def test_clusters_are_shared_by_weight_as_far_as_words_reach():
    classes = np.repeat(np.array([0, 1, 2], np.int32), [50, 30, 20])
    weights = np.repeat(np.array([10, 10, 1]), [50, 30, 20])
    assert share_clusters(8, weights, classes, 1).tolist() == [5, 2, 1]
    assert share_clusters(6, weights, classes, 15).tolist() == [3, 2, 1]
    assert share_clusters(3, weights, classes, 20).tolist() == [1, 1, 1]
    for clusters, least in ((2, 1), (7, 15), (3, 21)):
        with pytest.raises(ValueError, match=rf"{clusters} clusters of {least} words or more cannot be cut from 3 cl"):
            share_clusters(clusters, weights, classes, least)


def test_a_class_that_is_too_small_is_named_with_the_setting():
    classes = np.zeros(400, np.int32)
    classes[:4] = 1
    with pytest.raises(BundleError, match=r"mechanism.clusters = \[9\], for 400 words: 9 clusters of 5 .* 2 classes"):
        cut(PublicInputs(classes=classes), clusters=(9,), least=5, classes="x.tsv")
