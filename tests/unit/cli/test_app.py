"""The command line lists its commands without loading what they need, and each of them explains itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.commands import wordveil_group
from support.repository import ROOT
from wordveil.cli.app import app
from wordveil.errors import ReleaseError

GROUP = wordveil_group()
COMMANDS = [
    *("quickstart", "init", "build", "calibrate", "plan", "sanitise", "verify", "ledger"),
    *("ngrams", "train", "analytics", "docs", "evaluate", "release", "key", "audit"),
]
PATHS = [[name] for name in COMMANDS] + [
    [name, inner] for name in ("evaluate", "release", "key", "audit") for inner in GROUP.commands[name].commands
]


def test_the_commands_are_listed_in_the_order_of_their_use():
    assert list(GROUP.commands) == COMMANDS


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_each_command_explains_itself(path: list[str]):
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    command = GROUP
    for name in path:
        command = command.commands[name]
    assert command.help
    assert all(getattr(parameter, "help", "") for parameter in command.params if parameter.name != "help"), [
        parameter.name for parameter in command.params if not getattr(parameter, "help", "")
    ]


@pytest.mark.parametrize(
    ("arguments", "reader"),
    [
        (["ledger", "--ledger", "some"], "wordveil.spark.release.ledger_report.read_ledger"),
        (["verify", "--on-spark", "--table", "some"], "wordveil.spark.release.verify.verify_by_spark"),
        (["ngrams", "--input", "some", "--text", "t", "-o", "m", "--public"], "wordveil.spark.input.inspect.open_path"),
        (["analytics", "--table", "some", "--output", "tables"], "wordveil.spark.analytics.analyse"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_spark_gets_absolute_paths(arguments: list[str], reader: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Hadoop has a working directory of its own."""
    given: list[str] = []

    def stop(_: object, place: str, *__: object, **___: object) -> None:
        given.append(place)
        raise ReleaseError("stopped")

    monkeypatch.setattr(reader, stop)
    monkeypatch.setattr(f"wordveil.cli.{arguments[0]}.prepare_plain_session", lambda *_, **__: lambda: None)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, arguments)
    assert given == [str(tmp_path / "some")]


def test_every_job_hands_over_to_a_command():
    for job in sorted((ROOT / "jobs").glob("*.py")):
        assert job.stem in COMMANDS
        assert f'"{job.stem}"' in job.read_text("utf-8")


def test_a_module_is_named_after_its_command():
    folder = ROOT / "lib" / "wordveil" / "cli"
    assert all((folder / f"{name}.py").is_file() for name in COMMANDS)


def test_help_loads_nothing_heavy():
    banned = ("gensim", "numba", "pandas", "pydantic", "pyspark", "scipy", "sklearn")
    loaded = "{name.split('.')[0] for name in sys.modules}"
    code = f"import sys, wordveil.cli.app; print(*sorted({loaded} & {{*{banned!r}}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
