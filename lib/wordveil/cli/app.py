"""The command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, cast

import typer
from typer import Option, Typer
from typer.core import TyperCommand, TyperGroup

from wordveil.cli.debug import start_debugging
from wordveil.cli.options import DebugOption, terminate
from wordveil.cli.output import accept_characters, print_text
from wordveil.cli.scaffold import exit_codes
from wordveil.version import __version__

# `wordveil --help` shows these panels in this order. To add a command, write its module and add its name here. The
# module has a function of that name, or a Typer `app` with several commands.
_PANELS = {
    "First steps": ("quickstart", "init", "docs"),
    "Prepare": ("key", "build", "calibrate", "plan", "ngrams", "train"),
    "Run": ("sanitise", "release", "ledger"),
    "Check": ("verify", "audit", "evaluate", "analytics"),
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}


@cache
def _load(name: str) -> TyperCommand | TyperGroup:
    panel = _PANEL_OF[name]
    module = import_module(f"wordveil.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        group = Typer(add_completion=False)
        group.command()(getattr(module, name))
    command = cast("TyperCommand | TyperGroup", typer.main.get_command(group))
    command.name, command.rich_help_panel = name, panel
    for each in (command, *getattr(command, "commands", {}).values()):
        each.rich_markup_mode = _MARKUP
    return command


class _CommandGroup(TyperGroup):
    """The group of all commands, each imported on first use."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("Any", dict.fromkeys(_PANEL_OF))  # for lists and suggestions of names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's own signature
        return _load(cmd_name) if cmd_name in _PANEL_OF else None


# Rich's own markup would take `[bundle]` for a style and drop it.
_MARKUP: Final = "markdown"
app = Typer(
    cls=_CommandGroup,
    rich_markup_mode=_MARKUP,
    help="Sanitise text corpora on Spark with metric differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=(
        "Exit codes: 0 success; 2 configuration; 3 gate not passed, or an audit refuted a guarantee; 4 input, "
        "embedding, bundle, n-gram model or generator; 5 key; 6 output exists; 7 Java, Spark or a package is missing; "
        "8 the Spark job failed; 9 release, ledger or budget; 1 any other error."
    ),
)


# These options take text, or settings, which have checks of their own.
_NO_PLACES = frozenset({"--set", "--param", "--text", "--against", "--words", "--id", "--author", "--record"})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code: the entry point of the console script and of the jobs."""
    signal.signal(signal.SIGTERM, terminate)
    accept_characters()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    with exit_codes(as_json="--json" in arguments):
        _refuse_credentials(arguments)
        code = app(args=list(arguments), standalone_mode=False)
    sys.exit(code or 0)


def _refuse_credentials(arguments: Sequence[str]) -> None:
    """Raise :class:`ConfigError` for a path or URL with a credential: process lists show arguments."""
    from wordveil.config.credential_checks import check_location

    option = ""
    for word in arguments:
        if word.startswith("-"):
            option, _, word = word.partition("=")  # noqa: PLW2901
        if option not in _NO_PLACES:
            check_location(option or "argument", word)


@app.callback(invoke_without_command=True)
def begin(
    *,
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
    debug: DebugOption = False,
) -> None:
    """Sanitise text corpora on Spark with metric differential privacy."""
    if debug:
        start_debugging()
    if version:
        print_text(f"{__version__}\n")
        raise typer.Exit
