"""The commands ``wordveil release``, from a run to the deletion of the last withdrawn text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from wordveil.cli import release_tables
from wordveil.cli.options import RunOption, SkipOption, SnapshotOption, prepare_session, read_release_config
from wordveil.cli.output import print_note, show_status
from wordveil.cli.pages import render_gate
from wordveil.cli.scaffold import PAGE_NOTE, Call, Result, command
from wordveil.cli.verify import verify
from wordveil.errors import EmptyInputError, usage_error

if TYPE_CHECKING:
    from wordveil.spark.release.night import Night

app = Typer(
    help="Gate, publish, verify and maintain an incremental release (output.format: delta).",
    no_args_is_help=True,
    add_completion=False,
)
RETAIN_HOURS = 168
_AFTER_WITHDRAWAL = "the text still exists. `wordveil release erase` with the same ids deletes it."
IdOption = Annotated[list[str] | None, Option("--id", metavar="ID", help="A record. Repeatable.")]
IdsOption = Annotated[
    str | None,
    Option("--ids-from", metavar="FILE", help="Ids in Parquet or CSV, or one on each line; - reads standard input."),
]


@app.command()
@command(read_release_config, params=True, report=True, html=True)
def night(
    call: Call,
    *,
    full_snapshot: SnapshotOption = False,
    skip_empty: SkipOption = False,
    hold: Annotated[
        bool, Option("--no-publish", help="End after the gate. `wordveil release publish` publishes what has passed.")
    ] = False,
    run_id: RunOption = None,
) -> Result:
    """Sanitise, gate and publish in one Spark session.

    Does what the three commands do one after the other. Stops at the first step that fails, with its exit code.

    Example: `wordveil release night --config reviews.yaml`
    """
    from wordveil.spark.release.night import Night, run_night

    made = Night()

    def keep(so_far: Night) -> None:
        nonlocal made
        made = so_far
        call.tell(made.to_dict())
        if call.page and made.decision and not made.publication:
            call.save_page(render_gate(made.decision), None)

    try:
        chosen = {"params": call.params, "run_id": run_id, "full_snapshot": full_snapshot, "skip_empty": skip_empty}
        call.work(run_night, **chosen, publish=not hold, done=keep)
    except EmptyInputError as error:
        return release_tables.describe_skipped(error)
    finally:
        # Steps that are done have drawn and charged, so they are shown even if a later step fails.
        if not call.as_json:
            release_tables.print_night(made, call.config.release)
        if call.page and made.decision:
            print_note(f"{call.page}: {PAGE_NOTE}")
    assert made.decision is not None
    return Result(made.to_dict(), lambda: None, release_tables.find_gate_failure(made.decision))


@app.command()
@command(read_release_config, report=True)
def stream(
    call: Call,
    every: Annotated[
        str | None,
        Option("--every", metavar="INTERVAL", help='Go on, with a batch at this interval, such as "5 minutes".'),
    ] = None,
) -> Result:
    """Append the new rows of a stream's source to the input, and run a night for each batch.

    Ends with the last row, unless --every is set.

    Example: `wordveil release stream --config reviews.yaml`
    """
    from wordveil.spark.release.stream import run_stream

    made: dict[str, Any] = {"batches": 0, "last": None}
    call.tell(made)

    def keep(night: Night) -> None:
        assert night.decision is not None
        made.update(batches=made["batches"] + 1, last=night.to_dict())
        call.tell(made)
        if not call.as_json:
            release_tables.print_night(night, call.config.release)
        if failure := release_tables.find_gate_failure(night.decision):
            raise failure

    call.work(run_stream, every=every, done=keep)
    return Result(made, lambda: None if made["batches"] else print_note("the source has no new rows."))


@app.command()
@command(read_release_config, report=True, html=True)
def gate(call: Call) -> Result:
    """Check the newest draws against the gate's rules and record the decision.

    Exits with code 3 if a rule does not pass.

    Example: `wordveil release gate --config reviews.yaml`
    """
    from wordveil.spark.release.gate import run_gate

    decision = call.do(run_gate, call.config)
    if call.page:
        call.save_page(render_gate(decision))
    return Result(
        decision.to_dict(), partial(release_tables.print_decision, decision), release_tables.find_gate_failure(decision)
    )


@app.command()
@command(read_release_config, report=True)
def publish(
    call: Call,
    draws_version: Annotated[
        int | None,
        Option("--draws-version", metavar="N", help="The version of the draws that may be published, and no other."),
    ] = None,
) -> Result:
    """Write the public table and its signed manifest from draws that passed the gate.

    Example: `wordveil release publish --config reviews.yaml`
    """
    from wordveil.spark.release.publish import publish as publish_release

    made = call.do(publish_release, call.config, draws_version=draws_version)
    return Result(made.to_dict(), partial(release_tables.print_publication, made, call.config.release))


app.command()(verify)


@app.command()
@command(read_release_config)
def withdraw(call: Call, ids: IdOption = None, ids_from: IdsOption = None, run_id: RunOption = None) -> Result:
    """Withdraw records permanently, without deleting a text.

    The next publication removes their public text. `wordveil release erase` does all at once.

    Example: `wordveil release withdraw --config reviews.yaml --id 1042`
    """
    from wordveil.spark.release.run import withdraw as withdraw_records

    withdrawn_ids = [*(ids or ()), *read_ids(ids_from, call.config.home.id)]
    _require_records(withdrawn_ids)
    report = call.work(withdraw_records, withdrawn_ids, run_id=run_id)

    def show_report() -> None:
        release_tables.print_report(report, is_release=True)
        print_note(_AFTER_WITHDRAWAL)

    return Result(report.to_dict(), show_report)


@app.command()
@command(read_release_config, report=True)
def erase(
    call: Call,
    authors: Annotated[
        list[str] | None, Option("--author", metavar="AUTHOR", help="All records of an author. Repeatable.")
    ] = None,
    ids: IdOption = None,
    ids_from: IdsOption = None,
    retain_hours: Annotated[
        int, Option("--retain-hours", min=0, metavar="N", help="Keep files that versions of the last N hours need.")
    ] = 0,
) -> Result:
    """Erase records from draws, public table and disk, and show what is left where.

    Withdraws and purges them, publishes without them if the gate passes, and deletes files of old versions. Start the
    same command again after any failure. Ids of --ids-from may be unknown.

    Example: `wordveil release erase --config reviews.yaml --author C11135`
    """
    _require_records(authors, ids, ids_from)
    if authors and call.config.source.author is None:
        problem = "needs input.author, the column that says who wrote a record. Set it, or name the records by --id."
        raise usage_error("--author", authors[0], problem)
    listed = read_ids(ids_from, call.config.home.id)
    from wordveil.spark.release.erase import erase as erase_records

    chosen = {"ids": ids or (), "listed": listed, "authors": authors or ()}
    made = call.work(erase_records, **chosen, retain_hours=retain_hours)
    failure = release_tables.find_gate_failure(made.decision) if made.decision else None
    return Result(made.to_dict(), partial(release_tables.print_erasure, made), failure)


@app.command()
@command(read_release_config)
def abandon(
    call: Call, run_id: Annotated[str, Argument(metavar="RUN_ID", help="The interrupted run, as `show` names it.")]
) -> Result:
    """Give up an interrupted run that cannot be finished.

    Its reserved budget is spent; its rows are discarded.

    Example: `wordveil release abandon 20260131T020000Z-5f0c --config reviews.yaml`
    """
    from wordveil.spark.release.run import abandon as abandon_run

    release = call.config.release
    with show_status() as progress:
        progress("starting Spark")
        abandon_run(call.config.home, prepare_session(call.config, is_short=True), run_id)
    facts = {"release": release, "run": run_id, "charged": "everything that it had reserved"}
    document = {"release": release, "run_id": run_id, "state": "abandoned"}
    return Result.of("Abandoned", document, facts)


@app.command()
@command(read_release_config)
def purge(call: Call) -> Result:
    """Delete the draws of records that have left the input, or were withdrawn, from the newest version of the draws.

    Example: `wordveil release purge --config reviews.yaml`
    """
    from wordveil.spark.release.maintenance import purge as purge_release

    rows = call.do(purge_release, call.config.home)
    note = "old files hold them until `wordveil release compact`, and the public table until `gate` and `publish`."
    facts = {"release": call.config.release, "draws deleted": f"{rows:,}"}
    document = {"release": call.config.release, "rows": rows}
    return Result.of("Purged", document, facts, [note] if rows else [])


@app.command()
@command(read_release_config, report=True)
def compact(
    call: Call,
    retain_hours: Annotated[
        int, Option("--retain-hours", min=0, metavar="N", help="Keep files that versions of the last N hours need.")
    ] = RETAIN_HOURS,
) -> Result:
    """Compact the draws and the ledger; vacuum the public table.

    Keeps the files that versions of the last --retain-hours need.

    Example: `wordveil release compact --config reviews.yaml`
    """
    from wordveil.spark.release.maintenance import compact as compact_release

    done = call.do(compact_release, call.config.home, retain_hours=retain_hours)
    document = {"release": call.config.release, "retain_hours": retain_hours, "tables": done}
    return Result(document, partial(release_tables.print_compaction, done))


@app.command()
@command(read_release_config)
def reset(
    call: Call, *, yes: Annotated[bool, Option("--yes", help="Confirm. Without it nothing is done.")] = False
) -> Result:
    """Forget lost tables so that the next run starts fresh.

    Spent budget stays spent, and withdrawn records stay out.

    Example: `wordveil release reset --config reviews.yaml --yes`
    """
    from wordveil.spark.release.maintenance import reset as reset_release

    if not yes:
        problem = (
            "gives up the draws and the journal permanently. Restore them if there is a backup; otherwise add --yes."
        )
        raise usage_error("release reset", "", problem)
    tables = call.do(reset_release, call.config.home, is_short=True)
    note = (
        "what it spent stays charged, and withdrawn records stay out. Readers keep what was published until you "
        "publish again."
    )
    facts = {"release": call.config.release, "tables given up": ", ".join(tables)}
    document = {"release": call.config.release, "given_up": tables}
    return Result.of("Reset", document, facts, [note])


@app.command()
@command(read_release_config)
def show(call: Call) -> Result:
    """Show the state of a release: runs, gate, publication and records.

    Also lists withdrawn text that still exists. Confidential: reveals who has records.

    Example: `wordveil release show --config reviews.yaml`
    """
    from wordveil.assembly.local_state import read_local_state

    if (facts := read_local_state(call.config.home, call.config.spark)) is None:
        from wordveil.spark.release.maintenance import show as show_release

        facts = call.do(show_release, call.config.home, is_short=True)
    return Result(facts, partial(release_tables.print_release, facts))


def read_ids(file: str | None, name: str) -> list[str]:
    """Read ids from Parquet or CSV, by the column ``name`` or the only one, or from a text with one id a line.

    ``-`` reads lines of standard input. Empty ids are left out. Raises :class:`ConfigError` for a file that cannot be
    read, or has neither column.
    """
    if file is None:
        return []
    try:
        ids = _lines(sys.stdin.read()) if file == "-" else _read_file(Path(file), name)
    except (OSError, ValueError, NotImplementedError) as error:  # among them those of pyarrow and of decoding
        problem = (
            f"cannot be read ({type(error).__name__}). Name a UTF-8 text file with one id on each line, or Parquet or "
            f"CSV with the column {name}."
        )
        raise usage_error("--ids-from", file, problem) from None
    return [one for one in ids if one]


def _read_file(file: Path, name: str) -> list[str | None]:
    if file.suffix not in (".parquet", ".csv"):
        return [*_lines(file.read_text("utf-8"))]
    import pyarrow as pa
    from pyarrow import csv, parquet

    is_parquet = file.suffix == ".parquet"
    columns = parquet.read_schema(file).names if is_parquet else csv.open_csv(file).schema.names
    # The only column of a CSV may be one without a header, whose first line is an id.
    chosen = columns[0] if len(columns) == 1 and is_parquet else name
    if chosen not in columns:
        raise usage_error("--ids-from", str(file), f"has no column {name}, but {', '.join(columns)}. Rename one.")
    if is_parquet:
        found = parquet.read_table(file, columns=[chosen])
    else:  # as text: 007 is not 7
        options = csv.ConvertOptions(include_columns=[chosen], column_types={chosen: pa.string()})
        found = csv.read_csv(file, convert_options=options)
    return list(found[chosen].cast(pa.string()).to_pylist())


def _require_records(*given: Sequence[str] | str | None) -> None:
    if not any(given):
        raise usage_error("--id", "", "names no record. Add --id ID, or --ids-from FILE.")


def _lines(text: str) -> list[str]:
    """Split a text into lines; ids may contain other characters at which ``splitlines`` breaks."""
    return [line.removesuffix("\r") for line in text.split("\n")]
