"""The commands ``wordveil release``, from a run to the deletion of the last withdrawn text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Argument, Option, Typer

from wordveil.cli.decisions import print_decision, print_publication, require_passed
from wordveil.cli.options import (
    ConfigOption,
    JsonOption,
    ParamOption,
    RunOption,
    SetOption,
    SnapshotOption,
    prepare_session,
    print_report,
    read_release_config,
)
from wordveil.cli.output import (
    print_json,
    print_note,
    print_result,
    print_rows,
    print_table,
    print_whole,
    show_progress,
    show_status,
)
from wordveil.cli.pages import PAGE_NOTE, HtmlOption, check_page, render_gate, save_page
from wordveil.cli.report_file import ReportOption, write_report
from wordveil.cli.tables import compact_table, long_run_ids, release_facts, runs_table
from wordveil.cli.verify import verify
from wordveil.errors import usage_error
from wordveil.input.parameters import parse_params

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.spark.release.night import Night

Result = TypeVar("Result")
app = Typer(
    help="Gate, publish, verify and maintain an incremental release (output.format: delta).",
    no_args_is_help=True,
    add_completion=False,
)
RETAIN_HOURS = 168
_AFTER_WITHDRAWAL = (
    "the text still exists. `wordveil release purge` deletes it from the newest draws, `gate` and `publish` from the "
    "public table, and `compact` from the disk. `show` reports when it is gone."
)


@app.command()
def night(
    config: ConfigOption,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    full_snapshot: SnapshotOption = False,
    run_id: RunOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
    html: HtmlOption = None,
) -> None:
    """Sanitise, gate and publish in one Spark session.

    Does what the three commands do one after the other. Stops at the first step that fails, with its exit code.

    Example: `wordveil release night --config reviews.yaml --param day=2026-01-31`
    """
    from wordveil.spark.release.night import Night, run_night

    steps: list[Night] = []
    with write_report("release night", report) as tell:
        page = check_page(html) if html else None
        settings = read_release_config(config, overrides)
        values = parse_params(params or ())

        def keep(so_far: Night) -> None:
            steps.append(so_far)
            tell(so_far.to_dict())
            if page and so_far.decision and not so_far.publication:
                save_page(page, render_gate(so_far.decision))

        try:
            with show_progress() as (progress, tasks):
                run_night(
                    settings,
                    prepare_session(settings),
                    params=values,
                    run_id=run_id,
                    full_snapshot=full_snapshot,
                    progress=progress,
                    tasks=tasks,
                    done=keep,
                )
        finally:
            # Steps that are done have drawn and charged, so they are shown even if a later step fails.
            made = steps[-1] if steps else Night()
            if not as_json:
                _print_night(made, settings.release)
            if page and made.decision:
                print_note(f"{page}: {PAGE_NOTE}")
        if as_json:
            print_json(made.to_dict())
        assert made.decision is not None
        require_passed(made.decision)


@app.command()
def stream(
    config: ConfigOption,
    overrides: SetOption = None,
    every: Annotated[
        str | None,
        Option("--every", metavar="INTERVAL", help='Go on, with a batch at this interval, such as "5 minutes".'),
    ] = None,
    *,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Append the new rows of a stream's source to the input, and run a night for each batch.

    Ends with the last row, unless --every is set.

    Example: `wordveil release stream --config reviews.yaml`
    """
    from wordveil.spark.release.stream import run_stream

    made: dict[str, Any] = {"batches": 0, "last": None}
    with write_report("release stream", report) as tell:
        settings = read_release_config(config, overrides)
        tell(made)

        def keep(night: Night) -> None:
            assert night.decision is not None
            made.update(batches=made["batches"] + 1, last=night.to_dict())
            tell(made)
            if not as_json:
                _print_night(night, settings.release)
            require_passed(night.decision)

        with show_progress() as (progress, tasks):
            run_stream(settings, prepare_session(settings), every=every, progress=progress, tasks=tasks, done=keep)
    if as_json:
        print_json(made)
    elif not made["batches"]:
        print_note("the source has no new rows.")


@app.command()
def gate(
    config: ConfigOption,
    overrides: SetOption = None,
    *,
    as_json: JsonOption = False,
    report: ReportOption = None,
    html: HtmlOption = None,
) -> None:
    """Check the newest draws against the gate's rules and record the decision.

    Exits with code 3 if a rule does not pass.

    Example: `wordveil release gate --config reviews.yaml`
    """
    from wordveil.spark.release.gate import run_gate

    with write_report("release gate", report) as tell:
        page = check_page(html) if html else None
        gated = _work(run_gate, read_release_config(config, overrides))
        tell(gated.to_dict())
        if page:
            save_page(page, render_gate(gated))
            print_note(f"{page}: {PAGE_NOTE}")
        if as_json:
            print_json(gated.to_dict())
        else:
            print_decision(gated)
        require_passed(gated)


@app.command()
def publish(
    config: ConfigOption, overrides: SetOption = None, *, as_json: JsonOption = False, report: ReportOption = None
) -> None:
    """Write the public table and its signed manifest from draws that passed the gate.

    Example: `wordveil release publish --config reviews.yaml`
    """
    from wordveil.spark.release.publish import publish as publish_release

    with write_report("release publish", report) as tell:
        settings = read_release_config(config, overrides)
        made = _work(publish_release, settings)
        tell(made.to_dict())
    if as_json:
        print_json(made.to_dict())
    else:
        print_publication(made, settings.release)


app.command()(verify)


@app.command()
def withdraw(
    config: ConfigOption,
    overrides: SetOption = None,
    ids: Annotated[list[str] | None, Option("--id", metavar="ID", help="A record to withdraw. Repeatable.")] = None,
    ids_file: Annotated[
        str | None, Option("--ids", metavar="FILE", help="A file with one id on each line; - reads standard input.")
    ] = None,
    run_id: RunOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Remove records from a release permanently.

    The next publication removes their public text, and a purge removes their draws.

    Example: `wordveil release withdraw --config reviews.yaml --id 1042`
    """
    from wordveil.spark.release.run import withdraw as withdraw_records

    settings = read_release_config(config, overrides)
    wanted = read_ids(ids or [], ids_file)
    with show_progress() as (progress, tasks):
        report = withdraw_records(
            settings, prepare_session(settings), wanted, run_id=run_id, progress=progress, tasks=tasks
        )
    if as_json:
        print_json(report.to_dict())
    else:
        print_report(report, is_release=True)
        print_note(_AFTER_WITHDRAWAL)


@app.command()
def abandon(
    run_id: Annotated[str, Argument(metavar="RUN_ID", help="The interrupted run, as `show` names it.")],
    config: ConfigOption,
    overrides: SetOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Give up an interrupted run that cannot be finished.

    Its reserved budget is spent; its rows are discarded.

    Example: `wordveil release abandon 20260131T020000Z-5f0c --config reviews.yaml`
    """
    from wordveil.spark.release.run import abandon as abandon_run

    settings = read_release_config(config, overrides)
    with show_status() as progress:
        progress("starting Spark")
        abandon_run(settings, prepare_session(settings, is_short=True), run_id)
    facts = {"release": settings.release, "run_id": run_id, "state": "abandoned"}
    shown = {"release": settings.release, "run": run_id, "charged": "everything that it had reserved"}
    print_result(facts, "Abandoned", shown, as_json=as_json)


@app.command()
def purge(config: ConfigOption, overrides: SetOption = None, *, as_json: JsonOption = False) -> None:
    """Delete the draws of withdrawn records from the newest version of the draws.

    Example: `wordveil release purge --config reviews.yaml`
    """
    from wordveil.spark.release.maintenance import purge as purge_release

    settings = read_release_config(config, overrides)
    rows = _work(purge_release, settings)
    note = "old files hold them until `wordveil release compact`, and the public table until `gate` and `publish`."
    facts = {"release": settings.release, "draws deleted": f"{rows:,}"}
    document = {"release": settings.release, "rows": rows}
    print_result(document, "Purged", facts, [note] if rows else [], as_json=as_json)


@app.command()
def compact(
    config: ConfigOption,
    overrides: SetOption = None,
    retain_hours: Annotated[
        int, Option("--retain-hours", min=0, metavar="N", help="Keep files that versions of the last N hours need.")
    ] = RETAIN_HOURS,
    *,
    as_json: JsonOption = False,
) -> None:
    """Compact the draws and the ledger; vacuum the public table.

    Keeps the files that versions of the last --retain-hours need.

    Example: `wordveil release compact --config reviews.yaml`
    """
    from wordveil.spark.release.maintenance import compact as compact_release

    settings = read_release_config(config, overrides)
    done = _work(partial(compact_release, retain_hours=retain_hours), settings)
    if as_json:
        print_json({"release": settings.release, "retain_hours": retain_hours, "tables": done})
    else:
        print_rows(compact_table(done))


@app.command()
def reset(
    config: ConfigOption,
    overrides: SetOption = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Confirm. Without it nothing is done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget lost tables so that the next run starts fresh.

    Spent budget stays spent, and withdrawn records stay out.

    Example: `wordveil release reset --config reviews.yaml --yes`
    """
    from wordveil.spark.release.maintenance import reset as reset_release

    settings = read_release_config(config, overrides)
    if not yes:
        problem = (
            "gives up the draws and the journal permanently. Restore them if there is a backup; otherwise add --yes."
        )
        raise usage_error("release reset", "", problem)
    tables = _work(reset_release, settings, is_short=True)
    note = (
        "what it spent stays charged, and withdrawn records stay out. Readers keep what was published until you "
        "publish again."
    )
    facts = {"release": settings.release, "tables given up": ", ".join(tables)}
    print_result({"release": settings.release, "given_up": tables}, "Reset", facts, [note], as_json=as_json)


@app.command()
def show(config: ConfigOption, overrides: SetOption = None, *, as_json: JsonOption = False) -> None:
    """Show the state of a release: runs, gate, publication and records.

    Also lists withdrawn text that still exists. Confidential: reveals who has records.

    Example: `wordveil release show --config reviews.yaml`
    """
    from wordveil.assembly.local_state import read_local_state

    settings = read_release_config(config, overrides)
    if (facts := read_local_state(settings)) is None:
        from wordveil.spark.release.maintenance import show as show_release

        facts = _work(show_release, settings, is_short=True)
    if as_json:
        print_json(facts)
        return
    print_table(f"Release {facts['release']}", release_facts(facts))
    if facts["runs"]:
        print_rows(runs_table(facts["runs"]))
        for run_id in long_run_ids(facts["runs"]):
            print_whole("run", [run_id])


def _print_night(made: Night, release: str) -> None:
    if made.report:
        print_report(made.report, is_release=True)
    if made.decision:
        print_decision(made.decision)
    if made.publication:
        print_publication(made.publication, release)


def _work(step: Callable[..., Result], settings: Config, *, is_short: bool = False) -> Result:
    """Do a step of a release in its own session, and show its stages on a terminal."""
    with show_status() as progress:
        return step(settings, prepare_session(settings, is_short=is_short), progress=progress)


def read_ids(ids: Sequence[str], file: str | None) -> list[str]:
    """Collect the ids of the command line and of a file, one a line.

    Raises :class:`ConfigError` if there are none or the file cannot be read.
    """
    names = [*ids]
    try:
        if file == "-":
            names += _lines(sys.stdin.read())
        elif file is not None:
            names += _lines(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({type(error).__name__}). Name a UTF-8 text file with one id on each line."
        raise usage_error("--ids", str(file), problem) from None
    names = [name for name in names if name]
    if not names:
        raise usage_error("--id", "", "names no record. Add --id ID, or --ids FILE with one id a line.")
    return names


def _lines(text: str) -> list[str]:
    """Split a text into lines; ids may contain other characters at which ``splitlines`` breaks."""
    return [line.removesuffix("\r") for line in text.split("\n")]
