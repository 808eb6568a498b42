"""Words and their ids, on Arrow arrays.

Words have the ids ``0 .. size - 1``. Two symbols follow them: ``pad`` (= size), which fills a text up to its public
length, and ``unknown`` (= size + 1), which stands for every word outside the vocabulary.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class Vocabulary:
    """An ordered set of words.

    ``words``: string array without nulls, empty strings or duplicates (:mod:`wordveil.embedding` checks that).
    """

    def __init__(self, words: pa.StringArray) -> None:
        self.array = words
        self.size = len(words)
        self.pad = self.size
        self.unknown = self.size + 1
        self._options = pc.SetLookupOptions(value_set=words)

    def lookup(self, tokens: pa.StringArray) -> NDArray[np.int32]:
        """The id of each token, ``unknown`` where it is not in the vocabulary: int32 ``(len(tokens),)``."""
        found = pc.call_function("index_in", [tokens], self._options)
        return np.asarray(pc.fill_null(found, self.unknown).to_numpy(zero_copy_only=False), np.int32)

    def words(self, ids: NDArray[np.int32]) -> pa.StringArray:
        """The word of each id (``0 <= id < size``), as a string array."""
        return self.array.take(pa.array(ids))
