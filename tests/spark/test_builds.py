"""Neighbours and hypernyms found by executors are those found on the driver, and make the same bundle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.embeddings.training.hypernyms import PoincareSettings, build_hierarchy, read_pairs
from wordveil.errors import EmbeddingError
from wordveil.geometry.spaces import SPACES
from wordveil.neighbours.blocks import BuildContext
from wordveil.spark.builds.hypernyms import read_on_executors
from wordveil.spark.builds.neighbours import compute_on_executors


@pytest.mark.parametrize("metric", sorted(SPACES))
def test_lists_are_the_same(spark, metric: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordveil.neighbours.lists.MAX_ROWS", 70)
    vectors = 0.1 * np.random.default_rng(1).standard_normal((300, 8))  # short enough for the ball
    points = SPACES[metric].points(vectors.astype(np.float32))
    here = BuildContext().lists(SPACES[metric], points, 12, np.inf, 10**6)
    there = BuildContext(compute=compute_on_executors(lambda: spark)).lists(SPACES[metric], points, 12, np.inf, 10**6)
    for name in ("offsets", "ids", "distances", "cut"):
        assert np.array_equal(getattr(here, name), getattr(there, name))


def test_the_bundle_is_the_same(spark, workspace: Workspace):
    mechanism = {"name": "exponential", "epsilon": 4.0, "neighbours": 5, "gamma": 2.0}
    config = workspace.config(mechanism=mechanism)
    there = build_bundle(config, BuildContext(compute=compute_on_executors(lambda: spark)))
    again = config.model_copy(update={"bundle_store": str(workspace.root / "another")})
    assert build_bundle(again).fingerprint == there.fingerprint


def test_no_session_is_started_where_every_block_is_kept(workspace: Workspace):
    def session() -> None:
        raise AssertionError("nothing is left to compute")

    space, points = SPACES["euclidean"], np.random.default_rng(2).standard_normal((50, 3))
    kept = workspace.root / "parts"
    BuildContext(kept=kept).lists(space, points, 5, np.inf, 10**6)
    context = BuildContext(kept=kept, compute=compute_on_executors(session))  # type: ignore[arg-type]
    context.lists(space, points, 5, np.inf, 10**6)


def test_the_hierarchy_is_the_same(spark, tmp_path):
    rng = np.random.default_rng(4)
    names = np.array([*(f"w{number}" for number in range(30)), "the", "About"])
    for part in range(2):
        word, hypernym = names[rng.integers(0, len(names), (2, 300))]
        pq.write_table(
            pa.table({"word": word, "hypernym": hypernym, "count": rng.integers(1, 4, 300)}),
            tmp_path / f"{part}.parquet",
        )
    settings = PoincareSettings(min_count=3, min_links=5)
    added = read_on_executors(lambda: spark)(tmp_path, settings)
    assert added.num_rows < 600
    here, there = build_hierarchy(read_pairs(tmp_path), settings, "pairs"), build_hierarchy(added, settings, "pairs")
    assert there.words == here.words
    assert np.array_equal(there.edges, here.edges)
    pq.write_table(pa.table({"word": ["a"], "hypernym": ["b"], "count": [0]}), tmp_path / "bad.parquet")
    with pytest.raises(EmbeddingError, match="a count under 1"):
        read_on_executors(lambda: spark)(tmp_path, replace(settings, stop_words="keep"))
