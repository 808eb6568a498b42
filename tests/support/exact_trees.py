"""The law of nested clusters in Python's whole numbers.

Written from the format that :mod:`wordveil.mechanisms.tree.table` documents, with none of its code: laws are exact
numerators over 2^128.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from support.exact_tables import WORD, Law, ranks

Arrays = Mapping[str, NDArray[Any]]


def shares(arrays: Arrays, symbol: int) -> list[tuple[int, int, int]]:
    """First place, size and share of 2^64 of each range of a symbol's row."""
    row = int(arrays["rows"][symbol])
    edges = [0, *map(int, arrays["thresholds"][int(arrays["kinds"][row])]), WORD]
    numbers = [after - before for before, after in pairwise(edges)]
    return [
        (start, size, number) for (start, size), number in zip(arrays["ranges"][row].tolist(), numbers, strict=True)
    ]


def place_law(arrays: Arrays, symbol: int) -> Law:
    """How many of the 2^128 pairs of words ``A``, ``B`` give each place."""
    law = [0] * len(arrays["written"])
    for start, size, number in shares(arrays, symbol):
        assert number >= 0
        for rank, count in enumerate(ranks(size)):
            law[start + rank] += number * count
    assert sum(law) == WORD * WORD
    return law


def written_law(arrays: Arrays, symbol: int) -> Law:
    """The same for each output that is written."""
    law = [0] * len(arrays["written"])
    for output, count in zip(arrays["written"].tolist(), place_law(arrays, symbol), strict=True):
        law[output] += count
    return law


def drawn(arrays: Arrays, symbol: int, choice: int, word: int) -> int:
    """The output that the words ``A`` and ``B`` give."""
    for start, size, number in shares(arrays, symbol):
        if choice < number:
            return int(arrays["written"][start + word * size // WORD])
        choice -= number
    raise AssertionError
