"""Encoder of texts: a sum of public word vectors in whole numbers, and the nearest of the public centres.

A text's point is linear in its bag of words. Each *part* of a point (word vectors; directions of the passages) is
summed over the words in 64-bit whole numbers and brought to one length, as whole numbers too. The products with centres
are below 2^24, so that float32 holds every partial sum exactly, in any order of addition
(:mod:`wordveil.neighbours.clusters`). One square root, division and multiplication per part are rounded as IEEE 754
says. So the symbol of a text is the same on every machine and for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Bool, Float32, Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.neighbours.clusters import LONGEST, whole_directions

Int16 = NDArray[np.int16]
PARTS: Mapping[str, tuple[str, ...]] = {
    "both": ("vectors", "passages"),
    "vectors": ("vectors",),
    "passages": ("passages",),
}
"""Parts of a point, by the names of encoders that sum word vectors."""
# Texts whose products with all centres are computed together.
_BLOCK = 4096
# Vectors of int16 that are added up in int32, whose sums run four times as fast as those of int64: these fit.
_TOGETHER = 2**15


@compiled
def sum_words(ids: Int32, offsets: Int64, vectors: Int16, sums: Int64, counts: Int64) -> None:
    """Add the vectors of each text's words to ``sums``, int64 ``(texts, n)``, and count these words.

    ``ids`` beyond the rows of ``vectors``, int16 ``(size, n)``, are skipped.
    """
    size, width = vectors.shape
    part, known = np.empty(width, np.int32), np.empty(_TOGETHER, np.int32)
    for text in range(len(offsets) - 1):
        token, stop = offsets[text], offsets[text + 1]
        while token < stop:
            last = min(stop, token + _TOGETHER)
            found = 0
            while token < last:
                word = ids[token]
                token += 1
                if word < size:
                    known[found] = word
                    found += 1
            counts[text] += found
            part[:] = 0
            at = 0
            # Eight words at once: the sum is read and written once for them, and their rows are fetched together.
            while at + 8 <= found:
                a, b, c, d = vectors[known[at]], vectors[known[at + 1]], vectors[known[at + 2]], vectors[known[at + 3]]
                at += 4
                e, f, g, h = vectors[known[at]], vectors[known[at + 1]], vectors[known[at + 2]], vectors[known[at + 3]]
                at += 4
                for axis in range(width):
                    four = np.int32(a[axis]) + np.int32(b[axis]) + np.int32(c[axis]) + np.int32(d[axis])
                    part[axis] += four + np.int32(e[axis]) + np.int32(f[axis]) + np.int32(g[axis]) + np.int32(h[axis])
            while at < found:
                for axis in range(width):
                    part[axis] += vectors[known[at], axis]
                at += 1
            for axis in range(width):
                sums[text, axis] += part[axis]


@dataclass(frozen=True)
class SumEncoder:
    """Encoder by sums of word vectors.

    ``vectors``: int16 ``(size, n)``, zeros for words that it does not know. ``centres``: float32 ``(symbols, n)``,
    whole directions. ``widths``: the number of columns of each part, with sum ``n``.
    """

    reads_text: ClassVar[bool] = False
    vectors: Int16
    centres: Float32
    widths: tuple[int, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], widths: list[int]) -> Self:
        """Make from a bundle's arrays."""
        return cls(arrays["vectors"], arrays["centres"], tuple(widths))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that a bundle keeps."""
        return {"vectors": self.vectors, "centres": self.centres}

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that a bundle keeps."""
        return {"widths": list(self.widths)}

    def locate(self, ids: Int32, offsets: Int64) -> tuple[Float32, Bool]:
        """Return the point of each text, float32 ``(texts, n)``, and whether it has a known word, bool ``(texts,)``."""
        texts, width = len(offsets) - 1, self.vectors.shape[1]
        sums, counts = np.zeros((texts, width), np.int64), np.zeros(texts, np.int64)
        sum_words(ids, offsets, self.vectors, sums, counts)
        # Words without a vector are looked for only where nothing was added up: there are few such texts.
        for text in np.flatnonzero((counts > 0) & ~sums.any(axis=1)).tolist():
            words = ids[offsets[text] : offsets[text + 1]]
            counts[text] = self.vectors[words[words < len(self.vectors)]].any(axis=1).sum()
        return join_parts(sums.astype(np.float64), self.widths), counts > 0

    def encode(self, ids: Int32, offsets: Int64, texts: pa.StringArray | None = None) -> Int32:  # noqa: ARG002
        """Return the nearest centre of each text, int32 ``(texts,)``; the lower number of equally near ones.

        A text without a known word gets the number of centres, which stands for padding.
        """
        symbols = np.empty(len(offsets) - 1, np.int32)
        for start in range(0, len(symbols), _BLOCK):
            points, is_known = self.locate(ids, offsets[start : start + _BLOCK + 1])
            nearest, _ = find_nearest(points, self.centres)
            symbols[start : start + _BLOCK] = np.where(is_known, nearest, len(self.centres))
        return symbols


def find_nearest(points: Float32, centres: Float32) -> tuple[Int32, Float32]:
    """Find the nearest centre of each point, and their product: int32 and float32 ``(points,)``."""
    labels, products = np.empty(len(points), np.int32), np.empty(len(points), np.float32)
    columns = np.ascontiguousarray(centres.T)
    for start in range(0, len(points), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores = points[block] @ columns
        labels[block] = np.argmax(scores, axis=1)
        products[block] = scores[np.arange(len(scores)), labels[block]]
    return labels, products


def join_parts(sums: Float64, widths: tuple[int, ...]) -> Float32:
    """Bring each part of the rows of ``sums``, float64 ``(texts, n)``, to one length, as whole numbers: float32."""
    joined = np.empty(sums.shape, np.float32)
    length, start = LONGEST / np.sqrt(len(widths)), 0
    for width in widths:
        columns = slice(start, start + width)
        part = np.empty((len(sums), width), np.float32)
        whole_directions(np.ascontiguousarray(sums[:, columns]), part, float(length))
        joined[:, columns] = part
        start += width
    return joined
