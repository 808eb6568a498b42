"""Training of a generator: one function, on a CPU or a GPU, that an interruption does not harm.

The batches of an epoch follow from the seed and the epoch, and the random numbers of a step from the seed and the
step. So a training that resumes from a checkpoint takes the steps that it would have taken, and its weights are the
same bit for bit on the same machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from numpy.typing import NDArray

from wordveil.errors import GeneratorError
from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.batch import Batch, prepare_batch
from wordveil.generators.training.checkpoint import CHECKPOINT, Checkpoint, Progress, load_checkpoint, save_checkpoint
from wordveil.generators.training.corpus import Corpus
from wordveil.generators.training.loss import Losses, Sums, find_units
from wordveil.generators.training.metrics import METRICS, MetricsFile
from wordveil.generators.training.model import Generator, collect_arrays
from wordveil.generators.training.settings import Schedule, TrainingSettings
from wordveil.generators.weights import Corpus as CorpusKind
from wordveil.generators.weights import GeneratorWeights, draw_salt
from wordveil.version import __version__

Row = Mapping[str, Any]
# What random numbers are drawn for: those of an epoch's order have no third number.
_TRAINING, _VALIDATION = 1, 2


@dataclass(frozen=True)
class Task:
    """Task of training a generator.

    ``shape``: the sizes. ``vectors``: float32 ``(size, dimension)``, the words' public vectors, no row of zeros.
    Rewards compare them. ``words_digest``: of the words (:func:`wordveil.generators.weights.digest_words`). ``corpus``:
    the sequences. ``kind``: whether the corpus is public. ``settings``: what decides each step.
    """

    shape: GeneratorShape
    vectors: NDArray[np.float32]
    words_digest: str
    corpus: Corpus
    kind: CorpusKind
    settings: TrainingSettings

    @property
    def identity(self) -> dict[str, Any]:
        """Values that must not change within a training, by the names that a message shows."""
        return {
            "shape": self.shape.to_dict(),
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
    task: Task, schedule: Schedule, directory: Path, observe: Callable[[Row, int], None] = lambda _row, _total: None
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

    def __init__(self, task: Task, schedule: Schedule, directory: Path, observe: Callable[[Row, int], None]) -> None:
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
        """Compile a step and a measurement."""
        graph, optimiser = self._graph, self._optimiser
        shape, settings = self._task.shape, self._task.settings

        # The vectors are an argument: a constant of their size would be compiled for each width of a batch.
        def step(state: Any, memory: Any, batch: Batch, units: Any) -> tuple[Any, Any, Sums]:
            gradient, sums = Losses(shape, settings, units).derive(nnx.merge(graph, state), batch)
            changes, memory = optimiser.update(gradient, memory, state)
            return optax.apply_updates(state, changes), memory, sums

        def measure(state: Any, batch: Batch, units: Any) -> Sums:
            return Losses(shape, settings, units).measure(nnx.merge(graph, state), batch)

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
        arrays = collect_arrays(self._state)
        done = Checkpoint(self.progress, arrays, leaves, self._best, self._task.identity, self._sums, self._salt)
        save_checkpoint(self._directory / CHECKPOINT, done)

    def run(self) -> None:
        """Run steps until an end is reached."""
        progress, before, begun = self.progress, self.progress.seconds, time.monotonic()
        while not (ended := self._find_end()):
            for batch in self._list_batches()[progress.position :]:
                self._step(batch)
                progress.seconds = before + time.monotonic() - begun
                self._measure_and_save()
                if self._find_end():
                    break
        progress.ended = ended
        if progress.measured_step != progress.step:
            self._validate()
        self._save()

    def _list_batches(self) -> list[NDArray[np.int64]]:
        settings = self._task.settings
        return self._task.corpus.order(settings.batch, settings.seed, self.progress.epoch)

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

    def _step(self, numbers: NDArray[np.int64]) -> None:
        """Run a step, and move to the next batch."""
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

    def _prepare(self, numbers: NDArray[np.int64], purpose: int, number: int) -> Batch:
        shape, settings = self._task.shape, self._task.settings
        sequences = self._task.corpus.take(numbers, shape.length, shape.padding)
        random = np.random.default_rng([settings.seed, purpose, number])
        rewarded, disturb = self.progress.rewarded, purpose == _TRAINING
        return prepare_batch(shape, sequences, settings, random, rewarded=rewarded, disturb=disturb)

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
            self._best = collect_arrays(self._state)
        else:
            progress.failures += 1
        self._tell(means)

    def finish(self) -> GeneratorWeights:
        """Return the weights with the lowest validation loss, with their description."""
        task, progress = self._task, self.progress
        arrays = self._best or collect_arrays(self._state)
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


def _build(shape: GeneratorShape, arrays: Mapping[str, NDArray[Any]]) -> Generator:
    return Generator(shape, {name: jnp.asarray(array) for name, array in arrays.items()})


def _to_numbers(sums: Sums) -> dict[str, float]:
    """Convert the figures of a step to numbers."""
    return {name: float(value) for name, value in sums._asdict().items()}
