"""Annoy's trees: the same file each time, exact where they look at everything, and a recall that is told."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.repository import NEEDS_ANNOY
from support.toys import (
    KEYS,
    build,
    build_mechanism,
    make_bundle,
    random_embedding,
    record_batch,
    record_sanitiser,
    token_batch,
)
from support.toys import sanitise as sanitised
from wordveil.artifacts.bundle import open_bundle
from wordveil.errors import BundleError, PlatformError
from wordveil.neighbours.annoy import AnnoyNearest
from wordveil.neighbours.exact import ExactNearest, scoring_rows
from wordveil.text.policy import TextPolicy

SIZE = 400
EPSILON = 3.0
EXACT = {"epsilon": EPSILON}
FEW = {"epsilon": EPSILON, "search": "annoy", "n_trees": 2, "search_k": 10}
ALL = {"epsilon": EPSILON, "search": "annoy", "n_trees": 10, "search_k": 100_000}


def embedding() -> Any:
    return random_embedding(SIZE, 12)


def points(count: int = SIZE, dimension: int = 12) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, dimension)).astype(np.float32)


def queries(count: int = 300, dimension: int = 12) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((dimension, count)) * 2


def grown(rows: np.ndarray, n_trees: int = 10, search_k: int = 100_000) -> AnnoyNearest:
    return AnnoyNearest.grow(rows, n_trees, search_k)


@NEEDS_ANNOY
def test_trees_all_points_looked_at_as_the_exact_search():
    rows = scoring_rows(points())
    found = grown(rows).search(queries())
    assert found.dtype == np.int32
    assert np.array_equal(found, ExactNearest(rows, SIZE).search(queries()))


@NEEDS_ANNOY
def test_trees_from_a_file_answer_as_those_in_memory(tmp_path):
    rows = scoring_rows(points())
    trees = grown(rows, 2, 20)
    before = trees.search(queries())
    trees.save(tmp_path / "trees")
    assert np.array_equal(trees.search(queries()), before)
    opened = AnnoyNearest.open(tmp_path / "trees", rows, 20)
    (tmp_path / "trees").unlink()
    assert np.array_equal(opened.search(queries()), before)


@NEEDS_ANNOY
@pytest.mark.parametrize("length", [1e10, 2.0**60, 1e25, 1e140])
def test_far_queries_do_not_overflow(length):
    """In float32 their squares are infinite, and every point as near as any other."""
    rows = scoring_rows(points())
    far = queries(40) * length
    far[:, ::2] = queries(20)
    near = grown(rows, 5, 100).search(queries(20))
    found = grown(rows, 5, 100).search(far)
    assert np.array_equal(found[::2], near)
    if length > 2.0**60:
        assert np.array_equal(found[1::2], ExactNearest(rows, SIZE).search(far)[1::2])
    assert ((found >= 0) & (found < SIZE)).all()


@NEEDS_ANNOY
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_queries_that_are_no_points_are_refused(value):
    wrong = queries(5)
    wrong[3, 2] = value
    with pytest.raises(ValueError, match="finite"):
        grown(scoring_rows(points())).search(wrong)


@NEEDS_ANNOY
def test_two_builds_have_the_same_bytes(tmp_path):
    """The second build is on memory that has been used before."""
    one = make_bundle(tmp_path / "one", embedding(), FEW, padding=True).path
    litter = [bytes([255]) * 10**6 for _ in range(100)]
    del litter
    two = make_bundle(tmp_path / "two", embedding(), FEW, padding=True).path
    assert one.name == two.name
    assert [(one / name).read_bytes() for name in FILES] == [(two / name).read_bytes() for name in FILES]


FILES = ("index.bin", "manifest.json", "trees.annoy", "words.txt")


@NEEDS_ANNOY
def test_trees_in_the_bundle_with_checksum_and_mapped(tmp_path):
    bundle = make_bundle(tmp_path, embedding(), FEW, padding=True)
    assert sorted(file.name for file in bundle.path.iterdir()) == list(FILES)
    trees = (bundle.path / "trees.annoy").read_bytes()
    entry = bundle.manifest["content"]["files"]["trees.annoy"]
    assert entry == {"bytes": len(trees), "sha256": hashlib.sha256(trees).hexdigest(), "raw": True}
    assert bundle.payload_bytes == sum((bundle.path / name).stat().st_size for name in FILES if name != "manifest.json")
    assert str(bundle.path / "trees.annoy") in Path("/proc/self/maps").read_text("utf-8")


@NEEDS_ANNOY
@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_damaged_trees_are_refused_by_name(tmp_path, damage):
    file = make_bundle(tmp_path, embedding(), FEW, padding=True).path / "trees.annoy"
    content = bytearray(file.read_bytes())
    file.unlink()
    if damage != "missing":
        content[len(content) // 2] ^= 1
        file.write_bytes(content[:-1] if damage == "truncated" else content)
    with pytest.raises(BundleError, match=str(file)):
        open_bundle(file.parent)


def every_symbol(times: int = 5) -> Any:
    return token_batch([[*range(SIZE), SIZE, SIZE + 1]] * times)


@NEEDS_ANNOY
def test_padding_can_be_found_and_the_unknown_word_cannot():
    """Padding is a candidate of the search like any word; so are tokens that are not padding drawn as it."""
    drawn = build_mechanism(embedding(), {**ALL, "epsilon": 2.0}, padding=True).draw(every_symbol(4), KEYS).ids
    inputs = every_symbol(4).ids
    assert (drawn[inputs == SIZE] == SIZE).any()
    assert (drawn[inputs != SIZE] == SIZE).any()
    assert drawn.max() == SIZE


@NEEDS_ANNOY
def test_recall_measured_against_exact_search_and_recorded(tmp_path):
    exact, few, all_ = (make_bundle(tmp_path, embedding(), settings, padding=True) for settings in (EXACT, FEW, ALL))
    assert (exact.mechanism.search, exact.mechanism.search_recall) == ("exact", 1.0)
    assert (all_.mechanism.search, all_.mechanism.search_recall) == ("annoy", 1.0)
    recorded = few.manifest["content"]["parameters"]["search_recall"]
    assert few.mechanism.search_recall == recorded == round(recorded, 3)
    drawn = [bundle.mechanism.draw(every_symbol(), KEYS).ids for bundle in (exact, few)]
    assert np.mean(drawn[0] == drawn[1]) == pytest.approx(recorded, abs=0.07)
    assert recorded < 0.9


@NEEDS_ANNOY
def test_low_recall_is_reported_with_its_fix():
    low, high, exact = (build(embedding(), settings, padding=True) for settings in (FEW, ALL, EXACT))
    assert low.guarantee == exact.guarantee, "the search is no part of it"
    [note] = low.notes
    assert f"{low.parameters['search_recall']:.1%} of noisy points at epsilon 3, under 90%" in note
    assert "Raise mechanism.search_k (now 10), then mechanism.n_trees (now 2)" in note
    assert high.notes == ()


@NEEDS_ANNOY
def test_accounting_says_how_the_word_was_found(tmp_path):
    bundle = make_bundle(tmp_path, embedding(), FEW, padding=False)
    [row] = sanitised(record_sanitiser(bundle, TextPolicy()), record_batch(["waaa waab"]))["privacy"].to_pylist()
    assert (row["search"], row["search_recall"]) == ("annoy", bundle.mechanism.search_recall)
    assert row["epsilon"] == EPSILON


@NEEDS_ANNOY
def test_without_annoy_the_message_says_how_to_install_it(tmp_path, monkeypatch):
    path = make_bundle(tmp_path, embedding(), FEW, padding=False).path
    monkeypatch.setitem(sys.modules, "annoy", None)
    with pytest.raises(PlatformError, match=r"mechanism.search = annoy.*pip install 'wordveil\[annoy\]'"):
        build(embedding(), FEW, padding=False)
    with pytest.raises(PlatformError, match=r"pip install 'wordveil\[annoy\]'"):
        open_bundle(path)
