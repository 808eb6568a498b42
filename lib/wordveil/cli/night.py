"""The command ``wordveil release night``."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from wordveil.cli.output import print_json, print_note, show_progress
from wordveil.cli.pages import PAGE_NOTE, HtmlOption, check_page, render_gate, save_page
from wordveil.cli.report_file import ReportOption, write_report
from wordveil.input.parameters import parse_params

if TYPE_CHECKING:
    from wordveil.spark.release.night import Night


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
    """Sanitise, gate and publish in one Spark session, as the three commands do one after the other. Stops at the step
    that fails, with its exit code.
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
            # The steps that were done have drawn and charged: they are shown where a later one fails, too.
            made = steps[-1] if steps else Night()
            if not as_json:
                _print_night(made, settings.release)
            if page and made.decision:
                print_note(f"{page}: {PAGE_NOTE}")
        if as_json:
            print_json(made.to_dict())
        assert made.decision is not None
        require_passed(made.decision)


def _print_night(made: Night, release: str) -> None:
    if made.report:
        print_report(made.report, is_release=True)
    if made.decision:
        print_decision(made.decision)
    if made.publication:
        print_publication(made.publication, release)
