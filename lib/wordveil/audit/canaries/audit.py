"""From a release's settings to documents, and from their outputs to findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe
from wordveil.audit.canaries.compare import Run, compare_admitted, compare_run
from wordveil.audit.canaries.documents import Plan, make_pairs
from wordveil.audit.canaries.judge import UNTESTED, judge_differences, judge_exposures
from wordveil.audit.canaries.structure import Claim, check_layout, check_structure
from wordveil.audit.canaries.tables import Inputs
from wordveil.audit.canaries.words import choose_words
from wordveil.audit.findings import Finding
from wordveil.embeddings.embedding import check_embedding
from wordveil.mechanisms.base import MechanismArtifact, pure_guarantee
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tables.mechanism import build_certified, symbol_rows
from wordveil.neighbours.lists import NeighbourLists
from wordveil.privacy.relations import Exposure
from wordveil.text.slots import NgramModel

COPIES, LEAST_COPIES = 64, 48
"""Copies of each document; with fewer than the second no difference could be distinguished from chance."""


def make_inputs(
    bundle: Bundle,
    plan: Plan,
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
    runs: Sequence[Run],
    claim: Claim,
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
