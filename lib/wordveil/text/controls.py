"""Invisible characters: control characters (Unicode category Cc) other than tab and line breaks,
and format characters (Cf), such as marks of direction, zero-width spaces and joiners, soft hyphens and tags.

A policy that copies what is between words would copy them too. Nobody sees them there, and they may carry a mark of the
original, or break software that reads the output.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_CONTROL = r"[^\P{Cc}\t\n\r]"
_FORMAT = r"\p{Cf}"


def find_controls(texts: pa.StringArray) -> NDArray[np.bool_]:
    """Which texts have an invisible character: bool ``(records,)``."""
    return np.asarray(pc.match_substring_regex(texts, f"{_CONTROL}|{_FORMAT}"))


def drop_controls(texts: pa.StringArray) -> pa.StringArray:
    """``texts`` with a space for each control character, and without format characters.

    A control character ends a word. A format character has no width, so a word continues after it.
    """
    if not find_controls(texts).any():
        return texts
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, _CONTROL, " "), f"{_FORMAT}+", "")
