"""The symbol of a text is one function on every machine, whatever the batch, the order of words and the threads."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from support.toys import ragged
from wordveil.mechanisms.passages.encoder import SumEncoder, sum_words
from wordveil.neighbours.clusters import whole_directions

SIZE, SYMBOLS, WIDTHS = 200, 7, (5, 3)


def make_encoder(widths: tuple[int, ...] = WIDTHS, seed: int = 0) -> SumEncoder:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-(2**15), 2**15, (SIZE, sum(widths))).astype(np.int16)
    centres = np.empty((SYMBOLS, sum(widths)), np.float32)
    whole_directions(rng.standard_normal(centres.shape), centres)
    return SumEncoder(vectors, centres, widths)


def make_texts(count: int = 300) -> list[list[int]]:
    """Texts of 0 to 40 words, some of which are outside the vocabulary."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, SIZE + 2, rng.integers(0, 40)).tolist() for _ in range(count)]


def find_symbols(encoder: SumEncoder, texts: list[list[int]]) -> list[int]:
    return encoder.encode(*ragged(texts)).tolist()


def find_exactly(encoder: SumEncoder, text: list[int]) -> int:
    """The nearest centre by the definition, in Python's whole numbers; one square root is rounded."""
    known = [word for word in text if word < SIZE]
    if not known:
        return SYMBOLS
    sums = [sum(int(encoder.vectors[word, axis]) for word in known) for axis in range(sum(WIDTHS))]
    point: list[int] = []
    for start, stop in ((0, 5), (5, 8)):
        part = sums[start:stop]
        square = float(sum(Fraction(value) ** 2 for value in part))
        scale = 4095.0 / np.sqrt(2) / np.sqrt(square)
        point += [int(value * scale) for value in part]
    scores = [sum(a * int(b) for a, b in zip(point, centre, strict=True)) for centre in encoder.centres]
    return scores.index(max(scores))


def test_the_symbol_is_the_nearest_centre_exactly():
    encoder, texts = make_encoder(), make_texts()
    found = find_symbols(encoder, texts)
    assert found == [find_exactly(encoder, text) for text in texts]
    assert set(found) == set(range(SYMBOLS + 1))


def test_neither_order_nor_batch_nor_threads_matter():
    encoder, texts = make_encoder((100, 100)), make_texts(9_000)
    found = find_symbols(encoder, texts)
    assert find_symbols(encoder, [text[::-1] for text in texts]) == found
    assert [find_symbols(encoder, [text])[0] for text in texts[:50]] == found[:50]
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            assert find_symbols(encoder, texts) == found


def test_a_text_without_a_known_word_is_empty():
    """A word of the vocabulary is unknown if the encoder has zeros for it; beside others it changes nothing."""
    encoder = make_encoder()
    encoder.vectors[7] = 0
    assert find_symbols(encoder, [[], [SIZE], [SIZE + 1] * 5, [7], [7, SIZE, 7]]) == [SYMBOLS] * 5
    assert find_symbols(encoder, [[3, 7], [7] * 9 + [3]]) == find_symbols(encoder, [[3]] * 2)


def test_words_that_cancel_out_take_the_lower_number():
    encoder = SumEncoder(np.array([[5], [-5]], np.int16), np.array([[4095.0], [4095.0], [-4095.0]], np.float32), (1,))
    assert encoder.encode(*ragged([[0, 1], [0], [1]])).tolist() == [0, 0, 2]


@pytest.mark.parametrize("words", [1, 2**15 - 1, 2**15, 2**15 + 1, 100_000])
def test_sums_of_long_texts_are_exact(words: int):
    vectors = np.array([[2**15 - 1, -(2**15)]], np.int16)
    sums, counts = np.zeros((1, 2), np.int64), np.zeros(1, np.int64)
    sum_words(np.zeros(words, np.int32), np.array([0, words]), vectors, sums, counts)
    assert sums.tolist() == [[words * (2**15 - 1), -words * 2**15]]
    assert counts.tolist() == [words]


def test_symbols_are_golden():
    """Another digest here means that the mechanism's ``sampler_version`` must rise."""
    symbols = make_encoder((100, 100), seed=2).encode(*ragged(make_texts(2_000))).astype("<i4")
    assert sha256(symbols.tobytes()).hexdigest()[:16] == "c66f39e414db0008"
