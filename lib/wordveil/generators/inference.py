"""Probabilities of a generator in whole numbers: equal on every machine, in every batch, in every attempt.

:mod:`wordveil.generators.shape` has the model and :mod:`wordveil.generators.quantise` the reason why products are
exact. All else is done row by row. So a row's result depends neither on the rows beside it, nor on the library that
multiplies, nor on its threads.

**Padding** at the end of a sequence is not read, in training either: the encoder's forward states stay as they were
after the last symbol that is not padding, and its backward states begin there, from 0. Padding before such a symbol is
read as any other symbol. A sequence of padding alone leaves the encoder's states at 0.

Elementwise work is float32, and only adds, multiplies, divides, compares and rounds, in the order written: IEEE 754
fixes each result. Mathematical libraries differ in their last bits, so ``tanh`` is a fraction of polynomials, and
``exp`` a table in the bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32, Int32, Int64, UInt32, freeze
from wordveil.compiled import compiled, compiled_part, larger
from wordveil.generators.quantise import SOFTMAX_STEPS, UnitLevels, check_exactness
from wordveil.generators.shape import GeneratorShape

_HALF, _ONE = np.float32(0.5), np.float32(1)
_LIMIT = np.float32(4.5)
_SOFTMAX_STEPS = np.float32(SOFTMAX_STEPS)
# Lambert's continued fraction of tanh(x), x / (1 + x^2 / (3 + x^2 / (5 + ...))), down to 13, is
# x (A0 + A1 x^2 + A2 x^4 + x^6) / (A0 + B1 x^2 + B2 x^4 + B3 x^6). All are whole numbers that float32 has.
_A0, _A1, _A2 = np.float32(135135), np.float32(17325), np.float32(378)
_B1, _B2, _B3 = np.float32(62370), np.float32(3150), np.float32(28)


# Frozen down to `weigh`: golden outputs; raise sampler_version of er-ae.
@compiled_part
def _tanh(x: np.float32) -> np.float32:
    """Compute ``tanh(x)``, 2e-7 off at most: Lambert's fraction ``p / q`` at ``x / 2``, then ``2 p q / (p^2 + q^2)``.

    Its loops use vector instructions, which makes it ten times as fast as a table.
    """
    half = min(max(x * _HALF, -_LIMIT), _LIMIT)
    square = half * half
    p = half * (_A0 + square * (_A1 + square * (_A2 + square)))
    q = _A0 + square * (_B1 + square * (_B2 + square * _B3))
    # np.divide does not look for 0, as the operator would.
    return min(max(np.divide((p + p) * q, p * p + q * q), -_ONE), _ONE)


@compiled
def _round(value: np.float32, most: np.float32) -> np.float32:
    """Round ``value * most`` to the nearest whole number between ``-most`` and ``most``."""
    return min(max(np.rint(value * most), -most), most)


@compiled
def activate(sums: Float32, scale: Float32, bias: Float32, most: float, states: Float32) -> Float32:
    """Write ``tanh(sums * scale + bias)`` into ``states``; return it in whole numbers from ``-most`` to ``most``.

    ``sums`` are products, whole numbers. They and ``states`` are float32 ``(count, columns)``, ``scale`` and ``bias``
    float32 ``(columns,)``.
    """
    levels = np.empty_like(sums)
    top = np.float32(most)
    for row in range(len(sums)):
        for column in range(sums.shape[1]):
            value = _tanh(sums[row, column] * scale[column] + bias[column])
            states[row, column] = value
            levels[row, column] = _round(value, top)
    return levels


@compiled
def advance_cells(
    inputs: Float32,
    hidden: Float32,
    scales: tuple[Float32, Float32],
    base: Float32,
    hidden_bias: Float32,
    most: float,
    states: Float32,
    levels: Float32,
) -> None:
    """Replace the states of GRU cells by the next ones; :mod:`wordveil.generators.shape` has the equations.

    A new state is between the old one and a value of ``tanh``, in float32 too: rounding keeps order, and ``(1 - u) +
    u`` rounds to at most 1. So states stay in [-1, 1].

    ``inputs``, ``hidden``: float32 ``(count, 3 * cells)``, the products with the input and with the states, whole
    numbers. ``scales``: float32 ``(3 * cells,)`` each, the value of 1 in ``inputs`` and in ``hidden``. ``base``:
    float32 ``(count, 3 * cells)`` or ``(1, 3 * cells)``, added to the input's part; biases. ``hidden_bias``: float32
    ``(cells,)``. ``most``: 1 in whole numbers. ``states``: float32 ``(count, cells)``, replaced. ``levels``: float32
    ``(count, cells)``, the states in whole numbers from ``-most`` to ``most``, replaced.
    """
    cells, top = states.shape[1], np.float32(most)
    both, gates = 2 * cells, np.empty(2 * cells, np.float32)
    input_scale, hidden_scale = scales
    for row in range(len(states)):
        added = base[row] if len(base) > 1 else base[0]
        fresh, held = inputs[row], hidden[row]
        _open(fresh[:both], input_scale[:both], held[:both], hidden_scale[:both], added[:both], gates)
        _remember(held[both:], hidden_scale[both:], hidden_bias, gates[:cells])
        _propose(fresh[both:], input_scale[both:], added[both:], gates[:cells])
        _move(gates[:cells], gates[cells:], top, states[row], levels[row])


# Each of these loops uses vector instructions. A loop over all of it would not: too many arrays might overlap.
@compiled
def _open(
    fresh: Float32, fresh_scale: Float32, held: Float32, held_scale: Float32, added: Float32, gates: Float32
) -> None:
    """Compute the reset gates, then the update gates."""
    for i in range(len(gates)):
        gate = fresh[i] * fresh_scale[i] + added[i] + held[i] * held_scale[i]
        gates[i] = _tanh(gate * _HALF) * _HALF + _HALF


@compiled
def _remember(held: Float32, scale: Float32, bias: Float32, resets: Float32) -> None:
    """Replace the reset gates by the part of the states that passes them."""
    for i in range(len(resets)):
        resets[i] *= held[i] * scale[i] + bias[i]


@compiled
def _propose(fresh: Float32, scale: Float32, added: Float32, remembered: Float32) -> None:
    """Replace the passed states by the proposed ones."""
    for i in range(len(remembered)):
        remembered[i] = _tanh(fresh[i] * scale[i] + added[i] + remembered[i])


@compiled
def _move(proposed: Float32, updates: Float32, top: np.float32, states: Float32, levels: Float32) -> None:
    for i in range(len(states)):
        state = (_ONE - updates[i]) * proposed[i] + updates[i] * states[i]
        states[i] = state
        levels[i] = _round(state, top)


@compiled
def weigh(sums: Float32, scale: Float32, bias: Float32, table: UInt32, weights: UInt32) -> None:
    """Write the softmax's weights as whole numbers: ``table[rint((largest logit - logit) * SOFTMAX_STEPS)]``.

    ``sums`` are products, whole numbers, float32 ``(count, columns)``, and are overwritten. A logit is ``sum * scale +
    bias``, both float32 ``(columns,)``. Entry i of ``table``, uint32, is ``exp(-i / SOFTMAX_STEPS)`` in whole numbers;
    the last one stands for all beyond. ``weights``, uint32 ``(count, columns)``, may share the memory of ``sums``.
    """
    columns = sums.shape[1]
    last = np.float32(len(table) - 1)
    for row in range(len(sums)):
        largest = np.float32(-np.inf)
        for column in range(columns):
            logit = sums[row, column] * scale[column] + bias[column]
            sums[row, column] = logit
            largest = larger(largest, logit)
        for column in range(columns):
            step = min((largest - sums[row, column]) * _SOFTMAX_STEPS + _HALF, last)
            weights[row, column] = table[np.uint32(np.int32(step))]


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

    ``states``: float32 ``(count, cells)`` of each layer, in [-1, 1]; ``levels``: in whole numbers. ``base``: float32
    ``(count, 3 * cells)``, the latent vector's part of the first layer's input, with its bias. ``buffer``: for the
    weights of the next symbols: float32, one row or more for each.
    """

    states: list[Float32]
    levels: list[Float32]
    base: Float32
    buffer: Float32

    @property
    def count(self) -> int:
        return len(self.base)

    def keep(self, rows: NDArray[Any]) -> None:
        """Keep some rows only: bool ``(count,)``, or their numbers, in any order. Rows may repeat."""
        self.states = [states[rows] for states in self.states]
        self.levels = [levels[rows] for levels in self.levels]
        self.base = self.base[rows]
        if len(self.buffer) < self.count:
            self.buffer = np.empty((self.count, self.buffer.shape[1]), np.float32)


class WholeNumberGenerator:
    """Generator that computes the probability of each next symbol, in whole numbers.

    It keeps views of ``arrays`` (:func:`wordveil.generators.quantise.quantise_weights`), no copies: workers that map
    the same files share their pages. It never changes, so that threads may share it; each needs its own
    :class:`GeneratorState`. ``block`` rows are multiplied at once: that decides memory and speed, and no result. Raises
    :class:`GeneratorError` if the arrays do not fit the shape, or products could be rounded; :class:`ValueError` if
    ``block`` is below 1.
    """

    def __init__(self, shape: GeneratorShape, arrays: Mapping[str, NDArray[Any]], block: int = BLOCK) -> None:
        if not block >= 1:
            raise ValueError(f"Expected block={block} of at least 1.")
        check_exactness(shape, arrays)
        self.shape = shape
        self._block = block
        self._arrays = {name: freeze(np.ascontiguousarray(array)) for name, array in arrays.items()}
        self._levels = UnitLevels(*arrays["levels"].tolist())
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

    def start_symbols(self, count: int) -> Int32:
        """Return the symbols that the generator reads first: int32 ``(count,)``."""
        return np.full(count, self.shape.start, np.int32)

    def begin(self, sequences: Int32) -> GeneratorState:
        """Read ``sequences``, int32 ``(count, length)``, and return the state of each row before its first symbol.

        Raises :class:`ValueError` for another length, or a symbol that is not a word, an unknown word or padding.
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

    def _encode(self, sequences: Int32, lengths: Int64) -> Float32:
        """Compute the last states of the encoder, in whole numbers: float32 ``(count, cells)``.

        Longer sequences come first, so that the rows with a symbol at a step are the first ones.
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

    def _start(self, state: GeneratorState, rows: Int64, encoded: Float32) -> None:
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

    def advance(self, state: GeneratorState, symbols: Int32) -> UInt32:
        """Read the symbols written last, advance ``state``, and compute the weight of each next symbol.

        ``symbols``: int32 ``(count,)``, at first :meth:`start_symbols`. Returns weights that are proportional to the
        softmax, uint32 ``(count, outputs)``. Each is at least 1, and the largest of a row is 2^31. The next call with
        this state overwrites them. Raises :class:`ValueError` if there are not as many symbols as rows, or one does not
        exist.
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

    def _advance_layers(self, state: GeneratorState, symbols: Int32, part: slice) -> Float32:
        inputs = self._arrays["embedding"][symbols[part]]
        for layer, cells in enumerate(self._generator):
            base = state.base[part] if layer == 0 else None
            levels = state.levels[layer][part]
            cells.advance(inputs, state.states[layer][part], levels, base)
            inputs = levels
        return inputs


def _run(cells: _Cells, inputs: Float32, active: list[int], steps: range) -> tuple[Float32, Float32]:
    """Run a layer over steps of sequences, whose first ``active[step]`` rows have a symbol at each step.

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


def _count_symbols(sequences: Int32, padding: int) -> Int64:
    """Count the symbols of each sequence without the padding at its end: int64 ``(count,)``."""
    is_read = sequences != padding
    lengths = sequences.shape[1] - is_read[:, ::-1].argmax(axis=1)
    return np.where(is_read.any(axis=1), lengths, 0)


def _check_symbols(symbols: Int32, last: int) -> None:
    if symbols.size and not (symbols.min() >= 0 and symbols.max() <= last):
        raise ValueError(f"Expected symbols from 0 to {last}.")
