"""Texts that a policy must not tell apart, random strings from a seed, and names that act on whoever prints them."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np

# As they may lie in a file: not all of them can be read.
HOSTILE: dict[str, bytes | None] = {
    "null": None,
    "invalid utf-8": b"the cat \xff\xfe",
    "cut within a character": "the été".encode()[:-1],
    "a surrogate in bytes": b"the \xed\xa0\xbd cat",
    "an overlong zero": b"the \xc0\x80 cat",
    **{
        name: text.encode()
        for name, text in {
            "empty": "",
            "a space": " ",
            "white space": " \t\r\n\v\f\x85\u00a0\u2003\u2028\u2029\u3000",
            "punctuation": "...!?\u2026\u00bf\u00a1\u2014()[]{}\u00ab\u00bb",
            "controls": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
            "the zero character": "the\0cat\0",
            "the tokeniser's mark": "\x01",
            "the codec's marks": "\x010\x011\x012 the\x01cat",
            "a byte order mark": "\ufeffthe cat\ufeff",
            "combining marks alone": "\u0301\u0308\u0323",
            "many combining marks": "a" + "\u0301" * 3000,
            "composed": "\u00e9t\u00e9 \u1e69 \u212b",
            "decomposed": "e\u0301te\u0301 s\u0323\u0307 A\u030a",
            "escapes that look like surrogates": "\\ud83d\\ude00 &#xD83D; %ED%A0%BD \\x00 \\u0000",
            "right to left": (
                "\u202e\u05e9\u05dc\u05d5\u05dd \u200f\u0627\u0644\u0633\u0644\u0627\u0645\u202c \u2067the cat\u2069"
            ),
            "joined emoji": (
                "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 "
                "\U0001f1eb\U0001f1f7 \U0001f44d\U0001f3fd \u2764\ufe0f"
            ),
            "chinese": "\u6f22\u5b57\u4ec5\u9650\u5185\u90e8",
            "japanese among words": "the cat \u30ab\u30bf\u30ab\u30ca\u3072\u3089\u304c\u306a on",
            "thai": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
            "hangul": "\uac00\ub098\ub2e4 \u1112\u1161\u11ab\u1100\u1173\u11af",
            "an endless word": "x" * 100_000,
            "an endless hard word": "\U00010400" * 25_000,
            "thousands of words": "the cat sat on the mat " * 700,
            "thousands of unknown words": "zzqx vvqx " * 2000,
            "thousands of ideographs": "\u6f22\u5b57" * 2000,
            "digits of all scripts": " ".join(re.findall(r"\d", "".join(map(chr, range(sys.maxunicode + 1))))),
            "numbers": "42 4.2 1e9 \u00bd \u2167 \u00b2 \u2460 x9 0x1F 555-0100",
            "casing": (
                "STRASSE stra\u00dfe \u1e9e \u0130 \u0131 I\u0307 \u01c5 \u01c4 \u01c6 \ufb01 \u03a3\u03c3\u03c2 \u0149"
            ),
            "shouted": "THE CAT SAT ON THE MAT",
            "apostrophes": "don't don\u2019t 'tis rock'n'roll don''t '' \u2019 ' l'\u00e9t\u00e9",
            "hyphens": "well-known well--known -well known- well\u2010known well\u2011known - \u2010-\u2010",
            "words": "the cat sat on the mat and the dog",
            "stop-words alone": "the on of the",
            "one word": "cat",
            "unknown words": "zqxcanaryazqx zqxcanarybzqx",
            "names of symbols": "<pad> <unk> [PAD] null None NaN <s> </s> __text __reason",
            "code": '\'; DROP TABLE records; -- "quoted" {json: [1]} <b>&amp;</b> $HOME `id`',
            "private and unassigned": "\ue000\U000f0000 \u0378 \ufffe\uffff \U0010ffff",
            "variation selectors": "\u6f22\ufe00 a\U000e0100 \u180b",
            "what is not seen": "the\u200bcat\u200dsat\u2060on\u00admat\u034f",
        }.items()
    },
}
MOST_BYTES = 60_000
"""A longest text by which some of :data:`HOSTILE` are too long."""
NAMES = {
    "[/red]": "[/red]",
    "[conceal]x": "[conceal]x",
    "[link=http://evil]y": "[link=http://evil]y",
    "[batch]": "[batch]",
    ":smile:": ":smile:",
    '=HYPERLINK("x")': '=HYPERLINK("x")',
    "\x1b]8;;http://evil\x07z": r"\x1b]8;;http://evil\x07z",
    "\x9b31m\x7f\x08": r"\x9b31m\x7f\x08",
    "a\r\nwordveil: done": r"a\r\nwordveil: done",
    "\u202eb\u2066c\u200e\u061c": r"\u202eb\u2066c\u200e\u061c",
    "d\u2028e\u2029f\x85": r"d\u2028e\u2029f\x85",
}
"""Names that act on a terminal, a spreadsheet or a page, and how each is shown to people."""
# Where the terminal's cursor goes and which colour follows, as the command line writes them itself.
_OWN = re.compile(r"\r?\x1b\[[0-9;?]*[A-Za-z]")


def show_on_terminal(written: str) -> str:
    """What people see of an output. Fails where a character of it acts on the terminal."""
    shown = _OWN.sub("", written)
    acting = {character for character in shown if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {
        "\n"
    }
    assert not acting, (acting, shown)
    return shown


@cache
def _alphabets() -> tuple[str, ...]:
    """List characters of one kind each, one string for every general category, and pieces to use as they are."""
    kinds: dict[str, list[str]] = {}
    for point in [
        *range(0x3400),
        *range(0x4E00, 0x4E80),
        *range(0xA000, 0xA100),
        *range(0xF900, 0x10400),
        *range(0x1F300, 0x1F700),
    ]:
        kinds.setdefault(unicodedata.category(chr(point)), []).append(chr(point))
    kinds.pop("Cs", None)
    return (
        *("".join(kind) for kind in kinds.values()),
        "abcdefghijklmnopqrstuvwxyz",
        "the cat",
        "\u6f22\u5b57",
        "\x00\x01\x02 ",
    )


def random_texts(count: int, seed: int, words: Sequence[str]) -> list[bytes]:
    """Strings of a few kinds of characters and of ``words``, short ones and long ones; some are damaged."""
    rng = np.random.default_rng(seed)
    return [_random_text(rng, words) for _ in range(count)]


def _random_text(rng: np.random.Generator, words: Sequence[str]) -> bytes:
    alphabets = _alphabets()
    chosen = [alphabets[index] for index in rng.integers(0, len(alphabets), rng.integers(1, 4))]
    separator = ("", " ", "\u00a0", "-", "'", "\n")[rng.integers(0, 6)]
    pieces = []
    for _ in range(int(rng.choice([0, 1, 2, 5, 12, 60]))):
        if rng.random() < 0.3:
            pieces.append(words[rng.integers(0, len(words))])
        else:
            alphabet = chosen[rng.integers(0, len(chosen))]
            pieces.append("".join(alphabet[index] for index in rng.integers(0, len(alphabet), rng.integers(1, 9))))
    text = separator.join(pieces).encode()
    return text[: rng.integers(0, len(text) + 1)] if rng.random() < 0.03 else text
