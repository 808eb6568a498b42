"""Public files beside the embedding: what a mechanism gets of them, and which bundle is found by them."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.ngram_models import make_model
from support.toys import WORDS, spiral_embedding, toy_settings
from wordveil.assembly.bundles import build_bundle, compare_mechanisms, find_bundle
from wordveil.assembly.inputs import SETTINGS, FittedInputs, digest_files, read_files
from wordveil.config.load import Config, parse_config
from wordveil.errors import BundleError, EmbeddingError, PublicFileError, WordveilError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import save_weights
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.text.slots import NgramSettings

SIX = pa.array(["the", "cat", "sat", "on", "mat", "dog"])


def fit(place: Path, setting: str, text: str, words: pa.StringArray = SIX) -> FittedInputs:
    """A file with ``text``, fitted to ``words``."""
    (place / "file.tsv").write_text(text.replace(" ", "\t"), "utf-8")
    return read_files({setting: str(place / "file.tsv")}).fit(words)


def notes(fitted: FittedInputs, place: Path) -> list[str]:
    return [note.replace(str(place / "file.tsv"), "FILE") for note in fitted.notes]


def fault(error: type[WordveilError], place: Path, setting: str, text: str) -> str:
    with pytest.raises(error) as caught:
        fit(place, setting, text)
    message = str(caught.value)
    assert message.startswith(f"mechanism.{setting} = {place / 'file.tsv'}: "), message
    assert caught.value.exit_code == 4
    return message


def test_a_mechanism_names_files_that_are_read():
    assert read_files({}).fit(SIX) == FittedInputs(NO_INPUTS, ())
    assert digest_files({}) == {}
    assert {name for kind in MECHANISMS.values() for name in kind.settings_type.input_files} <= set(SETTINGS)


def test_frequencies_are_counts_with_a_half_added(tmp_path):
    fitted = fit(tmp_path, "frequencies", "dog 7\ncat 3\nbird 100\nthe 40\nsat 1\n")
    counts = {"the": 40, "cat": 3, "sat": 1, "dog": 7}
    total = sum(counts.values()) + Fraction(len(SIX), 2)
    wanted = [float((counts.get(word, 0) + Fraction(1, 2)) / total) for word in SIX.to_pylist()]
    found = fitted.inputs.frequencies
    assert found is not None
    assert found.dtype == np.float64
    assert found.tolist() == wanted
    assert fitted.inputs.frequencies_of(6) is found
    assert notes(fitted, tmp_path) == [
        "frequencies: 1 of 5 words of FILE are not in the embedding: ignored.",
        "frequencies: 2 of 6 words are not in FILE: they count as half an occurrence, as 0.5 is added.",
    ]


def test_the_largest_counts_do_not_overflow(tmp_path):
    words = pa.array([f"w{row}" for row in range(100)])
    found = fit(tmp_path, "frequencies", "".join(f"{word} {10**18 - 1}\n" for word in words.to_pylist()), words)
    assert found.inputs.frequencies is not None
    assert found.inputs.frequencies.tolist() == [0.01] * 100
    assert found.notes == ()


def test_frequencies_of_other_words_are_refused(tmp_path):
    assert len(fit(tmp_path, "frequencies", "the 1\ncat 1\nsat 1\n").notes) == 1
    message = fault(PublicFileError, tmp_path, "frequencies", "the 1\ncat 1\nDOG 5\nbird 7\n")
    assert "it has 2 of the embedding's 6 words (33.3%), and half of them are needed. Take counts" in message
    assert "it has 0 of the embedding's 6 words (0.0%)" in fault(PublicFileError, tmp_path, "frequencies", "x 1\n")


@pytest.mark.parametrize(
    ("setting", "text", "problem"),
    [
        ("frequencies", "the 0\n", "line 1, column 2: '0' is not a whole number"),
        ("pairs", "the cat\n", "line 1 has 2 column(s). Each line has 3 columns: word, similar word and similarity"),
        ("pairs", "the cat nan\n", "line 1, column 3: 'nan' is not a finite number"),
        ("pairs", "the cat 1\ncat the 1\nthe cat 2\n", "lines 1 and 3 have the same words ('the', 'cat')"),
        ("pairs", "the bird 1\n", "has no pair of two words of the embedding"),
        ("classes", "the a\nthe a\n", "lines 1 and 2 have the same words ('the')"),
        ("classes", "The a\nbird b\n", "has no word of the embedding. Name another file. Words are compared exactly"),
    ],
)
def test_faults_of_tables_name_the_setting_the_file_and_the_line(tmp_path, setting, text, problem):
    assert problem in fault(PublicFileError, tmp_path, setting, text)


def test_pairs_are_those_of_two_known_words(tmp_path):
    lines = "the cat 0.5\ncat the -0.25\nbird cat 1\ncat bird 1\ndog dog 1\nmat on 2e-3\nbird bird 3\n"
    fitted = fit(tmp_path, "pairs", lines)
    pairs = fitted.inputs.pairs
    assert pairs is not None
    assert (pairs.words.dtype, pairs.others.dtype, pairs.similarities.dtype) == (np.int32, np.int32, np.float64)
    found = (pairs.words.tolist(), pairs.others.tolist(), pairs.similarities.tolist())
    assert found == ([0, 1, 4], [1, 0, 3], [0.5, -0.25, 0.002])
    assert notes(fitted, tmp_path) == [
        "pairs: 3 of 7 pairs of FILE have a word that is not in the embedding: ignored.",
        "pairs: 1 of 7 pairs of FILE are of a word with itself: ignored.",
    ]


def test_stop_words_are_a_class_without_a_file():
    fitted = read_files({"classes": "stop-words:en"}).fit(pa.array(["the", "cat", "it's", "sat", "he"]))
    assert fitted.inputs.classes is not None
    assert fitted.inputs.classes.tolist() == [0, 1, 0, 1, 0]
    assert fitted.notes == ()
    digest = digest_files({"classes": "stop-words:en"}, missing_allowed=True)
    assert digest == digest_files({"classes": "stop-words:en"})
    assert len(digest["classes"]) == 64
    message = "mechanism.classes = stop-words:qq: there is no such list here. For English write stop-words:en"
    with pytest.raises(PublicFileError, match=message):
        read_files({"classes": "stop-words:qq"})


def test_classes_are_numbered_by_first_words_then_the_rest(tmp_path):
    fitted = fit(tmp_path, "classes", "bird noun\ndog noun\non preposition\ncat noun\nsat verb\n")
    classes = fitted.inputs.classes
    assert classes is not None
    assert classes.dtype == np.int32
    assert classes.tolist() == [0, 1, 2, 3, 0, 1]
    assert notes(fitted, tmp_path) == [
        "classes: 1 of 5 words of FILE are not in the embedding: ignored.",
        "classes: 2 of 6 words are not in FILE: together they are a class of their own.",
        "classes: 2 of 4 classes have a single word: it has no other word of its class.",
    ]
    every = fit(tmp_path, "classes", "dog b\nmat a\non a\nsat b\ncat b\nthe a\n")
    assert every.inputs.classes is not None
    assert every.inputs.classes.tolist() == [0, 1, 1, 0, 0, 1]
    assert every.notes == ()


def write_vectors(path: Path, words: list[str]) -> str:
    vectors = np.random.default_rng(len(words)).standard_normal((len(words), 3)).tolist()
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors, strict=True)))
    return str(path)


def test_similarities_are_another_embedding(tmp_path):
    place = write_vectors(tmp_path / "other.txt", ["dog", "cat", "bird", "the"])
    lines: list[str] = []
    fitted = read_files({"similarity": place}, lines.append).fit(SIX)
    assert fitted.inputs.similarity is not None
    assert fitted.inputs.similarity.words.to_pylist() == ["dog", "cat", "bird", "the"]
    assert fitted.notes == ()
    assert lines[0] == f"reading similarity from {place}"
    assert read_files({"similarity": "demo"}).fit(SIX).notes == ()


def test_faults_of_similarities_name_the_setting(tmp_path):
    for text, problem in (
        ("bird 1 2\nfish 2 3\n", "has no word of the embedding. Name another one"),
        ("the 1 2\nthe 2 3\n", "'the' is listed more than once"),
        ("2 2\nthe 1 2\n", "the first line says 2 words"),
    ):
        (tmp_path / "other.txt").write_text(text)
        with pytest.raises(EmbeddingError, match=rf"mechanism.similarity = .*other.txt: {problem}"):
            read_files({"similarity": str(tmp_path / "other.txt")}).fit(SIX)


def test_ngrams_are_the_pairs_of_a_model(tmp_path):
    model = make_model(tmp_path / "models", ["the cat sat", "the dog"], NgramSettings(max_n=3, min_count=1))
    fitted = read_files({"ngrams": str(tmp_path / "models")}).fit(SIX)
    assert fitted.inputs.bigrams is not None
    assert fitted.inputs.bigrams.words.to_pylist()[:2] == ["", "the"]
    assert int(fitted.inputs.bigrams.pair_counts.sum()) == 5
    assert digest_files({"ngrams": str(tmp_path / "models")}) == {"ngrams": model.digest}


def test_a_digest_follows_the_content_and_not_the_name(tmp_path):
    for name, text in (("a", "the\t1\n"), ("b", "the\t1\n"), ("c", "the\t2\n")):
        (tmp_path / name).write_text(text)
    for setting in ("frequencies", "similarity", "pairs", "classes"):
        a, b, c = (digest_files({setting: str(tmp_path / name)})[setting] for name in "abc")
        assert a == b != c
        assert len(a) == 64


def job(place: Path, **mechanism: Any) -> Config:
    embedding = place / "words.txt"
    if not embedding.exists():
        write_vectors(embedding, WORDS)
    section = {"name": "laplace", "epsilon": 8.0, "embedding": str(embedding), "public": True, **mechanism}
    return parse_config(toy_settings(section, bundle_store=str(place / "bundles")), "job.yaml")


def write_counts(place: Path, words: list[str], first: int = 5) -> str:
    place.write_text("".join(f"{word}\t{first + row}\n" for row, word in enumerate(words)), "utf-8")
    return str(place)


def test_build_with_frequencies_keeps_their_notes(tmp_path, monkeypatch):
    seen: list[PublicInputs] = []
    build = Laplace.build

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.append(named["inputs"])
        return build(*arguments, **named)

    monkeypatch.setattr(Laplace, "build", watched)
    counts = write_counts(tmp_path / "counts.tsv", [*WORDS[:-2], "bird"])
    bundle = build_bundle(job(tmp_path, frequencies=counts))
    assert seen[0].frequencies is not None
    assert seen[0].frequencies.argmax() == len(WORDS) - 3
    assert bundle.manifest["notes"][:2] == [
        f"frequencies: 1 of {len(WORDS) - 1} words of {counts} are not in the embedding: ignored.",
        f"frequencies: 2 of {len(WORDS)} words are not in {counts}: they count as half an occurrence, as 0.5 is added.",
    ]
    recipe = bundle.manifest["recipe"]
    digest = digest_files({"frequencies": counts})["frequencies"]
    assert recipe["inputs"] == {"frequencies": {"name": counts, "digest": digest}}
    assert "frequencies" not in recipe["settings"]


def test_a_changed_file_means_another_bundle(tmp_path):
    config = job(tmp_path, frequencies=write_counts(tmp_path / "counts.tsv", WORDS))
    first = build_bundle(config)
    assert find_bundle(config).path == build_bundle(config).path == first.path
    moved = write_counts(tmp_path / "moved.tsv", WORDS)
    assert find_bundle(job(tmp_path, frequencies=moved)).path == first.path
    write_counts(tmp_path / "counts.tsv", WORDS, 6)
    with pytest.raises(BundleError, match=r"content of mechanism.frequencies is \w{64} in the bundle, \w{64} in "):
        find_bundle(config)
    second = build_bundle(config)
    assert second.path != first.path
    assert find_bundle(config).path == build_bundle(config).path == second.path
    assert find_bundle(job(tmp_path, frequencies=moved)).path == first.path
    # What laplace draws does not depend on frequencies: a release goes on with the new file.
    assert second.fingerprint == first.fingerprint
    assert len([*(tmp_path / "bundles").glob("[!.]*")]) == 2


def test_a_missing_file_is_told_before_anything_is_built(tmp_path, monkeypatch):
    monkeypatch.setattr("wordveil.embeddings.embedding.load", lambda *_: pytest.fail("the embedding was read"))
    config = job(tmp_path, frequencies=str(tmp_path / "none.tsv"))
    for command in (build_bundle, lambda config: compare_mechanisms(config, "the cat")):
        with pytest.raises(PublicFileError, match=r"mechanism.frequencies = .*none.tsv: no such file"):
            command(config)
    (tmp_path / "none.tsv").write_text("the\tx\n")
    with pytest.raises(PublicFileError, match="line 1, column 2"):
        build_bundle(config)


def generator_config(place: Path, words: list[str]) -> Config:
    """A configuration of er-ae in ``place`` with an embedding of these words, and weights of four other words."""
    (place / "words.txt").write_text("".join(f"{word} {row} 1 {-row}\n" for row, word in enumerate(words)))
    if not (place / "generator.npz").exists():
        save_weights(place / "generator.npz", make_repeating_weights(spiral_embedding(WORDS[:4]), 2))
    section = {"name": "er-ae", "epsilon": 9, "embedding": "words.txt", "model": "generator.npz", "public": True}
    return parse_config(toy_settings(section), "job.yaml", directory=place)


def test_generator_weights_enter_build_and_recipe(tmp_path):
    config = generator_config(tmp_path, WORDS[:4])
    bundle = build_bundle(config)
    entry = bundle.manifest["recipe"]["inputs"]["model"]
    assert entry["name"] == "generator.npz"
    assert entry["digest"] == hashlib.sha256((tmp_path / "generator.npz").read_bytes()).hexdigest()
    assert "model" not in bundle.manifest["recipe"]["settings"]
    assert find_bundle(config).path == bundle.path  # type: ignore[union-attr]
    save_weights(tmp_path / "generator.npz", make_repeating_weights(spiral_embedding(WORDS[:4], 2.0), 3))
    with pytest.raises(BundleError, match=r"content of mechanism\.model is"):
        find_bundle(config)


def test_a_generator_that_is_missing_damaged_or_of_other_words(tmp_path):
    place = tmp_path / "generator.npz"
    for words, damage, message in (
        (WORDS[:5], None, "its 4 words are not the 5 words of mechanism.embedding"),
        (WORDS[1:5], None, "its 4 words are not the 4 words of mechanism.embedding"),
        (WORDS[:4], lambda: place.write_bytes(b"PK"), "is not a generator's file"),
        (WORDS[:4], place.unlink, "no such file"),
    ):
        config = generator_config(tmp_path, words)
        if damage:
            damage()
        with pytest.raises(WordveilError) as error:
            build_bundle(config)
        assert error.value.exit_code == 4
        assert str(error.value).startswith(f"mechanism.model = {place}: ")
        assert message in str(error.value)
