"""The worked example of research/docs/languages.md, small: vectors trained on made German sentences, a bundle, and
records in and out. The sentences have four kinds of words in four places, so that words of a kind have similar vectors.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from support import toys
from support.repository import ROOT, load_script, needs
from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import Config, parse_config

pytestmark = needs("py3langid", "stopwordsiso", "wordfreq")
KINDS = {
    "people": ["lehrer", "ärztin", "nachbar", "schülerin", "bäcker", "freundin"],
    "verbs": ["sucht", "findet", "kauft", "verliert", "bringt", "reinigt"],
    "things": ["schlüssel", "fahrrad", "koffer", "mantel", "teppich", "spiegel"],
    "places": ["bahnhof", "marktplatz", "garten", "keller", "theater", "rathaus"],
}
TEXTS = [
    "Der Nachbar verliert den Schlüssel am Bahnhof.",
    "Die Ärztin bringt den Mantel in den Garten!",
    "The neighbour has lost the key at the station again.",
    "Сосед потерял ключ на вокзале вчера вечером.",
    "Qwfp zxcv arst",
    "",
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("examples/word_vectors.py")


def options(output: Path) -> list[str]:
    """The script's options for so few sentences."""
    return f"--output {output} --dimension 10 --min-count 5 --epochs 30 --without-stop-words de".split()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, script: ModuleType) -> Path:
    """A directory with the trained vectors."""
    place = tmp_path_factory.mktemp("german")
    sentences = [
        f"Der {person} {verb} den {thing} am {where} um 12 Uhr."
        for person, verb, thing, where in product(*KINDS.values())
    ]
    (place / "sentences.txt").write_text("\n".join(sentences), "utf-8")
    script.main([str(place / "sentences.txt"), *options(place / "german.vec")])
    return place


def configure(home: Path) -> Config:
    """The example's configuration, with clusters that fit so few words."""
    given = yaml.safe_load((ROOT / "conf" / "text" / "german.yaml").read_text("utf-8"))
    mechanism = {**given["mechanism"], "sizes": [6], "embedding": str(home / "german.vec")}
    sections = {"release": toys.RELEASE, "text": given["text"], "bundle_store": str(home / "bundles")}
    return parse_config(toys.toy_settings(mechanism, **sections), "german.yaml")


@pytest.fixture(scope="module")
def bundle(home: Path) -> Bundle:
    return build_bundle(configure(home))


def test_german_comes_out_as_german_and_the_rest_is_refused(bundle, home):
    vocabulary = {word for kind in KINDS.values() for word in kind}
    assert {*bundle.vocabulary.array.to_pylist()} == vocabulary, "words as the job looks them up"
    out = toys.sanitise(toys.record_sanitiser(bundle, configure(home).policy), toys.record_batch(TEXTS))
    reasons = out["reason"].to_pylist()
    assert reasons == [None, None, "other_language", "other_language", "too_many_unknown_words", None]
    for given, written in zip(TEXTS[:2], out["text"].to_pylist(), strict=False):
        assert given[-1] == written[-1]
        for before, after in zip(given[:-1].split(), written[:-1].split(), strict=True):
            assert after.lower() in vocabulary if before.lower() in vocabulary else after == before


def test_the_same_files_give_the_same_vectors(home, script):
    script.main([str(home / "sentences.txt"), *options(home / "again.vec")])
    assert (home / "again.vec").read_bytes() == (home / "german.vec").read_bytes()
