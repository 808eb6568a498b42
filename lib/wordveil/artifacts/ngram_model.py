"""N-gram model of public text as a content-addressed directory that workers map into memory.

    <store>/<digest>/manifest.json   what it is, with a checksum of every file and of itself
    <store>/<digest>/<array>.bin     the words' bytes and their hash table, and the trie
    (:class:`wordveil.text.slots.NgramModel`)

The digest covers settings, words and counts, but not the source of the text, software versions or time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts import content_store
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.errors import Fault, NgramError, shown_value
from wordveil.mechanisms.inputs import Bigrams
from wordveil.text.draft import DraftPolicy
from wordveil.text.slots import NgramModel, NgramSettings, Trie

FORMAT_VERSION = 1


def _describe(manifest: Mapping[str, Any]) -> str:
    settings = manifest["content"]["settings"]
    return ", ".join(f"{name} {settings[name]}" for name in ("max_n", "min_count"))


_ORIGIN = "Make one with `wordveil ngrams` from public text."
KIND = content_store.Kind("n-gram model", NgramError, "digest", FORMAT_VERSION, _ORIGIN, _describe)
DEMO = "demo"
"""Name of the package's model: bigrams of old novels and WordNet's sentences, with words of ``glove`` and ``demo``."""
_ARRAYS = ("word_bytes", "word_offsets", "word_slots", "words", "counts", "first")


def write_model(
    store: Path, settings: NgramSettings, words: pa.StringArray, total: int, trie: Trie, provenance: Mapping[str, Any]
) -> Path:
    """Write a model into ``store`` and return its directory.

    ``words``: in the order of their numbers, the first one empty. ``total``: the number of words of the text.
    ``provenance``: facts for people, which the digest does not cover.
    """

    def fill(draft: Path) -> dict[str, Any]:
        index = WordIndex(words)
        arrays = (index.data, index.offsets, index.slots, trie.words, trie.counts, trie.first)
        files: dict[str, Any] = {}
        for name, array in zip(_ARRAYS, arrays, strict=True):
            files |= content_store.write_array(draft, name, np.asarray(array))
        content = {"format_version": FORMAT_VERSION, "settings": asdict(settings), "total": total, "files": files}
        return content_store.write_manifest(draft, KIND, content, {"provenance": dict(provenance)})

    return content_store.write_directory(store, KIND, fill, open_model)


def open_model(path: Path, digest: str | None = None) -> NgramModel:
    """Open and verify the model at ``path``: every file's size and SHA-256, the manifest's checksum and the digest.

    ``digest``: the expected one, if known. Raises :class:`NgramError`, which names the file.
    """
    manifest = read_model(path)
    if digest is not None and manifest["digest"] != digest:
        raise NgramError(
            f"{path / content_store.MANIFEST}: this is not the n-gram model that the run started with. Restore that "
            "model, or start the run again."
        )
    content = manifest["content"]
    content_store.verify_files(path, KIND, content["files"])
    arrays = content_store.map_arrays(path, content["files"])
    index = WordIndex.of(*(arrays[name] for name in _ARRAYS[:3]))
    trie = (arrays[name] for name in _ARRAYS[3:])
    return NgramModel(path, manifest["digest"], NgramSettings(**content["settings"]), content["total"], index, *trie)


def read_model(path: Path) -> dict[str, Any]:
    """Read the manifest of the model at ``path``, verified without any other file. Raises :class:`NgramError`."""
    return content_store.read_manifest(path, KIND)


def open_named(source: str, setting: str = "mechanism.ngrams") -> NgramModel:
    """Open and verify the model at ``source``: :data:`DEMO`, or a path of a model or of a store with no other.

    ``setting``: the setting that names it, for messages. Raises :class:`NgramError`.
    """
    if source == DEMO:
        with resources.as_file(resources.files("wordveil") / "data" / "bigrams") as store:
            return open_model(find_model(store, setting))
    return open_model(find_model(Path(source), setting))


def bigrams_of(model: NgramModel) -> Bigrams:
    """Extract the words and bigrams of a model, in its order, without longer n-grams."""
    size = len(model.index.offsets) - 1
    end = int(model.first[size])
    offsets, data = pa.py_buffer(model.index.offsets), pa.py_buffer(model.index.data)
    return Bigrams(
        words=pa.LargeStringArray.from_buffers(size, offsets, data).cast(pa.string()),
        counts=model.counts[:size],
        first=model.first[: size + 1] - size,
        followers=model.words[size:end],
        pair_counts=model.counts[size:end],
    )


def find_model(path: Path, setting: str = "text.ngrams") -> Path:
    """Find the model's directory by :func:`wordveil.artifacts.content_store.find_one`. Raises :class:`NgramError`."""
    return content_store.find_one(path, KIND, setting)


def find_model_faults(path: Path, policy: DraftPolicy) -> Iterator[Fault]:
    """List the faults of a text policy's model: it is missing, or was counted with another definition of words."""
    try:
        counted = read_model(find_model(path))["content"]["settings"]
    except NgramError as error:
        yield Fault("text.ngrams", "", str(error))
        return
    for name, value in counted.items():
        chosen = getattr(policy, name, value)
        if chosen != value:
            problem = (
                f"the n-gram model was counted with {name}: {value}. Set text.{name} to it, or run "
                f"`wordveil ngrams` with --{name} {chosen}."
            )
            yield Fault(f"text.{name}", shown_value(chosen), problem)
