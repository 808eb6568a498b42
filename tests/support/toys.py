"""Toy embeddings, bundles, keys and record batches for tests, all of them deterministic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from wordveil.artifacts.bundle import Bundle, Recipe, open_bundle, write
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.crypto.streams import Contexts
from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.mechanisms.base import Mechanism, MechanismArtifact, TokenBatch
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.mechanisms.tree.mechanism import Tree
from wordveil.mechanisms.tree.settings import TreeSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.policy import TextPolicy

RELEASE = "test-release"
MASTER_KEY = MasterKey(bytes(range(100, 132)))
KEYS = MASTER_KEY.for_release(RELEASE)
ID_COLUMN = "id"
WORDS = ["the", "cat", "sat", "on", "mat", "don't", "dog", "été", "well-known", "42", "漢", "字"]
# Lists of neighbours that were found once serve all tests of a process.
_KEPT = TemporaryDirectory(prefix="wordveil-lists-")


def toy_embedding(words: Sequence[str], vectors: Any) -> Embedding:
    """A checked embedding of ``words``; ``vectors`` is anything NumPy reads as ``(len(words), n)``, or as n = 1."""
    array = np.asarray(vectors, np.float64)
    return check_embedding(list(words), array[:, None] if array.ndim == 1 else array, "toy")


def spiral_embedding(words: Sequence[str] = WORDS, scale: float = 1.0) -> Embedding:
    """Words on a spiral in three dimensions, well apart."""
    turn = np.arange(1, len(words) + 1)
    vectors = scale * np.stack([turn * np.cos(turn), turn * np.sin(turn), turn], axis=1)
    return check_embedding(list(words), vectors.astype(np.float32), "toy")


def toy_settings(mechanism: Mapping[str, Any], **sections: Any) -> dict[str, Any]:
    """A configuration with every key that one must have, as YAML gives it; ``sections`` replace whole ones."""
    return {
        "format_version": 2,
        "release": "toy",
        "input": {"path": "in", "id": "id", "text": "text"},
        "mechanism": dict(mechanism),
        "bundle_store": "bundles",
        "text": {"profile": "strict", "n_max": 8},
        "key": {"env": "KEY"},
        "output": {"path": "out"},
        **sections,
    }


def random_embedding(size: int, dimension: int, seed: int = 0) -> Embedding:
    """``size`` standard normal vectors; the words are ``waaa``, ``waab``, ... (letters only)."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["w" + letters[i // 676] + letters[i // 26 % 26] + letters[i % 26] for i in range(size)]
    return toy_embedding(words, np.random.default_rng(seed).standard_normal((size, dimension)))


def build(
    embedding: Embedding, settings: Mapping[str, Any], *, padding: bool, mechanism: str = "laplace"
) -> MechanismArtifact:
    """What the mechanism puts into a bundle; ``settings`` by name, as a configuration has them."""
    kind = MECHANISMS[mechanism]
    return build_artifact(kind, embedding, kind.settings_type(**settings), padding=padding)


def build_artifact(
    mechanism: type[Mechanism[Any]],
    embedding: Embedding,
    settings: MechanismSettings,
    *,
    padding: bool,
    kept: Path | None = None,
) -> MechanismArtifact:
    """The same from the mechanism's own settings, with the public data of its examples. ``kept``: for found lists."""
    inputs = mechanism.examples()[""].inputs(embedding)
    work = BuildContext(kept=kept or Path(_KEPT.name))
    return mechanism.build(embedding, settings, padding=padding, work=work, inputs=inputs)


def build_mechanism(
    embedding: Embedding, settings: Mapping[str, Any], *, padding: bool, mechanism: str = "laplace"
) -> Mechanism[Any]:
    """The mechanism itself, loaded from what it built."""
    built = build(embedding, settings, padding=padding, mechanism=mechanism)
    return load_built(MECHANISMS[mechanism], embedding.size, built)


def load_built(mechanism: type[Mechanism[Any]], size: int, built: MechanismArtifact) -> Mechanism[Any]:
    """What was built as a worker loads it. Files are mapped, so that they live on without their directory."""
    with TemporaryDirectory() as directory:
        files = {name: Path(directory) / name for name in built.files}
        for name, write_to in built.files.items():
            write_to(files[name])
        return mechanism.load(size, built.parameters, built.arrays, files)


def build_tree(
    embedding: Embedding,
    inputs: PublicInputs = NO_INPUTS,
    *,
    padding: bool = False,
    kept: Path | None = None,
    **settings: Any,
) -> MechanismArtifact:
    """What the tree puts into a bundle at an epsilon of 4, with these public data and settings."""
    chosen = TreeSettings(**{"epsilon": 4.0, **settings})
    return Tree.build(embedding, chosen, padding=padding, work=BuildContext(kept=kept), inputs=inputs)


def law_of_word(laws: WordLaws, word: int) -> NDArray[np.float64]:
    """Add a word's extras to what all words share: the probability of each output, each of which is listed once."""
    law = laws.shares[word] * laws.common
    entries = slice(laws.offsets[word], laws.offsets[word + 1])
    assert len(np.unique(laws.ids[entries])) == entries.stop - entries.start
    law[laws.ids[entries]] += laws.extras[entries]
    return law


def make_bundle(
    store: Path,
    embedding: Embedding,
    settings: Mapping[str, Any],
    *,
    padding: bool,
    mechanism: str = "laplace",
    lists: str = "",
) -> Bundle:
    """A bundle that was built, written into ``store`` and opened again. ``lists``: the language of its public lists."""
    built = build(embedding, settings, padding=padding, mechanism=mechanism)
    recipe = Recipe(mechanism, dict(settings), padding, "toy", embedding.digest, lists=lists)
    return open_bundle(write(store, embedding, built, recipe, {}))


def toy_recipe(embedding: Embedding, *, epsilon: float = 1.0, padding: bool = False, name: str = "toy.vec") -> Recipe:
    return Recipe("laplace", {"epsilon": epsilon}, padding, name, embedding.digest)


def write_toy_bundle(
    store: Path, embedding: Embedding | None = None, *, epsilon: float = 1.0, padding: bool = False, **more: Any
) -> Path:
    """A bundle of the Laplace mechanism, written into ``store``: its directory. ``more``: provenance."""
    embedding = spiral_embedding() if embedding is None else embedding
    built = build(embedding, {"epsilon": epsilon}, padding=padding)
    return write(store, embedding, built, toy_recipe(embedding, epsilon=epsilon, padding=padding), more)


def open_sanitiser(embedding: Embedding, mechanism: str, settings: MechanismSettings, store: Path) -> BundleSanitiser:
    """A mechanism without padding, built into ``store``, that sanitises words alone."""
    built = build_artifact(MECHANISMS[mechanism], embedding, settings, padding=False)
    recipe = Recipe(mechanism, settings.recipe(), False, embedding.source, embedding.digest)
    return BundleSanitiser(open_bundle(write(store, embedding, built, recipe, {})), TextPolicy())


def laplace_bundle(store: Path, embedding: Embedding, epsilon: float, *, padding: bool, lists: str = "") -> Bundle:
    return make_bundle(store, embedding, {"epsilon": epsilon}, padding=padding, lists=lists)


def bundle_array(bundle: Bundle, name: str) -> NDArray[Any]:
    """The array ``name`` as it lies in the bundle's file, by its manifest alone."""
    entries = bundle.manifest["content"]["files"]
    file, entry = next((file, entry) for file, entry in entries.items() if entry.get("array") == name)
    return np.fromfile(bundle.path / file, np.dtype(entry["dtype"])).reshape(entry["shape"])


def bundle_points(bundle: Bundle) -> NDArray[np.float64]:
    """The points of words, padding and unknown word, ``(size + 2, m)``: array ``index`` without its scoring column."""
    return bundle_array(bundle, "index")[:, :-1].astype(np.float64)


def counted_contexts(count: int, series: int = 0) -> Contexts:
    """``count`` distinct contexts; those of two series have none in common."""
    words = np.zeros((count, 3), "<u4")
    words[:, 0] = np.arange(count)
    words[:, 2] = series
    return words.view(np.uint8)


def ragged(lists: Iterable[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Lists of ids as ids and offsets."""
    arrays = [np.asarray(ids, np.int32) for ids in lists]
    offsets = np.cumsum([0, *map(len, arrays)]).astype(np.int64)
    return np.concatenate([*arrays, np.empty(0, np.int32)]), offsets


def unravel(values: Any, offsets: NDArray[np.int64]) -> list[list[Any]]:
    """The inverse of :func:`ragged`, for arrays of NumPy or Arrow."""
    plain = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    return [plain[start:stop] for start, stop in pairwise(offsets.tolist())]


def token_batch(sequences: Iterable[Sequence[int]], contexts: Contexts | None = None) -> TokenBatch:
    """Ragged ids as a batch, with counted contexts unless some are given."""
    ids, offsets = ragged(sequences)
    return TokenBatch(ids, offsets, counted_contexts(len(offsets) - 1) if contexts is None else contexts)


def sequences(batch: TokenBatch) -> list[list[int]]:
    """The inverse of :func:`token_batch`."""
    return unravel(batch.ids, batch.offsets)


def record_batch(
    texts: Sequence[str | None],
    ids: Sequence[Any] | None = None,
    reasons: Sequence[str | None] | None = None,
    kept: Mapping[str, pa.Array] | None = None,
) -> pa.RecordBatch:
    """Make input of :class:`RecordSanitiser`: records ``r0``, ``r1``, ... of which none is refused, unless given."""
    columns: dict[str, pa.Array] = {ID_COLUMN: pa.array([f"r{i}" for i in range(len(texts))] if ids is None else ids)}
    columns.update(kept or {})
    columns[TEXT_COLUMN] = pa.array(texts, pa.string())
    columns[REASON_COLUMN] = pa.array([None] * len(texts) if reasons is None else reasons, pa.string())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def record_sanitiser(
    bundle: Bundle,
    policy: TextPolicy,
    *,
    kept: tuple[str, ...] = (),
    release: str = RELEASE,
    keys: ReleaseKeys | None = None,
) -> RecordSanitiser:
    """A sanitiser of records named by :data:`ID_COLUMN`, with the test key's subkeys unless some are given."""
    settings = RecordSettings(release=release, run_id="test-run", policy=policy, kept=kept)
    return RecordSanitiser(settings, bundle, MASTER_KEY.for_release(release) if keys is None else keys)


def sanitise(sanitiser: RecordSanitiser, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(list(sanitiser.sanitise(batch)))


def install_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put a fake in place of sentence-transformers; return the models that it loads; ``missing`` cannot be loaded."""
    loaded: list[str] = []

    class Model:
        def __init__(self, name: str) -> None:
            if name == "missing":
                raise OSError(name)
            loaded.append(name)

        def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float64]:
            return np.array([[len(text), 1.0] for text in texts])

    library: Any = ModuleType("sentence_transformers")
    library.__spec__ = ModuleSpec(library.__name__, None)
    library.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, library.__name__, library)
    return loaded
