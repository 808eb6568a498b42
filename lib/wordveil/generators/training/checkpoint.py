"""Files of a training: the checkpoint from which it resumes, replaced as a whole, and its figures as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wordveil.crypto.private_files import create_file
from wordveil.errors import GeneratorError
from wordveil.generators.weights import NOT_READABLE, read_npz, write_npz

FORMAT_VERSION = 2
CHECKPOINT = "checkpoint.npz"
Arrays = Mapping[str, NDArray[Any]]


@dataclass
class Progress:
    """Progress of a training.

    ``step``: steps done. ``epoch``, ``position``: the epoch, and the number of its batches done. ``rewarded``: the
    reward has begun. ``best``: lowest validation loss since then, or from the beginning, at ``best_step``; None before
    the first measurement. ``measured_step``: step of the last measurement. ``failures``: number of measurements in a
    row that did not lower it. ``ended``: ``epochs``, ``steps``, ``minutes`` or ``patience``; empty while it continues.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    rewarded: bool = False
    best: float | None = None
    best_step: int = 0
    measured_step: int = 0
    failures: int = 0
    seconds: float = 0.0
    ended: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """State that decides the next step, with random numbers that follow from the seed and the step.

    ``parameters``: for the model, by name. ``optimiser``: leaves of the optimiser's state, in its order, by number.
    ``best``: parameters with the lowest validation loss; empty before the first measurement. ``identity``: corpus,
    words and settings, with which alone training resumes. ``sums``: over the steps since the last row of the metrics,
    with the number of these ``steps``. ``salt``: that of the weights
    (:attr:`wordveil.generators.weights.GeneratorWeights.salt`), so that a training that has ended always gives weights
    of one identity.
    """

    progress: Progress
    parameters: Arrays
    optimiser: Arrays
    best: Arrays
    identity: Mapping[str, Any]
    sums: Mapping[str, float]
    salt: str = field(repr=False)


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, which replaces the previous one when it is on disk."""
    about = {
        "format_version": FORMAT_VERSION,
        "identity": dict(checkpoint.identity),
        "progress": asdict(checkpoint.progress),
        "sums": dict(checkpoint.sums),
        "salt": checkpoint.salt,
    }
    arrays: dict[str, NDArray[Any]] = {}
    for kind in ("parameters", "optimiser", "best"):
        arrays |= {f"{kind}/{name}": array for name, array in getattr(checkpoint, kind).items()}
    write_npz(path, about, arrays, private=checkpoint.identity["corpus"] == "private")


def load_checkpoint(path: Path, identity: Mapping[str, Any]) -> Checkpoint | None:
    """Read a checkpoint, if there is one. Raises :class:`GeneratorError` for damage, or another ``identity``."""
    if not path.exists():
        return None
    try:
        about, arrays = read_npz(path)
        version, known = about["format_version"], about["identity"]
        progress = Progress(**about["progress"]) if version == FORMAT_VERSION else None
    except (*NOT_READABLE, OSError):
        raise GeneratorError(f"{path}: is not a checkpoint. Begin again with --fresh.") from None
    if progress is None:
        raise GeneratorError(f"{path}: was written by another version of wordveil. Begin again with --fresh.")
    if differing := [name for name in (known | dict(identity)) if known.get(name) != identity.get(name)]:
        raise GeneratorError(
            f"{path}: training began with other settings: {', '.join(sorted(differing))}. Restore them to go on, or "
            "begin again with --fresh."
        )
    parts: dict[str, dict[str, NDArray[Any]]] = {"parameters": {}, "optimiser": {}, "best": {}}
    for name, array in arrays.items():
        kind, _, inner = name.partition("/")
        parts.get(kind, {})[inner] = array
    return Checkpoint(progress, **parts, identity=known, sums=about["sums"], salt=about["salt"])


METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class MetricsFile:
    """File of rows, each with its ``step``. ``private``: only its owner can read it."""

    path: Path
    private: bool = False

    def cut(self, step: int) -> None:
        """Remove the rows of later steps, which will be repeated, and an incomplete last row."""
        rows = [row for row in self.read() if row["step"] <= step]
        draft = self.path.with_name(f".{self.path.name}.part")
        with create_file(draft, private=self.private) as stream:
            stream.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
        draft.replace(self.path)

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(dict(row))}\n")

    def read(self) -> list[dict[str, Any]]:
        """Read all complete rows, in order."""
        lines = self.path.read_text("utf-8").split("\n")[:-1] if self.path.exists() else []
        return [json.loads(line) for line in lines]
