"""Sequences of word ids for training, mapped into memory. Files hold no text, but are as secret as the corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wordveil.arrays import Bool, Float32, Int32, Int64, UInt64
from wordveil.crypto.private_files import create_file

_ABOUT, _IDS, _OFFSETS, _KEPT = "corpus.json", "ids.i32", "offsets.npy", "validation.npy"
_POOL = 64
"""Batches among which sequences are sorted by length, so that those of a batch have similar lengths."""
_WIDTHS = 4
"""Number of widths that batches may have. Each is compiled separately."""
_VALIDATION = 64
"""Largest number of batches of a validation: more cost time and hardly change the mean."""
_PER_EMPTY = 100
"""Sequences that train for each empty one: the generator has to learn to continue padding with padding."""


class Piece(NamedTuple):
    """Sequences of some texts.

    ``ids``: int32 ``(symbols,)``, words ``0 .. size - 1`` and the unknown word. ``offsets``: int64 ``(sequences +
    1,)``. ``hashes``: uint64 ``(sequences,)``, of the text of each; it decides which sequences validate.
    """

    ids: Int32
    offsets: Int64
    hashes: UInt64


@dataclass(frozen=True)
class Corpus:
    """Sequences, with those that validate marked.

    ``ids``: int32 ``(symbols,)``. ``offsets``: int64 ``(sequences + 1,)``; the last sequence is empty. ``validates``:
    bool ``(sequences,)``. ``digest``: SHA-256 of the arrays, hexadecimal.
    """

    ids: Int32
    offsets: Int64
    validates: Bool
    digest: str

    @property
    def training(self) -> Int64:
        """Numbers of the sequences that train, without the empty one."""
        return np.flatnonzero(~self.validates[:-1])

    @property
    def validation(self) -> Int64:
        return np.flatnonzero(self.validates)

    def measure_bias(self, columns: int, end_column: int) -> Float32:
        """Compute the log share of each column as a target of sequences that train, float32 ``(columns,)``.

        One is added to each count. A last layer whose bias begins there need not learn how frequent words are.
        """
        owners = np.repeat(self.validates, np.diff(self.offsets))
        words = self.ids[~owners]
        counts = 1.0 + np.bincount(words[words < columns - 2], minlength=columns)
        counts[end_column] += len(self.training)
        return np.asarray(np.log(counts / counts.sum()), np.float32)

    def take(self, numbers: Int64, length: int, padding: int) -> Int32:
        """Make rows of the sequences of these numbers, int64 ``(count,)``: int32 ``(count, width)``, ending in padding.

        ``width`` is the longest length with an end, rounded up, at most ``length``, the symbols of a whole sequence.
        """
        begin, counts = self.offsets[numbers], self.offsets[numbers + 1] - self.offsets[numbers]
        step = -(-length // _WIDTHS)
        width = min(length, -(-(int(counts.max()) + 1) // step) * step)
        columns = np.arange(width)
        ids = self.ids[np.minimum(begin[:, None] + columns, len(self.ids) - 1)]
        return np.where(columns < counts[:, None], ids, np.int32(padding))

    def order(self, batch: int, seed: int, epoch: int) -> list[Int64]:
        """List the batches of an epoch, empty sequences included, as numbers of sequences, int64, by arguments alone.

        Each has ``batch`` sequences, or all that train if they are fewer. Sequences that the epoch already has fill the
        last one.
        """
        random = np.random.default_rng([seed, epoch])
        training = self.training
        empty = np.full(len(training) // _PER_EMPTY, len(self.validates) - 1)
        batches = self._form_batches(random.permutation(np.concatenate([training, empty])), batch)
        return [batches[number] for number in random.permutation(len(batches))]

    def list_validation(self, batch: int) -> list[Int64]:
        """List the batches of sequences that validate, in the form of :meth:`order`."""
        numbers = np.random.default_rng(0).permutation(self.validation)[: _VALIDATION * batch]
        return self._form_batches(numbers, batch) if len(numbers) else []

    def _form_batches(self, numbers: Int64, batch: int) -> list[Int64]:
        batch = min(batch, len(numbers))
        numbers = np.concatenate([numbers, numbers[: -len(numbers) % batch]])
        lengths = self.offsets[numbers + 1] - self.offsets[numbers]
        batches: list[Int64] = []
        for start in range(0, len(numbers), _POOL * batch):
            pool = slice(start, start + _POOL * batch)
            ranked = numbers[pool][np.argsort(lengths[pool], kind="stable")]
            batches += np.split(ranked, len(ranked) // batch)
        return batches


def write_corpus(
    directory: Path,
    pieces: Iterable[Piece],
    length: int,
    share: float,
    source: Mapping[str, Any],
    *,
    private: bool = False,
) -> Corpus:
    """Write sequences, cut to at most ``length`` symbols, and map them into memory.

    ``directory`` exists; files of a corpus in it are replaced. Empty sequences are left out, and one is added at the
    end. ``share``: part of the texts, chosen by their hashes, whose sequences validate. ``source``: plain values that
    :func:`find_corpus` compares. ``private``: only their owner can read the files.
    """
    (directory / _ABOUT).unlink(missing_ok=True)
    digest, bounds, validates = hashlib.sha256(), [np.zeros(1, np.int64)], [np.zeros(0, np.bool_)]
    last = 0
    with create_file(directory / _IDS, private=private) as stream:
        for piece in pieces:
            offsets, is_validation = _cut(piece.offsets, length), piece.hashes.astype(np.float64) / 2**64 < share
            owners = np.searchsorted(piece.offsets, offsets[:-1], side="right") - 1
            data = piece.ids.astype("<i4").tobytes()
            stream.write(data)
            digest.update(data)
            bounds.append(last + offsets[1:])
            validates.append(is_validation[owners])
            last += len(piece.ids)
    offsets, chosen = np.append(np.concatenate(bounds), last), np.append(np.concatenate(validates), False)
    digest.update(offsets.tobytes())
    digest.update(chosen.tobytes())
    for name, array in ((_OFFSETS, offsets), (_KEPT, chosen)):
        with create_file(directory / name, private=private) as stream:
            np.save(stream, array)
    draft = directory / f".{_ABOUT}.part"
    with create_file(draft, private=private) as stream:
        stream.write(json.dumps({"digest": digest.hexdigest(), "source": dict(source)}).encode())
    draft.replace(directory / _ABOUT)
    return _open(directory, digest.hexdigest())


def find_corpus(directory: Path, source: Mapping[str, Any]) -> Corpus | None:
    """Map the corpus that was written from ``source``. None if there is none, or one of another source."""
    try:
        about = json.loads((directory / _ABOUT).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return _open(directory, about["digest"]) if about["source"] == dict(source) else None


def _cut(offsets: Int64, length: int) -> Int64:
    """Compute bounds of sequences of at most ``length`` symbols, without empty ones."""
    cuts = [np.arange(start, stop, length) for start, stop in pairwise(offsets.tolist())]
    return np.concatenate([*cuts, offsets[-1:]]).astype(np.int64)


def _open(directory: Path, digest: str) -> Corpus:
    path = directory / _IDS
    ids = np.memmap(path, "<i4", "r") if path.stat().st_size else np.zeros(0, np.int32)
    return Corpus(ids, np.load(directory / _OFFSETS), np.load(directory / _KEPT), digest)
