"""Pseudonyms: keyed hashes of a column's values, by which rows of one release can be joined without the values."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import frame_parts

PSEUDONYM_BYTES = 16


@dataclass(frozen=True)
class Pseudonym:
    """Column whose values are published as pseudonyms.

    ``column``: its name in the input. ``name``: its name in the output. ``rotate``: each epoch of the key has others.
    """

    column: str
    name: str
    rotate: bool = False

    def __str__(self) -> str:
        """Describe the column as a release's terms do."""
        return f"{self.column} as {'rotating ' * self.rotate}pseudonym {self.name}"


def list_lasting(pseudonyms: Sequence[Pseudonym]) -> tuple[Pseudonym, ...]:
    """List the pseudonyms that stay when the key is rotated: a release follows their changes."""
    return tuple(pseudonym for pseudonym in pseudonyms if not pseudonym.rotate)


def encode_values(values: pa.Array) -> list[bytes]:
    """Encode strings or whole numbers, none of them null, as bytes: the same for a number and its decimal string."""
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    text = values if is_text else values.cast(pa.string())
    encoded: list[bytes] = text.cast(pa.large_binary()).to_pylist()
    return encoded


def make_pseudonyms(values: pa.Array, pseudonym: Pseudonym, keys: ReleaseKeys, release: str) -> pa.StringArray:
    """Compute the pseudonym of each value: 32 hexadecimal digits, or null for null.

    It is HMAC-SHA-256 of release, column and value, cut to 128 bits. ``values``: strings or whole numbers.
    """
    key = (keys.rotating_pseudonym if pseudonym.rotate else keys.pseudonym).reveal()
    scope = frame_parts(b"pseudonym", release.encode(), pseudonym.column.encode())
    distinct = values.dictionary_encode()
    hashes = [
        hmac.digest(key, scope + frame_parts(value), "sha256")[:PSEUDONYM_BYTES].hex()
        for value in encode_values(distinct.dictionary)
    ]
    return pa.array(hashes, pa.string()).take(distinct.indices)
