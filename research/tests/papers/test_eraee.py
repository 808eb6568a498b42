"""ER-AE's experiments with generators that are trained in seconds."""

from __future__ import annotations

import io
import math
import tarfile
from functools import partial

import numpy as np
import pytest

from wordveil.embeddings.embedding import load
from wordveil.errors import InputError
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.quantise import quantise_weights
from wordveil.mechanisms.er_ae.mechanism import ErAeSettings
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.report.page import render_evaluation
from wordveil.scores.documents import Documents
from wordveil_research.mechanisms.syntf import SynTFSettings
from wordveil_research.papers import eraee_tables
from wordveil_research.papers.eraee import find_epsilon
from wordveil_research.papers.eraee_tables import ERAETables, find_similar
from wordveil_research.papers.repeats import find_score
from wordveil_research.papers.rows import Row, load_embedding, match_loss
from wordveil_research.papers.samples import NOVELS
from wordveil_research.papers.sentences import choose_sentences, read_rows
from wordveil_research.papers.trained import GeneratorSizes
from wordveil_research.runner.base import Surroundings

pytestmark = pytest.mark.xdist_group("jax")
SIZES = GeneratorSizes(
    words=300, length=5, cells=24, latent=16, known_words=2_000, epochs=20, plain_epochs=15, batch=16
)
ALONE = "the generator alone", "generator"
WORDS = load("demo").words.to_pylist()[: SIZES.words]


def make_texts(count: int, seed: int) -> list[str]:
    """Make texts of sentences, each a run of five of the first 120 words of the vocabulary."""
    starts = np.random.default_rng(seed).integers(0, 24, (count, 4)) * 5
    return [" ".join(f"{' '.join(WORDS[at : at + 5])}." for at in row) for row in starts.tolist()]


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    return load_embedding(SIZES.embedding, tmp_path_factory.mktemp("unused"))


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    """Novels by three authors, and sizes with which one generator is trained in seconds."""
    pytest.importorskip("jax", reason="JAX is not installed, which trains generators")
    data = tmp_path_factory.mktemp("data")
    with tarfile.open(data / NOVELS, "w:xz") as archive:
        for author, year in ((author, year) for author in range(3) for year in range(3)):
            text = " ".join(make_texts(20, 10 * author + year)).encode()
            entry = tarfile.TarInfo(f"corpus/Author{author}_T{year}_190{year}.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    small = eraee_tables.Sizes(shown=2, listed=1, counted=6, book_words=200, snippet_words=40, generator=SIZES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eraee_tables, "_QUICK", small)
        yield Surroundings(data, tmp_path_factory.mktemp("work"), 1, is_quick=True)


@pytest.fixture(scope="module")
def results(around):
    """Scores of the cells that need no more than the generator with the reward."""
    wanted = ("ER-AE", "ER-AE softmax-rr, 40 a token", "SynTF, 40 a token")
    experiment = ERAETables()
    cells = [cell for cell in experiment.plan(around) if cell.name.partition(", ")[2] in wanted]
    return {cell.name: experiment.measure(cell, around) for cell in cells}


def test_an_epsilon_has_its_loss():
    assert find_epsilon(11.4, 20_002) == pytest.approx(3.0, abs=0.01)
    for loss in (11.4, 40.0):
        assert find_epsilon(loss, 8_000) / 2 + math.log(7_999) == pytest.approx(loss)
    with pytest.raises(ValueError, match="above"):
        find_epsilon(5.0, 20_000)


def test_the_first_words_of_an_embedding_are_one(embedding):
    whole = load("demo")
    assert embedding.words.to_pylist() == WORDS
    np.testing.assert_array_equal(embedding.vectors, whole.vectors[: SIZES.words])


def test_similar_words_highest_cosines_and_the_word_itself(embedding):
    words = np.array([3, 50, 119], np.int32)
    units = embedding.vectors / np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
    for word, found in zip(words.tolist(), find_similar(embedding, words, 4), strict=True):
        assert set(found.tolist()) == set(np.argsort(-(units @ units[word]))[:4].tolist())
        assert word in found


def test_sentences_are_of_known_words_and_of_each_label_in_turn(embedding):
    texts = [f"{' '.join(WORDS[:5])}. unheardofword {' '.join(WORDS[:4])}. {' '.join(WORDS[7:12])}!", *make_texts(1, 3)]
    found = choose_sentences(Documents.of(texts, ["a", "b"]), embedding, 5, 3)
    assert found.texts[0] == " ".join(WORDS[:5])
    assert found.texts[2] == " ".join(WORDS[7:12])
    assert texts[1].startswith(f"{found.texts[1]}.")
    with pytest.raises(InputError, match="known words"):
        choose_sentences(Documents.of(["unheardofword"], ["a"]), embedding, 5, 3)


def test_what_is_written_has_the_certified_loss_of_its_row(embedding):
    settings = ErAeSettings(epsilon=find_epsilon(11.4, SIZES.words), model="ER-AE")
    inputs = PublicInputs(generator=make_repeating_weights(embedding))
    built = MECHANISMS["er-ae"].build(embedding, settings, padding=False, work=BuildContext(), inputs=inputs)
    assert built.guarantee.epsilon == pytest.approx(11.4)


@pytest.mark.parametrize("loss", [2.0, 1e3])
def test_syntf_has_the_certified_loss_of_its_row_or_its_largest(loss, tmp_path):
    row = Row("SynTF", "syntf", {"neighbours": 256}, embedding=SIZES.embedding, loss=loss)
    build = partial(MECHANISMS["syntf"].build, load_embedding(row.embedding, tmp_path), padding=False)
    found, larger = (
        build(SynTFSettings(epsilon=epsilon, **row.settings), work=BuildContext()).guarantee.epsilon
        for epsilon in (match_loss(row, tmp_path).epsilon, 2e3)
    )
    wanted = min(loss, larger)
    assert 0.99 * wanted <= found <= loss
    # Its epsilon alone says something else.
    assert build(SynTFSettings(epsilon=loss, **row.settings), work=BuildContext()).guarantee.epsilon < 0.8 * loss


def test_generators_say_what_comes_after_the_original_words(embedding):
    weights = make_repeating_weights(embedding, 5)
    generator = WholeNumberGenerator(weights.shape, quantise_weights(weights))
    documents = Documents.of(make_texts(4, 7), ["a"] * 4)
    sentences = choose_sentences(documents, embedding, 5, 9)
    lengths = np.array([len(ids) for ids in sentences.ids])
    seen = list(read_rows(generator, sentences))
    assert [len(rows) for rows, _, _ in seen] == [int((lengths > place).sum()) for place in range(lengths.max())]
    for place, (rows, words, softmaxes) in enumerate(seen):
        assert words.tolist() == [int(sentences.ids[row][place]) for row in rows]
        assert softmaxes.shape == (len(rows), embedding.size)
        np.testing.assert_allclose(softmaxes.sum(axis=1), 1)


def test_a_generator_is_trained_once(around, results, monkeypatch):
    monkeypatch.setattr("wordveil_research.papers.trained._train", None)
    experiment = ERAETables()
    (cell,) = [cell for cell in experiment.plan(around) if cell.name == "training, ER-AE"]
    assert experiment.measure(cell, around) == results["training, ER-AE"]
    (other,) = [cell for cell in experiment.plan(around) if cell.name == "training, AE-DP"]
    with pytest.raises(TypeError):
        experiment.measure(other, around)


def test_the_tables_show_candidates_choices_and_sentences(around, results):
    evaluation = ERAETables().report(around, results)
    found = {
        place: find_score(evaluation.scores, f"ER-AE, {place[0]}", figure="similar", method=place[1]).value
        for place in (ALONE, ("40 a token", "softmax-rr"), ("40 a token", "two-set"), ("11.4 a token", "two-set"))
    }
    assert found["40 a token", "softmax-rr"] == pytest.approx(found[ALONE], abs=1e-6)
    assert 0 < found["11.4 a token", "two-set"] < found["40 a token", "two-set"] <= 1
    # Sentences are runs of the vocabulary, which a generator that has learned them continues.
    assert found[ALONE] > 0.5
    assert len(evaluation.examples) == 5
    subjects = {"ER-AE, likeliest words", "SynTF, 40 a token, sentences", "ER-AE softmax-rr, 40 a token, sentences"}
    assert {example.subject for example in evaluation.examples} == subjects
    assert all(score.note == "" for score in evaluation.scores if score.task == "sentences")
    assert any(note.startswith("ER-AE, 11.4 a token: P(a similar word)") for note in evaluation.notes)
    assert "softmax-rr" in render_evaluation(evaluation)
