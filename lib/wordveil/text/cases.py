"""Case of words: read from a text, and applied to the words that replace its own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

LOWER, CAPITAL, UPPER = 0, 1, 2
"""Case of a word: lower case, a first capital, capitals (of several letters)."""


def write_cases(words: pa.StringArray) -> pa.StringArray:
    """Write ``words`` in each case, one case after the other: string array ``(3 * words,)``."""
    return pa.concat_arrays([words, pc.utf8_capitalize(words), pc.utf8_upper(words)])
