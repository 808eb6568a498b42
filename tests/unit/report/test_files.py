"""Files of a report: complete or not there, private where they must be, and read back as they were."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.evaluations import make_evaluation, make_score
from wordveil.errors import InputError
from wordveil.report.files import read_evaluation, write_evaluation
from wordveil.scores import evaluation
from wordveil.scores.evaluation import replace_file, to_json


def modes(report: Path) -> list[int]:
    return [path.stat().st_mode & 0o777 for path in report.iterdir()]


def test_a_report_is_a_page_a_table_and_data_that_come_back(tmp_path):
    evaluation = make_evaluation()
    report = tmp_path / "new" / "report"
    write_evaluation(evaluation, report)
    data, page, scores = sorted(report.iterdir())
    assert [data.name, page.name, scores.name] == ["evaluation.json", "report.html", "scores.csv"]
    assert read_evaluation(data) == evaluation == read_evaluation(report)
    assert "Evaluation of support" in page.read_text("utf-8")
    with scores.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(evaluation.scores)
    assert rows[2]["value"] == "0.4"
    assert (rows[-1]["value"], rows[-1]["low"], rows[-1]["group"]) == ("Infinity", "", "privacy")


def test_private_files_are_their_owners_alone(tmp_path):
    old = os.umask(0o022)
    try:
        write_evaluation(make_evaluation(), tmp_path / "private")
        write_evaluation(make_evaluation(is_private=False), tmp_path / "shared")
        assert modes(tmp_path / "shared") == [0o644] * 3
        write_evaluation(make_evaluation(), tmp_path / "shared")
    finally:
        os.umask(old)
    # A private report that replaces a public one is private, too.
    assert modes(tmp_path / "private") == modes(tmp_path / "shared") == [0o600] * 3


def test_a_file_that_cannot_be_finished_leaves_the_earlier_one(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    replace_file(path, "earlier")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(evaluation.os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, "later")
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_numbers_of_numpy_are_written_and_nan_is_refused():
    found = json.loads(to_json({"a": np.int64(3), "b": np.float32(0.5), "c": np.bool_(False)}))
    assert found == {"a": 3, "b": 0.5, "c": False}
    with pytest.raises(ValueError, match="nan"):
        to_json({"a": float("nan")})
    with pytest.raises(TypeError, match="Expected plain values, got object"):
        to_json(object())


def test_what_has_no_bound_comes_back(tmp_path):
    scores = (make_score("a", float("inf"), low=1.0, high=float("inf")), make_score("b", None))
    evaluation = replace(make_evaluation(), scores=scores)
    write_evaluation(evaluation, tmp_path)
    assert read_evaluation(tmp_path).scores == scores


COLOURED = json.dumps({**make_evaluation().to_dict(), "scores": [{"colour": "red"}]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (COLOURED, r"is not an evaluation of this version of wordveil \("),
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("[1]", r"is not an evaluation of this version of wordveil \(AttributeError\)"),
        ('{"format_version": 99}', r"is not an evaluation of this version of wordveil \(ValueError\)"),
        ('{"format_version": 1, "title": "secret"}', r"is not an evaluation .*\(ValidationError\)"),
    ],
)
def test_a_file_that_is_no_evaluation_is_refused(tmp_path, content, message):
    path = tmp_path / "evaluation.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_evaluation(path)
    assert "secret" not in str(caught.value)
    assert str(path) in str(caught.value)
