"""The tasks on pairs of sentences of Table VI (Feyisetan, Diethe, Drake 2019), for those who have their data.

Columns of ``mrpc.jsonl.xz`` and ``sick_e.jsonl.xz``: ``first``, ``second``, ``label``, and ``split`` with ``train`` and
``test``. Of ``sts14.jsonl.xz``: ``first``, ``second``, ``grade``. Nothing learns from the last: the similarity of two
sentences is the cosine of their mean vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from wordveil.embeddings.embedding import DEMO, load
from wordveil.scores.score import Score
from wordveil_research.papers.rows import Row, seeds_of
from wordveil_research.papers.systems import TextSanitiser
from wordveil_research.tasks.pairs import (
    GradedPairs,
    LabelledPairs,
    load_graded_pairs,
    load_labelled_pairs,
    measure_pairs,
    measure_similarity,
)

LABELLED, GRADED = ("mrpc", "sick_e"), ("sts14",)
_COLUMNS = ("first", "second")
Pairs = TypeVar("Pairs", LabelledPairs, GradedPairs)


def measure_pair_task(task: str, row: Row, system: TextSanitiser, data: Path, draw: int) -> list[Score]:
    """Measure one task on what a row writes; what is learned from has other keys than what is judged.

    Raises
    ------
    InputError
        where the file has other columns.
    """
    path, embedding = data / f"{task}.jsonl.xz", load(DEMO)
    own, theirs = seeds_of(draw)
    if task in GRADED:
        graded = write_pairs(load_graded_pairs(path, *_COLUMNS, "grade"), system, own)
        return measure_similarity(embedding, None, graded, row.name, task, draw)
    train = load_labelled_pairs(path, *_COLUMNS, "label", {"split": "train"})
    test = load_labelled_pairs(path, *_COLUMNS, "label", {"split": "test"}, train.names)
    written = write_pairs(train, system, theirs), write_pairs(test, system, own)
    return measure_pairs(embedding, *written, row.name, task)


def write_pairs(pairs: Pairs, system: TextSanitiser, seed: int) -> Pairs:
    """Write the same pairs as a system writes them. Both sentences are records of their own."""
    written = system.sanitise([*pairs.first, *pairs.second], seed)
    return pairs.with_texts(written[: len(pairs.first)], written[len(pairs.first) :])
