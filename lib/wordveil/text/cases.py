"""The case of words: read from a text, and applied to the words that replace its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LOWER, CAPITAL, UPPER = 0, 1, 2
"""How a word is written: in lower case, with a first capital, in capitals (of several letters)."""


def write_cases(words: pa.StringArray) -> pa.StringArray:
    """``words`` in each case, one case after the other: string array ``(3 * words,)``."""
    return pa.concat_arrays([words, pc.utf8_capitalize(words), pc.utf8_upper(words)])
