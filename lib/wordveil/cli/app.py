"""The command line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer import Option, Typer

from wordveil.cli.analytics import analytics
from wordveil.cli.audit import audits
from wordveil.cli.build import build
from wordveil.cli.calibrate import calibrate
from wordveil.cli.docs import docs
from wordveil.cli.evaluate import evaluations
from wordveil.cli.init import init
from wordveil.cli.key import keys
from wordveil.cli.ledger import ledger
from wordveil.cli.ngrams import ngrams
from wordveil.cli.options import terminate
from wordveil.cli.output import (
    accept_characters,
    print_error,
    print_json,
    print_text,
    print_traceback,
    print_usage_error,
)
from wordveil.cli.plan import plan
from wordveil.cli.quickstart import quickstart
from wordveil.cli.release import releases
from wordveil.cli.sanitise import sanitise
from wordveil.cli.train import train
from wordveil.cli.verify import verify
from wordveil.errors import ConfigError, GateError, RefutedError, WordveilError
from wordveil.version import __version__

app = Typer(
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
# To add a command, write its file and add a line here. `wordveil --help` lists commands in this order, then groups.
app.command()(quickstart)
app.command()(init)
app.command()(build)
app.command()(calibrate)
app.command()(plan)
app.command()(sanitise)
app.command()(verify)
app.command()(ledger)
app.command()(ngrams)
app.command()(train)
app.command()(analytics)
app.command()(docs)
app.add_typer(evaluations, name="evaluate")
app.add_typer(releases, name="release")
app.add_typer(keys, name="key")
app.add_typer(audits, name="audit")


# These take settings, which are checked as such, or text.
_NO_PLACES = frozenset({"--set", "--param", "--text", "--against", "--words", "--id", "--author", "--record"})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code: the entry point of the console script and of the jobs."""
    signal.signal(signal.SIGTERM, terminate)
    accept_characters()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        _refuse_credentials(arguments)
        code = app(args=list(arguments), standalone_mode=False)
    except WordveilError as error:
        _show_error(error, as_json="--json" in arguments)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - printed as Python prints it
        if not hasattr(error, "show"):
            print_traceback(error)
            sys.exit(1)
        print_usage_error(error)
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(code or 0)


def _refuse_credentials(arguments: Sequence[str]) -> None:
    """Raise :class:`ConfigError` for a path or URL with a credential: every list of processes shows it, and a command
    would print it.
    """
    from wordveil.config.credential_checks import check_location

    option = ""
    for word in arguments:
        if word.startswith("-"):
            option, _, word = word.partition("=")  # noqa: PLW2901
        if option not in _NO_PLACES:
            check_location(option or "argument", word)


def _show_error(error: WordveilError, *, as_json: bool) -> None:
    if as_json and isinstance(error, GateError | RefutedError):
        # The command has printed its own document, which says what failed. spark-submit writes both streams to its
        # standard output, where a second line would break the document.
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            return
        as_json = False
    if as_json:
        faults = [fault.__dict__ for fault in error.faults] if isinstance(error, ConfigError) else []
        print_json({"error": type(error).__name__, "message": str(error), "faults": faults}, indent=None)
    else:
        print_error(error)


@app.callback(invoke_without_command=True)
def version(*, show: Annotated[bool, Option("--version", help="Print the version and exit.")] = False) -> None:
    """Sanitise text corpora on Spark with metric differential privacy."""
    if show:
        print_text(f"{__version__}\n")
        raise typer.Exit
