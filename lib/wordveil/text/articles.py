"""English articles before drawn words: "a" or "an" by the word that is written, and not by the one that was hidden.

A copied "an" tells that the hidden word after it begins with a vowel. Here the form follows from the drawn word alone:
it reads right, costs nothing, and shows less than the copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Bool, Int32, Int64
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.scanner import Scanned

ARTICLES = ("a", "an", "A", "An")
"""In lower case and with a capital, each before a consonant and before a vowel. "AN" becomes one with a capital: if it
were told from "A", the hidden word would be known to begin with a vowel.
"""
_SPACE, _LAST_CAPITAL = 0x20, 0x5A
# By sound, as far as letters tell: "an hour" and "an heir", but "a union", "a European" and "a one-way street".
_AN = (
    r"^(?:hour|honest|honou?r|heir|(?:[aio]|e(?:[^uw]|$)|u(?:[^bknrst]|$|k[^r]|n(?:[^i]|$|i[dmn])|r[^aio]|b[^i]|"
    r"s[^aeu]|t[^eio])))"
)
_ONE = r"^(?:one|ones|oneself|once)$|^ou[ij]"


def find_vowels(words: pa.StringArray) -> Bool:
    """Which English words take "an": bool ``(words,)``."""
    folded = pc.utf8_lower(words)
    takes = pc.and_not(pc.match_substring_regex(folded, _AN), pc.match_substring_regex(folded, _ONE))
    return np.asarray(takes, np.bool_)


@dataclass(frozen=True)
class PlacedArticles:
    """The articles of texts that stand before a hidden word.

    Attributes
    ----------
    places
        int64 ``(articles,)``: their tokens, rising.
    is_capital
        bool ``(articles,)``: which begin with a capital.
    takes_an
        bool ``(words,)``: :func:`find_vowels` of the vocabulary.
    """

    places: Int64
    is_capital: Bool
    takes_an: Bool

    @classmethod
    def find(cls, tokens: Scanned, is_article: Bool, is_hidden: Bool, takes_an: Bool) -> PlacedArticles:
        """Those among ``is_article`` with a hidden word after them, a space between; both bool ``(tokens,)``."""
        is_last = np.zeros(len(is_hidden), np.bool_)
        is_last[tokens.offsets[1:][np.diff(tokens.offsets) > 0] - 1] = True
        places = np.flatnonzero(is_article & ~is_last)
        is_next = is_hidden[places + 1] & (tokens.starts[places + 1] == tokens.ends[places] + 1)
        data, places = view_strings(tokens.texts)[0], places[is_next]
        places = places[data[tokens.ends[places]] == _SPACE]
        return cls(places, data[tokens.starts[places]] <= _LAST_CAPITAL, takes_an)

    def choose(self, ids: Int32, is_hidden: Bool) -> Int32:
        """The row of :data:`ARTICLES` of each: int32 ``(articles,)``. ``ids``: what was drawn for hidden words."""
        return 2 * self.is_capital.astype(np.int32) + self.takes_an[ids[np.cumsum(is_hidden)[self.places]]]
