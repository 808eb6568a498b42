"""What the papers' experiments share: cells of rows and draws, attacks on rows, sentences on what the figures show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wordveil.embeddings.embedding import Embedding
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.scores.documents import Documents
from wordveil.scores.score import Group, Score
from wordveil_research.papers.policies import HIDDEN, choose_words
from wordveil_research.papers.repeats import merge_repeats
from wordveil_research.papers.rows import Row, VocabularyWords, seeds_of
from wordveil_research.papers.samples import Split, keep_first
from wordveil_research.papers.systems import WORDS_ALONE, TextSanitiser
from wordveil_research.runner.base import Cell, Surroundings


def plan_rows(part: str, rows: Iterable[Row], around: Surroundings, settings: Mapping[str, Any]) -> Iterator[Cell]:
    """Plan a cell for each row of a part of a table, and for each draw where the row is random; the first draws first.

    ``settings``: other plain values that decide the result, such as the sizes of samples.
    """
    listed = list(rows)
    for draw in range(around.seeds):
        for row in listed:
            if draw and not row.draws:
                continue
            name = f"{part}, {row.name}" + (f", draw {draw + 1}" if row.draws else "")
            yield Cell(name, {**settings, "part": part, "row": row.name, "draw": draw, **row.plain()})


def row_of(cell: Cell) -> Row:
    """Return the row of a cell of :func:`plan_rows`."""
    values = cell.settings
    named = {name: values[name] for name in ("mechanism", "settings", "words_alone", "embedding")}
    return Row(values["row"], **named, loss=values.get("loss", 0.0), words=values.get("hidden", HIDDEN))


@dataclass(frozen=True)
class Written:
    """What a row writes of a split.

    Attributes
    ----------
    clean
        the texts to learn from as a static attacker has them: as they are for the originals, and otherwise reduced to
        the words of the vocabulary, as every reader of a release would do first.
    released
        what is written of the texts to judge.
    redrawn
        what an attacker's own copy of the row writes, with other keys, of the texts to learn from.
    """

    clean: Documents
    released: Documents
    redrawn: Documents

    def first_labels(self, count: int) -> Written:
        """Return the texts of the first ``count`` labels, by number. They keep their numbers and lose the other
        names.
        """
        return Written(*(keep_first(part, count) for part in (self.clean, self.released, self.redrawn)))


def write_row(row: Row, system: TextSanitiser, split: Split, embedding: Embedding, draw: int) -> Written:
    """Write the texts of a split as a row does, once as it releases them and once as an attacker copies it."""
    own, theirs = seeds_of(draw)
    released = split.test.with_texts(system.sanitise(split.test.texts, own))
    redrawn = split.train.with_texts(system.sanitise(split.train.texts, theirs))
    if not row.mechanism:
        return Written(redrawn, released, redrawn)
    clean = VocabularyWords(embedding, choose_words(WORDS_ALONE, row.words)).sanitise(split.train.texts)
    return Written(split.train.with_texts(clean), released, redrawn)


def attack_written(
    attacks: Iterable[TextClassifier], written: Written, row: Row, draw: int, task: str
) -> Iterator[Score]:
    """Attack what a row wrote, by static and adaptive attackers. ``task``: the name that the scores get."""
    from wordveil.evaluation.accuracy import measure_authorship

    released, redrawn = written.released, written.redrawn
    for attack in attacks:
        found, _ = measure_authorship(
            attack,
            written.clean,
            released,
            released.texts,
            redrawn.texts,
            row.name,
            draw,
            with_original=False,
        )
        yield from (replace(score, task=task) for score in found)


def merge_cells(results: Mapping[str, Sequence[Score]]) -> tuple[Score, ...]:
    """Return all scores of a table, repetitions merged."""
    return tuple(merge_repeats(results.values()))


def strongest_attack(scores: Sequence[Score], subject: str, task: str) -> Score | None:
    """Return the most accurate attack on a row. One who knows the mechanism learns from clean texts where that works
    better, as it can with little known text, whose noise adds to that of what is attacked.
    """
    found = [
        score
        for score in scores
        if (score.subject, score.group, score.task, score.figure) == (subject, Group.ATTACK, task, "accuracy")
        and score.value is not None
    ]
    return max(found, key=lambda score: score.value or 0.0, default=None)


def best_utility(scores: Sequence[Score], subject: str, *tasks: str) -> Score | None:
    """Return the most accurate classifier on a row, of one task or of several ways to learn it."""
    found = [
        score
        for score in scores
        if (score.subject, score.group, score.figure) == (subject, Group.UTILITY, "accuracy")
        and score.task in tasks
        and score.value is not None
    ]
    return max(found, key=lambda score: score.value or 0.0, default=None)


def relative_gain(scores: Sequence[Score], subject: str, attack: str, tasks: Sequence[str], base: str) -> float | None:
    """Return what is left of a row's utility less what is left of the attack, each above chance and as a share of that
    of the row ``base``.

    It is :func:`wordveil_research.field.summary.find_relative_gain` with chance levels taken off, since ratios
    of raw accuracies favour the task whose chance level is higher. ``attack`` and ``tasks``: their tasks' names; of
    each the best is taken. None where one is missing, or not above chance in ``base``.
    """
    kept = [
        _share_left(best_utility(scores, subject, *tasks), best_utility(scores, base, *tasks)),
        _share_left(strongest_attack(scores, subject, attack), strongest_attack(scores, base, attack)),
    ]
    return None if kept[0] is None or kept[1] is None else kept[0] - kept[1]


def _share_left(after: Score | None, before: Score | None) -> float | None:
    if after is None or before is None or after.value is None or before.value is None:
        return None
    above = before.value - (before.chance or 0.0)
    return (after.value - (after.chance or 0.0)) / above if above > 0 else None


def share(score: Score | None) -> str:
    """Return a figure as a percentage with its interval, for a sentence."""
    if score is None or score.value is None:
        return "not measured"
    if score.low is None or score.high is None or score.low == score.high:
        return f"{score.value:.1%}"
    return f"{score.value:.1%} ({score.low:.1%} to {score.high:.1%})"
