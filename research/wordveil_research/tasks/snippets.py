"""Known text and snippets of public lengths, from each author's texts.

Koppel, Schler and Argamon 2011 take 2,000 words of known text and a snippet of 500 words from other posts of the same
author; Fernandes, Dras and McIver 2018 and 2019 do so in their turn. The lengths are public: that a text has one says
nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from wordveil.scores.documents import Documents

KNOWN_WORDS, SNIPPET_WORDS = 2_000, 500


class KnownAndSnippets(NamedTuple):
    """What an attacker knows, and what it is asked about.

    ``known``: one text an author. ``snippets``: texts of one length, each by one of these authors. Both have the names
    of the documents that they were cut from.
    """

    known: Documents
    snippets: Documents


def split_known_and_snippets(
    documents: Documents,
    seed: int,
    known_words: int = KNOWN_WORDS,
    snippet_words: int = SNIPPET_WORDS,
    most_snippets: int | None = None,
) -> KnownAndSnippets:
    """Cut known text and snippets from each author's texts, which are put into a random order first.

    The first texts of an author, up to ``known_words`` words, are known. Snippets are cut from the texts after those,
    so that no text is in both. Where the known words end inside the last text of an author, snippets are cut from the
    rest of it. Words are what stands between spaces, and are joined by single spaces.

    Parameters
    ----------
    documents
        texts with authors. Authors with too few words for a known text and one snippet are left out, and so are texts
        without a known author.
    seed
        of the order.
    known_words, snippet_words
        lengths in words, at least 1.
    most_snippets
        how many snippets of an author there are at most; None for all.

    Raises
    ------
    ValueError
        where a length is below 1, or fewer than two authors have words enough.
    """
    if known_words < 1 or snippet_words < 1:
        raise ValueError(f"Expected lengths of at least 1 word, got {known_words=}, {snippet_words=}.")
    generator = np.random.Generator(np.random.PCG64(seed))
    known: list[tuple[str, int]] = []
    snippets: list[tuple[str, int]] = []
    for label in range(len(documents.names)):
        rows = generator.permutation(np.flatnonzero(documents.labels == label))
        texts = [documents.texts[row].split() for row in rows.tolist()]
        first, rest = _cut(texts, known_words)
        pieces = [rest[start : start + snippet_words] for start in range(0, len(rest), snippet_words)]
        whole = [piece for piece in pieces if len(piece) == snippet_words][:most_snippets]
        if len(first) == known_words and whole:
            known.append((" ".join(first), label))
            snippets += [(" ".join(piece), label) for piece in whole]
    if len(known) < 2:
        raise ValueError(
            f"Expected at least two authors with {known_words + snippet_words} words, got {len(known)}. Ask for "
            f"shorter texts."
        )
    return KnownAndSnippets(_collect(known, documents.names), _collect(snippets, documents.names))


def _cut(texts: Sequence[list[str]], known_words: int) -> tuple[list[str], list[str]]:
    """Cut out the first words of texts, and the words of the texts after those, or of the rest of the last text."""
    ends = list(accumulate(len(text) for text in texts))
    last = next((place for place, end in enumerate(ends) if end >= known_words), len(texts))
    first = [word for text in texts[: last + 1] for word in text]
    rest = [word for text in texts[last + 1 :] for word in text] or first[known_words:]
    return first[:known_words], rest


def _collect(pairs: Sequence[tuple[str, int]], names: tuple[str, ...]) -> Documents:
    texts, labels = zip(*pairs, strict=True)
    return Documents(list(texts), np.array(labels, np.int64), names)
