"""Printed results of the commands that gate and publish a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordveil.cli.output import print_note, print_rows, print_table
from wordveil.cli.tables import gate_table, recovery_facts
from wordveil.errors import GateError
from wordveil.privacy.recovery import Recovery

if TYPE_CHECKING:
    from wordveil.spark.release.gate import GateDecision
    from wordveil.spark.release.publish import Publication


def print_decision(decision: GateDecision) -> None:
    """Print the gate's rules with the measured values."""
    print_rows(gate_table(decision.result, decision.release, decision.draws_version))
    if not decision.result.results:
        print_note("the configuration has no section gate, so every version passes.")


def require_passed(decision: GateDecision) -> None:
    """Raise :class:`GateError` with the rules that a version did not pass."""
    if decision.result.passed:
        return
    names = ", ".join(result.name for result in decision.result.failures)
    raise GateError(
        f"gate: version {decision.draws_version} of the draws did not pass: {names}. Nothing is published, and "
        f"what the draws cost stays charged.{_advise(decision)}"
    )


def _advise(decision: GateDecision) -> str:
    """Advise on missing figures; empty if none is missing."""
    advice = ""
    for result in decision.result.failures:
        if result.name == "attack_to_chance" and result.value is None:
            advice += (
                " attack_to_chance has no figure: too few authors or records were measured to show an attack above its "
                "bound. `wordveil evaluate` says how many were."
            )
        if result.name == "audited" and isinstance(result.bound, tuple):
            passed = result.value if isinstance(result.value, tuple) else ()
            commands = " and ".join(f"`wordveil audit {kind}`" for kind in result.bound if kind not in passed)
            advice += f" Run {commands} with this configuration, then gate again."
    return advice


def print_publication(made: Publication, release: str) -> None:
    """Print a publication."""
    manifest = made.document["manifest"]
    facts = {
        "table": made.table,
        "manifest": made.manifest_path,
        "records": f"{manifest['records']:,}",
        "publication": f"{manifest['publication']}, of version {manifest['draws_version']} of the draws",
        "relation": manifest["relation"],
        "exposes": ", ".join(manifest["exposes"]) or "nothing",
        **(recovery_facts(Recovery.from_dict(manifest["recovery"])) if manifest["recovery"] else {}),
        "public key": made.document["public_key"],
    }
    print_table(f"Published {release}", facts, ["send readers the public key separately from the table."])
