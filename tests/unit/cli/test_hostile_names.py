"""Names of others are data: whatever a table, a path or a command line holds is shown, and acts on nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.color import ColorSystem

from support.evaluations import make_evaluation
from support.hostile_texts import NAMES, show_on_terminal
from support.repository import LIB, MODULES
from support.workspaces import Command
from wordveil.cli import output
from wordveil.cli.evaluate import print_scores
from wordveil.errors import ConfigError, Fault, InputError
from wordveil.report.files import write_evaluation, write_scores
from wordveil.report.page import render_evaluation
from wordveil.report.values import show_cell
from wordveil.scores.evaluation import Evaluation

COSTS = {"spent": 1.5, "unbounded": False}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams are a terminal with colours on which no line is broken."""
    for console in (output.results, output.people):
        monkeypatch.setattr(console, "_force_terminal", True)
        monkeypatch.setattr(console, "is_interactive", True)
        monkeypatch.setattr(console, "_color_system", ColorSystem.STANDARD)
        monkeypatch.setattr(console, "_width", 20_000)


def rename(evaluation: Evaluation, name: str) -> Evaluation:
    """The evaluation with ``name`` for each subject, task, title, fact and note."""
    values = json.dumps(evaluation.to_dict())
    for old in ("Evaluation of support", "support", "release", "topic", "koppel", "ann", "Unknown words are copied."):
        values = values.replace(json.dumps(old), json.dumps(name))
    return Evaluation.from_dict(json.loads(values))


def show_table(name: str) -> None:
    output.print_grid(name, [([name, name],)], (name,))
    output.print_whole(name, [name])


def show_work(name: str) -> None:
    with output.show_status() as tell:
        tell(name)
    with output.show_bar(name, has_rest=True) as update:
        update(name, done=1, known=2, after=name)


def show_traceback(name: str) -> None:
    error = ValueError(name)
    error.__cause__ = KeyError(name)
    output.print_traceback(error)


SHOWN: dict[str, Callable[[str], None]] = {
    "facts": lambda name: output.print_table(name, {name: name, "files": [name, name]}, [name]),
    "line": output.print_line,
    "table": show_table,
    "scores": lambda name: print_scores(rename(make_evaluation(), name)),
    "work": show_work,
}


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
def test_a_name_is_shown_and_does_nothing(show: Callable[[str], None], capsys: pytest.CaptureFixture[str]):
    for name, shown in NAMES.items():
        show(name)
        assert shown in "".join(map(show_on_terminal, capsys.readouterr()))


TOLD: dict[str, Callable[[str], None]] = {
    "note": output.print_note,
    "error": lambda name: output.print_error(InputError(f"--table = {name}: is no table.")),
    "faults": lambda name: output.print_error(ConfigError(name, [Fault(name, name, "is wrong.", name)])),
    "traceback": show_traceback,
}


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("show", TOLD.values(), ids=TOLD)
def test_a_message_with_a_name_keeps_its_lines(show: Callable[[str], None], capsys: pytest.CaptureFixture[str]):
    """Messages may have several lines, so a name's line break stays one: its second line never looks like a message."""
    for name, shown in NAMES.items():
        show(name)
        lines = show_on_terminal(capsys.readouterr().err).splitlines()
        assert all(any(part in line for line in lines) for part in shown.split(r"\n"))
        assert "wordveil: done" not in [line[:14] for line in lines]


def say(run: Command, *arguments: object) -> str:
    code, out, err = run(*arguments)
    assert code == 2
    return show_on_terminal(out + err)


@pytest.mark.usefixtures("terminal")
def test_a_command_line_with_names_is_refused_with_them(run: Command, tmp_path: Path):
    for name, whole in NAMES.items():
        shown = whole.partition(r"\n")[0]
        assert shown in say(run, f"plan{name}")
        assert shown in say(run, "ledger", "--by", name)
        assert shown in say(run, "docs", name)
        assert shown.replace("/", "-") in say(run, "plan", "--config", tmp_path / name.replace("/", "-"))
        say(run, "plan", f"--no{name}")


def test_json_is_exact_and_in_ascii(run: Command, capsys: pytest.CaptureFixture[str]):
    rows = [{"author": name, **COSTS} for name in (*NAMES, "\udc80")]
    for write in (lambda: output.print_json({"rows": rows}), lambda: output.print_json_rows(iter(rows))):
        write()
        out = capsys.readouterr().out
        assert show_on_terminal(out).isascii()
        found = json.loads(out)
        assert (found["rows"] if isinstance(found, dict) else found) == rows
    output.print_json_rows(iter([]))
    assert json.loads(capsys.readouterr().out) == []
    assert run("docs", "\x9b", "--json")[1].isascii()


CELLS = {
    '=HYPERLINK("x")': '\'=HYPERLINK("x")',
    "+1": "'+1",
    "-1": "'-1",
    "@SUM(A1)": "'@SUM(A1)",
    "\uff1d1": "'\uff1d1",
    " =1": "' =1",
    "'=1": "''=1",
    "\t=1": r"\t=1",
    "\r=1": r"\r=1",
    "a=1": "a=1",
    "": "",
}


def test_spreadsheets_execute_no_cell(capsys: pytest.CaptureFixture[str]):
    rows = [{"author": name, "spent": -1.5} for name in (*CELLS, *NAMES)]
    output.print_csv_rows(iter(rows), list(rows[0]))
    out = show_on_terminal(capsys.readouterr().out)
    read = list(csv.DictReader(io.StringIO(out)))
    assert len(out.splitlines()) == len(read) + 1, "a row a line"
    assert [row["author"] for row in read] == [*CELLS.values(), *map(show_cell, NAMES)]
    assert {row["spent"] for row in read} == {"-1.5"}, "numbers stay numbers"
    scores = write_scores(rename(make_evaluation(), "=1"))
    assert {row["task"] for row in csv.DictReader(io.StringIO(scores))} >= {"'=1", "authors"}


def test_pages_and_their_pictures_show_names(tmp_path: Path):
    name = "<b>\u202e\x1b"
    write_evaluation(rename(make_evaluation(), name), tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert not set(page) & set(name[3:])
    assert "<title>" in page
    assert r"&lt;b&gt;\u202e\x1b" in page
    assert "<b>" not in page
    lines = rename(make_evaluation(), "first\nsecond")
    assert "first\nsecond" in render_evaluation(lines), "line breaks act on no page"


# Whatever could print around the one module that shows values; a pipe that is named may be written to.
PRINTS = re.compile(
    r"^\s*print\((?!.*file=)|\bsys\.(__)?std(out|err)|^\s*(from|import) rich\b|\.s?echo\("
    r"|from wordveil\.cli\.output import (\([^)]*|.*)\b(people|results)\b",
    re.MULTILINE,
)
PRINTER = LIB / "cli" / "output.py"


def test_one_module_prints():
    sources = {path: path.read_text("utf-8") for path in MODULES}
    assert [path for path, source in sources.items() if PRINTS.search(source)] == [PRINTER]
    imports = ("from rich.table import Table", "import rich.console", "from wordveil.cli.output import results")
    for code in ("print(author)", "import sys\nsys.stderr.write(author)", "import typer\ntyper.echo(author)", *imports):
        assert PRINTS.search(code), code
