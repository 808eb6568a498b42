"""The experiment on passages: an attacker's exact success, samples of words, and its figures on small made texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.embedding import check_embedding, load
from wordveil.mechanisms.inputs import PublicPassages
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.papers import passages
from wordveil_research.papers.passages import CORPORA, FIELD, Corpus, PassagesTable, Texts
from wordveil_research.runner.base import Surroundings

TOPICS, OWN, LENGTH, COUNT = 3, 40, 12, 60


@pytest.fixture(scope="module")
def texts():
    """Texts of words of their topic, half of which are passages of the field."""
    demo = load("demo")
    embedding = check_embedding(demo.words.to_pylist()[: TOPICS * OWN], demo.vectors[: TOPICS * OWN], "small")
    labels = np.arange(3 * COUNT) % TOPICS
    words = np.random.default_rng(0).integers(0, OWN, (3 * COUNT, LENGTH)) + labels[:, None] * OWN
    ids, offsets = words.astype(np.int32), np.arange(2 * COUNT + 1) * LENGTH
    read = ids[:COUNT].ravel(), offsets[: COUNT + 1]
    field = PublicPassages(*read, pa.array([f"passage {number}" for number in range(COUNT)]), *read)
    return Texts(
        Corpus("made", "made"), embedding, field, ids[COUNT:].ravel(), offsets, labels[COUNT:].astype(np.int64), COUNT
    )


@pytest.fixture
def around(tmp_path):
    return Surroundings(tmp_path, tmp_path, seeds=2, is_quick=True)


def test_link_equals_the_success_of_an_attacker_who_counts():
    laws = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    symbols = np.array([0, 0, 2, 2, 2], np.int32)
    assert passages._link(symbols, laws) == pytest.approx((0.6 + 0.3 + 0.6) / passages.CANDIDATES)


def test_sample_takes_words_of_the_text_that_are_no_stop_words(texts):
    is_content = np.append(np.arange(texts.embedding.size) % 2 == 0, False)
    sampled = passages._sample(texts, is_content, 2, np.random.default_rng(0))
    own = texts.ids.reshape(-1, LENGTH)
    size = texts.embedding.size
    for row, words in zip(sampled, own, strict=True):
        assert all(word == size or (word in words and word % 2 == 0) for word in row)
    assert (sampled < size).any(axis=1).mean() > 0.9


def test_passages_of_the_field_keep_topics_and_noise_takes_some(texts, around):
    scores = list(passages._measure_passages(texts, FIELD, around, BuildContext()))
    accuracy = {score.subject: score.value for score in scores if score.figure == "accuracy"}
    assert accuracy["field, 3 subjects, no noise"] > 0.9
    assert accuracy["field, 3 subjects, loss 8"] > 0.9
    (linked,) = (score.value for score in scores if score.figure == "linked")
    assert 2 / passages.CANDIDATES < linked <= 4 / passages.CANDIDATES


def test_kept_mechanism_encodes_as_the_built_one(texts, tmp_path):
    kept = tmp_path / "kept.npz"
    built = passages._build(texts.embedding, texts.passages, FIELD, 3, BuildContext(), kept)
    symbols = built.encoder.encode(texts.ids, texts.offsets)
    assert (passages._load(kept).encoder.encode(texts.ids, texts.offsets) == symbols).all()


def test_report_has_bounds_and_measured_figures_of_tree(around):
    cells = PassagesTable().plan(around)
    assert [cell.name for cell in cells] == [corpus.name for corpus in CORPORA]
    found = PassagesTable().report(around, {"snips": []}).scores
    assert [score.subject for score in found] == ["loss 8", "tree, 8 a word"]
    assert found[0].value == pytest.approx(0.2297, abs=1e-4)
