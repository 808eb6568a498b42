"""Settings of languages in a configuration: what is refused, before any data is read, and what policy follows."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from support import configs
from support.repository import needs
from wordveil.config import template
from wordveil.config.guess import Column, guess_columns
from wordveil.config.load import Config
from wordveil.config.template import draft_config
from wordveil.text import language, stop_words
from wordveil.text.stop_words import load_stop_words


def settings(text: dict[str, Any], **source: Any) -> dict[str, Any]:
    return configs.settings(text={"n_max": 8, **text}, source=source)


def parse(text: dict[str, Any], **source: Any) -> Config:
    return configs.parse(settings(text, **source))


def faults(text: dict[str, Any], **source: Any) -> dict[str, str]:
    return configs.find_faults(settings(text, **source))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The packages that Python seems to have, with their versions: none to begin with."""
    versions: dict[str, str] = {}
    for module in (language, stop_words, template):
        monkeypatch.setattr(module, "find_version", versions.get)
    return versions


def test_configuration_without_languages_has_the_policy_it_had():
    plain = parse({}).policy
    assert plain.fingerprint == parse({"language": "en", "other_language": "release"}).policy.fingerprint
    assert (plain.language, plain.other_language) == ("en", "release")
    assert (plain.max_unknown_share, plain.packages) == (None, None)


def test_missing_packages_are_named_with_their_commands(installed):
    text = {"tokeniser": "japanese", "language": "ja", "other_language": "quarantine", "stop_words": "drop"}
    found = faults(text)
    assert list(found) == ["text.other_language", "text.stop_word_list", "text.tokeniser"]
    for name, extra in zip(found, ("languages", "languages", "japanese"), strict=True):
        assert f"pip install 'wordveil[{extra}]'" in found[name]
    installed |= {"SudachiPy": "1", "SudachiDict-small": "2", "py3langid": "3"}
    assert parse({**text, "stop_words": "hide"}).policy.packages == "SudachiPy 1, SudachiDict-small 2, py3langid 3"


def test_all_faults_come_at_once(installed):
    text = {"language": "english", "other_language": "maybe", "max_unknown_share": 1.5, "tokeniser": "chinese"}
    assert list(faults(text)) == ["text.language", "text.max_unknown_share", "text.other_language", "text.tokeniser"]
    installed["rjieba"] = "1"
    assert "language: zh" in faults(text)["text.tokeniser"]


def test_a_column_of_languages_needs_a_rule_and_is_not_the_text(installed):
    assert "other_language: release" in faults({}, language="lang")["input.language"]
    installed["py3langid"] = "1"
    assert parse({"other_language": "mask"}, language="lang").input.language == "lang"
    assert "text column" in faults({"other_language": "mask"}, language="body")["input.language"]


@needs("stopwordsiso")
def test_the_language_selects_the_list_of_stop_words():
    readable = {"profile": "readable", "n_max": None}
    english, german = (parse({**readable, "language": code}).policy.stop_word_list for code in ("en", "de"))
    assert english == load_stop_words("english")
    assert {"und", "die"} < {*german}
    assert parse({**readable, "language": "de", "stop_word_list": "english"}).policy.stop_word_list == english
    assert parse({**readable, "language": "de", "stop_word_list": ["Der"]}).policy.stop_word_list == ("der",)
    assert "no list for language: aa" in faults({**readable, "language": "aa"})["text.stop_word_list"]


@pytest.mark.parametrize("there", [True, False])
def test_a_draft_refuses_other_languages_where_it_can(installed, there):
    if there:
        installed["py3langid"] = "1"
    columns = [Column("id", "bigint"), Column("body", "string")]
    drafted = yaml.safe_load(draft_config("in", columns, guess_columns(columns)))["text"]
    asked = {"other_language": "quarantine"} if there else {}
    readable = {"profile": "readable", "repeat": "same", "stop_word_capitals": "replace", "articles": "agree"}
    assert drafted == {**readable, "language": "en", "max_unknown_share": 0.5, **asked}
    alone = parse({**readable, "n_max": None})
    assert parse({**drafted, "n_max": None}).policy.exposes == alone.policy.exposes


def test_lists_a_language_lacks_are_named_with_what_needs_them():
    polish = {"profile": "readable", "n_max": None, "language": "pl", "stop_words": "hide"}
    found = faults(polish)
    assert list(found) == ["text.names"]
    for part in ("none for pl, only for de, en", "names: words", "types: none"):
        assert part in found["text.names"]
    found = faults({**polish, "names": "words"})
    assert list(found) == ["text.types.email"]
    assert "names: words" not in found["text.types.email"]
    plain = {**polish, "names": "words", "types": "none"}
    assert parse(plain).policy.draws_types is False
    assert parse({"language": "pl"}).policy.draws_types is False, "masked classes need no lists"
    assert list(faults({**polish, "language": "polish"})) == ["text.language"]
