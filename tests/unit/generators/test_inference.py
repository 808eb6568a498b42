"""Inference in whole numbers: what a row gets depends on nothing but the row, and is what the model says."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from reference.generator import Reference
from support.generators import SMALL, make_sequences, make_weights
from wordveil.errors import GeneratorError
from wordveil.generators import inference
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.quantise import EXACT, UnitLevels, quantise_weights
from wordveil.generators.weights import GeneratorWeights

SEQUENCES = make_sequences()
COUNT = len(SEQUENCES)
WRITTEN = np.random.default_rng(4).integers(0, SMALL.size + 3, (SMALL.length, COUNT)).astype(np.int32)
ARRAYS = quantise_weights(make_weights())
# SHA-256 of the weights of all steps: other BLAS libraries and processors give the same.
GOLDEN = "29884f8e840c62ab59760a21660c5afee9525410095ef14756f1b1aea4bf5914"


def run(generator: WholeNumberGenerator, rows: Any = slice(None)) -> np.ndarray:
    """The weights of each step: uint32 ``(length, count, outputs)``."""
    sequences, written = SEQUENCES[rows], WRITTEN[:, rows]
    state = generator.begin(sequences)
    symbols = generator.start_symbols(len(sequences))
    steps = []
    for row in written:
        steps.append(generator.advance(state, symbols).copy())
        symbols = row
    return np.array(steps)


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return run(WholeNumberGenerator(SMALL, ARRAYS))


def test_rows_depend_on_nothing_but_themselves(whole: np.ndarray) -> None:
    generator = WholeNumberGenerator(SMALL, ARRAYS)
    assert len({step.tobytes() for step in whole.transpose(1, 0, 2)}) > COUNT - 3  # of two empty rows
    order = np.random.default_rng(5).permutation(COUNT)
    assert np.array_equal(run(generator, order), whole[:, order])
    for row in range(COUNT):
        assert np.array_equal(run(generator, slice(row, row + 1)), whole[:, row : row + 1])


@pytest.mark.parametrize(("block", "threads"), [(1, 2), (5, 1), (COUNT, 2), (1000, 1)])
def test_blocks_and_threads_decide_nothing(block: int, threads: int, whole: np.ndarray) -> None:
    with threadpool_limits(threads):
        assert np.array_equal(run(WholeNumberGenerator(SMALL, ARRAYS, block)), whole)


def test_rows_that_are_kept_go_on(whole: np.ndarray) -> None:
    generator = WholeNumberGenerator(SMALL, ARRAYS, 4)
    state, symbols = generator.begin(SEQUENCES), generator.start_symbols(COUNT)
    rows = np.arange(COUNT)
    for step, written in enumerate(WRITTEN):
        assert np.array_equal(generator.advance(state, symbols), whole[step, rows])
        chosen = np.arange(len(rows))[::-1] if step == 1 else np.arange(len(rows)) % 5 != step % 5
        state.keep(chosen)
        rows = rows[chosen]
        symbols = written[rows]
        assert state.count == len(rows)
    state.keep(np.zeros(len(rows), bool))
    assert generator.advance(state, symbols[:0]).shape == (0, SMALL.outputs)


def test_two_states_do_not_share_what_they_return(whole: np.ndarray) -> None:
    generator = WholeNumberGenerator(SMALL, ARRAYS)
    first, second = generator.begin(SEQUENCES), generator.begin(SEQUENCES[::-1])
    weights = generator.advance(first, generator.start_symbols(COUNT))
    other = generator.advance(second, generator.start_symbols(COUNT))
    assert np.array_equal(weights, whole[0])
    assert np.array_equal(other, whole[0, ::-1])


def test_products_are_exact(whole: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(levels: np.ndarray, matrix: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        sums = levels.astype(np.int64) @ matrix.astype(np.int64)
        assert np.abs(sums).max(initial=0) <= EXACT
        if out is not None:
            out[:] = sums
        return sums.astype(np.float32)

    monkeypatch.setattr(inference, "multiply", count)
    assert np.array_equal(run(WholeNumberGenerator(SMALL, ARRAYS)), whole)


def distance(weights: GeneratorWeights, levels: UnitLevels | None = None) -> tuple[float, float]:
    weighed = run(WholeNumberGenerator(SMALL, quantise_weights(weights, levels))).astype(np.float64)
    shares = weighed / weighed.sum(axis=2, keepdims=True)
    reference = Reference(SMALL, weights.arrays)
    wanted = [reference.probabilities(SEQUENCES[row].tolist(), WRITTEN[:-1, row].tolist()) for row in range(COUNT)]
    distances = np.abs(shares - np.array(wanted).transpose(1, 0, 2)).sum(axis=2) / 2
    return float(distances.max()), float(distances.mean())


@pytest.mark.parametrize(("sharpness", "largest", "mean"), [(2.0, 0.003, 0.002), (12.0, 0.02, 0.004)])
def test_whole_numbers_are_close_to_the_model(sharpness: float, largest: float, mean: float) -> None:
    weights = make_weights(sharpness=sharpness)
    distances = distance(weights)
    assert distances[0] < largest
    assert distances[1] < mean
    assert distance(weights, UnitLevels(32, 32, 32))[1] > mean


def test_the_model_is_told_from_others() -> None:
    """An array that were read wrongly would be seen: each decides more than what rounding does."""
    weights = make_weights()
    limit = distance(weights)[1]
    for name, array in weights.arrays.items():
        other = GeneratorWeights(SMALL, "", "public", {**weights.arrays, name: np.roll(array, 1, axis=-1)})
        weighed = [run(WholeNumberGenerator(SMALL, quantise_weights(each))) / 2**31 for each in (weights, other)]
        shares = [each / each.sum(axis=2, keepdims=True) for each in weighed]
        assert np.abs(shares[0] - shares[1]).sum(axis=2).mean() / 2 > 3 * limit, name


def test_padding_at_the_end_is_not_read(whole: np.ndarray) -> None:
    longer = replace(SMALL, length=SMALL.length + 5)
    generator = WholeNumberGenerator(longer, ARRAYS)
    padded = np.full((COUNT, longer.length), longer.padding, np.int32)
    padded[:, : SMALL.length] = SEQUENCES
    assert np.array_equal(generator.advance(generator.begin(padded), generator.start_symbols(COUNT)), whole[0])


def test_padding_before_a_word_is_read_as_any_symbol() -> None:
    generator = WholeNumberGenerator(SMALL, ARRAYS)
    pad = SMALL.padding
    rows = [[1, 2], [1, pad, 2], [pad, 1, 2], [1, 2, pad]]
    sequences = np.array([row + [pad] * (SMALL.length - len(row)) for row in rows], np.int32)
    first = generator.advance(generator.begin(sequences), generator.start_symbols(4))
    assert len({row.tobytes() for row in first}) == 3
    assert np.array_equal(first[0], first[3])


def test_weights_are_the_same_as_on_other_machines(whole: np.ndarray) -> None:
    """Also with other instructions of OpenBLAS and Numba, which `make test-processors` sets."""
    assert sha256(np.ascontiguousarray(whole, "<u4").tobytes()).hexdigest() == GOLDEN


def test_bad_input_is_named() -> None:
    generator = WholeNumberGenerator(SMALL, ARRAYS)
    with pytest.raises(ValueError, match="sequences of 7 symbols"):
        generator.begin(SEQUENCES[:, 1:])
    for symbol in (-1, SMALL.end):
        wrong = SEQUENCES.copy()
        wrong[0, 0] = symbol
        with pytest.raises(ValueError, match="symbols from 0 to 151"):
            generator.begin(wrong)
    state = generator.begin(SEQUENCES)
    with pytest.raises(ValueError, match=r"symbols of shape \(12,\)"):
        generator.advance(state, generator.start_symbols(2))
    with pytest.raises(ValueError, match="symbols from 0 to 153"):
        generator.advance(state, generator.start_symbols(COUNT) + np.int32(1))
    with pytest.raises(ValueError, match="block=0"):
        WholeNumberGenerator(SMALL, ARRAYS, 0)
    with pytest.raises(GeneratorError, match="output is missing"):
        WholeNumberGenerator(SMALL, {name: array for name, array in ARRAYS.items() if name != "output"})
