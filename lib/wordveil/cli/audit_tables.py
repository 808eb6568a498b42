"""Audits as tables of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordveil.cli.output import Table, make_text
from wordveil.report.audit import describe_power, show_nats

if TYPE_CHECKING:
    from wordveil.audit.findings import Audit

_STYLES = {"refuted": "bold red", "not refuted": "green", "holds": "green", "not tested": "dim"}


def findings_table(audit: Audit) -> Table:
    """One row for each finding: what was tested, what it says, what was seen."""
    table = Table("Findings", has_lines=True)
    for name in ("test", "verdict", "claimed", "seen", "evidence"):
        table.add_column(name)
    for one in audit.findings:
        seen = show_nats(one.observed)
        evidence = " ".join(filter(None, [one.evidence, describe_power(one)]))
        verdict = make_text(one.verdict, _STYLES[one.verdict])
        table.add_row(one.test, verdict, show_nats(one.claimed), seen, evidence)
    return table
