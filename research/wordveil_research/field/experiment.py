"""Privacy-utility comparison: this project and other ways to sanitise text, at an equal certified loss and at an equal
share of words recovered.

Cells of the kind ``build`` look for the epsilon of a row in a block, build it and state what needs no text. Cells of
the kind ``texts`` measure it on parts of the corpora under one seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score
from wordveil_research.field.cells import RECORD_WORDS, Measured, measure_cell
from wordveil_research.field.parts import FILES, LARGE, QUICK, SMALL, Size
from wordveil_research.field.privacy import WORST, make_figure, score_privacy
from wordveil_research.field.rows import (
    AS_IT_IS,
    ORIGINAL,
    Block,
    Row,
    find_row,
    list_blocks,
    list_rows,
)
from wordveil_research.field.summary import SMALL_NOTE, add_gains, average_seeds, name_small_parts
from wordveil_research.field.systems import Laboratory
from wordveil_research.peers.processes import PeerError
from wordveil_research.runner.base import Cell, Experiment, Surroundings


class Field(Experiment):
    """See the module."""

    name: ClassVar[str] = "field"
    title: ClassVar[str] = "The field: ways to sanitise text at an equal loss and at an equal recovery"
    version: ClassVar[int] = 1
    files: ClassVar[tuple[str, ...]] = FILES

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        placed = [(row, block) for row, block in list_places(is_quick=around.is_quick)]
        builds = [_make_cell("build", row, block, 0, around) for row, block in placed]
        texts = [
            _make_cell("texts", row, block, seed, around)
            for seed in range(around.seeds)
            for row, block in placed
            if seed == 0 or not is_certain(row)
        ]
        return [*builds, *texts]

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        row, block = find_row(cell.settings["row"]), Block(**cell.settings["block"])
        laboratory = Laboratory(around)
        try:
            system = laboratory.find(row, block)
            if cell.settings["kind"] == "build":
                return score_privacy(laboratory, row, block, system)
            if not system.is_there:
                return []
            with laboratory.open(row, system) as sanitiser:
                size = size_of(row, is_quick=around.is_quick)
                is_plain = row.candidate is not None or (row.peer is not None and not row.peer.cuts_texts)
                measured = Measured(row.subject(block), sanitiser, size, around.data, cell.settings["seed"], is_plain)
                found = measure_cell(measured)
        except PeerError as error:
            return [make_figure(row.subject(block), WORST, "token", None, str(error))]
        note = SMALL_NOTE if row.is_slow else ""
        return [replace(score, note=join_notes(score.note, note)) for score in found]

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        scores = add_gains(average_seeds([score for scores in results.values() for score in scores]))
        return Evaluation(
            title=self.title,
            facts=describe(around),
            scores=tuple(name_small_parts(scores)),
            is_private=False,
        )


def _make_cell(kind: str, row: Row, block: Block, seed: int, around: Surroundings) -> Cell:
    settings: dict[str, Any] = {
        "kind": kind,
        "row": row.label,
        "block": {"kind": block.kind, "value": block.value, "prior": block.prior},
        "seed": seed,
        "parts": size_of(row, is_quick=around.is_quick).describe() if kind == "texts" else "",
        "peer": "" if row.peer is None else row.peer.digest,
    }
    name = f"{row.subject(block)}, {kind}"
    return Cell(name if kind == "build" else f"{name}, seed {seed}", settings)


def list_places(*, is_quick: bool) -> list[tuple[Row, Block]]:
    """List each row with each block that it stands in."""
    blocks = list_blocks(is_quick=is_quick)
    return [(row, block) for row in list_rows() for block in (blocks if row.is_matched else [AS_IT_IS])]


def is_certain(row: Row) -> bool:
    """Return whether it writes the same under every seed."""
    return row.label.startswith(ORIGINAL) or (row.peer is not None and row.peer.cuts_texts)


def size_of(row: Row, *, is_quick: bool) -> Size:
    """Return the parts of the corpora that a row is measured on."""
    if is_quick:
        return QUICK
    return SMALL if row.is_slow else LARGE


def join_notes(*notes: str) -> str:
    """Join notes as one, without the empty ones."""
    return "; ".join(note for note in notes if note)


def describe(around: Surroundings) -> dict[str, str]:
    """Return what the table was made from."""
    sizes = {"parts": QUICK} if around.is_quick else {"parts": LARGE, "small parts, of slow systems": SMALL}
    return {
        "embeddings": "the demo embedding; demo-poincare for the hyperbolic rows",
        "seeds": str(around.seeds),
        "record": f"{RECORD_WORDS} words",
        **{name: size.describe() for name, size in sizes.items()},
    }
