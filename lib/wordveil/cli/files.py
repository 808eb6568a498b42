"""Files of ``--report`` and ``--html``.

A report is a command's result or error as JSON, for the scheduler that started it. Standard output is for people and
pipes: under spark-submit it is mixed with other lines, and in cluster mode both it and the exit code stay on the
cluster. The report is written atomically when the command ends, and contains both.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlparse

from typer import Option

from wordveil.cli.output import print_error
from wordveil.errors import ConfigError, OutputExistsError, WordveilError, usage_error

ReportOption = Annotated[
    str | None,
    Option(
        "--report",
        metavar="PATH",
        rich_help_panel="Output",
        help="Also write the result, or the error, as JSON to this file, and replace an existing one.",
    ),
]
HtmlOption = Annotated[
    str | None,
    Option(
        "--html",
        metavar="FILE",
        rich_help_panel="Output",
        help="Also write the result as a page for people, one file without outside parts. It must not exist yet.",
    ),
]
_DRAFT = ".wordveil-draft"


@contextmanager
def write_report(command: str, path: str | None) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write the file at ``path`` when the body ends, even by an error.

    The body passes its result, if it has one, to the yielded function. Raises :class:`ConfigError`, if possible before
    the body, for a path that cannot be written.
    """
    document: dict[str, Any] = {"command": command, "exit_code": 0}
    if path is None:
        yield lambda _: None
        return
    if (local := local_path(path)) is not None:
        with writing("--report", path):
            draft = _draft_of(local)
    try:
        yield lambda result: document.update(result=dict(result))
    except BaseException as error:
        document |= _failure(error)
        try:
            _write(path, local and draft, local, document)
        except ConfigError as fault:  # the first error counts
            print_error(fault)
        raise
    _write(path, local and draft, local, document)


def local_path(path: str) -> Path | None:
    """Return the path on this machine; None for a path on another file system, which Spark reaches."""
    parts = urlparse(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) else Path(path)


def _failure(error: BaseException) -> dict[str, Any]:
    """Describe why a command failed.

    An error that the user did not cause has only its kind: its message may quote a record.
    """
    message, faults = "", list[dict[str, Any]]()
    code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
    if isinstance(error, WordveilError):
        code, message, faults = error.exit_code, str(error), [vars(fault) for fault in error.faults]
    return {"exit_code": code, "error": {"type": type(error).__name__, "message": message, "faults": faults}}


def _draft_of(path: Path) -> Path:
    """Make an empty file beside ``path`` for its owner alone, and delete the report of an earlier run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}{_DRAFT}-{secrets.token_hex(4)}")
    draft.touch(0o600, exist_ok=False)
    try:
        path.unlink(missing_ok=True)
    except OSError:
        draft.unlink()
        raise
    return draft


def _write(path: str, draft: Path | None, local: Path | None, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=1)
    if local is None:
        from wordveil.spark.platform.filesystem import replace_file

        replace_file(path, text)
        return
    assert draft is not None
    with writing("--report", path):
        try:
            draft.write_text(text, "utf-8")
            draft.replace(local)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def writing(option: str, path: str) -> Iterator[None]:
    """Turn an error of the file system into a :class:`ConfigError` that names the option and its file."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror}. Name a file in a directory that you may write to."
        raise usage_error(option, path, problem) from None


def check_page(file: str, option: str = "--html") -> Path:
    """Return the path of a page that ``option`` names, if it can be written there and replaces nothing."""
    path = local_path(file)
    if path is None:
        problem = "is on another file system. Name a file on this machine, and copy it from there."
        raise usage_error(option, file, problem)
    if path.exists() or path.is_symlink():
        raise _existing(path, option)
    with writing(option, file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600, exist_ok=False)
        path.unlink()
    return path


def save_page(path: Path, page: str, option: str = "--html") -> None:
    """Write a page that only its owner can read. Raises as :func:`check_page`."""
    with writing(option, str(path)):
        try:
            path.touch(0o600, exist_ok=False)
        except FileExistsError:
            raise _existing(path, option) from None
        path.write_text(page, "utf-8")


def _existing(path: Path, option: str) -> OutputExistsError:
    return OutputExistsError(
        f"{option} = {path}: already exists, and nothing was done. Name another file, or delete it."
    )
