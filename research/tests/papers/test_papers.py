"""The papers' experiments on small made corpora, whose authors and topics have words of their own."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from data_sets import DATA, needs_data
from wordveil.embeddings.embedding import load
from wordveil.errors import PlatformError
from wordveil.report.page import render_evaluation
from wordveil.scores.score import Group, Score
from wordveil_research.papers.eraee import ERAETable1
from wordveil_research.papers.eraee_tables import ERAETables
from wordveil_research.papers.f19 import F19Table1
from wordveil_research.papers.fdd import CHOICES, TASKS, FDDTable3, FDDTable6
from wordveil_research.papers.fdd_deniability import FDDTable4
from wordveil_research.papers.repeats import find_score
from wordveil_research.papers.samples import NOVELS
from wordveil_research.papers.tables import best_utility, relative_gain, row_of, share, strongest_attack
from wordveil_research.runner.base import Cell, Experiment, Surroundings
from wordveil_research.runner.registry import EXPERIMENTS, find_experiment

TRAINED = [ERAETable1, ERAETables] if find_spec("jax") else [ERAETable1]
CORPORA = ("c50_reuters", "news20_bydate", "pan11_small", "enron_jstylo50", "aclImdb", *TASKS)
PAPERS = [F19Table1, FDDTable3, FDDTable4, FDDTable6, *TRAINED]
# Both embeddings have them, and the first ones of `demo` are those of quick generators.
_KNOWN = set(load("demo-poincare").words.to_pylist())
WORDS = [word for word in load("demo").words.to_pylist()[:500] if word in _KNOWN]
OWN = 12
_PAIR_ROWS = ("original", "random, draw 1")


def write_rows(path: Path, column: str, labels: int, splits: tuple[str, ...], length: int, count: int) -> None:
    """Write texts of random words of their label; ``count`` for each label and part."""
    rng = np.random.default_rng(len(path.name))
    with lzma.open(path, "wt", encoding="utf-8", preset=0) as file:
        for split in splits:
            for number in range(labels * count):
                label = number % labels
                words = rng.integers(label * OWN, (label + 1) * OWN, length).tolist()
                row = {column: f"label {label:02d}", "split": split, "text": " ".join(WORDS[at] for at in words)}
                file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    write_rows(data / "c50_reuters.jsonl.xz", "author", 12, ("train", "test"), 120, 3)
    write_rows(data / "news20_bydate.jsonl.xz", "label", 6, ("train", "test"), 50, 5)
    write_rows(data / "pan11_small.jsonl.xz", "author", 5, ("train", "test+", "valid+"), 40, 5)
    write_rows(data / "enron_jstylo50.jsonl.xz", "author", 5, ("-",), 40, 6)
    write_rows(data / "aclImdb.jsonl.xz", "label", 2, ("train", "test"), 60, 20)
    for task in TASKS:
        write_rows(data / f"{task}.jsonl.xz", "label", 2, ("train", "test"), 10, 20)
    with tarfile.open(data / NOVELS, "w:xz") as archive:
        for author in range(3):
            for year in range(3):
                words = WORDS[author * OWN : (author + 1) * OWN]
                text = " ".join(f"{' '.join(words[:5])}. {' '.join(words[5:])}." for _ in range(40)).encode()
                entry = tarfile.TarInfo(f"corpus/Author{author}_T{year}_190{year}.txt")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))
    return Surroundings(data, tmp_path_factory.mktemp("work"), seeds=1, is_quick=True)


def measure(experiment: Experiment, around: Surroundings, *names: str) -> dict[str, list[Score]]:
    cells = {cell.name: cell for cell in experiment.plan(around)}
    return {name: list(experiment.measure(cells[name], around)) for name in names}


@pytest.mark.parametrize("kind", PAPERS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("is_quick", [True, False])
def test_cells_are_unique_and_plain(kind, is_quick, around):
    places = replace(around, seeds=3, is_quick=is_quick)
    cells = kind().plan(places)
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        assert json.loads(json.dumps(dict(cell.settings))) == dict(cell.settings)
    assert isinstance(find_experiment(kind.name), kind)
    assert kind.name in EXPERIMENTS


@pytest.mark.parametrize("kind", [F19Table1, FDDTable3, FDDTable6, ERAETable1], ids=lambda kind: kind.name)
def test_random_rows_first_draws_first_quick_cells_others(kind, around):
    cells = kind().plan(replace(around, seeds=3, is_quick=False))
    by_part: dict[str, list[Cell]] = {}
    for cell in [cell for cell in cells if "draw" in cell.settings]:
        by_part.setdefault(cell.settings["part"], []).append(cell)
    for part in by_part.values():
        draws = [cell.settings["draw"] for cell in part]
        assert draws == sorted(draws)
        assert all(row_of(cell).draws for cell in part if cell.settings["draw"])
        assert draws.count(1) == draws.count(2) == sum(row_of(cell).draws for cell in part) // 3
    quick = [dict(cell.settings) for cell in kind().plan(around)]
    assert all(dict(cell.settings) not in quick for cell in cells)


def test_f19_without_noise_separates_authors_and_topics(around):
    experiment = F19Table1()
    noisy = ("authors, epsilon 10, draw 1", "topics, epsilon 10, draw 1")
    results = measure(experiment, around, "authors, no noise", "topics, no noise", *noisy)
    evaluation = experiment.report(around, results)
    clean = strongest_attack(evaluation.scores, "no noise", "10 authors")
    after = strongest_attack(evaluation.scores, "epsilon 10", "10 authors")
    assert clean.value == 1.0
    assert after.value < clean.value
    assert (clean.chance, clean.count) == (0.1, 20)
    assert strongest_attack(evaluation.scores, "epsilon 10", "5 authors").count == 10
    assert best_utility(evaluation.scores, "no noise", "20 topics").value == 1.0
    kinds = {score.method for score in evaluation.scores}
    assert {"nearest-author", "koppel", "fasttext", "neighbours-mean"} <= kinds
    assert any(note.startswith("epsilon 10: of 10 authors") for note in evaluation.notes)
    assert "Authors and topics" in render_evaluation(evaluation)
    assert not evaluation.is_private


def test_table_3_authors_found_in_originals_alone(around):
    experiment = FDDTable3()
    names = ("pan11, original", "pan11, random, draw 1", "pan11, epsilon 0.5, 10-D, draw 1", "novels, no noise")
    evaluation = experiment.report(around, measure(experiment, around, *names))
    assert strongest_attack(evaluation.scores, "original", "pan11").value == 1.0
    assert strongest_attack(evaluation.scores, "random", "pan11").value < 0.5
    assert strongest_attack(evaluation.scores, "no noise", "novels").value == 1.0
    kept = find_score(evaluation.scores, "epsilon 0.5, 10-D", figure="nearest-loss")
    assert "true constant 10.5" in kept.note
    assert render_evaluation(evaluation)


def test_table_6_learns_from_words_and_not_from_random_ones(around):
    experiment = FDDTable6()
    evaluation = experiment.report(around, measure(experiment, around, "mr, no noise", "mr, random, draw 1"))
    assert best_utility(evaluation.scores, "no noise", "mr").value > 0.9
    assert best_utility(evaluation.scores, "random", "mr").value < 0.9
    (note,) = [note for note in evaluation.notes if note.startswith("no noise: better")]
    assert note == 'no noise: better than "random" beyond both intervals on 1 of 6 tasks: mr.'


def test_rows_with_copied_words_marked(around):
    experiment = FDDTable6()
    names = [f"mr, random, {words}, draw 1" for words in CHOICES[1:]]
    evaluation = experiment.report(around, measure(experiment, around, "mr, no noise", *names))
    for words in CHOICES[1:]:
        assert best_utility(evaluation.scores, f"random, {words}", "mr").count == 20
    assert {row_of(cell).words for cell in experiment.plan(replace(around, is_quick=False))} == {*CHOICES}
    assert any("copies stop-words" in note for note in evaluation.notes)


def test_tasks_on_pairs_are_measured_where_their_data_are_there(around, tmp_path):
    for file in around.data.iterdir():
        (tmp_path / file.name).symlink_to(file)
    words = WORDS[:40]
    for name, column in (("mrpc", "label"), ("sts14", "grade")):
        with lzma.open(tmp_path / f"{name}.jsonl.xz", "wt", encoding="utf-8", preset=0) as file:
            for number in range(160):
                same = number % 2
                second = words[number % 40] if same else words[(number + 7) % 40]
                row = {"first": words[number % 40], "second": second, "split": ("train", "test")[number // 2 % 2]}
                file.write(json.dumps({**row, column: same}) + "\n")
    experiment, places = FDDTable6(), replace(around, data=tmp_path)
    tasks = {cell.settings["part"] for cell in experiment.plan(places)}
    assert tasks - {cell.settings["part"] for cell in experiment.plan(around)} == {"mrpc", "sts14"}
    results = measure(experiment, places, *(f"{task}, {row}" for task in ("mrpc", "sts14") for row in _PAIR_ROWS))
    scores = experiment.report(places, results).scores
    (original, drawn) = (best_utility(scores, row, "mrpc").value for row in ("original", "random"))
    assert original == 1.0 > drawn + 0.2
    assert find_score(scores, "original", task="sts14", figure="pearson").value > 0.7
    assert find_score(scores, "random", task="sts14", figure="pearson").value < 0.5


def test_the_printed_noise_is_measured_both_ways(around):
    experiment = FDDTable4()
    (name,) = (cell.name for cell in experiment.plan(around) if cell.settings["part"] == "as printed")
    evaluation = experiment.report(around, measure(experiment, around, name))
    stays = [find_score(evaluation.scores, f"{how}, 2-D", figure="mean N_w").value for how in ("as printed", "Moebius")]
    assert stays[0] < 0.1 * stays[1]
    assert sum("most draws are" in note for note in evaluation.notes) == 2


def test_the_eraee_table_has_its_three_columns(around):
    experiment = ERAETable1()
    names = ("c50, original", "c50, Random-R, draw 1", "imdb, original", "imdb, Random-R, draw 1")
    evaluation = experiment.report(around, measure(experiment, around, *names))
    assert strongest_attack(evaluation.scores, "original", "c50").value == 1.0
    assert strongest_attack(evaluation.scores, "Random-R", "c50").value < 0.6
    assert strongest_attack(evaluation.scores, "original", "imdb") is None
    for part in ("c50", "imdb"):
        similar, changes = (
            {
                name: find_score(evaluation.scores, name, task=part, figure=figure).value
                for name in ("original", "Random-R")
            }
            for figure in ("cosine", "distance")
        )
        assert similar["original"] == pytest.approx(1.0)
        assert similar["Random-R"] < 0.6
        assert changes["original"] == 0 < changes["Random-R"]
        (note,) = [note for note in evaluation.notes if note.startswith(f"{part}, Random-R")]
        assert f"{changes['Random-R']:.1f}" in note


def test_table_without_jax_no_generators_but_advice(around, monkeypatch):
    monkeypatch.setattr("wordveil.generators.training.settings.find_spec", lambda name: None if name == "jax" else name)
    experiment = ERAETable1()
    assert {cell.settings["mechanism"] for cell in experiment.plan(around)} == {"", "random", "syntf"}
    notes = experiment.report(around, {}).notes
    assert any("JAX" in note and "pip install 'wordveil[er-ae]'" in note for note in notes)


def test_without_jax_the_other_tables_are_refused(around, monkeypatch):
    monkeypatch.setattr("wordveil.generators.training.settings.find_spec", lambda _: None)
    with pytest.raises(PlatformError, match=r"wordveil\[er-ae\]"):
        ERAETables().plan(around)


def test_gains_are_of_what_is_above_chance():
    def score(subject: str, group: Group, value: float, chance: float) -> Score:
        task, variant = ("authors", "adaptive") if group == Group.ATTACK else ("topics", "")
        return Score(subject, group, task, "m", variant, "accuracy", value, None, None, chance, 10, "What it is.")

    scores = [
        score("plain", Group.ATTACK, 0.82, 0.02),
        score("plain", Group.UTILITY, 0.85, 0.05),
        score("row", Group.ATTACK, 0.02, 0.02),
        score("row", Group.UTILITY, 0.05, 0.05),
    ]
    assert relative_gain(scores, "row", "authors", ["topics"], "plain") == pytest.approx(0.0)
    scores[3] = score("row", Group.UTILITY, 0.45, 0.05)
    assert relative_gain(scores, "row", "authors", ["topics"], "plain") == pytest.approx(0.5)
    assert relative_gain(scores, "nobody", "authors", ["topics"], "plain") is None
    assert share(None) == "not measured"


@needs_data(*(f"{name}.jsonl.xz" for name in CORPORA), NOVELS)
@pytest.mark.parametrize("kind", PAPERS, ids=lambda kind: kind.name)
def test_quick_runs_on_real_data(kind, tmp_path):
    experiment, places = kind(), Surroundings(DATA, tmp_path, seeds=1, is_quick=True)
    results = {cell.name: experiment.measure(cell, places) for cell in experiment.plan(places)}
    assert all(results.values())
    assert render_evaluation(experiment.report(places, results))
