"""The command ``wordveil calibrate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from wordveil.cli.options import ConfigOption, SetOption
from wordveil.cli.output import print_grid, print_line, print_note, print_table, show_progress
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import usage_error

if TYPE_CHECKING:
    from wordveil.assembly.calibration import Request
    from wordveil.config.load import Config
    from wordveil.evaluation.text_meaning import TextMeaning
    from wordveil.measures.calibration.figures import Calibration, EpsilonMeaning

_COLUMNS = 4
FIGURES_NOTE = (
    "average / worst: of the word that is protected worst. Recovered: by the best attacker, of running text and where "
    "all words are alike; leakage: how many times as many as without looking. All figures are of public words: "
    "`wordveil docs figures` explains each."
)
TEXTS_NOTE = (
    "Linked: among 10,000 candidate originals; on average over the records, where all subjects are equally frequent, "
    "and at most for one record. Several text columns and versions add their epsilons. * is the configured number."
)
ACCURACY_NOTE = (
    "Accuracy, with its 95% interval: how often a reader who takes each drawn subject for its most frequent label is "
    "right. The other half of the sample tells these labels. Computed by the law of the draws, over {count:,} "
    "different public texts; chance is {chance:.1%}."
)
_WORDS, _RUNS, _THRESHOLD = 10_000, 1_000, 0.001


@command(report=True, html=True)
def calibrate(
    call: Call,
    config: ConfigOption,
    overrides: SetOption = None,
    epsilon: Annotated[
        str | None, Option("--epsilon", metavar="X,...", help="The epsilons to measure, e.g. 1,2,5,10,20.")
    ] = None,
    target: Annotated[
        list[str] | None,
        Option(
            "--target",
            metavar="NAME=VALUE",
            help="Find the epsilon that gives share_kept=0.3, pure_epsilon=50 or bayes_recovery=0.1. Repeatable.",
        ),
    ] = None,
    match: Annotated[
        Path | None,
        Option("--match", metavar="FILE", help="Find the epsilon that equals that of another configuration."),
    ] = None,
    by: Annotated[str, Option("--by", help="What --match makes equal: worst_n_w or bayes_recovery.")] = "worst_n_w",
    words: Annotated[
        int, Option("--words", min=1, metavar="N", help="How many words to draw, spread over the vocabulary.")
    ] = _WORDS,
    runs: Annotated[int, Option("--runs", min=1, metavar="N", help="How often to draw each word.")] = _RUNS,
    threshold: Annotated[
        float,
        Option(
            "--threshold", min=0, max=1, metavar="P", help="From which probability on K_w and inputs count an output."
        ),
    ] = _THRESHOLD,
    labelled: Annotated[
        Path | None,
        Option(
            "--labelled",
            metavar="FILE",
            help="For passages: show how often a drawn subject tells the label, by this PUBLIC sample with the columns "
            "text and label (Parquet, JSON lines or CSV).",
        ),
    ] = None,
) -> Result:
    """Show what each epsilon does to the public vocabulary, and find one that meets a target.

    For `passages` it shows what each keeps of subjects, and links, by the number of clusters. Reads no corpus and needs
    no key.

    Example: `wordveil calibrate --config reviews.yaml --epsilon 2,5,10 --target bayes_recovery=0.1`
    """
    from wordveil.assembly.calibration import Request, run_calibration
    from wordveil.neighbours.blocks import BuildContext
    from wordveil.report.calibration import render_calibration

    request = Request(config, overrides or (), epsilon, target or (), match, by, words, runs, threshold, labelled)
    request.check()
    settings = request.load()
    if settings.mechanism.mechanism.draws_texts:
        return _calibrate_texts(call, request, settings)
    if labelled is not None:
        problem = f"needs a mechanism that draws whole texts, and {settings.mechanism.name} draws words. Remove it."
        raise usage_error("--labelled", str(labelled), problem)
    with show_progress() as (progress, steps):
        calibration = run_calibration(request, settings, BuildContext(progress, steps))
    if call.page:
        call.save_page(render_calibration(calibration), "the page. It holds figures of public words alone.")
    return Result(calibration.to_dict(), partial(print_calibration, calibration))


def _calibrate_texts(call: Call, request: Request, config: Config) -> Result:
    """Show what epsilons keep of the subjects of whole texts."""
    from wordveil.assembly.calibration import calibrate_texts
    from wordveil.neighbours.blocks import BuildContext

    given = {"--target": request.target, "--match": request.match, "--html": call.page}
    if option := next((name for name, value in given.items() if value), None):
        problem = f"is about words, and {config.mechanism.name} draws whole texts. Set --epsilon alone."
        raise usage_error(option, "", problem)
    clusters = int(config.mechanism.recipe["clusters"])
    with show_progress() as (progress, steps):
        meanings = calibrate_texts(request, config, clusters, BuildContext(progress, steps))
    document = {"mechanism": config.mechanism.name, "meanings": [meaning.to_dict() for meaning in meanings]}
    return Result(document, partial(_print_texts, meanings, clusters))


def _print_texts(meanings: Sequence[TextMeaning], clusters: int) -> None:
    columns: dict[str, list[str]] = {
        "epsilon": [f"{meaning.epsilon:g}" for meaning in meanings],
        "clusters": [f"{meaning.clusters:,}{' *' * (meaning.clusters == clusters)}" for meaning in meanings],
        "keep their subject": [f"{meaning.stays:.1%}" for meaning in meanings],
        "linked on average": [f"{meaning.linked:.2%}" for meaning in meanings],
        "linked at most": [f"{meaning.at_most:.2%}" for meaning in meanings],
        "counted from": [f"{meaning.counted:,}" for meaning in meanings],
    }
    judged = [meaning.accuracy for meaning in meanings if meaning.accuracy]
    if judged:
        columns["accuracy"] = [
            f"{score.value:.1%} ({score.low:.1%} to {score.high:.1%})" if (score := meaning.accuracy) else "none"
            for meaning in meanings
        ]
    print_columns("What epsilon costs a text, and keeps of it", columns)
    print_note(TEXTS_NOTE)
    if judged:
        print_note(ACCURACY_NOTE.format(count=judged[0].count, chance=judged[0].chance))
    for problem in dict.fromkeys(meaning.problem for meaning in meanings if meaning.problem):
        print_note(problem)


def print_calibration(calibration: Calibration) -> None:
    """Print the measured words, the epsilons that were found, two tables with a line for each epsilon, and notes."""
    from wordveil.report.calibration import describe_found

    print_table(f"Calibration of {calibration.mechanism}", calibration.facts)
    for answer in calibration.found:
        print_line(describe_found(answer))
    if calibration.meanings:
        for title, columns in _split_columns(calibration.meanings):
            print_columns(title, columns)
        print_note(FIGURES_NOTE)
    for note in calibration.notes:
        print_note(note)


def _split_columns(meanings: Sequence[EpsilonMeaning]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Split the columns into tables that a narrow terminal shows unbroken."""
    from wordveil.report.calibration import list_columns, list_statistics

    columns = {
        name: [text.replace("at least ", "\N{GREATER-THAN OR EQUAL TO}") for text in texts]
        for name, texts in list_columns(meanings).items()
    }
    epsilon = {"epsilon": columns["epsilon"]}
    kept = {name: columns.pop(name) for name in ("in its cluster", "kept") if name in columns}
    yield "What epsilon costs, and what an attacker recovers", columns
    statistics = kept | {name.partition(",")[0]: texts for name, texts in list_statistics(meanings).items()}
    names = list(statistics)
    for start in range(0, len(names), _COLUMNS):
        shown = {name: statistics[name] for name in names[start : start + _COLUMNS]}
        yield "What becomes of words: average / worst", {**epsilon, **shown}


def print_columns(title: str, columns: Mapping[str, Sequence[str]]) -> None:
    """Print texts by heading. Each word of a heading has its own line, which keeps columns narrow."""
    headings = [heading.replace(",", "").split(" ") for heading in columns]
    print_grid(title, zip(*columns.values(), strict=True), (), headings)
