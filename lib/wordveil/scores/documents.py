"""Texts with labels: authors to identify, topics to find, sentiments to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Int64

UNKNOWN = -1
"""Label of a text without one of the names, and guess of a classifier that refuses to guess."""


@dataclass(frozen=True)
class Documents:
    """Texts, each with one label.

    ``labels``: int64 ``(texts,)``, numbers of :attr:`names`, or :data:`UNKNOWN`. ``names``: each once. Raises
    :class:`ValueError` if the lengths differ, or a label is out of range.
    """

    texts: Sequence[str]
    labels: Int64
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.texts),):
            raise ValueError(f"Expected a label for each of {len(self.texts)} texts, got {self.labels.shape}.")
        if len(self.labels) and not (self.labels.min() >= UNKNOWN and self.labels.max() < len(self.names)):
            raise ValueError(f"Expected labels from {UNKNOWN} to {len(self.names) - 1}.")

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, texts: Sequence[str], labels: Sequence[str], names: Sequence[str] | None = None) -> Self:
        """Make from texts with labels by name; a label that is not in ``names`` is :data:`UNKNOWN`.

        ``names``: in their order, by default all labels in alphabetical order.
        """
        order = tuple(sorted(set(labels)) if names is None else names)
        number = {name: label for label, name in enumerate(order)}
        return cls(texts, np.array([number.get(label, UNKNOWN) for label in labels], np.int64), order)

    def with_texts(self, texts: Sequence[str]) -> Self:
        """Replace the texts, such as by sanitised ones, and keep the labels. Raises :class:`ValueError`."""
        return replace(self, texts=texts)

    def take(self, rows: NDArray[np.integer] | Sequence[int]) -> Self:
        """Select the texts with these indices, in this order."""
        chosen = np.asarray(rows, np.int64)
        return replace(self, texts=[self.texts[row] for row in chosen.tolist()], labels=self.labels[chosen])

    @property
    def chance(self) -> float:
        """Share of the most frequent label, which is right without reading a text; 0 without texts."""
        known_labels = self.labels[self.labels != UNKNOWN]
        return float(np.bincount(known_labels).max() / len(self)) if len(known_labels) else 0.0
