"""What a calibration found, for people: a line for each epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wordveil.cli.output import Table, print_line, print_note, print_rows, print_table
from wordveil.measures.calibration.figures import Calibration, EpsilonMeaning
from wordveil.report.calibration import describe_found, list_columns, list_statistics

_COLUMNS = 4
FIGURES_NOTE = (
    "average / worst: of the word that is protected worst. Recovered: by the best guesser, of running text and where "
    "all words are alike; leakage: how many times as many as without looking. All figures are of public words: "
    "`wordveil docs calibration` explains each."
)


def print_calibration(calibration: Calibration) -> None:
    """Print what was measured on, the epsilons that were found, two tables with a line for each epsilon, and notes."""
    print_table(f"Calibration of {calibration.mechanism}", calibration.facts)
    for found in calibration.found:
        print_line(describe_found(found))
    if calibration.meanings:
        for title, columns in _split_columns(calibration.meanings):
            print_rows(make_table(title, columns))
        print_note(FIGURES_NOTE)
    for note in calibration.notes:
        print_note(note)


def _split_columns(meanings: Sequence[EpsilonMeaning]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Tables that a narrow terminal shows unbroken."""
    columns = {name: _shorten(texts) for name, texts in list_columns(meanings).items()}
    epsilon, kept = {"epsilon": columns["epsilon"]}, {"kept": columns.pop("kept")}
    yield "What epsilon costs, and what an attacker recovers", columns
    statistics = {**kept, **{name.partition(",")[0]: texts for name, texts in list_statistics(meanings).items()}}
    names = list(statistics)
    for start in range(0, len(names), _COLUMNS):
        shown = {name: statistics[name] for name in names[start : start + _COLUMNS]}
        yield "What becomes of words: average / worst", {**epsilon, **shown}


def _shorten(texts: Sequence[str]) -> list[str]:
    return [text.replace("at least ", "\N{GREATER-THAN OR EQUAL TO}") for text in texts]


def make_table(title: str, columns: Mapping[str, Sequence[str]]) -> Table:
    """A table of texts by heading. Each word of a heading has a line of its own, so that columns are narrow."""
    table = Table(title)
    for heading in columns:
        table.add_column(heading.replace(",", "").split(" "), justify="right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table
