"""Tables of runs, gates, publications and releases, for people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from wordveil.cli.output import print_grid, print_note, print_table, print_whole
from wordveil.cli.scaffold import Result
from wordveil.cli.tables import (
    ALONE_NOTE,
    SHUFFLED_NOTE,
    left_out_facts,
    number,
    price_epsilon,
    recovery_facts,
    show_figure,
    show_reasons,
    show_value,
    table_facts,
)
from wordveil.errors import EmptyInputError, GateError
from wordveil.privacy.guarantees import TEXTS
from wordveil.privacy.recovery import Recovery
from wordveil.privacy.table import TablePrivacy

if TYPE_CHECKING:
    from wordveil.assembly.run_report import RunReport
    from wordveil.release.verify import Verified
    from wordveil.spark.release.erase import Erasure
    from wordveil.spark.release.gate import GateDecision
    from wordveil.spark.release.night import Night
    from wordveil.spark.release.publish import Publication

CHANGES = {
    "all": "all: no record of this input was known yet",
    "feed": "feed: the records that the table's change data feed names",
    "scan": "scan: the contents of all records were compared",
    "none": "none: the input has not changed; nothing was read",
    "withdraw": "withdraw: records were withdrawn as asked",
}
"""The meaning of a run's ``changes``, for people."""
_POORLY = "of which a third or more of the words is unknown, as in texts of another language or field"
_SHOWN_RUNS = 10
# The length of a generated run id.
_RUN_ID = 25


def describe_skipped(error: EmptyInputError) -> Result:
    """Make the result of a run that --skip-empty ended: ``has_records`` is false."""
    return Result({"has_records": False}, partial(print_note, str(error)))


def print_report(report: RunReport, *, is_release: bool = False) -> None:
    """Print the short table at the end of a run. ``is_release``: the run updated an incremental release."""
    notes = report.notes if is_release else (*report.notes, SHUFFLED_NOTE if report.table else ALONE_NOTE)
    if (count := sum(report.quarantined.values())) > report.records * _MANY_REFUSED:
        notes = (f"{count / report.records:.0%} of the records are refused: do input.id and input.text fit?", *notes)
    print_table(f"Release {report.release}", report_facts(report, is_release=is_release), notes)


def report_facts(report: RunReport, *, is_release: bool = False) -> dict[str, str]:
    """Make the rows of the table of a run.

    ``is_release``: the run updated an incremental release, and may have read only a part of its input, or nothing.
    """
    rate, padding = report.unknown_rate, report.padding_as_words
    facts = {}
    if is_release:
        facts = {"changes": CHANGES[report.changes], "withdrawn": f"{report.withdrawn:,}"}
        if report.corrected:
            facts["authors corrected"] = f"{report.corrected:,}: also charged to the new author, nothing drawn"
        if report.kept_changed:
            facts["kept columns"] = f"{report.kept_changed:,} changed: written again with the same text, nothing drawn"
        if report.refused:
            facts["over budget"] = f"{show_reasons(report.refused)}, those refused before among them"
        if report.stale:
            facts["stale"] = f"{report.stale:,}: the edit is over a budget, the last version stays"
    if report.input_version is not None:
        facts["input version"] = str(report.input_version)
    is_whole = report.metric.startswith(f"{TEXTS}:")
    unit = "text" if is_whole else "token"
    pure = "none: unbounded for any two texts" if report.released else "nothing released"
    return facts | {
        "records": f"{report.records:,}",
        "released": f"{report.released:,}",
        "quarantined": show_reasons(report.quarantined),
        f"{unit}s drawn": f"{report.tokens:,}",
        **({"padding": f"{padding:.1%} of it comes out as words"} if padding is not None and not is_whole else {}),
        "unknown words": "none seen" if rate is None else f"{rate:.1%} of {report.words:,}",
        **({"poorly covered": f"{report.poorly_covered:,} records, {_POORLY}"} if report.poorly_covered else {}),
        f"epsilon a {unit}": price_epsilon(report.epsilon, report.metric),
        "epsilon a record": f"{_show_span(report.epsilon_bound)} between texts related by {report.relation}"
        if report.epsilon_bound
        else "nothing released",
        "pure epsilon": _show_span(report.epsilon_pure) if report.epsilon_pure else pure,
        **({"delta a record": f"{report.delta:.3g} at most"} if report.delta else {}),
        **(table_facts(TablePrivacy.from_dict(report.table)) if report.table else {}),
        **recovery_facts(Recovery.from_dict(report.recovery) if report.recovery else None),
        "exposes": ", ".join(report.exposes) or "nothing",
        "speed": f"{report.tokens_per_second:,.0f} {unit}s a second, {report.seconds:.1f} s: the whole job",
        "run": report.run_id,
        "output": report.output,
    }


def _show_span(span: tuple[float, float]) -> str:
    return number(span[0]) if span[0] == span[1] else f"{number(span[0])} to {number(span[1])}"


def print_night(made: Night, release: str) -> None:
    """Print what a night did so far: its counts first, then the run, the gate and the publication.

    Epsilon, recovery and exposures are said once, in the table of the run unless the publication says its own.
    """
    if made.report:
        print_table(f"Night of {release}", night_facts(made))
        print_table("Run", _night_run_facts(made, made.report), made.report.notes)
    if made.decision:
        print_decision(made.decision)
    if made.publication:
        recovery = made.publication.document["manifest"]["recovery"]
        said = {"records", "relation", *recovery_facts(Recovery.from_dict(recovery) if recovery else None)}
        facts = publication_facts(made.publication)
        print_table(f"Published {release}", {name: facts[name] for name in facts if name not in said}, [_KEY_NOTE])


def night_facts(made: Night) -> dict[str, str]:
    """Make the rows of a night's counts: records, refused, withdrawn, published."""
    report, publication = made.report, made.publication
    assert report is not None
    nothing = "nothing yet"
    if made.decision:
        nothing = "nothing: the gate did not pass" if not made.decision.result.passed else f"{nothing}; the gate passed"
    return {
        "records": f"{report.records:,} read; {CHANGES[report.changes]}",
        "refused": show_reasons({**report.quarantined, **report.refused}),
        "withdrawn": f"{report.withdrawn:,}",
        "published": f"{publication.document['manifest']['records']:,} records" if publication else nothing,
    }


def _night_run_facts(made: Night, report: RunReport) -> dict[str, str]:
    """Make the rows of a night's run without what others say."""
    facts = report_facts(report, is_release=True)
    unit = "text" if report.metric.startswith(f"{TEXTS}:") else "token"
    said = {"records", "quarantined", "over budget", "withdrawn", "changes", f"epsilon a {unit}"}
    if made.publication:
        said |= {"exposes", "epsilon of the table"}
    if report.epsilon_pure == report.epsilon_bound:
        said.add("pure epsilon")
    return {name: fact for name, fact in facts.items() if name not in said}


def print_decision(decision: GateDecision) -> None:
    """Print the gate's rules with the measured values."""
    rows = [
        (
            *(rule.name, str(rule.kind).replace("_", "-"), show_figure(rule), show_value(rule.bound)),
            "yes" if rule.passed else "NO",
        )
        for rule in decision.result.results
    ]
    title = f"Gate of {decision.release}, version {decision.draws_version} of the draws"
    print_grid(title, rows, ("rule", "kind", "measured", "bound", "passed"))
    if not decision.result.results:
        print_note("the configuration has no section gate, so every version passes.")
    if decision.most_refused:
        print_note(f"budgets refuse most of {', '.join(map(str, decision.most_refused))} of what was read.")


def find_gate_failure(decision: GateDecision) -> GateError | None:
    """Return an error that names the rules that a version did not pass; None if it passed."""
    if decision.result.passed:
        return None
    names = ", ".join(result.name for result in decision.result.failures)
    return GateError(
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
        if result.name == "table_epsilon" and result.value is None:
            advice += (
                " table_epsilon has no figure: a group of kept columns has too few new rows, or delta is not below one "
                "over their number. They wait for the next run; `wordveil plan` says how many rows each group needs."
            )
        if result.name == "audited" and isinstance(result.bound, tuple):
            passed = result.value if isinstance(result.value, tuple) else ()
            commands = " and ".join(f"`wordveil audit {kind}`" for kind in result.bound if kind not in passed)
            advice += f" Run {commands} with this configuration, then gate again."
    return advice


_MANY_REFUSED = 0.2
_KEY_NOTE = "send readers the public key separately from the table."


def print_publication(made: Publication, release: str) -> None:
    """Print a publication."""
    print_table(f"Published {release}", publication_facts(made), [_KEY_NOTE])


def publication_facts(made: Publication) -> dict[str, str]:
    """Make the rows of the table of a publication."""
    manifest = made.document["manifest"]
    return {
        "table": made.table,
        "manifest": made.manifest_path,
        "records": f"{manifest['records']:,}{_show_changed(manifest)}",
        "publication": f"{manifest['publication']}, of version {manifest['draws_version']} of the draws",
        "relation": manifest["relation"],
        "exposes": ", ".join(manifest["exposes"]) or "nothing",
        **(table_facts(TablePrivacy.from_dict(manifest["tables"][-1])) if "tables" in manifest else {}),
        **(recovery_facts(Recovery.from_dict(manifest["recovery"])) if manifest["recovery"] else {}),
        **left_out_facts(manifest.get("refused")),
        "public key": made.document["public_key"],
    }


def _show_changed(counts: Mapping[str, Any]) -> str:
    """Say of how many records of a publication only kept columns changed; empty if of none."""
    return f" (kept columns of {changed:,} changed)" if (changed := counts.get("kept_changed")) else ""


def print_erasure(made: Erasure) -> None:
    """Print an erasure: what was done, and what is left in each place."""
    unknown = f"which the next run draws if the input has them: {', '.join(made.unknown)}"
    published = "no: the gate did not pass" if made.decision else "not needed"
    if made.publication:
        published = f"publication {made.publication.document['manifest']['publication']:,}"
    facts = {
        "records": f"{made.records:,}, {made.withdrawn:,} of them withdrawn now",
        **({"ids not in the release": f"{len(made.unknown):,}, {unknown}"} if made.unknown else {}),
        "published": published,
        "texts": "gone from draws, public table and old files" if made.is_gone else "still exist: see the places below",
    }
    print_table(f"Erased from {made.release}", facts if made.records else {**facts, "texts": "nothing was done"})
    if made.places:
        rows = [
            (one.place, "not seen" if one.named is None else f"{one.named:,}", f"{one.texts:,}", one.note)
            for one in made.places
        ]
        print_grid("What is left", rows, ("place",), ("with id", "with text"), ("note",), has_lines=True)
    if made.decision and not made.decision.result.passed:
        print_decision(made.decision)


def verified_facts(verified: Verified, *, pinned: bool) -> dict[str, Any]:
    """Make the rows of a verified manifest."""
    manifest = verified.manifest
    return {
        "release": manifest.release,
        "publication": manifest.publication,
        "public_version": manifest.public_version,
        "records": manifest.snapshot.records,
        **({} if manifest.kept_changed is None else {"kept_changed": manifest.kept_changed}),
        "files": len(manifest.snapshot.files),
        "relation": str(manifest.relation),
        "exposes": ", ".join(manifest.exposes) or "nothing",
        "refused": manifest.refused,
        **({"epsilon_table": max(table.epsilon for table in manifest.tables)} if manifest.tables else {}),
        "created": manifest.created,
        "recovery": manifest.recovery.to_dict() if manifest.recovery else None,
        "manifest_sha256": verified.manifest_sha256,
        "public_key": "the one you named" if pinned else "not pinned",
        "pinned": pinned,
    }


def print_compaction(done: Mapping[str, Mapping[str, int]]) -> None:
    """Print the files and bytes of each table, before and after."""
    keys = ("files_before", "files", "bytes_before", "bytes")
    rows = [(name, *(f"{counts[key]:,}" for key in keys)) for name, counts in done.items()]
    print_grid("Compacted", rows, ("table",), [key.replace("_", " ") for key in keys])


def release_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Make the rows of the table of ``show``."""
    gate, published, withdrawn = facts["gate"], facts["published"], facts.get("withdrawn")
    failed = ", ".join(rule["name"] for rule in gate["results"] if not rule["passed"]) if gate else ""
    shown = {
        "path": facts["path"],
        **({"writers": f"{facts['writers']}, as output.writers states"} if facts["writers"] else {}),
        "runs": f"{len(facts['runs']):,}",
        "interrupted": ", ".join(facts["open_runs"]) or "none",
        "frozen": f"since {facts['frozen']}: its key was destroyed" if facts["frozen"] else "no",
        "gate": f"version {gate['draws_version']} {f'did not pass: {failed}' if failed else 'passed'}, {gate['at']}"
        if gate
        else "not gated yet",
        "published": f"version {published['draws_version']}, {published['records']:,} records"
        f"{_show_changed(published)}, {published['at']}"
        if published
        else "nothing yet",
    }
    shown |= left_out_facts(published.get("refused") if published else None)
    if withdrawn is not None:
        shown["draws"] = f"version {facts['draws_version']}"
        shown["records"] = ", ".join(f"{count:,} {name}" for name, count in sorted(facts["records"].items())) or "none"
        old = sum(withdrawn["files_of_old_versions"].values())
        shown["withdrawn text"] = (
            ("gone" if withdrawn["records"] else "none")
            if withdrawn["gone"]
            else f"still exists: {withdrawn['in_draws']:,} records in the draws, "
            f"{withdrawn['in_public_table']:,} in the public table, perhaps more in {old:,} files of old versions"
        )
    return shown


def print_release(facts: Mapping[str, Any]) -> None:
    """Print the state of a release, and its last runs; ids that the table may break follow it, whole."""
    print_table(f"Release {facts['release']}", release_facts(facts))
    if not (runs := facts["runs"]):
        return
    more = f", the last {_SHOWN_RUNS} of {len(runs):,}" if len(runs) > _SHOWN_RUNS else ""
    rows = [
        (
            *(run["run_id"], run["kind"], "" if run["input_version"] < 0 else run["input_version"]),
            *(run["epoch"], run["state"]),
        )
        for run in runs[-_SHOWN_RUNS:]
    ]
    print_grid(f"Runs{more}", rows, ("run", "kind", "input version", "epoch", "state"), run={"min_width": _RUN_ID})
    for run in runs[-_SHOWN_RUNS:]:
        if len(run["run_id"]) > _RUN_ID:
            print_whole("run", [run["run_id"]])
