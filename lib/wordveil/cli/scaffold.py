"""The frame of every command: shared options, configuration, session, output, report, errors and exit codes.

A command is a function of a :class:`Call` and of its own options that returns a :class:`Result`. :func:`command` adds
the options that commands share, and handles them.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar

import typer
from typer import Context

from wordveil.cli import output
from wordveil.cli.debug import log_frames, start_debugging, stop_debugging
from wordveil.cli.files import HtmlOption, ReportOption, check_page, save_page, write_report
from wordveil.cli.options import ConfigOption, DebugOption, JsonOption, ParamOption, SetOption, prepare_session
from wordveil.errors import GateError, RefutedError, WordveilError

if TYPE_CHECKING:
    from wordveil.config.load import Config

Output = TypeVar("Output")
_LOGGER = logging.getLogger(__name__)
PAGE_NOTE = "the page is for the people who may see the corpus. It holds no record, but figures that are internal."


@dataclass(frozen=True)
class Result:
    """Result of a command: ``document`` for ``--json`` and ``--report``, and ``show``, which prints it for people.

    ``failure`` is raised once the result is shown; the report has both.
    """

    document: Mapping[str, Any]
    show: Callable[[], None]
    failure: WordveilError | None = None

    @classmethod
    def of(
        cls, title: str, document: Mapping[str, Any], facts: Mapping[str, Any] | None = None, notes: Sequence[str] = ()
    ) -> Result:
        """Return a result that is shown as a table of ``facts``, by default the document's, with notes below it."""
        shown = {name.replace("_", " "): value for name, value in (document if facts is None else facts).items()}
        return cls(document, partial(output.print_table, title, shown, notes))


class Call:
    """Call of a command, with the values of the shared options.

    ``config`` is there if the command declares how it is read. ``tell`` stores what the report holds if the command
    fails. ``page`` is the path of ``--html``, ``params`` the values of ``--param``.
    """

    config: Config

    def __init__(
        self, context: Context, tell: Callable[[Mapping[str, Any]], None], page: Path | None, *, as_json: bool
    ) -> None:
        self.context = context
        self.tell = tell
        self.page = page
        self.as_json = as_json
        self.params: Mapping[str, str] = {}

    def do(self, step: Callable[..., Output], taken: object, *, is_short: bool = False, **options: Any) -> Output:
        """Do a step of a release in a session of its own, and show its stages. ``taken``: what it takes."""
        with output.show_status() as progress:
            return step(taken, prepare_session(self.config, is_short=is_short), progress=progress, **options)

    def work(self, step: Callable[..., Output], *given: object, **options: Any) -> Output:
        """Do a step of the configuration in its session, and show its stages and Spark's tasks."""
        with output.show_progress() as (progress, tasks):
            session = prepare_session(self.config)
            return step(self.config, session, *given, progress=progress, tasks=tasks, **options)

    def save_page(self, page: str, note: str | None = PAGE_NOTE) -> None:
        """Write the page of ``--html``, and print its path with a note, if any."""
        assert self.page is not None
        save_page(self.page, page)
        if note:
            output.print_note(f"{self.page}: {note}")


def command(
    read: Callable[[Path, Sequence[str] | None], Config] | None = None,
    *,
    params: bool = False,
    report: bool = False,
    html: bool = False,
) -> Callable[[Callable[Concatenate[Call, ...], Result | None]], Callable[..., None]]:
    """Make a command of a function. It gets ``--json``, and the shared options that the arguments name.

    ``read``: the function that reads the file of ``--config`` with the settings of ``--set``.
    """
    before = {"config": (ConfigOption, Parameter.empty), "overrides": (SetOption, None)} if read else {}
    before |= {"params": (ParamOption, None)} if params else {}
    after = {"as_json": (JsonOption, False), **({"report": (ReportOption, None)} if report else {})}
    after |= {"html": (HtmlOption, None)} if html else {}
    after |= {"debug": (DebugOption, False)}
    shared = {**before, **after}

    def decorate(work: Callable[Concatenate[Call, ...], Result | None]) -> Callable[..., None]:
        @wraps(work)
        def run(context: Context, **values: Any) -> None:
            given = {name: values.pop(name, default) for name, (_, default) in shared.items()}
            if given["debug"]:
                start_debugging()
            as_json = given["as_json"]
            name = context.command_path.removeprefix(context.find_root().command_path).strip()
            _LOGGER.debug("command %s", name)
            with write_report(name, given.get("report")) as tell:
                page = check_page(given["html"]) if given.get("html") else None
                call = Call(context, tell, page, as_json=as_json)
                if read:
                    call.config = read(given["config"], given["overrides"])
                if params:
                    from wordveil.input.parameters import parse_params

                    call.params = parse_params(given["params"] or ())
                result = work(call, **values)
                if result is None:
                    return
                tell(result.document)
                if result.failure:
                    _show(result, as_json=as_json)
                    raise result.failure
            _show(result, as_json=as_json)

        _, *own = inspect.signature(work, eval_str=True).parameters.values()
        options = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=Context), *_parameters(before)]
        options += [*(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *_parameters(after)]
        run.__signature__ = Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in options}
        return run

    return decorate


def _parameters(options: Mapping[str, tuple[Any, Any]]) -> list[Parameter]:
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in options.items()
    ]


def _show(result: Result, *, as_json: bool) -> None:
    if as_json:
        output.print_json(result.document)
    else:
        result.show()


@contextmanager
def exit_codes(*, as_json: bool) -> Iterator[None]:
    """Show an error and exit with its code."""
    try:
        yield
    except WordveilError as error:
        log_frames(error)
        _show_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - printed as Python prints it
        if not hasattr(error, "show"):
            output.print_traceback(error)
            sys.exit(1)
        output.print_usage_error(error)
        sys.exit(getattr(error, "exit_code", 2))
    finally:
        stop_debugging()


def _show_error(error: WordveilError, *, as_json: bool) -> None:
    if as_json and isinstance(error, GateError | RefutedError):
        # The command has printed its own document with the failure. spark-submit writes both streams to its standard
        # output, where a second line would break the document.
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            return
        as_json = False
    if as_json:
        faults = [vars(fault) for fault in error.faults]
        output.print_json({"error": type(error).__name__, "message": str(error), "faults": faults}, indent=None)
    else:
        output.print_error(error)
