"""The command ``wordveil sanitise``."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from wordveil.cli.options import (
    ConfigOption,
    JsonOption,
    ParamOption,
    RunOption,
    SetOption,
    SnapshotOption,
    prepare_session,
    print_report,
    read_config,
)
from wordveil.cli.output import print_json, show_progress
from wordveil.cli.report_file import ReportOption, write_report
from wordveil.errors import usage_error
from wordveil.input.parameters import parse_params


def sanitise(
    config: ConfigOption,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace an existing output. Not for releases (output.format: delta).")
    ] = False,
    full_snapshot: SnapshotOption = False,
    run_id: RunOption = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Sanitise the corpus into a table, or update a release.

    The table appears complete or not at all. A release (output.format: delta) is updated incrementally.

    Example: `wordveil sanitise --config reviews.yaml --param day=2026-01-31`
    """
    with write_report("sanitise", report) as tell:
        settings = read_config(config, overrides)
        values = parse_params(params or ())
        is_release = settings.output.format == "delta"
        _check_options(overwrite=overwrite, full_snapshot=full_snapshot, is_release=is_release)
        with show_progress() as (progress, tasks):
            session = prepare_session(settings)
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


def _check_options(*, overwrite: bool, full_snapshot: bool, is_release: bool) -> None:
    if overwrite and is_release:
        problem = (
            "a release (output.format: delta) is never overwritten, since its draws are charged. Remove --overwrite, "
            "or start a release with another name."
        )
        raise usage_error("--overwrite", "", problem)
    if full_snapshot and not is_release:
        problem = (
            "needs a release: a Parquet output always holds the whole input. Remove --full-snapshot, or set "
            "output.format: delta."
        )
        raise usage_error("--full-snapshot", "", problem)
