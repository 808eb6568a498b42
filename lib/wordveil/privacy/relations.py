"""Relations: the pairs of texts for which a bound holds; and the other exposures of a release."""

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
    """Any two texts at all: every string is covered and the length is hidden."""

    SAME_LENGTH = "same_length"
    """Texts with the same number of tokens after the text policy."""

    SAME_SKELETON = "same_skeleton"
    """Texts that agree in everything the policy copies: same mask, same symbols, same number of hidden words.

    They also agree in which positions hold the same word, if a word that a record repeats is drawn once (``repeat:
    same``).
    """

    def covers(self, wanted: Relation) -> bool:
        """Return whether a bound under this relation holds for every pair of ``wanted``. ``any_text`` covers all, the
        others themselves.
        """
        return self in (Relation.ANY_TEXT, wanted)


class Exposure(StrEnum):
    """Exposure of a record in addition to its sanitised words. Kept columns are written ``column:NAME``."""

    PRESENCE = "presence"
    """That the record was refused because of its text, or of another text of its author; or that it was not."""

    EDITED = "edited"
    """In which runs the record's text changed, and when it came back to what it had been."""

    WITHDRAWN = "withdrawn"
    """That the record was in the release and was taken out."""

    GATE = "gate"
    """That the release passed rules that read original texts: one bit about all of them, beyond every bound."""

    LAYOUT = "layout"
    """The input's order of rows and cuts between files, which follow from the sizes of the texts."""

    LENGTH = "length"
    """The number of tokens."""

    REPETITION = "repetition"
    """Which positions of the text hold the same hidden word."""

    TYPES = "types"
    """Which tokens are addresses, numbers, names and the like, and the shape of those that keep it."""

    PUNCTUATION = "punctuation"
    CASE = "case"
    DIGITS = "digits"
    STOP_WORDS = "stop_words"
    UNKNOWN_WORDS = "unknown_words"

    CARRIER_PHRASES = "carrier_phrases"
    """Every word that an n-gram model of public text expects in its place, and that the hidden words are none of
    these.
    """

    LANGUAGE = "language"
    """Which records are of another language than the policy's: none of their words is copied."""


ORDER_EXPOSES: Mapping[str, tuple[str, ...]] = MappingProxyType({"hashed": (), "input": (str(Exposure.LAYOUT),)})
"""Exposures by the order of a table's rows: that of keyed hashes of their ids, or the input's."""


def column_exposure(name: str) -> str:
    """Return the entry of ``exposes`` for a kept column."""
    return f"column:{name}"
