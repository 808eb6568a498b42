"""Lists of stop-words that come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources


def load_stop_words(choice: str | Sequence[str]) -> tuple[str, ...]:
    """Load a list that comes with the package, or convert the user's own list to lower case and sort it."""
    if isinstance(choice, str):
        text = (resources.files("wordveil") / "data" / "stop_words" / f"{choice}.txt").read_text("utf-8")
        return tuple(text.split())
    return tuple(sorted({word.lower() for word in choice}))
