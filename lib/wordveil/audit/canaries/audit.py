"""Audit of a release by canaries: from its settings to documents, and from their outputs to findings."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe
from wordveil.audit.canaries.compare import CanaryRun, Difference, compare_admitted, compare_run, find_least_hits
from wordveil.audit.canaries.documents import DocumentPlan, make_pairs
from wordveil.audit.canaries.structure import ReleaseClaim, check_layout, check_structure
from wordveil.audit.canaries.tables import Inputs
from wordveil.audit.canaries.words import choose_words
from wordveil.audit.findings import Finding, Verdict
from wordveil.embeddings.embedding import check_embedding
from wordveil.mechanisms.base import MechanismArtifact, pure_guarantee
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tables.mechanism import build_certified, symbol_rows
from wordveil.neighbours.lists import NeighbourLists
from wordveil.privacy.relations import Exposure, column_exposure
from wordveil.text.slots import NgramModel

_CLAIMS = {
    "noise": "two versions of a record that differ have noise of their own.",
    "ids": "two records with one text have noise of their own.",
    "values": "no value of a typed token shows where the policy distinguishes its class from words.",
    "order": "the order of hidden words does not show by itself.",
    "bytes": "the bytes in which a text was written do not show.",
    "controls": "invisible characters show only as the policy says.",
    "size": "the size of a text shows only as the policy says.",
}
UNTESTED: Mapping[str, str] = {
    Exposure.EDITED: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.WITHDRAWN: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.GATE: "the gate judges a whole release, and the canaries pass none.",
}
"""Exposures that no document can show, and why."""
_NO_DOCUMENT = "no made document could show it under this policy."


def judge_differences(differences: Sequence[Difference], claim: ReleaseClaim, alpha: float) -> list[Finding]:
    """Judge undeclared exposures: a finding for each feature.

    ``differences``: all tests of all runs. ``claim``: what the release claims. ``alpha``: the probability that any test
    of a true claim refutes it. Each test has an equal share (Bonferroni).
    """
    limit = alpha / max(len(differences), 1)
    features: dict[str, list[Difference]] = {}
    for difference in differences:
        features.setdefault(difference.feature.partition(" (")[0], []).append(difference)
    return [_judge_feature(feature, its, claim, limit) for feature, its in features.items()]


def _judge_feature(feature: str, differences: Sequence[Difference], claim: ReleaseClaim, limit: float) -> Finding:
    promise = _CLAIMS.get(feature, f"two texts that differ in {feature} differ in the output only as exposes says.")
    shown = [difference for difference in differences if difference.contrast.p_value <= limit]
    undeclared = [difference for difference in differences if difference.allowed.isdisjoint(claim.exposes)]
    worst = min(undeclared, key=lambda difference: difference.contrast.p_value, default=None)
    p_value = worst.contrast.p_value if worst else None
    verdict, power = Verdict.NOT_REFUTED, None
    if worst and worst.contrast.p_value <= limit:
        verdict = Verdict.REFUTED
        evidence = f"{worst.feature}: {worst.what} shows, and exposes does not say so ({worst.contrast})."
    elif said := sorted({str(name) for difference in shown for name in difference.allowed if name in claim.exposes}):
        evidence = f"shows as {', '.join(said)}, which exposes says."
    else:
        draws = _count_least(differences)
        least = find_least_hits(draws, limit)
        power = math.inf if least is None else None
        evidence = (
            f"nothing shows. An event in {least} of {draws} copies of one document and in none of the other would."
        )
        if least is None:
            evidence = f"nothing shows. With {draws} copies nothing could have: use more copies."
    return Finding(
        f"canary:{feature}", verdict, promise, evidence, p_value=p_value, power=power, draws=_count(differences)
    )


def _count(differences: Sequence[Difference]) -> int:
    return sum(sum(difference.contrast.draws) for difference in differences)


def _count_least(differences: Sequence[Difference]) -> int:
    """Count the copies that test the difference with the fewest."""
    return min(min(difference.contrast.draws) or max(difference.contrast.draws) for difference in differences)


def judge_exposures(
    differences: Sequence[Difference], claim: ReleaseClaim, alpha: float, untested: Mapping[str, str]
) -> Iterator[Finding]:
    """Judge whether any pair of documents shows the declared exposures.

    ``untested``: exposures that documents may not be able to show, with reasons. The other parameters are those of
    :func:`judge_differences`.
    """
    limit = alpha / max(len(differences), 1)
    for name in claim.exposes:
        promise = f"the release shows {name}."
        tests = [test for test in differences if name in test.allowed and (name == Exposure.LENGTH or test.is_specific)]
        own = [test for test in tests if test.about == name]
        # Whole records show these, whatever their documents differ in.
        is_of_rows = name in (Exposure.PRESENCE, Exposure.CONDITION)
        shown = [test for test in (tests if is_of_rows else own) if test.contrast.p_value <= limit]
        verdict, evidence = Verdict.REFUTED, "it is declared and cannot occur: no documents that differ in it show it."
        if name.startswith(column_exposure("")):
            verdict, evidence = Verdict.HOLDS, "the column is in the output (canary:columns, canary:kept)."
        elif shown:
            verdict, evidence = Verdict.NOT_REFUTED, f"{shown[0].what}: {shown[0].contrast}."
        elif name in untested or not own:
            verdict, evidence = Verdict.NOT_TESTED, untested.get(name, _NO_DOCUMENT)
        elif find_least_hits(_count_least(own), limit) is None:
            verdict, evidence = Verdict.NO_POWER, "so few copies could not have shown it: use more copies."
        yield Finding(f"exposes:{name}", verdict, promise, evidence, draws=_count(own))


COPIES, LEAST_COPIES = 64, 48
"""Copies of each document; with fewer than the second no difference could be distinguished from chance."""


def make_inputs(
    bundle: Bundle,
    plan: DocumentPlan,
    model: NgramModel | None,
    *,
    keep: Sequence[str] = (),
    copies: int = COPIES,
    seed: int = 0,
) -> Inputs:
    """Make the documents of an audit.

    ``bundle``: of the release: the documents consist of its words. ``plan``: what else decides the documents.
    ``model``: the n-gram model that the policy names, if any. ``keep``: the kept columns. ``copies``: how many records
    have each document; at least :data:`LEAST_COPIES`. ``seed``: of the choice of words.

    Raises
    ------
    ValueError
        where there are too few copies, or the policy hides no text of such words.
    """
    if copies < LEAST_COPIES:
        raise ValueError(f"copies = {copies}: fewer than {LEAST_COPIES} tell no difference from chance. Use more.")
    rng = np.random.default_rng(seed)
    words = choose_words(bundle, plan.policy, model, rng, names_language=plan.names_language)
    return Inputs.make(make_pairs(words, plan), copies, keep, rng)


def write_blind_bundle(bundle: Bundle, store: Path) -> Path:
    """Write a bundle of the same words whose mechanism draws each symbol uniformly from them; return its directory.

    Under it, texts that differ only in their hidden words have outputs of one law. So whatever still distinguishes two
    texts is structure.
    """
    words = bundle.vocabulary.array.to_pylist()
    size, padding = len(words), bundle.padding
    embedding = check_embedding(words, np.ones((size, 1)), "made documents")
    # A table of the exponential mechanism whose scores are all 0. Without padding among the outputs, since how many
    # words are written would else vary.
    zeros = np.zeros(size)
    alike = NeighbourLists(np.arange(size + 1), np.arange(size, dtype=np.int32), zeros, zeros, 0.0)
    table, _ = build_certified(symbol_rows(alike, 0.0, 0.0, padding=False), 0.0)
    built = MechanismArtifact({"padding": padding}, table.arrays, pure_guarantee(embedding, 0.0, 0.0, padding=padding))
    language = bundle.lists.language if bundle.lists else ""
    recipe = Recipe(Exponential.name, {}, padding, "made documents", embedding.digest, lists=language)
    return bundles.write(store, embedding, built, recipe, {})


def judge_runs(
    inputs: Inputs,
    runs: Sequence[CanaryRun],
    claim: ReleaseClaim,
    alpha: float,
    untested: Mapping[str, str] | None = None,
    admitted: tuple[Collection[str], Collection[str]] | None = None,
) -> tuple[Finding, ...]:
    """Judge the outputs of the documents.

    ``inputs``: the documents. ``runs``: the outputs, with the release's mechanism and with a blind one. ``claim``: what
    the release claims. ``alpha``: the probability that any true claim is refuted, over all tests. ``untested``: more
    exposures that documents may not be able to show here, and why. ``admitted``: the ids of each table whose records
    meet the condition on the input; None where there is none.
    """
    differences = [difference for run in runs for difference in compare_run(inputs, run)]
    differences += compare_admitted(inputs, *admitted) if admitted else []
    layout = check_layout(runs, claim)
    why = "canary:layout says whether the order of rows follows the texts." if layout else "no files were written."
    reasons = {**UNTESTED, **(untested or {}), Exposure.LAYOUT: why}
    return (
        *judge_differences(differences, claim, alpha),
        *check_structure(inputs, runs, claim),
        *([layout] if layout else []),
        *judge_exposures(differences, claim, alpha, reasons),
    )
