"""Every attacker that names authors finds habits, finds nothing in random labels, and repeats itself."""

from __future__ import annotations

import math
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.made_texts import load_sentences, shuffle_labels
from support.toys import random_embedding, toy_embedding
from wordveil.errors import PlatformError
from wordveil.evaluation.attacks.continuous_ngrams import ContinuousNgrams, NgramUnit
from wordveil.evaluation.attacks.linear import LinearSvm, Unit
from wordveil.evaluation.attacks.nearest_author import NearestAuthor
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.utility.fasttext import FloretClassifier
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.methods import AUTHOR_ATTACKS

pytest.importorskip("sklearn", reason="the extra `evaluation` is not installed")
pytest.importorskip("floret", reason="the extra `evaluation` is not installed")
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


ATTACKS: list[TextClassifier] = [
    *(make() for name, make in AUTHOR_ATTACKS.items() if name != "nearest-author"),
    ContinuousNgrams(NgramUnit.CHARACTERS, epochs=20),
    ContinuousNgrams(NgramUnit.BOTH, epochs=20),
    NearestAuthor(EMBEDDING),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.name}-{getattr(attack, 'unit', '')}")
def test_habits_are_found_and_random_labels_are_not(attack: TextClassifier):
    known, tested = words_of(8, 8, seed=1), words_of(8, 25, seed=2)
    found = attack.fit(known, 1).predict(tested.texts)
    assert found.dtype == np.int64
    assert (found == tested.labels).mean() > 0.4  # chance is 0.125
    assert np.array_equal(attack.fit(known, 1).predict(tested.texts), found)
    blind = attack.fit(shuffle_labels(known, 3), 1).predict(tested.texts)
    assert (blind == shuffle_labels(tested, 4).labels).mean() < 1 / 8 + 4 * math.sqrt(7 / 64 / 200)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.name}-{getattr(attack, 'unit', '')}")
def test_one_author_is_refused_and_empty_texts_are_not(attack: TextClassifier):
    one = Documents.of([WORDS[0], WORDS[1]], ["a", "a"])
    with pytest.raises(ValueError, match="two labels"):
        attack.fit(one, 1)
    fitted = attack.fit(words_of(3, 3, seed=1), 1)
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict(["", "\n"]).shape == (2,)


def test_attacks_are_listed_by_their_names():
    assert {name: make().name for name, make in AUTHOR_ATTACKS.items()} == {name: name for name in AUTHOR_ATTACKS}
    assert all(make().definition.endswith(".") for make in AUTHOR_ATTACKS.values())


def test_nearest_author_takes_the_nearest_text_and_needs_words():
    known = Documents.of([WORDS[0], WORDS[1], "zzunknownzz"], ["a", "b", "a"])
    fitted = NearestAuthor(EMBEDDING).fit(known, 1)
    vectors = EMBEDDING.vectors
    far = [int(np.argmin(((vectors[[0, 1]] - vectors[word]) ** 2).sum(axis=1))) for word in range(2, 60)]
    assert 0 < sum(far) < len(far)
    assert fitted.predict(WORDS[2:60]).tolist() == far
    assert fitted.predict(["zzunknownzz"]).tolist() == [UNKNOWN]
    with pytest.raises(ValueError, match="a word of the embedding"):
        NearestAuthor(EMBEDDING).fit(Documents.of(["zzz", "zzzz"], ["a", "b"]), 1)


@pytest.mark.parametrize("settings", [{"shortest": 3, "longest": 2}, {"shortest": 5}, {"cost": 0.0}])
def test_settings_of_linear_machines_are_checked(settings: dict[str, float]):
    with pytest.raises(ValueError, match="Expected"):
        LinearSvm(Unit.CHARACTERS, **settings)


@pytest.mark.parametrize(("name", "package"), [("svm-words", "scikit-learn"), ("continuous-ngrams", "floret")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str, package: str):
    def find(module: str) -> None:
        raise ModuleNotFoundError(name=module.partition(".")[0])

    monkeypatch.setattr("wordveil.evaluation.packages.import_module", find)
    with pytest.raises(PlatformError, match=rf"{package} is not installed.*pip install 'wordveil\[evaluation\]'"):
        AUTHOR_ATTACKS[name]().fit(words_of(2, 2, seed=1), 1)


@pytest.mark.parametrize("platform", ["linux", "other"])
def test_texts_reach_floret_in_a_private_file_of_which_nothing_is_left(monkeypatch: pytest.MonkeyPatch, platform: str):
    import floret

    seen: list[Path] = []
    asked: list[dict[str, Any]] = []
    train = floret.train_supervised

    def read(name: str) -> list[str]:
        path = Path(name)
        seen.append(path.resolve())
        if platform == "linux":
            assert "memfd" in str(path.readlink()), "a file in memory"
        else:
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        return path.read_text("utf-8").split("\n")

    def look(**settings: Any) -> object:
        asked.append(settings)
        assert read(settings["input"]) == ["__label__0 first line label1", "__label__1 second", ""]
        if vectors := settings["pretrainedVectors"]:
            assert read(vectors) == ["2 2", "first 1 2.5", "other 1e-7 -4", ""]
        return train(**settings)

    monkeypatch.setattr(floret, "train_supervised", look)
    monkeypatch.setattr(sys, "platform", platform)
    fitted = FloretClassifier().train(["first\nline __label__1", "second", " "], np.array([0, 1, 1]), seed=1)
    # Words that no line has as one word are left out.
    words, vectors = ["first", "a b", "__label__2", '"', "other"], [[1, 2.5], [1, 1], [1, 1], [1, 1], [1e-7, -4]]
    begun = FloretClassifier(embedding=toy_embedding(words, vectors))
    begun.train(["first\nline __label__1", "second", " "], np.array([0, 1, 1]), seed=1)
    assert (asked[0]["dim"], asked[0]["epoch"], asked[0]["pretrainedVectors"]) == (10, 25, "")
    assert (asked[1]["dim"], asked[1]["epoch"]) == (2, round(25 * 8 / 10))  # lines of 5 and 3 tokens, and 2 vectors
    assert len(seen) == 3
    assert not any(path.exists() for path in seen)
    assert fitted.predict(["first line", "second", "second\nfirst", ""]).tolist()[3] == 1  # the most frequent label
    with pytest.raises(ValueError, match="at least one text with a word"):
        FloretClassifier().train(["", "\n"], np.array([0, 1]), seed=1)


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
