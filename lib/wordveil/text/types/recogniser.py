"""Finds tokens of texts that are not words: addresses, numbers, dates, markup and the like, in one compiled pass.

This is no part of the privacy protection. It decides how a text looks, never what is protected: a token that is missed,
or taken for another, is cut into words like any text, and words are protected.

The pass looks at each byte once and stops only at those that such a token can have: digits, ``. : @ # < & *`` and what
begins an emoji. There it asks small automata (:mod:`wordveil.text.types.finders`), which look a bounded
distance back and forward, so that any text takes linear time. The rules:

- What begins first wins; of those, the longest; of those, the first in the order markup, url, email, ip, date, time,
  card, phone, account, amount, year, number, mention, hashtag, emoji.
- A class that was not asked for is still recognised, then left out. So the spans of a class do not depend on which
  others are asked for.
- No span begins or ends inside a word (letters, marks, digits, ``_``), with three exceptions: a unit is cut from its
  number (``10km``: the number 10, then a word), a character entity may stand inside a word (``caf&eacute;``), and the
  time of ``2026-11-23T14:30`` begins with its T.
- Other words with digits (``abc123``, ``v1.2.3``, ``3D``) are words. But eight capitals and digits and more, five of
  them digits, are a reference number and so an account: ``AB12345678``.
- Dotted figures are one number (``1.2.3``), a range is two (``10-12``), ``1/2`` is one.
- ``555-1234`` is a telephone number; ten digits without separators are an account, but a 0 before ten or eleven is a
  telephone number's.
- Four digits from 1500 to 2099, without sign or separators, are a year.
- A month beside a year counts as a date (``2026-11``, ``11/2026``).
- A text sign such as the copyright sign or an arrow is an emoji only before U+FE0F.

The spans are the same before and after normalisation form C wherever a text has only characters below U+0590 and from
U+2000 to U+2BFF that are no combining marks nor become one (U+2ADC alone does): no rule distinguishes what the
form makes equal.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.types.classes import NAME_TYPES, TYPES, TokenType, TypeSpans
from wordveil.text.types.finders.characters import load_tables
from wordveil.text.types.finders.numerals import GROUPS
from wordveil.text.types.finders.scan import scan_types

_LONGEST = 2**31 - 1


class Recogniser:
    """Finds the tokens of the classes ``types``. Raises :class:`ValueError` for a class of names, which lists of words
    identify.
    """

    def __init__(self, types: Collection[TokenType]) -> None:
        if listed := sorted({*NAME_TYPES}.intersection(types)):
            raise ValueError(f"types: {', '.join(listed)} are found in lists of words, not here.")
        self._wanted = np.array([kind in types for kind in TYPES], np.bool_)

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """``texts``: string array without nulls, valid UTF-8, possibly a slice."""
        data, offsets = view_strings(texts)
        # No two spans that follow each other have a byte each. Memory that is not written to is not taken.
        most = (int(offsets[-1]) - int(offsets[0])) // 2 + len(texts) + 1
        starts, ends, kinds = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int8)
        bounds = np.zeros(len(texts) + 1, np.int64)
        groups = np.zeros((GROUPS, 3), np.int64)
        scan_types(data, offsets, *load_tables(), self._wanted, groups, starts, ends, kinds, bounds)
        count = bounds[-1]
        return TypeSpans(starts[:count].copy(), ends[:count].copy(), kinds[:count].copy(), bounds)


def replace_spans(texts: pa.StringArray, spans: TypeSpans, mark: bytes) -> pa.StringArray:
    """The texts with ``mark`` instead of each of their spans; ``texts`` itself where there are none.

    Raises :class:`OverflowError` where the result passes the 2 GiB of a string array: take fewer texts at a time.
    """
    if len(spans.starts) == 0:
        return texts
    shifts = np.concatenate([[0], np.cumsum(len(mark) - (spans.ends - spans.starts))])
    data, offsets = view_strings(texts)
    bounds = offsets - offsets[0] + shifts[spans.offsets]
    if bounds[-1] > _LONGEST:
        raise OverflowError(
            f"The texts would take {bounds[-1]} bytes, and a string array holds 2 GiB. Pass fewer texts."
        )
    out = np.empty(int(bounds[-1]), np.uint8)
    write_replaced(data, offsets[0], offsets[-1], spans.starts, spans.ends, np.frombuffer(mark, np.uint8), out)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out))


def cut_spans(texts: pa.StringArray, spans: TypeSpans) -> pa.StringArray:
    """The strings of the spans, in their order: string array ``(spans,)``."""
    # Spans and what is between them, in turn.
    edges = np.stack([spans.starts, spans.ends], axis=1).astype(np.int32)
    pieces = pa.StringArray.from_buffers(max(edges.size - 1, 0), pa.py_buffer(edges), texts.buffers()[2])
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


@compiled
def write_replaced(
    data: UInt8, source: int, end: int, starts: Int64, ends: Int64, replacement: UInt8, out: UInt8
) -> None:
    """The bytes from ``source`` to ``end`` with their spans replaced."""
    offset = np.int64(0)
    for span in range(len(starts)):
        kept = starts[span] - source
        out[offset : offset + kept] = data[source : source + kept]
        offset += kept
        for i in range(len(replacement)):
            out[offset + i] = replacement[i]
        offset += len(replacement)
        source = ends[span]
    out[offset:] = data[source:end]
