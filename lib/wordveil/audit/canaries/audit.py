"""Audit of a release by canaries: from its settings to documents, and from their outputs to findings.

The structure of an output must not depend on texts: its columns, the order of its rows, its tags and constants.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe
from wordveil.audit.canaries.compare import PRICES, CanaryRun, Difference, compare_run, find_least_hits
from wordveil.audit.canaries.documents import DocumentPlan, choose_words, find_marks, make_pairs
from wordveil.audit.canaries.tables import CanaryOutput, Inputs
from wordveil.audit.findings import Finding, Verdict
from wordveil.embeddings.embedding import check_embedding
from wordveil.mechanisms.base import MechanismArtifact, pure_guarantee
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tables.mechanism import build_certified, symbol_rows
from wordveil.neighbours.lists import NeighbourLists
from wordveil.privacy.relations import Exposure, column_exposure, pseudonym_exposure
from wordveil.records.schema import SYMBOLS
from wordveil.text.slots import NgramModel


@dataclass(frozen=True)
class ReleaseClaim:
    """Claim of a release: the relation of its bound, its exposures with kept columns, and all columns of its rows."""

    relation: str
    exposes: tuple[str, ...]
    columns: frozenset[str]


def check_structure(inputs: Inputs, runs: Sequence[CanaryRun], claim: ReleaseClaim) -> list[Finding]:
    """Check all that does not depend on chance, in all runs."""
    outputs = [output for run in runs for output in (run.first, run.second)]

    def check(test: str, promise: str, find_faults: Callable[[CanaryOutput], Iterator[str]]) -> Finding:
        fault = next((fault for output in outputs for fault in find_faults(output)), None)
        verdict = Verdict.HOLDS if fault is None else Verdict.REFUTED
        evidence = fault or f"{len(outputs)} outputs of {len(inputs.ids):,} records agree."
        return Finding(f"canary:{test}", verdict, promise, evidence, draws=len(outputs) * len(inputs.ids))

    exposures = ", ".join(claim.exposes) or "nothing"
    return [
        check(
            "columns",
            "an output has the id, the kept columns and the columns of wordveil, and no other.",
            lambda output: _find_columns(output, claim),
        ),
        check("kept", "kept columns pass unchanged.", lambda output: _find_changed(output, inputs)),
        check(
            "secrets",
            "what no column keeps is nowhere in an output, and words of texts only in its texts.",
            lambda output: _find_secrets(output, inputs),
        ),
        check("tags", "no two records have the same content tag.", _find_repeated_tags),
        check(
            "privacy",
            f"every row says relation {claim.relation} and exposes {exposures}, and only prices differ.",
            lambda output: _find_claims(output, claim),
        ),
    ]


def check_layout(runs: Sequence[CanaryRun], claim: ReleaseClaim) -> Finding | None:
    """Check whether the order of rows and the cuts between files follow the texts; None if no run wrote files."""
    written = [run for run in runs if run.first.files is not None and run.second.files is not None]
    if not written:
        return None
    promise = "the order of rows and the cuts between files do not follow the texts."
    moved = sum(a != b for run in written for a, b in zip(run.first.order, run.second.order, strict=False))
    cut = any(run.first.files != run.second.files for run in written)
    draws = sum(len(run.first.order) for run in written)
    verdict, evidence = Verdict.NOT_REFUTED, f"{draws:,} rows have the same positions."
    if moved or cut:
        evidence = f"{moved:,} of {draws:,} rows have other positions{', and files are cut elsewhere' * cut}."
        if Exposure.LAYOUT in claim.exposes:
            evidence = f"declared: {evidence}"
        else:
            verdict = Verdict.REFUTED
    return Finding("canary:layout", verdict, promise, evidence, draws=draws)


def _find_columns(output: CanaryOutput, claim: ReleaseClaim) -> Iterator[str]:
    columns = frozenset(output.table.column_names)
    # A blind table draws no numbered symbols of words.
    claimed = claim.columns if output.columns.symbols else claim.columns - {SYMBOLS}
    if columns != claimed:
        extra, missing = sorted(columns - claimed), sorted(claimed - columns)
        yield f"more columns: {', '.join(extra) or 'none'}; missing ones: {', '.join(missing) or 'none'}."


def _find_changed(output: CanaryOutput, inputs: Inputs) -> Iterator[str]:
    numbers = {record: number for number, record in enumerate(inputs.ids)}
    for name, values in inputs.kept.items():
        if name not in output.table.column_names:
            continue  # the check of columns reports it
        records = zip(output.order, output.table[name].to_pylist(), strict=True)
        changed = sum(record not in numbers or values[numbers[record]] != value for record, value in records)
        if changed:
            yield f"{changed:,} values of {name} are not those of the input."


def _find_secrets(output: CanaryOutput, inputs: Inputs) -> Iterator[str]:
    """Yield secret words in any column, and a record's own unknown word outside its texts."""
    texts = {path[0] for path in output.columns.paths}
    secrets, marks = frozenset(inputs.secrets), frozenset(inputs.marks)
    for name in output.table.column_names:
        words = find_marks("\n".join(map(_write_value, _list_values(output.table[name]))))
        if words & secrets:
            yield f"the column {name} holds what only a column that is not kept holds."
        if name not in texts and words & marks:
            yield f"the column {name} holds a word of a text."


def _list_values(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the distinct values of a column, and of the fields of its structs."""
    if pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _list_values(child)
    elif pa.types.is_nested(column.type):
        yield from column.to_pylist()
    else:
        yield from column.unique().to_pylist()


def _write_value(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _find_repeated_tags(output: CanaryOutput) -> Iterator[str]:
    tags = Counter(row.tag for row in output.rows.values() if row.tag is not None)
    repeated = sum(count for count in tags.values() if count > 1)
    if repeated:
        yield f"{repeated:,} records share a tag with another one."


def _find_claims(output: CanaryOutput, claim: ReleaseClaim) -> Iterator[str]:
    said = output.table["privacy"].drop_null()
    for field, values in zip(said.type, said.flatten(), strict=True):
        different = {str(value) for value in _list_values(values)}
        if field.name not in PRICES and len(different) > 1:
            yield f"rows of one output say {len(different)} different things as privacy.{field.name}."
    if len(said):
        first = said[0].as_py()
        if first["relation"] != claim.relation or tuple(first["exposes"]) != claim.exposes:
            exposures = ", ".join(first["exposes"]) or "nothing"
            yield f"rows say relation {first['relation']} and exposes {exposures}."


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
    Exposure.KEPT_CHANGED: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.WITHDRAWN: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.GATE: "the gate judges a whole release, and the canaries pass none.",
}
"""Exposures that no document can show, with reasons."""
_NO_DOCUMENT = "no made document could show it under this policy."


def judge_differences(differences: Sequence[Difference], claim: ReleaseClaim, alpha: float) -> list[Finding]:
    """Judge undeclared exposures in all tests of all runs: a finding for each feature.

    ``alpha``: the probability that any test of a true claim refutes it. Each test has an equal share (Bonferroni).
    """
    limit = alpha / max(len(differences), 1)
    features: dict[str, list[Difference]] = {}
    for difference in differences:
        features.setdefault(difference.feature.partition(" (")[0], []).append(difference)
    return [_judge_feature(feature, its, claim, limit) for feature, its in features.items()]


def _judge_feature(feature: str, differences: Sequence[Difference], claim: ReleaseClaim, limit: float) -> Finding:
    promise = _CLAIMS.get(feature, f"two texts that differ in {feature} differ in the output only as exposes says.")
    significant = [difference for difference in differences if difference.contrast.p_value <= limit]
    undeclared = [difference for difference in differences if difference.allowed.isdisjoint(claim.exposes)]
    worst = min(undeclared, key=lambda difference: difference.contrast.p_value, default=None)
    p_value = worst.contrast.p_value if worst else None
    verdict, power = Verdict.NOT_REFUTED, None
    if worst and worst.contrast.p_value <= limit:
        verdict = Verdict.REFUTED
        evidence = f"{worst.feature}: {worst.what} shows, and exposes does not say so ({worst.contrast})."
    elif said := sorted(
        {str(name) for difference in significant for name in difference.allowed if name in claim.exposes}
    ):
        evidence = f"shows as {', '.join(said)}, which exposes says."
    else:
        draws = _count_least(differences)
        min_hits = find_least_hits(draws, limit)
        power = math.inf if min_hits is None else None
        evidence = (
            f"nothing shows. An event in {min_hits} of {draws} copies of one document and in none of the other would."
        )
        if min_hits is None:
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
    """Judge whether any pair of documents shows the declared exposures. ``untested``: see :func:`judge_runs`."""
    limit = alpha / max(len(differences), 1)
    for name in claim.exposes:
        promise = f"the release shows {name}."
        tests = [test for test in differences if name in test.allowed and (name == Exposure.LENGTH or test.is_specific)]
        specific = [test for test in tests if test.about == name]
        # Whole records show presence, whatever their documents differ in.
        tried = tests if name == Exposure.PRESENCE else specific
        significant = [test for test in tried if test.contrast.p_value <= limit]
        verdict, evidence = Verdict.REFUTED, "it is declared and cannot occur: no documents that differ in it show it."
        if name.startswith(column_exposure("")):
            verdict, evidence = Verdict.HOLDS, "the column is in the output (canary:columns, canary:kept)."
        elif name.startswith(pseudonym_exposure("")):
            verdict, evidence = (
                Verdict.HOLDS,
                "pseudonyms are in the output, no values (canary:columns, canary:secrets).",
            )
        elif significant:
            verdict, evidence = Verdict.NOT_REFUTED, f"{significant[0].what}: {significant[0].contrast}."
        elif name in untested or not specific:
            verdict, evidence = Verdict.NOT_TESTED, untested.get(name, _NO_DOCUMENT)
        elif find_least_hits(_count_least(specific), limit) is None:
            verdict, evidence = Verdict.NO_POWER, "so few copies could not have shown it: use more copies."
        yield Finding(f"exposes:{name}", verdict, promise, evidence, draws=_count(specific))


COPIES, LEAST_COPIES = 64, 48
"""Copies of each document; fewer than the second could not distinguish a difference from chance."""


def make_inputs(
    bundle: Bundle,
    plan: DocumentPlan,
    model: NgramModel | None,
    *,
    keep: Sequence[str] = (),
    copies: int = COPIES,
    seed: int = 0,
) -> Inputs:
    """Make the documents of an audit from words of the release's bundle.

    ``keep``: the kept columns. ``copies``: records with each document; at least :data:`LEAST_COPIES`. Raises
    :class:`ValueError` for too few copies, or if the policy hides no text of such words.
    """
    if copies < LEAST_COPIES:
        raise ValueError(f"copies = {copies}: fewer than {LEAST_COPIES} tell no difference from chance. Use more.")
    rng = np.random.default_rng(seed)
    words = choose_words(bundle, plan.policy, model, rng, names_language=plan.names_language)
    return Inputs.make(make_pairs(words, plan), copies, keep, rng)


def write_blind_bundle(bundle: Bundle, store: Path) -> Path:
    """Write a bundle of the same words whose mechanism draws each symbol uniformly from them; return its directory.

    Outputs of texts that differ only in hidden words then have one law: all else that distinguishes them is structure.
    """
    words = bundle.lexicon.array.to_pylist()
    size, padding = len(words), bundle.padding
    embedding = check_embedding(words, np.ones((size, 1)), "made documents")
    language = bundle.lists.language if bundle.lists else ""
    if (alike := bundle.mechanism.make_blind()) is not None:
        recipe = Recipe(bundle.mechanism.name, {}, padding, "made documents", embedding.digest, lists=language)
        return bundles.write(store, embedding, replace(alike, topics=bundle.topics), recipe, {})
    # A table of the exponential mechanism whose scores are all 0. Without padding among the outputs, since how many
    # words are written would else vary.
    zeros = np.zeros(size)
    lists = NeighbourLists(np.arange(size + 1), np.arange(size, dtype=np.int32), zeros, zeros, 0.0)
    table, _ = build_certified(symbol_rows(lists, 0.0, 0.0, padding=False), 0.0)
    built = MechanismArtifact({"padding": padding}, table.arrays, pure_guarantee(embedding, 0.0, 0.0, padding=padding))
    recipe = Recipe(Exponential.name, {}, padding, "made documents", embedding.digest, lists=language)
    return bundles.write(store, embedding, built, recipe, {})


def judge_runs(
    inputs: Inputs,
    runs: Sequence[CanaryRun],
    claim: ReleaseClaim,
    alpha: float,
    untested: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Judge the outputs of the documents, with the release's mechanism and with a blind one.

    ``alpha``: the probability that any true claim is refuted, over all tests. ``untested``: more exposures that
    documents may not be able to show here, with reasons.
    """
    differences = [difference for run in runs for difference in compare_run(inputs, run)]
    layout = check_layout(runs, claim)
    why = "canary:layout says whether the order of rows follows the texts." if layout else "no files were written."
    reasons = {**UNTESTED, **(untested or {}), Exposure.LAYOUT: why}
    return (
        *judge_differences(differences, claim, alpha),
        *check_structure(inputs, runs, claim),
        *([layout] if layout else []),
        *judge_exposures(differences, claim, alpha, reasons),
    )
