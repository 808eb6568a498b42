"""A toy world for the unit tests: a few words in the plane, their bundle, a fixed key, and hypernym pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wordveil.artifacts import bundle as bundles
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.embeddings.training.hypernyms import PAIR_SCHEMA
from wordveil.measures.redraw import BundleSanitiser
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.language import find_version
from wordveil.text.policy import TextPolicy

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib" / "wordveil"
FILES = sorted(path for path in LIB.rglob("*.py") if LIB / "data" not in path.parents)
"""The package's modules."""
MASTER = MasterKey(bytes(range(100, 132)))
WORDS = ["the", "cat", "sat", "on", "mat", "don't", "dog", "été", "well-known", "42", "漢", "字"]


def offenders(find: Callable[[Path], Any], paths: Iterable[Path]) -> dict[str, Any]:
    """What a lint finds in files, by file: those without a find are left out."""
    return {str(path.relative_to(ROOT)): found for path in paths if (found := find(path))}


def needs(*packages: str) -> pytest.MarkDecorator:
    """The mark of a test that needs optional packages: it is skipped where one of them is not installed."""
    missing = [name for name in packages if find_version(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{' and '.join(missing)} is not installed (pyproject.toml, extras)"
    )


def release_keys(release: str = "toy") -> ReleaseKeys:
    """The subkeys of a release under the fixed key."""
    return MASTER.for_release(release)


def toy_embedding(words: list[str] | None = None, scale: float = 1.0) -> Embedding:
    """Words on a spiral in three dimensions, well apart."""
    words = WORDS if words is None else words
    turn = np.arange(1, len(words) + 1)
    vectors = scale * np.stack([turn * np.cos(turn), turn * np.sin(turn), turn], axis=1)
    return check_embedding(list(words), vectors.astype(np.float32), "toy")


def recipe(
    embedding: Embedding, *, epsilon: float = 1.0, padding: bool = False, name: str = "toy.vec"
) -> bundles.Recipe:
    """The recipe of a toy bundle."""
    return bundles.Recipe("laplace", {"epsilon": epsilon}, padding, name, embedding.digest)


def write_toy(
    store: Path, embedding: Embedding | None = None, *, epsilon: float = 1.0, padding: bool = False, **more: Any
) -> Path:
    """Build a toy bundle, write it into ``store``, return its directory. ``more``: provenance."""
    embedding = toy_embedding() if embedding is None else embedding
    built = Laplace.build(embedding, LaplaceSettings(epsilon=epsilon), padding=padding, work=BuildContext())
    return bundles.write(store, embedding, built, recipe(embedding, epsilon=epsilon, padding=padding), more)


def ragged(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists of ids as ids and offsets."""
    offsets = np.cumsum([0, *(len(item) for item in lists)]).astype(np.int64)
    return np.array([item for part in lists for item in part], np.int32), offsets


def unravel(values: Any, offsets: np.ndarray) -> list[list[Any]]:
    """The inverse of :func:`ragged`, for arrays of NumPy or Arrow."""
    plain = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    return [plain[start:stop] for start, stop in pairwise(offsets.tolist())]


def table(*pairs: tuple[Any, ...]) -> pa.Table:
    """Pairs, or pairs with counts, as they are read."""
    rows = [(*pair, 1)[:3] for pair in pairs]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=PAIR_SCHEMA)


def tree(depth: int) -> list[tuple[str, str]]:
    """The transitive closure of a binary tree: nodes are paths of bits below ``r``."""
    nodes = ["r" + format(number, f"0{level}b") for level in range(1, depth + 1) for number in range(2**level)]
    return [(node, node[:end]) for node in nodes for end in range(1, len(node))]


def open_sanitiser(embedding: Embedding, mechanism: str, settings: MechanismSettings, store: Path) -> BundleSanitiser:
    """A mechanism without padding, built into ``store``, that sanitises words alone."""
    built = MECHANISMS[mechanism].build(embedding, settings, padding=False, work=BuildContext())
    written = bundles.Recipe(mechanism, settings.recipe(), False, embedding.source, embedding.digest)
    return BundleSanitiser(bundles.open_bundle(bundles.write(store, embedding, built, written, {})), TextPolicy())
