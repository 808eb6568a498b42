"""Public frequencies that come with the package wordfreq: ``wordfreq:de`` instead of a file.

wordfreq counted words of 42 languages in subtitles, news, books, encyclopaedias and web pages until 2021 (Speer 2022,
doi:10.5281/zenodo.7199437), and is not updated: later web pages hold texts that machines wrote. A recipe has the digest
of the counts themselves, so another version of the package with the same counts changes nothing.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import pyarrow as pa

from wordveil.assembly.word_tables import WordTable
from wordveil.config.paths import WORDFREQ
from wordveil.errors import PublicFileError
from wordveil.text.language import find_version

_PER_WORDS = 10**10
"""Number of words that counts refer to: the rarest word of a list has 100."""


def is_wordfreq(source: str) -> bool:
    """Return whether a setting names a list of wordfreq and no file."""
    return source.startswith(WORDFREQ)


def has_wordfreq(source: str) -> bool:
    """Return whether the list is available."""
    return find_version("wordfreq") is not None and source.removeprefix(WORDFREQ) in _languages()


def read_wordfreq(source: str, setting: str) -> WordTable:
    """Read the words of a list and their counts, in the form of a file of words and counts.

    Raises :class:`PublicFileError` if wordfreq is not installed, or has no list of the language.
    """
    if find_version("wordfreq") is None:
        problem = "needs wordfreq, which Python does not have here. Run `pip install 'wordveil[languages]'`."
        raise PublicFileError(f"{setting} = {source}: {problem}")
    if not has_wordfreq(source):
        problem = f"there is no such list. There are: {', '.join(sorted(_languages()))}."
        raise PublicFileError(f"{setting} = {source}: {problem}")
    words, counts = _load(source.removeprefix(WORDFREQ))
    return WordTable(setting, source, (pa.array(words, pa.string()), pa.array(counts, pa.int64()).cast(pa.string())))


def digest_wordfreq(source: str, setting: str) -> str:
    """Compute the SHA-256 of a list's words and counts, hexadecimal. Raises as :func:`read_wordfreq`."""
    words, counts = read_wordfreq(source, setting).columns
    lines = "".join(f"{word}\t{count}\n" for word, count in zip(words.to_pylist(), counts.to_pylist(), strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.available_languages("best"))


@lru_cache(maxsize=1)
def _load(language: str) -> tuple[list[str], list[int]]:
    """Load the words, sorted, and their counts."""
    import wordfreq

    shares = wordfreq.get_frequency_dict(language, "best")
    words = sorted(shares)
    return words, [max(1, round(shares[word] * _PER_WORDS)) for word in words]
