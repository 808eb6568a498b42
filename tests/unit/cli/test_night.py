"""``wordveil release night``: three steps in the order of a night, and what is said where one of them fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.workspaces import Command, Workspace
from wordveil.errors import InputError, OutdatedGateError, ReleaseError, WordveilError
from wordveil.release.rules import GateRules, Measured, evaluate
from wordveil.spark.release import night
from wordveil.spark.release.gate import GateDecision
from wordveil.spark.release.publish import Publication
from wordveil.spark.sanitise.report import RunReport

REPORT = RunReport(
    run_id="night-1",
    release="support",
    output="/release",
    records=12,
    released=12,
    quarantined={},
    tokens=288,
    words=90,
    unknown=3,
    relation="any_text",
    metric="discrete:aa",
    nominal_epsilon=4.0,
    epsilon=4.0,
    epsilon_bound=(96.0, 96.0),
    epsilon_pure=(96.0, 96.0),
    exposes=(),
    mechanism_fingerprint="m" * 64,
    policy_fingerprint="p" * 64,
    key_fingerprint="k" * 16,
    seconds=1.0,
)
PASSED = GateDecision(
    release="support",
    draws_version=2,
    ledger_version=3,
    result=evaluate(GateRules(min_records=10), Measured(released=12)),
    rules="r" * 64,
    runs=[],
    fingerprints={},
)
FAILED = replace(PASSED, result=evaluate(GateRules(min_records=100), Measured(released=12)))
MANIFEST = {
    "records": 12,
    "publication": 1,
    "draws_version": 2,
    "relation": "any_text",
    "exposes": [],
    "recovery": None,
}
PUBLISHED = Publication("/public", "/public/_manifest.json", "d" * 64, {"manifest": MANIFEST, "public_key": "f" * 64})
PARTS = {"run_release": REPORT, "run_gate": PASSED, "publish": PUBLISHED}


class Steps:
    """The steps of a night, which only say that they were taken, and with what."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken: list[str] = []
        self.given: dict[str, Any] = {}
        self.ends: dict[str, Any] = dict(PARTS)
        for name in PARTS:
            patch.setattr(night, name, self._step(name))

    def _step(self, name: str) -> Any:
        def step(_config: Any, session: Any, **given: Any) -> Any:
            self.taken.append(name)
            self.given |= given
            self.sessions.append(session)
            if isinstance(end := self.ends[name], Exception):
                raise end
            return end

        self.sessions: list[Any] = []
        return step


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


@pytest.fixture
def config(workspace: Workspace) -> Path:
    return workspace.write_config(
        input={"path": "/lake/in", "format": "delta", "where": "day = :day"},
        output={"path": str(workspace.root / "release"), "format": "delta"},
        ledger={"path": str(workspace.root / "ledger")},
    )


def test_a_night_takes_the_three_steps_with_one_session(steps: Steps, config: Path, run: Command):
    code, out, _ = run(
        *("release", "night", "-c", config, "--param", "day=d1", "--run-id", "night-1", "--full-snapshot", "--json")
    )
    assert code == 0
    assert steps.taken == ["run_release", "run_gate", "publish"]
    assert len(set(map(id, steps.sessions))) == 1
    assert (steps.given["params"], steps.given["run_id"], steps.given["full_snapshot"]) == (
        {"day": "d1"},
        "night-1",
        True,
    )
    found = json.loads(out)
    assert list(found) == ["sanitise", "gate", "publish"]
    for name, part in zip(found, PARTS.values(), strict=True):
        assert found[name] == json.loads(json.dumps(part.to_dict())), name
    code, out, _ = run("release", "night", "-c", config)
    assert code == 0
    for words in ("night-1", "min_records", "Published tests"):
        assert words in out


def test_a_gate_that_does_not_pass_ends_the_night(steps: Steps, config: Path, run: Command, tmp_path: Path):
    steps.ends["run_gate"] = FAILED
    report, page = tmp_path / "report.json", tmp_path / "gate.html"
    code, out, err = run("release", "night", "-c", config, "--json", "--report", report, "--html", page)
    assert code == 3
    assert steps.taken == ["run_release", "run_gate"]
    found = json.loads(out)
    assert found["publish"] is None
    assert [rule["passed"] for rule in found["gate"]["results"]] == [False]
    assert "did not pass: min_records" in err
    written = json.loads(report.read_text("utf-8"))
    assert (written["command"], written["exit_code"], written["result"]) == ("release night", 3, found)
    assert written["error"]["type"] == "GateError"
    assert "did not pass" in page.read_text("utf-8")
    code, out, err = run("release", "night", "-c", config)
    assert code == 3
    assert "min_records" in out
    assert "NO" in out


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("run_release", InputError("input: cannot be read.")),
        ("run_release", ReleaseError("budgets: 3 records would exceed a limit.")),
        ("run_gate", ReleaseError("run night-0 was interrupted.")),
        ("publish", OutdatedGateError("the draws are at version 9.")),
    ],
)
def test_a_step_that_fails_gives_its_exit_code_and_what_was_done_before(
    steps: Steps, config: Path, run: Command, tmp_path: Path, step: str, error: WordveilError
):
    steps.ends[step] = error
    report = tmp_path / "report.json"
    code, out, _ = run("release", "night", "-c", config, "--json", "--report", report)
    assert code == error.exit_code
    assert json.loads(out) == {"error": type(error).__name__, "message": str(error), "faults": []}
    assert steps.taken[-1] == step
    before = dict(zip(("sanitise", "gate", "publish"), PARTS, strict=True))
    written = json.loads(report.read_text("utf-8"))
    assert written["error"]["type"] == type(error).__name__
    done = {name for name, part in written.get("result", {}).items() if part is not None}
    assert done == {name for name, part in before.items() if part in steps.taken[:-1]}
    code, out, err = run("release", "night", "-c", config)
    assert str(error).split(":")[0] in err
    assert ("12" in out) == (step != "run_release"), "what was drawn and charged is shown all the same"


def test_a_parquet_output_has_no_night(workspace: Workspace, steps: Steps, run: Command):
    code, _, err = run("release", "night", "-c", workspace.write_config())
    assert code == 2
    assert "output.format" in err
    assert steps.taken == []
