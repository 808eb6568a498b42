"""The choices of a text policy, each defined once.

The policy, the configuration, the command line and the n-gram model take them from here. The first choice is the
default, and the values are what a configuration says.
"""

from __future__ import annotations

from enum import StrEnum

MAX_N = 8
"""Words of the longest n-gram that a model can have."""


class TokeniserKind(StrEnum):
    """What a word is (:mod:`wordveil.text.tokeniser`)."""

    WORDS = "words"
    """A run of letters, marks and digits."""
    CHARACTERS = "characters"
    """The same, and each letter of a script without word spaces is a word."""
    WHITESPACE = "whitespace"
    """A run of characters without white space: the text is already segmented."""
    CHINESE = "chinese"
    """As ``words``, and runs of Chinese characters are cut by a dictionary (:mod:`wordveil.text.segmentation`)."""
    JAPANESE = "japanese"
    """The same for Japanese."""


class Hyphens(StrEnum):
    """Whether a hyphen ends a word."""

    SPLIT = "split"
    INNER = "inner"
    """A single hyphen between two letters is part of the word."""


class UnknownWords(StrEnum):
    """What happens to words outside the vocabulary."""

    MASK = "mask"
    """They enter as the mechanism's unknown word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged, without protection."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class Case(StrEnum):
    """In which case words are looked up."""

    LOWER = "lower"
    EXACT = "exact"
    """As they are written."""
    RESTORE = "restore"
    """In lower case. The original's pattern is put on the output word."""


class Digits(StrEnum):
    """What happens to words with a digit."""

    HIDE = "hide"
    """They are replaced like any word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged."""


class Punctuation(StrEnum):
    """What happens to everything between words."""

    DROP = "drop"
    KEEP = "keep"
    """It is copied unchanged."""


class Controls(StrEnum):
    """What happens to characters that show nothing of their own (:mod:`wordveil.text.controls`)."""

    KEEP = "keep"
    """They are like punctuation: they end a word, and are copied where punctuation is."""
    DROP = "drop"
    """They are removed before the text is cut into words."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class StopWords(StrEnum):
    """What happens to the words of the stop-word list."""

    HIDE = "hide"
    """They are replaced like any word."""
    DROP = "drop"
    KEEP = "keep"
    """They are copied unchanged."""


class StopWordCapitals(StrEnum):
    """Whether a listed word of two letters or more that is written in capitals is a stop-word."""

    MATCH = "match"
    """It is, as in any other case."""
    REPLACE = "replace"
    """It is a word like any other, as US, IT and WHO are in a text of lower case."""


class Articles(StrEnum):
    """What becomes of a copied "a" or "an" before a hidden word (:mod:`wordveil.text.articles`)."""

    COPY = "copy"
    """It is copied unchanged, and shows whether the hidden word begins with a vowel."""
    AGREE = "agree"
    """It is written as the drawn word wants it."""


class Length(StrEnum):
    """Which number of tokens a text shows."""

    AS_IS = "as_is"
    PAD = "pad"
    """Texts are cut or filled to ``n_max`` tokens. Padding is perturbed like words."""
    SAMPLE = "sample"
    """``n_max`` words are drawn i.i.d. from the text (Fernandes, Dras, McIver 2018, section 5.2)."""


class Output(StrEnum):
    """In which order the output words are."""

    SEQUENCE = "sequence"
    BAG = "bag"
    """The order is destroyed."""


class Repeat(StrEnum):
    """What happens to a hidden word that a record has more than once (:mod:`wordveil.text.repetition`)."""

    EACH = "each"
    """Each occurrence is drawn on its own."""
    SAME = "same"
    """It is drawn once, and all occurrences have that draw."""


class Refused(StrEnum):
    """What happens to a record that is refused because of its text."""

    QUARANTINE = "quarantine"
    EMPTY = "empty"
    """It enters as the empty text."""


class OtherLanguage(StrEnum):
    """What happens to a record of another language than the policy's (:mod:`wordveil.text.language`)."""

    RELEASE = "release"
    """Languages are not distinguished."""
    MASK = "mask"
    """Every word of it enters as the mechanism's unknown word; none is copied or dropped."""
    QUARANTINE = "quarantine"
    """The record is refused."""


class Slots(StrEnum):
    """Which words are hidden (:mod:`wordveil.text.slots`)."""

    ALL = "all"
    """All, except where the other settings say otherwise."""
    CARRIER_PHRASES = "carrier_phrases"
    """All but those of carrier phrases, which are copied (Feyisetan, Diethe, Drake 2019, section VII-D)."""


class Names(StrEnum):
    """Whether words of public lists of names are classes of their own (:mod:`wordveil.text.types.names`)."""

    WORDS = "words"
    """They are words like any other."""
    GAZETTEER = "gazetteer"
    """First names, surnames, places and nationalities of the lists are classes of their own."""


class Profile(StrEnum):
    """The shipped policies (:data:`wordveil.text.policy.PROFILES`)."""

    STRICT = "strict"
    READABLE = "readable"
    CARRIER_PHRASES = "carrier_phrases"
