"""Foreign values in what people read: names of authors, records, columns and paths may hold anything."""

from __future__ import annotations

import unicodedata
from typing import Any

# Controls, formatting that nobody sees (directions of text among it), surrogates, separators of lines and paragraphs.
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# They join and separate letters, which Persian and emoji need.
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
# What a spreadsheet takes for a formula, also in full width, and the mark that says that a cell is none.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_GUARD = "'"


def show_value(value: object, keep: str = "") -> str:
    r"""A value on one line, in which nothing acts on a terminal or a page: an escape character is shown as ``\x1b``.
    ``keep``: characters that stay as they are, such as line breaks.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        ascii(character)[1:-1] if _is_hidden(character) and character not in keep else character for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def show_cell(value: Any) -> Any:
    """A value for a cell of CSV. A text gets an apostrophe before it where a spreadsheet would execute it, and where it
    begins with one, so that removing it restores the text. Numbers stay numbers.
    """
    if not isinstance(value, str):
        return value
    shown = show_value(value)
    return _GUARD + shown if shown.lstrip().startswith((*_FORMULAS, _GUARD)) else shown
