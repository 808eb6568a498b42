"""Attackers find habits and tasks are done well on sound texts, and neither where labels or words are random."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from support.classifier_checks import ATTACK_CHECKS, TASK_CHECKS, words_of
from support.made_texts import TOPICS, load_sentences
from wordveil.errors import PlatformError
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.linear import LinearSvm, LinearWords, Unit
from wordveil.scores.documents import Documents
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS

pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")


@pytest.mark.parametrize("check", ATTACK_CHECKS)
@pytest.mark.parametrize("name", AUTHOR_ATTACKS.shipped)
def test_an_attacker_keeps_to_what_all_do(check: Callable[[TextClassifier], None], name: str):
    check(AUTHOR_ATTACKS[name]())


def test_attacks_and_tasks_are_listed_by_their_names():
    for registry in (AUTHOR_ATTACKS, TEXT_TASKS):
        assert {name: make().name for name, make in registry.items()} == {name: name for name in registry}
        assert all(make().definition.endswith(".") for make in registry.values())


@pytest.mark.parametrize("settings", [{"shortest": 3, "longest": 2}, {"shortest": 5}, {"cost": 0.0}])
def test_settings_of_linear_machines_are_checked(settings: dict[str, float]):
    with pytest.raises(ValueError, match="Expected"):
        LinearSvm(Unit.CHARACTERS, **settings)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    def find(module: str) -> None:
        raise ModuleNotFoundError(name=module.partition(".")[0])

    monkeypatch.setattr("wordveil.evaluation.classifiers.import_module", find)
    with pytest.raises(PlatformError, match=r"scikit-learn is not installed.*pip install 'wordveil\[evaluation\]'"):
        AUTHOR_ATTACKS["svm-words"]().fit(words_of(2, 2, seed=1), 1)


def test_the_machine_is_the_formula():
    """Rare n-grams weigh more, and a text's weights have length 1: on real sentences of two kinds."""
    from sklearn.svm import LinearSVC

    texts = load_sentences(100)
    known, tested = (texts.take(np.arange(start, len(texts), 2)) for start in (0, 1))
    grams = [
        Counter(text[at : at + size] for size in (2, 3, 4) for at in range(len(text) - size + 1))
        for text in map(str.lower, texts.texts)
    ]
    numbers = {gram: number for number, gram in enumerate(sorted(set().union(*grams[::2])))}
    among = Counter(gram for row in grams[::2] for gram in row)
    table = np.zeros((len(texts), len(numbers)))
    for row, counts in enumerate(grams):
        for gram, count in counts.items():
            if gram in numbers:
                rarity = 1 + math.log((1 + len(known)) / (1 + among[gram]))
                table[row, numbers[gram]] = (1 + math.log(count)) * rarity
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    machine = LinearSVC(C=1.0, random_state=1).fit(table[::2], known.labels)
    sure = np.abs(machine.decision_function(table[1::2])) > 1e-3
    found = LinearSvm().fit(known, 1).predict(tested.texts)
    assert sure.mean() > 0.95
    assert np.array_equal(found[sure], machine.predict(table[1::2])[sure])
    assert (found == tested.labels).mean() > 0.8


@pytest.mark.parametrize("check", TASK_CHECKS)
@pytest.mark.parametrize("name", TEXT_TASKS.shipped)
def test_a_task_keeps_to_what_all_do(check: Callable[[TextClassifier], None], name: str):
    check(TEXT_TASKS[name]())


def test_texts_without_words_teach_nothing():
    with pytest.raises(ValueError, match="Expected at least one text with a word"):
        LinearWords().fit(Documents(["", "-"], np.array([0, 1]), TOPICS), 0)
