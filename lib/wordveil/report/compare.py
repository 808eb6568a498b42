"""Comparison of two evaluations side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from wordveil.report.page import draw_frontiers
from wordveil.report.tables import TITLES
from wordveil.report.templates import render_page
from wordveil.report.values import name_method, show_difference, show_interval, show_number
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Group, Score

NOTE = (
    "Figures whose intervals do not overlap differ beyond chance. Where they overlap, the figures may still differ: "
    "both were measured separately, and this is not a test of their difference."
)


class Change(StrEnum):
    """Verdict on a difference."""

    BETTER = "better"
    WORSE = "worse"
    OTHER = "different"
    UNCLEAR = "not clear"
    SAME = "same"


@dataclass(frozen=True)
class ScorePair:
    """Scores of one figure and subject in two evaluations."""

    first: Score
    second: Score

    @property
    def difference(self) -> float | None:
        """Second figure minus the first; None if one was not measured or both are infinite."""
        first, second = self.first.value, self.second.value
        return None if first is None or second is None or first == second == float("inf") else second - first

    @property
    def do_intervals_overlap(self) -> bool | None:
        """True if the 95% intervals overlap; None if a score was not measured. A score without an interval is exact."""
        first, second = _interval(self.first), _interval(self.second)
        if first is None or second is None:
            return None
        return first[0] <= second[1] and second[0] <= first[1]

    @property
    def change(self) -> Change | None:
        """Verdict on the second score against the first; None if either was not measured."""
        if self.do_intervals_overlap is None or self.first.value is None or self.second.value is None:
            return None
        if self.first.value == self.second.value:
            return Change.SAME
        if self.do_intervals_overlap:
            return Change.UNCLEAR
        if self.first.higher_is_better is None:
            return Change.OTHER
        return Change.BETTER if (self.second.value > self.first.value) == self.first.higher_is_better else Change.WORSE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "subject": self.first.subject,
            **dict(zip(("group", "task", "method", "variant", "figure"), self.first.key, strict=True)),
            "first": _part(self.first),
            "second": _part(self.second),
            "difference": None if self.difference is None else _plain(self.difference),
            "intervals_overlap": self.do_intervals_overlap,
            "change": self.change,
        }


def _plain(value: float) -> float | str:
    return value if abs(value) != float("inf") else ("Infinity" if value > 0 else "-Infinity")


def _part(score: Score) -> dict[str, Any]:
    values = score.to_dict()
    return {name: values[name] for name in ("value", "low", "high", "chance", "count", "note")}


def _interval(score: Score) -> tuple[float, float] | None:
    if score.value is None:
        return None
    return (score.value if score.low is None else score.low, score.value if score.high is None else score.high)


@dataclass(frozen=True)
class EvaluationComparison:
    """Comparison of two evaluations: figures of both, in the order of the first, and those of one ``alone``."""

    names: tuple[str, str]
    first: Evaluation
    second: Evaluation
    pairs: tuple[ScorePair, ...]
    alone: tuple[tuple[str, Score], ...]

    @property
    def is_private(self) -> bool:
        return self.first.is_private or self.second.is_private

    @property
    def facts(self) -> dict[str, tuple[str, str]]:
        """Facts of both, by name; empty if one has none."""
        names = dict.fromkeys([*self.first.facts, *self.second.facts])
        return {name: (self.first.facts.get(name, ""), self.second.facts.get(name, "")) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "names": list(self.names),
            "titles": [self.first.title, self.second.title],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "alone": [{"name": name, **score.to_dict()} for name, score in self.alone],
        }

    def merge_scores(self) -> list[Score]:
        """Merge the scores of both. Subjects are named by their evaluation, unless their scores are equal in both."""
        shared = {
            name for name in _subjects(self.first) if _scores_of(self.first, name) == _scores_of(self.second, name)
        }
        scores = [score for score in self.first.scores if score.subject in shared]
        for name, evaluation in zip(self.names, (self.first, self.second), strict=True):
            own = (score for score in evaluation.scores if score.subject not in shared)
            scores += [replace(score, subject=f"{name}: {score.subject}") for score in own]
        return scores


def _subjects(evaluation: Evaluation) -> set[str]:
    return {score.subject for score in evaluation.scores}


def _scores_of(evaluation: Evaluation, subject: str) -> set[Score]:
    return {score for score in evaluation.scores if score.subject == subject}


def compare_evaluations(
    first: Evaluation, second: Evaluation, names: tuple[str, str] = ("A", "B")
) -> EvaluationComparison:
    """Pair the figures of two evaluations that have the same subject, task, method, variant and name.

    If each has a single subject besides the shared ones, such as two mechanisms, these two share a row.
    """
    ours, theirs = _subjects(first), _subjects(second)
    mine, other = ours - theirs, theirs - ours
    renamed = {other.pop(): mine.pop()} if len(mine) == len(other) == 1 else {}
    of = {(renamed.get(score.subject, score.subject), *score.key): score for score in second.scores}
    firsts = {(score.subject, *score.key): score for score in first.scores}
    pairs = tuple(ScorePair(score, of[key]) for key, score in firsts.items() if key in of)
    alone = [(names[0], score) for key, score in firsts.items() if key not in of]
    alone += [(names[1], score) for key, score in of.items() if key not in firsts]
    return EvaluationComparison(names, first, second, pairs, tuple(alone))


def choose_names(first: Path, second: Path) -> tuple[str, str]:
    """Choose short names for two files: the last parts of their paths that distinguish them, without suffixes."""
    parts = [path.absolute().with_suffix("").parts for path in (first, second)]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if names[0] != names[1]:
            if parts[0][-1] == parts[1][-1]:  # the files have one name, so use their directories
                names = ["/".join(part[-length:-1]) or part[-1] for part in parts]
            return names[0], names[1]
    return "A", "B"


def list_rows(comparison: EvaluationComparison) -> dict[str, list[dict[str, str]]]:
    """List the pairs of each group as texts, for a terminal and for a page, by the group's title."""
    return {
        TITLES[group]: [_row(pair) for pair in comparison.pairs if pair.first.group == group]
        for group in Group
        if any(pair.first.group == group for pair in comparison.pairs)
    }


def _row(pair: ScorePair) -> dict[str, str]:
    first, second = pair.first, pair.second
    subject = first.subject if first.subject == second.subject else f"{first.subject} | {second.subject}"
    return {
        "subject": subject,
        "task": first.task,
        "method": name_method(first),
        "first": show_number(first.value),
        "first_interval": show_interval(first.low, first.high),
        "second": show_number(second.value),
        "second_interval": show_interval(second.low, second.high),
        "chance": "" if first.chance is None else show_number(first.chance),
        "difference": show_difference(pair.difference),
        "change": str(pair.change) if pair.change else "",
        "definition": first.definition,
    }


def render_comparison(comparison: EvaluationComparison) -> str:
    """Render the page of two evaluations, in HTML, escaped and without external resources."""
    return render_page(
        "comparison.html",
        title=" and ".join(comparison.names),
        comparison=comparison,
        note=NOTE,
        groups=list_rows(comparison),
        frontiers=draw_frontiers(comparison.merge_scores()),
        alone=[{**asdict(score), "name": name, "by": name_method(score)} for name, score in comparison.alone],
    )
