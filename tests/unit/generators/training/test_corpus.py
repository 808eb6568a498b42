"""Sequences: cut, kept, mapped and ordered by the seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordveil.generators.training.corpus import Corpus, Piece, find_corpus, write_corpus

PAD = 100


def write(directory: Path, share: float = 0.0, length: int = 4) -> Corpus:
    first = Piece(np.arange(9, dtype=np.int32), np.array([0, 3, 9]), np.array([2**62, 2**63], np.uint64))
    second = Piece(np.arange(9, 11, dtype=np.int32), np.array([0, 0, 2]), np.array([0, 2**64 - 1], np.uint64))
    return write_corpus(directory, [first, second], length, share, {"file": "a"})


def rows(corpus: Corpus) -> list[list[int]]:
    return [[i for i in row if i != PAD] for row in corpus.take(np.arange(len(corpus.validates)), 4, PAD).tolist()]


def test_long_sequences_are_cut_and_one_is_empty(tmp_path: Path) -> None:
    assert rows(write(tmp_path)) == [[0, 1, 2], [3, 4, 5, 6], [7, 8], [9, 10], []]


def test_what_is_written_is_found_again_by_its_source(tmp_path: Path) -> None:
    corpus = write(tmp_path, 0.3)
    mapped = find_corpus(tmp_path, {"file": "a"})
    assert mapped is not None
    assert (rows(mapped), mapped.validates.tolist(), mapped.digest) == (
        rows(corpus),
        corpus.validates.tolist(),
        corpus.digest,
    )
    assert find_corpus(tmp_path, {"file": "b"}) is None
    assert find_corpus(tmp_path / "none", {"file": "a"}) is None


def test_validation_is_chosen_by_the_hash_of_a_text(tmp_path: Path) -> None:
    assert write(tmp_path, 0.3).validates.tolist() == [True, False, False, False, False]
    assert write(tmp_path, 0.6).validates.tolist() == [True, True, True, False, False]
    assert write(tmp_path).digest != write(tmp_path, 0.6).digest


def test_bias_is_the_frequency_of_columns_in_training(tmp_path: Path) -> None:
    """Eleven words, once each, are in five sequences; the first text validates with its first three words."""
    corpus = write(tmp_path, share=0.3)
    size = 10  # the last word is unknown here
    shares = np.exp(corpus.measure_bias(size + 2, size + 1))
    counts = np.array([1] * 3 + [2] * 7 + [1, 1 + len(corpus.training)])
    assert np.allclose(shares, counts / counts.sum())


def test_take_is_as_wide_as_the_longest_sequence_and_its_end(tmp_path: Path) -> None:
    corpus = write(tmp_path)
    assert corpus.take(np.array([3]), 4, PAD).tolist() == [[9, 10, PAD]]
    assert corpus.take(np.array([1]), 4, PAD).tolist() == [[3, 4, 5, 6]]


def many(count: int) -> Corpus:
    lengths = np.append(np.random.default_rng(0).integers(1, 20, count), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Corpus(np.zeros(offsets[-1], np.int32), offsets, np.append(np.arange(count) % 10 == 0, False), "")


def test_epoch_has_each_training_sequence_by_its_seed() -> None:
    corpus = many(1000)
    batches = corpus.order(16, 1, 0)
    assert {len(batch) for batch in batches} == {16}
    assert len(batches) == -(-909 // 16)
    numbers = np.concatenate(batches)
    assert set(numbers.tolist()) == {*corpus.training.tolist(), 1000}
    lengths = np.diff(corpus.offsets)
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 4 < np.ptp(lengths)
    assert 9 <= (numbers == 1000).sum() < 9 + 16
    again, other, later = corpus.order(16, 1, 0), corpus.order(16, 2, 0), corpus.order(16, 1, 1)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    assert not np.array_equal(np.concatenate(batches), np.concatenate(other))
    assert not np.array_equal(np.concatenate(batches), np.concatenate(later))


def test_validation_batches_are_the_same_always() -> None:
    corpus = many(1000)
    batches = corpus.list_validation(16)
    assert set(np.concatenate(batches).tolist()) == set(corpus.validation.tolist())
    assert all(np.array_equal(a, b) for a, b in zip(batches, corpus.list_validation(16), strict=True))
    assert [len(batch) for batch in many(4).order(16, 0, 0)] == [3]
