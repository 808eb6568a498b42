"""The laboratory's attackers find habits, and floret reads texts from a private file."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.classifier_checks import ATTACK_CHECKS, EMBEDDING, WORDS
from support.toys import toy_embedding
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.methods.continuous_ngrams import ContinuousNgrams, NgramUnit
from wordveil_research.methods.fasttext import FloretClassifier
from wordveil_research.methods.koppel import Koppel
from wordveil_research.methods.nearest_author import NearestAuthor

ATTACKS = [
    Koppel(),
    ContinuousNgrams(),
    ContinuousNgrams(NgramUnit.CHARACTERS, epochs=20),
    ContinuousNgrams(NgramUnit.BOTH, epochs=20),
    NearestAuthor(EMBEDDING),
]


@pytest.mark.parametrize("check", ATTACK_CHECKS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.name}-{getattr(attack, 'unit', '')}")
def test_an_attacker_keeps_to_what_all_do(check, attack):
    check(attack)


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


@pytest.mark.parametrize("platform", ["linux", "other"])
def test_floret_texts_in_a_private_file_that_is_deleted(monkeypatch: pytest.MonkeyPatch, platform: str):
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
