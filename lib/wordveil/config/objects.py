"""Python objects that a command line names: ``module:name``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wordveil.errors import ConfigError, usage_error


def load_object(spec: str, where: str) -> Any:
    """The object that ``module:name`` names. The module may lie in the current directory; importing it runs its code.

    Parameters
    ----------
    spec
        such as ``my_mechanism:sanitise`` or ``package.module:Class.method``.
    where
        the option that it was given for, for messages.

    Raises
    ------
    ConfigError
        where that is no such name, the module cannot be imported, or it has no such object.
    """
    module, colon, name = spec.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise _fault(where, spec, "expected module:name.", "For the function `f` of the file `mine.py` write mine:f.")
    with _current_directory():
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            hint = "Run the command in the directory of the module, or install it."
            raise _fault(where, spec, f"there is no module {error.name}.", hint) from error
        except Exception as error:
            raise _fault(where, spec, f"importing {module} raised {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise _fault(where, spec, f"{module} has no {name}.")
        found = getattr(found, part)
    return found


@contextmanager
def _current_directory() -> Iterator[None]:
    """Modules of the current directory can be imported, after all that are installed."""
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _fault(where: str, spec: str, problem: str, hint: str = "") -> ConfigError:
    return usage_error(where, spec, problem, hint)
