"""`wordveil evaluate` and a gate that attacks, as a user types them."""

from __future__ import annotations

import json

import pytest

from habits import WEAK, write_habits
from releasing import Lake
from sparking import Command, Workspace
from wordveil.errors import GateError


def test_a_release_is_drawn_measured_and_refused(spark, workspace: Workspace, run: Command):
    lake = Lake(spark, workspace)
    lake.write(write_habits())
    file = workspace.write_config(
        release="support",
        input={"path": str(lake.input), "format": "delta", "author": "author"},
        output={"path": str(lake.home), "format": "delta"},
        ledger={"path": str(lake.ledger)},
        mechanism=WEAK,
        gate={"attack_to_chance": 1.5},
        evaluation={"attackers": ["svm-words"]},
    )
    assert run("evaluate", "--config", file)[0] == 4  # no bundle
    assert run("sanitise", "--config", file)[0] == 0
    code, out, err = run("evaluate", "--config", file, "--json", "--seed", 5)
    assert code == 0, err
    found = json.loads(out)
    assert found["facts"]["seed"] == "5"
    assert found["is_private"]
    adaptive = [score for score in found["scores"] if score["variant"] == "adaptive"]
    assert [score["method"] for score in adaptive] == ["svm-words"]
    assert adaptive[0]["value"] > 0.8
    code, out, err = run("release", "gate", "--config", file)
    assert code == GateError.exit_code
    assert "attack_to_chance" in out + err
    assert run("evaluate", "--config", file, "--published")[0] == 9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a configuration, or an experiment by --experiment"),
        (["--config", "FILE", "--experiment", "field"], "one of them"),
        (["--config", "FILE", "--published"], "--published: needs a release"),
        (["--config", "FILE", "--set", "evaluation.records=1"], "evaluation.records = 1"),
        (["--config", "FILE", "--param", "ds=1"], "ds"),
    ],
)
def test_faults_come_before_spark(workspace: Workspace, run: Command, monkeypatch, arguments, words):
    """Java is out of reach."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", "")
    file = workspace.write_config()
    code, _, err = run("evaluate", *(str(file) if part == "FILE" else part for part in arguments))
    assert code == 2, err
    assert words in " ".join(err.split())
