"""Packages of the extra ``er-ae``: checked before a module imports them."""

from __future__ import annotations

from importlib.util import find_spec

from wordveil.errors import PlatformError

INSTALL = "Install them with: pip install 'wordveil[er-ae]'"
_NAMES = {"jax": "JAX", "flax": "Flax", "optax": "Optax"}


def find_missing() -> list[str]:
    """List the packages of the extra that are not installed."""
    return [name for module, name in _NAMES.items() if find_spec(module) is None]


def require_packages() -> None:
    """Raise :class:`PlatformError` if a package of the extra is not installed."""
    if missing := find_missing():
        raise PlatformError(f"{', '.join(missing)}: not installed, and the training of generators needs it. {INSTALL}")
