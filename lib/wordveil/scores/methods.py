"""Registry of attackers on authors and of tasks on texts, and the names of sentence encoders.

A new method of this package needs a file, and a line here, which imports nothing. Another package registers its own in
the entry-point group ``wordveil.attackers`` or ``wordveil.tasks``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from wordveil.errors import PlatformError
from wordveil.plugins import Registry

Make = Callable[[], Any]
"""Factory of a :class:`wordveil.evaluation.classifiers.TextClassifier`."""


class Method:
    """Path ``module:class`` of a classifier, imported when it is made, with settings that differ from its defaults."""

    def __init__(self, path: str, **settings: Any) -> None:
        self.path, self.settings = path, settings

    def __call__(self) -> Any:
        """Make the classifier."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)(**self.settings)


def find_fault(name: str, make: Any) -> str:
    """Explain why an installed package's object cannot make the method of this name; empty if it can."""
    if not callable(make):
        return "makes no method: it is neither a class nor a function."
    found = getattr(make(), "name", None)
    return "" if found == name else f"calls itself {found}. Give both one name."


_ATTACKERS: dict[str, Make] = {
    "svm-characters": Method("wordveil.evaluation.linear:LinearSvm"),
    "svm-words": Method("wordveil.evaluation.linear:LinearSvm", unit="words"),
}
AUTHOR_ATTACKS = Registry("wordveil.attackers", _ATTACKERS, find_fault)
"""Attackers that name authors, by their names (:attr:`wordveil.evaluation.classifiers.TextClassifier.name`)."""

_TASKS: dict[str, Make] = {
    "linear-words": Method("wordveil.evaluation.linear:LinearWords"),
    "logistic-words": Method("wordveil.evaluation.linear:LinearWords", model="logistic"),
}
TEXT_TASKS = Registry("wordveil.tasks", _TASKS, find_fault)
"""Classifiers of topics, sentiments and intents, by their names."""

WEIGHTED_BAG, MEAN_VECTOR, SENTENCE_TRANSFORMERS = "weighted-bag", "mean-vector", "sentence-transformers:"
ENCODERS = f"{WEIGHTED_BAG}, {MEAN_VECTOR} or {SENTENCE_TRANSFORMERS}MODEL"
"""Names of sentence encoders, for people."""
ENCODER = rf"^({WEIGHTED_BAG}|{MEAN_VECTOR}|{SENTENCE_TRANSFORMERS}\S.*)$"
"""Regular expression of the names of sentence encoders."""


def find_model(encoder: str) -> str:
    """Return the model of ``sentence-transformers:MODEL``; empty for every other name."""
    return encoder.removeprefix(SENTENCE_TRANSFORMERS) if encoder.startswith(SENTENCE_TRANSFORMERS) else ""


def require_package(setting: str, name: str, otherwise: str) -> None:
    """Raise :class:`PlatformError` if the package of a sentence encoder is not installed.

    ``name``: the value of ``setting``. ``otherwise``: values that need no package.
    """
    if find_model(name) and find_spec("sentence_transformers") is None:
        raise PlatformError(
            f"{setting} = {name}: needs the package sentence-transformers, which Python does not have here. "
            f"Run `pip install sentence-transformers`, or set {otherwise}."
        )


def load_sentence_model(setting: str, name: str, otherwise: str, **options: Any) -> Any:
    """Load the model of ``sentence-transformers:MODEL``. Raises :class:`PlatformError` if package or model is missing.

    ``setting``, ``otherwise``: as of :func:`require_package`. ``options``: of the package's class.
    """
    require_package(setting, name, otherwise)
    try:
        return import_module("sentence_transformers").SentenceTransformer(find_model(name), **options)
    except Exception as error:  # damaged weights have a class of the library that reads them
        raise PlatformError(
            f"{setting} = {name}: the model cannot be loaded ({type(error).__name__}). Name one that "
            "sentence-transformers can download, or the directory of one."
        ) from error
