"""Pairs added up by Spark make the same hierarchy as pairs read on the driver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordveil.embeddings.training.hypernyms import PoincareSettings, build_hierarchy, read_pairs
from wordveil.errors import EmbeddingError
from wordveil.spark.builds.hypernyms import read_on_executors


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
