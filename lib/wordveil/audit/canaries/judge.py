"""What the differences between documents say of the claims of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wordveil.audit.canaries.compare import Difference
from wordveil.audit.canaries.contrast import find_least_hits
from wordveil.audit.canaries.structure import Claim
from wordveil.audit.findings import Finding, Verdict
from wordveil.privacy.relations import Exposure, column_exposure

_CLAIMS = {
    "noise": "two versions of a record that differ have noise of their own.",
    "ids": "two records with one text have noise of their own.",
    "values": "no value of a typed token shows where its class is told apart.",
    "order": "the order of hidden words does not show by itself.",
    "bytes": "in which bytes a text was written does not show.",
    "controls": "characters that cannot be seen show only as the policy says.",
    "size": "the size of a text shows only as the policy says.",
}
UNTESTED = {
    Exposure.EDITED: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.WITHDRAWN: "it needs two runs of a release over time; the canaries are drawn once.",
    Exposure.GATE: "the gate is about a whole release, and the canaries pass none.",
}
"""Exposures that no document can show, and why."""
_NO_DOCUMENT = "no made document could show it under this policy."


def judge_differences(differences: Sequence[Difference], claim: Claim, alpha: float) -> list[Finding]:
    """Judge what shows and is not declared: a finding for each feature.

    Parameters
    ----------
    differences
        all tests of all runs.
    claim
        what the release claims.
    alpha
        the probability that any test of a true claim refutes it. Each test has an equal part (Bonferroni).
    """
    limit = alpha / max(len(differences), 1)
    features: dict[str, list[Difference]] = {}
    for one in differences:
        features.setdefault(one.feature.partition(" (")[0], []).append(one)
    return [_judge_feature(feature, found, claim, limit) for feature, found in features.items()]


def _judge_feature(feature: str, found: Sequence[Difference], claim: Claim, limit: float) -> Finding:
    shown = [one for one in found if one.contrast.p_value <= limit]
    undeclared = [one for one in shown if not _declared(one, claim)]
    draws = sum(sum(one.contrast.draws) for one in found)
    promise = _CLAIMS.get(feature, f"two texts that differ in {feature} differ in the output only as exposes says.")
    if undeclared:
        worst = min(undeclared, key=lambda one: one.contrast.p_value)
        evidence = f"{worst.feature}: {worst.what} shows, and exposes does not say so ({worst.contrast})."
        p_value = worst.contrast.p_value
        return Finding(f"canary:{feature}", Verdict.REFUTED, promise, evidence, p_value=p_value, draws=draws)
    unexplained = [one.contrast.p_value for one in found if not _declared(one, claim)]
    said = sorted({str(exposure) for one in shown for exposure in one.allowed if exposure in claim.exposes})
    evidence = f"shows as {', '.join(said)}, which exposes says." if said else f"nothing shows. {_power(found, limit)}"
    least = min(unexplained, default=None)
    return Finding(f"canary:{feature}", Verdict.NOT_REFUTED, promise, evidence, p_value=least, draws=draws)


def _declared(one: Difference, claim: Claim) -> bool:
    return any(exposure in claim.exposes for exposure in one.allowed)


def _power(found: Sequence[Difference], limit: float) -> str:
    draws = min(min(one.contrast.draws) or max(one.contrast.draws) for one in found)
    least = find_least_hits(draws, limit)
    if least is None:
        return f"With {draws} copies no difference could have been told from chance: use more copies."
    return f"An event in {least} of {draws} copies of one document and in none of the other would have."


def judge_exposures(
    differences: Sequence[Difference], claim: Claim, alpha: float, untested: Mapping[str, str]
) -> Iterator[Finding]:
    """Judge what is declared: whether any pair of documents shows it.

    ``untested``: exposures that documents may not be able to show, and why. The other parameters are those of
    :func:`judge_differences`.
    """
    limit = alpha / max(len(differences), 1)
    for name in claim.exposes:
        promise = f"the release shows {name}."
        found = [one for one in differences if name in one.allowed and (name == Exposure.LENGTH or one.is_specific)]
        tests = [one for one in found if one.about == name]
        shown = [one for one in (found if _is_of_rows(name) else tests) if one.contrast.p_value <= limit]
        draws = sum(sum(one.contrast.draws) for one in tests)
        verdict, evidence = Verdict.REFUTED, "it is declared and cannot occur: no documents that differ in it show it."
        if name.startswith(column_exposure("")):
            verdict, evidence = Verdict.HOLDS, "the column is in the output (canary:columns, canary:kept)."
        elif shown:
            verdict, evidence = Verdict.NOT_REFUTED, f"{shown[0].what}: {shown[0].contrast}."
        elif name in untested or not tests:
            verdict, evidence = Verdict.NOT_TESTED, untested.get(name, _NO_DOCUMENT)
        yield Finding(f"exposes:{name}", verdict, promise, evidence, draws=draws)


def _is_of_rows(name: str) -> bool:
    """Whether a whole record shows it, whatever its documents differ in."""
    return name in (Exposure.PRESENCE, Exposure.CONDITION)
