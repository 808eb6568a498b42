"""The case of words: read from a text, and applied to the words that replace its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LOWER, CAPITAL, UPPER = 0, 1, 2
"""How a word is written: in lower case, with a first capital, in capitals."""


def find_case(words: pa.StringArray) -> NDArray[np.int8]:
    """How each word is written: int8 ``(words,)``, :data:`LOWER`, :data:`CAPITAL` or :data:`UPPER`."""
    first = np.asarray(pc.utf8_is_upper(pc.utf8_slice_codeunits(words, 0, 1)))
    whole = np.asarray(pc.utf8_is_upper(words))
    several = np.asarray(pc.utf8_length(words)) > 1
    return np.where(whole & several, UPPER, np.where(first, CAPITAL, LOWER)).astype(np.int8)


def apply_case(words: pa.StringArray, case: NDArray[np.int8]) -> pa.StringArray:
    """``words`` in the cases that :func:`find_case` returned."""
    forms = pc.if_else(pa.array(case == CAPITAL), pc.utf8_capitalize(words), words)
    return pc.if_else(pa.array(case == UPPER), pc.utf8_upper(words), forms)
