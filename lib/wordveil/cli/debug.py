"""The option ``--debug``: the log messages of this package on standard error."""

from __future__ import annotations

import logging
import platform
import traceback
from collections.abc import Iterator
from pathlib import Path

from wordveil.cli.output import tell
from wordveil.version import __version__

_PACKAGE = Path(__file__).parents[1]
_PACKAGE_LOGGER = logging.getLogger("wordveil")
_LOGGER = logging.getLogger(__name__)


class _PeopleHandler(logging.Handler):
    """Handler that prints messages for people."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        tell(self.format(record))


_HANDLER = _PeopleHandler()
_HANDLER.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))


def start_debugging() -> None:
    """Print the messages of all loggers of this package, until :func:`stop_debugging`."""
    if _HANDLER in _PACKAGE_LOGGER.handlers:
        return
    _PACKAGE_LOGGER.addHandler(_HANDLER)
    _PACKAGE_LOGGER.setLevel(logging.DEBUG)
    _LOGGER.debug("wordveil %s, Python %s, %s", __version__, platform.python_version(), platform.platform())


def stop_debugging() -> None:
    """Print no more messages."""
    _PACKAGE_LOGGER.removeHandler(_HANDLER)
    _PACKAGE_LOGGER.setLevel(logging.NOTSET)


def log_frames(error: BaseException) -> None:
    """Log where an error was raised, and each error behind it, without messages: these may quote a record."""
    if _LOGGER.isEnabledFor(logging.DEBUG):
        _LOGGER.debug("%s", "\n".join(_list_frames(error)))


def _list_frames(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{type(error).__name__} was raised in"
        for frame in traceback.extract_tb(error.__traceback__):
            if (file := Path(frame.filename)).is_relative_to(_PACKAGE):
                yield f"  {file.relative_to(_PACKAGE.parent)}:{frame.lineno} {frame.name}"
        error = error.__cause__ or error.__context__
