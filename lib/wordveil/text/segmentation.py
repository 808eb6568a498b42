"""Segmentation of Chinese and Japanese into words, which are written without spaces.

A *run* is a sequence of letters of Han, Hiragana, Katakana and Bopomofo, with their marks. A dictionary cuts each run
by itself, so the words of a run depend on it alone. The words of a run, joined, are the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from wordveil.text.choices import TokeniserKind

_BLOCK = 1000
"""Number of characters that are cut at once: a longer run is cut into blocks first."""
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
    return _load_chinese() if kind == TokeniserKind.CHINESE else _load_japanese()


def _load_chinese() -> Cut:
    """Load jieba's dictionary, with its hidden Markov model for words that the dictionary lacks."""
    import rjieba

    return lambda run: list(rjieba.cut(run, True))


def _load_japanese() -> Cut:
    """Load Sudachi's small dictionary, with the shortest of its units: those of UniDic."""
    from sudachipy import Dictionary, SplitMode

    tokeniser = Dictionary(dict="small").tokenizer(mode=SplitMode.A)
    return lambda run: [word.surface() for word in tokeniser.tokenize(run)]
