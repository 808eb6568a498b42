"""docs/types.md says of classes, sets and costs what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wordveil.text.types.classes import TokenType, TypeAction
from wordveil.text.types.lists import LANGUAGES, PublicLists
from wordveil.text.types.shapes import DEFAULTS
from wordveil.text.types.surrogates import set_size

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "types.md").read_text("utf-8")
SECTION = PAGE.split("## Classes and their sets")[1].split("\n## ")[0]
ROWS = {
    row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (yes|no) \| (.+) \| ([\d,]+) \|$", SECTION, re.MULTILINE)
}


def test_every_class_and_action_is_listed():
    assert list(ROWS) == [str(kind) for kind in TokenType]
    assert re.findall(r"^\| `(\w+)` \|", PAGE.split("## What happens")[1].split("\n## ")[0], re.MULTILINE) == list(
        TypeAction
    )


@pytest.mark.parametrize("kind", list(TokenType))
def test_sizes_are_those_of_the_sets(kind):
    resample, _, size = ROWS[kind]
    assert (resample == "yes") == (kind in DEFAULTS)
    assert int(size.replace(",", "")) == set_size(kind, TypeAction.SURROGATE, "", PublicLists.load("en"))


def test_what_is_said_of_shapes_and_lists():
    lists = PublicLists.load("en")
    for shape, size in (("0", "ten"), ("00", "90"), ("0,000", "9,000")):
        number = 10 if size == "ten" else int(size.replace(",", ""))
        assert set_size(TokenType.NUMBER, TypeAction.RESAMPLE, shape, lists) == number
    assert "`00` has 90, `0,000` has 9,000" in PAGE
    assert f"{', '.join(LANGUAGES[:-1])} and {LANGUAGES[-1]}" in PAGE
    assert f"Portuguese has {len(PublicLists.load('pt').surnames)}\nsurnames" in PAGE


def test_costs_are_those_measured():
    measured = json.loads((ROOT / "benchmarks" / "results" / "type_values.json").read_text("utf-8"))
    plain, shaped = measured["surrogate"], measured["resample"]
    text = " ".join(PAGE.split())
    assert f"finding names takes {measured['names']['names_ns_a_word']:.0f} ns a word" in text
    assert (
        f"A shape takes {plain['shapes_ns_a_token']:.0f} ns a token where none shows and "
        f"{shaped['shapes_ns_a_token']:.0f} ns under `resample`; a value takes {plain['values_ns_a_token']:.0f} ns and "
        f"{shaped['values_ns_a_token']:.0f} ns."
    ) in text
