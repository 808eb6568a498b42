"""docs/types.md lists the classes, sets and shapes of the code."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from support.repository import ROOT
from wordveil.text.scanner import cut_strings
from wordveil.text.types.classes import CLASSES, NAME_TYPES, TYPES, TypeAction
from wordveil.text.types.shapes import find_shapes
from wordveil.text.types.typed import Recogniser

PAGE = (ROOT / "docs" / "types.md").read_text("utf-8")
SECTION = PAGE.split("## Classes and their sets")[1].split("\n## ")[0]
ROWS = {
    row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (yes|no) \| (.+) \| ([\d,]+) \|$", SECTION, re.MULTILINE)
}


def test_every_class_and_action_is_listed():
    assert list(ROWS) == list(TYPES)
    assert re.findall(r"^\| `(\w+)` \|", PAGE.split("## What happens")[1].split("\n## ")[0], re.MULTILINE) == list(
        TypeAction
    )


SHAPES = PAGE.split("## Shapes")[1].split("\n## ")[0]
WRITTEN: dict[str, set[str]] = {}
EXAMPLES: list[tuple[str, str, str]] = []
for names, written, example, shape in re.findall(r"^\| (`.+`|) \| (.*) \| `(.+)` \| `(.+)` \|$", SHAPES, re.MULTILINE):
    if names:
        latest = re.findall(r"`(\w+)`", names)
    for name in latest:
        WRITTEN.setdefault(name, set()).update(re.findall(r"`([^`]+)`", written))
        EXAMPLES.append((name, example, shape))
WRITTEN["amount"] |= set(re.findall(r"`([^`]+)`", SHAPES.split("Currencies are")[1].split("\n\n")[0]))
# What a shape has in the place of digits, letters and names.
STANDS = {"date": "Month|Mon|th|[0 ]", "number": "0|th"}
# Beside digits and signs, what the pass that finds such tokens looks for, so that texts made of them have all forms.
_JOINED = {
    "phone": "(212)|555-0147| ext. 12|ext12|x12| X 12|Ext.|+44 20 7946 0958|0170/12345|212.",
    "date": "Aug.|August|may|of|3rd|2004|23|23.11.2026|11/23/26|2026-11-23|-Sep-|, |3 of May",
    "time": "2026-11-23T|14:30|2:30|:05|.123|,5|Z|+01:00|-0700| pm|AM|a.m.| P.M.|pM",
}
PIECES = {kind: pieces.split("|") for kind, pieces in _JOINED.items()} | {
    "number": ["st", "th", "e", "E", "3,500", "1'000", "1\u2019000", "1,5", "1/2", "\u2212"],
    "amount": ["US$", "HK$", "NZ$", "A$", "C$", "R$", "S$", *(sign for sign in sorted(WRITTEN["amount"]))],
    "card": ["4111 1111 1111 1111", "5500-0000-0000-0004", "4111111111111111"],
    "account": ["DE89 3704 0044 0532 0130 00", "123-45-6789", "AB12345678", "978-0-306-40615-7", "99999999"],
    "ip": ["10.1.2.3", "fe80::1", "::1"],
    "first_name": ["Alice", "BOB", "'s", "'S", "\u2019s", "\u2019S", "alice"],
}


def find_shown(kind: str, texts: list[str]) -> set[str]:
    """The shapes of all tokens of a class in texts, whatever the pass takes them for."""
    array = pa.array(texts)
    if kind in NAME_TYPES:
        tokens = array
    else:
        spans = Recogniser([kind]).find(array)
        tokens = cut_strings(array, spans.starts, spans.ends)
    kinds = np.full(len(tokens), TYPES.index(kind), np.int8)
    return set(find_shapes(kinds, {kind: TypeAction.RESAMPLE}, tokens).to_pylist())


@pytest.mark.parametrize("kind", sorted({*WRITTEN} - {"markup", "surname", "place", "nationality"}))
def test_the_page_lists_all_that_is_written_again(kind):
    rng = np.random.default_rng(5)
    pieces = [*PIECES.get(kind, CLASSES[kind].examples), *"0123 .,-+/()", " "]
    drawn = rng.choice(np.array(pieces, object), (20_000, 8))
    texts = ["".join(row[: 1 + number % 8]) for number, row in enumerate(drawn)]
    shapes = find_shown(kind, texts)
    sign = "|".join(re.escape(text) for text in sorted(WRITTEN[kind], key=len, reverse=True))
    usual = "[0A]" if CLASSES[kind].shape.form == "code" else "0"
    known = re.compile(f"(?:{STANDS.get(kind, usual)}| |{sign or '0'}|v[46]|AA|Aa|a)*")
    assert not [shape for shape in shapes if not known.fullmatch(shape)]
    assert not [text for text in WRITTEN[kind] if not any(text in shape for shape in shapes)]
