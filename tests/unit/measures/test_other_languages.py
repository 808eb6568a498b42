"""Texts of other languages, found by public lists of words."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from wordveil.assembly.passages import read_passages
from wordveil.measures.other_languages import count_other_languages

TEXTS = {
    "de": "Der Drucker im dritten Stock druckt nur leere Seiten, bitte schicken Sie jemanden.",
    "es": "Hola, desde ayer no puedo entrar en mi cuenta y la contraseña no funciona.",
    "fr": "Bonjour, je ne peux plus me connecter à mon compte depuis hier.",
    "it": "Buongiorno, da ieri non riesco più ad entrare nel mio account e la password non funziona.",
    "en": "The printer on the third floor prints empty pages, please send somebody.",
}


@pytest.mark.parametrize("language", ["en", "de"])
def test_count_other_languages_names_each_but_the_own(language: str):
    if language != "en":
        pytest.importorskip("stopwordsiso")
    found = count_other_languages(pa.array([*TEXTS.values(), ""]), language)
    assert found == Counter(other for other in TEXTS if other != language)


def test_count_other_languages_of_english_sentences_is_none():
    names = ["Le Monde and El Pais ran the story of the man from Paris", "die cast parts missing", "ERROR 500 nginx"]
    sentences = read_passages("wordnet", "passages")[:4000]
    assert count_other_languages(pa.array([*names, *sentences.to_pylist()]), "en") == Counter()


def test_count_other_languages_needs_lists_of_the_own():
    assert count_other_languages(pa.array([TEXTS["de"]]), "sv") is None
    assert count_other_languages(pa.array([], pa.string()), "en") == Counter()
