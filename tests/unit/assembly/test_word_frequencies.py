"""Frequencies of the package wordfreq in place of a file."""

from __future__ import annotations

import sys
from types import ModuleType

import pyarrow as pa
import pytest

from support.repository import needs
from wordveil.assembly import word_tables
from wordveil.assembly.inputs import digest_files, read_files
from wordveil.errors import PublicFileError

GERMAN = {"frequencies": "wordfreq:de"}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with one list, in place of the real one."""
    module = ModuleType("wordfreq")
    module.shares = {"und": 0.03, "hund": 2e-5, "selten": 1e-12}  # type: ignore[attr-defined]
    module.available_languages = lambda _: {"xx": "path"}  # type: ignore[attr-defined]
    module.get_frequency_dict = lambda _language, _kind: module.shares  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wordfreq", module)
    monkeypatch.setattr(word_tables, "find_version", lambda _: "1.0")
    for cached in (word_tables._languages, word_tables._load):
        cached.cache_clear()
        monkeypatch.setattr(word_tables, cached.__name__, cached.__wrapped__)
    return module


def test_counts_are_shares_of_ten_thousand_million(toy):
    fitted = read_files({"frequencies": "wordfreq:xx"}).fit(pa.array(["hund", "und", "neu"]))
    counts = [2 * 200_000 + 1, 2 * 300_000_000 + 1, 1]
    assert fitted.inputs.frequencies.tolist() == [count / sum(counts) for count in counts]
    assert "wordfreq:xx" in " ".join(fitted.notes)


def test_the_digest_is_that_of_words_and_counts(toy):
    first = digest_files({"frequencies": "wordfreq:xx"})
    toy.shares = dict(reversed(toy.shares.items()))
    assert digest_files({"frequencies": "wordfreq:xx"}) == first
    toy.shares = {**toy.shares, "hund": 3e-5}
    assert digest_files({"frequencies": "wordfreq:xx"}) != first


def test_a_list_that_is_not_there_is_named(toy):
    with pytest.raises(PublicFileError, match=r"^mechanism\.frequencies = wordfreq:yy: there is no such list.*: xx\.$"):
        read_files({"frequencies": "wordfreq:yy"})
    assert digest_files({"frequencies": "wordfreq:yy"}, missing_allowed=True) == {}


@needs("wordfreq")
def test_german_words_have_german_frequencies():
    fitted = read_files(GERMAN).fit(pa.array(["und", "hund", "verspätung", "zorblax"]))
    shares = fitted.inputs.frequencies
    assert shares[0] > 100 * shares[1] > 0
    assert shares[1] > shares[2] > 1000 * shares[3]
