"""A table's law in Python's whole numbers, and what of a recorded guarantee it breaks.

Written from the formats that :mod:`wordveil.mechanisms.tables.table` and
:mod:`wordveil.mechanisms.staircase.floor_tables` document, with none of their code: laws are exact numerators over
2^128, and distances are computed here in long double. Of the arithmetic below only logarithms round, by less than
``MARGIN``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.privacy.guarantees import WordGuarantee

WORD = 2**64
TOTAL = 2**128
# Logarithms of numbers up to 2^128 are at most 89, of which float64 knows 2e-14.
MARGIN = 1e-13
LongDouble = NDArray[np.longdouble]
Law = list[int]


def law_of(arrays: Mapping[str, NDArray[Any]], symbol: int) -> Law:
    """How many of the 2^128 pairs of words ``A``, ``B`` give each output."""
    alike, itself = int(arrays["alike"][symbol]), int(arrays["itself"][symbol])
    assert alike + itself <= WORD
    law = [alike * count for count in common_law(arrays)]
    if itself:
        law[int(arrays["own"][symbol])] += itself * WORD
    start, stop = (int(offset) for offset in arrays["starts"][symbol : symbol + 2])
    for output, weight in zip(
        arrays["ids"][start:stop].tolist(), weights(arrays["alias"][start:stop].tolist()), strict=True
    ):
        if weight and alike + itself < WORD:
            law[output] += (WORD - alike - itself) * weight
    assert sum(law) == TOTAL
    return law


def common_law(arrays: Mapping[str, NDArray[Any]]) -> list[int]:
    """Count for each output the words ``B`` that give it where a row has no say: a rank, or the row after the last."""
    if outputs := int(arrays["outputs"][0]):
        return ranks(outputs)
    start, stop = (int(offset) for offset in arrays["starts"][-2:])
    ids = arrays["ids"][start:stop].tolist()
    law = [0] * sum(output != 2**31 - 1 for output in ids)
    for output, weight in zip(ids, weights(arrays["alias"][start:stop].tolist()), strict=True):
        if weight:
            law[output] += weight
    assert sum(law) == WORD
    return law


def ranks(outputs: int) -> list[int]:
    """For each output how many words ``B`` have it as ``floor(B N / 2^64)``."""
    edges = [-(-output * WORD // outputs) for output in range(outputs + 1)]
    return [after - before for before, after in pairwise(edges)]


def weights(entries: list[int]) -> list[int]:
    """What each column of an alias table has of 2^64."""
    bits = len(entries).bit_length() - 1
    assert len(entries) == 2**bits
    room = WORD >> bits
    shares = [0] * len(entries)
    for column, entry in enumerate(entries):
        threshold, other = entry >> bits, entry % len(entries)
        shares[column] += threshold
        shares[other] += room - threshold
    return shares


def drawn(arrays: Mapping[str, NDArray[Any]], symbol: int, choice: int, word: int) -> int:
    """The output that the words ``A`` and ``B`` give, by the format alone."""
    alike, itself, outputs = (
        int(arrays[name][entry]) for name, entry in (("alike", symbol), ("itself", symbol), ("outputs", 0))
    )
    if choice < alike and outputs:
        return word * outputs // WORD
    if alike <= choice < alike + itself:
        return int(arrays["own"][symbol])
    row = len(arrays["starts"]) - 2 if choice < alike else symbol
    start, stop = (int(offset) for offset in arrays["starts"][row : row + 2])
    columns = stop - start
    column, left = divmod(word, WORD // columns)
    threshold, other = divmod(int(arrays["alias"][start + column]), columns)
    return int(arrays["ids"][start + (column if left < threshold else other)])


def symbols(size: int, *, padding: bool) -> list[int]:
    return [*range(size), *([size] if padding else []), size + 1]


def losses(laws: list[Law]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The largest log ratio of the law of each row to that of each column, and the output that has it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.array([[math.log(count) if count else -math.inf for count in law] for law in laws])
        largest, where = np.empty((len(laws), len(laws))), np.empty((len(laws), len(laws)), np.int64)
        for row, own in enumerate(logs):
            # What never happens tells nothing; what the other symbol never gives tells everything.
            ratios = np.where(own > -np.inf, own - logs, -np.inf)
            where[row] = ratios.argmax(axis=1)
            largest[row] = ratios.max(axis=1)
    return largest, where


def exact_log(numerator: int, denominator: int) -> float:
    if denominator == 0:
        return math.inf
    with localcontext(prec=50):
        return float((Decimal(numerator) / Decimal(denominator)).ln())


def exact_losses(laws: list[Law]) -> list[list[Decimal]]:
    """The largest log ratio of the law of each row to that of each column, in the context's precision."""
    logs = [[Decimal(count).ln() if count else Decimal("-Infinity") for count in law] for law in laws]
    return [[max(a - b for a, b in zip(own, other, strict=True) if a.is_finite()) for other in logs] for own in logs]


def exact_distance(word: NDArray[np.float32], other: NDArray[np.float32], metric: str) -> Decimal:
    """The distance of two words in the context's precision."""
    x, y = ([Decimal(float(value)) for value in vector] for vector in (word, other))
    if metric == "manhattan":
        return sum((abs(a - b) for a, b in zip(x, y, strict=True)), Decimal(0))
    if metric == "angular":
        x, y = ([value / norm(vector) for value in vector] for vector in (x, y))
        apart = norm([a - b for a, b in zip(x, y, strict=True)])
        along = norm([a + b for a, b in zip(x, y, strict=True)])
        return 4 * arctan(apart / (along + (along * along + apart * apart).sqrt()))
    apart = norm([a - b for a, b in zip(x, y, strict=True)])
    if metric == "euclidean":
        return apart
    gaps = (1 - norm(x) ** 2) * (1 - norm(y) ** 2)
    half = apart / gaps.sqrt()
    return 2 * (half + (half * half + 1).sqrt()).ln()


def norm(vector: list[Decimal]) -> Decimal:
    return sum((value * value for value in vector), Decimal(0)).sqrt()


def arctan(tangent: Decimal) -> Decimal:
    """The angle of a tangent from 0 to 1: halved eight times, then by its series."""
    for _ in range(8):
        tangent = tangent / (1 + (1 + tangent * tangent).sqrt())
    terms = (Decimal((-1) ** k) * tangent ** (2 * k + 1) / (2 * k + 1) for k in range(20))
    return 2**8 * sum(terms, Decimal(0))


def exact_findings(
    arrays: Mapping[str, NDArray[Any]], guarantee: WordGuarantee, vectors: NDArray[np.float32], *, padding: bool
) -> list[str]:
    """What of the guarantee the table breaks, all in 80 digits and with no margin."""
    with localcontext(prec=80):
        epsilon, diameter, slack, pure = map(
            Decimal, (guarantee.epsilon, guarantee.diameter, guarantee.slack, guarantee.pure)
        )
        exact = exact_losses([law_of(arrays, symbol) for symbol in symbols(len(vectors), padding=padding)])
        metric = guarantee.metric.name.removesuffix("-capped")
        broken = []
        for row, column in product(range(len(exact)), repeat=2):
            apart = diameter if row != column else Decimal(0)
            if metric != "discrete" and max(row, column) < len(vectors):
                apart = min(exact_distance(vectors[row], vectors[column], metric), diameter)
            for name, allowed in (("epsilon d + slack", epsilon * apart + slack), ("pure", pure)):
                if exact[row][column] > allowed:
                    over = exact[row][column] - allowed
                    broken.append(f"loss({row}, {column}) is {over:.3g} over {name}")
        return broken


def word_distances(vectors: NDArray[np.float32], metric: str) -> tuple[LongDouble, LongDouble]:
    """Distances of all words in long double, and what each may err by (Higham, section 3.1)."""
    points = vectors.astype(np.longdouble)
    unit = 4 * (points.shape[1] + 8) * np.finfo(np.longdouble).eps
    if metric == "angular":
        points /= lengths(points)[:, None]
        apart, along = lengths(points[:, None] - points), lengths(points[:, None] + points)
        return 2 * np.arctan2(apart, along), np.full(apart.shape, 4 * unit)
    if metric == "manhattan":
        apart = np.abs(points[:, None] - points).sum(axis=2)
        return apart, unit * apart
    apart = lengths(points[:, None] - points)
    if metric == "euclidean":
        return apart, unit * apart
    gaps = 1 - (points * points).sum(axis=1)
    return 2 * np.arcsinh(apart / np.sqrt(np.outer(gaps, gaps))), np.full(apart.shape, 4 * unit / gaps.min())


def lengths(points: LongDouble) -> LongDouble:
    return np.sqrt((points * points).sum(axis=-1))


def bounds(
    vectors: NDArray[np.float32], metric: str, guarantee: WordGuarantee, *, padding: bool
) -> tuple[LongDouble, LongDouble]:
    """``epsilon d`` of every pair of symbols, and what it may err by. Metric ``discrete``: every two differ by 1."""
    size, most = len(vectors), guarantee.diameter
    count = size + 1 + padding
    apart, margin = np.full((count, count), most, np.longdouble), np.zeros((count, count), np.longdouble)
    if metric != "discrete":
        words, margin[:size, :size] = word_distances(vectors, metric.removesuffix("-capped"))
        apart[:size, :size] = np.minimum(words, most) if metric.endswith("-capped") else words
    np.fill_diagonal(apart, 0)
    return guarantee.epsilon * apart, guarantee.epsilon * margin


def findings(
    arrays: Mapping[str, NDArray[Any]], guarantee: WordGuarantee, vectors: NDArray[np.float32], *, padding: bool
) -> list[str]:
    """What of the guarantee the table breaks, in words."""
    laws = [law_of(arrays, symbol) for symbol in symbols(len(vectors), padding=padding)]
    ratios, where = losses(laws)
    allowed, margin = bounds(vectors, guarantee.metric.name, guarantee, padding=padding)
    over = (ratios - allowed - guarantee.slack - margin).astype(np.float64)
    row, column = np.unravel_index(over.argmax(), over.shape)
    output = where[row, column]
    worst = exact_log(laws[row][output], laws[column][output])
    assert worst == ratios[row, column] or abs(worst - ratios[row, column]) < MARGIN
    broken = []
    if over.max() > MARGIN:
        broken.append(f"loss({row}, {column}) = {worst:.12g} at {output}: {over.max():.3g} over the bound")
    if guarantee.largest is not None and ratios.max() > guarantee.largest + MARGIN:
        broken.append(f"loss {ratios.max():.12g} over largest = {guarantee.largest:.12g}")
    if ratios.max() > guarantee.pure + MARGIN:
        broken.append(f"loss {ratios.max():.12g} over pure = {guarantee.pure:.12g}")
    if (allowed - margin).max() > guarantee.epsilon * guarantee.diameter * (1 + 1e-12):
        broken.append(f"distance {allowed.max() / guarantee.epsilon:.12g} over the diameter {guarantee.diameter:.12g}")
    return broken
