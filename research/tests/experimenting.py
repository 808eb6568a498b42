"""A small experiment: it counts words of a file, in cells that can fail, die or wait. Processes import it by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wordveil.errors import EmbeddingError
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Group, Score
from wordveil_research.runner.base import Cell, Experiment, Surroundings

SECRET = "the secret of a record"


class WordCounts(Experiment):
    """Cells are those of the file ``cells.txt`` of the working directory: a name and what to do in each line."""

    name = "word-counts"
    title = "Words counted"
    files = ("words.txt",)

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        lines = (around.work / "cells.txt").read_text().splitlines()
        return [Cell(line.split()[0], {"word": line.split()[1], "todo": line.split()[2]}) for line in lines]

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        with (around.work / "measured.txt").open("a") as stream:
            stream.write(f"{cell.name} {os.getpid()} {os.environ['OMP_NUM_THREADS']}\n")
        words = (around.data / "words.txt").read_text().split()
        getattr(self, f"do_{cell.settings['todo']}")(around.work)
        print("a library prints this")
        count = words.count(cell.settings["word"])
        return [count_score(cell.name, count / len(words), len(words))]

    def do_count(self, work: Path) -> None:
        """Nothing besides."""

    def do_refuse(self, work: Path) -> None:
        raise EmbeddingError("embedding.path = x: there is no such file.")

    def do_fail(self, work: Path) -> None:
        raise RuntimeError(SECRET)

    def do_die(self, work: Path) -> None:
        start_child(work)
        os.kill(os.getpid(), signal.SIGKILL)

    def do_wait(self, work: Path) -> None:
        """Wait for a file, with a process of its own that waits much longer."""
        child = start_child(work)
        while not (work / "go").exists():
            time.sleep(0.02)
        child.kill()
        child.wait()

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        if "needed" not in results:
            raise KeyError("needed")
        scores = tuple(score for part in results.values() for score in part)
        return Evaluation(self.title, {"data": "words.txt"}, scores, is_private=False)


class LaterWordCounts(WordCounts):
    """The same after a change of what it measures."""

    version = 2


def start_child(work: Path) -> subprocess.Popen[bytes]:
    """Return a process that does nothing for ten minutes. Its id is in ``child.txt``."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (work / "child.txt").write_text(str(child.pid))
    return child


def count_score(subject: str, value: float, count: int, **given: Any) -> Score:
    """Count a score of a made figure."""
    fields = {
        "subject": subject,
        "group": Group.TEXT,
        "task": "words",
        "method": "counting",
        "variant": "",
        "figure": "share",
        "value": value,
        "low": None,
        "high": None,
        "chance": None,
        "count": count,
        "definition": "The share of words that are this word.",
    }
    return Score(**{**fields, **given})


def main() -> None:
    """Measure the cells of a directory: for a test that kills this process."""
    from wordveil_research.runner.run import measure_cells

    place = Path(sys.argv[1])
    measure_cells(WordCounts(), Surroundings(place / "data", place / "out" / "work"), place / "out", 1)


if __name__ == "__main__":
    main()
