"""`text.keep_only` confines a bundle's words to a public list, and changes nothing where it is not set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.toys import record_batch, record_sanitiser, sanitise, spiral_embedding, toy_settings
from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import build_bundle, find_bundle, find_embedding, measure_texts
from wordveil.config.load import Config, parse_config
from wordveil.errors import BundleError, ConfigError, PublicFileError
from wordveil.measures.losses import find_space
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.records.fixed_settings import explain_change, list_settings

WORDS = ["cat", "dog", "mat", "sat", "the", "on", "red", "blue"]
EMBEDDING = spiral_embedding(WORDS)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    EMBEDDING.save(tmp_path / "words")
    (tmp_path / "topics.txt").write_text("mat\ncat\ndog\nzebra\n")
    return tmp_path


def config(home: Path, text: dict[str, Any], mechanism: dict[str, Any] | None = None) -> Config:
    section = {"name": "laplace", "epsilon": 0.5, "embedding": str(home / "words"), "public": True}
    settings = toy_settings({**section, **(mechanism or {})}, text={"length": "as_is", **text})
    return parse_config({**settings, "bundle_store": str(home / "bundles")}, "job", directory=home)


def build(home: Path, text: dict[str, Any], mechanism: dict[str, Any] | None = None) -> Bundle:
    return build_bundle(config(home, text, mechanism))


def test_no_output_has_another_word(home: Path):
    text = {"keep_only": "topics.txt", "types": "none"}
    for unknown, words in (("drop", [2, 1, 0]), ("mask", [6, 2, 3])):
        job = config(home, {**text, "unknown": unknown})
        bundle = build_bundle(job)
        assert bundle.vocabulary.array.to_pylist() == ["cat", "dog", "mat"]
        sanitiser = record_sanitiser(bundle, job.policy)
        done = sanitise(sanitiser, record_batch(["The cat sat on red mat", "the dog", "on zebra blue"]))
        written = [text.split() for text in done["text"].to_pylist()]
        assert [len(output) for output in written] == words
        assert {word for output in written for word in output} <= {"cat", "dog", "mat"}


def test_the_price_is_that_of_the_listed_words(home: Path):
    confined, whole = build(home, {"keep_only": "topics.txt"}), build(home, {})
    gaps = EMBEDDING.vectors[:3, None] - EMBEDDING.vectors[None, :3]
    widest = np.linalg.norm(gaps.astype(float), axis=2).max()
    assert widest <= confined.guarantee.diameter < whole.guarantee.diameter
    assert confined.guarantee.pure < whole.guarantee.pure
    assert "keep_only" not in json.dumps(whole.manifest)
    (note,) = [note for note in confined.manifest["notes"] if "keep_only" in note]
    assert note == "text.keep_only: outputs are confined to 3 words of topics.txt; 1 others are not in the embedding."


def test_bundle_declares_its_list_and_matches_no_other(home: Path):
    listed, whole = config(home, {"keep_only": "topics.txt"}), config(home, {})
    assert whole.recipe("digest").inputs == {}
    assert whole.policy == listed.policy
    bundle = build_bundle(listed)
    assert [*bundle.manifest["recipe"]["inputs"]] == ["keep_only"]
    assert bundle.manifest["recipe"]["inputs"]["keep_only"]["name"] == "topics.txt"
    assert find_bundle(listed).fingerprint == bundle.fingerprint
    with pytest.raises(BundleError, match=r"text\.keep_only is topics\.txt in the bundle, None in the configuration"):
        find_bundle(whole)
    (home / "topics.txt").write_text("mat\ncat\n")
    with pytest.raises(BundleError, match=r"content of text\.keep_only is"):
        find_bundle(listed)
    (home / "topics.txt").unlink()
    assert find_bundle(listed).fingerprint == bundle.fingerprint, "a run needs the bundle alone"
    with pytest.raises(PublicFileError, match=r"text\.keep_only = .*topics\.txt: no such file"):
        build_bundle(listed)


def test_a_release_says_that_the_list_changed(home: Path):
    job = config(home, {"keep_only": "topics.txt"})
    before = list_settings(job.policy, build_bundle(job))
    (home / "topics.txt").write_text("mat\ncat\n")
    bundle = build_bundle(job)
    now = list_settings(job.policy, bundle)
    assert "text.keep_only" in explain_change("mechanism_fingerprint", bundle.fingerprint, "old", now, before)


def test_what_measures_a_bundle_has_its_words(home: Path):
    job = config(home, {"keep_only": "topics.txt"}, {"name": "exponential", "epsilon": 1.0, "gamma": 40.0})
    bundle, embedding = build_bundle(job), find_embedding(job)
    assert embedding.words.to_pylist() == bundle.vocabulary.array.to_pylist()
    assert find_space(bundle, embedding).size == 3
    apart = measure_texts(job, lambda: bundle, ("the cat", "a dog"))
    assert {move.source for move in apart.moves} == {"cat", "the unknown word"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty. Each line has one word"),
        ("zebra\nlion\n", "it has 0 of the embedding's 8 words, and at least 2 are needed. Name another list"),
        ("cat\ndog\ncat\n", r"lines 1 and 3 have the same words \('cat'\)"),
    ],
)
def test_a_faulty_list_is_refused_by_name(home: Path, content: str, problem: str):
    (home / "topics.txt").write_text(content)
    with pytest.raises(PublicFileError, match=rf"text\.keep_only = .*topics\.txt: {problem}"):
        build(home, {"keep_only": "topics.txt"})


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ({"stop_words": "keep"}, "text.keep_only", "Set stop_words: hide or drop, or remove it"),
        ({"unknown": "keep"}, "text.keep_only", "Set unknown: mask or drop, or remove it"),
        ({"digits": "keep", "types": "none"}, "text.keep_only", "Set digits: hide or drop, or remove it"),
        ({"names": "gazetteer"}, "text.keep_only", "Set types: none and names: words, or remove it"),
        ({"unknown": "quarantine"}, "text.unknown", "refuses each record with a word that text.keep_only does not"),
    ],
)
def test_what_would_write_other_words_contradicts_it(home: Path, text: dict[str, Any], where: str, fix: str):
    with pytest.raises(ConfigError) as caught:
        config(home, {"keep_only": "topics.txt", **text})
    assert any(fault.where == where and fix in fault.problem for fault in caught.value.faults)


def test_a_generator_has_its_own_words(home: Path):
    assert "model" in MECHANISMS["er-ae"].settings_type.input_files
    with pytest.raises(ConfigError, match=r"text\.keep_only.*a generator writes with the words"):
        config(home, {"keep_only": "topics.txt"}, {"name": "er-ae", "model": str(home)})
