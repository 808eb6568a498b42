"""Names, and what looks like them."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.tokeniser import Tokeniser, fold_words
from wordveil.text.types.classes import TYPES
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.names import find_names

TOKENISER = Tokeniser()
SHORT = {"first_name": "F", "surname": "S", "place": "P", "nationality": "N"}


def kinds_of(texts, language="en"):
    pieces = TOKENISER.cut_words(TOKENISER.normalise(pa.array(texts, pa.string())))
    return pieces, find_names(pieces, LISTS[language])


LISTS = {language: PublicLists.load(language) for language in ("en", "de", "fr", "es")}
VOCABULARY = pa.array(
    ["alice", "alice's", "paris", "mrs", "in", "will", "will's", "iris", "i", "a", "s", "as", "k", "is", "é", "willis"]
)


def names(text, language="en"):
    pieces, kinds = kinds_of([text], language)
    return " ".join(
        f"{word}/{SHORT[TYPES[kind]]}" for word, kind in zip(pieces.words.to_pylist(), kinds, strict=True) if kind >= 0
    )


ENGLISH = [
    ("alice met ALICE and Alice", "alice/F ALICE/F Alice/F"),
    ("Alice's cat, and Alice’s dog", "Alice's/F Alice’s/F"),
    ("the houses of peters and johns", ""),
    # John is seldom a word: a capital is enough, also first in a sentence.
    ("John came. Use the john.", "John/F"),
    # Rose has a capital mostly as a name, Will as another word.
    ("Will you go? Rose came. We will go, and I rose.", "Rose/F"),
    ("I saw Will and Rose there", "Will/F Rose/F"),
    ('He said: Young you? "Young" is a word.\nYoung ones', "Young/S"),
    ("WILL ROSE GRANT MARK", ""),
    ("Will Smith said so", "Will/F Smith/S"),
    ("In May we go. We go in May, in August, on Sunday.", ""),
    ("I met May Johnson and Mrs. May", "May/F Johnson/S May/S"),
    ("John F. Kennedy and George W. Bush", "John/F Kennedy/S George/F Bush/S"),
    ("Kennedy spoke to Mr Cook", "Kennedy/S Cook/S"),
    ("the cook saw a black smith near the bush", ""),
    ("from Reading to Paris, London and Texas", "Reading/P Paris/P London/P Texas/P"),
    ("reading in bed", ""),
    ("She lives in Georgia. Then Georgia Smith came.", "Georgia/P Georgia/F Smith/S"),
    ("Alice. Smith. Young", "Alice/F Smith/S"),
    ("Alice. Johnson", "Alice/F Johnson/S"),
    ("New things from the House of Lords", ""),
    ("the the the", ""),
    ("the ISA bus and MAX of eng, tew, but Jim and Max", "Jim/F Max/F"),
    ("JIM SMITH and AMY JOHNSON", "AMY/F JOHNSON/S"),
    ("Austrian and austrians, the Austrian's, AUSTRIANS", "Austrian/N austrians/N Austrian's/N AUSTRIANS/N"),
    # A verb first in a sentence, and with no capital; a fowl and a plant.
    ("Polish the table, polish the Polish table. A turkey and a swede, by a pole", "Polish/N"),
    # Written with a capital anyway: no surnames without a name beside them, but always nationalities.
    ("French, German and Dutch ships. English is spoken", "French/N German/N Dutch/N English/N"),
    ("We saw Anna French with Mrs. English and a Turk, Maria Turk", "Anna/F French/S English/S Turk/N Maria/F Turk/S"),
    ("He danced with a Dane in Jordan", "Dane/F Jordan/P"),
    ("", ""),
    # What stands beside a name of any level.
    ("signed by J. King, J.R.R. Hill and White, J.", "King/S Hill/S White/S"),
    ("So do I. Young men", ""),
    ("Name: smith\nPatient - King\nFrom: hill\nThe name of the hill", "smith/S King/S hill/S"),
    ("Smith called. Young said so. Young men", "Smith/S Young/S"),
    ("| King | 42 |\nYoung\t1\tyes\nHill\n(White)", "King/S Young/S Hill/S White/S"),
    # What has a capital anyway, months and ranks too: alone, first in a line, before a verb.
    ("King, John; Hill, Anna\nMay, Theresa", "King/S John/F Hill/S Anna/F May/S Theresa/F"),
    ("May said so. | May | 42 |\nMay", "May/F May/F May/F"),
    ("In May, Anna came. Early May was cold. May I?", "Anna/F"),
    # Function words, which are copied where they are none.
    ("Mr. So met Ms. An and Mrs. Few. Mr. And Mrs. King. Hi There", "So/S An/S Few/S King/S"),
    ("dear mr king, mrs may and ms. young", "king/S may/F young/S"),
    # Middle names do not end a name, nor do first names after a title that are surnames too.
    ("Martin Luther King, Jr. and Dr. Martin King", "Martin/F Luther/S King/S Martin/S King/S"),
    ("Senator Richard Lugarx spoke", "Richard/S Lugarx/S"),
    ("D'Angelo called O'BRIEN and O’NEIL", "D'Angelo/S O'BRIEN/S O’NEIL/S"),
    ("The Joneses and the Harrises' car", "Joneses/S Harrises/S"),
    ("Frau King, Señor Hill, Mme White, Hon. Young, Rep. Cook", "King/S Hill/S White/S Young/S Cook/S"),
    ('"king","john","42" and (\'hill\', \'anna\')', "king/S john/F hill/S anna/F"),
    ('We mark "the day". "Mark my word," he said. "A" (will) you', "Mark/F"),
    ("?name=mark+king&x=1", "mark/F king/S"),
    ("john dot king at mail dot org; john @ mail . org", "john/F king/S john/F"),
    ("Smith, John; YOUNG John; John KIM", "Smith/S John/F YOUNG/S John/F John/F KIM/S"),
    ("Smith, Jones and Brown. Young's car", "Smith/S Jones/S Brown/S Young's/S"),
    (
        "john.smith, j.white, john_king, hill_backup, smith,john,42",
        "john/F smith/S white/S john/F king/S hill/S smith/S john/F",
    ),
    ("and/or, he/she, brown-black", ""),
    ("John\nHill came. smith at mail dot org, look at the dot", "John/F Hill/S smith/S"),
    ("Dear king, dear smith", "smith/S"),
    ("The Smiths' house, Mary-King", "Smiths/S Mary/F King/S"),
    # Words that no list has.
    (
        "Dr. Qwerzu met Anna Qwerzu, J. Qwerzu and Qwerzu Johnson",
        "Qwerzu/S Anna/F Qwerzu/S Qwerzu/S Qwerzu/F Johnson/S",
    ),
    ("Anna van der Qwerzu and Osama bin Laden", "Anna/F Qwerzu/S Osama/F Laden/S"),
    ("O'Hara, O’Hara, McQwer and MacQwer, o'clock", "O'Hara/S O’Hara/S McQwer/S MacQwer/S"),
    ("Dr. The, Anna Said, Qwerzu came. The end", "Anna/F"),
    ("Hiroshi Sato met priya kumar and Farouk El-Baz", "Hiroshi/F Sato/S priya/F kumar/S Farouk/F Baz/S"),
]


def test_english():
    assert {text: names(text) for text, _ in ENGLISH} == dict(ENGLISH)


def test_other_languages():
    german = "Der Wolf und der Bauer sahen Herrn Bauer, Anna Wolf und Jürgen in München"
    assert names(german, "de") == "Bauer/S Anna/F Wolf/S Jürgen/F München/P"
    assert names("la rose de Amélie à Lyon", "fr") == "Amélie/F Lyon/P"
    assert names("la señora Flores vio flores en Sevilla con José", "es") == "Flores/S Sevilla/P José/F"
    assert names("der Austrian und der French", "de") == ""


def test_a_name_begins_anew_in_every_text():
    texts = TOKENISER.normalise(pa.array(["x Alice x", "met Alice", "May we go", "", "Will Smith"]))
    found = find_names(TOKENISER.cut_words(texts.slice(1)), LISTS["en"])
    assert (found >= 0).tolist() == [False, True, False, False, False, True, True]
    assert find_names(TOKENISER.cut_words(texts.slice(0, 0)), LISTS["en"]).tolist() == []


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_every_certain_name_is_found_in_any_case(language):
    lists = LISTS[language]
    arrays = (lists.first_names, lists.surnames, lists.places, lists.nationalities)
    for array, levels in zip(arrays, (*lists.name_levels, lists.nation_levels), strict=True):
        certain = array.filter(pa.array(levels == 0))
        # The highest level of a word's lists counts.
        sure = lists.names.levels[lists.names.index.numbers(fold_words(certain))] == 0
        usual = [name for name in certain.filter(pa.array(sure)).to_pylist() if len(name) > 3]
        for case in (str, str.lower, str.upper):
            cased = [case(name) for name in usual if case(name).lower() == name.lower()]
            _, kinds = kinds_of(cased, language)
            assert (kinds >= 0).all(), [word for word, kind in zip(cased, kinds, strict=True) if kind < 0]


def test_lists_without_nationalities_find_none():
    kept = [line for line in LISTS["en"].serialise().decode().splitlines(keepends=True) if "nationality" not in line]
    texts = pa.array(["French and Austrian ships. Maria Turk met a Turk from Jordan"])
    kinds = find_names(TOKENISER.cut_words(texts), PublicLists.from_bytes("".join(kept).encode()))
    assert [SHORT[TYPES[kind]] for kind in kinds if kind >= 0] == ["F", "S", "S", "P"]


@given(
    st.lists(
        st.lists(
            st.sampled_from([*"AaİKſ'’s. é-1\n", "alice", "Paris", "Mrs", "in", "WILL", "’S", "i̇ris"]), max_size=30
        ),
        max_size=4,
    )
)
@settings(max_examples=120, deadline=None)
def test_a_vocabulary_finds_the_same_names(pieces):
    """Words that it has are matched once, and others looked up. It has the names of the lists, and other words."""
    texts = TOKENISER.normalise(pa.array(["".join(text) for text in pieces], pa.string()))
    found = find_names(TOKENISER.cut_words(texts), LISTS["en"])
    scanned = TOKENISER.cut_words(texts, WordIndex(VOCABULARY))
    assert find_names(scanned, LISTS["en"], LISTS["en"].names.match(VOCABULARY)).tolist() == found.tolist()


@given(st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("AaSs'’. éÉŁ\n"), max_size=80), max_size=12))
@settings(max_examples=100, deadline=None)
def test_any_text_passes(texts):
    pieces, kinds = kinds_of(texts)
    assert len(kinds) == len(pieces.words)
    assert set(np.unique(kinds)) <= {-1, *map(TYPES.index, SHORT)}


@pytest.mark.parametrize("text", ["Alice " * 200_000, "A. " * 300_000, "a" * 2_000_000, "." * 2_000_000 + "Alice"])
def test_long_runs_take_linear_time(text):
    pieces = TOKENISER.cut_words(pa.array([text]))
    start = time.process_time()
    find_names(pieces, LISTS["en"])
    assert time.process_time() - start < 1
