"""Which texts are taken for another language, and which packages a policy of languages needs."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from support.repository import needs
from wordveil.errors import PlatformError
from wordveil.text import language
from wordveil.text.language import IDENTIFIED, LANGUAGES, _load_model, find_other, require_packages
from wordveil.text.policy import TextPolicy

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
    plain = TextPolicy(language="zh")
    assert plain.packages is None
    policy = TextPolicy(language="zh", tokeniser="chinese", other_language="mask")
    assert policy.packages == "rjieba 2.0, py3langid 1.0"
    require_packages(policy)
    versions["rjieba"] = "2.1"
    newer = TextPolicy(language="zh", tokeniser="chinese", other_language="mask")
    assert newer.fingerprint != policy.fingerprint
    with pytest.raises(PlatformError, match=r"made with rjieba 2\.0, py3langid 1\.0, and this machine has rjieba 2\.1"):
        require_packages(policy)
    assert replace(policy, length="pad", n_max=3).packages == policy.packages


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(language, "find_version", lambda name: None)
    policy = TextPolicy(language="ja", tokeniser="japanese")
    assert policy.packages is None
    with pytest.raises(PlatformError) as caught:
        require_packages(policy)
    assert str(caught.value) == (
        "text.tokeniser: japanese needs SudachiPy and SudachiDict-small, which Python does not have here. Run "
        "`pip install 'wordveil[japanese]'` on every machine."
    )
