"""Any function from a word to a word can be audited; what cannot be tested is told plainly."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordveil.audit.callables import audit_callable
from wordveil.audit.findings import Audit
from wordveil.audit.repetition import compare_outputs
from wordveil.cli.audit import load_object
from wordveil.errors import ConfigError

WORDS = [f"w{place}" for place in range(12)]
EPSILON = 2.0


def metric(first: str, second: str) -> float:
    return abs(int(first[1:]) - int(second[1:])) * 0.5


def exponential(factor: float, seed: int = 1) -> Callable[[str], str]:
    """The exponential mechanism; a factor over 1/2 is too much."""
    weights = {word: [math.exp(-factor * EPSILON * metric(word, other)) for other in WORDS] for word in WORDS}
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    return lambda word: rng.choices(WORDS, weights[word])[0]


def audit(function: Any, **changed: Any) -> Audit:
    given: dict[str, Any] = {"pairs": 4, "draws": 800, "alpha": 0.01, "seed": 0, **changed}
    return audit_callable(function, given.pop("words", WORDS), given.pop("metric", metric), EPSILON, **given)


def test_a_sound_function_passes_and_a_broken_one_does_not():
    sound, broken = audit(exponential(0.5)), audit(exponential(1.5))
    assert sound.is_passed
    assert sound.kind == "callable"
    assert Audit.from_dict(sound.to_dict()) == sound
    assert "two-phase:nearest" in {finding.test for finding in broken.refuted}
    assert sound.facts["epsilon"] == "2"


def test_any_string_is_an_output():
    """It marks one call of fifty with the word itself, which is in no vocabulary."""
    inner, count = exponential(0.5), itertools.count()
    audited = audit(lambda word: f"<{word}>" if next(count) % 50 == 7 else inner(word), draws=4_000)
    assert "two-phase:nearest" in {finding.test for finding in audited.refuted}
    assert "<w" in audited.refuted[0].evidence


def test_a_deterministic_function_is_told_plainly():
    copied, constant = audit(lambda word: word), audit(lambda _: "x")
    assert copied.refuted
    assert "deterministic" in copied.notes[-1]
    assert "no finite epsilon" in copied.notes[-1]
    assert constant.is_passed
    assert "tells nothing" in constant.notes[-1]
    assert not any("deterministic" in note for note in audit(exponential(0.5)).notes)


def test_lists_are_given_to_functions_that_take_them():
    class Batch:
        takes_lists = True

        def __init__(self) -> None:
            self.inner, self.calls = exponential(0.5), 0

        def __call__(self, words: list[str]) -> list[str]:
            self.calls += 1
            return [self.inner(word) for word in words]

    function = Batch()
    found = audit(function)
    assert found.is_passed
    assert function.calls < 200
    assert found.subject.endswith("Batch")
    assert audit(function.__call__, takes_lists=True).is_passed


def test_a_seed_that_is_set_at_each_call_is_found():
    def same(words: list[str]) -> list[str]:
        rng = random.Random(3)  # noqa: S311 - the fault itself
        return [rng.choice(WORDS) for _ in words]

    assert [finding.test for finding in audit(same, takes_lists=True).refuted] == ["repetition"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"function": lambda _: None}, "NoneType for 'w0'"),
        ({"function": lambda _: 3}, "int for 'w0'"),
        ({"function": lambda _: 1 / 0}, "ZeroDivisionError for 'w0'"),
        ({"function": lambda words: words[:-1], "takes_lists": True}, "a list of 49 for a list of 50"),
        ({"function": lambda words: "x" * len(words), "takes_lists": True}, "a str for a list"),
        ({"metric": lambda *_: math.nan}, "metric: the distance of .* is nan"),
        ({"metric": lambda *_: -1.0}, "finite, 0 or more"),
        ({"metric": lambda *_: 1 / 0}, "metric: it raised ZeroDivisionError"),
        ({"words": ["a"]}, "words = 1"),
        ({"words": ["a", "b", "a"]}, "words = 3"),
        ({"words": ["a", 3]}, "strings only"),
        ({"alpha": 1.0}, "alpha = 1.0"),
        ({"pairs": 0}, "pairs = 0"),
        ({"draws": 3}, "draws = 3"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(changed: dict[str, Any], message: str):
    function = changed.pop("function", exponential(0.5))
    with pytest.raises(ConfigError, match=message):
        audit(function, **changed)


def test_outputs_that_agree_are_found_whatever_their_law():
    rng = np.random.default_rng(0)
    for share in (0.05, 0.5, 0.9):
        left, right = (rng.random((2, 4_000)) < share).astype(int)
        assert compare_outputs(left, right, seed=0).p_value > 1e-4
        linked = np.where(rng.random(4_000) < 0.6, left, right)
        assert compare_outputs(left, linked, seed=0).p_value < 1e-4
    values = [compare_outputs(*rng.integers(0, 5, (2, 400)), seed=0).p_value for _ in range(500)]
    assert np.mean(np.array(values) < 0.05) < 0.08
    with pytest.raises(ValueError, match="one length"):
        compare_outputs(left, right[1:], seed=0)


def test_objects_are_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine_audited.py").write_text("class A:\n    f = staticmethod(str.upper)\nWORDS = ['a']\n")
    (tmp_path / "mine_failing.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert load_object("mine_audited:A.f", "function")("x") == "X"
    assert load_object("mine_audited:WORDS", "--words") == ["a"]
    for spec, message in {
        "mine_audited": "expected module:name",
        "mine audited:f": "expected module:name",
        "mine_audited:g": "mine_audited has no g",
        "mine_audited:A.g": "has no A.g",
        "not_there_at_all:f": "there is no module not_there_at_all",
        "mine_failing:f": "importing mine_failing raised ZeroDivisionError",
    }.items():
        with pytest.raises(ConfigError, match=message):
            load_object(spec, "function")
    assert sys.path == before
