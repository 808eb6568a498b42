"""Texts taken for another language, the packages that this needs, and stop-words by language."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pyarrow as pa
import pytest

from support.repository import needs
from wordveil.errors import PlatformError
from wordveil.text import language
from wordveil.text.language import IDENTIFIED, LANGUAGES, _load_model, find_other, require_packages
from wordveil.text.policy import TextPolicy
from wordveil.text.stop_words import find_list_problem, load_stop_words

NEEDS_IDENTIFIER = needs("py3langid")
OTHERS = {
    "ko": "부산으로 가는 기차가 어제 저녁에 또 삼십 분 늦었습니다.",
    "ru": "Поезд в Москву вчера вечером опять опоздал на полчаса.",
    "ar": "تأخر القطار إلى القاهرة مساء أمس نصف ساعة مرة أخرى.",
    "de": "Der Zug nach Hamburg hatte gestern Abend wieder eine halbe Stunde Verspätung.",
    "fr": "Ma commande n'est pas arrivée et personne ne répond à mes messages.",
    "zh": "昨天晚上去上海的火车又晚点了半个小时。",
}
ENGLISH = [
    *("The train to Leeds was half an hour late again last night.", "please call me back", "ok thanks", "Hi Anna"),
    *("play some jazz", "Where is my parcel?", "refund", "lol", "New York", "1234 56", "", "?!", "Zorblax met Qwint"),
]


def other(texts: list[str], own: str = "en", named: list[str | None] | None = None) -> list[bool]:
    return find_other(pa.array(texts, pa.string()), own, named).tolist()


@NEEDS_IDENTIFIER
def test_texts_of_another_language_are_found():
    for code, text in OTHERS.items():
        assert other([text, text.upper()]) == [True, True]
        assert other([text], code) == [False]


@NEEDS_IDENTIFIER
def test_short_texts_and_names_count_as_the_own_language():
    assert other(ENGLISH) == [False] * len(ENGLISH)
    assert other(["Anna", "42", ""], "de") == [False] * 3


@NEEDS_IDENTIFIER
def test_a_batch_is_decided_text_by_text():
    texts = [text for pair in zip(OTHERS.values(), ENGLISH, strict=False) for text in pair]
    assert other(texts) == [True, False] * len(OTHERS)
    assert other(texts[::-1]) == [False, True] * len(OTHERS)
    assert other([]) == []


@NEEDS_IDENTIFIER
def test_a_record_that_names_its_language_is_not_asked():
    names = ["en", "EN-gb", " en_US ", "de", "", None, "Deutsch"]
    assert other([OTHERS["de"]] * 7, named=names) == [False, False, False, True, True, True, True]
    assert other([ENGLISH[0]] * 7, named=names) == [False, False, False, True, False, False, True]


@NEEDS_IDENTIFIER
def test_a_long_text_is_told_by_its_beginning():
    """However long it is: the time that a record takes is bounded."""
    assert other([(ENGLISH[0] + " ") * 20 + OTHERS["de"] * 1000]) == [False]
    assert other([OTHERS["de"] * 20 + ENGLISH[0] * 1000]) == [True]


@NEEDS_IDENTIFIER
def test_the_languages_are_those_of_the_identifier_and_of_iso():
    assert {code for code in _load_model().labels if len(code) == 2} == IDENTIFIED < LANGUAGES
    assert len(LANGUAGES) == 183


def test_a_policy_knows_the_versions_of_its_packages(monkeypatch):
    versions = {"py3langid": "1.0", "rjieba": "2.0"}
    monkeypatch.setattr(language, "find_version", versions.get)
    assert TextPolicy(language="zh").packages is None
    policy = TextPolicy(language="zh", tokeniser="chinese", other_language="mask")
    assert policy.packages == "rjieba 2.0, py3langid 1.0"
    require_packages(policy)
    versions["rjieba"] = "2.1"
    newer = TextPolicy(language="zh", tokeniser="chinese", other_language="mask")
    assert newer.fingerprint != policy.fingerprint
    with pytest.raises(PlatformError, match=r"made with rjieba 2\.0, py3langid 1\.0, and this machine has rjieba 2\.1"):
        require_packages(policy)
    assert replace(policy, length="pad", n_max=3).packages == policy.packages


def test_the_english_list_stays_as_it_is():
    """Policies that keep or drop stop-words have it in their fingerprint."""
    listed = load_stop_words("english")
    assert len(listed) == 201
    assert listed == load_stop_words(None) == load_stop_words(None, "en") == load_stop_words("english", "de")
    digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()
    assert digest == "f4c4d9d7e3462f3ad28aee521116d058e0a1e5ca416ed2db81c5cab6d2a4aca8"


def test_a_list_of_ones_own_comes_first():
    assert load_stop_words(["Und", "die"], "de") == ("die", "und")


@needs("stopwordsiso")
def test_other_languages_have_lists():
    for code, word in {"de": "und", "fr": "nous", "ru": "и", "ko": "그리고", "zh": "我们", "ja": "これ"}.items():
        listed = load_stop_words(None, code)
        assert find_list_problem(code) is None
        assert len(listed) > 100
        assert list(listed) == sorted({*listed})
        assert word in listed
        assert all(word == word.lower() and any(map(str.isalpha, word)) and " " not in word for word in listed)
    assert "no list for language: aa" in str(find_list_problem("aa"))
    assert load_stop_words(None, "aa") == ()
