"""Batches of a training: the inputs, targets and random numbers of some sequences, as NumPy arrays.

Random numbers come from NumPy, by seed and step, so that a GPU gets the same ones as a CPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.settings import TrainingSettings


class Positions(NamedTuple):
    """Positions of a batch that have a loss, then others with weight 0. The first axis is positions.

    ``order``: int32: the position, counted over all rows of the batch. ``columns``: int32: the column of the target.
    ``explored``: int32 ``(positions, explored)``, words drawn uniformly. ``target``, ``word``: float32, the weights of
    both losses: 1 / the number of targets, or of words among them; or 0.
    """

    order: Any
    columns: Any
    explored: Any
    target: Any
    word: Any


class Batch(NamedTuple):
    """Sequences as the model reads them in training.

    ``sequences``: int32 ``(count, steps)``, what the encoder reads. ``live``: bool ``(count, steps)``, the symbols that
    it reads; the others are the padding at the end. ``read``: int32 ``(count, steps)``, what the generator reads.
    ``positions``: what it should write. Words and the end have a loss. An unknown word cannot be written, and what is
    written after the end does not count. ``counted``: how many positions have a loss. ``reward``: the weight of the
    reward, which a training begins without.
    """

    sequences: Any
    live: Any
    read: Any
    positions: Positions
    counted: Any
    reward: Any


def prepare_batch(
    shape: GeneratorShape,
    sequences: NDArray[np.int32],
    settings: TrainingSettings,
    random: np.random.Generator,
    *,
    rewarded: bool = True,
    disturb: bool = True,
) -> Batch:
    """Set inputs and targets of ``sequences``, int32 ``(count, steps)``: words and unknown words, then padding.

    ``random`` draws the words that are explored and the disturbances. ``rewarded``: whether the reward counts;
    ``disturb``: whether words that the generator reads are disturbed.
    """
    steps = np.arange(sequences.shape[1])
    lengths = np.where(sequences != shape.padding, steps + 1, 0).max(axis=1, keepdims=True)
    targets = np.where(steps == lengths, np.int32(shape.end), sequences)
    before = _disturb(shape, targets[:, :-1], settings, random) if disturb else targets[:, :-1]
    read = np.concatenate([np.full_like(targets[:, :1], shape.start), before], axis=1)
    counted = (steps <= lengths) & (targets != shape.unknown)
    positions = _arrange(shape, targets, counted, settings, random)
    reward = np.float32(settings.reward.reward if rewarded else 0)
    return Batch(sequences, steps < lengths, read, positions, np.int32(counted.sum()), reward)


def _disturb(
    shape: GeneratorShape, symbols: NDArray[np.int32], settings: TrainingSettings, random: np.random.Generator
) -> NDArray[np.int32]:
    choice = random.random(symbols.shape)
    others = random.integers(0, shape.size, symbols.shape, np.int32)
    corrupted = np.where(choice < settings.corruption, others, symbols)
    corrupted = np.where(choice >= 1 - settings.word_dropout, np.int32(shape.unknown), corrupted)
    return np.where(symbols < shape.size, corrupted, symbols)


def _arrange(
    shape: GeneratorShape,
    targets: NDArray[np.int32],
    counted: NDArray[np.bool_],
    settings: TrainingSettings,
    random: np.random.Generator,
) -> Positions:
    """Put the positions that count first, and fill up to a multiple of a chunk."""
    chunk = min(settings.chunk, targets.size)
    explored = random.integers(0, shape.size, (targets.size, settings.reward.explored), np.int32)
    order = np.argsort(~counted.ravel(), kind="stable").astype(np.int32)
    words = (counted & (targets < shape.size)).ravel()[order]
    columns = np.where(targets == shape.end, shape.end_column, targets).ravel()[order]
    known = counted.ravel()[order]
    target = known / np.float32(max(known.sum(), 1))
    word = words / np.float32(max(words.sum(), 1))
    positions = Positions(order, np.where(known, columns, 0).astype(np.int32), explored, target, word)
    filling = -targets.size % chunk
    return Positions(*(np.pad(array, [(0, filling)] + [(0, 0)] * (array.ndim - 1)) for array in positions))
