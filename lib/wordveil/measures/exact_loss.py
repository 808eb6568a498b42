"""Exact loss of a mechanism with known probabilities.

The largest loss between any two symbols is, over all outputs, the greatest minus the least log probability of the
output under any symbol (Dwork and Roth 2014, definition 2.4; no set of outputs has a larger ratio than the largest of
its members). It is computed from the mechanism's own laws
(:meth:`wordveil.mechanisms.base.Mechanism.word_laws`), in time proportional to what is listed in them, and never from
the certificate of the build: the two are to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.measures.posterior import DENSE, require_law
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import WordLaws


@dataclass(frozen=True)
class Loss:
    """Loss between two symbols, and the output that shows it.

    ``nats``: the log probability ratio; infinite where an output is possible for one of them alone. ``output``: the
    output that shows it. ``likely``, ``unlikely``: the symbols under which the output is likely, and less so. ``high``,
    ``low``: its probability under each.
    """

    nats: float
    output: int
    likely: int
    unlikely: int
    high: float
    low: float


def find_supremum(mechanism: Mechanism[Any], size: int, others: Sequence[int]) -> Loss | None:
    """Find the largest loss between any two symbols, exact except for rounding.

    None if probabilities are not known, or are too many to read (above 4 * 10^9 numbers). ``size``: the number of
    words. ``others``: the other symbols, which are the unknown word, and padding if texts are padded.
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
    output = _most_revealing(greatest, least)
    column = laws.shares * laws.common[output]
    listing = np.flatnonzero(laws.ids == output)
    column[np.searchsorted(laws.offsets, listing, "right") - 1] += laws.extras[listing]
    size = len(column)
    column = np.append(column, [law[output] for law in more])
    return _loss_at(column, [*range(size), *others], output)


def _bound_outputs(laws: WordLaws) -> tuple[Float64, Float64]:
    """Compute the greatest and the least probability of each output under any word: float64 ``(outputs,)`` each.

    A word that lists an output has more of it than its share of the common law. So the greatest is that of the largest
    share, or a listed one; the least is that of the smallest share among the words that do not list the output, or a
    listed one if all do.
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
    output = _most_revealing(greatest, least)
    column = np.array([require_law(mechanism, symbol)[output] for symbol in symbols])
    return _loss_at(column, symbols, output)


def _most_revealing(greatest: Float64, least: Float64) -> int:
    """Find the output whose probabilities are furthest apart. One that never occurs reveals nothing."""
    return int(np.argmax(_log_ratios(greatest, least)))


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
    """Find the largest loss between two symbols, in either direction.

    Raises :class:`ValueError` if probabilities are not known.
    """
    left, right = require_law(mechanism, first), require_law(mechanism, second)
    forth, back = _log_ratios(left, right), _log_ratios(right, left)
    output = int(np.argmax(np.maximum(forth, back)))
    return _loss_at(np.array([left[output], right[output]]), [first, second], output)
