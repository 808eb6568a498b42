"""Texts that look like another language, by public lists of words: a warning where no language is identified."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int64
from wordveil.text.stop_words import load_stop_words
from wordveil.text.tokeniser import Tokeniser, fold_words
from wordveil.text.types.classes import LISTED_LANGUAGES
from wordveil.text.types.lists import PublicLists

_FEWEST = 3
"""Number of words of another language that a text must have."""


def count_other_languages(texts: pa.StringArray, language: str) -> Counter[str] | None:
    """Count the texts that look like another language than ``language``, by its code; None without its lists.

    Such a text has three words or more of that language that are none of ``language``, and more of them than stop-words
    of ``language``. Known are the languages of the public lists (:data:`LISTED_LANGUAGES`).
    """
    if language not in LISTED_LANGUAGES or not (stop_words := load_stop_words(None, language)):
        return None
    cutter = Tokeniser()
    cut = cutter.cut_words(cutter.normalise(texts))
    words = fold_words(cut.words)

    def count(listed: pa.StringArray) -> Int64:
        found = pc.is_in(words, value_set=listed).to_numpy(zero_copy_only=False)
        return np.diff(np.concatenate([[0], np.cumsum(found, dtype=np.int64)])[cut.offsets])

    others = [other for other in LISTED_LANGUAGES if other != language]
    foreign = np.stack([count(_list_foreign(other, language)) for other in others])
    most = foreign.max(axis=0)
    is_other = (most >= _FEWEST) & (most > count(pa.array(stop_words, pa.string())))
    return Counter(others[index] for index in foreign.argmax(axis=0)[is_other].tolist())


@cache
def _list_foreign(other: str, language: str) -> pa.StringArray:
    """List words of a language that are none of ``language``."""
    lists = map(PublicLists.load, (other, language))
    words, own = ({*each.words.to_pylist(), *each.context["ordinary"].to_pylist()} for each in lists)
    return pa.array(sorted(words - own), pa.string())
