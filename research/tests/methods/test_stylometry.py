"""Features of style are what their definitions say, and the page has them all."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from support.repository import ROOT
from wordveil_research.methods.stylometry import (
    FEATURES,
    FUNCTION_WORDS,
    NAMES,
    PUNCTUATION,
    SPECIAL,
    VERSION,
    find_distances,
    measure_style,
    measure_style_change,
)

PAGE = ROOT / "research" / "docs" / "style-features.md"
TEXT = 'Dear Ann,\n\nThe cat saw the DOG; it\'s 10% "odd".\tWho knows?\n> quoted line\n   \nMail a.b@c.org now'


def style_of(text: str) -> dict[str, float]:
    return dict(zip(NAMES, measure_style([text])[0].tolist(), strict=True))


def test_features_are_what_they_say():
    found, size = style_of(TEXT), len(TEXT)
    words = ["dear", "ann", "the", "cat", "saw", "the", "dog", "it's", "10", "odd", "who", "knows", "quoted", "line"]
    words += ["mail", "a", "b", "c", "org", "now"]
    wanted = {
        "characters": size,
        "letters": sum(map(str.isalpha, TEXT)) / size,
        "upper-case": sum(map(str.isupper, TEXT)) / size,
        "digits": 2 / size,
        "white-space": sum(map(str.isspace, TEXT)) / size,
        "tabs": 1 / size,
        "letter-d": TEXT.lower().count("d") / size,
        "special-%": 1 / size,
        "special->": 1 / size,
        "sign-;": 1 / size,
        'sign-"': 2 / size,
        "words": len(words),
        "short-words": sum(len(word) <= 3 for word in words) / len(words),
        "characters-in-words": sum(map(len, words)) / size,
        "word-length": np.mean([len(word) for word in words]),
        "length-3": sum(len(word) == 3 for word in words) / len(words),
        "distinct-words": 19 / 20,
        "once": 18 / 20,
        "twice": 1 / 20,
        "yule-k": 10_000 * (18 + 4 - 20) / 20**2,
        "simpson-d": 2 / (20 * 19),
        "sichel-s": 1 / 19,
        "honore-r": 100 * np.log(20) / (1 - 18 / 19),
        "brunet-w": 20 ** (19**-0.172),
        "word-the": 2 / 20,
        "word-it's": 1 / 20,
        "word-yours": 0,
        "lines": 6,
        "blank-lines": 2 / 6,
        "quoted-lines": 1 / 6,
        "sentences": 2,
        "paragraphs": 3,
        "sentence-characters": size / 2,
        "sentence-words": 10,
        "paragraph-sentences": 2 / 3,
        "paragraph-words": 20 / 3,
        "paragraph-characters": size / 3,
        "greeting": 1,
        "addresses": 1,
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_nothing_of_an_empty_text():
    assert not measure_style([""]).any()
    assert measure_style([]).shape == (0, len(FEATURES))
    for text in (" \n", "?!", "\U0001f600", "once"):
        assert np.isfinite(measure_style([text])).all()
    assert style_of("once")["honore-r"] == 0
    assert style_of("two words")["honore-r"] == pytest.approx(100 * np.log(2) * 2)


def test_the_set_of_features_has_a_version():
    content = "\n".join(f"{feature.name}: {feature.definition}" for feature in FEATURES)
    assert len(set(NAMES)) == len(NAMES)
    assert (VERSION, hashlib.sha256(content.encode()).hexdigest()[:16]) == (1, "d8b2c4a2468faaac")


def test_the_page_has_every_feature():
    page = PAGE.read_text("utf-8")
    assert f"Version {VERSION}, {len(FEATURES)} features" in page
    families = Counter((feature.group, feature.family, feature.definition) for feature in FEATURES)
    rows = [f"| {group} | `{family}` | {count} | {text} |" for (group, family, text), count in families.items()]
    assert [line for line in page.splitlines() if line.startswith("| ") and "`" in line] == rows
    for words in (f"`{' '.join(SPECIAL)}`", f"`{' '.join(PUNCTUATION)}`", ", ".join(FUNCTION_WORDS) + "."):
        assert words in page.replace("\n", " ")


def test_distances_are_in_standard_deviations():
    originals = np.array([[0.0, 1.0, 5.0], [2.0, 1.0, 7.0]])
    sanitised = np.array([[3.0, 9.0, 5.0], [2.0, 1.0, 3.0]])
    distances, features = find_distances(originals, sanitised)
    assert features == 2  # the middle one never differs
    assert distances == pytest.approx([3.0, 4.0])


def test_style_that_changes_more_is_farther():
    texts = [
        f"The {noun} was here; I'm sure, {noun}! It's so." * (1 + row % 3)
        for row, noun in enumerate(["cat", "Dog", "owl", "fox"] * 5)
    ]
    same, lower, other = (
        measure_style_change(texts, changed, "release")[0]
        for changed in (texts, [text.lower() for text in texts], ["words without any mark"] * 20)
    )
    assert same.value == 0
    assert 0 < lower.value < other.value
    assert lower.chance == same.chance > 0
    assert other.low <= other.value <= other.high
    with pytest.raises(ValueError, match="as many originals"):
        measure_style_change(texts, texts[:1], "release")
