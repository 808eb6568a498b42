"""Presentation of an audit for people: its page, and its figures in words."""

from __future__ import annotations

import math
from typing import Any

from wordveil.audit.findings import Audit, Finding, Verdict
from wordveil.report.templates import render_page
from wordveil.report.values import show_number

_SHOWN = {
    Verdict.REFUTED: ("✗", "bad"),
    Verdict.NOT_REFUTED: ("✓", "good"),
    Verdict.HOLDS: ("✓", "good"),
    Verdict.NO_POWER: ("○", "quiet"),
    Verdict.NOT_TESTED: ("○", "quiet"),
}


def render_audit(audit: Audit) -> str:
    """Render the page of an audit, in HTML: the verdict, a row for each finding, notes and facts."""
    return render_page(
        "audit.html",
        title=f"Audit of {audit.subject}",
        audit=audit,
        verdict=verdict_of(audit),
        refuted=list(dict.fromkeys(finding.test for finding in audit.refuted)),
        limits=list_limits(audit),
        untested=[finding.test for finding in audit.findings if finding.verdict is Verdict.NOT_TESTED],
        alpha=f"{audit.alpha:.3g}",
        rows=[_row(finding) for finding in audit.findings],
    )


def verdict_of(audit: Audit) -> str:
    """Return the verdict of an audit, in a few words."""
    return "nothing was tested" if audit.verdict is Verdict.NOT_TESTED else str(audit.verdict)


def list_limits(audit: Audit) -> list[str]:
    """List the inconclusive tests in sentences, for those who read only the verdict."""
    if not audit.without_power:
        return []
    names = ", ".join(finding.test for finding in audit.without_power)
    return [f"no power: {names}. No draws as few could have refuted these claims, so nothing follows for them."]


def show_nats(value: float | None) -> str:
    """Show a loss with enough digits for a comparison; empty if there is none."""
    if value is None:
        return ""
    return show_number(value) if math.isinf(value) else f"{value:.6g}"


def describe_power(finding: Finding) -> str:
    """Describe the losses that the draws of a test could have refuted; empty if no loss was drawn for."""
    if finding.power is None or finding.claimed is None or finding.verdict is Verdict.REFUTED:
        return ""
    if math.isinf(finding.power):
        return "So few draws could not have refuted any loss here: the claim is too large for them."
    return f"A loss {finding.power:.3g} times the claim would have been refuted."


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "test": finding.test,
        "mark": _SHOWN[finding.verdict][0],
        "verdict": finding.verdict,
        "class": _SHOWN[finding.verdict][1],
        "claim": finding.claim,
        "evidence": finding.evidence,
        "power": describe_power(finding),
        "claimed": show_nats(finding.claimed),
        "observed": show_nats(finding.observed),
        "p": "" if finding.p_value is None else f"{finding.p_value:.2g}",
        "draws": f"{finding.draws:,}" if finding.draws else "",
    }
