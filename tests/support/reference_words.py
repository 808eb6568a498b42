"""What the tokeniser must give, by regular expressions (RE2): slow, and the definition of a word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.text.characters import COPYABLE
from wordveil.text.choices import TokeniserKind
from wordveil.text.tokeniser import cut_run

SEGMENTED = ("Han", "Hiragana", "Katakana", "Bopomofo")
SPACELESS = (*SEGMENTED, "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese", "Yi")
RUN_SIGNS = "\u3006\u3007\u3031-\u3035\u30fc\uff70"
PLACEHOLDER = "\x02"
"""Stands for a token that is found already."""


def letter_of(scripts: tuple[str, ...]) -> str:
    return "(?:" + "|".join(rf"[^\P{{L}}\P{{{script}}}]" for script in scripts) + ")"


def not_of(scripts: tuple[str, ...]) -> str:
    return "".join(rf"\p{{{script}}}" for script in scripts)


def word_pattern(kind: str, hyphens: str, *, copied: bool) -> str:
    symbol = rf"[^{COPYABLE}\p{{Cc}}\p{{Cf}}\p{{L}}\p{{M}}\p{{N}}]" if copied else r"[^\s\S]"
    inner = "'\u2019" if hyphens == "split" else "'\u2019\u2010-"
    if kind == TokeniserKind.WHITESPACE:
        return rf"{PLACEHOLDER}|[^{PLACEHOLDER}\p{{Z}}\s]+"
    letter = rf"(?:[\p{{L}}\p{{M}}\p{{N}}]|{symbol})"
    alone = PLACEHOLDER
    if kind == TokeniserKind.CHARACTERS:
        letter = rf"(?:[\p{{M}}\p{{N}}]|{symbol}|[^\P{{L}}{not_of(SPACELESS)}])"
        alone = rf"{PLACEHOLDER}|{letter_of(SPACELESS)}\p{{M}}*"
    elif kind != TokeniserKind.WORDS:
        letter = rf"(?:\p{{M}}|{symbol}|[^\P{{N}}{RUN_SIGNS}]|[^\P{{L}}{not_of(SEGMENTED)}{RUN_SIGNS}])"
    return f"{alone}|{letter}+(?:[{inner}]{letter}+)*"


def split(texts: list[str], pattern: str) -> list[list[str]]:
    """What is between matches and the matches, in turn."""
    marked = pc.replace_substring_regex(pa.array(texts, pa.string()), f"({pattern})", "\x01\\1\x01")
    return [text.split("\x01") for text in marked.to_pylist()]


def cut_pieces(texts: list[str], kind: str, hyphens: str, *, copied: bool = False) -> list[list[str]]:
    """Gaps and words of each text, in turn; none has U+0001."""
    pattern = word_pattern(kind, hyphens, copied=copied)
    if kind not in (TokeniserKind.CHINESE, TokeniserKind.JAPANESE):
        return split(texts, pattern)
    run = rf"(?:(?:{letter_of(SEGMENTED)}|[{RUN_SIGNS}])\p{{M}}*)+"
    parts = split(texts, run)
    between = iter(split([part for some in parts for part in some[::2]], pattern))
    pieces = []
    for some in parts:
        marked = ""
        for number, part in enumerate(some):
            words = [f"\x01{word}\x01" for word in cut_run(part, TokeniserKind(kind))] if number % 2 else None
            marked += "\x01".join(next(between)) if words is None else "".join(words)
        pieces.append(marked.split("\x01"))
    return pieces


def are_refused(texts: list[str], kind: str) -> list[bool]:
    """Whether the tokeniser does not segment a script of a text."""
    if kind in (TokeniserKind.CHARACTERS, TokeniserKind.WHITESPACE):
        return [False] * len(texts)
    scripts = SPACELESS if kind == TokeniserKind.WORDS else SPACELESS[len(SEGMENTED) :]
    return list(pc.match_substring_regex(pa.array(texts, pa.string()), letter_of(scripts)).to_pylist())


def find_case(words: pa.StringArray) -> np.ndarray:
    """0 in lower case, 1 with a first capital, 2 in capitals (of several letters)."""
    first = np.asarray(pc.utf8_is_upper(pc.utf8_slice_codeunits(words, 0, 1)))
    whole = np.asarray(pc.utf8_is_upper(words)) & (np.asarray(pc.utf8_length(words)) > 1)
    return np.where(whole, 2, np.where(first, 1, 0))
