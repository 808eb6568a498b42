"""Probabilities of a generator in whole numbers: equal on every machine, in every batch, in every attempt.

:mod:`wordveil.generators.shape` has the model and :mod:`wordveil.generators.quantise` the reason why products are
exact. All else is done row by row, by :mod:`wordveil.generators.kernels`. So a row's result depends neither on the rows
beside it, nor on the library that multiplies, nor on its threads.

**Padding** at the end of a sequence is not read: the encoder's forward states stay as they were after the last symbol
that is not padding, and its backward states begin there, from 0. Padding before such a symbol is read as any other
symbol. A sequence of padding alone leaves the encoder's states at 0. Training has to do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32, freeze
from wordveil.generators.kernels import activate, advance_cells, weigh
from wordveil.generators.quantise import Levels, check_exactness
from wordveil.generators.shape import GeneratorShape

BLOCK = 128


def multiply(levels: Float32, matrix: Float32, out: Float32 | None = None) -> Float32:
    """Multiply two matrices of whole numbers, which the certificate of the second makes exact."""
    return cast(Float32, np.matmul(levels, matrix, out=out))


@dataclass(frozen=True)
class _Product:
    matrix: Float32
    scale: Float32

    def __call__(self, levels: Float32) -> Float32:
        return multiply(levels, self.matrix)


@dataclass(frozen=True)
class _Cells:
    """GRU layer in one direction. ``bias`` is float32 ``(1, 3 * cells)``."""

    input: _Product
    hidden: _Product
    bias: Float32
    hidden_bias: Float32
    most: int

    def advance(self, inputs: Float32, states: Float32, levels: Float32, base: Float32 | None = None) -> None:
        """Replace ``states`` and ``levels`` by the next ones. ``base`` replaces the bias."""
        advance_cells(
            self.input(inputs),
            self.hidden(levels),
            (self.input.scale, self.hidden.scale),
            self.bias if base is None else freeze(base),
            self.hidden_bias,
            self.most,
            states,
            levels,
        )


@dataclass
class GeneratorState:
    """State of a generator for each row. Rows are independent.

    ``states``: float32 ``(count, cells)`` of each layer of the generator, in [-1, 1]. ``levels``: the same in whole
    numbers. ``base``: float32 ``(count, 3 * cells)``, the latent vector's part of the first layer's input, with its
    bias. ``buffer``: where the weights of the next symbols are put: float32, one row or more for each.
    """

    states: list[Float32]
    levels: list[Float32]
    base: Float32
    buffer: Float32

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.base)

    def keep(self, rows: NDArray[Any]) -> None:
        """Keep some rows only: bool ``(count,)``, or their numbers, in any order. Rows may repeat."""
        self.states = [states[rows] for states in self.states]
        self.levels = [levels[rows] for levels in self.levels]
        self.base = self.base[rows]
        if len(self.buffer) < self.count:
            self.buffer = np.empty((self.count, self.buffer.shape[1]), np.float32)


class WholeNumberGenerator:
    """Generator that computes how likely each symbol is next, in whole numbers.

    It keeps views of ``arrays``, no copies: workers that map the same files share their pages. It never changes, so
    that threads may share it; a :class:`GeneratorState` belongs to one of them.

    ``arrays``: the result of :func:`wordveil.generators.quantise.quantise_weights`, perhaps mapped into memory.
    ``block`` rows are multiplied at once: that decides memory and speed, and no result. Raises :class:`GeneratorError`
    if the arrays do not fit the shape, or products could be rounded; :class:`ValueError` if ``block`` is below 1.
    """

    def __init__(self, shape: GeneratorShape, arrays: Mapping[str, NDArray[Any]], block: int = BLOCK) -> None:
        if not block >= 1:
            raise ValueError(f"Expected block={block} of at least 1.")
        check_exactness(shape, arrays)
        self.shape = shape
        self._block = block
        self._arrays = {name: freeze(np.ascontiguousarray(array)) for name, array in arrays.items()}
        self._levels = Levels(*arrays["levels"].tolist())
        self._encoder = [
            [self._cells(f"encoder.{layer}.{direction}") for direction in ("forward", "backward")]
            for layer in range(shape.encoder_layers)
        ]
        self._generator = [self._cells(f"generator.{layer}") for layer in range(shape.generator_layers)]
        self._starts = [self._product(f"generator.{layer}.start") for layer in range(shape.generator_layers)]
        self._output = self._product("output")

    def _product(self, name: str) -> _Product:
        return _Product(self._arrays[name], self._arrays[f"{name}.scale"])

    def _cells(self, name: str) -> _Cells:
        products = (self._product(f"{name}.input"), self._product(f"{name}.hidden"))
        biases = (self._arrays[f"{name}.bias"][None], self._arrays[f"{name}.hidden_bias"])
        return _Cells(*products, *biases, self._levels.states)

    def start_symbols(self, count: int) -> NDArray[np.int32]:
        """Return the symbols that the generator reads first: int32 ``(count,)``."""
        return np.full(count, self.shape.start, np.int32)

    def begin(self, sequences: NDArray[np.int32]) -> GeneratorState:
        """Read ``sequences``, int32 ``(count, length)``: words, unknown words and padding. Return the state of each
        row, in their order, before its first symbol.

        Raises :class:`ValueError` if the length differs, or for a symbol that the encoder does not read.
        """
        shape = self.shape
        if sequences.ndim != 2 or sequences.shape[1] != shape.length:
            raise ValueError(f"Expected sequences of {shape.length} symbols, got an array of shape {sequences.shape}.")
        _check_symbols(sequences, shape.unknown)
        lengths = _count_symbols(sequences, shape.padding)
        state = self._empty_state(len(sequences))
        order = np.argsort(-lengths, kind="stable")
        for part in self._blocks(len(order)):
            rows = order[part]
            self._start(state, rows, self._encode(sequences[rows], lengths[rows]))
        return state

    def _empty_state(self, count: int) -> GeneratorState:
        cells, layers = self.shape.cells, self.shape.generator_layers
        states, levels = ([np.empty((count, cells), np.float32) for _ in range(layers)] for _ in range(2))
        base = np.empty((count, 3 * cells), np.float32)
        return GeneratorState(states, levels, base, np.empty((count, self.shape.outputs), np.float32))

    def _blocks(self, count: int) -> Iterator[slice]:
        return (slice(start, min(start + self._block, count)) for start in range(0, count, self._block))

    def _encode(self, sequences: NDArray[np.int32], lengths: NDArray[np.int64]) -> Float32:
        """Compute the last states of the encoder, in whole numbers: float32 ``(count, cells)``. Longer sequences come
        first, so that the rows which have a symbol at a step are the first ones.
        """
        length = int(lengths[0])
        active = [int((lengths > step).sum()) for step in range(length)]
        inputs = self._arrays["embedding"][sequences[:, :length].T]
        last: list[Float32] = []
        for forward, backward in self._encoder:
            pairs = (_run(forward, inputs, active, range(length)), _run(backward, inputs, active, range(length)[::-1]))
            last = [levels for _, levels in pairs]
            inputs = np.concatenate([outputs for outputs, _ in pairs], axis=2)
        return np.concatenate(last, axis=1)

    def _start(self, state: GeneratorState, rows: NDArray[np.int64], encoded: Float32) -> None:
        """Fill some rows of a state from the encoder's last states."""
        arrays = self._arrays
        latent = self._activate(self._product("latent"), encoded, arrays["latent_bias"], self._levels.latent)[1]
        read = self._product("generator.0.latent")
        state.base[rows] = read(latent) * read.scale + arrays["generator.0.bias"]
        for layer, start in enumerate(self._starts):
            bias = arrays[f"generator.{layer}.start_bias"]
            started = self._activate(start, latent, bias, self._levels.states)
            state.states[layer][rows], state.levels[layer][rows] = started

    def _activate(self, product: _Product, levels: Float32, bias: Float32, most: int) -> tuple[Float32, Float32]:
        sums = product(levels)
        states = np.empty_like(sums)
        return states, activate(sums, product.scale, bias, most, states)

    def advance(self, state: GeneratorState, symbols: NDArray[np.int32]) -> NDArray[np.uint32]:
        """Read the symbols written last, advance ``state``, and compute how likely each symbol is next.

        ``symbols``: int32 ``(count,)``, at first :meth:`start_symbols`.

        Returns weights that are proportional to the softmax, uint32 ``(count, outputs)``. Each is at least 1, and the
        largest of a row is 2^31. The next call with this state overwrites them. Raises :class:`ValueError` if there are
        not as many symbols as rows, or a symbol does not exist.
        """
        if symbols.shape != (state.count,):
            raise ValueError(f"Expected symbols of shape {(state.count,)}, got {symbols.shape}.")
        _check_symbols(symbols, self.shape.start)
        sums = state.buffer[: state.count]
        weights = sums.view(np.uint32)
        output, bias, table = self._output, self._arrays["output_bias"], self._arrays["softmax"]
        for part in self._blocks(state.count):
            levels = self._advance_layers(state, symbols, part)
            multiply(levels, output.matrix, sums[part])
            weigh(sums[part], output.scale, bias, table, weights[part])
        return weights

    def _advance_layers(self, state: GeneratorState, symbols: NDArray[np.int32], part: slice) -> Float32:
        inputs = self._arrays["embedding"][symbols[part]]
        for layer, cells in enumerate(self._generator):
            base = state.base[part] if layer == 0 else None
            levels = state.levels[layer][part]
            cells.advance(inputs, state.states[layer][part], levels, base)
            inputs = levels
        return inputs


def _run(cells: _Cells, inputs: Float32, active: list[int], steps: range) -> tuple[Float32, Float32]:
    """Run a layer over steps of sequences. At each step the first ``active[step]`` rows have a symbol.

    Returns the states in whole numbers at all steps, ``(steps, count, cells)``, and the last ones.
    """
    count, width = inputs.shape[1], len(cells.hidden_bias)
    states, levels = np.zeros((2, count, width), np.float32)
    outputs = np.zeros((len(active), count, width), np.float32)
    for step in steps:
        rows = slice(active[step])
        cells.advance(inputs[step, rows], states[rows], levels[rows])
        outputs[step, rows] = levels[rows]
    return outputs, levels


def _count_symbols(sequences: NDArray[np.int32], padding: int) -> NDArray[np.int64]:
    """Count the symbols of each sequence without the padding at its end: int64 ``(count,)``."""
    is_read = sequences != padding
    lengths = sequences.shape[1] - is_read[:, ::-1].argmax(axis=1)
    return np.where(is_read.any(axis=1), lengths, 0)


def _check_symbols(symbols: NDArray[np.int32], last: int) -> None:
    if symbols.size and not (symbols.min() >= 0 and symbols.max() <= last):
        raise ValueError(f"Expected symbols from 0 to {last}.")
