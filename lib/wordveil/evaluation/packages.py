"""Packages of the extra ``evaluation``, which are imported on first use."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wordveil.errors import PlatformError
from wordveil.scores.methods import WEIGHTED_BAG, find_model

INSTALL = "Install it with: pip install 'wordveil[evaluation]'"
_NAMES = {"sklearn": "scikit-learn"}


def load_package(module: str) -> Any:
    """Import a module of an optional package, such as ``sklearn.svm``.

    Raises :class:`PlatformError` if the package is not installed. An error inside an installed package passes
    unchanged.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise PlatformError(f"{_NAMES.get(package, package)} is not installed. {INSTALL}") from None


def require_packages(encoder: str = WEIGHTED_BAG) -> None:
    """Raise :class:`PlatformError` if a package of the extra is not installed, or that of the encoder."""
    if missing := [name for module, name in _NAMES.items() if find_spec(module) is None]:
        raise PlatformError(f"{', '.join(missing)}: not installed, and evaluations need it. {INSTALL}")
    require_encoder(encoder)


def require_encoder(name: str) -> None:
    """Raise :class:`PlatformError` if the package of a sentence encoder is not installed."""
    if find_model(name) and find_spec("sentence_transformers") is None:
        raise PlatformError(
            f"evaluation.encoder = {name}: needs the package sentence-transformers, which Python does not have here. "
            f"Run `pip install sentence-transformers`, or set {WEIGHTED_BAG}."
        )
