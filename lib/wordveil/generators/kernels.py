"""Elementwise work of inference in whole numbers, each in one pass: gates, activations, the softmax's weights.

All is float32, and only adds, multiplies, divides, compares and rounds, in the order written: IEEE 754 fixes each
result. Mathematical libraries differ in their last bits, so ``tanh`` is a fraction of polynomials, and ``exp`` a table
that a bundle holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32
from wordveil.compiled import compiled, compiled_part, larger

UInt32 = NDArray[np.uint32]

SOFTMAX_STEPS = 256
"""Entries of the table of ``exp`` for 1 nat: a weight is at most 0.2% off."""

_HALF, _ONE = np.float32(0.5), np.float32(1)
_LIMIT = np.float32(4.5)
_SOFTMAX_STEPS = np.float32(SOFTMAX_STEPS)
# Lambert's continued fraction of tanh(x), x / (1 + x^2 / (3 + x^2 / (5 + ...))), down to 13, is
# x (A0 + A1 x^2 + A2 x^4 + x^6) / (A0 + B1 x^2 + B2 x^4 + B3 x^6). All are whole numbers that float32 has.
_A0, _A1, _A2 = np.float32(135135), np.float32(17325), np.float32(378)
_B1, _B2, _B3 = np.float32(62370), np.float32(3150), np.float32(28)


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
    """Write ``tanh(sums * scale + bias)`` into ``states``. Return it in whole numbers from ``-most`` to ``most``.

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

    A new state is between the old one and a value of ``tanh``, in float32 too: rounding keeps order, and
    ``(1 - u) + u`` rounds to at most 1. So states stay in [-1, 1].

    ``inputs``, ``hidden``: float32 ``(count, 3 * cells)``, the products with the input and with the states, whole
    numbers. ``scales``: float32 ``(3 * cells,)`` each: what 1 is worth in ``inputs`` and in ``hidden``. ``base``:
    float32 ``(count, 3 * cells)`` or ``(1, 3 * cells)``: what is added to the input's part; biases. ``hidden_bias``:
    float32 ``(cells,)``. ``most``: what 1 is in whole numbers. ``states``: float32 ``(count, cells)``, replaced.
    ``levels``: float32 ``(count, cells)``, the states in whole numbers from ``-most`` to ``most``, replaced.
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

    ``sums`` are products, whole numbers, float32 ``(count, columns)``, and are overwritten. A logit is
    ``sum * scale + bias``, both float32 ``(columns,)``. Entry i of ``table``, uint32, is ``exp(-i / SOFTMAX_STEPS)``
    in whole numbers; the last one stands for all beyond. ``weights``, uint32 ``(count, columns)``, may share the memory
    of ``sums``.
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
