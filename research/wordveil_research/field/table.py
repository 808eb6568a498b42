"""The tables of research/docs/field.md, from what ``python -m wordveil_research field --out DIR`` has written.

    python -m wordveil_research.field.table DIR

Prints the tables and writes research/results/field.json: the facts, what each figure means, and for each row each
figure with the ends of its interval, to four digits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wordveil.evaluation.accuracy import STATIC
from wordveil.report.files import read_evaluation
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score
from wordveil_research.field.lines import Line, list_lines
from wordveil_research.field.privacy import EPSILON, KNOWN, NEAREST_LOSS, RECOVERED
from wordveil_research.field.rows import Block, list_blocks
from wordveil_research.field.summary import is_attack

TASKS = ("sst2", "trec6", "news20", "imdb")
CORPORA = ("c50", "enron", "pan11")
RESULTS = Path(__file__).parents[2] / "results" / "field.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="that the experiment wrote")
    evaluation = read_evaluation(parser.parse_args().directory)
    RESULTS.write_text(json.dumps(shorten(evaluation), indent=1) + "\n", "utf-8")
    scores = evaluation.scores
    blocks = list_blocks(is_quick=False)
    for kind in ("loss", "recovery"):
        print_overview(scores, [block for block in blocks if block.kind == kind])
    for block in (None, *blocks):
        print_block(scores, block)


def shorten(evaluation: Evaluation) -> dict[str, Any]:
    """Return each definition once, and figures alone."""
    rows: dict[str, dict[str, list[Any]]] = {}
    for score in evaluation.scores:
        ends = (score.value, score.low, score.high)
        rows.setdefault(score.subject, {})[name_figure(score)] = [shorten_number(end) for end in ends]
    return {
        "title": evaluation.title,
        "facts": evaluation.facts,
        "definitions": {name_figure(score): score.definition for score in evaluation.scores},
        "rows": rows,
    }


def name_figure(score: Score) -> str:
    """Name the parts of the score's key that are not empty."""
    return " ".join(part for part in score.key if part)


def shorten_number(value: float | None) -> float | str | None:
    """Four digits; infinity as a text."""
    if value is None:
        return None
    return "Infinity" if value == float("inf") else float(f"{value:.4g}")


def print_overview(scores: Sequence[Score], blocks: Sequence[Block]) -> None:
    """Print the mean accuracy of the tasks and of the attack, a column for each block."""
    lines = {block.name: {line.label: line for line in list_lines(scores, block)} for block in blocks}
    labels = dict.fromkeys(label for found in lines.values() for label in found)
    print_rows(
        ["row", *lines],
        [[name_row(label, lines), *(show_both(found.get(label)) for found in lines.values())] for label in labels],
    )


def name_row(label: str, lines: dict[str, dict[str, Line]]) -> str:
    """Name the row's label, with a star where it stands on small parts."""
    is_small = any(label in found and found[label].is_small for found in lines.values())
    return f"{label} *" if is_small else label


def show_both(line: Line | None) -> str:
    """Show the tasks and the attack."""
    if line is None or line.utility is None or line.attack is None:
        return "-"
    return f".{round(line.utility * 1000):03d} / .{round(line.attack * 1000):03d}"


def print_block(scores: Sequence[Score], block: Block | None) -> None:
    """Print all figures of a block but those of cost and of static attackers."""
    print(f"\n{'as they are' if block is None else block.name}\n")
    heads = ["row", "epsilon", "loss", "nearest", "uniform", "public", "context"]
    heads += [*TASKS, *CORPORA, "gain", "perplexity", "tokens/s"]
    rows = []
    for line in list_lines(scores, block):
        privacy = [show(line.find(name, "token"), 3) for name in (EPSILON, KNOWN, NEAREST_LOSS)]
        recovered = [show(line.find(RECOVERED, prior), 3) for prior in ("uniform", "public")]
        tasks = [show_interval(line.find("accuracy", task)) for task in TASKS]
        attacks = [show_attack(line, corpus) for corpus in CORPORA]
        rest = [show(line.find("gain-by-context"), 2), *tasks, *attacks]
        gain = "-" if line.gain is None else f"{line.gain:+.2f}"
        rest += [gain, show(line.find("perplexity"), 4), show(line.find("tokens-a-second"), 2)]
        rows.append([f"{line.label} *" if line.is_small else line.label, *privacy, *recovered, *rest])
    print_rows(heads, rows)


def show(score: Score | None, digits: int) -> str:
    return "-" if score is None or score.value is None else f"{score.value:.{digits}g}"


def show_interval(score: Score | None) -> str:
    """Three digits, and half the width of the interval."""
    if score is None or score.value is None:
        return "-"
    half = "" if score.low is None or score.high is None else f" ±{(score.high - score.low) / 2:.3f}"
    return f"{score.value:.3f}{half}"


def show_attack(line: Line, corpus: str) -> str:
    """Show the strongest static attacker and the strongest adaptive one."""
    of_corpus = [score for score in line.scores if score.task == corpus]
    static = find_largest(score for score in of_corpus if is_attack(score, STATIC))
    adaptive = find_largest(score for score in of_corpus if is_attack(score))
    return f"{show_interval(static).split(' ')[0]}; {show_interval(adaptive)}"


def find_largest(scores: Iterable[Score]) -> Score | None:
    return max((score for score in scores if score.value is not None), key=lambda one: one.value or 0.0, default=None)


def print_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(heads)} |")
    print(f"| --- |{' ---: |' * (len(heads) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
