"""Attacks are measured as they are defined: what each learns from, what it is asked about, and what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from support.toys import open_sanitiser, random_embedding
from wordveil.arrays import Int64
from wordveil.evaluation.accuracy import count_confusions, measure_authorship
from wordveil.evaluation.classifiers import RefusingClassifier, Scored
from wordveil.evaluation.linear import LinearSvm, Unit
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.score import Group, Score


@dataclass(frozen=True)
class FirstWord:
    """Takes a text for its first word, if that was known; refuses otherwise."""

    name: str = "first-word"
    definition: str = "Looks at first words."

    def fit(self, known: Documents, seed: int) -> FirstWords:
        words = [text.split()[0] for text in known.texts]
        return FirstWords(dict(zip(words, known.labels.tolist(), strict=True)))


@dataclass(frozen=True)
class FirstWords:
    known: dict[str, int]

    def predict(self, texts: Sequence[str]) -> Int64:
        return np.array([self.known.get(text.split()[0], UNKNOWN) for text in texts], np.int64)


KNOWN = Documents.of(["red a", "blue b", "green c"], ["x", "y", "z"])
SNIPPETS = Documents(["red", "red", "blue", "green", "grey", "red"], np.array([0, 1, 1, 2, 2, UNKNOWN]), KNOWN.names)


def by_key(scores: list[Score]) -> dict[tuple[str, str, str], Score]:
    return {(score.subject, score.variant, score.figure): score for score in scores}


def test_static_adaptive_and_clean():
    released = ["rot", "blau", "blau", "red", "grau", "rot"]
    scores, confusions = measure_authorship(
        FirstWord(), KNOWN, SNIPPETS, released, ["rot", "blau", "grau"], "release", 1
    )
    found = by_key(scores)
    assert {key: score.value for key, score in found.items()} == {
        ("release", "static", "accuracy"): 0.0,  # only "red" is known, and it is of another author
        ("release", "adaptive", "accuracy"): pytest.approx(4 / 5),
        ("original", "static", "accuracy"): pytest.approx(3 / 5),
    }
    score = found["release", "adaptive", "accuracy"]
    assert (score.group, score.task, score.method) == (Group.ATTACK, "authors", "first-word")
    assert (score.chance, score.count, score.higher_is_better) == (2 / 5, 5, False)
    assert score.low is not None
    assert score.high is not None
    assert score.low < 0.8 < score.high
    assert "throwaway key" in score.definition
    assert [(one.subject, one.variant) for one in confusions] == [
        ("release", "static"),
        ("release", "adaptive"),
        ("original", "static"),
    ]
    assert confusions[2].counts == ((1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1))
    assert confusions[0].counts == ((0, 0, 0, 1), (0, 0, 0, 2), (1, 0, 0, 1))


@dataclass(frozen=True)
class Votes(RefusingClassifier):
    """Names the first author by as many tenths of the votes as a text has words."""

    def score(self, texts: Sequence[str]) -> Scored:
        shares = np.array([len(text.split()) / 10 for text in texts])
        return Scored(np.where(shares > 0, 0, UNKNOWN), shares)


@dataclass(frozen=True)
class Voting(FirstWord):
    threshold: float = 0.5

    def fit(self, known: Documents, seed: int) -> Votes:
        return Votes(self.threshold)


def test_one_that_may_refuse_also_tells_what_it_answers():
    snippets = Documents(["a " * 7, "a " * 6, "a " * 5, ""], np.array([0, 1, 0, 1]), KNOWN.names)
    scores, confusions = measure_authorship(Voting(), KNOWN, snippets, snippets.texts, KNOWN.texts, "same", 1)
    found = {key[2]: score.value for key, score in by_key(scores).items() if key[:2] == ("same", "adaptive")}
    assert found == {"accuracy": 0.5, "answered": 0.5, "precision": 0.5}
    assert confusions[0].counts == ((1, 0, 0, 1), (1, 0, 0, 1), (0, 0, 0, 0))


def test_one_that_never_answers_has_no_precision():
    scores, _ = measure_authorship(Voting(threshold=0.9), KNOWN, SNIPPETS, SNIPPETS.texts, KNOWN.texts, "few", 1)
    precision = by_key(scores)["few", "static", "precision"]
    assert (precision.value, precision.chance, precision.count) == (None, None, 0)
    assert "no snippet" in precision.note
    assert by_key(scores)["few", "static", "answered"].value == 0


def test_the_adaptive_attacker_is_no_weaker_than_the_static_one(tmp_path):
    """A mechanism that moves words far: what is left of habits is seen by who learns from drawn text alone."""
    embedding = random_embedding(300, 8, seed=5)
    words = embedding.words.to_pylist()
    habits = np.random.default_rng(7).dirichlet(np.full(len(words), 0.2), 6)
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(6), 30)
    corpus = Documents.of(
        [" ".join(rng.choice(words, 80, p=habits[one])) for one in labels], [str(one) for one in labels]
    )
    known, snippets = corpus.take(np.arange(0, 180, 2)), corpus.take(np.arange(1, 180, 2))
    found = {}
    for epsilon in (0.05, 6.0):
        system = open_sanitiser(embedding, "exponential", ExponentialSettings(epsilon=epsilon), tmp_path / str(epsilon))
        released, redrawn = system.sanitise(snippets.texts, 1), system.sanitise(known.texts, 2)
        for attack in (LinearSvm(Unit.CHARACTERS), LinearSvm(Unit.WORDS)):
            scores, _ = measure_authorship(attack, known, snippets, released, redrawn, "release", 1)
            values = {key[:2]: score for key, score in by_key(scores).items() if key[2] == "accuracy"}
            static, adaptive = values["release", "static"], values["release", "adaptive"]
            assert static.value is not None
            assert adaptive.value is not None
            assert adaptive.value > static.value - 3 * np.sqrt(0.25 / 90)
            assert values["original", "static"].value > 0.5
            found[epsilon, attack.name] = adaptive.value
    for name in ("svm-characters", "svm-words"):
        assert found[6.0, name] > found[0.05, name] + 0.15  # a weaker mechanism leaves more
        assert found[0.05, name] < 1 / 6 + 4 * np.sqrt(5 / 36 / 90)  # a strong one leaves chance


def test_confusions_leave_out_texts_without_an_author():
    answers, labels = np.array([0, 1, UNKNOWN, 1]), np.array([0, 0, 1, UNKNOWN])
    assert count_confusions(answers, labels, 2) == ((1, 1, 0), (0, 0, 1))
