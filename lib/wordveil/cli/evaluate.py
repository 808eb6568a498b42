"""The commands ``wordveil evaluate`` and ``wordveil evaluate compare``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from wordveil.cli.files import writing
from wordveil.cli.options import ParamOption, SetOption, prepare_session, read_config
from wordveil.cli.output import print_grid, print_line, print_note, print_table, show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import usage_error
from wordveil.input.parameters import parse_params

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.report.compare import EvaluationComparison
    from wordveil.scores.evaluation import Evaluation

PRIVATE_NOTE = "these figures are of private text, and internal: do not publish them."
EXAMPLES_NOTE = "the report holds private records, as evaluation.examples asks for: it is as secret as they are."
_PAGE = "the page, which its owner alone can read."
app = Typer(invoke_without_command=True, add_completion=False)


@app.callback()
@command(report=True, html=True)
def evaluate(
    call: Call,
    config: Annotated[
        Path | None, Option("--config", "-c", help="The YAML configuration file whose output is measured.")
    ] = None,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    published: Annotated[
        bool, Option("--published", help="Measure the published table of a release, and not its newest draws.")
    ] = False,
    seed: Annotated[
        int | None, Option("--seed", min=0, metavar="SEED", help="Decides which records are measured: evaluation.seed.")
    ] = None,
    out: Annotated[Path | None, Option("--out", metavar="DIR", help="The directory of the report.")] = None,
) -> Result | None:
    """Measure a release against its originals: authors found, words recovered, use kept.

    Needs no key. The figures are confidential.

    Example: `wordveil evaluate --config reviews.yaml --out evaluation`
    """
    if call.context.invoked_subcommand:
        return None
    if config is None:
        raise usage_error("--config", "", "is missing. Name a configuration file.")
    call.config = read_config(config, [*(overrides or ()), *([] if seed is None else [f"evaluation.seed={seed}"])])
    evaluation = _evaluate(call.config, params, out, published=published)
    from wordveil.report.files import DATA, PAGE, SCORES, write_evaluation
    from wordveil.report.page import describe_evaluation, render_evaluation

    described = describe_evaluation(evaluation)
    call.tell(described)
    if call.page:
        call.save_page(render_evaluation(evaluation), _PAGE)
    if out is not None:
        with writing("--out", str(out)):
            write_evaluation(evaluation, out)
        print_note(f"{out / PAGE}: the report; {DATA} and {SCORES} are beside it.")
    print_note(EXAMPLES_NOTE if evaluation.examples else PRIVATE_NOTE)
    return Result(described, partial(print_scores, evaluation))


_Evaluation = Annotated[Path, Argument(help="An evaluation.json, or the directory that holds it.")]


@app.command()
@command(html=True)
def compare(call: Call, first: _Evaluation, second: _Evaluation) -> Result:
    """Show two evaluations side by side.

    Needs no configuration.

    Example: `wordveil evaluate compare before/evaluation.json after/evaluation.json`
    """
    from wordveil.report.compare import choose_names, compare_evaluations, render_comparison
    from wordveil.report.files import read_evaluation

    names = choose_names(first, second)
    comparison = compare_evaluations(read_evaluation(first), read_evaluation(second), names)
    if call.page:
        call.save_page(render_comparison(comparison), _PAGE)
    return Result(comparison.to_dict(), partial(print_comparison, comparison))


def _evaluate(config: Config, params: list[str] | None, out: Path | None, *, published: bool) -> Evaluation:
    is_release = config.output.format == "delta"
    if published and not is_release:
        problem = "needs a release: a Parquet output is not published apart. Remove it, or set output.format: delta."
        raise usage_error("--published", "", problem)
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


def print_scores(evaluation: Evaluation) -> None:
    """Print the main results in sentences, and a table for each group of figures."""
    from wordveil.report.page import write_headline
    from wordveil.report.tables import make_sections

    print_table(evaluation.title, evaluation.facts, write_headline(evaluation))
    for section in make_sections(evaluation.scores):
        for table in section["tables"]:
            _print_scores(": ".join(filter(None, (section["title"], table["heading"]))), table)
            for number, note in enumerate(table["notes"], 1):
                print_line(f"({number}) {note}")
    for note in evaluation.notes:
        print_note(note)


def _print_scores(title: str, table: Mapping[str, Any]) -> None:
    names = [f"{measure['task']}: {measure['method']}" for measure in table["measures"]]
    chances = [measure["chance"] for measure in table["measures"]]
    cells = [[*map(_figure, figures)] for figures in table["figures"]]
    if not table["by_subject"]:
        rows = [(name, *row, chance) for name, row, chance in zip(names, cells, chances, strict=True)]
        print_grid(title, rows, ("measure",), (*table["subjects"], "chance"))
        return
    rows = [(subject, *row) for subject, row in zip(table["subjects"], zip(*cells, strict=True), strict=True)]
    print_grid(title, [*rows, *([("chance", *chances)] if any(chances) else [])], ("subject",), names)


def _figure(figure: Mapping[str, Any] | None) -> list[str]:
    """Return the lines of a cell."""
    if figure is None:
        return []
    mark = f" ({figure['note']})" if figure["note"] else ""
    return [f"{figure['value']}{mark}", *filter(None, [figure["interval"]])]


def print_comparison(comparison: EvaluationComparison) -> None:
    """Print two evaluations side by side: a table for each group of figures."""
    from wordveil.report.compare import NOTE, list_rows

    first, second = comparison.names
    for group, rows in list_rows(comparison).items():
        cells = [
            (
                *(row["subject"], f"{row['task']}: {row['method']}"),
                *(list(filter(None, (row[side], row[f"{side}_interval"]))) for side in ("first", "second")),
                *(row["difference"], row["chance"], row["change"]),
            )
            for row in rows
        ]
        print_grid(group, cells, ("subject", "measure"), (first, second, "difference", "chance", f"{second} is"))
    if not comparison.pairs:
        print_note("the two have no figure in common.")
    if comparison.alone:
        counts = [sum(name == side for name, _ in comparison.alone) for side in comparison.names]
        print_note(f"measured once: {counts[0]:,} figures of {first} alone, {counts[1]:,} of {second} alone.")
    print_note(NOTE)
