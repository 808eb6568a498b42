"""Model in JAX: the cells and arrays of :mod:`wordveil.generators.shape`, over whole sequences.

In training the generator reads the sequence that it should write (teacher forcing). In use it reads the mechanism's
output: :mod:`wordveil.generators.inference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from wordveil.arrays import Bool, Int32
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.settings import Precision, TrainingSettings


class Positions(NamedTuple):
    """Positions of a batch that have a loss, then others with weight 0. The first axis is positions.

    ``order``: int32, the position, counted over all rows of the batch. ``columns``: int32, the column of the target.
    ``explored``: int32 ``(positions, explored)``, words drawn uniformly. ``target``, ``word``: float32, weights of both
    losses: 1 / the number of targets, or of words among them; or 0.
    """

    order: Any
    columns: Any
    explored: Any
    target: Any
    word: Any


class Batch(NamedTuple):
    """Sequences as the model reads them in training.

    ``sequences``: int32 ``(count, steps)``, input of the encoder. ``live``: bool ``(count, steps)``, False for the
    padding at the end. ``read``: int32 ``(count, steps)``, input of the generator. ``positions``: its targets. Words
    and the end have a loss; an unknown word cannot be written, and symbols after the end do not count. ``counted``:
    number of positions with a loss. ``reward``: weight of the reward, without which a training begins.
    """

    sequences: Any
    live: Any
    read: Any
    positions: Positions
    counted: Any
    reward: Any


def prepare_batch(
    shape: GeneratorShape,
    sequences: Int32,
    settings: TrainingSettings,
    random: np.random.Generator,
    *,
    rewarded: bool = True,
    disturb: bool = True,
) -> Batch:
    """Set inputs and targets of ``sequences``, int32 ``(count, steps)``: words and unknown words, then padding.

    ``random`` draws explored words and, with ``disturb``, changes of the words that the generator reads.
    """
    steps = np.arange(sequences.shape[1])
    lengths = np.where(sequences != shape.padding, steps + 1, 0).max(axis=1, keepdims=True)
    targets = np.where(steps == lengths, np.int32(shape.end), sequences)
    preceding = _disturb(shape, targets[:, :-1], settings, random) if disturb else targets[:, :-1]
    read = np.concatenate([np.full_like(targets[:, :1], shape.start), preceding], axis=1)
    counted = (steps <= lengths) & (targets != shape.unknown)
    positions = _arrange(shape, targets, counted, settings, random)
    reward = np.float32(settings.reward.reward if rewarded else 0)
    return Batch(sequences, steps < lengths, read, positions, np.int32(counted.sum()), reward)


def _disturb(shape: GeneratorShape, symbols: Int32, settings: TrainingSettings, random: np.random.Generator) -> Int32:
    choice = random.random(symbols.shape)
    others = random.integers(0, shape.size, symbols.shape, np.int32)
    corrupted = np.where(choice < settings.corruption, others, symbols)
    corrupted = np.where(choice >= 1 - settings.word_dropout, np.int32(shape.unknown), corrupted)
    return np.where(symbols < shape.size, corrupted, symbols)


def _arrange(
    shape: GeneratorShape, targets: Int32, counted: Bool, settings: TrainingSettings, random: np.random.Generator
) -> Positions:
    """Put the positions that count first, and fill up to a multiple of a chunk."""
    chunk = min(settings.chunk, targets.size)
    explored = random.integers(0, shape.size, (targets.size, settings.reward.explored), np.int32)
    order = np.argsort(~counted.ravel(), kind="stable").astype(np.int32)
    words = (counted & (targets < shape.size)).ravel()[order]
    columns = np.where(targets == shape.end, shape.end_column, targets).ravel()[order]
    is_counted = counted.ravel()[order]
    target = is_counted / np.float32(max(is_counted.sum(), 1))
    word = words / np.float32(max(words.sum(), 1))
    positions = Positions(order, np.where(is_counted, columns, 0).astype(np.int32), explored, target, word)
    filling = -targets.size % chunk
    return Positions(*(np.pad(array, [(0, filling)] + [(0, 0)] * (array.ndim - 1)) for array in positions))


Multiply = Callable[[Any, Any], Any]


def make_product(precision: Precision) -> Multiply:
    """Make the matrix product of a precision, always with sums of float32 or wider."""
    exact: Multiply = jnp.matmul

    def multiply(left: Any, right: Any) -> Any:
        narrow = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
        return jnp.matmul(*narrow, preferred_element_type=jnp.float32)

    return exact if precision == "float32" else multiply


class Cell(nnx.Module):
    """GRU cell, run over time. ``arrays``: those of the whole generator; ``name``: the prefix of the cell's own."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        self.input = nnx.Param(arrays[f"{name}.input"])
        self.hidden = nnx.Param(arrays[f"{name}.hidden"])
        self.bias = nnx.Param(arrays[f"{name}.bias"])
        self.hidden_bias = nnx.Param(arrays[f"{name}.hidden_bias"])

    def run(self, inputs: Any, state: Any, multiply: Multiply, live: Any = None, *, reverse: bool = False) -> Any:
        """Compute the last state, and the states after each symbol, ``(steps, count, cells)``, in the order of symbols.

        ``inputs``: float ``(steps, count, width)``. ``state``: float ``(count, cells)``, before the first symbol.
        ``live``: bool ``(steps, count)``; other symbols leave the state unchanged. ``reverse``: read backwards.
        """
        cells = self.hidden.shape[0]
        read = multiply(inputs, self.input[...]) + self.bias[...]
        hidden, hidden_bias = self.hidden[...], self.hidden_bias[...]

        def step(before: Any, now: tuple[Any, Any]) -> tuple[Any, Any]:
            given, is_live = now
            product = multiply(before, hidden)
            reset, update = jnp.split(jax.nn.sigmoid(given[:, : 2 * cells] + product[:, : 2 * cells]), 2, axis=1)
            new = jnp.tanh(given[:, 2 * cells :] + reset * (product[:, 2 * cells :] + hidden_bias))
            after = (1 - update) * new + update * before
            after = after if is_live is None else jnp.where(is_live[:, None], after, before)
            return after, after

        return jax.lax.scan(step, state, (read, live), reverse=reverse)


class EncoderLayer(nnx.Module):
    """Both directions of a layer of the encoder."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        self.forward = Cell(arrays, f"{name}.forward")
        self.backward = Cell(arrays, f"{name}.backward")

    def run(self, inputs: Any, live: Any, multiply: Multiply) -> tuple[Any, Any]:
        """Compute the last states of both directions, side by side, and those after each symbol."""
        state = jnp.zeros((inputs.shape[1], self.forward.hidden.shape[0]), inputs.dtype)
        last, states = self.forward.run(inputs, state, multiply, live)
        first, others = self.backward.run(inputs, state, multiply, live, reverse=True)
        return jnp.concatenate([last, first], axis=1), jnp.concatenate([states, others], axis=2)


class GeneratorLayer(Cell):
    """Layer of the generator: a cell whose first state follows from the latent vector."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        super().__init__(arrays, name)
        self.start = nnx.Param(arrays[f"{name}.start"])
        self.start_bias = nnx.Param(arrays[f"{name}.start_bias"])

    def begin(self, latent: Any, multiply: Multiply) -> Any:
        """Compute the state before the first symbol, ``(count, cells)``."""
        return jnp.tanh(multiply(latent, self.start[...]) + self.start_bias[...])


class Generator(nnx.Module):
    """Model with all layers. The names of its parameters are those of :meth:`GeneratorShape.arrays`."""

    def __init__(self, shape: GeneratorShape, arrays: Mapping[str, Any]) -> None:
        self.embedding = nnx.Param(arrays["embedding"])
        encoder = [EncoderLayer(arrays, f"encoder.{layer}") for layer in range(shape.encoder_layers)]
        self.encoder = nnx.List(encoder)
        self.latent, self.latent_bias = nnx.Param(arrays["latent"]), nnx.Param(arrays["latent_bias"])
        generator = [GeneratorLayer(arrays, f"generator.{layer}") for layer in range(shape.generator_layers)]
        self.generator = nnx.List(generator)
        self.output, self.output_bias = nnx.Param(arrays["output"]), nnx.Param(arrays["output_bias"])

    def encode(self, sequences: Any, live: Any, multiply: Multiply = jnp.matmul) -> Any:
        """Compute the latent vectors, float ``(count, latent)``.

        ``sequences``: int ``(count, steps)``, words, padding and unknown words. ``live``: bool ``(count, steps)``,
        False for the padding at the end.
        """
        inputs, last = self.embedding[...][sequences.T], None
        for layer in self.encoder:
            last, inputs = layer.run(inputs, live.T, multiply)
        return jnp.tanh(multiply(last, self.latent[...]) + self.latent_bias[...])

    def generate(self, latent: Any, read: Any, multiply: Multiply = jnp.matmul) -> Any:
        """Compute the states of the last layer, float ``(count, steps, cells)``, as the generator reads symbols.

        ``read``: int ``(count, steps)``, the start, then the symbol before each further position.
        """
        symbols = self.embedding[...][read.T]
        repeated = jnp.broadcast_to(latent, (symbols.shape[0], *latent.shape))
        inputs = jnp.concatenate([symbols, repeated], axis=2)
        for layer in self.generator:
            _, inputs = layer.run(inputs, layer.begin(latent, multiply), multiply)
        return jnp.swapaxes(inputs, 0, 1)


def collect_arrays(state: Any) -> dict[str, NDArray[Any]]:
    """Collect the arrays of a model's state, or one shaped like it, by names of :meth:`GeneratorShape.arrays`."""
    flat = nnx.to_flat_state(state)
    return {".".join(map(str, path)): np.asarray(leaf[...]) for path, leaf in flat}
