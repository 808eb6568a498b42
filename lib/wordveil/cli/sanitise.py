"""The command ``wordveil sanitise``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from typer import Option

from wordveil.cli.options import RunOption, SkipOption, SnapshotOption, read_config
from wordveil.cli.release_tables import describe_skipped, print_report
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import EmptyInputError, usage_error


@command(read_config, params=True, report=True, html=True)
def sanitise(
    call: Call,
    *,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace an existing output. Not for releases (output.format: delta).")
    ] = False,
    full_snapshot: SnapshotOption = False,
    skip_empty: SkipOption = False,
    run_id: RunOption = None,
) -> Result:
    """Sanitise the corpus into a table, or update a release.

    The table appears complete or not at all. A release (output.format: delta) is updated incrementally.

    Example: `wordveil sanitise --config reviews.yaml`
    """
    is_release = call.config.output.format == "delta"
    _check_options(overwrite=overwrite, full_snapshot=full_snapshot, is_release=is_release)
    common: dict[str, Any] = {"params": call.params, "run_id": run_id, "skip_empty": skip_empty}
    try:
        if is_release:
            from wordveil.spark.release.run import run_release

            report = call.work(run_release, full_snapshot=full_snapshot, **common)
        else:
            from wordveil.spark.sanitise.job import run_sanitise

            report = call.work(run_sanitise, overwrite=overwrite, **common)
    except EmptyInputError as error:
        return describe_skipped(error)
    if call.page:
        from wordveil.cli.pages import render_run

        call.save_page(render_run(report, is_release=is_release))
    return Result(report.to_dict(), partial(print_report, report, is_release=is_release))


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
