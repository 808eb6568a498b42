"""Choices of a text policy, each defined once: the first is the default, and values are those of a configuration."""

from __future__ import annotations

from enum import StrEnum

HIDE, DROP, KEEP, SHOW = range(4)
"""Actions on a token: it is replaced by a drawn word, left out, copied, or replaced by a value of its class."""
MAX_N = 8
"""Number of words of the longest n-gram that a model can have."""


class TokeniserKind(StrEnum):
    """Definition of a word (:mod:`wordveil.text.tokeniser`)."""

    WORDS = "words"
    """A run of letters, marks and digits."""
    CHARACTERS = "characters"
    """Like ``words``, but each letter of a script without word spaces is a word."""
    WHITESPACE = "whitespace"
    """A run of characters without white space: the text is already segmented."""
    CHINESE = "chinese"
    """Like ``words``, but a dictionary cuts runs of Chinese characters (:mod:`wordveil.text.tokeniser`)."""
    JAPANESE = "japanese"
    """Like ``chinese``, for Japanese."""


class Hyphens(StrEnum):
    """Treatment of a hyphen inside words."""

    SPLIT = "split"
    INNER = "inner"
    """A single hyphen between two letters is part of the word."""


class UnknownWords(StrEnum):
    """Treatment of words outside the vocabulary."""

    MASK = "mask"
    """They enter as the mechanism's unknown word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged, without protection."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class Case(StrEnum):
    """Case in which words are looked up."""

    LOWER = "lower"
    EXACT = "exact"
    """As they are written."""
    RESTORE = "restore"
    """In lower case. The original's pattern is restored on the output word."""


class Digits(StrEnum):
    """Treatment of words with a digit."""

    HIDE = "hide"
    """They are replaced like any word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged."""


class Punctuation(StrEnum):
    """Treatment of everything between words."""

    DROP = "drop"
    KEEP = "keep"
    """It is copied unchanged."""


class Controls(StrEnum):
    """Treatment of characters that show nothing of their own (:mod:`wordveil.text.codec`)."""

    KEEP = "keep"
    """They are like punctuation: they end a word, and are copied where punctuation is."""
    DROP = "drop"
    """They are removed before the text is cut into words."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class StopWords(StrEnum):
    """Treatment of the words of the stop-word list."""

    HIDE = "hide"
    """They are replaced like any word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged."""


class StopWordCapitals(StrEnum):
    """Treatment of a listed word of two letters or more that is written in capitals."""

    MATCH = "match"
    """It is a stop-word, as in any other case."""
    REPLACE = "replace"
    """It is a word like any other, as US, IT and WHO are in a text of lower case."""


class Articles(StrEnum):
    """Treatment of a copied "a" or "an" before a hidden word (:mod:`wordveil.text.articles`)."""

    COPY = "copy"
    """It is copied unchanged, and shows whether the hidden word begins with a vowel."""
    AGREE = "agree"
    """It agrees with the drawn word."""


class Length(StrEnum):
    """Visibility of a text's number of tokens."""

    AS_IS = "as_is"
    PAD = "pad"
    """Texts are cut or filled to ``n_max`` tokens. Padding is perturbed like words."""
    SAMPLE = "sample"
    """``n_max`` words are drawn i.i.d. from the text (Fernandes, Dras, McIver 2018, section 5.2)."""


class DrawnUnit(StrEnum):
    """Part of a text that one symbol is drawn for."""

    WORD = "word"
    TEXT = "text"
    """The whole text, by a mechanism whose symbols stand for texts. Nothing of the text is copied."""
    SENTENCE = "sentence"
    """Each sentence, by such a mechanism (:func:`wordveil.records.codec.cut_sentences`)."""


class Output(StrEnum):
    """Order of the output words."""

    SEQUENCE = "sequence"
    BAG = "bag"
    """The order is destroyed."""


class Repeat(StrEnum):
    """Treatment of a hidden word that occurs repeatedly in a record (:mod:`wordveil.text.repetition`)."""

    EACH = "each"
    """Each occurrence is drawn on its own."""
    SAME = "same"
    """It is drawn once, and all occurrences have that draw."""


class Refused(StrEnum):
    """Treatment of a record that is refused because of its text."""

    QUARANTINE = "quarantine"
    EMPTY = "empty"
    """It enters as the empty text."""


class OtherLanguage(StrEnum):
    """Treatment of a record of another language than the policy's (:mod:`wordveil.text.language`)."""

    RELEASE = "release"
    """Languages are not distinguished."""
    MASK = "mask"
    """Every word of it enters as the mechanism's unknown word; none is copied or dropped."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class Slots(StrEnum):
    """Selection of hidden words (:mod:`wordveil.text.slots`)."""

    ALL = "all"
    """All, except where the other settings say otherwise."""
    CARRIER_PHRASES = "carrier_phrases"
    """All except those of carrier phrases, which are copied (Feyisetan, Diethe, Drake 2019, section VII-D)."""


class Names(StrEnum):
    """Treatment of words of public lists of names (:mod:`wordveil.text.types.names`)."""

    WORDS = "words"
    """They are words like any other."""
    GAZETTEER = "gazetteer"
    """First names, surnames, places and nationalities of the lists are classes of their own."""


class Profile(StrEnum):
    """Policies that come with the package (:data:`wordveil.text.policy.PROFILES`)."""

    STRICT = "strict"
    PASSAGES = "passages"
    READABLE = "readable"
    CARRIER_PHRASES = "carrier_phrases"
