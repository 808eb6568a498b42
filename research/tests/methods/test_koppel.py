"""Koppel's method does what a loop over pairs does, refuses as it says, and finds nothing where there is nothing."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from support.made_texts import make_documents, shuffle_labels
from wordveil.evaluation.accuracy import measure_authorship
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.methods import koppel
from wordveil_research.methods.koppel import Koppel, Profiles, Weights
from wordveil_research.methods.space_free import find_features

SMALL = Koppel(iterations=12, share=0.3, threshold=0.5, features=400)


def bags(texts: list[str]) -> list[Counter[int]]:
    return [Counter(codes.tolist()) for text in texts for _, codes in find_features([text], lower=True)]


def by_loop(fitted: koppel.FittedKoppel, known: Documents, texts: list[str], *, with_norms: bool = True) -> np.ndarray:
    """Return the winner of each snippet and round, pair by pair."""
    space = fitted.profiles.space
    authors = {
        label: sum(bags([known.texts[i] for i in np.flatnonzero(known.labels == label)]), Counter())
        for label in range(len(known.names))
    }
    weights = dict(zip(space.codes.tolist(), space.weights.tolist(), strict=True))
    winners = np.full((len(texts), space.masks.shape[1]), UNKNOWN)
    for turn in range(space.masks.shape[1]):
        chosen = set(space.codes[space.masks[:, turn] == 1].tolist())
        for row, bag in enumerate(bags(texts)):
            best = 0.0
            for label, author in authors.items():
                dot = sum(count * author[one] * weights[one] for one, count in bag.items() if one in chosen)
                norm = math.sqrt(sum(count**2 * weights[one] for one, count in author.items() if one in chosen))
                cosine = dot / norm if with_norms and norm else dot
                if cosine > best:
                    best, winners[row, turn] = cosine, label
    return winners


@pytest.mark.parametrize("weights", list(Weights))
def test_winners_are_those_of_a_loop_over_pairs(weights: Weights):
    known, snippets = make_documents(6, 3, seed=1, words=40), make_documents(6, 2, seed=2, words=25)
    fitted = Koppel(SMALL.iterations, SMALL.share, SMALL.threshold, SMALL.features, weights).fit(known, seed=4)
    found = fitted.profiles.find_winners(fitted.profiles.space.count(snippets.texts)).labels
    assert np.array_equal(found, by_loop(fitted, known, list(snippets.texts)))
    assert not np.array_equal(found, by_loop(fitted, known, list(snippets.texts), with_norms=False))


def test_weights_are_inverse_document_frequencies():
    known = Documents.of(["abcd abcd", "abcd wxyz", "abcd"], ["a", "b", "a"])
    space = Koppel(weights=Weights.TF_IDF).fit(known, seed=1).profiles.space
    of = dict(zip(space.codes.tolist(), space.weights.tolist(), strict=True))
    numbers = {text: int(next(find_features([text], lower=True))[1][0]) for text in ("abcd", "wxyz")}
    assert of[numbers["abcd"]] == 256
    assert of[numbers["wxyz"]] == round(256 * (1 + math.log(4 / 2)) ** 2)


def test_rounds_look_at_their_share_of_the_features():
    masks = SMALL.fit(make_documents(3, 3, seed=1), seed=4).profiles.space.masks
    assert (masks.sum(axis=0) == round(0.3 * len(masks))).all()
    assert len(np.unique(masks, axis=1).T) == SMALL.iterations
    assert 0.2 < masks.mean(axis=1).std() * math.sqrt(SMALL.iterations) < 0.7  # 0.46 for independent rounds


def test_blocks_of_authors_have_the_cosines_of_all(monkeypatch: pytest.MonkeyPatch):
    known, snippets = make_documents(9, 2, seed=1), make_documents(9, 1, seed=2)
    fitted = SMALL.fit(known, seed=1)
    space = fitted.profiles.space
    counts = space.count(snippets.texts)
    whole = fitted.profiles.find_winners(counts)
    monkeypatch.setattr(koppel, "_DENSE_BYTES", 0)
    best = np.zeros_like(whole.cosines)
    for third in range(3):
        rows = np.flatnonzero(known.labels % 3 == third)
        part = Profiles.of(space, space.count([known.texts[row] for row in rows]), known.labels[rows])
        np.maximum(best, part.find_winners(counts).cosines, out=best)
    assert np.array_equal(best, whole.cosines)


def test_it_answers_above_the_threshold_alone():
    known, snippets = make_documents(8, 3, seed=1), make_documents(8, 4, seed=2, words=12)
    scored = SMALL.fit(known, seed=1).score(snippets.texts)
    assert 0.5 < (scored.labels == snippets.labels).mean() < 1
    for threshold in (0.0, 0.5, 0.75):
        fitted = Koppel(SMALL.iterations, SMALL.share, threshold, SMALL.features).fit(known, seed=1)
        expected = np.where(scored.shares > threshold, scored.labels, UNKNOWN)
        assert np.array_equal(fitted.predict(snippets.texts), expected)
    is_sure = scored.shares > 0.75
    assert 0 < is_sure.sum() < len(snippets)
    hits = scored.labels == snippets.labels
    assert hits[is_sure].mean() > hits[~is_sure].mean()


def test_koppel_ties_to_lower_number_nothing_shared_unknown():
    known = Documents.of(["same words here", "same words here", "others"], ["a", "b", "c"])
    scored = Koppel(iterations=5, share=1.0).fit(known, seed=1).score(["same words", "", "zzzz"])
    assert scored.labels.tolist() == [0, UNKNOWN, UNKNOWN]
    assert scored.shares.tolist() == [1.0, 0.0, 0.0]


def test_unknown_authors_teach_nothing():
    known = Documents(["abcd efgh", "ijkl mnop", "ijkl ijkl"], np.array([0, 1, UNKNOWN]), ("a", "b"))
    scored = Koppel(iterations=3, share=1.0).fit(known, seed=1).score(["ijkl", "abcd"])
    assert scored.labels.tolist() == [1, 0]


def test_texts_too_long_for_exact_sums_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(koppel, "_EXACT", 100.0)
    with pytest.raises(ValueError, match="Use less of each author"):
        SMALL.fit(make_documents(3, 3, seed=1), seed=1)


@pytest.mark.parametrize(
    "settings",
    [{"iterations": 0}, {"features": 0}, {"share": 0.0}, {"share": float("nan")}, {"share": 1.1}, {"threshold": 1.0}],
)
def test_settings_are_checked(settings: dict[str, float]):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}={next(iter(settings.values()))}"):
        Koppel(**settings)


def test_random_labels_give_chance():
    known, snippets = make_documents(10, 5, seed=1), make_documents(10, 30, seed=2)
    scored = Koppel(iterations=20, threshold=0.0).fit(shuffle_labels(known, 3), seed=1).score(snippets.texts)
    shuffled = shuffle_labels(snippets, 4).labels
    assert (scored.labels == shuffled).mean() < 0.1 + 4 * math.sqrt(0.09 / 300)


def test_koppel_also_tells_what_it_answers():
    attack = Koppel(iterations=20, threshold=0.5, features=500)
    known, snippets = make_documents(8, 3, seed=1), make_documents(8, 4, seed=2, words=12)
    scores, _ = measure_authorship(attack, known, snippets, snippets.texts, known.texts, "same", 1)
    scored = attack.fit(known, 1).score(snippets.texts)
    found = {score.figure: score.value for score in scores if (score.subject, score.variant) == ("same", "adaptive")}
    is_answered = scored.shares > 0.5
    assert 0 < is_answered.mean() < 1
    assert found["accuracy"] == pytest.approx((scored.labels == snippets.labels).mean())
    assert found["answered"] == pytest.approx(is_answered.mean())
    assert found["precision"] == pytest.approx((scored.labels == snippets.labels)[is_answered].mean())
