"""Word vectors with their words, checked when loaded, and their import from the usual file formats.

On disk an embedding is a directory: ``embedding.json`` (format version, rows, dimension, decoding, source),
``words.txt`` (UTF-8, one word a line) and ``vectors.npy`` (float32, or uint8 with ``scale`` and ``offset``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from gzip import BadGzipFile
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Bool, Float32
from wordveil.errors import EmbeddingError

FORMAT_VERSION = 1
GLOVE = "glove"
DEMO = "demo"
DEMO_POINCARE = "demo-poincare"
SHIPPED = {GLOVE: "glove_embedding", DEMO: "demo_embedding", DEMO_POINCARE: "poincare_embedding"}
"""Embeddings that come with the package: the directory of each name."""
FORMATS = ("auto", "wordveil", "word2vec", "word2vec-binary", "glove", "fasttext")
_MANIFEST = "embedding.json"
_WORDS = "words.txt"
_VECTORS = "vectors.npy"
_FASTTEXT_MAGIC = (0x2F4F16BA).to_bytes(4, "little")
_CHUNK = 4096
_SETTING = "mechanism.embedding"
_NORMALISED = (
    "the vectors are normalised (all lengths are 1): Euclidean distance then depends on the angle alone and is at most "
    "2, so an epsilon chosen for unnormalised vectors means something else here."
)


@dataclass(frozen=True)
class Embedding:
    """Embedding: words and their vectors, row by row.

    ``words``: string array ``(size,)``, distinct and not empty. ``vectors``: float32 ``(size, dimension)``, finite, no
    zero row. ``source``: their origin, for people. ``warnings``: sentences for users.
    """

    words: pa.StringArray
    vectors: Float32
    source: str
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.words)

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def digest(self) -> str:
        """SHA-256 of words and float32 vectors, in hex: equal for equal content in any file format."""
        digest = hashlib.sha256(f"{self.size} {self.dimension}\n".encode())
        digest.update("\n".join(self.words.to_pylist()).encode())
        for start in range(0, self.size, _CHUNK):
            digest.update(np.ascontiguousarray(self.vectors[start : start + _CHUNK], "<f4").tobytes())
        return digest.hexdigest()

    def select(self, rows: NDArray[np.integer], note: str) -> Embedding:
        """Select some of the words, int ``(count,)``, in this order. ``note``: a remark on the choice for users."""
        chosen = self.words.take(pa.array(rows))
        return Embedding(chosen, np.ascontiguousarray(self.vectors[rows]), self.source, (*self.warnings, note))

    def save(self, directory: Path) -> None:
        """Write the embedding as a new directory."""
        directory.mkdir(parents=True)
        np.save(directory / _VECTORS, self.vectors)
        (directory / _WORDS).write_text("".join(f"{word}\n" for word in self.words.to_pylist()), "utf-8")
        manifest = {"format_version": FORMAT_VERSION, "rows": self.size, "dim": self.dimension, "source": self.source}
        (directory / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def check_embedding(words: list[str], vectors: NDArray[Any], source: str) -> Embedding:
    """Check words and vectors, and return them as an :class:`Embedding`. ``source`` names their origin in messages.

    The words must be distinct, not empty and without line breaks; the vectors finite, of shape ``(len(words), n)``,
    without a row of zeros. Otherwise raises :class:`EmbeddingError`, which names the first bad row. If all vectors have
    unit length, the embedding has a warning, since Euclidean distance then depends only on the angle.
    """
    if vectors.ndim != 2 or vectors.shape[0] != len(words) or 0 in vectors.shape:
        raise EmbeddingError(
            f"{source}: there are {len(words)} words, but the vectors have shape {vectors.shape}. Give one row for "
            "each word."
        )
    _check_words(words, source)
    vectors = np.asarray(vectors, np.float32)
    smallest, largest = np.inf, 0.0
    for start in range(0, len(words), _CHUNK):
        with np.errstate(over="ignore"):
            norm = np.linalg.norm(vectors[start : start + _CHUNK].astype(np.float64), axis=1)
        _refuse_rows(~(norm < np.inf), start, words, source, "holds NaN or infinite values")
        _refuse_rows(norm == 0, start, words, source, "is all zeros: it has no direction and no meaning")
        smallest, largest = min(smallest, norm.min()), max(largest, norm.max())
    if not 1e-9 <= largest <= 1e9:
        raise EmbeddingError(
            f"{source}: the longest vector has length {largest:.3g}, and 1e-9 to 1e9 is supported. Rescale the vectors."
        )
    is_normalised = abs(smallest - 1) < 1e-3 and abs(largest - 1) < 1e-3
    return Embedding(pa.array(words, pa.string()), vectors, source, (_NORMALISED,) if is_normalised else ())


def _check_words(words: list[str], source: str) -> None:
    seen: dict[str, int] = {}
    for row, word in enumerate(words):
        if not word.strip():
            raise EmbeddingError(f"{source}: the word of row {row} is empty. Remove the row.")
        if "\n" in word or "\r" in word or "\0" in word:
            raise EmbeddingError(f"{source}: the word of row {row} holds a line break or NUL. Remove the row.")
        if seen.setdefault(word, row) != row:
            raise EmbeddingError(
                f"{source}: {word!r} is listed more than once, in rows {seen[word]} and {row}. Keep one of them."
            )


def _refuse_rows(bad: Bool, start: int, words: list[str], source: str, problem: str) -> None:
    if bad.any():
        row = start + int(np.argmax(bad))
        raise EmbeddingError(f"{source}: row {row} ({words[row]!r}) {problem}. Remove the row or repair the file.")


def load(
    source: str, file_format: str = "auto", progress: Callable[[str], None] = lambda _: None, setting: str = _SETTING
) -> Embedding:
    """Load the embedding at ``source``: a path, or the name of one that comes with the package (:data:`SHIPPED`).

    ``file_format``: one of :data:`FORMATS`; ``auto`` recognises directories, fastText and word2vec binaries, and text
    files with and without a header by their first bytes. ``setting`` names it in messages. Raises
    :class:`EmbeddingError`.
    """
    if source in SHIPPED:
        with _open_shipped(source) as directory:
            return _load_directory(directory, f"{source} embedding")
    path = Path(source)
    _check_exists(path, setting)
    chosen = file_format
    try:
        chosen = _detect(path) if file_format == "auto" else file_format
        progress(f"reading {source} as {chosen}")
        return _READERS[chosen](path, source)
    except EmbeddingError as error:
        raise EmbeddingError(f"{setting} = {error}") from None
    except BadGzipFile:
        raise EmbeddingError(f"{setting} = {source}: is not compressed. Take .gz from its name.") from None
    except EOFError:
        raise EmbeddingError(f"{setting} = {source}: ends before its last vector. Fetch the file again.") from None
    except (ValueError, OSError, KeyError, AssertionError, NotImplementedError, struct.error) as error:
        fix = f"Set {_SETTING}_format to one of" if setting == _SETTING else "Name a file of one of these formats:"
        raise EmbeddingError(
            f"{setting} = {source}: cannot be read as {chosen} ({error}). {fix} {', '.join(FORMATS[1:])}."
        ) from error


def digest_source(source: str, setting: str = _SETTING) -> str:
    """Compute the SHA-256 of the files of ``source``, in hex, which shows if a bundle was built from them.

    ``setting`` names it in messages. Raises :class:`EmbeddingError`.
    """
    with _open_shipped(source) if source in SHIPPED else nullcontext(Path(source)) as path:
        _check_exists(path, setting)
        return digest_files(path)


def embedding_exists(source: str) -> bool:
    """Return whether ``source`` names an embedding of the package or an existing path."""
    return source in SHIPPED or Path(source).exists()


def _open_shipped(name: str) -> AbstractContextManager[Path]:
    return resources.as_file(resources.files("wordveil") / "data" / SHIPPED[name])


def _check_exists(path: Path, setting: str) -> None:
    if not path.exists():
        names = " or ".join(map(repr, SHIPPED))
        raise EmbeddingError(f"{setting} = {path}: no such file or directory. Name an existing path, or {names}.")


def digest_files(path: Path) -> str:
    """Compute the SHA-256 of a file, or of a directory's files by name, in hex. Raise :class:`OSError`."""
    digest = hashlib.sha256()
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _detect(path: Path) -> str:
    if path.is_dir():
        return "wordveil"
    from smart_open import open as open_any

    with open_any(str(path), "rb") as file:
        head = file.read(4096).removeprefix(BOM_UTF8)
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise EmbeddingError(f"{path}: is text in UTF-16. Write it in UTF-8: iconv -f UTF-16 -t UTF-8.")
    if head[:4] == _FASTTEXT_MAGIC:
        return "fasttext"
    first, _, rest = head.partition(b"\n")
    fields = first.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return "word2vec" if _looks_textual(rest, int(fields[1])) else "word2vec-binary"
    return "glove"


def _looks_textual(body: bytes, dimension: int) -> bool:
    """Return whether the first line ends in decimal numbers. Fields before them may be parts of a word."""
    line, end, _ = body.partition(b"\n")
    fields = line.split()[: None if end else -1]  # the last one is cut where the line goes on
    try:
        return bool([float(number) for number in fields[1:][-min(dimension, 4) :]])
    except ValueError:
        return False


def _load_directory(path: Path, source: str) -> Embedding:
    manifest = json.loads((path / _MANIFEST).read_text("utf-8"))
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise EmbeddingError(
            f"{source}: format_version {version} is not {FORMAT_VERSION}. Write it again with this version of wordveil."
        )
    words = (path / _WORDS).read_text("utf-8").split("\n")[:-1]
    vectors = np.load(path / _VECTORS, mmap_mode="r", allow_pickle=False)
    if vectors.shape != (manifest["rows"], manifest["dim"]):
        raise EmbeddingError(
            f"{source}: {_VECTORS} has shape {vectors.shape}, but {_MANIFEST} says {manifest['rows']} x "
            f"{manifest['dim']}. Write the directory again."
        )
    if vectors.dtype == np.uint8:
        # A table of 256 values, each rounded once: the same float32 on every machine.
        decoded = manifest["scale"] * np.arange(256, dtype=np.float64) + manifest["offset"]
        vectors = decoded.astype(np.float32)[vectors]
    return check_embedding(words, vectors, manifest.get("source", source))


def _load_word2vec_binary(path: Path, source: str) -> Embedding:
    from gensim.models import KeyedVectors
    from smart_open import open as open_any

    with _refuse_duplicates(source):
        model = KeyedVectors.load_word2vec_format(str(path), binary=True)
    words = list(model.index_to_key)
    entries = sum(len(word.encode()) + 1 + 4 * model.vector_size for word in words)
    with open_any(str(path), "rb") as file:
        file.readline()
        first = file.read(len(words[0].encode()) + 2 + 4 * model.vector_size) if words else b""
        rest = len(first) + sum(map(len, iter(partial(file.read, 1 << 20), b""))) - entries
    ends = {len(words) - 1, len(words)} if first.endswith(b"\n") else {0}  # some writers end each entry so
    if rest not in ends:
        raise EmbeddingError(
            f"{source}: the first line says {len(words)} words, and bytes of others follow, which would be lost. "
            "Write the right number there, or fetch the file again."
        )
    return check_embedding(words, model.vectors, source)


def _load_fasttext(path: Path, source: str) -> Embedding:
    from gensim.models.fasttext import load_facebook_vectors

    with _refuse_duplicates(source):
        model = load_facebook_vectors(str(path))
    # `vectors` holds each vocabulary word with its subwords averaged in, which is what fastText itself prints.
    return check_embedding(list(model.index_to_key), model.vectors[: len(model.index_to_key)], source)


def _load_text(path: Path, source: str, *, has_header: bool) -> Embedding:
    """Read a word and its numbers from each line of word2vec's text format (with header) or GloVe's (without).

    Words may hold spaces, which gensim's reader refuses; it also ignores lines beyond the header's count.
    """
    from smart_open import open as open_any

    words: list[str] = []
    rows: list[Float32] = []
    with open_any(str(path), "rb") as file:
        first = file.readline().removeprefix(BOM_UTF8)
        lines = file if has_header else chain([first], file)
        count, dimension = _read_header(first, source) if has_header else (0, len(first.strip().split(b" ")) - 1)
        if dimension < 1:
            raise EmbeddingError(
                f"{source}: the first line holds no vector. A line is a word and its numbers, with single spaces "
                "between; for another format set mechanism.embedding_format."
            )
        for number, line in enumerate(lines, 1 + has_header):
            fields = line.rstrip(b" \r\n").rsplit(b" ", dimension)
            if len(fields) != dimension + 1:
                if not line.strip():
                    continue
                raise EmbeddingError(
                    f"{source}: line {number} has {len(fields) - 1} numbers, and the first line "
                    f"{'says' if has_header else 'has'} {dimension}. Repair the file"
                    f"{', or set mechanism.embedding_format: glove if the first line is a word' * has_header}."
                )
            try:
                words.append(fields[0].strip(b" ").decode("utf-8"))  # no token begins or ends with a space
                rows.append(np.array(fields[1:], np.float32))
            except ValueError:
                raise EmbeddingError(
                    f"{source}: line {number} is not a UTF-8 word and {dimension} numbers. Repair the file."
                ) from None
    if has_header and len(words) != count:
        raise EmbeddingError(
            f"{source}: the first line says {count} words, and the file has {len(words)}. If it was cut on purpose, "
            f"write '{len(words)} {dimension}' there; otherwise fetch it again."
        )
    if sum(map(_ends_in_number, words[1:])) > (len(words) - 1) / 2:
        raise EmbeddingError(
            f"{source}: the first line has {dimension} numbers, and most lines have more. If it is a header, write it "
            "as word2vec does, the numbers of words and of dimensions with a space between, or remove it."
        )
    return check_embedding(words, np.stack(rows) if rows else np.empty((0, dimension)), source)


def _read_header(line: bytes, source: str) -> tuple[int, int]:
    """Return the numbers of words and dimensions in word2vec's header."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise EmbeddingError(
            f"{source}: the first line is no header of word2vec, the numbers of words and of dimensions. Set "
            f"mechanism.embedding_format to one of {', '.join(FORMATS[1:])}; without a header it is glove."
        )
    return int(fields[0]), int(fields[1])


def _ends_in_number(word: str) -> bool:
    """Return whether a word ends in a space and a number: a vector is then longer than expected."""
    _, space, last = word.rpartition(" ")
    try:
        return bool(space) and float(last) == float(last)  # NaN is a word too
    except ValueError:
        return False


@contextmanager
def _refuse_duplicates(source: str) -> Iterator[None]:
    """Raise an error for a duplicate word, which gensim drops with a warning in its log."""
    logger = logging.getLogger("gensim.models.keyedvectors")
    duplicates: list[str] = []

    class _Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "duplicate word '" in str(record.msg) and isinstance(record.args, tuple):
                duplicates.append(str(record.args[0]))

    listener = _Listener(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagate
    if duplicates:
        raise EmbeddingError(
            f"{source}: {duplicates[0]!r} is listed more than once ({len(duplicates)} duplicates in all). "
            "Keep one of each."
        )


_READERS: dict[str, Callable[[Path, str], Embedding]] = {
    "wordveil": _load_directory,
    "word2vec": partial(_load_text, has_header=True),
    "word2vec-binary": _load_word2vec_binary,
    "glove": partial(_load_text, has_header=False),
    "fasttext": _load_fasttext,
}
