"""Exact losses between the symbols of a bundle, and the symbols' distances.

The largest loss between any two symbols is, over all outputs, the greatest minus the least log probability of the
output under any symbol (Dwork and Roth 2014, definition 2.4; no set of outputs has a larger ratio than the largest of
its members). It is computed from the mechanism's own laws (:meth:`wordveil.mechanisms.base.Mechanism.word_laws`), in
time proportional to their entries, and never from the certificate of the build: the two are to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.artifacts import content_store
from wordveil.artifacts.bundle import Bundle
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES, Space
from wordveil.measures.recovery import DENSE, require_law
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import WordLaws
from wordveil.privacy.guarantees import WordGuarantee, uncap
from wordveil.privacy.recovery import SUBJECT, WORD


@dataclass(frozen=True)
class Loss:
    """Loss between two symbols, and the output that shows it.

    ``nats``: the log probability ratio; infinite if the output is possible for only one of them. ``likely``,
    ``unlikely``: the symbols under which the output is likely, and less so, with probabilities ``high`` and ``low``.
    """

    nats: float
    output: int
    likely: int
    unlikely: int
    high: float
    low: float


def find_supremum(mechanism: Mechanism[Any], size: int, others: Sequence[int]) -> Loss | None:
    """Find the largest loss between any two symbols, exact except for rounding.

    Return None if probabilities are not known, or are more than 4 * 10^9. ``size``: the number of words. ``others``:
    the other symbols: the unknown word, and padding if texts are padded.
    """
    laws = mechanism.word_laws()
    if laws is not None:
        return _find_in_laws(laws, [require_law(mechanism, symbol) for symbol in others], others)
    if size * size > DENSE or mechanism.probabilities(0) is None:
        return None
    return _find_in_rows(mechanism, [*range(size), *others])


def _find_in_laws(laws: WordLaws, more: Sequence[Float64], others: Sequence[int]) -> Loss:
    greatest, least = _bound_outputs(laws)
    for law in more:
        np.maximum(greatest, law, out=greatest)
        np.minimum(least, law, out=least)
    output = int(np.argmax(_log_ratios(greatest, least)))
    column = laws.shares * laws.common[output]
    listing = np.flatnonzero(laws.ids == output)
    column[np.searchsorted(laws.offsets, listing, "right") - 1] += laws.extras[listing]
    size = len(column)
    column = np.append(column, [law[output] for law in more])
    return _loss_at(column, [*range(size), *others], output)


def _bound_outputs(laws: WordLaws) -> tuple[Float64, Float64]:
    """Compute the greatest and the least probability of each output under any word: float64 ``(outputs,)`` each.

    A word that lists an output has more of it than its share of the common law. So the greatest is a listed one, or
    that of the largest share; the least is that of the smallest share among words that do not list it, or a listed one
    if all do.
    """
    listed = np.repeat(laws.shares, np.diff(laws.offsets)) * laws.common[laws.ids] + laws.extras
    greatest = laws.shares.max() * laws.common
    np.maximum.at(greatest, laws.ids, listed)
    least = np.full(len(laws.common), np.inf)
    waiting = np.flatnonzero(np.bincount(laws.ids, minlength=len(least)) < len(laws.shares))
    for word in np.argsort(laws.shares, kind="stable").tolist():
        if not len(waiting):
            break
        lists = np.isin(waiting, laws.ids[laws.offsets[word] : laws.offsets[word + 1]])
        free = waiting[~lists]
        least[free] = laws.shares[word] * laws.common[free]
        waiting = waiting[lists]
    np.minimum.at(least, laws.ids, listed)
    return greatest, least


def _find_in_rows(mechanism: Mechanism[Any], symbols: Sequence[int]) -> Loss:
    """Find the largest loss from one row of probabilities at a time."""
    greatest = require_law(mechanism, symbols[0]).copy()
    least = greatest.copy()
    for symbol in symbols[1:]:
        law = require_law(mechanism, symbol)
        np.maximum(greatest, law, out=greatest)
        np.minimum(least, law, out=least)
    output = int(np.argmax(_log_ratios(greatest, least)))
    column = np.array([require_law(mechanism, symbol)[output] for symbol in symbols])
    return _loss_at(column, symbols, output)


def _log_ratios(high: Float64, low: Float64) -> Float64:
    """Compute ``ln(high / low)`` of each output: ``-inf`` if ``high`` is 0, whatever ``low`` is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(high > 0, np.log(high) - np.log(low), -np.inf)


def _loss_at(column: Float64, symbols: Sequence[int], output: int) -> Loss:
    """Make the loss that one output shows. ``column``: its probability under each of ``symbols``."""
    high, low = int(np.argmax(column)), int(np.argmin(column))
    nats = float(_log_ratios(column[[high]], column[[low]])[0])
    return Loss(nats, output, symbols[high], symbols[low], float(column[high]), float(column[low]))


def find_loss(mechanism: Mechanism[Any], first: int, second: int) -> Loss:
    """Find the largest loss between two symbols, in either direction. Raises :class:`ValueError` without laws."""
    left, right = require_law(mechanism, first), require_law(mechanism, second)
    forth, back = _log_ratios(left, right), _log_ratios(right, left)
    output = int(np.argmax(np.maximum(forth, back)))
    return _loss_at(np.array([left[output], right[output]]), [first, second], output)


UNKNOWN, PADDING = "the unknown word", "padding"
_OTHERS = {WORD: (PADDING, UNKNOWN), SUBJECT: ("a text without a known word", "a symbol of no text")}
_TELLING = 3  # words that name a subject


@dataclass(frozen=True)
class SymbolSpace:
    """Space of a bundle's symbols.

    ``size``: number of words; symbol ``size`` is padding, ``size + 1`` the unknown word. ``padding``: True if padding
    is a symbol. ``names``: the words. ``space``: metric of the points; None if the metric is discrete or points are
    missing. ``points``: float64 ``(symbols, n)``, empty without ``space``. A symbol without a row, or with NaN, has no
    point: it counts as farther from all others than the diameter. ``of``: what symbols stand for: words, or the
    subjects of texts.
    """

    size: int
    padding: bool
    guarantee: WordGuarantee
    names: Any
    space: Space | None = None
    points: Float64 = field(default_factory=lambda: np.empty((0, 0)))
    of: str = WORD

    @property
    def others(self) -> list[int]:
        """Symbols that are not words: the unknown word, and padding if it is a symbol."""
        return [self.size + 1, *([self.size] if self.padding else [])]

    def distances(self, symbol: int) -> Float64:
        """Compute the distance of each symbol, float64 ``(size + 2,)``: 0 to itself, infinite if it is not known."""
        distances = np.full(self.size + 2, np.inf)
        if self.space is not None and symbol < len(self.points) and not np.isnan(self.points[symbol, 0]):
            apart = self.space.distances(self.points[symbol], self.points)
            distances[: len(apart)] = np.where(np.isnan(apart), np.inf, apart)
        distances[symbol] = 0.0
        return distances

    def spell(self, symbol: int) -> str:
        """Spell a symbol for people: all words of a vocabulary are public."""
        if symbol >= self.size:
            return _OTHERS[self.of][symbol - self.size]
        return str(self.names[symbol])

    def name(self, symbol: int) -> str:
        """Spell a symbol with quotes around a word."""
        is_plain = symbol >= self.size or self.of == SUBJECT
        return self.spell(symbol) if is_plain else f"'{self.spell(symbol)}'"


def stores_points(bundle: Bundle) -> bool:
    """Return whether the bundle itself has the points of its words, or no distance depends on points."""
    return not {"index", "points"}.isdisjoint(bundle.manifest["content"]["files"]) or (
        uncap(bundle.guarantee.metric.name) not in SPACES
    )


def find_space(bundle: Bundle, embedding: Embedding | None) -> SymbolSpace:
    """Find the space of a bundle's symbols.

    Additive noise is private in the metric of the points that the bundle stores, so these are used. A table stores
    none: its points come from the embedding, if there is one. Raises :class:`ValueError` if the embedding has other
    words.
    """
    if bundle.topics is not None:  # no distance between words matters
        telling = (" ".join(words.split()[:_TELLING]) for words in bundle.topics.keywords.to_pylist())
        names = [f"subject {number} ({words})" for number, words in enumerate(telling)]
        return SymbolSpace(len(names), bundle.padding, bundle.guarantee, names, of=SUBJECT)
    words = bundle.vocabulary.array.to_pylist()
    if embedding is not None and embedding.words.to_pylist() != words:
        raise ValueError(f"Expected an embedding with the bundle's {len(words):,} words, in their order.")
    symbols = SymbolSpace(len(words), bundle.padding, bundle.guarantee, words)
    arrays = content_store.map_arrays(bundle.path, bundle.manifest["content"]["files"])
    space = SPACES.get(uncap(bundle.guarantee.metric.name))
    if space is None:
        return symbols
    if "index" in arrays:
        return replace(symbols, space=space, points=arrays["index"][:, :-1].astype(np.float64))
    if "points" in arrays:  # of words and of the unknown word, on the hyperboloid; padding has none
        ball = arrays["points"][:, 1:] / (1.0 + arrays["points"][:, :1])
        points = np.concatenate([ball[:-1], np.full((1, ball.shape[1]), np.nan), ball[-1:]])
        return replace(symbols, space=space, points=points)
    return symbols if embedding is None else replace(symbols, space=space, points=space.points(embedding.vectors))
