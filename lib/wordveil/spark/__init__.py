"""The only room that knows Spark. For use in code: :func:`sanitise`, :func:`register` and :class:`Run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordveil.spark.sanitise.frames import register, sanitise
    from wordveil.spark.sanitise.run_log import Run

__all__ = ["Run", "register", "sanitise"]


def __getattr__(name: str) -> Any:
    """Load on first use: workers import this package too, and need neither configuration nor session."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wordveil.spark.sanitise import frames

    return getattr(frames, name)
