"""Texts cut into words, in the same way for every task, whether they are sanitised or original.

Words are in lower case, and the text between them is left out. So the original has no advantage from parts that every
mechanism removes, such as capitals and commas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int64
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.text.tokeniser import Tokeniser, fold_words

_TOKENISER = Tokeniser()


@dataclass(frozen=True)
class Words:
    """Words of texts.

    ``words``: string array ``(tokens,)``, in lower case. ``offsets``: int64 ``(texts + 1,)``, the words of text ``i``
    are ``offsets[i]`` up to ``offsets[i + 1]``.
    """

    words: pa.StringArray
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def text_of(self) -> Int64:
        """Text of each word: int64 ``(tokens,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def join(self) -> list[str]:
        """Join the words of each text with single spaces between them."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.offsets, pa.int64()), self.words)
        return list(pc.binary_join(lists, " ").to_pylist())


def cut_words(texts: Sequence[str]) -> Words:
    """Cut texts into words, as the default text policy does (:mod:`wordveil.text.tokeniser`)."""
    pieces = _TOKENISER.cut_words(_TOKENISER.normalise(pa.array(list(texts), pa.string())))
    return Words(fold_words(pieces.words), pieces.offsets)


def join_words(texts: Sequence[str]) -> list[str]:
    """Write each text as its words with single spaces between them."""
    return cut_words(texts).join()


def take_known(documents: Documents) -> Documents:
    """Take the texts whose label is known. Raises :class:`ValueError` if fewer than two labels have texts."""
    known = documents.labels != UNKNOWN
    labels = len(np.unique(documents.labels[known]))
    if labels < 2:
        raise ValueError(f"Expected texts of at least two labels to learn from, got {labels}.")
    return documents if known.all() else documents.take(np.flatnonzero(known))
