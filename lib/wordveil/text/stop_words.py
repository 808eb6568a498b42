"""Lists of stop-words that come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources


def load_stop_words(choice: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a list that comes with the package, or a list of one's own in lower case."""
    if isinstance(choice, str):
        text = (resources.files("wordveil") / "data" / "stop_words" / f"{choice}.txt").read_text("utf-8")
        return tuple(text.split())
    return tuple(sorted({word.lower() for word in choice}))
