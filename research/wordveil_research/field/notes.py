"""What the table shows, in sentences that follow from its figures, also where papers' claims or this project's own
mechanisms fare badly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wordveil.evaluation.attacks.authorship import ADAPTIVE, STATIC
from wordveil.scores.score import Score
from wordveil_research.field.privacy import KNOWN, NEAREST_LOSS, WORST
from wordveil_research.field.rows import ORIGINAL, RANDOM, SMALL_PARTS, Block, list_blocks, list_rows
from wordveil_research.field.summary import GAIN, is_attack, is_on_small_parts, is_task

PEERS = tuple(row.label for row in list_rows() if row.peer is not None)
_NEAR_CHANCE = 0.02


@dataclass(frozen=True)
class Line:
    """One row in one block.

    Attributes
    ----------
    label
        of the row.
    scores
        all of its scores.
    """

    label: str
    scores: tuple[Score, ...]

    def find(self, figure: str, task: str = "") -> Score | None:
        """Its score of a figure, of a task if one is named."""
        return next((one for one in self.scores if one.figure == figure and task in ("", one.task)), None)

    @property
    def is_small(self) -> bool:
        """Whether it was measured on small parts, so that it cannot be compared with the other lines."""
        return any(map(is_on_small_parts, self.scores))

    @property
    def utility(self) -> float | None:
        """The mean accuracy of the tasks."""
        return _mean(score.value for score in self.scores if is_task(score))

    @property
    def attack(self) -> float | None:
        """The mean over the author corpora of the stronger adaptive attacker's accuracy."""
        by_corpus: dict[str, float] = {}
        for score in self.scores:
            if is_attack(score) and score.value is not None:
                by_corpus[score.task] = max(score.value, by_corpus.get(score.task, 0.0))
        return _mean(by_corpus.values())

    @property
    def gain(self) -> float | None:
        """The mean relative gain over attackers and author corpora."""
        return _mean(score.value for score in self.scores if score.figure == GAIN)


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return float(np.mean(found)) if found else None


def list_lines(scores: Sequence[Score], block: Block | None) -> list[Line]:
    """The lines of a block; None: the rows that stand in no block."""
    subjects: dict[str, list[Score]] = {}
    for score in scores:
        subjects.setdefault(score.subject, []).append(score)
    lines = []
    for row in list_rows():
        subject = row.label if block is None else row.subject(block)
        if row.is_slow and subject not in subjects:
            subject += SMALL_PARTS
        if row.is_matched == (block is not None) and subject in subjects:
            lines.append(Line(row.label, tuple(subjects[subject])))
    return lines


def write_notes(scores: Sequence[Score], *, is_quick: bool = False) -> list[str]:
    """The sentences, each from the figures alone."""
    references = {line.label: line for line in list_lines(scores, None)}
    blocks = [(block, list_lines(scores, block)) for block in list_blocks(is_quick=is_quick)]
    notes = [
        *_say_measures(),
        *(note for block, lines in blocks for note in _say_block(block, lines, references)),
        *_say_infinite([line for _, lines in blocks for line in lines], references),
        *_say_missing(blocks),
        *_say_nearest([line for block, lines in blocks if block.kind == "loss" for line in lines]),
        *_say_gains([line for _, lines in blocks for line in lines], references),
        *_say_adaptive([line for _, lines in blocks for line in lines]),
        *_say_context([line for _, lines in blocks for line in lines]),
        *_say_cost([line for _, lines in blocks for line in lines]),
    ]
    return list(dict.fromkeys(notes))


def _say_measures() -> Iterator[str]:
    yield (
        "Intervals are t-intervals over draws of the same texts: they do not cover other texts. Rows on small parts of "
        "the corpora are compared with the original on the same small parts, and with no other row."
    )


def _say_block(block: Block, lines: Sequence[Line], references: dict[str, Line]) -> Iterator[str]:
    """Who is most useful where all are alike in one respect, and who is no better than chance."""
    shown = {"loss": f"At a largest loss of {block.value:g}"}.get(
        block.kind, f"Where the best guesser recovers {block.value:.0%} of the words ({block.prior} prior)"
    )
    fair = [line for line in lines if not line.is_small and line.utility is not None]
    original = references.get(ORIGINAL)
    if fair:
        best = max(fair, key=lambda line: line.utility or 0.0)
        against = "" if original is None or original.utility is None else f" (original {original.utility:.3f})"
        attack = "" if best.attack is None else f"; its authors are named in {best.attack:.1%} of the cases"
        yield (
            f"{shown} the most useful row is {best.label}, with a mean accuracy of {best.utility:.3f}{against}{attack}."
        )
        if best.label in PEERS:
            yield f"{shown} a row of another package, {best.label}, is the most useful: none of this project's is."
        least = min(fair, key=lambda line: line.attack if line.attack is not None else 1.0)
        if least.attack is not None and least.label != best.label:
            yield (
                f"{shown} the fewest authors are named under {least.label}, {least.attack:.1%}, at a mean accuracy of "
                f"{least.utility:.3f}."
            )
    useless = [line.label for line in lines if _is_useless(line)]
    if useless:
        yield (
            f"{shown} these do no better than a guesser who never looks, within {_NEAR_CHANCE:.0%} on each task: "
            f"{', '.join(useless)}."
        )


def _is_useless(line: Line) -> bool:
    tasks = [score for score in line.scores if is_task(score) and score.value is not None]
    return bool(tasks) and all((score.value or 0.0) <= (score.chance or 0.0) + _NEAR_CHANCE for score in tasks)


def _say_infinite(lines: Sequence[Line], references: dict[str, Line]) -> Iterator[str]:
    """Whose loss has no bound, and why."""
    reasons: dict[str, list[str]] = {}
    for line in [*lines, *references.values()]:
        worst = line.find(WORST)
        if worst is not None and worst.value == float("inf") and worst.note:
            reasons.setdefault(worst.note, []).append(line.label)
    for reason, labels in reasons.items():
        names = ", ".join(dict.fromkeys(labels))
        yield f"The true worst loss is infinite for {names}: {reason}. Known words alone are matched there."


def _say_missing(blocks: Sequence[tuple[Block, Sequence[Line]]]) -> Iterator[str]:
    """What could not be matched or run, and why."""
    for block, lines in blocks:
        for line in lines:
            worst = line.find(WORST)
            if worst is not None and worst.value is None:
                yield f"{line.label} has no figures at {block.name}: {worst.note}."


def _say_nearest(lines: Sequence[Line]) -> Iterator[str]:
    """What metric privacy saves between near words."""
    shares: dict[str, list[float]] = {}
    for line in lines:
        near, known = line.find(NEAREST_LOSS), line.find(KNOWN)
        if near and known and near.value is not None and known.value and np.isfinite([near.value, known.value]).all():
            shares.setdefault(line.label, []).append(near.value / known.value)
    if shares:
        listed = ", ".join(f"{label} {float(np.mean(found)):.0%}" for label, found in shares.items())
        yield f"The loss between a word and its nearest neighbour, as a share of the largest loss: {listed}."


def _say_gains(lines: Sequence[Line], references: dict[str, Line]) -> Iterator[str]:
    """Whether the relative gain tells more than a sanitiser that writes random words."""
    random = references.get(RANDOM)
    gained = [line for line in lines if line.gain is not None]
    if not gained:
        return
    negative = sorted({line.label for line in gained if (line.gain or 0.0) < 0})
    if negative:
        names = ", ".join(negative)
        yield f"The relative gain is below 0 for {names} in at least one block: the tasks lose more than the attacker."
    if random is None or random.gain is None:
        return
    below = [line for line in gained if not line.is_small and (line.gain or 0.0) <= random.gain]
    counted = [line for line in gained if not line.is_small]
    yield (
        f"Random words have a relative gain of {random.gain:+.2f}, since accuracy at chance counts as utility. "
        f"{len(below)} of {len(counted)} rows in blocks have no larger one: the figure alone does not show a useful "
        "trade."
    )


def _say_adaptive(lines: Sequence[Line]) -> Iterator[str]:
    """How much a static attacker understates."""
    pairs = []
    for line in lines:
        for score in line.scores:
            if is_attack(score, STATIC) and score.value is not None:
                adaptive = next(
                    one
                    for one in line.scores
                    if is_attack(one, ADAPTIVE) and (one.task, one.method) == (score.task, score.method)
                )
                pairs.append((adaptive.value or 0.0, score.value, line.label, score.task))
    if not pairs:
        return
    stronger = sum(one > other for one, other, _, _ in pairs)
    most = max(pairs, key=lambda pair: pair[0] - pair[1])
    yield (
        f"The adaptive attacker names more authors than the static one in {stronger} of {len(pairs)} comparisons; at "
        f"most {most[0]:.1%} against {most[1]:.1%} ({most[2]}, {most[3]}). What a static attacker fails at shows no "
        "protection."
    )


def _say_context(lines: Sequence[Line]) -> Iterator[str]:
    """What neighbouring words give away."""
    gains = [(score.value, line.label) for line in lines if (score := line.find("gain-by-context"))]
    known = [(value, label) for value, label in gains if value is not None]
    if known:
        most = max(known)
        yield (
            f"An attacker who reads the text recovers up to {most[0]:.1%} more of all words than one who looks at each "
            f"output alone ({most[1]}). Bayes recovery without context is no bound of the attack."
        )


def _say_cost(lines: Sequence[Line]) -> Iterator[str]:
    """The cheapest and the dearest."""
    hours = _worst_by_label(lines, lambda line: line.find("core-hours"))
    if len(hours) > 1:
        least, most = min(hours.items(), key=lambda item: item[1]), max(hours.items(), key=lambda item: item[1])
        yield (
            f"A million records of 200 words take {least[1]:.2g} core-hours with {least[0]} and {most[1]:.3g} with "
            f"{most[0]}."
        )


def _worst_by_label(lines: Sequence[Line], find: Callable[[Line], Score | None]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        score = find(line)
        if score is not None and score.value is not None:
            found[line.label] = max(score.value, found.get(line.label, 0.0))
    return found
