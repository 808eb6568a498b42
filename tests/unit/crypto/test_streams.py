"""Words equal AES of context and counter, uniforms stay inside (0, 1), and MACs cover framed parts."""

from __future__ import annotations

import struct
from hashlib import blake2b

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st

from support.toys import ragged
from wordveil.crypto.keys import Secret
from wordveil.crypto.streams import (
    CONTEXT_BYTES,
    CounterOverflowError,
    KeyedStream,
    compute_macs,
    derive_contexts,
    frame_parts,
    frame_records,
    id_payload,
    max_positions,
    scale_words,
)

KEY = Secret(bytes(range(50, 82)))


def payload(*parts):
    """Byte strings, one a record, as a payload."""
    return b"".join(parts), np.cumsum([0, *map(len, parts)])


def context(*values):
    """Contexts whose bytes are easy to read."""
    return np.array([[value] * CONTEXT_BYTES for value in values], np.uint8)


def block(context_bytes, counter):
    encryptor = Cipher(AES(KEY.reveal()), ECB()).encryptor()  # noqa: S305 - one block a counter, the known answer
    return encryptor.update(context_bytes + struct.pack("<I", counter))


@pytest.mark.parametrize("blocks", [1, 2, 51, 151])
def test_words_are_aes_of_context_and_counter(blocks):
    where = np.array([0, 3, max_positions(blocks) - 1], np.int64)
    words = KeyedStream(KEY, blocks).words(context(7, 8, 255), where)
    assert words.shape == (2 * blocks, 3)
    for column, (value, position) in enumerate(zip((7, 8, 255), where.tolist(), strict=True)):
        expected = b"".join(block(bytes([value]) * CONTEXT_BYTES, position * blocks + index) for index in range(blocks))
        assert words[:, column].astype("<u8").tobytes() == expected


@pytest.mark.parametrize("blocks", [1, 3, 151, 4096, 5000])
def test_the_last_position_fits_and_the_next_is_refused(blocks):
    stream, edge = KeyedStream(KEY, blocks), max_positions(blocks)
    assert edge * blocks <= 2**32 < (edge + 1) * blocks
    assert stream.words(context(1, 1), np.array([0, edge - 1])).shape == (2 * blocks, 2)
    for position in (edge, 2**33):
        with pytest.raises(CounterOverflowError, match=f"more than {edge}"):
            stream.words(context(1, 1), np.array([0, position]))


def test_context_rows_may_be_strided():
    wide = np.arange(96, dtype=np.uint8).reshape(4, 24)
    stream = KeyedStream(KEY, 1)
    where = np.arange(4)
    assert (stream.words(wide[:, ::2], where) == stream.words(wide[:, ::2].copy(), where)).all()


@pytest.mark.parametrize(("word", "expected"), [(0, 2.0**-53), (2**64 - 1, 1 - 2.0**-53), (2**63, 0.5 + 2.0**-53)])
def test_uniforms_of_extreme_words_stay_inside(monkeypatch, word, expected):
    monkeypatch.setattr(KeyedStream, "words", lambda *_: np.full((2, 1), word, np.uint64))
    uniform = KeyedStream(KEY, 1).uniforms(context(1), np.array([0]))
    assert 0 < uniform[0, 0] < 1
    assert uniform[0, 0] == expected


def test_uniforms_use_the_52_highest_bits():
    stream = KeyedStream(KEY, 2)
    words = stream.words(context(1, 2), np.array([3, 4]))
    expected = [[((int(word) >> 12) + 0.5) / 2**52 for word in row] for row in words]
    assert stream.uniforms(context(1, 2), np.array([3, 4])).tolist() == expected


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_framed_is_injective(one, two):
    assert (frame_parts(*one) == frame_parts(*two)) == (one == two)


def test_macs_are_keyed_blake2b_over_framed_parts():
    """For each record alone, whatever batch it is in; parts and ids may be empty."""
    ids, parts = [b"1", b"", b"abc"], ([b"aa", b"", b"bbb"], [b"", b"c", b"d\0"])
    found = compute_macs(KEY, b"scope", frame_records(ids, [payload(*part) for part in parts]), 12)
    framed = [frame_parts(b"scope", *record) for record in zip(ids, *parts, strict=True)]
    assert [bytes(row) for row in found] == [blake2b(one, key=KEY.reveal(), digest_size=12).digest() for one in framed]


def test_contexts_follow_scope_id_token_ids_and_what_is_copied():
    def contexts(scope, record_ids, *content):
        return derive_contexts(KEY, scope, frame_records(record_ids, content))

    one = id_payload(*ragged([[1, 2]]))
    many = id_payload(*ragged([[1, 2], [1, 2], [2, 1], [], [1, 2, 0]]))
    rows = [contexts(b"s", [b"a", b"b", b"a", b"a", b"a"], many), contexts(b"t", [b"a"], one)]
    rows = np.concatenate([*rows, *(contexts(b"s", [b"a"], one, payload(copied)) for copied in (b"", b","))])
    assert rows.shape == (8, CONTEXT_BYTES)
    assert len({bytes(row) for row in rows}) == 8
    assert (rows[0] == contexts(b"s", [b"a"], one)[0]).all()


def test_id_payload_is_little_endian_whatever_the_machine():
    data, offsets = id_payload(np.array([1, 258], ">i4"), np.array([0, 2]))
    assert bytes(data) == b"\x01\0\0\0\x02\x01\0\0"
    assert offsets.tolist() == [0, 8]


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1)), min_size=1, max_size=50))
def test_scaled_is_exact(pairs):
    words, limits = (np.array(column, np.uint64) for column in zip(*pairs, strict=True))
    assert scale_words(words, limits).tolist() == [word * limit // 2**64 for word, limit in pairs]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000, 2**32 - 1])
def test_scaled_reaches_both_ends_and_nothing_beyond(limit):
    steps = min(limit, 1000)
    # The least word that gives k is ceil(k 2^64 / limit); the one below it gives k - 1.
    least = [-(-(index * 2**64) // limit) for index in range(steps)]
    assert scale_words(np.array(least, np.uint64), np.uint64(limit)).tolist() == list(range(steps))
    below = np.array([word - 1 for word in least[1:]], np.uint64)
    assert scale_words(below, np.uint64(limit)).tolist() == list(range(steps - 1))
    assert int(scale_words(np.uint64(2**64 - 1), np.uint64(limit))) == limit - 1
