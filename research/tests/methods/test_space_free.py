"""Features are those of the paper's definition, however texts are batched."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from wordveil_research.methods import space_free
from wordveil_research.methods.space_free import FeatureCounts, count_features, find_features

# At each character: four without a space, or a whole word of fewer.
DEFINITION = re.compile(r"(?=(\S{4}|(?<!\S)\S{1,3}(?!\S)))")


def code(feature: str) -> int:
    """Return the number of a feature: 16 bits a character."""
    number = sum(min(ord(sign), 0xFFFF) << (48 - 16 * place) for place, sign in enumerate(feature))
    return number - 2**64 if number >= 2**63 else number


def made_texts(count: int) -> list[str]:
    rng = np.random.default_rng(3)
    signs = np.array([*"aAbcé,.'\u3042\u8010\u00a0\n\t \u2003 İ", " ", " ", "\U0001f642", "\U0001f680"])
    return ["".join(rng.choice(signs, rng.integers(0, 60))) for _ in range(count)]


def expected(texts: list[str], *, lower: bool) -> list[tuple[int, int]]:
    return [
        (place, code(feature))
        for place, text in enumerate(texts)
        for feature in DEFINITION.findall(text.lower() if lower else text)
    ]


@pytest.mark.parametrize("batch", [1, 50, 2**22])
@pytest.mark.parametrize("lower", [True, False])
def test_features_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch, batch: int, lower: bool):
    monkeypatch.setattr(space_free, "_BATCH", batch)
    texts = made_texts(200)
    found = [
        pair
        for numbers, codes in find_features(texts, lower=lower)
        for pair in zip(numbers.tolist(), codes.tolist(), strict=True)
    ]
    assert found == expected(texts, lower=lower)


def test_the_example_of_a_word_of_four():
    (numbers, codes), *rest = find_features(["The cats sat abed"], lower=False)
    assert codes.tolist() == [code(feature) for feature in ("The", "cats", "sat", "abed")]
    assert numbers.tolist() == [0, 0, 0, 0]
    assert rest == []


def test_spaces_are_those_of_python():
    spaces = {chr(point) for point in space_free._SPACES}
    assert spaces - {"\0"} == {chr(point) for point in range(2**16) if chr(point).isspace()}


@pytest.mark.parametrize("batch", [40, 2**22])
def test_counts_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch, batch: int):
    monkeypatch.setattr(space_free, "_BATCH", batch)
    texts = made_texts(150)
    pairs = expected(texts, lower=True)
    counts, by_text = Counter(number for _, number in pairs), Counter(number for _, number in set(pairs))
    found = FeatureCounts.of(texts, lower=True)
    assert found.codes.tolist() == sorted(counts)
    assert found.counts.tolist() == [counts[number] for number in sorted(counts)]
    assert found.texts.tolist() == [by_text[number] for number in sorted(counts)]
    kept = found.take_most_frequent(20)
    assert kept.codes.tolist() == sorted(sorted(counts, key=lambda number: (-counts[number], number))[:20])
    table = count_features(texts, kept.codes, lower=True).toarray()
    both = Counter(pairs)
    assert table.tolist() == [[both[place, number] for number in kept.codes.tolist()] for place in range(len(texts))]


def test_no_texts_have_no_features():
    assert len(FeatureCounts.of([], lower=True).codes) == 0
    assert len(FeatureCounts.of(["", " \n"], lower=True).codes) == 0
    assert count_features([], np.array([1]), lower=True).shape == (0, 1)
    assert count_features(["abcd"], np.array([], np.int64), lower=True).shape == (1, 0)
