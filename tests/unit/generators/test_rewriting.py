"""What a generator writes by itself, and how much of a text that says again."""

from __future__ import annotations

import numpy as np
import pytest

from support.generators import SMALL, make_sequences, make_weights
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.quantise import quantise_weights
from wordveil.generators.rewriting import measure_accuracy, write_likeliest


@pytest.fixture(scope="module")
def generator() -> WholeNumberGenerator:
    weights = make_weights()
    # An end that comes now and then.
    weights.arrays["output_bias"][SMALL.end_column] = 6.0
    return WholeNumberGenerator(SMALL, quantise_weights(weights))


def write_alone(generator: WholeNumberGenerator, sequence: np.ndarray) -> list[int]:
    """The same for one sequence, symbol by symbol."""
    state, symbol, written = generator.begin(sequence[None]), SMALL.start, []
    for _ in range(SMALL.length):
        column = int(np.argmax(generator.advance(state, np.array([symbol], np.int32))[0]))
        if column == SMALL.end_column:
            break
        written.append(column)
        symbol = column
    return written + [SMALL.padding] * (SMALL.length - len(written))


def test_the_generator_reads_back_what_it_wrote_until_the_end(generator: WholeNumberGenerator):
    sequences = make_sequences(count=60)
    written = write_likeliest(generator, sequences)
    assert written.tolist() == [write_alone(generator, sequence) for sequence in sequences]
    ends = (written == SMALL.padding).any(axis=1)
    assert 0 < ends.sum() < len(ends)


def test_shares_count_known_words_alone():
    unknown, padding = SMALL.unknown, SMALL.padding
    read = np.array([[1, 2, 3, unknown], [4, 5, padding, padding]], np.int32)
    written = np.array([[1, 3, 9, unknown], [2, 5, 3, padding]], np.int32)
    found = measure_accuracy(SMALL, read, written)
    assert found.words == 5
    assert found.in_place == 2 / 5
    assert found.anywhere == 3 / 5
    assert found.by_chance == 2 / 5


def test_without_a_known_word_there_is_no_share():
    nothing = np.full((2, 3), SMALL.padding, np.int32)
    with pytest.raises(ValueError, match="a known word"):
        measure_accuracy(SMALL, nothing, nothing)
