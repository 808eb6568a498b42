"""The model is the one that :mod:`wordveil.generators.shape` describes, and its gradient is that of its loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the extra er-ae is not installed")

import jax.numpy as jnp  # noqa: E402
from flax import nnx  # noqa: E402

from reference.generator import Reference  # noqa: E402
from wordveil.generators.initial import draw_initial_arrays  # noqa: E402
from wordveil.generators.shape import GeneratorShape  # noqa: E402
from wordveil.generators.training.model import (  # noqa: E402
    Generator,
    collect_arrays,
    prepare_batch,
)
from wordveil.generators.training.settings import RewardSettings, TrainingSettings  # noqa: E402
from wordveil.generators.training.train import TrainingLosses, find_units, measure_part  # noqa: E402

pytestmark = pytest.mark.xdist_group("jax")
SHAPE = GeneratorShape(size=12, dimension=5, cells=6, latent=4, length=6)
Arrays = dict[str, Any]


def some_arrays(seed: int = 0, shape: GeneratorShape = SHAPE) -> Arrays:
    random = np.random.default_rng(seed)
    return {name: 0.5 * random.normal(size=sizes) for name, sizes in shape.arrays().items()}


def some_sequences() -> np.ndarray:
    """Short, whole and empty ones, with unknown words and padding between words."""
    pad, unknown = SHAPE.padding, SHAPE.unknown
    rows = [[1, 2, 3, pad, pad, pad], [4, 5, 6, 7, 8, 9], [pad] * 6, [3, pad, unknown, 11, pad, pad]]
    return np.array(rows, np.int32)


def model(arrays: Arrays, shape: GeneratorShape = SHAPE) -> Generator:
    return Generator(shape, {name: jnp.asarray(array) for name, array in arrays.items()})


def test_the_model_is_that_of_the_shape() -> None:
    arrays, sequences = some_arrays(), some_sequences()
    with jax.enable_x64(True):
        batch = prepare_batch(SHAPE, sequences, TrainingSettings(), np.random.default_rng(0))
        latent = model(arrays).encode(sequences, batch.live)
        states = model(arrays).generate(latent, batch.read)
    reference = Reference(SHAPE, arrays)
    for row, sequence in enumerate(sequences.tolist()):
        wanted = reference.encode(sequence)
        np.testing.assert_allclose(latent[row], wanted, atol=1e-12)
        np.testing.assert_allclose(states[row], reference.states(wanted, batch.read[row].tolist()), atol=1e-12)


def test_the_arrays_of_a_model_have_the_names_of_the_shape() -> None:
    arrays = draw_initial_arrays(SHAPE, 3)
    collected = collect_arrays(nnx.state(model(arrays)))
    assert {name: array.shape for name, array in collected.items()} == SHAPE.arrays()
    assert all(np.array_equal(collected[name], array) for name, array in arrays.items())


def test_targets_are_words_and_one_end() -> None:
    batch = prepare_batch(SHAPE, some_sequences(), TrainingSettings(), np.random.default_rng(0))
    end = SHAPE.end
    assert batch.read[0].tolist() == [SHAPE.start, 1, 2, 3, end, SHAPE.padding]
    assert batch.read[2].tolist() == [SHAPE.start, end, *[SHAPE.padding] * 4]
    places, counted = batch.positions, int(batch.counted)
    columns = dict(zip(places.order[:counted].tolist(), places.columns[:counted].tolist(), strict=True))
    # The sequence of six words has no end; the unknown word of the last sequence has no loss.
    last = {18: 3, 19: SHAPE.padding, 21: 11, 22: SHAPE.end_column}
    assert columns == {0: 1, 1: 2, 2: 3, 3: SHAPE.end_column, **dict(enumerate(range(4, 10), 6)), 12: 13, **last}
    assert places.target[:counted].sum() == pytest.approx(1)
    assert places.word.sum() == pytest.approx(1)
    assert not places.target[counted:].any()


def test_only_words_that_the_generator_reads_are_disturbed() -> None:
    settings = TrainingSettings(word_dropout=0.3, corruption=0.3)
    sequences = np.random.default_rng(1).integers(0, 12, (400, 6), np.int32)
    sequences[:, 4:] = SHAPE.padding
    batch = prepare_batch(SHAPE, sequences, settings, np.random.default_rng(2))
    assert (batch.sequences == sequences).all()
    read = batch.read[:, 1:5]
    assert (read == SHAPE.unknown).mean() == pytest.approx(0.3, abs=0.03)
    assert ((read != SHAPE.unknown) & (read != sequences[:, :4])).mean() == pytest.approx(0.3 * 11 / 12, abs=0.03)
    assert (batch.read[:, 5] == SHAPE.end).all()
    assert (prepare_batch(SHAPE, sequences, settings, np.random.default_rng(2), disturb=False).read[:, 1:5]
            == sequences[:, :4]).all()  # fmt: skip


def losses(settings: TrainingSettings) -> TrainingLosses:
    vectors = np.random.default_rng(5).normal(size=(SHAPE.size, 7)).astype(np.float32)
    return TrainingLosses(SHAPE, settings, jnp.asarray(find_units(vectors).astype(np.float64)))


def test_the_gradient_is_that_of_finite_differences() -> None:
    """Over several chunks, the last of which is not full. What is compiled is small: compilation is what takes time."""
    reward = RewardSettings(reconstruction=0.7, reward=0.9, likeliest=3, explored=4, baseline="mean")
    settings, shape = TrainingSettings(chunk=5, reward=reward), replace(SHAPE, encoder_layers=1, generator_layers=1)
    arrays = some_arrays(2, shape)
    with jax.enable_x64(True):
        batch = prepare_batch(SHAPE, some_sequences(), settings, np.random.default_rng(3))
        gradient, sums = jax.jit(losses(settings).derive)(model(arrays, shape), batch)
        measure = jax.jit(lambda given: losses(settings).measure(model(given, shape), batch).loss)
        assert float(measure(arrays)) == pytest.approx(float(sums.loss), abs=1e-12)
        for name, slope in collect_arrays(gradient).items():
            direction = np.random.default_rng(7).normal(size=slope.shape)
            moved = [float(measure({**arrays, name: arrays[name] + sign * 1e-6 * direction})) for sign in (1, -1)]
            assert (moved[0] - moved[1]) / 2e-6 == pytest.approx(float((slope * direction).sum()), abs=1e-8), name


def test_the_loss_is_that_of_the_paper() -> None:
    """Equations 7 and 8 once more, by loops."""
    random, settings = np.random.default_rng(1), RewardSettings(reward=0.5, likeliest=2, explored=3)
    rows, output, bias = random.normal(size=(4, 6)), random.normal(size=(6, 14)), random.normal(size=14)
    units = find_units(random.normal(size=(12, 7)).astype(np.float32))
    sequences = np.array([[1, 2, SHAPE.padding, SHAPE.padding]], np.int32)
    part = prepare_batch(SHAPE, sequences, TrainingSettings(reward=settings), random).positions
    loss, sums = measure_part(rows, output, bias, part, 0.5, jnp.asarray(units), settings, jnp.matmul)
    recon, reward = [], []
    for row in range(3):
        target = [1, 2, SHAPE.end_column][row]
        logits = rows[row] @ output + bias
        p = np.exp(logits) / np.exp(logits).sum()
        recon.append(-np.log(p[target]))
        if target < SHAPE.size:
            for v in [*np.argsort(-p)[:2], *part.explored[row]]:
                r = min(max(float(units[v] @ units[target]), 1e-5), 0.85)
                reward.append(-r * np.log(min(max(p[v], 1e-5), 0.85)))
    assert float(sums.reconstruction) == pytest.approx(np.mean(recon), rel=1e-5)
    assert float(loss) == pytest.approx(np.mean(recon) + 0.5 * np.mean(reward), rel=1e-5)
