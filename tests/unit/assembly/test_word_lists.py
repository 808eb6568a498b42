"""The package's lists of words: no name may be written, and what is sensitive is in one category."""

from __future__ import annotations

from importlib.resources import files

import pyarrow as pa
import pytest

from wordveil.assembly.word_lists import find_names
from wordveil.embeddings.embedding import load
from wordveil.text.types.lists import PublicLists

DATA = files("wordveil") / "data" / "word_lists"


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_name_of_any_list_may_be_written(language: str):
    lists = PublicLists.load(language)
    names = [name for found, _ in lists.others.values() for name in found.to_pylist()]
    names += [*lists.first_names.to_pylist(), *lists.surnames.to_pylist()]
    words = pa.array([form for name in names for form in (name.lower(), f"{name.lower()}'s")])
    assert find_names(words).all()
    assert find_names(pa.array(["svoboda", "raj", "salah", "table"])).tolist() == [True, True, True, False]


def test_sensitive_words_are_in_their_category():
    found = dict(line.split("\t") for line in (DATA / "sensitive.tsv").read_text("utf-8").splitlines())
    some = {
        "health": "hiv hiv-positive diabetic kidney menopause diagnosed coma drunk patient's",
        "religion": "jew jews non-muslim rosary pilgrim bishop's",
        "politics": "unionist taliban pro-choice klan",
        "ethnicity": "undocumented deported mixed-race",
        "sexuality": "gay trans vagina anti-gay",
        "crime": "convict dui stalker abuse",
    }
    for category, words in some.items():
        assert {word: found.get(word) for word in words.split()} == dict.fromkeys(words.split(), category)
    # A possessive is as sensitive as its word.
    vocabulary = load("glove").words.to_pylist()
    assert not [word for word in vocabulary if word.endswith("'s") and word[:-2] in found and word not in found]
