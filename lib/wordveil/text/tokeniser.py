"""Tokeniser of Arrow string arrays, without a Python loop.

A word is a run of letters, marks and digits of any script, with single apostrophes (``'`` or U+2019) inside it:
``don't`` is one word, the quotes of ``'tis'`` are not part of one. Hyphens end a word unless inner hyphens are enabled
(``inner``: ``well-known`` is one word, ``well--known`` two). Everything between words is a gap. If gaps are copied,
every character that may not be copied belongs to words too: symbols can be read as letters. Texts are in Unicode
normalisation form C first; U+0001 becomes a space.

Chinese and Japanese are written without spaces. ``chinese`` and ``japanese`` cut each *run* of letters of Han,
Hiragana, Katakana and Bopomofo, with their marks, by a dictionary, once for each distinct run of a batch. The words of
a run depend on it alone and, joined, are the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import UInt32
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.characters import CONTROL, LOOSE, load_table, read_bits
from wordveil.text.choices import Hyphens, TokeniserKind
from wordveil.text.scanner import A_WORD, Scanned, scan
from wordveil.text.types.classes import TypeSpans

_BLOCK = 1000
"""Number of characters that are cut at once; a longer run is cut into blocks first."""
Cut = Callable[[str], list[str]]


def cut_run(run: str, kind: TokeniserKind) -> list[str]:
    """Cut a run into words, none of them empty; ``kind`` is ``chinese`` or ``japanese``.

    A block is cut into its characters if the dictionary's words, joined, are not the block.
    """
    cut = _load(kind)
    words: list[str] = []
    for start in range(0, len(run), _BLOCK):
        block = run[start : start + _BLOCK]
        pieces = [word for word in cut(block) if word]
        words += pieces if "".join(pieces) == block else block
    return words


@lru_cache(maxsize=2)
def _load(kind: TokeniserKind) -> Cut:
    """Load jieba's dictionary with its hidden Markov model, or Sudachi's small one with its shortest units."""
    if kind == TokeniserKind.CHINESE:
        import rjieba

        return lambda run: list(rjieba.cut(run, True))
    from sudachipy import Dictionary, SplitMode

    tokeniser = Dictionary(dict="small").tokenizer(mode=SplitMode.A)
    return lambda run: [word.surface() for word in tokeniser.tokenize(run)]


MARK = "\x01"
"""Placeholder for hidden words in hashed content; texts have a space instead."""


class Tokeniser:
    """Tokeniser that cuts string arrays into words. See the module for the definition of a word.

    ``copied``: whether the text between words will be copied (:data:`wordveil.text.characters.COPYABLE`). Raises
    :class:`ValueError` for an unknown ``kind`` or ``hyphens``.
    """

    def __init__(self, kind: str = TokeniserKind.WORDS, hyphens: str = Hyphens.SPLIT, *, copied: bool = False) -> None:
        self._kind, self._hyphens, self._copied = TokeniserKind(kind), Hyphens(hyphens), copied

    def normalise(self, texts: pa.StringArray, bits: UInt32 | None = None) -> pa.StringArray:
        """Normalise ``texts``, a string array without nulls, to form C without :data:`MARK`.

        ``bits``: theirs (:func:`wordveil.text.characters.read_bits`), or those of texts with more characters.
        """
        bits = read_bits(texts) if bits is None else bits
        if (loose := (bits & LOOSE) != 0).any():
            changed = pc.utf8_normalize(texts.filter(pa.array(loose)), form="NFC")
            texts = pc.replace_with_mask(texts, pa.array(loose), changed)
        return pc.replace_substring(texts, MARK, " ") if (bits & CONTROL).any() else texts

    def cut_words(
        self,
        texts: pa.StringArray,
        index: WordIndex | None = None,
        spans: TypeSpans | None = None,
        *,
        lower: bool = True,
    ) -> Scanned:
        """Cut ``texts``, results of :meth:`normalise`, into tokens.

        ``index``: finds words, in lower case or as they are written (``lower`` False). ``spans``: tokens that were
        found before.
        """
        table = load_table(self._kind, self._hyphens, lower=lower, copied=self._copied)
        index = _index_nothing() if index is None else index
        scanned = scan(texts, table, index, spans)
        if not (is_run := scanned.is_run).any():
            return scanned
        # Every word of a run becomes a span, and every span stays one.
        runs = scanned.cut(is_run).dictionary_encode()
        cuts = [[len(word.encode()) for word in cut_run(run, self._kind)] for run in runs.dictionary.to_pylist()]
        ends = [np.array([*accumulate(lengths)], np.int64) for lengths in cuts]
        which = runs.indices.to_numpy()
        counts = np.ones(len(is_run), np.int64)
        counts[is_run] = np.array([len(lengths) for lengths in cuts])[which]
        rows = np.repeat(np.arange(len(is_run)), counts)
        stops = scanned.ends[rows].astype(np.int64)
        stops[is_run[rows]] = np.concatenate([ends[run] for run in which]) + scanned.starts[rows[is_run[rows]]]
        starts = scanned.starts[rows].astype(np.int64)
        inside = np.flatnonzero(rows[1:] == rows[:-1]) + 1
        starts[inside] = stops[inside - 1]
        stays = is_run[rows] | (scanned.kinds[rows] != A_WORD)
        kept = np.concatenate([[0], np.cumsum(stays)])[np.concatenate([[0], np.cumsum(counts)])[scanned.offsets]]
        return scan(texts, table, index, TypeSpans(starts[stays], stops[stays], scanned.kinds[rows][stays], kept))


@cache
def _index_nothing() -> WordIndex:
    return WordIndex(pa.array([], pa.string()))


def fold_words(words: pa.StringArray) -> pa.StringArray:
    """Convert words to the form in which they are looked up: lower case, with the apostrophe U+2019 as ``'``."""
    return pc.utf8_lower(straighten_apostrophes(words))


def straighten_apostrophes(words: pa.StringArray) -> pa.StringArray:
    """Replace the apostrophe U+2019 by ``'``, and keep the case."""
    return pc.replace_substring(words, "\u2019", "'")
