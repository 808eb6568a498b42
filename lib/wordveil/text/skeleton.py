"""What a policy copies of a text, and where in it the drawn words and values go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.cases import apply_case
from wordveil.text.types.classes import TYPES
from wordveil.text.types.typed import ShownTokens


@dataclass(frozen=True)
class Skeleton:
    """What a policy copies: the pieces of each text, the positions of hidden words among them, and what joins them.

    ``case``: how the hidden words are written; None as they are drawn. ``shown``: the tokens whose class shows, in the
    positions ``shown_slots``.
    """

    pieces: pa.StringArray
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64]
    case: NDArray[np.int8] | None
    separator: str
    shown: ShownTokens | None = None
    shown_slots: NDArray[np.int64] | None = None

    def serialise(self) -> tuple[memoryview, NDArray[np.int64]]:
        """Write what is copied as bytes, with a mark for each hidden word, and another with class and shape for each
        token whose class shows; and the records' byte offsets.
        """
        marks = pa.array(["\x010", "\x011", "\x012"])  # no text holds U+0001
        case = np.zeros(len(self.slots), np.int8) if self.case is None else self.case
        shown = None
        if self.shown is not None:
            letters = pa.array([f"\x01{chr(ord('A') + kind)}" for kind in range(len(TYPES))])
            shown = pc.binary_join_element_wise(letters.take(pa.array(self.shown.kinds)), self.shown.shapes, "\x01", "")
        texts = join_texts(self._with(marks.take(pa.array(case)), shown), self.offsets, self.separator)
        return memoryview(texts.buffers()[2] or b""), view_strings(texts)[1]

    def fill(self, words: pa.StringArray, values: pa.StringArray | None = None) -> pa.StringArray:
        """Fill in ``words`` for the hidden ones, and ``values`` for the tokens whose class shows. Raises
        :class:`ValueError` where these are missing: the tokens themselves would stand there.
        """
        if values is None and self.shown is not None:
            raise ValueError("tokens whose class shows need values.")
        if self.case is not None:
            words = apply_case(words, self.case)
        return join_texts(self._with(words, values), self.offsets, self.separator)

    def _with(self, words: pa.StringArray, values: pa.StringArray | None) -> pa.StringArray:
        order = np.arange(len(self.pieces))
        order[self.slots] = len(self.pieces) + np.arange(len(self.slots))
        if values is None:
            return pa.concat_arrays([self.pieces, words]).take(pa.array(order))
        order[self.shown_slots] = len(self.pieces) + len(self.slots) + np.arange(len(values))
        return pa.concat_arrays([self.pieces, words, values]).take(pa.array(order))


def join_texts(values: pa.StringArray, offsets: NDArray[np.int64], separator: str) -> pa.StringArray:
    """Texts of consecutive ``values``; ``offsets``: int64 ``(records + 1,)``."""
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pc.binary_join(lists, separator)
