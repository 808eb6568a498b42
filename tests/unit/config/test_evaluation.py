"""The section ``evaluation``: it may be missing, changes nothing that is released, and its faults are told at once."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from support import configs
from support.configs import find_faults
from wordveil.config.load import Config
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS


def settings(evaluation: dict[str, Any] | None = None, **source: Any) -> dict[str, Any]:
    return configs.settings(source=source, **({} if evaluation is None else {"evaluation": evaluation}))


def parse(evaluation: dict[str, Any] | None = None, **source: Any) -> Config:
    return configs.parse(settings(evaluation, **source))


def test_a_configuration_without_the_section_is_measured():
    assert parse().author is None
    assert parse(author="who").author == "who"
    assert parse({"author": "customer"}, author="who").author == "customer"
    assert set(parse().evaluation.attackers) <= set(AUTHOR_ATTACKS)
    assert set(parse().evaluation.tasks) <= set(TEXT_TASKS)


def test_every_attacker_and_task_can_be_named():
    every = {"attackers": [*AUTHOR_ATTACKS], "tasks": [*TEXT_TASKS], "label": "topic"}
    assert parse(every, author="who").evaluation.tasks == [*TEXT_TASKS]
    for name, make in {**AUTHOR_ATTACKS, **TEXT_TASKS}.items():
        method = make()
        assert method.name == name
        assert method.needs_embedding == ("embedding" in {field.name for field in fields(method)})
        assert method.refuses.startswith("texts of fewer than two labels")


def test_nothing_that_is_released_depends_on_it():
    plain, measured = parse(), parse({"author": "who", "label": "topic", "examples": 3, "seed": 9})
    assert measured.shown == plain.shown
    assert measured.record_settings("r") == plain.record_settings("r")
    assert measured.recipe("") == plain.recipe("")


def test_all_faults_come_at_once():
    methods = {"attackers": ["svm-words", "svm-words"], "tasks": ["liner-words"], "encoder": "sentence-transformers:"}
    numbers = {"records": 4, "known_share": 1.0, "example": 1}
    found = find_faults(settings({"author": "BODY", "label": "body", **methods, **numbers}))
    places = ("author", "label", "attackers", "tasks.0", "records", "known_share", "example", "encoder")
    assert set(found) == {f"evaluation.{place}" for place in places}
    assert "= sentence-transformers:: is no sentence encoder. Allowed: weighted-bag," in found["evaluation.encoder"]
    assert "evaluation.author = BODY: is the text column" in found["evaluation.author"]
    inside = find_faults(settings({"author": "message"}, text="message.body"))
    assert "is the text column" in inside["evaluation.author"]
    assert "Did you mean linear-words?" in found["evaluation.tasks.0"]
    assert "Did you mean examples?" in found["evaluation.example"]


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        ({"attackers": ["svm-words"]}, "evaluation.attackers = svm-words: needs authors to guess. Name their column"),
        ({"tasks": ["linear-words"]}, "evaluation.tasks = linear-words: needs labels to guess"),
        ({"author": "message.body"}, ""),
        ({"records": 10, "min_texts": 6}, "two authors of 6 records do not fit into evaluation.records: 10"),
    ],
)
def test_settings_that_contradict_each_other_are_find_faults(evaluation: dict[str, Any], words: str):
    if words:
        assert words in "\n".join(find_faults(settings(evaluation)).values())
    else:
        parse(evaluation)


def release(evaluation: dict[str, Any], **source: Any) -> dict[str, Any]:
    raw = settings(evaluation, format="delta", **source)
    return {
        **raw,
        "output": {"path": "out", "format": "delta"},
        "ledger": {"path": "ledger"},
        "gate": {"attack_to_chance": 2.0},
    }


def test_a_gate_that_attacks_needs_authors_and_attackers():
    assert "gate.attack_to_chance = 2: measures who wrote a text" in find_faults(release({}))["gate.attack_to_chance"]
    found = find_faults(release({"attackers": []}, author="who"))
    assert "evaluation.attackers is empty" in found["gate.attack_to_chance"]
    made = configs.parse(release({}, author="who"))
    assert made.gate.rules.private == ("attack_to_chance",)
    assert "gate" in made.shown
    assert parse({"attackers": [], "tasks": []}).evaluation.attackers == []
