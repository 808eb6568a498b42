"""The protocol of an experiment: independent cells, each measured once and kept, and a report of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from wordveil.embeddings.embedding import DEMO
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score


@dataclass(frozen=True)
class Cell:
    """One unit of work, which is measured in one process and kept when it is done.

    Attributes
    ----------
    name
        what the progress bar shows; unique in its experiment.
    settings
        plain values that decide the result. A cell is measured again where they have changed.
    """

    name: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Surroundings:
    """Where an experiment runs.

    Attributes
    ----------
    data
        the directory of the data sets.
    work
        a directory for what cells share, such as bundles and other packages' environments. It is kept.
    seeds
        how many times whatever is random is repeated.
    is_quick
        whether a small part of the data will do, to see that it runs. The report says so.
    embedding
        the public embedding of an experiment that takes one (:attr:`Experiment.embedding`).
    """

    data: Path
    work: Path
    seeds: int = 5
    is_quick: bool = False
    embedding: str = DEMO


class Experiment(ABC):
    """An experiment. A new one is a file, and a line in :mod:`wordveil_research.runner.registry`."""

    name: ClassVar[str]
    """As the command line has it."""
    title: ClassVar[str]
    """Title of its report."""
    version: ClassVar[int] = 1
    """Raised when the same cell would measure something else: kept cells of other versions are measured again."""
    files: ClassVar[tuple[str, ...]] = ()
    """The files of the data directory that it needs."""
    more_files: ClassVar[tuple[str, ...]] = ()
    """Those that it reads where they are there."""
    embedding: ClassVar[str] = ""
    """The embedding that a run may replace by another; empty where its rows say which they have."""

    @abstractmethod
    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan the cells, in the order to measure them. Those whose names are equal are one."""

    @abstractmethod
    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        """Measure one cell, in a process of its own that may be killed at any moment. What it leaves in
        ``around.work`` must then be usable or be made again.
        """

    @abstractmethod
    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        """Write the report of all cells; ``results``: the scores of each cell by its name."""
