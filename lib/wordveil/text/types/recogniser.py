"""Recogniser of tokens that are not words: addresses, numbers, dates, markup and the like, in one compiled pass.

This is no part of the privacy protection. It decides how a text looks, never what is protected: a token that is missed,
or taken for another, is cut into words like any text, and words are protected.

The pass reads each byte once and stops only at those that such a token can have: digits, ``. : @ # < & * / ( [``, their
likes and the beginnings of emoji. There it calls small automata (:mod:`wordveil.text.types.finders`), which read a
bounded distance back and forward, so that any text takes linear time. The rules:

- What begins first wins; of those, the longest; of those, the first in the order markup, url, email, ip, date, time,
  card, phone, account, amount, year, number, mention, hashtag, emoji.
- A class that was not requested is still recognised, then left out. So the spans of a class do not depend on the other
requested ones. - No span begins or ends inside a word (letters, marks, digits, ``_``), with three exceptions: a unit is
cut from its
  number (``10km``: the number 10, then a word), a character entity may stand inside a word (``caf&eacute;``), and the
  time of ``2026-11-23T14:30`` begins with its T.
- Other words with digits (``abc123``, ``v1.2.3``, ``3D``) are words. But eight capitals and digits and more, five of
  them digits, are a reference number and so an account: ``AB12345678``.
- Dotted figures are one number (``1.2.3``), a range is two (``10-12``), ``1/2`` is one.
- ``555-1234`` is a telephone number; ten digits without separators are an account, but a 0 before ten or eleven is a
  telephone number's.
- Four digits from 1500 to 2099, without sign or separators, are a year.
- A month beside a year counts as a date (``2026-11``, ``11/2026``).
- A path of two parts and more (``/home/john``) is a url. A mail address may have a host without a dot, ``%40`` or
  ``[at]``.
- A text sign such as the copyright sign or an arrow is an emoji only before U+FE0F.

The spans are the same before and after normalisation form C wherever a text has only characters below U+0590 and from
U+2000 to U+2BFF that are no combining marks nor become one (U+2ADC alone does): no rule distinguishes what the
form makes equal.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.types.classes import NAME_TYPES, TYPES, TokenType, TypeSpans
from wordveil.text.types.finders.characters import load_tables
from wordveil.text.types.finders.numerals import GROUPS
from wordveil.text.types.finders.scan import scan_types


class Recogniser:
    """Recogniser of the tokens of the classes ``types``.

    Raises :class:`ValueError` for a class of names, which lists of words identify.
    """

    def __init__(self, types: Collection[TokenType]) -> None:
        if listed := sorted({*NAME_TYPES}.intersection(types)):
            raise ValueError(f"types: {', '.join(listed)} are found in lists of words, not here.")
        self._wanted = np.array([kind in types for kind in TYPES], np.bool_)

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """Find tokens in ``texts``, a string array without nulls, valid UTF-8, possibly a slice."""
        data, offsets = view_strings(texts)
        # No two spans that follow each other have a byte each. Memory that is not written to is not taken.
        most = (int(offsets[-1]) - int(offsets[0])) // 2 + len(texts) + 1
        starts, ends, kinds = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int8)
        bounds = np.zeros(len(texts) + 1, np.int64)
        groups = np.zeros((GROUPS, 3), np.int64)
        scan_types(data, offsets, *load_tables(), self._wanted, groups, starts, ends, kinds, bounds)
        count = bounds[-1]
        return TypeSpans(starts[:count].copy(), ends[:count].copy(), kinds[:count].copy(), bounds)
