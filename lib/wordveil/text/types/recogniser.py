"""Finds tokens that are no words in texts: addresses, numbers, dates, markup and the like, in one compiled pass.

This is no part of the privacy protection. What is found decides how a text looks, never what is protected: a token that
is missed, or taken for another, is cut into words like any, and words are protected.

The pass looks at each byte once and stops only at those that such a token can have: digits, ``. : @ # < & *`` and what
begins an emoji. There it asks small automata (:mod:`wordveil.text.types.finders`), which look a bounded way
back and forward, so that any text takes linear time. The rules:

- What begins first wins; of those, the longest; of those, the first in the order markup, url, email, ip, date, time,
  card, phone, account, amount, year, number, mention, hashtag, emoji.
- A class that was not asked for is still told apart, and then left out. So the spans of a class are the same whichever
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
U+2000 to U+2BFF that are no combining marks nor become one (U+2ADC alone does): no rule tells apart what the form makes
equal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from wordveil.arrays import Int32, Int64, UInt8
from wordveil.compiled import compiled
from wordveil.text.types.classes import NAME_TYPES, TYPES, TokenType, TypeSpans
from wordveil.text.types.finders.characters import Tables, load_tables
from wordveil.text.types.finders.numerals import GROUPS
from wordveil.text.types.finders.scan import scan_types

_LONGEST = 2**31 - 1


class Recogniser:
    """Finds the tokens of some classes.

    Parameters
    ----------
    types
        the classes to find; none of names, which are found in lists of words.

    Raises
    ------
    ValueError
        a class of names is among ``types``.
    """

    def __init__(self, types: Collection[TokenType]) -> None:
        if listed := sorted({*NAME_TYPES}.intersection(types)):
            raise ValueError(f"types: {', '.join(listed)} are found in lists of words, not here.")
        self._wanted = np.array([kind in types for kind in TYPES], np.bool_)
        self._tables: Tables | None = None

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """``texts``: string array without nulls, valid UTF-8, possibly a slice."""
        data, offsets = _view(texts)
        if self._tables is None:
            self._tables = load_tables()
        # No two spans that follow each other have a byte each. Memory that is not written to is not taken.
        most = (int(offsets[-1]) - int(offsets[0])) // 2 + len(texts) + 1
        starts, ends, kinds = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int8)
        bounds = np.zeros(len(texts) + 1, np.int64)
        scan_types(
            data, offsets, *self._tables, self._wanted, np.zeros((GROUPS, 3), np.int64), starts, ends, kinds, bounds
        )
        count = bounds[-1]
        return TypeSpans(starts[:count].copy(), ends[:count].copy(), kinds[:count].copy(), bounds)


def replace_spans(texts: pa.StringArray, spans: TypeSpans, mark: bytes) -> pa.StringArray:
    """The texts with ``mark`` instead of each span.

    ``spans``: what was found in ``texts``. ``texts`` itself is returned where nothing was.

    Raises
    ------
    OverflowError
        the result passes the 2 GiB of a string array; take fewer texts at a time.
    """
    if len(spans.starts) == 0:
        return texts
    data, offsets = _view(texts)
    replacement = np.frombuffer(mark, np.uint8)
    bounds = np.zeros(len(texts) + 1, np.int64)
    measure_replaced(offsets, spans.starts, spans.ends, spans.offsets, len(replacement), bounds)
    if bounds[-1] > _LONGEST:
        raise OverflowError(
            f"The texts would take {bounds[-1]} bytes, and a string array holds 2 GiB. Pass fewer texts."
        )
    out = np.empty(int(bounds[-1]), np.uint8)
    write_replaced(data, offsets, spans.starts, spans.ends, spans.offsets, replacement, out)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out))


def cut_spans(texts: pa.StringArray, spans: TypeSpans) -> pa.StringArray:
    """The strings of the spans, in their order: string array ``(found,)``."""
    data, _ = _view(texts)
    bounds = np.concatenate([[0], np.cumsum(spans.ends - spans.starts)]).astype(np.int32)
    out = np.empty(int(bounds[-1]), np.uint8)
    write_spans(data, spans.starts, spans.ends, out)
    return pa.StringArray.from_buffers(len(spans.starts), pa.py_buffer(bounds), pa.py_buffer(out))


class _View(NamedTuple):
    data: UInt8
    offsets: Int32


def _view(texts: pa.StringArray) -> _View:
    """The bytes of the array's buffer, and where its texts begin and end in them."""
    offsets = np.frombuffer(texts.buffers()[1] or bytes(4), np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
    for array in (data, offsets):  # one kind of array, or the loops would be compiled twice
        array.flags.writeable = False
    return _View(data, offsets)


@compiled
def measure_replaced(offsets: Int32, starts: Int64, ends: Int64, records: Int64, length: int, bounds: Int64) -> None:
    """``bounds``: where each text ends once its spans take ``length`` bytes."""
    total = np.int64(0)
    for record in range(len(bounds) - 1):
        total += np.int64(offsets[record + 1]) - np.int64(offsets[record])
        for span in range(records[record], records[record + 1]):
            total += length - (ends[span] - starts[span])
        bounds[record + 1] = total


@compiled
def write_replaced(
    data: UInt8, offsets: Int32, starts: Int64, ends: Int64, records: Int64, replacement: UInt8, out: UInt8
) -> None:
    """The bytes of the texts with their spans replaced."""
    offset = np.int64(0)
    source = np.int64(offsets[0])
    for span in range(len(starts)):
        kept = starts[span] - source
        out[offset : offset + kept] = data[source : source + kept]
        offset += kept
        for i in range(len(replacement)):
            out[offset + i] = replacement[i]
        offset += len(replacement)
        source = ends[span]
    out[offset:] = data[source : np.int64(offsets[len(records) - 1])]


@compiled
def write_spans(data: UInt8, starts: Int64, ends: Int64, out: UInt8) -> None:
    """The bytes of the spans, one after the other."""
    offset = np.int64(0)
    for span in range(len(starts)):
        for i in range(starts[span], ends[span]):
            out[offset] = data[i]
            offset += 1
