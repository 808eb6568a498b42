"""Lists of stop-words by language."""

from __future__ import annotations

import hashlib

from support.repository import needs
from wordveil.text import stop_words
from wordveil.text.stop_words import find_list_problem, load_stop_words


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


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(stop_words, "find_version", lambda _: None)
    assert "pip install 'wordveil[languages]'" in str(find_list_problem("de"))
    assert load_stop_words(None, "de") == ()
    assert find_list_problem("en") is None
