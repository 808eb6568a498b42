"""The two losses of ER-AE and their gradient (Bo, Ding, Fung, Iqbal 2021, equations 7 and 8).

At each place of a sequence the model gives a probability ``p`` to each symbol. The reconstruction loss is the mean of
``-log p(target)``. The embedding reward looks at candidates: the likeliest symbols, and words drawn uniformly. The
reward of a candidate is the cosine between its public vector and that of the target, clipped. The second loss is the
mean of ``-reward * log p(candidate)`` over places and candidates: REINFORCE (Williams 1992), where a reward counts as a
constant. Words that are like the target become likelier, and others less likely.

A vocabulary has 20,000 words, so the probabilities of all places at once do not fit into a cache or a small GPU.
They are computed for some places at a time, and each part's gradient at once with them. Places that do not count are
left out, which halves the work on sentences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import NDArray

from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.model import Generator, Multiply, make_product
from wordveil.generators.training.settings import RewardSettings, TrainingSettings


class Batch(NamedTuple):
    """Sequences as the model sees them in training. All are ``(count, steps)``.

    Attributes
    ----------
    sequences
        int: what the encoder reads.
    live
        bool: the symbols that it reads; the others are the padding at the end.
    read
        int: what the generator reads.
    columns
        int: the column of each target.
    counted
        bool: targets with a loss. Those are words and the end. An unknown word cannot be written, and what is written
        after the end does not count.
    words
        bool: targets with a reward.
    """

    sequences: Any
    live: Any
    read: Any
    columns: Any
    counted: Any
    words: Any


class Sums(NamedTuple):
    """What is summed over a batch.

    Attributes
    ----------
    loss
        the weighted sum of both losses.
    reconstruction
        the mean of ``-log p(target)``, nats.
    reward
        the mean reward of the likeliest candidates.
    accuracy
        the share of targets that are the likeliest symbol.
    """

    loss: Any
    reconstruction: Any
    reward: Any
    accuracy: Any


class _Part(NamedTuple):
    """Some places: columns of targets and of explored words, and the weights of the losses. The first axis is places.

    ``target`` weighs the reconstruction, ``word`` the reward; both are one over the number of such places, or 0.
    """

    columns: Any
    explored: Any
    target: Any
    word: Any


def find_units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The words' public vectors at length 1, with rows of zeros for padding and the end: they have no reward.

    Parameters
    ----------
    vectors : ndarray
        float32 ``(size, dimension)``, no row of zeros.

    Returns
    -------
    ndarray
        float32 ``(size + 2, dimension)``.
    """
    units = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.concatenate([units, np.zeros((2, vectors.shape[1]))]).astype(np.float32)


def prepare_batch(shape: GeneratorShape, sequences: Any, settings: TrainingSettings, key: Any = None) -> Batch:
    """Set inputs and targets of sequences, and disturb what the generator reads.

    Parameters
    ----------
    shape : GeneratorShape
        the symbols.
    sequences : array
        int32 ``(count, steps)``: words and unknown words, then padding.
    settings : TrainingSettings
        how much is disturbed.
    key : array or None
        decides what is. None: nothing is disturbed.
    """
    steps = jnp.arange(sequences.shape[1])
    lengths = jnp.max(jnp.where(sequences != shape.padding, steps + 1, 0), axis=1, keepdims=True)
    live = steps < lengths
    targets = jnp.where(steps == lengths, shape.end, sequences)
    columns = jnp.where(targets == shape.end, shape.end_column, targets)
    first = jnp.full_like(targets[:, :1], shape.start)
    before = targets[:, :-1]
    if key is not None:
        before = _disturb(shape, before, settings, key)
    counted = (steps <= lengths) & (targets != shape.unknown)
    read = jnp.concatenate([first, before], axis=1)
    return Batch(sequences, live, read, jnp.where(counted, columns, 0), counted, counted & (targets < shape.size))


def _disturb(shape: GeneratorShape, symbols: Any, settings: TrainingSettings, key: Any) -> Any:
    chosen, drawn = jax.random.split(key)
    choice = jax.random.uniform(chosen, symbols.shape)
    other = jax.random.randint(drawn, symbols.shape, 0, shape.size, symbols.dtype)
    dropped = choice >= 1 - settings.word_dropout
    found = jnp.where(dropped, shape.unknown, jnp.where(choice < settings.corruption, other, symbols))
    return jnp.where(symbols < shape.size, found, symbols)


def measure_part(
    rows: Any, output: Any, bias: Any, part: _Part, units: Any, settings: RewardSettings, multiply: Multiply
) -> tuple[Any, Sums]:
    """The loss of some places, and what is reported of it. ``rows``: the generator's states, ``(places, cells)``."""
    logits = multiply(rows, output) + bias
    likelihood = jax.nn.log_softmax(logits)
    target = jnp.take_along_axis(likelihood, part.columns[:, None], axis=1)[:, 0]
    reconstruction = -(part.target * target).sum()
    _, likeliest = jax.lax.top_k(jax.lax.stop_gradient(logits), max(settings.likeliest, 1))
    accuracy = (part.target * (likeliest[:, 0] == part.columns)).sum()
    loss, reward = settings.reconstruction * reconstruction, jnp.zeros(())
    if settings.reward:
        candidates = jnp.concatenate([likeliest[:, : settings.likeliest], part.explored], axis=1)
        rewards = jnp.einsum("pcd,pd->pc", units[candidates], units[part.columns])
        rewards = jnp.clip(rewards, settings.floor, settings.ceiling)
        reward = (part.word * rewards[:, : settings.likeliest].mean(axis=1)).sum()
        if settings.baseline == "mean":
            rewards -= rewards.mean(axis=1, keepdims=True)
        chosen = jnp.take_along_axis(likelihood, candidates, axis=1)
        chosen = jnp.clip(chosen, jnp.log(settings.floor), jnp.log(settings.ceiling))
        loss -= settings.reward * (part.word * (rewards * chosen).mean(axis=1)).sum()
    return loss, Sums(loss, reconstruction, reward, accuracy)


class Losses:
    """The losses of a generator, and their gradient.

    Attributes
    ----------
    shape
        the sizes.
    settings
        of training. ``settings.reward.reward`` of 0 leaves the reward out.
    units
        what :func:`find_units` returns.
    """

    def __init__(self, shape: GeneratorShape, settings: TrainingSettings, units: Any) -> None:
        self.shape, self.settings, self.units = shape, settings, units
        self._multiply = make_product(settings.precision)

    def measure(self, generator: Generator, sequences: Any, key: Any) -> Sums:
        """What is lost on sequences that the generator reads undisturbed. ``key`` decides the words explored."""
        batch = prepare_batch(self.shape, sequences, self.settings)
        rows = self._run(generator, batch)
        sums, _ = self._sum(rows, generator, batch, key, derive=False)
        return sums

    def derive(self, generator: Generator, sequences: Any, key: Any) -> tuple[Any, Sums]:
        """The gradient, a state as :func:`flax.nnx.state` returns, and the losses.

        Parameters
        ----------
        generator : Generator
            the model.
        sequences : array
            int32 ``(count, steps)``: words and unknown words, then padding.
        key : array
            decides what is disturbed and which words are explored.
        """
        disturbing, exploring = jax.random.split(key)
        batch = prepare_batch(self.shape, sequences, self.settings, disturbing)
        graph, state = nnx.split(generator)
        rows, pull = jax.vjp(lambda state: self._run(nnx.merge(graph, state), batch), state)
        sums, (to_rows, to_output, to_bias) = self._sum(rows, generator, batch, exploring, derive=True)
        (gradient,) = pull(to_rows)
        # The states do not depend on the last matrix, so its gradient there is 0.
        gradient["output"][...] = to_output
        gradient["output_bias"][...] = to_bias
        return gradient, sums

    def _run(self, generator: Generator, batch: Batch) -> Any:
        latent = generator.encode(batch.sequences, batch.live, self._multiply)
        states = generator.generate(latent, batch.read, self._multiply)
        return states.reshape(-1, states.shape[-1])

    def _sum(self, rows: Any, generator: Generator, batch: Batch, key: Any, *, derive: bool) -> tuple[Sums, Any]:
        """The sums over all places that count, and the gradients of the loss with regard to rows, output, bias."""
        chunk = min(self.settings.chunk, len(rows))
        order, part, parts = self._arrange(batch, key, chunk)
        output, bias = generator.output[...], generator.output_bias[...]

        def measure(rows: Any, output: Any, bias: Any, part: _Part) -> tuple[Any, Sums]:
            return measure_part(rows, output, bias, part, self.units, self.settings.reward, self._multiply)

        def step(number: Any, found: tuple[Sums, Any]) -> tuple[Sums, Any]:
            before, gradients = found
            places = jax.lax.dynamic_slice_in_dim(order, number * chunk, chunk)
            now = jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, number * chunk, chunk), part)
            if derive:
                differentiate = jax.value_and_grad(measure, (0, 1, 2), has_aux=True)
                (_, sums), (to_rows, *others) = differentiate(rows[places], output, bias, now)
                # Places that fill up the last part repeat the first one, with weight 0: they add 0.
                to_rows = gradients[0].at[places].add(to_rows)
                gradients = (to_rows, *jax.tree.map(jnp.add, tuple(gradients[1:]), tuple(others)))
            else:
                _, sums = measure(rows[places], output, bias, now)
            return jax.tree.map(jnp.add, before, sums), gradients

        zero = jnp.zeros((), rows.dtype)
        empty = (jnp.zeros_like(rows), jnp.zeros_like(output), jnp.zeros_like(bias)) if derive else ()
        sums, gradients = jax.lax.fori_loop(0, parts, step, (Sums(zero, zero, zero, zero), empty))
        return sums, gradients

    def _arrange(self, batch: Batch, key: Any, chunk: int) -> tuple[Any, _Part, Any]:
        """Put the places that count first, and say how many parts they fill."""
        counted, words = batch.counted.reshape(-1), batch.words.reshape(-1)
        order = jnp.argsort(~counted, stable=True)
        number = self.settings.reward.explored
        explored = jax.random.randint(key, (len(order), number), 0, self.shape.size)
        target = counted / jnp.maximum(counted.sum(), 1)
        word = words / jnp.maximum(words.sum(), 1)
        part = _Part(batch.columns.reshape(-1)[order], explored, target[order], word[order])
        filling = -len(order) % chunk
        part = jax.tree.map(lambda array: jnp.pad(array, [(0, filling)] + [(0, 0)] * (array.ndim - 1)), part)
        return jnp.pad(order, (0, filling)), part, -(-counted.sum() // chunk)
