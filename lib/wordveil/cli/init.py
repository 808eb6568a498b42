"""The command ``wordveil init``."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

from typer import Option

from wordveil.cli.options import prepare_plain_session
from wordveil.cli.output import show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import OutputExistsError, usage_error

JOBS = "wordveil_jobs"
"""The directory of application files, beside the DAGs, which look for it there."""


@command()
def init(
    _: Call,
    source: Annotated[
        str | None,
        Option(
            "--from", metavar="TABLE", help="The path of the table to sanitise: Parquet, Delta, ORC, JSON lines or CSV."
        ),
    ] = None,
    output: Annotated[Path, Option("--output", "-o", help="The file to write. It must not exist.")] = Path("job.yaml"),
    airflow: Annotated[
        Path | None,
        Option(
            "--airflow",
            metavar="DIR",
            help="Write the Airflow DAGs and the jobs that they submit into this directory instead.",
        ),
    ] = None,
    *,
    release: Annotated[
        bool,
        Option("--release", help="Draft an incremental release of a Delta table: with a ledger, budgets and a gate."),
    ] = False,
    passages: Annotated[
        bool,
        Option("--passages", help="Draft one draw for a whole text, written as a public sentence, not one a word."),
    ] = False,
) -> Result:
    """Write a commented configuration from a table's schema, or the Airflow DAGs.

    Reads only the schema, except for JSON, whose rows show the columns and types.

    Example: `wordveil init --from data/reviews --release --output reviews.yaml`
    """
    if (source is None) == (airflow is None):
        problem = (
            "name exactly one of --from TABLE, which writes a configuration, and --airflow DIR, which writes the DAGs."
        )
        raise usage_error("--from", source or "", problem)
    if airflow is not None:
        for option, given in (("--release", release), ("--passages", passages)):
            if given:
                problem = "needs --from TABLE: it drafts a configuration. The DAGs are the same for every release."
                raise usage_error(option, "", problem)
        written = [str(path.relative_to(airflow)) for path in write_dags(airflow)]
        note = "`wordveil docs airflow` shows the connection that they need, and the file that adds a release."
        document = {"output": str(airflow), "files": written}
        return Result.of("DAGs for Airflow", document, {"directory": airflow, "files": written}, [note])
    assert source is not None
    return _write_draft(source, output, is_release=release, is_whole=passages)


def _write_draft(source: str, output: Path, *, is_release: bool, is_whole: bool) -> Result:
    from wordveil.config import template
    from wordveil.config.guess import guess_columns
    from wordveil.input.files import FileFormat, find_format
    from wordveil.input.locations import make_absolute, relative_to_file
    from wordveil.spark.input.inspect import read_columns, reads_changes

    template.refuse_existing(output)
    with show_status() as progress:
        progress("reading the schema")
        table = make_absolute(source)
        is_delta = is_release or template.is_local_delta(table)
        start = prepare_plain_session(delta=is_delta, is_short=True)
        columns = read_columns(start, table, is_release=is_release)
        has_feed = is_release and reads_changes(start, table)
    guess = guess_columns(columns, template.table_name(table))
    files = FileFormat("delta") if is_delta else find_format(table)
    named = relative_to_file(source, output)
    draft = template.draft_config(
        named,
        columns,
        guess,
        files.kind,
        output.parent,
        is_release=is_release,
        has_feed=has_feed,
        is_whole=is_whole,
        options=files.options,
    )
    template.write_draft(output, draft)
    facts = template.draft_facts(output, source, guess, is_release=is_release)
    shown = {**facts, "release": "yes, updated night by night" if is_release else "no, one job"}
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in shown.items()}
    shown = {name: value or "none" for name, value in shown.items() if value or not name.endswith("_candidates")}
    guessed = f"the columns were guessed from their names: check {output}, fill in what is missing, then run"
    notes = [f"{guessed} `wordveil build`."]
    if is_delta and not is_release:
        notes.append("this is a Delta table: --release drafts a release that is updated from it night by night.")
    return Result.of("Configuration", facts, shown, notes)


def write_dags(folder: Path) -> list[Path]:
    """Write the DAG files, the module that they import and the application files, and return their paths.

    ``folder``, the root of a DAG bundle, gets the first two, ``folder / JOBS`` the application files. Raises
    :class:`OutputExistsError` before anything is written if one of them exists, and :class:`ConfigError` if one cannot
    be written.
    """
    data = resources.files("wordveil") / "data"
    files: list[tuple[Path, Traversable]] = []
    for source, target in ((data / "airflow_dags", folder), (data / "jobs", folder / JOBS)):
        names = sorted(file.name for file in source.iterdir() if file.name.endswith(".py"))
        files += [(target / name, source / name) for name in names]
    existing = [path for path, _ in files if path.exists() or path.is_symlink()]
    if existing:
        raise OutputExistsError(
            f"--airflow = {folder}: already contains {', '.join(path.name for path in existing)}; nothing was written. "
            "Name another directory, or move these files away."
        )
    try:
        for path, source in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(source.read_text("utf-8"))
    except OSError as error:
        raise usage_error("--airflow", str(folder), f"cannot be written: {error.strerror}.") from None
    return [path for path, _ in files]
