"""Tokenising Arrow string arrays with one regular expression, no Python loop.

A word is a run of letters, marks and digits of any script, with single apostrophes (``'`` or U+2019) inside it:
``don't`` is one word, the quotes of ``'tis'`` are not part of one. Hyphens end a word unless inner hyphens are asked
for (``inner``: ``well-known`` is one word, ``well--known`` two). Everything between words is a gap. Texts are
in Unicode normalisation form C first; U+0001 becomes a space.

``chinese`` and ``japanese`` cut runs of Chinese or Japanese letters into words by a dictionary
(:mod:`wordveil.text.segmentation`), each distinct run once a batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.text.choices import Hyphens, TokeniserKind
from wordveil.text.offsets import keep_offsets
from wordveil.text.segmentation import cut_run

# Scripts that are written without spaces between words. Hangul and Vietnamese have spaces.
_SEGMENTED_SCRIPTS = tuple(rf"\p{{{script}}}" for script in ("Han", "Hiragana", "Katakana", "Bopomofo"))
"""Those that ``chinese`` and ``japanese`` cut into words."""
_OTHER_SCRIPTS = tuple(
    rf"\p{{{script}}}"
    for script in ("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese", "Yi")
)  # fmt: skip
_SPACELESS_SCRIPTS = (*_SEGMENTED_SCRIPTS, *_OTHER_SCRIPTS)


def _letter_of(scripts: tuple[str, ...]) -> str:
    """A letter of a script. RE2 has no intersection: it is what is not (no letter, or not of the script)."""
    return "(?:" + "|".join(rf"[^\P{{L}}{script.replace('p', 'P', 1)}]" for script in scripts) + ")"


_SPACELESS_LETTER = _letter_of(_SPACELESS_SCRIPTS)
_SPACED_LETTER = rf"[^\P{{L}}{''.join(_SPACELESS_SCRIPTS)}]"
# Signs of runs that Unicode gives to no script, or counts as numbers: closing mark, zero, repetition, long vowel.
_RUN_SIGNS = "\u3006\u3007\u3031-\u3035\u30fc\uff70"
_RUN = rf"(?:(?:{_letter_of(_SEGMENTED_SCRIPTS)}|[{_RUN_SIGNS}])\p{{M}}*)+"
_RUN_SPACED = rf"(?:\p{{M}}|[^\P{{N}}{_RUN_SIGNS}]|[^\P{{L}}{''.join(_SPACELESS_SCRIPTS)}{_RUN_SIGNS}])"
_SEGMENTED = (TokeniserKind.CHINESE, TokeniserKind.JAPANESE)
MARK = "\x01"
"""What stands between words while a text is cut; texts have a space instead."""
PLACEHOLDER = "\x02"
"""What stands in a text for a typed token (:mod:`wordveil.text.types.typed`): a word of its own."""


@dataclass(frozen=True)
class _Patterns:
    """Regular expressions (RE2): a word, outside the runs that a dictionary cuts; a run of anything else; and, where
    words can be found as what is between separators, a separator and the characters to strip from both ends of what is
    between.
    """

    word: str
    other: str
    separator: str | None
    strip: str


def _patterns(tokeniser: TokeniserKind, hyphens: Hyphens, *, placeholders: bool) -> _Patterns:
    sign = PLACEHOLDER if placeholders else ""
    alone = f"{sign}|" if placeholders else ""
    if tokeniser == TokeniserKind.WHITESPACE:
        spaces = r"[\p{Z}\s]+"
        return _Patterns(rf"{alone}[^{sign}\p{{Z}}\s]+", spaces, None if placeholders else spaces, "")
    inner = "'\u2019" if hyphens == Hyphens.SPLIT else "'\u2019\u2010-"
    other = rf"[^{sign}\p{{L}}\p{{M}}\p{{N}}]+"
    if tokeniser == TokeniserKind.WORDS:
        character = r"[\p{L}\p{M}\p{N}]"
        # One inner mark may join two parts of a word; two in a row separate.
        separator = rf"[^\p{{L}}\p{{M}}\p{{N}}{inner}]+|[{inner}][{inner}]+"
        word = f"{alone}{character}+(?:[{inner}]{character}+)*"
        return _Patterns(word, other, None if placeholders else separator, inner)
    if tokeniser in _SEGMENTED:
        return _Patterns(f"{alone}{_RUN_SPACED}+(?:[{inner}]{_RUN_SPACED}+)*", other, None, "")
    spaced = rf"(?:[\p{{M}}\p{{N}}]|{_SPACED_LETTER})"
    return _Patterns(rf"{alone}{_SPACELESS_LETTER}\p{{M}}*|{spaced}+(?:[{inner}]{spaced}+)*", other, None, "")


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
        int64 ``(tokens,)``, the index of each word in ``all``; None where ``all`` is None.
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

    ``kind`` and ``hyphens`` may be given by their values. ``placeholders``: whether texts hold :data:`PLACEHOLDER`,
    each of which is then a word. Raises :class:`ValueError` for any other value.
    """

    def __init__(
        self, kind: str = TokeniserKind.WORDS, hyphens: str = Hyphens.SPLIT, *, placeholders: bool = False
    ) -> None:
        self._kind = TokeniserKind(kind)
        self._patterns = _patterns(self._kind, Hyphens(hyphens), placeholders=placeholders)
        self._placeholder = PLACEHOLDER if placeholders else ""

    @property
    def inner(self) -> str:
        """The characters that may stand alone inside a word, between two of its letters."""
        return self._patterns.strip

    def is_word(self, characters: pa.StringArray) -> NDArray[np.bool_]:
        """Which characters words are made of: letters, marks and digits. Bool ``(count,)``."""
        return np.asarray(pc.match_substring_regex(characters, rf"[\p{{L}}\p{{M}}\p{{N}}{self._placeholder}]"))

    def normalise(self, texts: pa.StringArray) -> pa.StringArray:
        """``texts`` in normalisation form C, without the mark that the tokeniser uses itself."""
        return pc.replace_substring(pc.utf8_normalize(texts, form="NFC"), MARK, " ")

    def find_refused(self, texts: pa.StringArray) -> NDArray[np.bool_]:
        """Which texts hold a script without word spaces that this tokeniser does not segment: bool ``(records,)``."""
        if self._kind in (TokeniserKind.CHARACTERS, TokeniserKind.WHITESPACE):
            return np.zeros(len(texts), np.bool_)
        letter = _letter_of(_OTHER_SCRIPTS) if self._kind in _SEGMENTED else _SPACELESS_LETTER
        return np.asarray(pc.match_substring_regex(texts, letter))

    def cut_words(self, texts: pa.StringArray) -> Pieces:
        """The words alone; ``texts`` come from :meth:`normalise`."""
        if self._kind in _SEGMENTED:
            whole = self.cut_pieces(texts)
            return Pieces(whole.words, whole.offsets)
        if self._patterns.separator is None:
            marked = pc.replace_substring_regex(texts, rf"({self._patterns.word})|{self._patterns.other}", rf"\1{MARK}")
        else:  # nine times as fast as capturing each word
            marked = pc.replace_substring_regex(texts, self._patterns.separator, MARK)
        values, offsets = _split(marked)
        if self._patterns.separator is not None and self._patterns.strip:
            values = pc.utf8_trim(values, self._patterns.strip)
        filled = np.asarray(pc.binary_length(values)) > 0
        return Pieces(values.filter(pa.array(filled)), keep_offsets(filled, offsets))

    def cut_pieces(self, texts: pa.StringArray) -> Pieces:
        """Words and gaps; ``texts`` come from :meth:`normalise`."""
        marked = self._mark_segmented(texts) if self._kind in _SEGMENTED else self._mark_words(texts)
        values, offsets, is_marked = _split_pairs(marked)
        slots = np.flatnonzero(is_marked)
        return Pieces(values.take(pa.array(slots)), np.searchsorted(slots, offsets), values, slots, offsets)

    def _mark_words(self, texts: pa.StringArray) -> pa.StringArray:
        """The texts with a mark before and after each word outside runs."""
        return pc.replace_substring_regex(texts, f"({self._patterns.word})", rf"{MARK}\1{MARK}")

    def _mark_segmented(self, texts: pa.StringArray) -> pa.StringArray:
        """The same, with the words of runs too."""
        marked_runs = pc.replace_substring_regex(texts, f"({_RUN})", rf"{MARK}\1{MARK}")
        values, offsets, is_marked = _split_pairs(marked_runs)
        is_run = pa.array(is_marked)
        runs = values.filter(is_run).dictionary_encode()
        cut = [
            "".join(f"{MARK}{word}{MARK}" for word in cut_run(run, self._kind)) for run in runs.dictionary.to_pylist()
        ]
        cut_runs = pa.array(cut, pa.string()).take(runs.indices)
        parts = pc.replace_with_mask(self._mark_words(values), is_run, cut_runs)
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), parts), "")


def fold_words(words: pa.StringArray) -> pa.StringArray:
    """Words as they are looked up: in lower case, with the apostrophe U+2019 as ``'``."""
    return pc.utf8_lower(straighten_apostrophes(words))


def straighten_apostrophes(words: pa.StringArray) -> pa.StringArray:
    """Words with the apostrophe U+2019 as ``'``, in the case in which they are written."""
    return pc.replace_substring(words, "\u2019", "'")


def _split(marked: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.int64]]:
    lists = pc.split_pattern(marked, MARK)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return lists.flatten(), offsets - offsets[0]


def _split_pairs(marked: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.int64], NDArray[np.bool_]]:
    """Texts with a mark before and after some of their pieces, split; and which pieces these are: every second one."""
    values, offsets = _split(marked)
    inside = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
    return values, offsets, inside % 2 == 1
