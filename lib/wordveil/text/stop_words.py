"""Lists of stop-words: the package's own for English, and those of stopwordsiso for 57 other languages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from importlib import resources

from wordveil.text.language import find_version

ENGLISH = "english"


def load_stop_words(choice: str | Sequence[str] | None, language: str = "en") -> tuple[str, ...]:
    """Load a list of stop-words, in lower case and sorted; empty if :func:`find_list_problem` names a problem.

    ``choice``: ``english``, the list of this package; the user's own list; or None, the list of ``language``, a code of
    ISO 639-1.
    """
    if choice is None and language != "en":
        return () if find_list_problem(language) else _load_iso(language)
    if choice is None or isinstance(choice, str):
        text = (resources.files("wordveil") / "data" / "stop_words" / f"{choice or ENGLISH}.txt").read_text("utf-8")
        return tuple(text.split())
    return tuple(sorted({word.lower() for word in choice}))


def find_list_problem(language: str) -> str | None:
    """Explain why there is no list of stop-words for ``language``, with a remedy, or return None."""
    if language == "en":
        return None
    if find_version("stopwordsiso") is None:
        return (
            f"the list for language: {language} is in the package stopwordsiso, which Python does not have here. Run "
            "`pip install 'wordveil[languages]'`, or give a list of your own."
        )
    import stopwordsiso

    if not stopwordsiso.has_lang(language):
        return f"there is no list for language: {language}. Give a list of your own, or set stop_words: hide."
    return None


def _load_iso(language: str) -> tuple[str, ...]:
    """Load the list's words as they are looked up, without its punctuation and phrases."""
    import stopwordsiso

    listed = (unicodedata.normalize("NFC", word).lower() for word in stopwordsiso.stopwords(language))
    words = (word.replace("\u2019", "'") for word in listed if not any(map(str.isspace, word)))
    return tuple(sorted({word for word in words if any(map(str.isalpha, word))}))
