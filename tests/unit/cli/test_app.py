"""The command line lists its commands without loading what they need, and each of them explains itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from support.commands import wordveil_group
from support.repository import ROOT
from wordveil.cli.app import app
from wordveil.errors import ConfigError, ReleaseError

GROUP = wordveil_group()
COMMANDS = [
    *("quickstart", "init", "docs", "key", "build", "calibrate", "plan", "ngrams", "train"),
    *("sanitise", "release", "ledger", "verify", "audit", "evaluate", "analytics"),
]
GROUPS = [["evaluate"], ["release"], ["key"], ["audit"]]
PATHS = [[name] for name in COMMANDS] + [
    [*path, inner] for path in GROUPS for inner in GROUP.commands[path[0]].commands
]


def find_command(path: list[str]) -> TyperCommand | TyperGroup:
    command = GROUP
    for name in path:
        command = command.commands[name]
    return command


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_each_command_explains_itself(path: list[str]):
    assert CliRunner().invoke(app, [*path, "--help"]).exit_code == 0
    command = find_command(path)
    assert command.help
    assert [one.name for one in command.params if one.name != "help" and not getattr(one, "help", "")] == []


@pytest.mark.parametrize("path", [path for path in PATHS if path[0] == "evaluate" or path not in GROUPS], ids=" ".join)
def test_each_command_has_an_example_that_parses(path: list[str]):
    command = find_command(path)
    example = re.search(r"Example: `wordveil (.*)`$", command.help)
    assert example
    words = shlex.split(example[1])
    command.make_context(path[-1], words[words.index(path[-1]) + 1 :])


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


def test_analytics_every_without_over_is_refused():
    result = CliRunner().invoke(app, ["analytics", "--table", "t", "--output", "o", "--every", "week"])
    assert isinstance(result.exception, ConfigError)
    assert "--every = week: needs --over COLUMN" in str(result.exception)


def test_every_job_hands_over_to_a_command():
    for job in sorted((ROOT / "jobs").glob("*.py")):
        assert job.stem in COMMANDS
        assert f'"{job.stem}"' in job.read_text("utf-8")


def test_help_of_all_commands_loads_nothing_heavy():
    banned = ("gensim", "numba", "numpy", "pandas", "pyarrow", "pyspark", "scipy", "sklearn", "yaml")
    code = (
        "import sys; from typer.testing import CliRunner; from wordveil.cli.app import app; "
        "assert 'analytics' in CliRunner().invoke(app, ['--help']).stdout; "
        f"print(*sorted({{name.split('.')[0] for name in sys.modules}} & {{*{banned!r}}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_command_loads_no_other():
    code = (
        "import sys; from typer.testing import CliRunner; from wordveil.cli.app import app; "
        "CliRunner().invoke(app, ['docs']); print(*(name for name in sys.modules if name.startswith('wordveil.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("wordveil.cli.") for name in done.stdout.split()}
    assert "docs" in loaded
    assert loaded & {*COMMANDS} == {"docs"}
