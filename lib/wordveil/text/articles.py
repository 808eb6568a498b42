"""English articles before drawn words and values: "a" or "an" by the written word, and not by the hidden one.

A copied "an" reveals that the hidden word begins with a vowel, or is 8, 11, 18 or the like. Here the form follows from
the written word alone and costs nothing. If something separates the article from the word, as in "a) tree" or "an, er,
apple", it is "a".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Bool, Int8, Int32, Int64, UInt8, freeze
from wordveil.compiled import compiled
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.choices import DROP, HIDE, KEEP, SHOW
from wordveil.text.scanner import Scanned
from wordveil.text.types.classes import CLASSES, TYPES
from wordveil.text.types.finders.characters import Whole, decode

ARTICLES = ("a", "an", "A", "An")
"""Articles in lower case and with a capital, before a consonant and before a vowel. "AN" is one with a capital: told
from "A", it would reveal that the hidden word begins with a vowel.
"""
# By sound, as far as letters tell: "an hour" and "an heir", but "a union", "a European" and "a one-way street".
_AN = (
    r"^(?:hour|honest|honou?r|heir|http|(?:[aio]|e(?:[^uw]|$)|u(?:[^bknrst]|$|k[^r]|n(?:[^i]|$|i[dmn])|r[^aio]|b[^i]|"
    r"s[^aeu]|t[^eio])))"
)
_ONE = r"^(?:one|ones|oneself|once)$|^ou[ij]|^ugand"
# Figures are said from their first group: 8, 80 to 89, 800 to 899, 11 and 18 begin with a vowel, but not 110.
_FIGURES = r"^0*(?:8|1[18](?:[.,'\x{2019}\x{A0}\x{202F} ]?[0-9]{3})*(?:[^0-9]|$))"
# Said letter by letter and digit by digit, a zero as "oh".
_SPELLED = r"^[08aefhilmnorsx]"
_SPELLED_KINDS = [number for number, kind in enumerate(TYPES) if CLASSES[kind].is_spelled]
_AMOUNT, _MARKUP = TYPES.index("amount"), TYPES.index("markup")
# Silent: brackets, quotation marks, currencies. A sign before a number is said. Few classes compile fast.
_SILENT = r"^[ -*,./:-@\[-`{-~\x{A2}-\x{A5}\x{20A0}-\x{20BF}]+"
_BLANK, _OPENING = 1, 2


def _tell_signs() -> UInt8:
    """Classify each character between an article and its word."""
    signs = np.zeros(0x3001, np.uint8)
    opening = "([{\"'*_~`$@#\u00a3\u00a5\u20ac\u00ab\u2039\u2018\u201a\u201b\u201c\u201e\u201f"
    signs[[ord(sign) for sign in opening]] = _OPENING
    signs[[*b" \t\n\r", 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]] = _BLANK
    return freeze(signs)


_SIGNS = _tell_signs()


def find_vowels(words: pa.StringArray) -> Bool:
    """Find the English words and figures that take "an": bool ``(words,)``."""
    return _hear(_say(words))


def _hear(folded: pa.StringArray) -> Bool:
    spoken = pc.and_not(pc.match_substring_regex(folded, _AN), pc.match_substring_regex(folded, _ONE))
    return np.asarray(pc.or_(spoken, pc.match_substring_regex(folded, _FIGURES)), np.bool_)


def _find_vowels_of(values: pa.StringArray, kinds: Int8) -> Bool:
    """Find the values of classes that take "an". ``kinds``: int8 ``(values,)``, indices in :data:`TYPES`."""
    folded = _say(values)
    is_coded = np.asarray(pc.match_substring_regex(folded, "^[a-z]"), np.bool_) & (kinds == _AMOUNT)  # USD 5
    spelled = np.isin(kinds, _SPELLED_KINDS) | is_coded
    return np.where(spelled, np.asarray(pc.match_substring_regex(folded, _SPELLED), np.bool_), _hear(folded))


def _say(words: pa.StringArray) -> pa.StringArray:
    """Convert words to lower case, from their first spoken character on."""
    return pc.replace_substring_regex(pc.utf8_lower(words), _SILENT, "")


@dataclass(frozen=True)
class PlacedArticles:
    """Articles of texts that are not copied: those before a hidden word or a token whose class shows.

    ``places``: int64 ``(articles,)``, their tokens, rising. ``is_capital``: bool ``(articles,)``. ``hidden``,
    ``shown``: int64 ``(articles,)``, the hidden word or shown token that each precedes, or -1. ``kinds``: int8
    ``(articles,)``, the classes of these tokens. ``takes_an``: bool ``(words,)``, :func:`find_vowels` of the
    vocabulary.
    """

    places: Int64
    is_capital: Bool
    hidden: Int64
    shown: Int64
    kinds: Int8
    takes_an: Bool

    @classmethod
    def find(
        cls, tokens: Scanned, is_article: Bool, action: Int8, kinds: Int8, takes_an: Bool, *, gaps: bool, drops: bool
    ) -> PlacedArticles:
        """Find the articles to write among ``is_article``, bool ``(tokens,)``.

        Before what it follows there may be mark-up, dropped words, white space, opening brackets, quotation marks, and
        signs of currencies.

        ``action``, ``kinds``: int8 ``(tokens,)``, each token's action and class. ``gaps``: whether the text between
        tokens is copied. ``drops``: whether words may be dropped; then no article is copied, which would show how a
        dropped word begins.
        """
        places = np.flatnonzero(is_article)
        data, targets, near = view_strings(tokens.texts)[0], np.empty_like(places), np.empty(len(places), np.bool_)
        limits = tokens.offsets[np.searchsorted(tokens.offsets, places, "right")]
        silent = (kinds == _MARKUP) & (action == SHOW) | (action == DROP)
        _find_targets(data, tokens.starts, tokens.ends, action, silent, places, limits, gaps, _SIGNS, targets, near)
        what = np.where(targets >= 0, action[targets], KEEP)
        follows = np.minimum(places + 1, len(action) - 1)
        # Mark-up shows as other mark-up, whatever follows it.
        placed = np.full(len(places), True) if drops else (what != KEEP) | ((follows < limits) & silent[follows])
        places, targets, what, near = places[placed], targets[placed], what[placed], near[placed]
        hidden, shown = (
            np.where(near & (what == one), np.cumsum(action == one)[targets] - 1, -1) for one in (HIDE, SHOW)
        )
        return cls(places, data[tokens.starts[places]] <= ord("Z"), hidden, shown, kinds[targets], takes_an)

    def choose(self, ids: Int32, values: pa.StringArray | None) -> Int32:
        """Choose the row of :data:`ARTICLES` of each, int32 ``(articles,)``, by drawn ids and written values."""
        takes = np.zeros(len(self.places), np.bool_)
        is_hidden, is_shown = self.hidden >= 0, self.shown >= 0
        takes[is_hidden] = self.takes_an[ids[self.hidden[is_hidden]]]
        if values is not None and is_shown.any():
            written = values.take(pa.array(self.shown[is_shown]))
            takes[is_shown] = _find_vowels_of(written, self.kinds[is_shown])
        return 2 * self.is_capital.astype(np.int32) + takes


@compiled
def _find_targets(
    data: UInt8,
    starts: Int32,
    ends: Int32,
    action: Int8,
    silent: Bool,
    places: Int64,
    limits: Int64,
    gaps: bool,  # noqa: FBT001
    signs: UInt8,
    targets: Int64,
    near: Bool,
) -> None:
    """Find the token that each article may follow: the first after it that is not ``silent``, or -1.

    Decides, too, whether the text between permits that. ``limits``: the ends of their records.
    """
    for article in range(len(places)):
        token = places[article] + 1
        offset: Whole = ends[token - 1]
        is_near, is_first = True, gaps
        targets[article] = -1
        while token < limits[article]:
            while gaps and offset < starts[token]:
                point, width = decode(data, offset)
                sign = signs[point] if point < len(signs) else 0
                is_near &= sign == _BLANK or (sign == _OPENING and not is_first)
                is_first = False
                offset += width
            offset = np.int64(ends[token])
            if action[token] != DROP:
                is_near &= not is_first
            if not silent[token]:
                targets[article] = token
                break
            token += 1
        near[article] = is_near
