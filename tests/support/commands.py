"""Commands called in this process, held to what every command promises of its output."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from support.hostile_texts import show_on_terminal
from support.workspaces import KEY
from wordveil.cli.app import app, main


@contextlib.contextmanager
def keep_signals() -> Iterator[None]:
    """Commands handle signals as a process of their own does: have them handled as before afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def list_commands(group: TyperGroup, option: str, *path: str) -> Iterator[str]:
    """The names of all commands that have the option, groups' names before them. A group may be a command too."""
    for name, command in group.commands.items():
        if any(option in parameter.opts for parameter in command.params):
            yield " ".join([*path, name])
        if isinstance(command, TyperGroup):
            yield from list_commands(command, option, *path, name)


@cache
def wordveil_group() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    group.commands = {name: group.get_command(None, name) for name in group.commands}
    return group


def run_page(page: Path, names: dict[str, Any], call: Commands) -> None:
    """Run the blocks of Python and the commands of a document, from top to bottom. ``names``: what its code finds."""
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"python", "bash"}
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(page), "exec"), names)  # noqa: S102
            continue
        for line in block.splitlines():
            call(*shlex.split(line)[1:])


class Commands:
    """Calls commands in the session that is there, with ``--report`` where a command has it.

    The key is never printed, nor anything that acts on a terminal. A report holds the exit code, and the result or the
    error. With :meth:`read`, standard output holds one JSON document and nothing else, whatever libraries print on the
    file descriptor, and the report has the same.
    """

    def __init__(self, capture: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capture = capture
        self._report = folder / "report.json"
        self._reporting = set(list_commands(wordveil_group(), "--report"))
        self.read_as_json: set[str] = set()

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]:
        """Standard output and standard error of a command that exits with ``code``."""
        words = [*map(str, arguments)]
        name = self._name(words)
        has_report = name in self._reporting
        self._capture.readouterr()
        with pytest.raises(SystemExit) as left:
            main([*words, *(["--report", str(self._report)] if has_report else [])])
        out, err = self._capture.readouterr()
        assert (left.value.code or 0) == code, (words, out, err)
        assert KEY not in out + err
        show_on_terminal(out + err)
        if has_report:
            assert [path.name for path in self._report.parent.iterdir()] == [self._report.name], "no draft is left"
            assert stat.S_IMODE(self._report.stat().st_mode) == 0o600
            report = self.report()
            assert (report["command"], report["exit_code"], "error" in report) == (name, code, code != 0)
        return out, err

    def read(self, *arguments: object, code: int = 0) -> Any:
        """The document that the command prints."""
        document = json.loads(self(*arguments, "--json", code=code)[0])
        name = self._name([*map(str, arguments)])
        if name in self._reporting:
            report = self.report()
            if "message" in document:
                assert (document["error"], document["message"]) == (report["error"]["type"], report["error"]["message"])
            else:
                assert document == report["result"]
        self.read_as_json.add(name)
        return document

    def report(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._report.read_text("utf-8"))
        return content

    @staticmethod
    def _name(words: list[str]) -> str:
        command = wordveil_group().commands[words[0]]
        return " ".join(words[:2] if isinstance(command, TyperGroup) and words[1] in command.commands else words[:1])
