"""Skeleton of a text: the parts that a policy copies, and the places of the drawn words and values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int8, Int32, Int64, UInt8, freeze
from wordveil.compiled import compiled, inlined, read_eight, write_eight
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.articles import ARTICLES, PlacedArticles
from wordveil.text.choices import DROP, HIDE, KEEP, SHOW
from wordveil.text.scanner import Scanned
from wordveil.text.types.classes import TYPES
from wordveil.text.types.typed import ShownTokens

_SPARE = 16
_NO_WORDS = (freeze(np.zeros(1, np.uint8)), freeze(np.zeros(1, np.int64)))
Words = tuple[UInt8, Int64]
"""Strings as :func:`wordveil.embeddings.vocabulary.view_strings` gives them."""


@dataclass(frozen=True)
class Skeleton:
    """Parts of texts that a policy copies.

    ``tokens``: the texts and their tokens. ``action``: int8 ``(tokens,)``. ``gaps``: whether the text between tokens is
    copied; otherwise single spaces. ``case``: how hidden words are written, int8 ``(hidden,)``; None: as drawn.
    ``shown``: the tokens whose class shows. ``articles``: those that agree with what is written after them.
    """

    tokens: Scanned
    action: Int8
    gaps: bool
    case: UInt8 | None
    shown: ShownTokens | None = None
    articles: PlacedArticles | None = None

    def serialise(self) -> tuple[memoryview, Int64]:
        """Write the copied parts as bytes, with a mark for each hidden word, and return the records' byte offsets, too.

        A token whose class shows has another mark with class and shape.
        """
        # No text holds U+0001. The last two are articles, of which a capital shows and nothing else.
        marks = view_strings(pa.array([f"\x01{number}" for number in range(5)], pa.string()))
        case = np.zeros(int((self.action == HIDE).sum()), np.int32) if self.case is None else self.case
        shown = None
        if self.shown is not None:
            letters = pa.array([f"\x01{chr(ord('A') + kind)}" for kind in range(len(TYPES))], pa.string())
            shown = pc.binary_join_element_wise(letters.take(pa.array(self.shown.kinds)), self.shown.shapes, "\x01", "")
        action, case = self.action, case.astype(np.int32)
        if self.articles is not None:
            action, case = self._merge(self.articles, case, self.articles.is_capital.astype(np.int32) + 3)
        out, bounds = _write(self, action, case, self.tokens.offsets, marks, shown)
        return out.data, bounds

    def fill(self, ids: Int32, words: Words, values: pa.StringArray | None = None) -> pa.StringArray:
        """Write ``words[ids]`` for the hidden tokens, and ``values`` for those whose class shows.

        ``words``: the vocabulary, or with :attr:`case` all of it in each case
        (:func:`wordveil.text.scanner.write_cases`); then the :attr:`articles`. Raises :class:`ValueError` if values are
        missing: the tokens themselves would be written.
        """
        if values is None and self.shown is not None:
            raise ValueError("tokens whose class shows need values.")
        action, size = self.action, len(words[1]) - 1 - (0 if self.articles is None else len(ARTICLES))
        cased = ids if self.case is None else ids + self.case.astype(np.int32) * np.int32(size // 3)
        if self.articles is not None:
            chosen = np.int32(size) + self.articles.choose(ids, values)
            action, cased = self._merge(self.articles, cased, chosen)
        return _make_texts(*_write(self, action, cased, self.tokens.offsets, words, values))

    def _merge(self, articles: PlacedArticles, values: Int32, of_articles: Int32) -> tuple[Int8, Int32]:
        """Merge the actions and the values of articles into those of hidden words."""
        action, is_hidden = self.action.copy(), self.action == HIDE
        action[articles.places] = HIDE
        return action, np.insert(values, np.cumsum(is_hidden)[articles.places], of_articles)


def join_words(words: Words, ids: Int32, offsets: Int64) -> pa.StringArray:
    """Join the words of ``ids``, int32 ``(tokens,)``, by spaces into texts; ids of no word leave no trace."""
    is_word = ids < len(words[1]) - 1
    if is_word.all():
        return _make_texts(*_write(None, np.full(len(ids), HIDE, np.int8), ids, offsets, words, None))
    action = np.where(is_word, np.int8(HIDE), np.int8(DROP))
    return _make_texts(*_write(None, action, ids[is_word], offsets, words, None))


def _write(
    skeleton: Skeleton | None, action: Int8, ids: Int32, offsets: Int64, words: Words, values: pa.StringArray | None
) -> tuple[UInt8, Int64]:
    """Write the texts' bytes, and their offsets, int64 ``(records + 1,)``."""
    texts, starts, ends, gaps = _NO_WORDS, *(np.empty(0, np.int32),) * 2, False
    if skeleton is not None:
        texts, gaps = view_strings(skeleton.tokens.texts), skeleton.gaps
        starts, ends = skeleton.tokens.starts, skeleton.tokens.ends
    shown = _NO_WORDS if values is None else view_strings(values)
    most = int(texts[1][-1] - texts[1][0] + shown[1][-1] - shown[1][0]) + len(action)
    most += int(np.diff(words[1])[ids].sum()) if len(ids) else 0
    if most >= 2**31:
        raise OverflowError(f"The texts may take {most} bytes, and a string array holds 2 GiB. Pass fewer texts.")
    out, bounds = np.empty(most + _SPARE, np.uint8), np.zeros(len(offsets), np.int64)
    write_texts(*texts, starts, ends, offsets, action, gaps, ids, *words, *shown, out, bounds)
    return out[: bounds[-1]], bounds


def _make_texts(out: UInt8, bounds: Int64) -> pa.StringArray:
    return pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out))


@inlined
def _copy(data: UInt8, start: int, end: int, out: UInt8, offset: int) -> int:
    """Copy bytes to an offset and return their end. ``out`` has room for :data:`_SPARE` more."""
    done = 0
    if start + _SPARE <= len(data):  # The next copy overwrites what is written too much.
        write_eight(out, offset, read_eight(data, start))
        write_eight(out, offset + 8, read_eight(data, start + 8))
        done = _SPARE
    for byte in range(done, end - start):
        out[offset + byte] = data[start + byte]
    return offset + end - start


@compiled
def write_texts(
    data: UInt8,
    text_offsets: Int64,
    starts: Int32,
    ends: Int32,
    offsets: Int64,
    action: Int8,
    gaps: bool,  # noqa: FBT001
    ids: Int32,
    words: UInt8,
    word_offsets: Int64,
    values: UInt8,
    value_offsets: Int64,
    out: UInt8,
    bounds: Int64,
) -> None:
    """Write the bytes of texts with words and values put in."""
    offset, hidden, shown = 0, 0, 0
    for record in range(len(offsets) - 1):
        copied = text_offsets[record] if gaps else 0  # up to here
        is_first = True
        for token in range(offsets[record], offsets[record + 1]):
            what = action[token]
            if gaps and what == KEEP:
                continue
            if gaps:
                offset = _copy(data, copied, starts[token], out, offset)
                copied = ends[token]
            elif what != DROP:
                out[offset] = 0x20
                offset += 0 if is_first else 1
                is_first = False
            if what == HIDE:
                word = ids[hidden]
                offset = _copy(words, word_offsets[word], word_offsets[word + 1], out, offset)
                hidden += 1
            elif what == SHOW:
                offset = _copy(values, value_offsets[shown], value_offsets[shown + 1], out, offset)
                shown += 1
            elif what == KEEP:
                offset = _copy(data, starts[token], ends[token], out, offset)
        if gaps:
            offset = _copy(data, copied, text_offsets[record + 1], out, offset)
        bounds[record + 1] = offset
