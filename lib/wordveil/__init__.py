"""Sanitise text corpora on Spark with metric differential privacy, and record what each record cost.

The public names are those in ``__all__``; :mod:`wordveil.errors` lists their errors. Everything else in the package is
internal and may change with any version. A name is loaded on first use: Spark's workers import this package too, and
need neither the configuration nor a session.
"""

from typing import TYPE_CHECKING, Any

from wordveil.version import __version__

if TYPE_CHECKING:
    from wordveil.api import (
        Run,
        WordveilError,
        build_bundle,
        load_config,
        make_plan,
        open_bundle,
        read_ledger,
        register,
        run_job,
        sanitise,
        start_session,
    )

__all__ = [
    "Run",
    "WordveilError",
    "__version__",
    "build_bundle",
    "load_config",
    "make_plan",
    "open_bundle",
    "read_ledger",
    "register",
    "run_job",
    "sanitise",
    "start_session",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wordveil import api

    globals()[name] = value = getattr(api, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
