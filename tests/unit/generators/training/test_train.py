"""Training: it learns what it is shown, and a kill changes nothing but the time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the extra er-ae is not installed")

from wordveil.errors import GeneratorError  # noqa: E402
from wordveil.generators.shape import GeneratorShape  # noqa: E402
from wordveil.generators.training.checkpoint import (  # noqa: E402
    CHECKPOINT,
    METRICS,
    MetricsFile,
)
from wordveil.generators.training.corpus import Piece, find_corpus, write_corpus  # noqa: E402
from wordveil.generators.training.settings import RewardSettings, Schedule, TrainingSettings  # noqa: E402
from wordveil.generators.training.train import Trained, TrainingTask, train  # noqa: E402

# One process loads JAX, and trains what several tests look at.
pytestmark = pytest.mark.xdist_group("jax")
# One width, so that one step is compiled.
SHAPE = GeneratorShape(size=30, dimension=16, cells=64, latent=32, length=4, encoder_layers=1, generator_layers=1)
SETTINGS = TrainingSettings(learning_rate=0.01, batch=25, reward=RewardSettings(reward=0.2))
SCHEDULE = Schedule(epochs=90, reconstruction_epochs=60, validate_every=60, checkpoint_every=10, report_every=10)


def make_task(directory: Path, settings: TrainingSettings = SETTINGS) -> TrainingTask:
    """Sixty sequences of three or four words, of which ten validate."""
    corpus = find_corpus(directory, {})
    if corpus is None:
        random = np.random.default_rng(0)
        offsets = np.concatenate([[0], np.cumsum(np.full(60, 3) + np.arange(60) % 2)])
        ids = random.integers(0, SHAPE.size, offsets[-1], np.int32)
        hashes = np.where(np.arange(60) < 10, 0, 2**63).astype(np.uint64)
        corpus = write_corpus(directory, [Piece(ids, offsets, hashes)], SHAPE.length, 0.1, {})
    vectors = np.random.default_rng(1).normal(size=(SHAPE.size, SHAPE.dimension)).astype(np.float32)
    return TrainingTask(SHAPE, vectors, "words", corpus, "public", settings)


def run(directory: Path, schedule: Schedule = SCHEDULE, settings: TrainingSettings = SETTINGS) -> Trained:
    return train(make_task(directory, settings), schedule, directory)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """A training that nothing interrupted, without early stopping."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("compiled")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    directory = tmp_path_factory.mktemp("whole")
    return directory, run(directory, replace(SCHEDULE, patience=100))


def rows(directory: Path) -> list[dict[str, Any]]:
    return MetricsFile(directory / METRICS).read()


def test_fifty_sentences_are_learnt(whole: tuple[Path, Trained]) -> None:
    before = [row for row in rows(whole[0]) if not row["rewarded"] and "accuracy" in row]
    assert before[0]["accuracy"] < 0.5
    assert before[-1]["accuracy"] > 0.95
    assert whole[1].progress.ended == "epochs"
    assert not whole[1].resumed


def test_the_reward_makes_similar_words_likelier(whole: tuple[Path, Trained]) -> None:
    reported = [row for row in rows(whole[0]) if "accuracy" in row]
    before, after = (
        [row["reward"] for row in reported if row["rewarded"] is is_rewarded] for is_rewarded in (False, True)
    )
    assert min(after[-3:]) > 1.03 * max(before[-3:])


def test_the_weights_are_those_of_the_lowest_validation_loss(whole: tuple[Path, Trained]) -> None:
    directory, trained = whole
    measured = {row["step"]: row["validation_loss"] for row in rows(directory) if "validation_loss" in row}
    rewarded = {step: loss for step, loss in measured.items() if step > 120}
    assert trained.progress.best == min(rewarded.values())
    assert rewarded[trained.progress.best_step] == trained.progress.best
    assert trained.weights.about["settings"] == asdict(SETTINGS)


# The process is killed by the signal that cannot be caught, between two checkpoints, two epochs and two reports.
SCRIPT = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
from test_train import SCHEDULE, make_task
from wordveil.generators.training.train import train
def observe(row, total):
    if row["step"] == 60 and "accuracy" in row:
        os.kill(os.getpid(), signal.SIGKILL)
directory = Path(sys.argv[2])
train(make_task(directory), replace(SCHEDULE, patience=100, checkpoint_every=27), directory, observe)
"""


def test_a_killed_training_goes_on_to_the_same_weights(whole: tuple[Path, Trained], tmp_path: Path) -> None:
    variables = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    assert rows(tmp_path)[-1]["step"] == 60
    trained = run(tmp_path, replace(SCHEDULE, patience=100))
    assert trained.resumed
    wanted = whole[1].weights.arrays
    assert all(np.array_equal(array, wanted[name]) for name, array in trained.weights.arrays.items())
    kept = [[{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")} for row in rows(path)]
            for path in (tmp_path, whole[0])]  # fmt: skip
    assert kept[0] == kept[1]


def test_early_stopping_begins_the_reward_and_then_ends(tmp_path: Path, whole: tuple[Path, Trained]) -> None:
    """Private weights keep their identity when they are asked for again: a ledger knows their price by it."""
    schedule = replace(SCHEDULE, validate_every=5, patience=2, reconstruction_epochs=89)
    task = replace(make_task(tmp_path), kind="private")
    trained, again = (train(task, schedule, tmp_path) for _ in range(2))
    assert trained.progress.ended == "patience"
    assert trained.progress.rewarded
    assert trained.progress.step < 180
    assert trained.weights.salt
    assert trained.weights.identity == again.weights.identity


def test_other_settings_do_not_go_on_from_a_checkpoint(whole: tuple[Path, Trained]) -> None:
    with pytest.raises(GeneratorError, match=r"other settings: batch, seed\..*--fresh"):
        run(whole[0], SCHEDULE, replace(SETTINGS, seed=3, batch=20))


def test_what_cannot_train_is_refused_with_the_reason(tmp_path: Path, whole: tuple[Path, Trained]) -> None:
    task = make_task(tmp_path)
    empty = replace(task.corpus, validates=np.ones_like(task.corpus.validates))
    with pytest.raises(GeneratorError, match="No sequence of the texts trains"):
        train(replace(task, corpus=empty), SCHEDULE, tmp_path)
    with pytest.raises(GeneratorError, match=r"became nan at step 1\. Lower training\.learning_rate"):
        train(replace(task, vectors=np.full_like(task.vectors, np.nan)), SCHEDULE, tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"PK")
    with pytest.raises(GeneratorError, match=r"checkpoint\.npz: is not a checkpoint"):
        run(tmp_path)
