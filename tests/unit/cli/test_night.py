"""``wordveil release night``: three steps in the order of a night, and what is said where one of them fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.run_reports import make_run_report
from support.workspaces import Command, Workspace
from wordveil.errors import EmptyInputError, OutdatedGateError, ReleaseError, WordveilError
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.release.rules import GateRules, Measured, evaluate
from wordveil.spark.release import night
from wordveil.spark.release.gate import GateDecision
from wordveil.spark.release.publish import Publication

REPORT = make_run_report(records=12, released=12, quarantined={})
RESULT = evaluate(GateRules(min_records=10), Measured(released=12))
PASSED = GateDecision("support", draws_version=2, ledger_version=3, result=RESULT, rules="r", runs=[], fingerprints={})
FAILED = replace(PASSED, result=evaluate(GateRules(min_records=100), Measured(released=12)))
DAY = ("--param", "day=d1")
VERSIONS = {"publication": 1, "draws_version": 2}
MANIFEST: dict[str, Any] = {"records": 12, **VERSIONS, "relation": "any_text", "exposes": [], "recovery": None}
PUBLISHED = Publication("/public", "/public/_manifest.json", "d" * 64, {"manifest": MANIFEST, "public_key": "f" * 64})
PARTS = {"run": REPORT, "gate_release": PASSED, "publish_release": PUBLISHED}


class Steps:
    """The steps of a night over an open release, which only say that they were taken, and with what."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken: list[str] = []
        self.given: dict[str, Any] = {}
        self.ends: dict[str, Any] = dict(PARTS)
        self.opened = 0
        self.release = object()
        job = SimpleNamespace(settings=object(), materials=SimpleNamespace(key=object()))
        patch.setattr(night, "load_release_job", lambda *_: job)
        patch.setattr(night, "open_runner", self._open)
        for name in ("gate_release", "publish_release"):
            patch.setattr(night, name, partial(self._take_of_release, name))

    @contextmanager
    def _open(self, _job: Any, _session: Any, params: Any, *_: Any) -> Iterator[Steps]:
        self.opened += 1
        self.given["params"] = params
        yield self

    def run(self, run_id: str | None, **given: Any) -> Any:
        self.given |= {"run_id": run_id, **given}
        return self._take("run")

    def _take_of_release(self, name: str, release: Any, *_: Any) -> Any:
        assert release is self.release
        return self._take(name)

    def _take(self, name: str) -> Any:
        self.taken.append(name)
        if isinstance(end := self.ends[name], Exception):
            raise end
        return end


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


def test_a_gate_that_does_not_pass_ends_the_night(steps: Steps, config: Path, run: Command, tmp_path: Path):
    steps.ends["gate_release"] = FAILED
    report, page = tmp_path / "report.json", tmp_path / "gate.html"
    code, out, err = run("release", "night", "-c", config, *DAY, "--json", "--report", report, "--html", page)
    assert code == 3
    assert steps.taken == ["run", "gate_release"]
    found = json.loads(out)
    assert found["publish"] is None
    assert [rule["passed"] for rule in found["gate"]["results"]] == [False]
    assert "did not pass: min_records" in err
    written = json.loads(report.read_text("utf-8"))
    assert (written["command"], written["exit_code"], written["result"]) == ("release night", 3, found)
    assert written["error"]["type"] == "GateError"
    assert "did not pass" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("run", ReleaseError("budgets: 3 records would exceed a limit.")),
        ("gate_release", ReleaseError("run night-0 was interrupted.")),
        ("publish_release", OutdatedGateError("the draws are at version 9.")),
    ],
)
def test_failing_step_gives_its_exit_code_and_what_came_before(
    steps: Steps, config: Path, run: Command, tmp_path: Path, step: str, error: WordveilError
):
    steps.ends[step] = error
    report = tmp_path / "report.json"
    code, out, _ = run("release", "night", "-c", config, *DAY, "--json", "--report", report)
    assert code == error.exit_code
    assert json.loads(out) == {"error": type(error).__name__, "message": str(error), "faults": []}
    assert steps.taken[-1] == step
    before = dict(zip(("sanitise", "gate", "publish"), PARTS, strict=True))
    written = json.loads(report.read_text("utf-8"))
    assert written["error"]["type"] == type(error).__name__
    done = {name for name, part in written.get("result", {}).items() if part is not None}
    assert done == {name for name, part in before.items() if part in steps.taken[:-1]}
    code, out, err = run("release", "night", "-c", config, *DAY)
    assert str(error).split(":")[0] in err
    assert ("12" in out) == (step != "run"), "what was drawn and charged is shown all the same"


def test_params_that_where_does_not_use_are_refused_early(steps: Steps, config: Path, run: Command):
    for params, problem in (([], ":day: has no value"), ([*DAY, "--param", "ds=x"], "input.where does not use :ds")):
        for command in (["release", "night"], ["sanitise"]):
            code, _, err = run(*command, "-c", config, *params)
            assert (code, steps.opened) == (2, 0)
            assert problem in err
    code, _, err = run("evaluate", "-c", config, "--param", "ds=x")
    assert code == 2
    assert "input.where does not use :ds" in err


def test_a_night_begins_with_its_counts_and_says_figures_once(
    steps: Steps, config: Path, run: Command, monkeypatch: Any
):
    monkeypatch.setenv("COLUMNS", "400")
    recovery = Recovery(PriorRecovery(0.01, (Recovered(1, 0.2, 0.2),)), PriorRecovery(0.1, (Recovered(1, 0.3, None),)))
    report = replace(
        REPORT,
        quarantined={"null_text": 2, "over_record_budget": 1},
        refused={"over_record_budget": 5},
        withdrawn=4,
        recovery=recovery.to_dict(),
        epsilon_pure=REPORT.epsilon_bound,
    )
    manifest = {**MANIFEST, "records": 11, "exposes": ["edited"], "recovery": recovery.to_dict()}
    steps.ends["run"] = report
    steps.ends["publish_release"] = replace(PUBLISHED, document={**PUBLISHED.document, "manifest": manifest})
    _, out, _ = run("release", "night", "-c", config, *DAY)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert [cell[0] for cell in cells[:4]] == ["records", "refused", "withdrawn", "published"]
    assert cells[0][1].startswith("12 read; all")
    assert [cell[1] for cell in cells[1:4]] == ["7 (2 null_text, 5 over_record_budget)", "4", "11 records"]
    for said in ("epsilon", "words recovered", "rare words too", "exposes", "edited", "any_text"):
        assert out.count(said) == 1, said
    assert "12.5" in out
    steps.ends["gate_release"] = FAILED
    _, out, _ = run("release", "night", "-c", config, *DAY)
    assert "nothing: the gate did not pass" in out
    assert "unbounded for any two texts" not in out
    steps.ends["run"] = replace(report, epsilon_pure=None)
    assert "unbounded for any two texts" in run("release", "night", "-c", config, *DAY)[1]


def test_a_night_without_publication_ends_after_a_passed_gate(steps: Steps, config: Path, run: Command):
    code, out, _ = run("release", "night", "-c", config, *DAY, "--no-publish", "--json")
    assert code == 0
    assert steps.taken == ["run", "gate_release"]
    found = json.loads(out)
    assert (found["gate"]["passed"], found["publish"]) == (True, None)
    assert steps.given["skip_empty"] is False
    assert "nothing yet; the gate passed" in run("release", "night", "-c", config, *DAY, "--no-publish")[1]


def test_a_night_without_a_record_does_nothing_if_asked(steps: Steps, config: Path, run: Command, tmp_path: Path):
    steps.ends["run"] = EmptyInputError("input /lake/in: has no record with day = :day. Nothing was done.")
    report = tmp_path / "report.json"
    code, out, _ = run("release", "night", "-c", config, *DAY, "--skip-empty", "--json", "--report", report)
    assert (code, json.loads(out)) == (0, {"has_records": False})
    assert json.loads(report.read_text("utf-8"))["result"] == {"has_records": False}
    assert (steps.taken, steps.given["skip_empty"]) == (["run"], True)
    assert "has no record" in run("release", "night", "-c", config, *DAY, "--skip-empty")[2]


def test_a_parquet_output_has_no_night(workspace: Workspace, steps: Steps, run: Command):
    code, _, err = run("release", "night", "-c", workspace.write_config())
    assert code == 2
    assert "output.format" in err
    assert steps.taken == []
