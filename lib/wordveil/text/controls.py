"""Invisible characters: control and format characters of Unicode.

They are control characters (category Cc) other than tab and line breaks, and format characters (Cf), such as marks of
direction, zero-width spaces and joiners, soft hyphens and tags. A policy that copies the text between words would copy
them too. They may carry a mark of the original, or break software that reads the output.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import UInt32
from wordveil.text.characters import CONTROL, FORMAT


def find_controls(bits: UInt32) -> NDArray[np.bool_]:
    """Find the texts with an invisible character, bool ``(records,)``, by their bits
    (:func:`wordveil.text.characters.read_bits`).
    """
    return np.asarray(bits & np.uint32(CONTROL | FORMAT), np.bool_)


def drop_controls(texts: pa.StringArray, bits: UInt32) -> pa.StringArray:
    """Replace each control character of ``texts`` by a space, and remove format characters.

    A control character ends a word. A format character has no width, so a word continues after it.
    """
    if not (barred := find_controls(bits)).any():
        return texts
    spaced = pc.replace_substring_regex(texts.filter(pa.array(barred)), r"[^\P{Cc}\t\n\r]", " ")
    return pc.replace_with_mask(texts, pa.array(barred), pc.replace_substring_regex(spaced, r"\p{Cf}+", ""))
