"""The generator of ER-AE in float64, row by row and place by place, as wordveil.generators.shape describes it.

Nothing of it is shared with what it checks but the names of the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Reference:
    """One row at a time."""

    def __init__(self, shape: Any, arrays: Mapping[str, np.ndarray]) -> None:
        self.shape = shape
        self.arrays = {name: array.astype(np.float64) for name, array in arrays.items()}

    def cell(self, name: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The state after one more input."""
        c = len(h)
        inputs = x @ self.arrays[f"{name}.input"] + self.arrays[f"{name}.bias"]
        hidden = h @ self.arrays[f"{name}.hidden"]
        r = 1 / (1 + np.exp(-(inputs[:c] + hidden[:c])))
        u = 1 / (1 + np.exp(-(inputs[c : 2 * c] + hidden[c : 2 * c])))
        n = np.tanh(inputs[2 * c :] + r * (hidden[2 * c :] + self.arrays[f"{name}.hidden_bias"]))
        return (1 - u) * n + u * h

    def encode(self, sequence: list[int]) -> np.ndarray:
        """The latent vector of a sequence, whose padding at the end is not read."""
        while sequence and sequence[-1] == self.shape.padding:
            sequence = sequence[:-1]
        inputs = [self.arrays["embedding"][symbol] for symbol in sequence]
        last = np.zeros(self.shape.cells)
        for layer in range(self.shape.encoder_layers):
            zero = np.zeros(self.shape.cells // 2)
            forward, backward = [zero], [zero]
            for x in inputs:
                forward.append(self.cell(f"encoder.{layer}.forward", x, forward[-1]))
            for x in reversed(inputs):
                backward.append(self.cell(f"encoder.{layer}.backward", x, backward[-1]))
            last = np.concatenate([forward[-1], backward[-1]])
            pairs = zip(forward[1:], reversed(backward[1:]), strict=True)
            inputs = [np.concatenate(pair) for pair in pairs]
        return np.tanh(last @ self.arrays["latent"] + self.arrays["latent_bias"])

    def states(self, latent: np.ndarray, read: list[int]) -> np.ndarray:
        """The generator's last states, float64 ``(len(read), cells)``, after each symbol that it reads."""
        states = [
            np.tanh(latent @ self.arrays[f"generator.{layer}.start"] + self.arrays[f"generator.{layer}.start_bias"])
            for layer in range(self.shape.generator_layers)
        ]
        found = []
        for symbol in read:
            x = np.concatenate([self.arrays["embedding"][symbol], latent])
            for layer in range(self.shape.generator_layers):
                x = states[layer] = self.cell(f"generator.{layer}", x, states[layer])
            found.append(x)
        return np.array(found)

    def probabilities(self, sequence: list[int], written: list[int]) -> np.ndarray:
        """float64 ``(len(written) + 1, outputs)``: of the first symbol, and of that after each one written."""
        states = self.states(self.encode(list(sequence)), [self.shape.start, *written])
        logits = states @ self.arrays["output"] + self.arrays["output_bias"]
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)
