"""What a generator writes by itself, without a mechanism: how well it says again what it read.

Nothing here is private. It is for public texts, to see what training left to be learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.shape import GeneratorShape

Int32 = NDArray[np.int32]


@dataclass(frozen=True)
class Accuracy:
    """How much of the known words of sequences a generator wrote again.

    Attributes
    ----------
    in_place
        the share that stands at its own place.
    anywhere
        the share that stands in its own sequence, wherever.
    by_chance
        the share that stands in what was written for the sequence before it: what frequent words alone account for.
    words
        how many known words there are.
    """

    in_place: float
    anywhere: float
    by_chance: float
    words: int


def write_likeliest(generator: WholeNumberGenerator, sequences: Int32) -> Int32:
    """Write the likeliest symbol at each place; the generator reads back what it wrote.

    Parameters
    ----------
    generator : WholeNumberGenerator
        the generator.
    sequences : ndarray
        int32 ``(count, length)``: words, unknown words and padding.

    Returns
    -------
    ndarray
        int32 ``(count, length)``: words, and padding from the end on.
    """
    shape, state = generator.shape, generator.begin(sequences)
    written = np.full(sequences.shape, shape.padding, np.int32)
    symbols, going = generator.start_symbols(len(sequences)), np.ones(len(sequences), np.bool_)
    for place in range(shape.length):
        columns = generator.advance(state, symbols).argmax(axis=1).astype(np.int32)
        going &= columns != shape.end_column
        written[going, place] = columns[going]
        symbols = np.where(columns == shape.end_column, np.int32(shape.end), columns)
    return written


def measure_accuracy(shape: GeneratorShape, sequences: Int32, written: Int32) -> Accuracy:
    """Compare what was written with what was read; both are int32 ``(count, length)``.

    Raises :class:`ValueError` where no sequence has a known word.
    """
    known = sequences < shape.size
    if not known.any():
        raise ValueError("Expected a known word in sequences.")
    others = np.roll(written, 1, axis=0)
    return Accuracy(
        in_place=float((sequences == written)[known].mean()),
        anywhere=_share(sequences, known, written),
        by_chance=_share(sequences, known, others),
        words=int(known.sum()),
    )


def _share(sequences: Int32, known: NDArray[np.bool_], written: Int32) -> float:
    found = (sequences[:, :, None] == written[:, None, :]).any(axis=2)
    return float(found[known].mean())
