"""Python objects named on a command line: ``module:name``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wordveil.errors import usage_error


def load_object(spec: str, where: str) -> Any:
    """Load the object that ``spec`` names, such as ``my_mechanism:sanitise`` or ``package.module:Class.method``. The
    module may lie in the current directory; importing it runs its code.

    Raises :class:`ConfigError`, which names the option ``where``, for any other name, a module that cannot be imported,
    and one that has no such object.
    """
    module, colon, name = spec.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise usage_error(
            where, spec, "expected module:name.", "For the function `f` of the file `mine.py` write mine:f."
        )
    with _current_directory():
        try:
            target: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            hint = "Run the command in the directory of the module, or install it."
            raise usage_error(where, spec, f"there is no module {error.name}.", hint) from error
        except Exception as error:
            raise usage_error(where, spec, f"importing {module} raised {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(target, part):
            raise usage_error(where, spec, f"{module} has no {name}.")
        target = getattr(target, part)
    return target


@contextmanager
def _current_directory() -> Iterator[None]:
    """Make modules of the current directory importable, after all that are installed."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)
