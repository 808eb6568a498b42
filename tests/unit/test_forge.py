"""Workflows call make's targets on each Python with pinned actions; hooks, constraints and decisions are sound."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.repository import ROOT

WORKFLOWS = {path.stem: path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").iterdir()}
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))


def runs(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a workflow, with the Python that it has, for each row of its job's matrix."""
    for job in yaml.safe_load(text)["jobs"].values():
        for row in job.get("strategy", {}).get("matrix", {}).get("include", [{}]):
            steps = yaml.safe_dump(job["steps"])
            for name, value in row.items():
                steps = steps.replace(f"${{{{ matrix.{name} }}}}", str(value))
            python = re.search(r"python-version: '?([\d.]+)", steps)
            for step in yaml.safe_load(steps):
                if "run" in step:
                    yield step["run"], python[1] if python else ""


def faults(text: str) -> list[str]:
    """Commands that are not targets, actions that are not pinned, and jobs without limits."""
    workflow: dict[Any, Any] = yaml.safe_load(text)
    commands, actions = {run for run, _ in runs(text)}, re.findall(r"uses: (.+)", text)
    found = [run for run in commands if not re.fullmatch(r"make( [a-z-]+)+", run) or {*run.split()[1:]} - TARGETS]
    found += [use for use in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)]
    found += [f"{name} has no timeout" for name, job in workflow["jobs"].items() if "timeout-minutes" not in job]
    found += [f"{name} has permissions" for name, job in workflow["jobs"].items() if "permissions" in job]
    if workflow.get("permissions") != {"contents": "read"} or "concurrency" not in workflow:
        found.append("permissions or concurrency")
    return found


@pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)
def test_workflows_call_targets_with_pinned_actions(text):
    assert list(runs(text))
    assert faults(text) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("run: make test-newest", "run: pip install wordveil"),
        ("run: make test-newest", "run: make test-newest && echo done"),
        ("run: make test-newest", "run: make test-of-tomorrow"),
        (r"(checkout)@\w+ #", r"\1@v7.0.1 #"),
        (r"(checkout@\w+) # v7.0.1", r"\1"),
        (r" *timeout-minutes: \d+\n", ""),
        ("contents: read", "contents: write"),
    ],
)
def test_faults_of_workflows_are_seen(old, new):
    assert len(faults(re.sub(old, new, WORKFLOWS["canary"], count=1))) == 1


def test_each_python_is_tested_on_each_change_and_daily():
    pythons = [name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    oldest, newest = pythons[0], pythons[-1]
    assert PROJECT["requires-python"] == f">={oldest}"
    for target in ("quickstart", "test-fast"):
        assert {python for run, python in runs(WORKFLOWS["check"]) if run == f"make {target}"} == set(pythons)
    others = {("test", newest), ("release", newest), ("test-oldest", oldest), ("check-import", oldest)}
    assert {(f"make {target}", python) for target, python in others} <= set(runs(WORKFLOWS["check"]))
    daily = {("make test-newest", oldest), ("make test-newest", newest), ("make test-spark-versions", oldest)}
    assert daily == set(runs(WORKFLOWS["canary"]))
    when = {name: yaml.safe_load(text)[True] for name, text in WORKFLOWS.items()}  # YAML 1.1 reads "on" as true
    assert {"push", "pull_request"} <= set(when["check"])
    assert re.fullmatch(r"\d+ \d+ \* \* \*", when["canary"]["schedule"][0]["cron"])


def pins(name: str) -> dict[str, str]:
    lines = [line.split("==") for line in (ROOT / name).read_text("utf-8").splitlines() if "==" in line]
    return {canonicalize_name(package): version for package, version in lines}


def test_constraints_are_the_lower_bounds_and_have_all_tools():
    extras = PROJECT["optional-dependencies"]
    untested = {"dev", "docs", "lists", "release", "er-ae-cuda", "sentence-transformers"}
    needed = [*PROJECT["dependencies"], *(one for extra in set(extras) - untested for one in extras[extra])]
    oldest = pins("constraints-oldest.txt")
    for requirement in map(Requirement, needed):
        bounds = [bound.version for bound in requirement.specifier if bound.operator in (">=", "==")]
        version = oldest[canonicalize_name(requirement.name)]
        assert f"{version}.0.0".startswith(f"{bounds[0]}.") or f"{version}." == f"{bounds[0]}.", requirement
    assert {canonicalize_name(Requirement(one).name) for one in extras["dev"]} <= set(pins("constraints.txt"))


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the hooks say of a commit with a fault for each."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    place = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "scripts", place / "scripts")
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, place)
    (place / "a.py").write_text("import os\nx = {'a' :1}\n")
    (place / "hosts.txt").write_text("--index" + "-url somewhere\n")
    (place / "words.md").write_text("It is " + "tyop" + "graphy, and seperate" + "ly so.\n")
    (place / "large.bin").write_bytes(bytes(600_000))
    (place / "lib" / "wordveil" / "data").mkdir(parents=True)
    (place / "lib" / "wordveil" / "data" / "large.bin").write_bytes(bytes(600_000))
    environment = {**os.environ, "VENV": sys.prefix, "PRE_COMMIT_HOME": str(place / "cache")}
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=place, check=True)
    command = [sys.executable, "-m", "pre_commit", "run", "--color=never"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def list_hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    return repository["hooks"]


@pytest.mark.parametrize(
    ("hook", "fault"),
    [
        ("format", "a.py"),
        ("ruff", "F401"),
        ("spelling", "words.md:1: "),
        ("large-files", "large.bin (586 KB) exceeds 500 KB"),
        ("hosts", "hosts.txt:1:"),
    ],
)
def test_hooks_find_faults(committed, hook, fault):
    hooks = [hook["id"] for hook in list_hooks() if "stages" not in hook]
    said = dict(zip(hooks, re.split(r"\n(?=[^\n]*\.{3,}(?:Passed|Failed))", committed), strict=True))
    assert "Failed" in said[hook]
    assert fault in said[hook]
    assert "lib/wordveil/data" not in committed


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        ("release: count post-images\n\nBecause.\n", True),
        ("fixup! release: count post-images\n", True),
        (f"release: {'a' * 64}\n", False),
        ("Post-images are counted\n", False),
        ("release post-images\n\nrelease: count them\n", False),
    ],
)
def test_the_hook_of_subjects_refuses_others(message: str, passes: bool):
    (hook,) = (hook for hook in list_hooks() if hook["id"] == "subject")
    assert hook["args"] == ["--negate", "--multiline"]
    assert bool(re.search(hook["entry"], message, re.MULTILINE | re.DOTALL)) == passes


def test_decisions_have_a_status_and_a_date():
    for path in ADRS:
        title, blank, line, *_ = path.read_text("utf-8").splitlines()
        assert (title.startswith(f"# {path.name[:4]}: "), blank) == (True, ""), path
        assert re.fullmatch(r"Status: (accepted|superseded by \[\d{4}\]\(\S+\))\. Date: \d{4}-\d\d-\d\d\.", line), path
