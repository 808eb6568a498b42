"""What every attacker and every task does, wordveil's own and those of installed packages."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from support.made_texts import RandomWords, make_topic_texts, shuffle_labels, topic_embedding
from support.toys import random_embedding
from wordveil.evaluation.accuracy import measure_task
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.scores.documents import UNKNOWN, Documents

EMBEDDING = random_embedding(300, 8, seed=5)
WORDS = EMBEDDING.words.to_pylist()


def words_of(authors: int, texts: int, seed: int) -> Documents:
    """Texts of the embedding's words, by authors with habits."""
    habits = np.random.default_rng(7).dirichlet(np.full(len(WORDS), 0.2), authors)
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(authors), texts)
    return Documents.of(
        [" ".join(rng.choice(WORDS, 60, p=habits[label])) for label in labels], [f"{label:02d}" for label in labels]
    )


def check_habits(attack: TextClassifier) -> None:
    """It finds habits, repeats itself, and finds nothing in random labels."""
    known, tested = words_of(8, 8, seed=1), words_of(8, 25, seed=2)
    found = attack.fit(known, 1).predict(tested.texts)
    assert found.dtype == np.int64
    assert (found == tested.labels).mean() > 0.4  # chance is 0.125
    assert np.array_equal(attack.fit(known, 1).predict(tested.texts), found)
    blind = attack.fit(shuffle_labels(known, 3), 1).predict(tested.texts)
    assert (blind == shuffle_labels(tested, 4).labels).mean() < 1 / 8 + 4 * math.sqrt(7 / 64 / 200)


def check_refusals(attack: TextClassifier) -> None:
    """It refuses one author, and reads empty texts."""
    one = Documents.of([WORDS[0], WORDS[1]], ["a", "a"])
    with pytest.raises(ValueError, match="two labels"):
        attack.fit(one, 1)
    fitted = attack.fit(words_of(3, 3, seed=1), 1)
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict(["", "\n"]).shape == (2,)


ATTACK_CHECKS = [check_habits, check_refusals]


def check_topics(classifier: TextClassifier) -> None:
    (score,) = measure_task(classifier, make_topic_texts(150, 1), make_topic_texts(100, 2), "original", "made", 0)
    assert score.value is not None
    assert score.value > 0.9
    assert score.low <= score.value <= score.high
    assert 0.3 < score.chance < 0.45
    assert (score.count, score.method, score.higher_is_better) == (100, classifier.name, True)


def check_chance(classifier: TextClassifier) -> None:
    """Of random labels, and of random words, it names no more than by chance."""
    train, test = make_topic_texts(100, 1), make_topic_texts(200, 2)
    (labels,) = measure_task(classifier, shuffle_labels(train, 3), shuffle_labels(test, 4), "original", "made", 0)
    random = RandomWords(topic_embedding().words)
    train, test = train.with_texts(random.sanitise(train.texts, 5)), test.with_texts(random.sanitise(test.texts, 6))
    (words,) = measure_task(classifier, train, test, "random", "made", 0)
    # A guess that knows nothing is right for a third of 200 texts, give or take 3.3% (one standard deviation).
    assert labels.value == pytest.approx(1 / 3, abs=0.1)
    assert words.value == pytest.approx(1 / 3, abs=0.1)


def check_repeats(classifier: TextClassifier) -> None:
    known, asked = make_topic_texts(80, 1, share=0.15), make_topic_texts(60, 2, share=0.15).texts
    first, again = (classifier.fit(known, 7).predict(asked) for _ in range(2))
    assert first.dtype == np.int64
    assert first.tolist() == again.tolist()
    assert classifier.fit(known, 7).predict([]).tolist() == []


def check_unknown(classifier: TextClassifier) -> None:
    """It does not learn unknown labels, and guesses texts without words."""
    known = make_topic_texts(90, 1)
    labels = np.where(known.labels == 2, UNKNOWN, known.labels)
    fitted = classifier.fit(replace(known, labels=labels), 0)
    assert set(fitted.predict([*make_topic_texts(60, 2).texts, "", "...", "ZZZZ 漢字"]).tolist()) <= {0, 1}
    with pytest.raises(ValueError, match="at least two labels"):
        classifier.fit(replace(known, labels=np.where(labels == 1, UNKNOWN, labels)), 0)


def check_case(classifier: TextClassifier) -> None:
    known, asked = make_topic_texts(80, 1), make_topic_texts(40, 2)
    loud = [f"{text.upper().replace(' ', ', ')}!" for text in asked.texts]
    fitted = classifier.fit(known, 0)
    assert fitted.predict(loud).tolist() == fitted.predict(asked.texts).tolist()


TASK_CHECKS = [check_topics, check_chance, check_repeats, check_unknown, check_case]
