"""Files of a report: a page for people, all figures as JSON, and the scores as a table."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields
from pathlib import Path

from wordveil.errors import InputError
from wordveil.report.page import describe_evaluation, render_evaluation
from wordveil.report.values import show_cell
from wordveil.scores.evaluation import Evaluation, replace_file, to_json
from wordveil.scores.score import ABOVE_CHANCE, Score

PAGE, DATA, SCORES = "report.html", "evaluation.json", "scores.csv"
_PRIVATE, _SHARED = 0o600, 0o644


def write_evaluation(evaluation: Evaluation, directory: Path) -> None:
    """Write the page, the CSV and the JSON into a directory, replacing an earlier report.

    The directory is made if missing. Each file is complete whenever it is visible, and the JSON comes last. Only their
    owner can read the files of a private evaluation. Raises :class:`OSError` if they cannot be written.
    """
    contents = {
        PAGE: render_evaluation(evaluation),
        SCORES: write_scores(evaluation),
        DATA: to_json(describe_evaluation(evaluation)),
    }
    mode = _PRIVATE if evaluation.is_private else _SHARED
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        replace_file(directory / name, content, mode)


def write_scores(evaluation: Evaluation) -> str:
    """Write the scores as CSV, a column for each field: empty if unmeasured, ``Infinity`` if unbounded."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*(field.name for field in fields(Score)), ABOVE_CHANCE])
    writer.writeheader()
    rows = (score.to_dict() for score in evaluation.scores)
    writer.writerows({name: show_cell(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def read_evaluation(path: Path) -> Evaluation:
    """Read the evaluation of a file or of its report's directory; an :class:`InputError` quotes nothing of it."""
    file = path / DATA if path.is_dir() else path
    try:
        values = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}. Name the {DATA} of an evaluation.") from None
    except ValueError:
        raise InputError(f"{file}: is not JSON. Name the {DATA} of an evaluation.") from None
    try:
        return Evaluation.from_dict(values)
    except (ValueError, AttributeError) as error:
        kind = type(error).__name__
        raise InputError(
            f"{file}: is not an evaluation of this version of wordveil ({kind}). Name the {DATA} of one, or evaluate "
            "again."
        ) from None
