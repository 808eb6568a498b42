"""Experiments go on where they were, measure again what has changed, and a cell that fails fails alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import experimenting
from experimenting import SECRET, LaterWordCounts, WordCounts
from wordveil.errors import ConfigError, InputError
from wordveil.scores.evaluation import Evaluation
from wordveil_research.runner.base import Cell, Experiment, Surroundings
from wordveil_research.runner.kept import KeptCells
from wordveil_research.runner.registry import EXPERIMENTS, find_experiment
from wordveil_research.runner.run import QUICK, Progress, measure_cells, report_cells, run_experiment
from wordveil_research.runner.workers import describe_failure, do_all


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("a a b c")
    (tmp_path / "out" / "work").mkdir(parents=True)
    return tmp_path


def around(place: Path, **given: bool) -> Surroundings:
    return Surroundings(place / "data", place / "out" / "work", **given)


def set_cells(place: Path, *lines: str) -> None:
    (place / "out" / "work" / "cells.txt").write_text("\n".join(lines))


def run(place: Path, experiment: Experiment | None = None, processes: int = 1, **given: bool) -> Evaluation:
    return run_experiment(experiment or WordCounts(), around(place, **given), place / "out", processes)


def measured(place: Path) -> list[str]:
    """Return the names of cells in the order in which they were measured, since the last call."""
    path = place / "out" / "work" / "measured.txt"
    names = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "nothing happened for 20 seconds"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not asked for its code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_cells_are_measured_once_and_reported_in_their_order(place, capfd):
    set_cells(place, "needed a count", "second b count", "needed a count")
    seen: list[Progress] = []
    evaluation = run_experiment(WordCounts(), around(place), place / "out", 2, seen.append)
    assert [(score.subject, score.value) for score in evaluation.scores] == [("needed", 0.5), ("second", 0.25)]
    assert [(one.done, one.total) for one in seen] == [(0, 2), (1, 2), (2, 2)]
    assert seen[0].seconds_left is None
    assert seen[1].seconds_left is not None and seen[1].seconds_left > 0
    assert seen[2].seconds_left == 0
    assert sorted(measured(place)) == ["needed", "second"]
    assert run(place) == evaluation
    assert measured(place) == []
    # What a library prints does not mix with results.
    assert "a library prints this" not in capfd.readouterr().out


def test_a_process_measures_many_cells(place):
    set_cells(place, *(f"needed{number} a count" for number in range(3)))
    measure_cells(WordCounts(), around(place), place / "out", 1)
    lines = [line.split() for line in (place / "out" / "work" / "measured.txt").read_text().splitlines()]
    assert len({pid for _, pid, _ in lines}) == 1
    assert os.getpid() not in {int(pid) for _, pid, _ in lines}


def test_what_decides_a_result_is_measured_again_when_it_changes(place):
    set_cells(place, "needed a count", "other b count")
    run(place)
    assert measured(place) == ["needed", "other"]
    set_cells(place, "needed c count", "other b count")
    assert [score.value for score in run(place).scores] == [0.25, 0.25]
    assert measured(place) == ["needed"]
    run(place, LaterWordCounts())
    assert measured(place) == ["needed", "other"]
    assert run(place, is_quick=True).notes == (QUICK,)
    assert measured(place) == ["needed", "other"]
    (place / "data" / "words.txt").write_text("a b c c")
    assert [score.value for score in run(place).scores] == [0.5, 0.25]
    assert measured(place) == ["needed", "other"]
    (place / "data" / "words.txt").write_text("a a b c")
    run(place)
    assert measured(place) == []


def test_a_damaged_result_is_measured_again(place):
    set_cells(place, "needed a count")
    run(place)
    (kept,) = (place / "out" / "cells").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text(kept.read_text()[:-20])
    assert [score.value for score in run(place).scores] == [0.5]
    assert measured(place) == ["needed", "needed"]


def test_a_cell_fails_alone_and_is_tried_again(place):
    set_cells(place, "one a fail", "two a die", "three a refuse", "needed a count", "four b count")
    found = measure_cells(WordCounts(), around(place), place / "out", 2)
    assert list(found.results) == ["needed", "four"]
    child = int((place / "out" / "work" / "child.txt").read_text())
    wait_for(lambda: not is_running(child))
    problems = {failure.cell: failure.problem for failure in found.failures}
    assert problems["two"].startswith("its process was ended by SIGKILL")
    assert problems["three"] == "embedding.path = x: there is no such file."
    assert problems["one"].startswith("RuntimeError in do_fail (experimenting.py, line ")
    notes = report_cells(WordCounts(), around(place), found).notes
    assert sorted(notes) == sorted(f"Not measured: {cell}: {problem}" for cell, problem in problems.items())
    assert SECRET not in repr(found)
    assert measured(place)
    again = measure_cells(WordCounts(), around(place), place / "out", 1)
    assert again.kept == 2
    assert measured(place) == ["one", "two", "three"]


def test_a_report_that_needs_a_failed_cell_is_a_plain_one(place):
    set_cells(place, "needed a fail", "other b count")
    evaluation = run(place)
    assert [score.subject for score in evaluation.scores] == ["other"]
    assert evaluation.is_private
    assert evaluation.notes[0].startswith("Not measured: needed: RuntimeError")
    set_cells(place, "other b count")
    with pytest.raises(KeyError):  # nothing failed: this report is a fault
        run(place)


def test_a_killed_run_goes_on(place):
    set_cells(place, "needed a count", "slow b wait", "last c count")
    work = place / "out" / "work"
    path = os.pathsep.join([str(Path(experimenting.__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "3"}
    process = subprocess.Popen([sys.executable, experimenting.__file__, str(place)], env=environment)
    try:
        wait_for((work / "child.txt").exists)
        wait_for(lambda: (work / "child.txt").read_text() != "")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    *_, worker, threads = (work / "measured.txt").read_text().split()
    child = int((work / "child.txt").read_text())
    assert threads == "1"
    # What it had started ends with it, and does not go on beside the next run.
    wait_for(lambda: not is_running(int(worker)) and not is_running(child))
    assert measured(place) == ["needed", "slow"]
    (work / "go").touch()
    assert [score.value for score in run(place).scores] == [0.5, 0.25, 0.25]
    assert measured(place) == ["slow", "last"]


def test_leaving_early_ends_what_is_under_way(place):
    set_cells(place, "needed a count", "slow b wait")
    child = place / "out" / "work" / "child.txt"

    def stop(progress: Progress) -> None:
        if progress.done == 1:
            wait_for(lambda: child.exists() and child.read_text() != "")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(WordCounts(), around(place), place / "out", 2, stop)
    wait_for(lambda: not is_running(int(child.read_text())))


def test_missing_data_are_all_named_before_anything_is_measured(place):
    set_cells(place, "needed a count")

    class Hungry(WordCounts):
        files = ("words.txt", "more.txt", "most.txt")

    with pytest.raises(InputError, match=r"word-counts needs more\.txt, most\.txt, which are missing.*--data"):
        run(place, Hungry())
    assert measured(place) == []


def test_cells_of_one_name_have_the_same_settings(place):
    set_cells(place, "needed a count", "needed b count")
    with pytest.raises(ValueError, match="needed: two cells of word-counts"):
        run(place)


def test_settings_are_plain_values(place):
    kept = KeptCells.open(place / "out" / "cells", WordCounts(), around(place))
    with pytest.raises(TypeError, match="plain values in the settings of a cell, got PosixPath"):
        kept.save(Cell("odd", {"path": place}), [])


def test_at_least_one_process_works():
    with pytest.raises(ValueError, match="processes = 0"):
        list(do_all(print, ["a"], 0))


def test_a_failure_without_a_place_has_its_kind():
    assert describe_failure(ValueError(SECRET)) == "ValueError"


def test_an_experiment_is_found_by_its_name(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "word-counts", "experimenting")
    assert type(find_experiment("word-counts")) is WordCounts
    with pytest.raises(ConfigError, match=r"NAME = none: no experiment has this name\. There are: f19-table1"):
        find_experiment("none")
