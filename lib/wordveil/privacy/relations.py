"""Relations: the pairs of texts that a bound covers; and the other exposures of a release."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Relation(StrEnum):
    """Relation of a bound: the pairs of texts of one record that it covers.

    Every bound is conditional on all that is public besides the text: the id, the kept columns and the entries of
    ``exposes``. So if that lists ``presence``, both texts are released or both refused.
    """

    ANY_TEXT = "any_text"
    """Any two texts: every string is covered and the length is hidden."""

    SAME_LENGTH = "same_length"
    """Texts with the same number of tokens after the text policy."""

    SAME_SKELETON = "same_skeleton"
    """Texts that agree in everything the policy copies: same mask, same symbols, same number of hidden words. Under
    ``repeat: same`` they also agree in the positions that hold the same word.
    """

    def covers(self, wanted: Relation) -> bool:
        """Return whether a bound under this relation holds for every pair of ``wanted``; ``any_text`` covers all."""
        return self in (Relation.ANY_TEXT, wanted)


class Exposure(StrEnum):
    """Exposure of a record in addition to its sanitised words.

    Kept columns are written ``column:NAME``, columns of pseudonyms ``pseudonym:NAME``.
    """

    PRESENCE = "presence"
    """Refusal of the record because of its text, or of another text of its author, and how many each budget refuses."""

    EDITED = "edited"
    """Runs in which the record's text changed, or came back to a previous one."""

    KEPT_CHANGED = "kept_changed"
    """Runs in which a kept column of the record changed while its published text stayed."""

    WITHDRAWN = "withdrawn"
    """Removal of the record from the release."""

    GATE = "gate"
    """Success of the release under rules that read original texts: one bit about all of them, beyond every bound."""

    LAYOUT = "layout"
    """Input order of rows and cuts between files, which follow from the sizes of the texts."""

    LENGTH = "length"
    """Number of tokens."""

    REPETITION = "repetition"
    """Positions of the text that hold the same hidden word."""

    TYPES = "types"
    """Tokens that are addresses, numbers, names and the like, and the shape of those that keep it."""

    PUNCTUATION = "punctuation"
    CASE = "case"
    DIGITS = "digits"
    STOP_WORDS = "stop_words"
    UNKNOWN_WORDS = "unknown_words"

    CARRIER_PHRASES = "carrier_phrases"
    """Words that an n-gram model of public text expects in their places; no hidden word is one of these."""

    LANGUAGE = "language"
    """Records of another language than the policy's: none of their words is copied."""


ORDER_EXPOSES: Mapping[str, tuple[str, ...]] = MappingProxyType({"hashed": (), "input": (str(Exposure.LAYOUT),)})
"""Exposures by the order of a table's rows: that of keyed hashes of their ids, or the input's."""


def column_exposure(name: str) -> str:
    """Return the entry of ``exposes`` for a kept column."""
    return f"column:{name}"


def pseudonym_exposure(name: str) -> str:
    """Return the entry of ``exposes`` for a column of pseudonyms: all records with one value are linked."""
    return f"pseudonym:{name}"
