"""Protocol of classifiers of texts, with common parts: words of texts, and packages that are imported on first use.

Words are in lower case, and the text between them is left out. So the original has no advantage from parts that every
mechanism removes, such as capitals and commas.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Float64, Int64
from wordveil.errors import PlatformError
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.methods import WEIGHTED_BAG, require_package
from wordveil.text.tokeniser import Tokeniser, fold_words


class FittedClassifier(Protocol):
    """Classifier that names the label of a text."""

    def predict(self, texts: Sequence[str]) -> Int64:
        """Predict the label of each text: int64 ``(texts,)``, or ``UNKNOWN`` for a refusal to guess."""


@dataclass(frozen=True)
class FittedModel(FittedClassifier):
    """Model of another library. ``prepare`` turns texts into the input of its ``predict``."""

    prepare: Callable[[Sequence[str]], Any]
    model: Any

    def predict(self, texts: Sequence[str]) -> Int64:
        # scikit-learn refuses to predict nothing.
        return np.asarray(self.model.predict(self.prepare(texts)) if len(texts) else [], np.int64)


class Scored(NamedTuple):
    """Predicted labels, and the share of votes that each won.

    ``labels``: int64 ``(texts,)``, numbers of names, or :data:`wordveil.scores.documents.UNKNOWN` if no label won a
    vote. ``shares``: float64 ``(texts,)``, from 0 to 1.
    """

    labels: Int64
    shares: Float64


@dataclass(frozen=True)
class RefusingClassifier(FittedClassifier):
    """Classifier that answers only if a label wins more than ``threshold`` of the votes."""

    threshold: float

    @abstractmethod
    def score(self, texts: Sequence[str]) -> Scored:
        """Return the label of most votes, whatever its share, and that share."""

    def predict(self, texts: Sequence[str]) -> Int64:
        scored = self.score(texts)
        return np.where(scored.shares > self.threshold, scored.labels, UNKNOWN)


class TextClassifier(Protocol):
    """Way to classify texts, with its settings: a frozen dataclass."""

    needs_embedding: ClassVar[bool] = False
    """Need of word vectors. Such a classifier has a field ``embedding``, which takes the mechanism's."""
    refuses: ClassVar[str] = "texts of fewer than two labels"
    """Texts that it cannot learn from, for people. :meth:`fit` raises :class:`ValueError` for these."""

    @property
    def name(self) -> str:
        """Name in configurations and reports: words joined by hyphens."""

    @property
    def definition(self) -> str:
        """Definition of its method, in one sentence, with its paper or library."""

    def fit(self, known: Documents, seed: int) -> FittedClassifier:
        """Learn from the texts with a known label. Raises :class:`ValueError` if fewer than two labels have texts."""


INSTALL = "Install it with: pip install 'wordveil[evaluation]'"
_NAMES = {"sklearn": "scikit-learn"}


def load_package(module: str) -> Any:
    """Import a module of an optional package. Raises :class:`PlatformError` only if that is not installed."""
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
    require_package("evaluation.encoder", encoder, WEIGHTED_BAG)


_TOKENISER = Tokeniser()


@dataclass(frozen=True)
class Words:
    """Words of texts.

    ``words``: string array ``(tokens,)``, in lower case. ``offsets``: int64 ``(texts + 1,)``; the words of text ``i``
    are ``offsets[i]`` up to ``offsets[i + 1]``.
    """

    words: pa.StringArray
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def text_of(self) -> Int64:
        """Text of each word: int64 ``(tokens,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def join(self) -> list[str]:
        """Join the words of each text with single spaces between them."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.offsets, pa.int64()), self.words)
        return list(pc.binary_join(lists, " ").to_pylist())


def cut_words(texts: Sequence[str]) -> Words:
    """Cut texts into words, as the default text policy does (:mod:`wordveil.text.tokeniser`)."""
    pieces = _TOKENISER.cut_words(_TOKENISER.normalise(pa.array(list(texts), pa.string())))
    return Words(fold_words(pieces.words), pieces.offsets)


def join_words(texts: Sequence[str]) -> list[str]:
    """Write each text as its words with single spaces between them."""
    return cut_words(texts).join()


def take_known(documents: Documents) -> Documents:
    """Take the texts whose label is known. Raises :class:`ValueError` if fewer than two labels have texts."""
    is_known = documents.labels != UNKNOWN
    labels = len(np.unique(documents.labels[is_known]))
    if labels < 2:
        raise ValueError(f"Expected texts of at least two labels to learn from, got {labels}.")
    return documents if is_known.all() else documents.take(np.flatnonzero(is_known))
