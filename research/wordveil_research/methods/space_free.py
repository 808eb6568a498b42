"""Space-free character 4-grams: the features of Koppel, Schler and Argamon 2011.

A feature is a string of four characters without a space inside, or a whole word of fewer characters ("Authorship
attribution in the wild", Language Resources and Evaluation 45, section 2: "a string of characters of length four that
includes no spaces" or "a string of four or fewer characters surrounded by spaces"). A word of exactly four characters
is both, and counts once.

A feature is stored as one number: the code points of its characters, 16 bits each. Characters beyond U+FFFF, such as
emoji, all count as the same one. Numbers are the same on every machine, so Spark's executors need no common list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import coo_array, csr_array

from wordveil.arrays import Int64

LENGTH = 4
_PLANE = 2**16
_BATCH = 2**22
"""Characters that are read at a time."""
# What `str.isspace` says of code points below U+10000, and the null character, which stands for "no character".
_SPACES = (
    *(0, *range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)),
    *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
)
_KEPT = np.ones(_PLANE, np.uint64)
_KEPT[list(_SPACES)] = 0
_KEPT *= np.arange(_PLANE, dtype=np.uint64)


def find_features(texts: Sequence[str], *, lower: bool) -> Iterator[tuple[Int64, Int64]]:
    """Find the features of texts, some texts at a time, in the order of the texts.

    ``texts``: in Unicode. ``lower``: whether upper and lower case are the same.

    Yields
    ------
    tuple
        the index of each feature's text in ``texts``, and the feature's number: int64 ``(features,)`` each.
    """
    start, size = 0, 0
    for number, text in enumerate(texts):
        size += len(text) + 1
        if size >= _BATCH or number == len(texts) - 1:
            numbers, codes = _cut([text.lower() if lower else text for text in texts[start : number + 1]])
            yield numbers + start, codes
            start, size = number + 1, 0


def _cut(texts: Sequence[str]) -> tuple[Int64, Int64]:
    # Four characters can be read from every offset, including the last.
    raw = ("\0".join(texts) + "\0" * LENGTH).encode("utf-32-le", "surrogatepass")
    points = _KEPT[np.minimum(np.frombuffer(raw, np.uint32), _PLANE - 1)]
    first, second, third, fourth = (points[step : len(points) - LENGTH + 1 + step] for step in range(LENGTH))
    is_first = np.concatenate([[True], points[: len(first) - 1] == 0])
    whole = (first > 0) & (second > 0) & (third > 0) & (fourth > 0)
    short = is_first & (first > 0) & ~whole
    third = np.where(second > 0, third, np.uint64(0))  # what follows a space belongs to the next word
    fourth = np.where(whole, fourth, np.uint64(0))
    codes = (first << np.uint64(48)) | (second << np.uint64(32)) | (third << np.uint64(16)) | fourth
    starts = np.flatnonzero(whole | short)
    numbers = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])
    return numbers[starts], codes[starts].view(np.int64)


@dataclass(frozen=True)
class FeatureCounts:
    """How often features occur: int64 ``(features,)`` each.

    ``codes``: the numbers of the features, rising. ``counts``: how often each occurs. ``texts``: in how many texts.
    """

    codes: Int64
    counts: Int64
    texts: Int64

    @classmethod
    def of(cls, texts: Sequence[str], *, lower: bool) -> Self:
        """Make the features of texts."""
        total = cls(*(np.empty(0, np.int64) for _ in range(3)))
        for numbers, codes in find_features(texts, lower=lower):
            total = total.add(cls._of_pairs(numbers, codes)) if len(codes) else total
        return total

    @classmethod
    def _of_pairs(cls, numbers: Int64, codes: Int64) -> Self:
        order = np.argsort(codes, kind="stable")  # the numbers of texts rise, and still do for each code
        codes, numbers = codes[order], numbers[order]
        is_other = np.append(True, codes[1:] != codes[:-1])
        starts = np.flatnonzero(is_other)
        is_other[1:] |= numbers[1:] != numbers[:-1]
        counts = np.diff(starts, append=len(codes))
        return cls(codes[starts], counts, np.add.reduceat(is_other.astype(np.int64), starts))

    def add(self, other: Self) -> Self:
        """Add the counts of both."""
        codes, columns = np.unique(np.concatenate([self.codes, other.codes]), return_inverse=True)
        sums = [
            np.bincount(columns, np.concatenate(pair), len(codes)).astype(np.int64)
            for pair in ((self.counts, other.counts), (self.texts, other.texts))
        ]
        return type(self)(codes, *sums)

    def take_most_frequent(self, limit: int) -> Self:
        """Take the ``limit`` most frequent features; of equally frequent ones those with the lower numbers."""
        order = np.sort(np.lexsort((self.codes, -self.counts))[:limit])
        return type(self)(self.codes[order], self.counts[order], self.texts[order])


def count_features(texts: Sequence[str], codes: Int64, *, lower: bool) -> csr_array:
    """Return how often each text has each of some features: float64 ``(texts, features)``, of whole numbers.

    ``texts``: in Unicode. ``codes``: int64 ``(features,)``, rising: the numbers of the features. Others are left out.
    ``lower``: as in :func:`find_features`.
    """
    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for numbers, features in find_features(texts, lower=lower) if len(codes) else ():
        slots = np.minimum(np.searchsorted(codes, features), len(codes) - 1)
        known = codes[slots] == features
        rows.append(numbers[known])
        columns.append(slots[known])
    cells = np.concatenate(rows), np.concatenate(columns)
    table = coo_array((np.ones(len(cells[0])), cells), shape=(len(texts), len(codes))).tocsr()
    table.sum_duplicates()
    return table
