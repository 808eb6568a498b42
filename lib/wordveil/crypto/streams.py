"""Keyed streams: from contexts to uniforms and integers, a whole batch at a time.

Noise is a pseudo-random function of a *context* and a position in it; nothing is drawn from global state. The context
of a record covers everything that must change the noise when it changes: release, mechanism, policy, record id, the
canonical token ids and what the policy copies. Equal contexts lead to equal draws, so that a retried task reveals
nothing new; different contexts lead to independent draws up to the security of the MAC and of AES.

Counter block: the first 96 bits are the context's MAC, the last 32 an injective number of (position, block). 96 bits
keep the chance of any two of 10^9 records sharing noise under 10^-10.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from wordveil.arrays import Float64, Int32, Int64, UInt8, UInt32, UInt64
from wordveil.compiled import compiled
from wordveil.crypto.keys import KEY_BYTES, Secret

CONTEXT_BYTES = 12
TAG_BYTES = 16
DIGIT_BITS = 52
_COUNTERS = 2**32
_BLOCK_BYTES = 16

Contexts = UInt8
Payload = tuple[bytes | memoryview, Int64]


class CounterOverflowError(ValueError):
    """Error for a position that does not fit the 32 counter bits; reusing a counter would reuse noise."""


def frame_parts(*parts: bytes) -> bytes:
    """Join the parts with their lengths before them: an injective encoding."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def frame_records(record_ids: Sequence[bytes], payloads: Sequence[Payload]) -> list[bytes]:
    """Join each record's id and its slice of each payload (a buffer with byte offsets) into one message."""
    lengths = [np.diff(offsets).astype("<u8").tobytes() for _, offsets in payloads]
    bounds = [(memoryview(data), offsets.tolist()) for data, offsets in payloads]
    messages = []
    for record, record_id in enumerate(record_ids):
        parts: list[bytes | memoryview] = [struct.pack("<Q", len(record_id)), record_id]
        for (data, offsets), length in zip(bounds, lengths, strict=True):
            parts += (length[8 * record : 8 * record + 8], data[offsets[record] : offsets[record + 1]])
        messages.append(b"".join(parts))
    return messages


def compute_macs(key: Secret, scope: bytes, messages: Sequence[bytes], size: int) -> UInt8:
    """Compute a keyed BLAKE2b over ``scope`` and each message of :func:`frame_records`: uint8 ``(records, size)``."""
    base = hashlib.blake2b(frame_parts(scope), key=key.reveal(), digest_size=size)
    out = bytearray()
    for message in messages:
        mac = base.copy()
        mac.update(message)
        out += mac.digest()
    return np.frombuffer(bytes(out), np.uint8).reshape(len(messages), size)


def id_payload(ids: Int32, offsets: Int64) -> Payload:
    """Turn ragged token ids into a payload of :func:`compute_macs`."""
    return ids.astype("<i4", copy=False).tobytes(), offsets * 4


def derive_contexts(key: Secret, scope: bytes, messages: Sequence[bytes]) -> Contexts:
    """Derive the context of each record: uint8 ``(records, 12)``.

    ``scope`` encodes release, mechanism fingerprint and policy fingerprint; ``messages`` (:func:`frame_records`) the
    ragged canonical token ids after the text policy (:func:`id_payload`), and what the policy copies.
    """
    return compute_macs(key, scope, messages, CONTEXT_BYTES)


def max_positions(blocks: int) -> int:
    """Compute the largest number of positions of a record if each owns ``blocks`` counters."""
    return _COUNTERS // blocks


class KeyedStream:
    """Stream of random words addressed by (context, position): AES-256-ECB over counter blocks.

    ``blocks`` is the number of 16-byte blocks that one position owns; position ``p`` uses the counters ``p * blocks``
    to ``p * blocks + blocks - 1``.
    """

    def __init__(self, key: Secret, blocks: int) -> None:
        self._key = key
        self.blocks = blocks

    def words(self, context: Contexts, position: Int64, part: tuple[int, int] | None = None) -> UInt64:
        """Compute uniform 64-bit words, shape ``(2 * blocks, count)``.

        ``context``: uint8 ``(count, 12)``; ``position``: int64 ``(count,)``. ``part``: only the words of a position's
        blocks from the first up to the second, for samplers that rarely need all. Raises :class:`CounterOverflowError`.
        """
        count = len(position)
        if count and int(position.max()) >= max_positions(self.blocks):
            raise CounterOverflowError(
                f"a record has {int(position.max()) + 1} positions, more than {max_positions(self.blocks)}"
            )
        start, stop = part or (0, self.blocks)
        first = np.empty((count, 4), "<u4")
        first[:, :3] = np.ascontiguousarray(context).view("<u4")
        first[:, 3] = position * self.blocks
        plain = np.empty((stop - start, count, 4), "<u4")
        plain[:] = first
        plain[:, :, 3] += np.arange(start, stop, dtype="<u4")[:, None]
        words = self._encrypt(plain).reshape(stop - start, count, 2)
        return words.transpose(0, 2, 1).reshape(2 * (stop - start), count)

    def record_words(self, contexts: Contexts, offsets: Int64) -> UInt64:
        """Compute two uniform 64-bit words for each position of each record: uint64 ``(tokens, 2)``.

        The stream has one block a position. ``contexts``: uint8 ``(records, 12)``; ``offsets``: int64
        ``(records + 1,)``.
        """
        assert self.blocks == 1
        longest = int(np.diff(offsets).max(initial=0))
        if longest > max_positions(1):
            raise CounterOverflowError(f"a record has {longest} positions, more than {max_positions(1)}")
        plain = np.empty((int(offsets[-1]), 4), np.uint32)
        fill_counter_blocks(np.ascontiguousarray(contexts).view("<u4"), offsets, plain)
        return self._encrypt(plain).reshape(-1, 2)

    def digits(self, context: Contexts, position: int, number: int) -> Iterator[int]:
        """Yield digits of 52 bits that continue uniform ``number`` of a position. ``context``: uint8 ``(12,)``.

        They come from their own key, so that no counter of this stream is used twice. They are computed one at a time,
        for the few uniforms that need them.
        """
        address = context.tobytes() + struct.pack("<QQ", position, number)
        key = hashlib.blake2b(
            address, key=self._key.reveal(), person=b"wordveil digits", digest_size=KEY_BYTES
        ).digest()
        further = KeyedStream(Secret(key), 1)
        nowhere = np.zeros((1, CONTEXT_BYTES), np.uint8)
        for counter in range(_COUNTERS):
            for word in further.words(nowhere, np.array([counter])).ravel().tolist():
                yield word >> (64 - DIGIT_BITS)

    def _encrypt(self, plain: UInt32) -> UInt64:
        cipher = np.empty(plain.nbytes + _BLOCK_BYTES - 1, np.uint8)
        encryptor = Cipher(AES(self._key.reveal()), ECB()).encryptor()  # noqa: S305 - distinct counter blocks: this is a PRF, not encryption
        encryptor.update_into(plain.reshape(-1).view(np.uint8).data, cipher.data)
        return cipher[: plain.nbytes].view("<u8")

    def uniforms(self, context: Contexts, position: Int64, part: tuple[int, int] | None = None) -> Float64:
        """Compute uniforms ``(k + 0.5) / 2**52``, ``0 <= k < 2**52``, never 0 or 1: float64 ``(2 * blocks, count)``.

        ``part``: as in :meth:`words`.
        """
        words = self.words(context, position, part)
        words >>= np.uint64(12)
        mantissa = words.astype(np.float64)
        mantissa += 0.5
        mantissa *= 2.0**-52
        return mantissa


@compiled
def fill_counter_blocks(contexts: UInt32, offsets: Int64, out: UInt32) -> None:
    """Fill the counter block of every position: the record's context as three numbers, then the position."""
    for record in range(len(contexts)):
        a, b, c = contexts[record, 0], contexts[record, 1], contexts[record, 2]
        start = offsets[record]
        for position in range(start, offsets[record + 1]):
            out[position, 0] = a
            out[position, 1] = b
            out[position, 2] = c
            out[position, 3] = position - start


def scale_words(words: UInt64, limit: UInt64) -> Int64:
    """Compute ``floor(word * limit / 2**64)``: integers in ``[0, limit)``, each with a bias below ``limit / 2**64``.

    ``limit`` must be below 2**32; shapes broadcast.
    """
    low_half = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    low = (words & low_half) * limit
    return (((words >> shift) * limit + (low >> shift)) >> shift).astype(np.int64)


def draw_words(seed: int, purpose: bytes, count: int) -> UInt64:
    """Draw uniform 64-bit words, uint64 ``(count,)``, by ``seed`` and ``purpose`` (at most 16 bytes) alone."""
    key = hashlib.blake2b(seed.to_bytes(8, "little"), person=purpose, digest_size=32).digest()
    nowhere = np.zeros((count, CONTEXT_BYTES), np.uint8)
    words: UInt64 = KeyedStream(Secret(key), 1).words(nowhere, np.arange(count))[0]
    return words
