"""The rows of tables: what is written, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.embeddings.embedding import DEMO, check_embedding, load
from wordveil.scores.score import Group
from wordveil_research.papers.policies import CARRIERS, DROPPED, HIDDEN, KEPT
from wordveil_research.papers.rows import (
    NO_NOISE,
    ORIGINAL,
    Row,
    VocabularyWords,
    find_near,
    load_embedding,
    open_row,
    score_losses,
    seeds_of,
)

TEXTS = ["The Doctor, said: xqzzy hospital!", ""]


@pytest.fixture(scope="module")
def embedding():
    return load(DEMO)


def test_rows_originals_unchanged_others_as_known_words(embedding, tmp_path):
    assert open_row(ORIGINAL, embedding, tmp_path).sanitise(TEXTS) == TEXTS
    assert open_row(NO_NOISE, embedding, tmp_path).sanitise(TEXTS) == ["the doctor said hospital", ""]
    assert not list(tmp_path.iterdir())


def test_row_without_noise_as_huge_epsilon(embedding, tmp_path):
    texts = ["the doctor said that the hospital had no money"]
    quiet = open_row(Row("quiet", "laplace", {"epsilon": 500.0}), embedding, tmp_path)
    assert quiet.sanitise(texts, seed=1) == VocabularyWords(embedding).sanitise(texts)


def test_word_choice_copies_same_with_and_without_noise(tmp_path):
    nouns, text = load("demo-poincare"), ["the doctor said that some xqzzy of the hospital is out of money"]
    written = {}
    for words in (HIDDEN, DROPPED, KEPT, CARRIERS):
        plain = open_row(NO_NOISE.hiding(words), nouns, tmp_path).sanitise(text)
        drawn = open_row(Row("r", "random").hiding(words), nouns, tmp_path).sanitise(text, 1)
        written[words] = plain[0], [word for word in drawn[0].split() if word in text[0].split()]
    assert {words: (plain, " ".join(copied)) for words, (plain, copied) in written.items()} == {
        HIDDEN: ("doctor hospital money", ""),
        DROPPED: ("doctor hospital money", ""),
        KEPT: ("the doctor that some of the hospital is out of money", "the that some of the is out of"),
        CARRIERS: ("the doctor said that of the hospital is of money", "the said that of the is of"),
    }


def test_draws_differ_by_seed_and_from_the_attackers(embedding, tmp_path):
    system = open_row(Row("r", "random"), embedding, tmp_path)
    text = ["one two three four five six seven"]
    assert system.sanitise(text, 1) == system.sanitise(text, 1) != system.sanitise(text, 2)
    seeds = [seed for draw in range(1000) for seed in seeds_of(draw)]
    assert len(set(seeds)) == 2000


def test_losses_are_the_certified_constants(embedding, tmp_path):
    row = Row("l", "laplace", {"epsilon": 10.0})
    system = open_row(row, embedding, tmp_path)
    worst, nearest = score_losses(row, system, embedding)
    assert worst.group == nearest.group == Group.PRIVACY
    assert worst.value == pytest.approx(10 * system.bundle.guarantee.diameter)
    assert nearest.value == pytest.approx(10 * find_near(embedding, "euclidean"))
    assert nearest.value < worst.value
    (found,) = score_losses(Row("r", "random"), open_row(Row("r", "random"), embedding, tmp_path), embedding)
    assert found.value == 0
    (found,) = score_losses(NO_NOISE, VocabularyWords(embedding), embedding)
    assert found.value == np.inf


def test_nearest_words_in_the_chosen_metric():
    angles = np.linspace(0, 1, 11)
    circle = check_embedding(
        [str(row) for row in range(11)], 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1), "made"
    )
    assert find_near(circle, "angular") == pytest.approx(0.1, abs=1e-6)
    assert find_near(circle, "euclidean") == pytest.approx(4 * np.sin(0.05), abs=1e-6)


@pytest.mark.long
def test_two_dimensions_trained_once_words_close(tmp_path):
    flat = load_embedding("poincare-2", tmp_path)
    (kept,) = (tmp_path / "trained").iterdir()
    stamp = kept.stat().st_mtime_ns
    assert load_embedding("poincare-2", tmp_path).digest == flat.digest
    assert kept.stat().st_mtime_ns == stamp
    ten = load("demo-poincare")
    assert {*flat.words.to_pylist()} == {*ten.words.to_pylist()}
    assert find_near(flat, "hyperbolic") < 1 < 5 < find_near(ten, "hyperbolic")
