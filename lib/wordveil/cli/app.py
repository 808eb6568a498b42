"""The command line. Exit codes: 0 done; 2 configuration; 3 gate not passed; 4 input, embedding, bundle or n-gram model;
5 key; 6 output exists; 7 Java, Spark or a package missing; 8 the Spark job failed; 9 release, ledger or budget; 1
anything else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordveil.cli.analytics import analytics
from wordveil.cli.key import keys
from wordveil.cli.ledger import ledger
from wordveil.cli.ngrams import ngrams
from wordveil.cli.options import (
    ConfigOption,
    JsonOption,
    ParamOption,
    RunOption,
    SetOption,
    print_report,
    progress_bar,
    session_of,
    starter,
    status,
    terminate,
)
from wordveil.cli.output import people, print_json, print_note, print_table, results
from wordveil.cli.release import releases
from wordveil.cli.report_file import ReportOption, reported
from wordveil.config.load import Config, load_config
from wordveil.config.parameters import parse_params
from wordveil.config.schema import SparkSection
from wordveil.errors import ConfigError, Fault, GateError, WordveilError
from wordveil.version import __version__

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle
    from wordveil.embeddings.training.poincare import ReadPairs
    from wordveil.evaluation.comparison import Comparison
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.plan.sample import Preview

app = typer.Typer(
    help="Sanitise text corpora on Spark with metric differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=(
        "Exit codes: 0 done; 2 configuration; 3 gate not passed; 4 input, embedding, bundle or n-gram model; 5 key; 6 output exists; "
        "7 Java, Spark or a package missing; 8 Spark job failed; 9 release, ledger or budget; 1 anything else."
    ),
)
app.add_typer(keys, name="key")
app.add_typer(releases, name="release")
app.command(name="ledger")(ledger)
app.command(name="ngrams")(ngrams)
app.command(name="analytics")(analytics)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the console script and of the jobs: runs one command and exits with its code."""
    signal.signal(signal.SIGTERM, terminate)
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = app(args=list(arguments), standalone_mode=False)
    except WordveilError as error:
        _print_error(error, as_json="--json" in arguments)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        if not hasattr(error, "show"):
            raise
        error.show()  # a usage error of the command line
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(code or 0)


def _print_error(error: WordveilError, *, as_json: bool) -> None:
    if as_json and isinstance(error, GateError):
        # It has printed its own document, which says what failed. spark-submit writes both streams to its standard
        # output, where a second line would spoil the document.
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            return
        as_json = False
    if as_json:
        faults = [fault.__dict__ for fault in error.faults] if isinstance(error, ConfigError) else []
        print(json.dumps({"error": type(error).__name__, "message": str(error), "faults": faults}))  # noqa: T201
    else:
        people.print(f"wordveil: {error}", style="red", markup=False, soft_wrap=True)


@app.callback(invoke_without_command=True)
def version(*, show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Sanitise text corpora on Spark with metric differential privacy."""
    if show:
        results.print(__version__)
        raise typer.Exit


@app.command()
def init(
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="TABLE", help="The table to sanitise, of Parquet or Delta, by its path."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; it must not exist.")] = Path(
        "job.yaml"
    ),
    airflow: Annotated[
        Path | None,
        typer.Option(
            "--airflow",
            metavar="DIR",
            help="Write the DAGs for Airflow into this directory instead, with the jobs they submit.",
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a commented configuration from a table's schema, or the DAGs for Airflow. Reads no rows."""
    if (source is None) == (airflow is None):
        problem = "say what to write: --from TABLE for a configuration, or --airflow DIR for the DAGs; one of them."
        raise ConfigError("command line", [Fault("--from", source or "", problem)])
    if airflow is not None:
        _write_dags(airflow, as_json=as_json)
        return
    assert source is not None
    from wordveil.config import template
    from wordveil.spark.input.inspect import read_columns

    template.refuse_existing(output)
    with status() as progress:
        progress("reading the schema")
        is_delta = template.is_local_delta(source)
        columns = read_columns(starter(SparkSection(), delta=is_delta), source)
    guess = template.guess_columns(columns, template.table_name(source))
    template.write_draft(output, template.draft_config(source, columns, guess, "delta" if is_delta else "parquet"))
    facts = template.draft_facts(output, source, guess)
    if as_json:
        print_json(facts)
    else:
        shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
        shown = {name: value or "none" for name, value in shown.items() if value or not name.endswith("_candidates")}
        notes = [
            f"columns were guessed by their names: check {output}, fill in what is missing, then run `wordveil build`."
        ]
        print_table("Configuration", {name.replace("_", " "): value for name, value in shown.items()}, notes)


def _write_dags(folder: Path, *, as_json: bool) -> None:
    from wordveil.cli.scaffold import write_dags

    written = [str(path.relative_to(folder)) for path in write_dags(folder)]
    if as_json:
        print_json({"output": str(folder), "files": written})
    else:
        notes = ["docs/airflow.md says which Airflow Variable and connection they take."]
        print_table("DAGs for Airflow", {"directory": folder, "files": "\n".join(written)}, notes)


@app.command()
def build(
    config: ConfigOption,
    overrides: SetOption = None,
    *,
    on_spark: Annotated[
        bool,
        typer.Option(
            "--on-spark", help="Add up pairs and find neighbours on the executors of the configuration's Spark session."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the bundle: check the embedding, build the mechanism, write both content-addressed."""
    from wordveil.config.artifacts import build_bundle
    from wordveil.embeddings.training.hypernyms import read_pairs
    from wordveil.neighbours.blocks import BuildContext

    settings = load_config(config, overrides or ())
    with progress_bar() as (progress, steps):
        work = BuildContext(progress, steps)
        read: ReadPairs = read_pairs
        if on_spark:
            from wordveil.spark.builds.hypernyms import read_on_executors
            from wordveil.spark.builds.neighbours import compute_on_executors

            work = replace(work, compute=compute_on_executors(session_of(settings)))
            read = read_on_executors(session_of(settings))
        bundle = build_bundle(settings, work, read)
    if as_json:
        print_json({**_bundle_facts(bundle), "notes": bundle.manifest["notes"]})
    else:
        print_table("Bundle", _bundle_facts(bundle), bundle.manifest["notes"])


@app.command()
def plan(
    config: ConfigOption,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", help="Read the first N records: rates, lengths, keep-rate, core-hours."),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option("--words", metavar="WORD,...", help="Show what becomes of these words at three epsilons."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="A sentence to show with --compare; a public one.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Show --text under each mechanism, at equal keep-rate and at equal pure epsilon."
        ),
    ] = False,
    has_records: Annotated[
        bool,
        typer.Option(
            "--has-records", help="Say whether the input, or the slice of it, has a record; one is looked for."
        ),
    ] = False,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Check everything against the input's schema and price a record of the public maximum length. Reads no rows
    without --sample or --has-records.
    """
    from wordveil.config.artifacts import compare_mechanisms
    from wordveil.spark.plan.plan import make_plan
    from wordveil.spark.plan.sample import check_preview, make_preview

    with reported("plan", report) as tell:
        settings = load_config(config, overrides or ())
        values = parse_params(params or ())
        _check_comparison(text, compare=compare)
        with status() as progress:
            wanted = check_preview(settings, sample, words)
            comparison = compare_mechanisms(settings, text, progress) if text else None
            progress("reading the schema")
            result = make_plan(settings, session_of(settings), params=values, look=has_records)
            preview = make_preview(settings, wanted, session_of(settings), progress, params=values)
        compared = {"comparison": comparison.to_dict()} if comparison else {}
        document = {**result.to_dict(), **preview.to_dict(), **compared}
        tell(document)
    if as_json:
        print_json(document)
    else:
        _print_plan(result)
        _print_preview(preview)
        if comparison:
            _print_comparison(comparison)


def _check_comparison(text: str | None, *, compare: bool) -> None:
    if compare and not (text or "").strip():
        raise ConfigError("command line", [Fault("--compare", "", 'needs a sentence: add --text "...", a public one.')])
    if text is not None and not compare:
        raise ConfigError("command line", [Fault("--text", text[:80], "is shown by --compare: add it.")])


@app.command()
def sanitise(
    config: ConfigOption,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an output that exists; never of a release (output.format: delta)."),
    ] = False,
    full_snapshot: Annotated[
        bool,
        typer.Option(
            "--full-snapshot", help="The input is the whole corpus: records of the release that are not in it leave it."
        ),
    ] = False,
    run_id: RunOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Sanitise the corpus into a table, whole or not at all; or bring a release (output.format: delta) in step with
    it.
    """
    with reported("sanitise", report) as tell:
        settings = load_config(config, overrides or ())
        values = parse_params(params or ())
        is_release = settings.output.format == "delta"
        _check_sanitise(settings, overwrite=overwrite, full_snapshot=full_snapshot)
        with progress_bar() as (progress, tasks):
            session = session_of(settings)
            common: dict[str, Any] = {"params": values, "run_id": run_id, "progress": progress, "tasks": tasks}
            if is_release:
                from wordveil.spark.release.run import run_release

                done = run_release(settings, session, full_snapshot=full_snapshot, **common)
            else:
                from wordveil.spark.sanitise.job import run_sanitise

                done = run_sanitise(settings, session, overwrite=overwrite, **common)
        tell(done.to_dict())
    if as_json:
        print_json(done.to_dict())
    else:
        print_report(done, is_release=is_release)


def _check_sanitise(config: Config, *, overwrite: bool, full_snapshot: bool) -> None:
    is_release = config.output.format == "delta"
    if overwrite and is_release:
        problem = "a release (output.format: delta) is never overwritten: what it drew is charged. Remove it, or begin a release of another name."
        raise ConfigError("command line", [Fault("--overwrite", "", problem)])
    if full_snapshot and not is_release:
        problem = "is about a release: a Parquet output is made of the whole input anyway. Remove it, or say output.format: delta."
        raise ConfigError("command line", [Fault("--full-snapshot", "", problem)])


def _bundle_facts(bundle: Bundle) -> dict[str, Any]:
    guarantee = bundle.guarantee
    return {
        "mechanism": bundle.mechanism.name,
        "fingerprint": bundle.fingerprint,
        "path": str(bundle.path),
        "words": bundle.vocabulary.size,
        "bytes": bundle.payload_bytes,
        "search": bundle.mechanism.search,
        "search_recall": bundle.mechanism.search_recall,
        "metric": guarantee.metric.identifier,
        "nominal_epsilon": guarantee.nominal_epsilon,
        "epsilon": guarantee.epsilon,
        "diameter": guarantee.diameter,
        "epsilon_pure_per_token": guarantee.pure,
        "slack": guarantee.slack,
        "delta_per_token": guarantee.delta,
    }


def _print_plan(plan: Plan) -> None:
    from wordveil.cli.tables import number

    hidden = plan.tokens is not None
    unit = f"a record of {plan.tokens} tokens" if hidden else "a token (the length is public)"
    facts = {
        "release": plan.release,
        "input": plan.input,
        "columns": ", ".join(f"{name} {kind}" for name, kind in plan.columns.items()),
        "mechanism": f"{plan.mechanism}, epsilon {plan.epsilon:g} per unit of distance and token",
        "bundle": plan.bundle or "none yet",
        "largest distance": number(plan.diameter),
        "composition": plan.composition,
        "holds for": f"pairs of texts related by {plan.relation}",
        "exposes": ", ".join(plan.exposes) or "nothing",
        f"epsilon of {unit}": number(plan.epsilon_bound),
        "pure epsilon": number(plan.epsilon_pure)
        if plan.epsilon_pure is not None or plan.bundle is None
        else "none: unbounded for any two texts",
    }
    if plan.delta:
        facts[f"delta of {unit}"] = f"{plan.delta:.3g}: by so much probability an output may go beyond these bounds"
    if plan.has_records is not None:
        facts["records to read"] = "some" if plan.has_records else "none"
    notes = [plan.bundle_problem] if plan.bundle_problem else []
    if plan.bundle is None:
        notes.append("prices need the embedding's diameter, which the bundle holds: run `wordveil build` first.")
    print_table("Plan", facts, notes)


def _print_preview(preview: Preview) -> None:
    from wordveil.cli import tables

    if preview.sample:
        facts = tables.sample_facts(preview.sample.sample, preview.sample.to_dict())
        print_table("Sample", facts, [tables.PRIVATE_NOTE, tables.SPEED_NOTE])
    if preview.words:
        results.print(tables.word_table(preview.words))
        print_note(tables.WORDS_NOTE)


def _print_comparison(comparison: Comparison) -> None:
    from wordveil.cli import tables

    for table in tables.comparison_tables(comparison):
        results.print(table)
    print_note(tables.COMPARISON_NOTE)
