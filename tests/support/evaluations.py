"""Made evaluations: figures that nobody measured, for tests of reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wordveil.scores.evaluation import Confusion, Evaluation, TextExample
from wordveil.scores.score import Group, Score


def make_score(subject: str, value: float | None, **given: Any) -> Score:
    """An accuracy with an interval of 0.02 to both sides, of texts of which 100 were measured."""
    low, high = (None if value is None else round(value + apart, 6) for apart in (-0.02, 0.02))
    names = (subject, Group.UTILITY, "topic", "fasttext", "", "accuracy")
    definition = "The share of texts whose topic is found."
    return replace(Score(*names, value, low, high, 0.1, 100, definition, higher_is_better=True), **given)


def make_attack(subject: str, value: float | None, variant: str = "adaptive", **given: Any) -> Score:
    fields = {
        "group": Group.ATTACK,
        "task": "authors",
        "method": "svm-characters",
        "variant": variant,
        "definition": "The share of texts whose author is named.",
        "higher_is_better": False,
        **given,
    }
    return make_score(subject, value, **fields)


def make_evaluation(
    attack: float = 0.4, utility: float = 0.7, title: str = "Evaluation of support", **given: Any
) -> Evaluation:
    scores = (
        make_attack("original", 0.75, "static"),
        make_attack("release", attack / 2, "static"),
        make_attack("release", attack),
        make_attack("release", 0.11, method="koppel"),
        make_score("original", 0.9),
        make_score("release", utility),
        make_score(
            "release",
            float("inf"),
            group=Group.PRIVACY,
            task="loss",
            method="exact",
            figure="worst loss",
            low=None,
            high=None,
            chance=None,
            count=0,
            definition="The largest log ratio.",
            higher_is_better=False,
            note="Unknown words are copied.",
        ),
    )
    fields: dict[str, Any] = {
        "title": title,
        "facts": {"release": "support", "epsilon": "8"},
        "scores": scores,
        "confusions": (Confusion("release", "svm-characters", "adaptive", ("ann", "bob"), ((6, 3, 1), (2, 8, 0))),),
        "examples": (TextExample("release", "The train leaves.", "The ferry goes."),),
        "notes": ("Only adaptive attackers bound anything.",),
        "is_private": True,
    }
    return Evaluation(**{**fields, **given})
