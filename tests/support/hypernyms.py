"""Hypernym pairs of a small tree, and settings that train on them quickly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from wordveil.embeddings.training.hypernyms import PAIR_SCHEMA, PoincareSettings

ALL = PoincareSettings(min_links=1, stop_words="keep")
"""Leaves no pair out."""
QUICK = replace(ALL, trainer="compiled", dimension=2, epochs=30, burn_in=5, negative=5)
both_trainers = pytest.mark.parametrize("trainer", ["gensim", "compiled"])


def pair_table(*pairs: tuple[Any, ...]) -> pa.Table:
    """Pairs, or pairs with counts, as they are read."""
    rows = [(*pair, 1)[:3] for pair in pairs]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=PAIR_SCHEMA)


def tree_pairs(depth: int) -> list[tuple[str, str]]:
    """The transitive closure of a binary tree: nodes are paths of bits below ``r``."""
    nodes = ["r" + format(number, f"0{level}b") for level in range(1, depth + 1) for number in range(2**level)]
    return [(node, node[:end]) for node in nodes for end in range(1, len(node))]
