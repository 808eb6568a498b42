"""Training of a generator: one function, on a CPU or a GPU, that resumes after an interruption.

The batches of an epoch follow from the seed and the epoch, and the random numbers of a step from the seed and the step.
So a training that resumes from a checkpoint takes the steps that it would have taken, and its weights are equal bit for
bit on the same machine.

**Losses** are those of ER-AE (Bo, Ding, Fung, Iqbal 2021, equations 7 and 8). At each position of a sequence the model
gives a probability ``p`` to each symbol. The reconstruction loss is the mean of ``-log p(target)``. The embedding
reward is computed for candidates: the likeliest symbols, and words drawn uniformly. The reward of a candidate is the
cosine between its public vector and that of the target, clipped. The second loss is the mean of ``-reward * log
p(candidate)`` over positions and candidates: REINFORCE (Williams 1992), with rewards as constants. Words that are like
the target become likelier, and others less likely.

A vocabulary has 20,000 words, so the probabilities of all positions at once do not fit into a cache or a small GPU.
They are computed for some positions at a time, with each part's gradient. Positions that do not count are left out,
which halves the work on sentences.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from numpy.typing import NDArray

from wordveil.arrays import Float32, Int64
from wordveil.errors import GeneratorError
from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training import model
from wordveil.generators.training.checkpoint import (
    CHECKPOINT,
    METRICS,
    Checkpoint,
    MetricsFile,
    Progress,
    load_checkpoint,
    save_checkpoint,
)
from wordveil.generators.training.corpus import Corpus
from wordveil.generators.training.settings import RewardSettings, Schedule, TrainingSettings
from wordveil.generators.weights import Corpus as CorpusKind
from wordveil.generators.weights import GeneratorWeights, draw_salt
from wordveil.version import __version__


class Sums(NamedTuple):
    """Sums over a batch.

    ``loss``: weighted sum of both losses. ``reconstruction``: mean of ``-log p(target)``, nats. ``reward``: mean reward
    of the likeliest candidates. ``accuracy``: share of targets that are the likeliest symbol.
    """

    loss: Any
    reconstruction: Any
    reward: Any
    accuracy: Any


def find_units(vectors: Float32) -> Float32:
    """Scale public ``vectors`` to length 1: float32 ``(size + 2, dimension)``, with zeros for padding and the end."""
    units = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.concatenate([units, np.zeros((2, vectors.shape[1]))]).astype(np.float32)


_GROUP = 64
"""Number of symbols of a group, which is ranked by its largest logit."""


def find_likeliest(logits: Any, count: int) -> Any:
    """Find the likeliest symbols of each position, int ``(positions, count)``, falling, the lower first among equals.

    There are fewer than ``count`` if there are fewer symbols. XLA sorts all symbols for ``top_k`` within a loop, which
    takes ten times as long on a processor as the rest of the loss. Here groups of symbols are ranked by their largest
    logit: the likeliest symbols are in the first ``count`` groups, so that all logits are read once.
    """
    rows, symbols = logits.shape
    count = min(count, symbols)
    padded = jnp.pad(logits, ((0, 0), (0, -symbols % _GROUP)), constant_values=-jnp.inf)
    groups = padded.reshape(rows, -1, _GROUP)
    # In the order of symbols, so that the first of equal logits is that of the lower symbol.
    best_groups = jnp.sort(_rank(groups.max(axis=2), min(count, groups.shape[1])), axis=1)
    candidates = jnp.take_along_axis(groups, best_groups[:, :, None], axis=1).reshape(rows, -1)
    numbers = (best_groups[:, :, None] * _GROUP + jnp.arange(_GROUP)).reshape(rows, -1)
    return jnp.take_along_axis(numbers, _rank(candidates, count), axis=1)


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
    part: model.Positions,
    weight: Any,
    units: Any,
    settings: RewardSettings,
    product: model.Multiply,
) -> tuple[Any, Sums]:
    """Compute the loss of some positions, and its figures for reports.

    ``rows``: float ``(positions, cells)``, the generator's states. ``output``, ``bias``: the last layer's arrays.
    ``part``: the targets. ``weight``: scalar weight of the reward. ``units``: result of :func:`find_units`.
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


class TrainingLosses:
    """Losses of a generator, and their gradient. ``units``: the result of :func:`find_units`."""

    def __init__(self, shape: GeneratorShape, settings: TrainingSettings, units: Any) -> None:
        self.shape, self.settings, self.units = shape, settings, units
        self._multiply = model.make_product(settings.precision)

    def measure(self, generator: model.Generator, batch: model.Batch) -> Sums:
        """Compute the losses on a batch."""
        sums, _ = self._sum(self._run(generator, batch), generator, batch, derive=False)
        return sums

    def derive(self, generator: model.Generator, batch: model.Batch) -> tuple[Any, Sums]:
        """Compute the gradient on a batch, a state as :func:`flax.nnx.state` returns, and the losses."""
        graph, state = nnx.split(generator)
        rows, pull = jax.vjp(lambda state: self._run(nnx.merge(graph, state), batch), state)
        sums, (to_rows, to_output, to_bias) = self._sum(rows, generator, batch, derive=True)
        (gradient,) = pull(to_rows)
        # The states do not depend on the last matrix, so its gradient there is 0.
        gradient["output"][...] = to_output
        gradient["output_bias"][...] = to_bias
        return gradient, sums

    def _run(self, generator: model.Generator, batch: model.Batch) -> Any:
        latent = generator.encode(batch.sequences, batch.live, self._multiply)
        states = generator.generate(latent, batch.read, self._multiply)
        return states.reshape(-1, states.shape[-1])

    def _sum(self, rows: Any, generator: model.Generator, batch: model.Batch, *, derive: bool) -> tuple[Sums, Any]:
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


Row = Mapping[str, Any]
# What random numbers are drawn for: those of an epoch's order have no third number.
_TRAINING, _VALIDATION = 1, 2


@dataclass(frozen=True)
class TrainingTask:
    """Task of training a generator.

    ``vectors``: float32 ``(size, dimension)``, the words' public vectors, no row of zeros, which rewards compare.
    ``words_digest``: identity of the words (:func:`wordveil.generators.weights.digest_words`). ``kind``: a public or
    private corpus. ``settings``: all that decides a step.
    """

    shape: GeneratorShape
    vectors: Float32
    words_digest: str
    corpus: Corpus
    kind: CorpusKind
    settings: TrainingSettings

    @property
    def identity(self) -> dict[str, Any]:
        """Values that must not change within a training, by their names in messages."""
        return {
            "shape": asdict(self.shape),
            "words": self.words_digest,
            "texts": self.corpus.digest,
            "corpus": self.kind,
            **asdict(self.settings),
        }


@dataclass(frozen=True)
class Trained:
    """Result of a training: the weights, its progress, and whether it resumed from a checkpoint."""

    weights: GeneratorWeights
    progress: Progress
    resumed: bool


def train(
    task: TrainingTask,
    schedule: Schedule,
    directory: Path,
    observe: Callable[[Row, int], None] = lambda _row, _total: None,
) -> Trained:
    """Train a generator, or resume a training.

    ``directory`` exists; checkpoints and metrics are kept there. ``observe`` gets each row of the metrics, and the
    number of steps of all epochs. Returns the weights with the lowest validation loss, or the last ones if no sequence
    validates. Raises :class:`GeneratorError` if the directory has a checkpoint of another task, no sequence trains, or
    the loss becomes infinite.
    """
    if not len(task.corpus.training):
        raise GeneratorError("No sequence of the texts trains. Name texts with words of the embedding.")
    trainer = _Trainer(task, schedule, directory, observe)
    resumed = trainer.restore()
    trainer.run()
    return Trained(trainer.finish(), trainer.progress, resumed)


class _Trainer:
    """Training under way."""

    def __init__(
        self, task: TrainingTask, schedule: Schedule, directory: Path, observe: Callable[[Row, int], None]
    ) -> None:
        self._task, self._schedule, self._directory, self._observe = task, schedule, directory, observe
        self._metrics = MetricsFile(directory / METRICS, task.kind == "private")
        settings = task.settings
        self._epoch_steps = len(task.corpus.order(settings.batch, settings.seed, 0))
        self.progress = Progress()
        self.progress.rewarded = self._awaits_reward and self._is_due(0)
        arrays = draw_initial_arrays(task.shape, settings.seed, task.vectors)
        arrays["output_bias"] = task.corpus.measure_bias(task.shape.outputs, task.shape.end_column)
        self._graph, self._state = nnx.split(_build(task.shape, arrays))
        self._optimiser = optax.chain(optax.clip_by_global_norm(settings.clip_norm), optax.adam(settings.learning_rate))
        self._memory = self._optimiser.init(self._state)
        self._best: Mapping[str, NDArray[Any]] = {}
        self._sums: Counter[str] = Counter()
        self._salt = draw_salt(task.kind)
        self._units = jnp.asarray(find_units(task.vectors))
        self._take_step, self._measure = self._compile()

    def _compile(self) -> tuple[Any, Any]:
        graph, optimiser = self._graph, self._optimiser
        shape, settings = self._task.shape, self._task.settings

        # The vectors are an argument: a constant of their size would be compiled for each width of a batch.
        def step(state: Any, memory: Any, batch: model.Batch, units: Any) -> tuple[Any, Any, Sums]:
            gradient, sums = TrainingLosses(shape, settings, units).derive(nnx.merge(graph, state), batch)
            changes, memory = optimiser.update(gradient, memory, state)
            return optax.apply_updates(state, changes), memory, sums

        def measure(state: Any, batch: model.Batch, units: Any) -> Sums:
            return TrainingLosses(shape, settings, units).measure(nnx.merge(graph, state), batch)

        return jax.jit(step, donate_argnums=(0, 1)), jax.jit(measure)

    def restore(self) -> bool:
        """Resume from the checkpoint. Return False if there is none."""
        checkpoint = load_checkpoint(self._directory / CHECKPOINT, self._task.identity)
        self._metrics.cut(checkpoint.progress.step if checkpoint else -1)
        if checkpoint is None:
            return False
        self.progress, self._best = replace(checkpoint.progress, ended=""), checkpoint.best
        self._sums, self._salt = Counter(checkpoint.sums), checkpoint.salt
        _, self._state = nnx.split(_build(self._task.shape, checkpoint.parameters))
        structure = jax.tree.structure(self._memory)
        leaves = [jnp.asarray(checkpoint.optimiser[str(number)]) for number in range(structure.num_leaves)]
        self._memory = jax.tree.unflatten(structure, leaves)
        return True

    def _save(self) -> None:
        leaves = {str(number): np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(self._memory))}
        arrays = model.collect_arrays(self._state)
        done = Checkpoint(self.progress, arrays, leaves, self._best, self._task.identity, self._sums, self._salt)
        save_checkpoint(self._directory / CHECKPOINT, done)

    def run(self) -> None:
        progress, before, begun = self.progress, self.progress.seconds, time.monotonic()
        while not (ended := self._find_end()):
            settings = self._task.settings
            batches = self._task.corpus.order(settings.batch, settings.seed, progress.epoch)
            for batch in batches[progress.position :]:
                self._step(batch)
                progress.seconds = before + time.monotonic() - begun
                self._measure_and_save()
                if self._find_end():
                    break
        progress.ended = ended
        if progress.measured_step != progress.step:
            self._validate()
        self._save()

    def _find_end(self) -> str:
        """Return the reason why training ends now; empty if it continues."""
        progress, schedule = self.progress, self._schedule
        ends = {
            "epochs": progress.epoch >= schedule.epochs,
            "steps": schedule.steps is not None and progress.step >= schedule.steps,
            "minutes": schedule.minutes is not None and progress.seconds >= 60 * schedule.minutes,
            "patience": progress.failures >= schedule.patience,
        }
        return next((name for name, is_reached in ends.items() if is_reached), "")

    def _step(self, numbers: Int64) -> None:
        progress, begun = self.progress, time.monotonic()
        batch = self._prepare(numbers, _TRAINING, progress.step)
        self._state, self._memory, sums = self._take_step(self._state, self._memory, batch, self._units)
        figures = _to_numbers(sums)
        progress.step += 1
        progress.position += 1
        if progress.position == self._epoch_steps:
            progress.epoch, progress.position = progress.epoch + 1, 0
        if not np.isfinite(figures["loss"]):
            raise GeneratorError(
                f"The loss became {figures['loss']} at step {progress.step}. Lower training.learning_rate, and begin "
                "again with --fresh."
            )
        spent = {"steps": 1, "tokens": int(batch.live.sum()), "spent": time.monotonic() - begun}
        self._sums.update({**figures, **spent})
        if progress.step % self._schedule.report_every == 0:
            self._report()

    def _report(self) -> None:
        """Report the means since the last report: single batches differ by more than training improves."""
        sums, self._sums = dict(self._sums), Counter()
        steps, tokens, spent = (sums.pop(name) for name in ("steps", "tokens", "spent"))
        means = {name: value / steps for name, value in sums.items()}
        self._tell({**means, "tokens_per_second": round(tokens / spent, 1)})

    def _prepare(self, numbers: Int64, purpose: int, number: int) -> model.Batch:
        shape, settings = self._task.shape, self._task.settings
        sequences = self._task.corpus.take(numbers, shape.length, shape.padding)
        random = np.random.default_rng([settings.seed, purpose, number])
        rewarded, disturb = self.progress.rewarded, purpose == _TRAINING
        return model.prepare_batch(shape, sequences, settings, random, rewarded=rewarded, disturb=disturb)

    def _tell(self, figures: Row) -> None:
        progress = self.progress
        where = {"step": progress.step, "epoch": progress.epoch, "rewarded": progress.rewarded}
        row = {**where, "seconds": round(progress.seconds, 1), **figures}
        self._metrics.add(row)
        self._observe(row, self._schedule.epochs * self._epoch_steps)

    def _measure_and_save(self) -> None:
        """Measure, begin the reward and save when they are due."""
        progress, schedule = self.progress, self._schedule
        if progress.step % schedule.validate_every == 0:
            self._validate()
        if self._awaits_reward and (self._is_due(progress.epoch) or progress.failures >= schedule.patience):
            # Losses with and without the reward cannot be compared.
            progress.rewarded, progress.best, progress.failures = True, None, 0
        if progress.step % schedule.checkpoint_every == 0:
            self._save()

    @property
    def _awaits_reward(self) -> bool:
        return bool(self._task.settings.reward.reward) and not self.progress.rewarded

    def _is_due(self, epoch: int) -> bool:
        return epoch >= self._schedule.reconstruction_epochs

    def _validate(self) -> None:
        """Measure the validation loss, and keep the parameters if it is the lowest."""
        batches = self._task.corpus.list_validation(self._task.settings.batch)
        if not batches:
            return
        progress = self.progress
        prepared = (self._prepare(batch, _VALIDATION, number) for number, batch in enumerate(batches))
        rows = [_to_numbers(self._measure(self._state, batch, self._units)) for batch in prepared]
        means = {f"validation_{name}": float(np.mean([row[name] for row in rows])) for name in rows[0]}
        loss = means["validation_loss"]
        progress.measured_step = progress.step
        if progress.best is None or loss < progress.best:
            progress.best, progress.best_step, progress.failures = loss, progress.step, 0
            self._best = model.collect_arrays(self._state)
        else:
            progress.failures += 1
        self._tell(means)

    def finish(self) -> GeneratorWeights:
        """Return the weights with the lowest validation loss, with their description."""
        task, progress = self._task, self.progress
        arrays = self._best or model.collect_arrays(self._state)
        about = {
            "wordveil": __version__,
            "texts": task.corpus.digest,
            "settings": asdict(task.settings),
            "schedule": asdict(self._schedule),
            "progress": asdict(progress),
            "last": self._metrics.read()[-1:],
        }
        floats = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
        return GeneratorWeights(task.shape, task.words_digest, task.kind, floats, about, self._salt)


def _build(shape: GeneratorShape, arrays: Mapping[str, NDArray[Any]]) -> model.Generator:
    return model.Generator(shape, {name: jnp.asarray(array) for name, array in arrays.items()})


def _to_numbers(sums: Sums) -> dict[str, float]:
    return {name: float(value) for name, value in sums._asdict().items()}
