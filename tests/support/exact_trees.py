"""The law of nested clusters in Python's whole numbers.

Written from the format that :mod:`wordveil.mechanisms.tree.table` documents, with none of its code: laws are exact
numerators over 2^128, or over 2^192 with what is written.
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


def members(arrays: Arrays, place: int) -> list[tuple[int, int]]:
    """What is written for a place, and for how many of the 2^64 further words."""
    if "edges" not in arrays or place == len(arrays["kinds"]) - 2:  # positions are words, or this is padding
        return [(int(arrays["written"][place]), WORD)]
    start, stop = arrays["bounds"][place : place + 2].tolist()
    edges = [-1, *map(int, arrays["edges"][start : stop - 1]), WORD - 1]
    return [
        (word, after - before)
        for word, (before, after) in zip(arrays["order"][start:stop].tolist(), pairwise(edges), strict=True)
    ]


def written_law(arrays: Arrays, symbol: int) -> Law:
    """How many of the 2^192 triples of words give each output."""
    size = len(arrays["rows"]) - 2
    pads = len(arrays["written"]) > int(arrays["ranges"][-1, -1, 1])
    law = [0] * (size + pads)
    for place, count in enumerate(place_law(arrays, symbol)):
        for output, number in members(arrays, place):
            assert number > 0
            law[output] += count * number
    return law


def drawn(arrays: Arrays, symbol: int, choice: int, word: int) -> int:
    """The output that the words ``A`` and ``B`` give."""
    for start, size, number in shares(arrays, symbol):
        if choice < number:
            return int(arrays["written"][start + word * size // WORD])
        choice -= number
    raise AssertionError
