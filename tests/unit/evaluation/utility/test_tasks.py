"""Tasks are done well on clean texts, by chance where labels or words are random, and badly by neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.made_texts import TOPICS, RandomWords, make_topic_texts, topic_embedding
from support.toys import open_sanitiser
from wordveil.errors import PlatformError
from wordveil.evaluation import packages
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.utility.fasttext import FastText, PretrainedFastText
from wordveil.evaluation.utility.linear import LinearWords
from wordveil.evaluation.utility.neighbours import NearestTexts
from wordveil.evaluation.utility.sentences import (
    SentenceVectors,
)
from wordveil.evaluation.utility.tasks import measure_task
from wordveil.mechanisms.additive.laplace import LaplaceSettings
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.methods import TEXT_TASKS

CLASSIFIERS: dict[str, TextClassifier] = {
    "fasttext": FastText(),
    "fasttext-pretrained": PretrainedFastText(embedding=topic_embedding()),
    "linear-words": LinearWords(),
    "logistic-words": LinearWords("logistic"),
    "neighbours-mean": NearestTexts(topic_embedding()),
    "neighbours-emd": NearestTexts(topic_embedding(), "emd"),
    "sentence-vectors": SentenceVectors(topic_embedding()),
}
each = pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())


def shuffled(documents: Documents, seed: int) -> Documents:
    """The same texts with the labels of others."""
    return replace(documents, labels=np.random.default_rng(seed).permutation(documents.labels))


def test_every_task_is_listed_under_its_name():
    assert set(TEXT_TASKS) == set(CLASSIFIERS)
    assert {name: make().name for name, make in TEXT_TASKS.items()} == {name: name for name in TEXT_TASKS}
    assert all(make().definition.endswith(".") for make in TEXT_TASKS.values())


@each
def test_topics_are_found(classifier: TextClassifier):
    (score,) = measure_task(classifier, make_topic_texts(150, 1), make_topic_texts(100, 2), "original", "made", 0)
    assert score.value is not None
    assert score.value > 0.9
    assert score.low <= score.value <= score.high
    assert 0.3 < score.chance < 0.45
    assert (score.count, score.method, score.higher_is_better) == (100, classifier.name, True)


@each
def test_random_labels_and_random_words_give_chance(classifier: TextClassifier):
    train, test = make_topic_texts(100, 1), make_topic_texts(200, 2)
    (labels,) = measure_task(classifier, shuffled(train, 3), shuffled(test, 4), "original", "made", 0)
    random = RandomWords(topic_embedding().words)
    train, test = train.with_texts(random.sanitise(train.texts, 5)), test.with_texts(random.sanitise(test.texts, 6))
    (words,) = measure_task(classifier, train, test, "random", "made", 0)
    # A guess that knows nothing is right for a third of 200 texts, give or take 3.3% (one standard deviation).
    assert labels.value == pytest.approx(1 / 3, abs=0.1)
    assert words.value == pytest.approx(1 / 3, abs=0.1)


@each
def test_the_same_seed_gives_the_same_guesses(classifier: TextClassifier):
    known, asked = make_topic_texts(80, 1, share=0.15), make_topic_texts(60, 2, share=0.15).texts
    first, again = (classifier.fit(known, 7).predict(asked) for _ in range(2))
    assert first.dtype == np.int64
    assert first.tolist() == again.tolist()
    assert classifier.fit(known, 7).predict([]).tolist() == []


@each
def test_unknown_labels_are_not_learned_and_texts_without_words_are_guessed(classifier: TextClassifier):
    known = make_topic_texts(90, 1)
    labels = np.where(known.labels == 2, UNKNOWN, known.labels)
    fitted = classifier.fit(replace(known, labels=labels), 0)
    assert set(fitted.predict([*make_topic_texts(60, 2).texts, "", "...", "ZZZZ 漢字"]).tolist()) <= {0, 1}
    with pytest.raises(ValueError, match="at least two labels"):
        classifier.fit(replace(known, labels=np.where(labels == 1, UNKNOWN, labels)), 0)


@pytest.mark.parametrize("classifier", [FastText(), LinearWords(), NearestTexts(topic_embedding())])
def test_texts_without_words_teach_nothing(classifier: TextClassifier):
    with pytest.raises(ValueError, match="Expected at least one text with a word"):
        classifier.fit(Documents(["", "-"], np.array([0, 1]), TOPICS), 0)


def make_halves(count: int, seed: int, half: int) -> Documents:
    """Texts of three topics, in one half of the words of each topic, and words of none."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(TOPICS)
    own = 20 * labels[:, None] + 10 * half + rng.integers(0, 10, (count, 4))
    chosen = np.hstack([own, rng.integers(60, 90, (count, 4))])
    words = np.array(topic_embedding().words.to_pylist())[chosen]
    return Documents([" ".join(row) for row in words.tolist()], labels, TOPICS)


def test_public_vectors_tell_the_topic_of_words_that_no_text_had():
    known, asked = make_halves(30, 1, half=0), make_halves(200, 2, half=1)
    shares = {}
    for classifier in (FastText(), PretrainedFastText(embedding=topic_embedding())):
        fitted = classifier.fit(known, 0)
        shares[classifier.name] = np.mean(fitted.predict(asked.texts) == asked.labels)
    assert shares["fasttext"] < 0.45
    assert shares["fasttext-pretrained"] > 0.95
    words, vectors = topic_embedding().words.to_pylist(), topic_embedding().vectors
    assert np.array_equal(fitted.model.model.get_word_vector(words[15]), vectors[15])  # in no text that it learned from
    assert not np.array_equal(fitted.model.model.get_word_vector(words[5]), vectors[5])


def test_case_and_punctuation_are_no_features():
    known, asked = make_topic_texts(80, 1), make_topic_texts(40, 2)
    loud = [f"{text.upper().replace(' ', ', ')}!" for text in asked.texts]
    for classifier in CLASSIFIERS.values():
        fitted = classifier.fit(known, 0)
        assert fitted.predict(loud).tolist() == fitted.predict(asked.texts).tolist()


def test_both_parts_must_have_the_same_labels():
    other = Documents.of(["a"], ["fish"])
    with pytest.raises(ValueError, match="Expected the same labels in both parts of made"):
        measure_task(LinearWords(), make_topic_texts(20, 1), other, "original", "made", 0)


def test_noise_takes_utility_and_leaves_more_than_nothing(tmp_path: Path):
    """Texts that a mechanism sanitised lie between the original and random words, the nearer to these the noisier."""
    train, test = make_topic_texts(150, 1), make_topic_texts(150, 2)
    found = []
    for epsilon in (0.1, 1.0, 30.0):
        system = open_sanitiser(topic_embedding(), "laplace", LaplaceSettings(epsilon=epsilon), tmp_path)
        drawn = [part.with_texts(system.sanitise(part.texts, seed)) for seed, part in enumerate((train, test))]
        found.append(measure_task(LinearWords(), *drawn, f"laplace {epsilon:g}", "made", 0)[0].value)
    (original,) = measure_task(LinearWords(), train, test, "original", "made", 0)
    assert found[0] == pytest.approx(1 / 3, abs=0.12)
    assert found[0] + 0.15 < found[1] < found[2] - 0.15
    assert found[2] == pytest.approx(original.value, abs=0.05)


def test_random_words_keep_the_number_of_words_alone():
    words = topic_embedding().words
    random = RandomWords(words)
    texts = ["One, two; three!", "", "four"]
    drawn = random.sanitise(texts, 1)
    assert [len(text.split()) for text in drawn] == [3, 0, 1]
    assert drawn == random.sanitise(texts, 1) != random.sanitise(texts, 2)
    assert random.sanitise(texts) != random.sanitise(texts)
    counts = np.unique(random.sanitise(["a " * 90_000], 3)[0].split(), return_counts=True)[1]
    # Each of 90 words about 1,000 times; one standard deviation is 31.
    assert len(counts) == len(words)
    assert abs(counts - 1_000).max() < 160


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    def fail(module: str) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module.partition(".")[0])

    monkeypatch.setattr(packages, "import_module", fail)
    for classifier in (FastText(), LinearWords(), SentenceVectors(topic_embedding())):
        with pytest.raises(PlatformError, match=r"pip install 'wordveil\[evaluation\]'"):
            classifier.fit(make_topic_texts(20, 1), 0)
