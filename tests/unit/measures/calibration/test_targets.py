"""What a target asks for is what the epsilon gives that is found; what no epsilon gives is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from support.toys import KEYS, random_embedding
from wordveil.errors import BundleError
from wordveil.measures.calibration import targets
from wordveil.measures.calibration.meaning import Subject
from wordveil.measures.calibration.targets import (
    BAYES_RECOVERY,
    SHARE_KEPT,
    WORST_N_W,
    UnreachableError,
    find_target,
    match,
    read_worst,
)
from wordveil.measures.recovery import require_law
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.registry import MECHANISMS

SIZE = 120
EMBEDDING = random_embedding(SIZE, 4, seed=3)
TABLES: dict[str, dict[str, Any]] = {
    "exponential": {"neighbours": 20},
    "staircase": {},
    "tree": {"sizes": [5], "output": "member"},
}


def subject_of(name: str, epsilon: float = 3.0, **settings: Any) -> Subject:
    return Subject(name, MECHANISMS[name].settings_type(epsilon=epsilon, **settings), EMBEDDING)  # type: ignore[call-arg]


def laws_at(name: str, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws of all words, and how frequent these are."""
    built = subject_of(name, **TABLES[name]).build(epsilon)
    return np.stack([require_law(built.mechanism, word) for word in range(SIZE)]), built.subject.frequencies


def figure_at(name: str, target: str, epsilon: float) -> float:
    laws, prior = laws_at(name, epsilon)
    if target == SHARE_KEPT:
        return float(np.diag(laws).mean())
    return float((prior[:, None] * laws).max(axis=0).sum())


@pytest.mark.parametrize(("target", "value"), [(SHARE_KEPT, 0.15), (BAYES_RECOVERY, 0.25)])
@pytest.mark.parametrize("name", TABLES)
def test_an_exact_target_is_reached(name: str, target: str, value: float):
    found = find_target(subject_of(name, **TABLES[name]), target, value)
    assert found.is_exact
    assert found.epsilon == float(f"{found.epsilon:.3g}")
    assert found.low <= found.epsilon <= found.high <= found.low * 1.006
    assert found.reached == pytest.approx(figure_at(name, target, found.epsilon), rel=1e-5)
    assert found.reached == pytest.approx(value, rel=0.01)
    assert figure_at(name, target, 1.1 * found.epsilon) > value * 1.01
    assert found.target == f"{target}={value:g}"


def test_drawn_share_interval_covers_the_truth(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(targets, "DRAWS", 2_000)
    found = find_target(subject_of("laplace"), SHARE_KEPT, 0.3)
    assert not found.is_exact
    assert found.low < found.epsilon < found.high < 1.4 * found.low
    assert found.reached == pytest.approx(0.3, abs=0.01)
    words = np.repeat(np.arange(SIZE, dtype=np.int32), 60)
    mechanisms = [subject_of("laplace").build(at).mechanism for at in (found.low, found.high, 1.3 * found.epsilon)]
    shares = [float(np.mean(draw_tokens(each, words, b"other draws", KEYS) == words)) for each in mechanisms]
    assert shares[0] < 0.3 < shares[1]
    assert binomtest(round(shares[2] * len(words)), len(words), 0.3).pvalue < 1e-9


@pytest.mark.parametrize(
    ("name", "settings", "target", "value", "says"),
    [
        ("tree", {"sizes": [5]}, SHARE_KEPT, 0.5, "a smaller figure"),
        ("exponential", {"neighbours": 20}, BAYES_RECOVERY, 0.01, "a larger figure"),
        ("staircase", {}, "pure_epsilon", 60.0, "a smaller loss"),
    ],
)
def test_what_no_epsilon_gives_is_refused(name: str, settings: dict[str, Any], target: str, value: float, says: str):
    with pytest.raises(UnreachableError, match=f"{target}={value:g}: no epsilon .*{says}"):
        find_target(subject_of(name, **settings), target, value)


@pytest.mark.parametrize(
    ("name", "value"), [("kept", 0.3), (SHARE_KEPT, 0.0), (SHARE_KEPT, 1.0), ("pure_epsilon", np.inf), (WORST_N_W, 0.5)]
)
def test_no_target_is_refused_before_anything_is_built(name: str, value: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Subject, "build", lambda *_: pytest.fail("it was built"))
    with pytest.raises(ValueError, match="Expected"):
        find_target(subject_of("laplace"), name, value)
    with pytest.raises(ValueError, match="Expected by="):
        match(subject_of("laplace"), None, name if name != WORST_N_W else SHARE_KEPT)  # type: ignore[arg-type]


@pytest.mark.parametrize("by", targets.MATCHES)
def test_matched_mechanisms_have_the_same_figure(by: str):
    found = match(subject_of("exponential", **TABLES["exponential"]), subject_of("staircase").build(4.0), by)
    figures = []
    for name, epsilon in (("staircase", 4.0), ("exponential", found.epsilon)):
        laws, prior = laws_at(name, epsilon)
        figures.append(np.diag(laws).max() if by == WORST_N_W else (prior[:, None] * laws).max(axis=0).sum())
    assert figures[1] == pytest.approx(figures[0], rel=0.01)
    assert found.reached == pytest.approx(figures[1], rel=1e-5)
    assert found.is_exact


def test_the_worst_word_is_found_by_draws():
    subject = subject_of("laplace")
    mechanism = subject.build(3.0).mechanism
    found = read_worst(mechanism, subject.frequencies)
    words = np.repeat(np.arange(SIZE, dtype=np.int32), 800)
    stays = (draw_tokens(mechanism, words, b"all", KEYS) == words).reshape(SIZE, -1).mean(axis=1)
    assert found.low - 0.03 < stays.max() < found.high + 0.03
    assert np.sort(stays)[-6] < found.low  # of words that stay less it would be less
    assert not found.is_exact


def test_a_mechanism_that_draws_by_other_words_is_refused():
    settings = MECHANISMS["er-ae"].settings_type(epsilon=8.0, model="generator.npz")  # type: ignore[call-arg]
    with pytest.raises(BundleError, match="by the words around it"):
        Subject("er-ae", settings, EMBEDDING)
