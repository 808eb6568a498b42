"""A generator in float32 with JAX: what research/benchmarks/generator_inference.py compares whole numbers with.

Only trailing padding could be skipped, and sequences here have none, so that the encoder is two plain scans a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wordveil.generators.shape import GeneratorShape

Arrays = Mapping[str, Any]
State = tuple[Any, list[Any]]


def _cell(arrays: Arrays, name: str, x: Any, h: Any, fixed: Any = 0.0) -> Any:
    """``fixed`` is added to the input's product: what the latent vector gives is the same at every place."""
    inputs = x @ arrays[f"{name}.input"][: x.shape[-1]] + arrays[f"{name}.bias"] + fixed
    hidden = h @ arrays[f"{name}.hidden"]
    ir, iu, new = jnp.split(inputs, 3, axis=-1)
    hr, hu, hn = jnp.split(hidden, 3, axis=-1)
    update = jax.nn.sigmoid(iu + hu)
    proposed = jnp.tanh(new + jax.nn.sigmoid(ir + hr) * (hn + arrays[f"{name}.hidden_bias"]))
    return (1 - update) * proposed + update * h


def compile_generator(
    shape: GeneratorShape, weights: Mapping[str, np.ndarray]
) -> tuple[Callable[[Any], State], Callable[[State, Any], tuple[State, Any]]]:
    """``begin(sequences)`` and ``advance(state, symbols)``, which returns probabilities float32 ``(count, outputs)``.

    Weights are arguments of what is compiled, not constants in it.
    """
    arrays = {name: jnp.asarray(array) for name, array in weights.items()}

    def scan(given: Arrays, name: str, inputs: Any, *, reverse: bool) -> tuple[Any, Any]:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = _cell(given, name, x, h)
            return h, h

        zero = jnp.zeros((inputs.shape[1], shape.cells // 2), jnp.float32)
        return jax.lax.scan(step, zero, inputs, reverse=reverse)

    @jax.jit
    def begin(given: Arrays, sequences: Any) -> State:
        inputs = given["embedding"][sequences.T]
        last = jnp.zeros(0)
        for layer in range(shape.encoder_layers):
            forward, first = scan(given, f"encoder.{layer}.forward", inputs, reverse=False)
            backward, second = scan(given, f"encoder.{layer}.backward", inputs, reverse=True)
            inputs, last = jnp.concatenate([first, second], -1), jnp.concatenate([forward, backward], -1)
        latent = jnp.tanh(last @ given["latent"] + given["latent_bias"])
        starts = [
            (f"generator.{layer}.start", f"generator.{layer}.start_bias") for layer in range(shape.generator_layers)
        ]
        fixed = latent @ given["generator.0.input"][shape.dimension :]
        return fixed, [jnp.tanh(latent @ given[start] + given[bias]) for start, bias in starts]

    @jax.jit
    def advance(given: Arrays, state: State, symbols: Any) -> tuple[State, Any]:
        fixed, states = state
        x, after = given["embedding"][symbols], []
        for layer, h in enumerate(states):
            x = _cell(given, f"generator.{layer}", x, h, fixed if layer == 0 else 0.0)
            after.append(x)
        return (fixed, after), jax.nn.softmax(x @ given["output"] + given["output_bias"])

    return lambda sequences: begin(arrays, sequences), lambda state, symbols: advance(arrays, state, symbols)
