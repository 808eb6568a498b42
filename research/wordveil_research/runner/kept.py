"""Results of cells that are kept, so that an interrupted experiment goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from pydantic import TypeAdapter

from wordveil.errors import InputError
from wordveil.scores.evaluation import replace_file, to_json
from wordveil.scores.score import Score
from wordveil_research.runner.base import Cell, Experiment, Surroundings


@dataclass(frozen=True)
class KeptCells:
    """The results of one experiment in a directory.

    A result is found by the digest of whatever decides it: the experiment's name and version, the cell's name and
    settings, whether the run is quick, and the contents of the data files and of an embedding's file. A result that is
    found by another digest is not used, and stays.

    Attributes
    ----------
    directory
        where the files are, one a cell.
    experiment
        the one that the cells are of.
    is_quick
        as in :class:`wordveil_research.runner.base.Surroundings`.
    data
        the SHA-256 of each file that the experiment reads.
    """

    directory: Path
    experiment: Experiment
    is_quick: bool
    data: Mapping[str, str]

    @classmethod
    def open(cls, directory: Path, experiment: Experiment, around: Surroundings) -> KeptCells:
        """Make the directory where it is missing, and read the data files once.

        Raises
        ------
        InputError
            that names all data files that are missing.
        """
        require_data(experiment, around.data)
        directory.mkdir(parents=True, exist_ok=True)
        names = (*experiment.files, *experiment.more_files)
        data = {name: _digest(path) for name in names if (path := around.data / name).is_file()}
        if experiment.embedding and (vectors := Path(around.embedding)).is_file():
            data["embedding"] = _digest(vectors)
        return cls(directory, experiment, around.is_quick, data)

    def load(self, cell: Cell) -> tuple[Score, ...] | None:
        """Load the scores of a cell; None where it is to be measured, as after a damaged file."""
        try:
            values = json.loads(self._path(cell).read_text("utf-8"))
            return TypeAdapter(tuple[Score, ...]).validate_python(values["scores"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, cell: Cell, scores: Sequence[Score]) -> None:
        """Keep the scores of a cell, readable by their owner alone. Raises :class:`OSError`."""
        values = {"cell": cell.name, "settings": cell.settings, "scores": [score.to_dict() for score in scores]}
        replace_file(self._path(cell), to_json(values))

    def _path(self, cell: Cell) -> Path:
        decides = [self.experiment.name, self.experiment.version, cell.name, cell.settings, self.is_quick, self.data]
        text = json.dumps(decides, sort_keys=True, default=_refuse)
        return self.directory / f"{sha256(text.encode()).hexdigest()[:32]}.json"


def _refuse(value: object) -> object:
    raise TypeError(f"Expected plain values in the settings of a cell, got {type(value).__name__}.")


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def require_data(experiment: Experiment, directory: Path) -> None:
    """Check that the files that an experiment reads are there. Raises :class:`InputError` that names the others."""
    missing = [name for name in experiment.files if not (directory / name).is_file()]
    if missing:
        raise InputError(
            f"{directory}: {experiment.name} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            "missing. Nothing was measured. Put the files into this directory, or name theirs with --data."
        )
