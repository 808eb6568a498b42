"""The comparison of the field: its plan, its means and gains, and its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from data_sets import DATA, needs_data
from wordveil.scores.score import Group, Score
from wordveil_research.field.experiment import Field
from wordveil_research.field.lines import list_lines
from wordveil_research.field.parts import FILES, AuthorPart, TaskPart, load_authors, load_task
from wordveil_research.field.rows import AS_IT_IS, Block, find_row, list_blocks, list_rows
from wordveil_research.field.summary import GAIN, add_gains, average_seeds, find_relative_gain, name_small_parts
from wordveil_research.runner.base import Surroundings

BLOCK = Block("loss", 8.0)


def around(**changes) -> Surroundings:
    return replace(Surroundings(Path("/nowhere"), Path("/nowhere")), **changes)


def score(subject: str, value: float | None, **changes) -> Score:
    made = Score(subject, Group.UTILITY, "sst2", "linear-words", "", "accuracy", value, None, None, 0.5, 100, "d", True)
    return replace(made, **changes)


def attack(subject: str, value: float, variant: str = "adaptive", task: str = "c50") -> Score:
    return score(subject, value, group=Group.ATTACK, task=task, method="svm-words", variant=variant, chance=0.02)


def worst(subject: str, value: float | None, note: str = "") -> Score:
    return score(subject, value, group=Group.PRIVACY, task="token", method="mechanism", figure="worst-loss", note=note)


def test_cells_unique_names_each_row_in_each_block():
    cells = Field().plan(around())
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names)
    matched = [row for row in list_rows() if row.is_matched]
    places = len(matched) * len(list_blocks(is_quick=False)) + len(list_rows()) - len(matched)
    assert sum(cell.settings["kind"] == "build" for cell in cells) == places
    # Originals and what draws nothing are measured once, all else under five seeds.
    once = [cell for cell in cells if cell.settings["row"].startswith(("original", "presidio"))]
    assert sum(cell.settings["kind"] == "texts" for cell in once) == 3
    seeds = {cell.settings["seed"] for cell in cells if cell.settings["row"] == "laplace"}
    assert seeds == set(range(5))


def test_cells_are_other_ones_where_their_parts_are():
    wholly, quickly = Field().plan(around()), Field().plan(around(is_quick=True, seeds=1))
    assert len(quickly) < len(wholly)
    names = {cell.name: cell.settings for cell in wholly}
    shared = [cell for cell in quickly if cell.settings["kind"] == "texts" and cell.name in names]
    assert shared
    assert all(names[cell.name] != cell.settings for cell in shared)


def test_rows_are_found_by_their_labels():
    assert [find_row(row.label) for row in list_rows()] == [*list_rows()]


def test_means_have_t_intervals_over_seeds():
    values = [0.5, 0.6, 0.64]
    found = average_seeds([score("a", value, low=0.1, high=0.9) for value in values])
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert [one.value for one in found] == pytest.approx([np.mean(values)])
    assert (found[0].low, found[0].high) == pytest.approx((low, high))
    assert average_seeds([score("a", 0.5, low=0.1, high=0.9)])[0].low == 0.1
    assert average_seeds([score("a", None)])[0].value is None


def test_gain_task_share_over_attack_share():
    subject = find_row("SynTF").subject(BLOCK)
    scores = [score("original", 0.8), attack("original", 0.6), score(subject, 0.6), attack(subject, 0.3)]
    gains = {one.subject: one.value for one in add_gains(scores) if one.figure == GAIN}
    assert gains == pytest.approx({"original": 0.0, subject: 0.6 / 0.8 - 0.3 / 0.6})


def test_gain_small_parts_over_original_on_small_parts():
    subject = find_row("laplace").subject(BLOCK)
    note = {"note": "on small parts of the corpora"}
    scores = [
        *(score("original", 0.8), attack("original", 0.6)),
        *(replace(score("original, small parts", 0.6), **note), replace(attack("original, small parts", 0.5), **note)),
        *(replace(score(subject, 0.6), **note), replace(attack(subject, 0.25), **note)),
    ]
    gains = {one.subject: one.value for one in add_gains(scores) if one.figure == GAIN}
    assert gains[subject] == pytest.approx(1 - 0.5)


def test_names_say_what_is_on_small_parts_and_the_tables_find_it():
    small, large = find_row("laplace").subject(BLOCK), find_row("SynTF").subject(BLOCK)
    scores = [
        score("original, small parts", 0.9, note="on small parts of the corpora"),
        *(score(small, 0.99, note="on small parts of the corpora"), worst(small, 8.0), score(large, 0.6)),
    ]
    named = name_small_parts(scores)
    assert [one.subject for one in named] == ["original, small parts", *[f"{small}, small parts"] * 2, large]
    assert name_small_parts(named) == named
    for found in (scores, named):
        assert [line.label for line in list_lines(found, BLOCK)] == ["laplace", "SynTF"]
        assert [line.label for line in list_lines(found, None)] == ["original, small parts"]


@pytest.fixture
def files(tmp_path) -> Path:
    rows = [
        f'{{"id": "{number}", "text": "one  two three four {number}", "label": "{number % 2}", '
        f'"author": "a{number % 4}", "split": "{"train" if number < 30 else "test"}"}}'
        for number in range(40)
    ]
    (tmp_path / "made.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_parts_are_cut_to_size_and_the_same_every_time(files):
    part = TaskPart("made.jsonl", 12, 5, 3)
    found = load_task(part, files)
    assert (len(found.train), len(found.test)) == (12, 5)
    assert set(found.train.texts) == {"one two three"}
    whole = load_task(replace(part, words=9), files)
    assert len(set(whole.train.texts)) == 12
    load_task.cache_clear()
    assert load_task(replace(part, words=9), files).train.texts == whole.train.texts


@pytest.mark.parametrize("splits", [("train", "test"), ("", "")])
def test_no_snippet_is_among_the_known_texts(files, splits):
    found = load_authors(AuthorPart("made.jsonl", 3, 4, 2, 9, *splits), files)
    assert found.known.names == found.snippets.names == ("a0", "a1", "a2")
    assert np.bincount(found.known.labels).tolist() == [4, 4, 4]
    assert np.bincount(found.snippets.labels).tolist() == [2, 2, 2]
    assert not set(found.known.texts) & set(found.snippets.texts)


@needs_data(*FILES)
def test_a_row_is_measured_on_real_texts(tmp_path):
    experiment, where = Field(), around(data=DATA, work=tmp_path, is_quick=True, seeds=1)
    names = {"original": AS_IT_IS, "tree 80, representative": list_blocks(is_quick=True)[0]}
    results = {
        cell.name: experiment.measure(cell, where)
        for cell in experiment.plan(where)
        if names.get(cell.settings["row"]) == Block(**cell.settings["block"])
    }
    evaluation = experiment.report(where, results)
    found = {(one.subject, one.figure, one.task, one.variant): one.value for one in evaluation.scores}
    subject = "loss 8: tree 80, representative"
    assert found[subject, "worst-loss", "token", ""] == pytest.approx(8.0, rel=0.01)
    assert found[subject, "accuracy", "c50", "adaptive"] <= found["original", "accuracy", "c50", "adaptive"]
    assert 0 < found[subject, "recovered", "public", ""] < found["original", "recovered", "public", ""]
    assert AS_IT_IS.name == ""


def test_relative_gain():
    assert find_relative_gain(0.6, 0.8, 0.3, 0.6) == pytest.approx(0.25)
    assert find_relative_gain(0.8, 0.8, 0.6, 0.6) == 0
    with pytest.raises(ValueError, match="original_attack=0"):
        find_relative_gain(0.5, 0.5, 0.5, 0.0)
