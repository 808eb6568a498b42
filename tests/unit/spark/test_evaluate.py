"""How records are split into what an attacker knows and what it guesses, and what becomes of the scores."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from support.made_texts import TINY, WEAK, make_habits
from support.toys import install_sentence_transformers
from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.evaluations import EvaluationContext, load_evaluation
from wordveil.errors import BundleError, InputError, PlatformError
from wordveil.evaluation.figures import Figures, find_attack_to_chance, measure_words
from wordveil.evaluation.pairs import Pairs
from wordveil.scores.score import Group, Score
from wordveil.spark.evaluate.job import attack_authors, measure_pairs, split_rows

LABELS = ["a", "b", "a", None, "c", "b", "a", "", "b", "a", "b", "c", "a", "b"]


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_each_label_has_records_in_both_parts(share: float, seed: int):
    known, others = split_rows(LABELS, share, 3, seed)
    both = np.concatenate([known, others])
    assert sorted(both) == [place for place, label in enumerate(LABELS) if label in ("a", "b")]
    for label in ("a", "b"):
        sizes = [sum(LABELS[row] == label for row in part) for part in (known, others)]
        assert sizes == [min(4, max(1, round(5 * share))), 5 - min(4, max(1, round(5 * share)))]


def test_the_seed_decides_which():
    splits = [split_rows(LABELS, 0.5, 2, seed) for seed in (1, 1, 2)]
    assert np.array_equal(splits[0][0], splits[1][0])
    assert not np.array_equal(splits[0][0], splits[2][0])
    # Over many seeds each record is known as often as another of its label.
    often = np.bincount(np.concatenate([split_rows(["a"] * 4 + ["b"] * 4, 0.5, 2, seed)[0] for seed in range(400)]))
    assert often.sum() == 1600
    assert abs(often - 200).max() < 50  # five deviations of 10


def test_one_label_cannot_be_told_apart():
    assert split_rows(LABELS, 0.5, 6, 0) is None
    assert split_rows(["a", "a", "", None], 0.5, 2, 0) is None


def test_recovery_of_single_words_is_measured_on_all_words(workspace: Workspace):
    bundle = build_bundle(workspace.config())
    scores = measure_words(bundle)
    assert scores
    assert {score.count for score in scores} == {bundle.vocabulary.size}


def score(**changes: object) -> Score:
    made = Score("release", Group.ATTACK, "authors", "m", "adaptive", "accuracy", 0.4, 0.3, 0.5, 0.2, 50, "What it is.")
    return replace(made, **changes)


def test_the_best_adaptive_attacker_decides():
    others = [
        score(high=0.9, variant="static"),
        score(high=0.9, subject="original"),
        score(high=0.9, figure="precision"),
        score(value=None, low=None, high=None),
        score(chance=None),
    ]
    assert find_attack_to_chance(Figures(others), 2.0) is None
    assert find_attack_to_chance(Figures([score(), *others, score(high=0.6)]), 2.0) == pytest.approx(3.0)
    # An attacker that is worse on a smaller pool may still be further above chance.
    assert find_attack_to_chance(Figures([score(), score(high=0.4, chance=0.1)]), 2.0) == pytest.approx(4.0)
    assert find_attack_to_chance(Figures([score()], missing=["koppel"]), 2.0) is None


def test_a_gate_has_no_figure_that_could_not_have_failed():
    """Of two authors even who names all is only twice as often right as by chance, and few records show nothing."""
    two = score(value=0.5, low=0.45, high=0.55, chance=0.5, detectable=0.55)
    assert find_attack_to_chance(Figures([two]), 2.0) is None
    assert find_attack_to_chance(Figures([two]), 1.9) == pytest.approx(1.1)
    few = score(value=0.5, low=0.01, high=0.99, chance=0.5, detectable=float("inf"))
    assert find_attack_to_chance(Figures([few]), 1.9) is None


def make_pairs(context: EvaluationContext, seed: int = 1) -> Pairs:
    table = make_habits()
    records = pa.table({"__text": table["body"], "__reason": pa.nulls(len(table), pa.string())})
    return Pairs(
        records=records,
        released=tuple(context.sanitiser.sanitise_records(records, seed)),
        sample=np.arange(len(table)),
        authors=tuple(table["author"].to_pylist()),
        labels=tuple(table["topic"].to_pylist()),
        bundles=frozenset({context.bundle.fingerprint}),
        policies=frozenset({context.policy}),
        total=len(table),
    )


def prepared(workspace: Workspace, mechanism: dict[str, object], **evaluation: object):
    section = {"attackers": ["svm-words"], "tasks": ["linear-words"], "label": "topic", "author": "author"}
    config = workspace.config(mechanism=mechanism, evaluation={**section, **evaluation})
    build_bundle(config)
    context = load_evaluation(config)
    return context, make_pairs(context)


def test_attack_where_words_are_kept_finds_authors_repeatably(workspace: Workspace):
    """What an attacker knows is drawn with another key than what it attacks."""
    ratios = []
    for mechanism in (WEAK, TINY):
        context, pairs = prepared(workspace, mechanism)
        found = [find_attack_to_chance(attack_authors(context, pairs, 0, drawing=2), 2.0) for _ in range(2)]
        assert found[0] == found[1]
        ratios.append(found[0])
    assert ratios[0] > 4
    assert ratios[1] < 2.5


def test_a_sample_without_authors_or_with_few_says_so(workspace: Workspace):
    context, pairs = prepared(workspace, WEAK, min_texts=20)
    found = measure_pairs(context, pairs, {})
    assert [note for note in found.notes if "fewer than two authors have 20 released records" in note]
    assert not [score for score in found.scores if score.task == "authors"]
    assert [score for score in found.scores if score.task == "topic"]
    assert attack_authors(context, replace(pairs, authors=(None,) * len(pairs)), 0) is None


def test_configured_encoder_measures_similarity_and_linkage(workspace: Workspace, monkeypatch):
    asked = install_sentence_transformers(monkeypatch)
    found = {}
    for encoder in ("weighted-bag", "mean-vector", "sentence-transformers:some/model"):
        context, pairs = prepared(workspace, TINY, encoder=encoder, attackers=[], tasks=[], topics=0)
        scores = measure_pairs(context, pairs, {}).scores
        (similarity,) = (score for score in scores if score.task == "similarity")
        (linked,) = (score for score in scores if (score.method, score.figure) == ("nearest-vector", "linked"))
        assert similarity.method == encoder
        assert f"by the encoder {encoder}." in linked.definition
        found[encoder] = similarity.value
    assert len(set(found.values())) == 3
    assert asked == ["some/model"]


def test_encoder_lacking_its_package_is_refused_before_reading(workspace: Workspace, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    config = workspace.config(mechanism=WEAK, evaluation={"encoder": "sentence-transformers:some/model"})
    words = "evaluation.encoder = sentence-transformers:some/model: .* `pip install sentence-transformers`, or set"
    with pytest.raises(PlatformError, match=words):
        load_evaluation(config)


def test_texts_of_another_bundle_or_policy_are_refused(workspace: Workspace):
    context, pairs = prepared(workspace, WEAK)
    for changes, error, words in (
        ({"bundles": frozenset({"other"})}, BundleError, "was drawn with the bundle other"),
        ({"policies": frozenset({"other"})}, BundleError, "another text policy"),
    ):
        with pytest.raises(error, match=words):
            measure_pairs(context, replace(pairs, **changes), {})
    empty = replace(pairs, records=pairs.records.slice(0, 0), released=(), authors=(), labels=())
    with pytest.raises(InputError, match="has no released record"):
        measure_pairs(context, empty, {})
