"""What an epsilon means is put together from figures that are tested by themselves, for each kind of mechanism."""

from __future__ import annotations

from math import exp, factorial
from typing import Any

import numpy as np
import pytest

from support.toys import random_embedding
from wordveil.measures.calibration.figures import EpsilonMeaning
from wordveil.measures.calibration.meaning import (
    PADDING,
    BuiltSubject,
    Subject,
    WordPlan,
    bound_utility,
    measure_meaning,
)
from wordveil.measures.recovery import measure_recovery, require_law
from wordveil.mechanisms.registry import MECHANISMS

SIZE = 80
EMBEDDING = random_embedding(SIZE, 3, seed=4)
NAMES = EMBEDDING.words.to_pylist()
PLAN = WordPlan(words=50, runs=60, threshold=0.02)
FIGURES = ["N_w", "S_w", "inputs", "H0", "H_inf", "moved", "cosine"]


def built_of(name: str, epsilon: float = 3.0, *, padding: bool = True, **settings: Any) -> BuiltSubject:
    made = MECHANISMS[name].settings_type(epsilon=epsilon, **settings)  # type: ignore[call-arg]
    return Subject(name, made, EMBEDDING, padding=padding).build(epsilon)


def figure(meaning: EpsilonMeaning, name: str) -> Any:
    return next(one for one in meaning.words if one.name == name)


def test_of_a_table_it_is_exact():
    built = built_of("exponential", neighbours=10)
    laws = np.stack([require_law(built.mechanism, word) for word in range(SIZE)])
    found = measure_meaning(built, PLAN)
    assert [one.name for one in found.words] == FIGURES
    assert all(one.is_exact for one in found.words)
    assert found.share_kept == pytest.approx(np.diag(laws).mean())
    kept = figure(found, "N_w")
    assert kept.worst == pytest.approx(np.diag(laws).max(), rel=1e-5)
    assert kept.worst_word == NAMES[int(np.argmax(np.diag(laws)))]
    assert sum(one.count for one in kept.histogram) == SIZE
    assert kept.quantiles[2] == pytest.approx(np.median(np.diag(laws)), rel=1e-5)
    assert figure(found, "inputs").worst == (laws[:, :SIZE] > PLAN.threshold).sum(axis=0).min()
    assert figure(found, "S_w").worst == pytest.approx((1 - (1 - laws) ** PLAN.runs).sum(axis=1).min(), rel=1e-5)
    assert found.recovery == measure_recovery(built.mechanism, built.subject.frequencies).to_dict()  # type: ignore[union-attr]
    assert [found.pure_epsilon, found.utility] == [built.guarantee.pure, {}]
    for example in found.examples:
        law = laws[NAMES.index(example.word)]
        assert [share for _, share in example.outputs] == pytest.approx(np.sort(law)[::-1][:5])
        assert example.outputs[0][0] == [*NAMES, PADDING][int(np.argmax(law))]


def test_share_in_cluster_counts_each_clusters_representative():
    built = built_of("tree", 4.0, clusters=(6,), least=3)
    laws = np.stack([require_law(built.mechanism, word) for word in range(SIZE)])
    expected = [law[built.mechanism.drawn_alike(word)].sum() for word, law in enumerate(laws)]
    found = measure_meaning(built, PLAN)
    assert found.share_in_cluster == pytest.approx(np.mean(expected))
    assert found.share_kept < found.share_in_cluster / 3
    for other in (built_of("tree", 4.0, clusters=(6,), least=3, output="member"), built_of("exponential")):
        assert measure_meaning(other, PLAN).share_in_cluster is None


def test_a_median_loss_to_the_nearest_is_that_of_the_laws():
    built = built_of("exponential", neighbours=10)
    vectors = EMBEDDING.vectors.astype(float)
    losses = []
    for word in range(SIZE):
        apart = np.linalg.norm(vectors - vectors[word], axis=1)
        apart[word] = np.inf
        pair = [np.log(require_law(built.mechanism, one)) for one in (word, int(np.argmin(apart)))]
        losses.append(np.abs(pair[0] - pair[1]).max())
    assert measure_meaning(built, PLAN).nearest_loss == pytest.approx(np.median(losses))


def test_meaning_of_noise_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    built = built_of("laplace")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    found = measure_meaning(built, PLAN)
    assert [one.name for one in found.words] == FIGURES
    assert not any(one.is_exact for one in found.words)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    assert found == measure_meaning(built, PLAN)
    assert sum(one.count for one in figure(found, "N_w").histogram) == PLAN.words
    assert found.delta > 0
    assert all(np.diff([share for _, share in one.outputs]).max() <= 0 for one in found.examples)
    more = measure_meaning(built_of("laplace", 9.0), PLAN)
    assert more.share_kept > found.share_kept + 0.2
    assert figure(more, "S_w").average < figure(found, "S_w").average
    assert figure(more, "moved").average < figure(found, "moved").average
    assert figure(more, "cosine").average > figure(found, "cosine").average


def test_utility_is_bounded_by_the_law_of_all_words_noise():
    """docs/proofs/bag-utility.md: 1 - exp(-x) e_(nN-1)(x) for n = 2, N = 3, x = 6 is 0.554; one word's law: 0.983."""

    def kept(x: float, shape: int) -> float:
        return 1 - exp(-x) * sum(x**power / factorial(power) for power in range(shape))

    built = built_of("laplace", padding=False)  # noise of three dimensions
    found = bound_utility(built.mechanism, 3.0, 3)
    for percent in (50, 95):
        x = 3.0 * 3 * found[f"points_{percent}"]
        assert kept(x, 3 * 3) == pytest.approx(percent / 100)
        assert kept(x, 3) != pytest.approx(percent / 100, abs=0.01)
        assert found[f"words_{percent}"] == 2 * found[f"points_{percent}"]
    assert [found["noise_dimension"], found["text_words"]] == [3, 3]
    assert bound_utility(built_of("laplace").mechanism, 3.0)["noise_dimension"] == 4  # padding has one of its own


@pytest.mark.parametrize("wrong", [{"words": 0}, {"runs": 0}, {"threshold": 1.0}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=f"Expected {next(iter(wrong))}="):
        WordPlan(**wrong)
