"""Judgement of differences between documents against the claims of a release."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from wordveil.audit.canaries.compare import Difference
from wordveil.audit.canaries.contrast import find_least_hits
from wordveil.audit.canaries.structure import Claim
from wordveil.audit.findings import Finding, Verdict
from wordveil.privacy.relations import Exposure, column_exposure

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


def judge_differences(differences: Sequence[Difference], claim: Claim, alpha: float) -> list[Finding]:
    """Judge undeclared exposures: a finding for each feature.

    ``differences``: all tests of all runs. ``claim``: what the release claims. ``alpha``: the probability that any test
    of a true claim refutes it. Each test has an equal share (Bonferroni).
    """
    limit = alpha / max(len(differences), 1)
    features: dict[str, list[Difference]] = {}
    for difference in differences:
        features.setdefault(difference.feature.partition(" (")[0], []).append(difference)
    return [_judge_feature(feature, its, claim, limit) for feature, its in features.items()]


def _judge_feature(feature: str, differences: Sequence[Difference], claim: Claim, limit: float) -> Finding:
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
    differences: Sequence[Difference], claim: Claim, alpha: float, untested: Mapping[str, str]
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
