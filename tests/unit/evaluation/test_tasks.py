"""Tasks are done well on clean texts, by chance where labels or words are random, and badly by neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.classifier_checks import TASK_CHECKS
from support.made_texts import TOPICS, make_topic_texts, topic_embedding
from support.toys import open_sanitiser
from wordveil.evaluation.accuracy import measure_task
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.linear import LinearWords
from wordveil.mechanisms.additive.laplace import LaplaceSettings
from wordveil.scores.documents import Documents
from wordveil.scores.methods import TEXT_TASKS


@pytest.mark.parametrize("check", TASK_CHECKS)
@pytest.mark.parametrize("name", TEXT_TASKS.shipped)
def test_a_task_keeps_to_what_all_do(check: Callable[[TextClassifier], None], name: str):
    check(TEXT_TASKS[name]())


def test_texts_without_words_teach_nothing():
    with pytest.raises(ValueError, match="Expected at least one text with a word"):
        LinearWords().fit(Documents(["", "-"], np.array([0, 1]), TOPICS), 0)


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
