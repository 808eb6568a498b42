"""The public lists of every language: complete, sorted, the same bytes again, and refused when they are damaged."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from wordveil.text.tokeniser import fold_words
from wordveil.text.types.lists import (
    CAPITALISED,
    CERTAIN,
    FIRST,
    LANGUAGES,
    LOCATIVE,
    LOOK_UP,
    MOSTLY,
    NATION,
    NO_NAME,
    ORDINARY,
    PLACE,
    RARE,
    SUR,
    TITLE,
    PublicLists,
)

SMALL = (
    "wordveil-lists\t1\nlanguage\ten\nfirst_name\tAnn\t0\nsurname\tSmith\t2\nplace\tRome\t0\nword\tcat\nemoji\t😀\n"
    "title\tmr\nlocative\tin\n"
)


@pytest.fixture(scope="module", params=LANGUAGES)
def lists(request):
    return PublicLists.load(request.param)


def test_the_bytes_come_back(lists):
    again = PublicLists.from_bytes(lists.serialise())
    assert again.serialise() == lists.serialise()
    assert again.digest == lists.digest == hashlib.sha256(lists.serialise()).hexdigest()
    assert again.language == lists.language


def test_names_are_words_in_their_usual_case(lists):
    nations = (lists.nationalities, 350 if lists.language == "en" else 0)
    for array, least in ((lists.first_names, 300), (lists.surnames, 100), (lists.places, 1500), nations):
        names = array.to_pylist()
        assert len(names) >= least
        assert names == sorted(set(names))
        assert len({name.lower() for name in names}) == len(names)
        assert all(name.isalpha() and name[0].isupper() and len(name) > 1 for name in names)
        assert all(unicodedata.is_normalized("NFC", name) for name in names)


def test_words_and_emoji_fit_addresses_and_texts(lists):
    sizes = ((lists.words, 300, "[a-z]{3,10}"), (lists.plain_first_names, 100, "[a-z]+"))
    for array, least, pattern in (*sizes, (lists.plain_surnames, 100, "[a-z]+")):
        assert len(array) >= least
        assert all(re.fullmatch(pattern, word) for word in array.to_pylist())
    assert len(lists.emoji) > 1000
    assert all(len(sign) == 1 and unicodedata.category(sign) in {"So", "Sm", "Po"} for sign in lists.emoji.to_pylist())


def test_every_name_is_found_by_its_folded_form(lists):
    table = lists.names
    roles = ((lists.first_names, FIRST), (lists.surnames, SUR), (lists.places, PLACE), (lists.nationalities, NATION))
    for array, bit in (*roles, (lists.titles, TITLE), (lists.locatives, LOCATIVE)):
        numbers = table.index.numbers(fold_words(array))
        assert np.all(numbers >= 0)
        assert np.all(table.roles[numbers] & bit)
    assert table.index.numbers(pa.array(["", "xqzzk"])).tolist() == [-1, -1]


def test_words_are_matched_in_any_case_and_with_their_ending(lists):
    table = lists.names
    names = lists.surnames.filter(pc.string_is_ascii(lists.surnames))
    numbers = table.index.numbers(fold_words(names)).tolist()
    for words in (names, pc.utf8_upper(names), pc.utf8_lower(names)):
        assert table.match(words).tolist() == [*numbers, LOOK_UP]
    owned = names.filter(pc.greater(pc.utf8_length(names), 1))
    assert table.match(pc.binary_join_element_wise(owned, "'s", "")).tolist() == table.match(owned).tolist()
    assert table.match(pa.array(["xqzzk", "", "'s", "é"])).tolist() == [NO_NAME, NO_NAME, NO_NAME, LOOK_UP, LOOK_UP]
    assert table.match(pa.array(["a", "B"])).tolist() == [LOOK_UP, LOOK_UP, LOOK_UP], "a letter may be an initial"


LEVELS = {
    ("en", CERTAIN): "alice houston williams", ("en", RARE): "john peter", ("en", MOSTLY): "rose smith",
    ("en", ORDINARY): "will young reading", ("en", CAPITALISED): "may august french welsh",
    ("de", CAPITALISED): "wolf", ("de", CERTAIN): "münchen",
}  # fmt: skip


def test_levels_of_names():
    for (language, level), names in LEVELS.items():
        table = PublicLists.load(language).names
        assert set(table.levels[table.index.numbers(pa.array(names.split()))]) == {level}, names
    table = PublicLists.load("en").names
    nations = table.index.numbers(pa.array(["austrian", "french", "welsh", "danish", "polish"]))
    assert table.nation_levels[nations].tolist() == [CERTAIN, CERTAIN, RARE, RARE, ORDINARY]
    words = table.index.numbers(pa.array(["the", "her", "so", "an", "what"]))
    assert not (table.roles[words] & (FIRST | SUR | PLACE | NATION)).any()


def test_only_english_lists_nationalities():
    assert [language for language in LANGUAGES if len(PublicLists.load(language).nationalities)] == ["en"]
    nations = PublicLists.load("en").nationalities.to_pylist()
    assert {"Austrian", "Austrians", "French", "Dutch", "Swiss", "Japanese", "Dutchmen", "Pole"} <= {*nations}


def test_an_unknown_language_names_those_there_are():
    with pytest.raises(ValueError, match=r"no public lists for 'xx'\. There are lists for de, en,"):
        PublicLists.load("xx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "not UTF-8"),
        (b"", "first line"),
        (SMALL[:-1].encode(), "first line"),
        (SMALL.replace("lists\t1", "lists\t2").encode(), "first line"),
        (SMALL.replace("place\tRome\t0\n", "").encode(), "no place"),
        (SMALL.replace("Rome\t0", "Rome\t7").encode(), "level"),
        (SMALL.replace("Rome\t0", "Rome").encode(), "Line 5 "),
        ((SMALL + "nationality\tSwiss\t5\n").encode(), "level"),
        ((SMALL + "nationality\tSwiss\n").encode(), "Line 10 "),
        (SMALL.replace("title", "town").encode(), "Line 8 "),
    ],
)
def test_other_bytes_are_refused(content, message):
    with pytest.raises(ValueError, match=message):
        PublicLists.from_bytes(content)
