"""Weights of a generator on disk: one ``.npz`` of float32 arrays with a JSON description.

The file holds no text. Weights that were trained on a private corpus may reveal it, however: such a file is as secret
as the corpus, and only its owner can read it. Its plain SHA-256 is secret too, since it confirms a right guess of the
corpus. Such weights have a salt, which their identity covers: the identity may be published, and reveals nothing to
anyone without the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Float32
from wordveil.crypto.private_files import create_file, find_exposure
from wordveil.errors import GeneratorError
from wordveil.generators.shape import GeneratorShape

_ABOUT = "about"
NOT_READABLE = (KeyError, TypeError, ValueError, zipfile.BadZipFile)
"""Errors of :func:`read_npz` for a file of another kind, and of reading unexpected JSON."""


def write_npz(path: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, private: bool) -> None:
    """Write a file whose bytes depend on nothing else. It gets its name once it is on disk.

    ``about``: plain values. ``arrays``: by any name but ``about``. ``private``: only its owner can read it.
    """
    text = np.frombuffer(json.dumps(dict(about), sort_keys=True).encode(), np.uint8)
    stored: dict[str, Any] = {_ABOUT: text, **arrays}
    draft = path.with_name(f".{path.name}.part")
    with create_file(draft, private=private) as stream:
        np.savez(stream, **stored)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


def read_npz(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a file of :func:`write_npz`: its JSON, and its arrays. Raises :data:`NOT_READABLE` and :class:`OSError`."""
    with np.load(path, allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(stored[_ABOUT].tobytes())
        return about, {name: stored[name] for name in stored.files if name != _ABOUT}


FORMAT_VERSION = 1
Corpus = Literal["public", "private"]


@dataclass(frozen=True)
class GeneratorWeights:
    """Weights of a trained generator.

    ``words_digest``: result of :func:`wordveil.generators.weights.digest_words`. ``corpus``: public or private training
    text. ``arrays``: float32, as :meth:`GeneratorShape.arrays` lists them. ``about``: plain values on the training, for
    people alone. ``salt``: 64 secret hexadecimal digits if the corpus is private, drawn if none are given; else empty.
    """

    shape: GeneratorShape
    words_digest: str
    corpus: Corpus
    arrays: Mapping[str, Float32]
    about: Mapping[str, Any] = field(default_factory=dict)
    salt: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.salt:
            object.__setattr__(self, "salt", draw_salt(self.corpus))
        expected = self.shape.arrays()
        if expected.keys() != self.arrays.keys():
            differing = ", ".join(sorted(expected.keys() ^ self.arrays.keys()))
            raise GeneratorError(f"The weights' arrays are not those of their shape: {differing}. Train it again.")
        for name, shape in expected.items():
            array = self.arrays[name]
            if array.shape != shape or array.dtype != np.float32 or not np.isfinite(array).all():
                raise GeneratorError(
                    f"The weights' array {name} is {array.dtype} {array.shape}, and finite float32 {shape} is needed. "
                    "Train it again."
                )

    @property
    def identity(self) -> str:
        """Identity of arrays and salt: a SHA-256, hexadecimal. With a salt it reveals nothing of the arrays."""
        digest = hashlib.sha256(f"{self.salt}\n".encode())
        for name, shape in self.shape.arrays().items():
            digest.update(f"{name} {shape}\n".encode())
            digest.update(np.ascontiguousarray(self.arrays[name], "<f4").data)
        return digest.hexdigest()


def draw_salt(corpus: Corpus) -> str:
    """Draw the salt of weights; empty if their corpus is public."""
    return secrets.token_hex(32) if corpus == "private" else ""


def digest_words(words: pa.StringArray) -> str:
    """Identify a vocabulary: the SHA-256 of its words, one a line in UTF-8, hexadecimal."""
    return hashlib.sha256("".join(f"{word}\n" for word in words.to_pylist()).encode()).hexdigest()


def save_weights(path: Path, weights: GeneratorWeights) -> None:
    """Write weights to ``path``, whose bytes depend on nothing else. The file gets its name once it is on disk."""
    about = {
        "format_version": FORMAT_VERSION,
        "shape": asdict(weights.shape),
        "words_digest": weights.words_digest,
        "corpus": weights.corpus,
        "about": dict(weights.about),
        "salt": weights.salt,
    }
    arrays = {name: weights.arrays[name] for name in weights.shape.arrays()}
    write_npz(path, about, arrays, private=weights.corpus == "private")


def load_weights(path: Path) -> GeneratorWeights:
    """Read weights. Raises :class:`GeneratorError`, also if others can read weights of a private corpus."""
    try:
        return _decode(path, *read_npz(path))
    except GeneratorError as error:
        raise GeneratorError(f"{path}: {error}") from None
    except OSError as error:
        raise GeneratorError(f"{path}: cannot be read ({error.strerror or error}). Name a generator's file.") from None
    except NOT_READABLE:
        raise GeneratorError(f"{path}: is not a generator's file. Train one with `wordveil train`.") from None


def _decode(path: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GeneratorWeights:
    version, corpus = about["format_version"], about["corpus"]
    if version != FORMAT_VERSION:
        raise GeneratorError(
            f"its format is version {version}, and this version of wordveil reads {FORMAT_VERSION}. Train it again."
        )
    if corpus == "private" and (exposure := find_exposure(path)):
        raise GeneratorError(f"a private corpus trained these weights, and the file {exposure}")
    salt = about["salt"] if corpus == "private" else ""
    shape = GeneratorShape(**about["shape"])
    return GeneratorWeights(shape, about["words_digest"], corpus, arrays, about["about"], salt)
