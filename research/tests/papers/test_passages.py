"""The experiment on passages: an attacker's exact success, samples of words, and its figures on small made texts."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.embedding import check_embedding, load
from wordveil.errors import ConfigError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.training.settings import find_missing
from wordveil.mechanisms.inputs import WORDNET, PublicPassages
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.papers import passages, passages_er_ae, passages_laws, sentence_encoder
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
    whole = pa.array([" ".join(map(str, row)) for row in ids])
    field = PublicPassages(*read, whole[:COUNT], *read, whole[:COUNT])
    return Texts(
        Corpus("made", "made"),
        embedding,
        field,
        ids[COUNT:].ravel(),
        offsets,
        labels[COUNT:].astype(np.int64),
        COUNT,
        whole[COUNT:],
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
    built = passages.build_passages(texts.embedding, texts.passages, FIELD, 3, BuildContext(), kept)
    symbols = built.encoder.encode(texts.ids, texts.offsets, texts.whole)
    assert (passages.load_passages(kept).encoder.encode(texts.ids, texts.offsets, texts.whole) == symbols).all()


def test_other_laws_lose_what_they_name_among_all_symbols():
    rng = np.random.default_rng(0)
    centres = np.rint(1000 * rng.standard_normal((12, 8))).astype(np.float32)
    order, bounds = passages_laws.group_centres(centres, 4)
    nearest = passages_laws.list_nearest(centres, 3)
    nested, lists = passages_laws.nest_law(order, bounds, 1.5, 4.0), passages_laws.list_law(nearest, 4.0)
    for laws in (nested, lists):
        assert laws.shape == (13, 13)
        assert laws.sum(axis=1) == pytest.approx(1)
        assert np.log(laws.max(axis=0) / laws.min(axis=0)).max() == pytest.approx(4, abs=1e-6)
    for start, stop in pairwise(bounds):
        inside = nested[order[start:stop]]
        assert np.log(inside.max(axis=0) / inside.min(axis=0)).max() == pytest.approx(1.5, abs=1e-6)
    assert (nearest[:, 0] == np.arange(12)).all()
    response = passages_laws.list_law(nearest[:, :1], 4.0)
    assert response.diagonal() == pytest.approx(np.e**4 / (np.e**4 + 12))


def test_draw_symbols_follows_its_laws():
    laws = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    symbols = np.repeat(np.arange(3, dtype=np.int32), 20_000)
    drawn = passages_laws.draw_symbols(laws, symbols, 0).reshape(3, -1)
    shares = [np.bincount(row, minlength=3) / 20_000 for row in drawn]
    assert np.abs(shares - laws).max() < 0.02


def test_other_laws_and_starts_keep_topics(texts, around):
    scores = list(passages._measure_laws(texts, around, BuildContext()))
    accuracy = {score.subject: score.value for score in scores if score.figure == "accuracy"}
    nested = [accuracy[f"{FIELD}, 4 subjects in 2 groups, {inner} inside, loss 8"] for inner in (2, 4, 6)]
    assert 0.5 < nested[0] < nested[1] < nested[2]
    # Two groups cannot tell three topics apart, and a list of two of four subjects mixes them.
    assert accuracy[f"{FIELD}, 4 subjects in 2 groups, 6 inside, loss 8, by group"] < nested[2]
    assert 0.4 < accuracy[f"{FIELD}, 4 subjects in lists of 2, loss 8"] < nested[2]
    starts = list(passages._measure_starts(texts, around, BuildContext()))
    nearness = [score.value for score in starts if score.figure == "nearness"]
    assert len(nearness) == passages.STARTS + 1
    assert len(set(nearness)) > 1
    assert 0.1 < min(nearness) <= max(nearness) <= 1


def test_er_ae_draws_texts_of_one_length_at_the_loss_it_names(texts):
    words = texts.embedding.words.to_pylist()
    weights = make_repeating_weights(texts.embedding)
    length = weights.shape.length
    written = [" ".join(words[:4]), " ".join(words[: length + 5])] * 100
    ids = passages_er_ae.encode_fixed(written, texts.embedding, length)
    assert ids[1].tolist() == list(range(length))
    mechanism = passages_er_ae.build_at(20.0, texts.embedding, weights)
    assert mechanism.exact_loss().nats == pytest.approx(20, abs=1e-6)
    drawn = passages_er_ae.rewrite(mechanism, ids, passages.make_key(0))
    assert drawn.shape == ids.shape
    assert (drawn[:, 0] == ids[:, 0]).mean() > 0.9  # this generator repeats the first word of a text


def test_report_has_bounds_and_measured_figures_of_tree(around):
    cells = PassagesTable().plan(around)
    others = [f"{corpus.name}, other laws" for corpus in CORPORA if corpus.other_laws]
    others += [] if find_missing() else ["snips, er-ae"]
    assert [cell.name for cell in cells] == [*(corpus.name for corpus in CORPORA), *others]
    found = PassagesTable().report(around, {"snips": []}).scores
    assert [score.subject for score in found] == ["loss 8", "tree, 8 a word"]
    assert found[0].value == pytest.approx(0.2297, abs=1e-4)


def test_a_sentence_model_is_measured_on_the_texts_of_the_sums(texts, around, monkeypatch):
    class Model:
        """Reads of each word, a number, which topic has it."""

        def __init__(self, name, device): ...

        def encode(self, texts, **_):
            found = [
                np.bincount([int(word) // OWN for word in text.split() if word.isdigit()], minlength=TOPICS)
                for text in texts
            ]
            return np.array([counts[:TOPICS] for counts in found], np.float32)

    library: Any = ModuleType("sentence_transformers")
    library.__spec__, library.SentenceTransformer = ModuleSpec(library.__name__, None), Model
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setattr(sentence_encoder, "SUBJECTS", (TOPICS,))
    monkeypatch.setattr(sentence_encoder, "_sample_wordnet", lambda _: texts.passages)
    name = "sentence-transformers:numbers"
    scores = [
        score
        for source in (FIELD, WORDNET)
        for score in sentence_encoder._measure_source(texts, "model", source, around, name)
    ]
    accuracy = {score.subject: score.value for score in scores if score.figure == "accuracy"}
    assert accuracy["model, field, 3 subjects, no noise"] == accuracy["model, wordnet, 3 subjects, no noise"] == 1
    assert 0.9 < accuracy["model, field, 3 subjects, loss 8"] <= 1
    model = sentence_encoder.BatchedModel(Model("", ""))
    read = {score.figure: score.value for score in sentence_encoder._compare_readings(texts, model, around)}
    assert read["other-points"] == read["other-symbols-3"] == read["close-3"] == 0


def test_the_experiment_on_models_needs_the_name_of_one(around, monkeypatch):
    monkeypatch.delenv(sentence_encoder.MODEL, raising=False)
    with pytest.raises(ConfigError, match="WORDVEIL_SENTENCE_MODEL: is not set"):
        sentence_encoder.SentenceEncoderTable().plan(around)
