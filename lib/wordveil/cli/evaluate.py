"""The command ``wordveil evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordveil.cli.evaluate_reports import print_scores, run_compare_command, run_experiment_command
from wordveil.cli.options import JsonOption, ParamOption, SetOption, prepare_session, read_config
from wordveil.cli.output import print_json, print_note, show_status
from wordveil.cli.pages import HtmlOption, check_page, save_page
from wordveil.cli.report_file import ReportOption, write_report, writing
from wordveil.config.parameters import parse_params
from wordveil.errors import ConfigError, Fault

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.evaluation.report.evaluation import Evaluation

PRIVATE_NOTE = "these figures are of private text, and internal: do not publish them."
EXAMPLES_NOTE = "the report holds private records, as evaluation.examples asks for: it is as secret as they are."
_DATA, _SEEDS = Path("data"), 5


def evaluate(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="The YAML configuration file whose output is measured.")
    ] = None,
    overrides: SetOption = None,
    params: ParamOption = None,
    experiment: Annotated[
        str | None,
        typer.Option("--experiment", metavar="NAME", help="Run an experiment on public data, such as f19-table1."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="A B", help="Show two evaluations side by side: their evaluation.json."),
    ] = None,
    *,
    published: Annotated[
        bool,
        typer.Option("--published", help="Measure the published table of a release, and not its newest draws."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, metavar="SEED", help="Decides which records are measured: evaluation.seed."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The directory of the report and of an experiment's kept cells."),
    ] = None,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The directory of an experiment's data.")] = _DATA,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="How many times an experiment repeats what is random.")
    ] = _SEEDS,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run an experiment on a small part of the data, to see that it runs.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, metavar="N", help="How many cells to measure at the same time."),
    ] = None,
    as_json: JsonOption = False,
    report: ReportOption = None,
    html: HtmlOption = None,
) -> None:
    """Measure what was released against its originals: who wrote it, what can be recovered, and how useful it still is.
    Needs no key; its figures are internal. Or run an experiment, or set two evaluations side by side.
    """
    with write_report("evaluate", report) as tell:
        if [config, experiment, compare].count(None) != 2:
            problem = "name a configuration, or an experiment by --experiment, or two files by --compare; one of them."
            raise ConfigError("command line", [Fault("--config", "", problem)])
        if compare is not None:
            run_compare_command(*compare, html=html, as_json=as_json)
        elif experiment is not None:
            run_experiment_command(
                experiment, out, data, seeds=seeds, quick=quick, processes=processes, as_json=as_json
            )
        elif config is not None:
            page = check_page(html) if html else None
            settings = read_config(config, [*(overrides or ()), *([] if seed is None else [f"evaluation.seed={seed}"])])
            found = _evaluate(settings, params, out, published=published)
            tell(found.to_dict())
            _save(found, page, out)
            if as_json:
                print_json(found.to_dict())
            else:
                print_scores(found)
            print_note(EXAMPLES_NOTE if found.examples else PRIVATE_NOTE)


def _evaluate(config: Config, params: list[str] | None, out: Path | None, *, published: bool) -> Evaluation:
    is_release = config.output.format == "delta"
    if published and not is_release:
        problem = "needs a release: a Parquet output is not published apart. Remove it, or set output.format: delta."
        raise ConfigError("command line", [Fault("--published", "", problem)])
    values = parse_params(params or ())
    if out is not None:
        with writing("--out", str(out)):
            out.mkdir(mode=0o700, parents=True, exist_ok=True)
    with show_status() as progress:
        session = prepare_session(config)
        common: dict[str, Any] = {"params": values, "progress": progress}
        if is_release:
            from wordveil.spark.release.evaluate import evaluate_release

            return evaluate_release(config, session, published=published, **common)
        from wordveil.spark.evaluate.job import evaluate_output

        return evaluate_output(config, session, **common)


def _save(evaluation: Evaluation, page: Path | None, out: Path | None) -> None:
    """Write the page and the directory, where they are wanted."""
    from wordveil.evaluation.report.files import write_evaluation
    from wordveil.evaluation.report.page import render_evaluation

    if page is not None:
        save_page(page, render_evaluation(evaluation))
        print_note(f"{page}: the page, which its owner alone can read.")
    if out is not None:
        with writing("--out", str(out)):
            files = write_evaluation(evaluation, out)
        print_note(f"{files.page}: the report; {files.data.name} and {files.scores.name} are beside it.")
