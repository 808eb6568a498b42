"""Audits of bundles: shipped mechanisms pass; bundles that are broken inside sound manifests are refuted by name."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from support import toys
from wordveil.artifacts.bundle import Recipe, open_bundle, write
from wordveil.audit.bundle import audit_bundle
from wordveil.audit.findings import TESTS_FACT, Audit, Verdict, audit_path, counts, find_passed, load_audit, save_audit
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.er_ae.symbol_choice import make_coins
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.staircase.mechanism import Staircase

WORDS = toys.random_embedding(120, 4)
BALL = toys.toy_embedding(WORDS.words.to_pylist(), WORDS.vectors / 6)
FEW = {"draws": 300, "alpha": 0.01}
SLOPE, LOSS = {"plumbing"}, {"supremum", "plumbing"}


def make(store, name, change=lambda built: built, *, case="", padding=False, settings=None, recipe=None):
    """A bundle of a mechanism's example; ``change``: what is made of what was built; ``recipe``: its settings."""
    kind = MECHANISMS[name]
    embedding = BALL if "hyperbolic" in (name + case) else WORDS
    settings = settings or kind.examples()[case].small
    built = change(toys.build_artifact(kind, embedding, settings, padding=padding))
    told = Recipe(name, {**settings.recipe(), **(recipe or {})}, padding, "toy", embedding.digest)
    return open_bundle(write(store, embedding, built, told, {})), embedding


def refuted(bundle, embedding, **options):
    found = audit_bundle(bundle, embedding, **{**FEW, **options})
    return {one.test.partition(":")[0] for one in found.refuted}


CASES = [(name, case) for name, kind in MECHANISMS.items() for case, one in kind.examples().items() if not one.extra]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_every_shipped_mechanism_passes(tmp_path, name, case):
    bundle, embedding = make(tmp_path, name, case=case, padding=MECHANISMS[name].supports_padding)
    found = audit_bundle(bundle, embedding, **FEW)
    assert found.is_passed, found.refuted
    tests = {one.test: one for one in found.findings}
    assert tests["plumbing"].verdict is Verdict.NOT_REFUTED
    assert tests["supremum"].verdict is (Verdict.HOLDS if name not in ADDITIVE else Verdict.NOT_TESTED)
    assert ({"radius", "direction", "independence"} <= set(tests)) == (name in ADDITIVE)
    assert ("metric" in tests) == (name == "exponential")
    assert tests["outputs"].verdict is Verdict.NOT_REFUTED
    assert any(test.startswith("two-phase:") for test in tests)
    assert Audit.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


ADDITIVE = ("laplace", "hyperbolic-laplace", "hyperbolic-fdd")


def test_the_same_audit_gives_the_same_findings(tmp_path):
    bundle, embedding = make(tmp_path, "tree")

    def find(seed):
        return [replace(one, seconds=0.0) for one in audit_bundle(bundle, embedding, seed=seed, **FEW).findings]

    assert find(0) == find(0)
    assert find(0) != find(1)


def at_epsilon(name, epsilon):
    return replace(MECHANISMS[name].examples()[""].small, epsilon=epsilon)


def arrays_at(name, epsilon):
    other = toys.build_artifact(MECHANISMS[name], WORDS, at_epsilon(name, epsilon), padding=False)
    return {"change": lambda built: replace(built, arrays=other.arrays)}


def half_of(field, source):
    def change(built):
        return replace(built, guarantee=replace(built.guarantee, **{field: getattr(built.guarantee, source) / 2}))

    return {"change": change}


def keep_more(built):
    return replace(built, arrays={**built.arrays, "coins": make_coins(12.0)})


# What a bundle has that it should not, and what refutes it. More privacy than configured is no loss, but not what was
# configured.
WRONG = {
    "staircase built at 8": (lambda: {**arrays_at("staircase", 8.0), "settings": at_epsilon("staircase", 5.0)}, LOSS),
    "staircase built at 5": (lambda: {**arrays_at("staircase", 5.0), "settings": at_epsilon("staircase", 8.0)}, SLOPE),
    "tree built at 6": (lambda: {**arrays_at("tree", 6.0), "settings": at_epsilon("tree", 4.0)}, LOSS),
    "tree built at 4": (lambda: {**arrays_at("tree", 4.0), "settings": at_epsilon("tree", 6.0)}, SLOPE),
    "staircase said to be at 1": (lambda: {"recipe": {"epsilon": 1.0}}, SLOPE),
    "laplace said to be at 1": (lambda: {"recipe": {"epsilon": 1.0}}, SLOPE),
    "er-ae said to be at 1": (lambda: {"recipe": {"epsilon": 1.0}}, SLOPE),
    "er-ae keeps more": (lambda: {"change": keep_more}, LOSS),
    "exponential loses more": (lambda: half_of("largest", "pure"), {"supremum", "metric"}),
    "exponential is steeper": (lambda: half_of("epsilon", "epsilon"), {"metric"}),
    "laplace reaches farther": (lambda: half_of("diameter", "diameter"), {"diameter"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bundle_that_is_not_as_it_says_is_refuted(tmp_path, case):
    make_changes, expected = WRONG[case]
    bundle, embedding = make(tmp_path, case.split(" ")[0], **make_changes())
    assert {test for test in refuted(bundle, embedding) if not test.startswith("two-phase")} == expected


def test_an_exponential_table_of_another_epsilon(tmp_path):
    bundle, embedding = make(tmp_path, "exponential", **arrays_at("exponential", 6.0))
    assert refuted(bundle, embedding) >= {"supremum", "metric", "plumbing"}
    # Without the embedding the claim about distances and the slope are not tested, and that is told.
    found = {one.test: one.verdict for one in audit_bundle(bundle, **FEW).findings}
    assert found["metric"] is found["plumbing"] is Verdict.NOT_TESTED
    assert found["supremum"] is Verdict.REFUTED


def test_a_floor_of_zero_for_one_word(tmp_path):
    def sink(built):
        alike = built.arrays["alike"].copy()
        alike[7] = 0
        return replace(built, arrays={**built.arrays, "alike": alike})

    bundle, embedding = make(tmp_path, "staircase", sink)
    found = audit_bundle(bundle, embedding, **FEW)
    (loss,) = [one for one in found.refuted if one.test == "supremum"]
    assert loss.observed == math.inf
    assert f"'{WORDS.words[7].as_py()}' never" in loss.evidence


@pytest.mark.parametrize(("name", "factor"), [("laplace", 1.1), ("hyperbolic-laplace", 1.5), ("hyperbolic-fdd", 1.5)])
def test_noise_of_another_epsilon(tmp_path, name, factor):
    """All that the bundle says is right, and the noise is not: every part states the configured epsilon."""
    bundle, embedding = make(tmp_path, name)
    wrong = replace(bundle, mechanism=bundle.mechanism.at_epsilon(bundle.guarantee.nominal_epsilon * factor))
    assert refuted(wrong, embedding) >= {"radius", "plumbing"}


class Copying(Laplace):
    """Unknown words come out as they went in: as a symbol that is no output."""

    def draw(self, batch, keys):
        drawn = super().draw(batch, keys)
        drawn.ids[batch.ids == self._size + 1] = self._size + 1
        return drawn


class Other(Staircase):
    """It draws from the table of the next word, and states the probabilities of the word itself."""

    def draw(self, batch, keys):
        return super().draw(replace(batch, ids=(batch.ids + 1) % np.int32(self._size)), keys)


@pytest.mark.parametrize(("name", "kind", "test"), [("laplace", Copying, "outputs"), ("staircase", Other, "law")])
def test_a_sampler_that_does_not_follow_its_table(tmp_path, name, kind, test):
    bundle, embedding = make(tmp_path, name)
    bundle.mechanism.__class__ = kind
    assert test in refuted(bundle, embedding)


def test_audit_bundle_bad_arguments_refused(tmp_path):
    bundle, _ = make(tmp_path, "staircase")
    with pytest.raises(ValueError, match="in their order"):
        audit_bundle(bundle, toys.random_embedding(121, 4))
    for wrong in ({"alpha": 0.0}, {"alpha": math.nan}, {"draws": 1}, {"seed": -1}):
        with pytest.raises(ValueError, match="Expected alpha"):
            audit_bundle(bundle, WORDS, **wrong)


def stored(**changes):
    finding = {"test": "supremum", "verdict": "holds", "claim": "", "evidence": ""}
    facts = {TESTS_FACT: "1", "draws": "4,000", **changes.pop("facts", {})}
    values = {"kind": "bundle", "subject": "", "identity": "ab", "facts": facts, "alpha": 0.01, "notes": []}
    return Audit.from_dict({"format_version": 1, **values, "findings": [finding], **changes})


def test_a_kept_audit_counts_for_what_it_is_about(tmp_path):
    audit = stored()
    assert save_audit(tmp_path, audit) == audit_path(tmp_path, "bundle", "ab")
    assert load_audit(tmp_path, "bundle", "ab") == audit
    assert find_passed(tmp_path, {"bundle": "ab", "release": "cd"}) == ("bundle",)
    assert find_passed(tmp_path, {"bundle": "other"}) == ()
    # A file under another identity than its own does not count.
    audit_path(tmp_path, "bundle", "ab").parent.rename(tmp_path / ".audits" / "cd")
    assert find_passed(tmp_path, {"bundle": "cd"}) == ()


def test_counts_weak_old_or_refuted_audit_false():
    assert counts(stored())
    assert not counts(stored(facts={"draws": "999"}))
    assert not counts(stored(facts={TESTS_FACT: "0"}))
    assert not counts(stored(alpha=1e-6))
    assert not counts(stored(alpha=0.5))
    refutes = {"test": "supremum", "verdict": "refuted", "claim": "", "evidence": ""}
    assert not counts(stored(findings=[refutes]))
    assert not counts(stored(findings=[]))


@pytest.mark.parametrize("kind", ["bundle", "release"])
def test_an_audit_that_could_refute_nothing_does_not_count(kind):
    """Not by other tests that passed, and not in a file that was written before this verdict was."""
    words = {"claim": "", "evidence": ""}
    others = [{"test": test, "verdict": "not refuted", **words} for test in ("outputs", "plumbing", "exposes:length")]
    test = {"bundle": "two-phase:far", "release": "canary:case"}[kind]
    tested = {"test": test, "verdict": "not refuted", "claimed": 9.0, **words}
    powerless = {**tested, "power": "Infinity"}
    facts = {"draws": "4,000"}
    assert counts(stored(kind=kind, facts=facts, findings=[*others, {**tested, "power": 1.5}]))
    audit = stored(kind=kind, facts=facts, findings=[*others, powerless])
    assert audit.verdict is Verdict.NO_POWER
    assert not counts(audit)
    # A computed loss is enough for a bundle, without draws; for a release each feature counts.
    both = [powerless, {"test": "supremum" if kind == "bundle" else "canary:tags", "verdict": "holds", **words}]
    assert counts(stored(kind=kind, facts=facts, findings=both)) is (kind == "bundle")


def test_a_refutation_stays_until_it_is_deleted(tmp_path):
    """Another seed may pass by chance, so it does not replace what was refuted."""
    refutes = {"test": "law", "verdict": "refuted", "claim": "", "evidence": ""}
    place = save_audit(tmp_path, stored(findings=[refutes]))
    assert place == audit_path(tmp_path, "bundle", "ab", is_refuted=True)
    save_audit(tmp_path, stored())
    assert find_passed(tmp_path, {"bundle": "ab"}) == ()
    save_audit(tmp_path, stored(findings=[refutes], facts={TESTS_FACT: "0"}))  # by tests that were replaced
    assert find_passed(tmp_path, {"bundle": "ab"}) == ("bundle",)
    for content in ("", "{}"):  # what it refuted is unknown
        place.write_text(content)
        assert find_passed(tmp_path, {"bundle": "ab"}) == ()
    place.unlink()
    assert find_passed(tmp_path, {"bundle": "ab"}) == ("bundle",)


def test_a_damaged_audit_is_none(tmp_path):
    place = save_audit(tmp_path, stored())
    for content in ("", "[]", '{"format_version": 0}'):
        place.write_text(content)
        assert load_audit(tmp_path, "bundle", "ab") is None
