"""Tokenising Arrow string arrays with one regular expression, no Python loop.

A word is a run of letters, marks and digits of any script, with single apostrophes (``'`` or U+2019) inside it:
``don't`` is one word, the quotes of ``'tis'`` are not part of one. Hyphens end a word unless inner hyphens are asked
for (``inner``: ``well-known`` is one word, ``well--known`` two). Everything between words is a gap. Texts are
in Unicode normalisation form C first; U+0001 becomes a space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.text.choices import Hyphens, TokeniserKind

# Scripts that are written without spaces between words. Hangul and Vietnamese have spaces.
_SPACELESS_SCRIPTS = tuple(
    rf"\p{{{script}}}"
    for script in (
        "Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan",
        "Javanese", "Balinese", "Yi",
    )
)  # fmt: skip
# RE2 has no intersection: a letter of a script is what is not (no letter, or not of the script).
_SPACELESS_LETTER = "(?:" + "|".join(rf"[^\P{{L}}{script.replace('p', 'P', 1)}]" for script in _SPACELESS_SCRIPTS) + ")"
_SPACED_LETTER = rf"[^\P{{L}}{''.join(_SPACELESS_SCRIPTS)}]"
_MARK = "\x01"


@dataclass(frozen=True)
class _Patterns:
    """Regular expressions (RE2): a word; a run of anything else; and, where words can be found as what is between
    separators, a separator and the characters to strip from both ends of what is between."""

    word: str
    other: str
    separator: str | None
    strip: str


def _patterns(tokeniser: TokeniserKind, hyphens: Hyphens) -> _Patterns:
    if tokeniser == TokeniserKind.WHITESPACE:
        return _Patterns(r"[^\p{Z}\s]+", r"[\p{Z}\s]+", r"[\p{Z}\s]+", "")
    inner = "'\u2019" if hyphens == Hyphens.SPLIT else "'\u2019\u2010-"
    other = r"[^\p{L}\p{M}\p{N}]+"
    if tokeniser == TokeniserKind.WORDS:
        character = r"[\p{L}\p{M}\p{N}]"
        # One inner mark may join two parts of a word; two in a row separate.
        separator = rf"[^\p{{L}}\p{{M}}\p{{N}}{inner}]+|[{inner}][{inner}]+"
        return _Patterns(f"{character}+(?:[{inner}]{character}+)*", other, separator, inner)
    spaced = rf"(?:[\p{{M}}\p{{N}}]|{_SPACED_LETTER})"
    return _Patterns(rf"{_SPACELESS_LETTER}\p{{M}}*|{spaced}+(?:[{inner}]{spaced}+)*", other, None, "")


@dataclass(frozen=True)
class Pieces:
    """Texts cut into pieces.

    Attributes
    ----------
    words
        string array ``(tokens,)``.
    offsets
        int64 ``(records + 1,)``, the words of each record.
    all
        string array of words and gaps in order, so that joining them restores the text; None unless asked for.
    slots
        int64 ``(tokens,)``, the place of each word in ``all``; None where ``all`` is None.
    all_offsets
        int64 ``(records + 1,)`` into ``all``; None where ``all`` is None.
    """

    words: pa.StringArray
    offsets: NDArray[np.int64]
    all: pa.StringArray | None = None
    slots: NDArray[np.int64] | None = None
    all_offsets: NDArray[np.int64] | None = None


class Tokeniser:
    """Cuts string arrays into words. See the module for what a word is.

    ``kind`` and ``hyphens`` may be given by their values. Raises :class:`ValueError` for any other value.
    """

    def __init__(self, kind: str = TokeniserKind.WORDS, hyphens: str = Hyphens.SPLIT) -> None:
        self._kind = TokeniserKind(kind)
        self._patterns = _patterns(self._kind, Hyphens(hyphens))

    @property
    def inner(self) -> str:
        """The characters that may stand alone inside a word, between two of its letters."""
        return self._patterns.strip

    def is_word(self, characters: pa.StringArray) -> NDArray[np.bool_]:
        """Which characters words are made of: letters, marks and digits. Bool ``(count,)``."""
        return np.asarray(
            pc.match_substring_regex(characters, r"[\p{L}\p{M}\p{N}]").to_numpy(zero_copy_only=False), np.bool_
        )

    def normalise(self, texts: pa.StringArray) -> pa.StringArray:
        """``texts`` in normalisation form C, without the mark that the tokeniser uses itself."""
        return pc.replace_substring(pc.utf8_normalize(texts, form="NFC"), _MARK, " ")

    def find_refused(self, texts: pa.StringArray) -> NDArray[np.bool_]:
        """Which texts hold a script without word spaces that this tokeniser does not segment: bool ``(records,)``."""
        if self._kind != TokeniserKind.WORDS:
            return np.zeros(len(texts), np.bool_)
        return np.asarray(pc.match_substring_regex(texts, _SPACELESS_LETTER).to_numpy(zero_copy_only=False), np.bool_)

    def cut_words(self, texts: pa.StringArray) -> Pieces:
        """The words alone; ``texts`` come from :meth:`normalise`."""
        if self._patterns.separator is None:
            marked = pc.replace_substring_regex(
                texts, rf"({self._patterns.word})|{self._patterns.other}", rf"\1{_MARK}"
            )
        else:  # nine times as fast as capturing each word
            marked = pc.replace_substring_regex(texts, self._patterns.separator, _MARK)
        values, offsets = _split(marked)
        if self._patterns.strip:
            values = pc.utf8_trim(values, self._patterns.strip)
        filled = np.asarray(pc.binary_length(values)) > 0
        kept = np.concatenate([[0], np.cumsum(filled)])
        return Pieces(values.filter(pa.array(filled)), kept[offsets])

    def cut_pieces(self, texts: pa.StringArray) -> Pieces:
        """Words and gaps; ``texts`` come from :meth:`normalise`."""
        marked = pc.replace_substring_regex(texts, f"({self._patterns.word})", rf"{_MARK}\1{_MARK}")
        values, offsets = _split(marked)
        # Each text reads gap, word, gap, ..., word, gap: its words are the odd pieces.
        inside = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
        slots = np.flatnonzero(inside % 2 == 1)
        return Pieces(values.take(pa.array(slots)), np.searchsorted(slots, offsets), values, slots, offsets)


def fold_words(words: pa.StringArray) -> pa.StringArray:
    """Words as they are looked up: in lower case, with the apostrophe U+2019 as ``'``."""
    return pc.utf8_lower(straighten_apostrophes(words))


def straighten_apostrophes(words: pa.StringArray) -> pa.StringArray:
    """Words with the apostrophe U+2019 as ``'``, in the case in which they are written."""
    return pc.replace_substring(words, "\u2019", "'")


def _split(marked: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.int64]]:
    lists = pc.split_pattern(marked, _MARK)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return lists.flatten(), offsets - offsets[0]
