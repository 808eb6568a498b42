"""Losses of ER-AE and their gradient (Bo, Ding, Fung, Iqbal 2021, equations 7 and 8).

At each position of a sequence the model gives a probability ``p`` to each symbol. The reconstruction loss is the mean
of ``-log p(target)``. The embedding reward is computed for candidates: the likeliest symbols, and words drawn
uniformly. The reward of a candidate is the cosine between its public vector and that of the target, clipped. The second
loss is the mean of ``-reward * log p(candidate)`` over positions and candidates: REINFORCE (Williams 1992), where a
reward counts as a constant. Words that are like the target become likelier, and others less likely.

A vocabulary has 20,000 words, so the probabilities of all positions at once do not fit into a cache or a small GPU.
They are computed for some positions at a time, and each part's gradient at once with them. Positions that do not count
are left out, which halves the work on sentences.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.batch import Batch, Positions
from wordveil.generators.training.model import Generator, Multiply, make_product
from wordveil.generators.training.settings import RewardSettings, TrainingSettings


class Sums(NamedTuple):
    """Sums over a batch.

    ``loss``: the weighted sum of both losses. ``reconstruction``: the mean of ``-log p(target)``, nats. ``reward``: the
    mean reward of the likeliest candidates. ``accuracy``: the share of targets that are the likeliest symbol.
    """

    loss: Any
    reconstruction: Any
    reward: Any
    accuracy: Any


def find_units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale the words' public ``vectors`` to length 1: float32 ``(size + 2, dimension)``. ``vectors`` has no row of
    zeros.

    The rows of padding and of the end are zeros: these have no reward.
    """
    units = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.concatenate([units, np.zeros((2, vectors.shape[1]))]).astype(np.float32)


_GROUP = 64
"""Symbols of a group, of which the largest logit is looked at first."""


def find_likeliest(logits: Any, count: int) -> Any:
    """Find the likeliest symbols of each position, int ``(positions, count)``, the likeliest first. Of equal ones the
    lower is first. There are fewer than ``count`` if there are fewer symbols.

    XLA sorts all symbols for ``top_k`` within a loop, which takes ten times as long on a processor as the rest of the
    loss. Here groups of symbols are ranked by their largest logit: the likeliest symbols are in the first ``count``
    groups, so that all logits are read once.
    """
    rows, symbols = logits.shape
    count = min(count, symbols)
    padded = jnp.pad(logits, ((0, 0), (0, -symbols % _GROUP)), constant_values=-jnp.inf)
    groups = padded.reshape(rows, -1, _GROUP)
    # In the order of symbols, so that the first of equal logits is that of the lower symbol.
    kept = jnp.sort(_rank(groups.max(axis=2), min(count, groups.shape[1])), axis=1)
    left = jnp.take_along_axis(groups, kept[:, :, None], axis=1).reshape(rows, -1)
    numbers = (kept[:, :, None] * _GROUP + jnp.arange(_GROUP)).reshape(rows, -1)
    return jnp.take_along_axis(numbers, _rank(left, count), axis=1)


def _rank(values: Any, count: int) -> Any:
    """Find the columns of the largest values of each row, the largest first, the lower column first among equals."""
    columns, maxima = jnp.arange(values.shape[1]), []
    for _ in range(count):
        maxima.append(jnp.argmax(values, axis=1))
        values = jnp.where(columns == maxima[-1][:, None], -jnp.inf, values)
    return jnp.stack(maxima, axis=1)


def measure_part(
    rows: Any,
    output: Any,
    bias: Any,
    part: Positions,
    weight: Any,
    units: Any,
    settings: RewardSettings,
    product: Multiply,
) -> tuple[Any, Sums]:
    """Compute the loss of some positions, and its figures for reports.

    ``rows``, float ``(positions, cells)``, are the generator's states, ``output`` and ``bias`` the last layer's arrays,
    ``part`` the targets. ``weight``, a scalar, is the reward's, instead of that of ``settings``. ``units`` is the
    result of :func:`find_units`, ``product`` the matrix product.
    """
    logits = product(rows, output) + bias
    likelihood = jax.nn.log_softmax(logits)
    target = jnp.take_along_axis(likelihood, part.columns[:, None], axis=1)[:, 0]
    reconstruction = -(part.target * target).sum()
    likeliest = find_likeliest(jax.lax.stop_gradient(logits), settings.likeliest)
    accuracy = (part.target * (likeliest[:, 0] == part.columns)).sum()
    candidates = jnp.concatenate([likeliest, part.explored], axis=1)
    rewards = jnp.einsum("pcd,pd->pc", units[candidates], units[part.columns])
    rewards = jnp.clip(rewards, settings.floor, settings.ceiling)
    reward = (part.word * rewards[:, : likeliest.shape[1]].mean(axis=1)).sum()
    if settings.baseline == "mean":
        rewards -= rewards.mean(axis=1, keepdims=True)
    chosen = jnp.take_along_axis(likelihood, candidates, axis=1)
    chosen = jnp.clip(chosen, jnp.log(settings.floor), jnp.log(settings.ceiling))
    embedding = -(part.word * (rewards * chosen).mean(axis=1)).sum()
    loss = settings.reconstruction * reconstruction + weight * embedding
    return loss, Sums(loss, reconstruction, reward, accuracy)


class Losses:
    """Losses of a generator, and their gradient. ``units``: the result of :func:`find_units`."""

    def __init__(self, shape: GeneratorShape, settings: TrainingSettings, units: Any) -> None:
        self.shape, self.settings, self.units = shape, settings, units
        self._multiply = make_product(settings.precision)

    def measure(self, generator: Generator, batch: Batch) -> Sums:
        """Compute the losses on a batch."""
        sums, _ = self._sum(self._run(generator, batch), generator, batch, derive=False)
        return sums

    def derive(self, generator: Generator, batch: Batch) -> tuple[Any, Sums]:
        """Compute the gradient on a batch, a state as :func:`flax.nnx.state` returns, and the losses."""
        graph, state = nnx.split(generator)
        rows, pull = jax.vjp(lambda state: self._run(nnx.merge(graph, state), batch), state)
        sums, (to_rows, to_output, to_bias) = self._sum(rows, generator, batch, derive=True)
        (gradient,) = pull(to_rows)
        # The states do not depend on the last matrix, so its gradient there is 0.
        gradient["output"][...] = to_output
        gradient["output_bias"][...] = to_bias
        return gradient, sums

    def _run(self, generator: Generator, batch: Batch) -> Any:
        latent = generator.encode(batch.sequences, batch.live, self._multiply)
        states = generator.generate(latent, batch.read, self._multiply)
        return states.reshape(-1, states.shape[-1])

    def _sum(self, rows: Any, generator: Generator, batch: Batch, *, derive: bool) -> tuple[Sums, Any]:
        """Compute the sums over all positions that count, and the gradients of the loss by rows, output, bias."""
        chunk = min(self.settings.chunk, len(rows))
        output, bias = generator.output[...], generator.output_bias[...]

        measure = partial(
            measure_part, weight=batch.reward, units=self.units, settings=self.settings.reward, product=self._multiply
        )

        def step(number: Any, carry: tuple[Sums, Any]) -> tuple[Sums, Any]:
            before, gradients = carry
            slice_of = partial(jax.lax.dynamic_slice_in_dim, start_index=number * chunk, slice_size=chunk)
            part = jax.tree.map(slice_of, batch.positions)
            if derive:
                differentiate = jax.value_and_grad(measure, (0, 1, 2), has_aux=True)
                (_, sums), (to_rows, *others) = differentiate(rows[part.order], output, bias, part)
                # Positions that fill up the last part are the first one again, with weight 0: they add 0.
                to_rows = gradients[0].at[part.order].add(to_rows)
                gradients = (to_rows, *jax.tree.map(jnp.add, tuple(gradients[1:]), tuple(others)))
            else:
                _, sums = measure(rows[part.order], output, bias, part)
            return jax.tree.map(jnp.add, before, sums), gradients

        zero = jnp.zeros((), rows.dtype)
        empty = (jnp.zeros_like(rows), jnp.zeros_like(output), jnp.zeros_like(bias)) if derive else ()
        parts = -(-batch.counted // chunk)
        sums, gradients = jax.lax.fori_loop(0, parts, step, (Sums(zero, zero, zero, zero), empty))
        return sums, gradients
