"""How likely one of the words most similar to the original is, by law: ER-AE's choices beside a plain mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float64, Int64


@dataclass(frozen=True)
class Places:
    """What a generator says at places of texts, and the words that are looked for there.

    Attributes
    ----------
    rows
        float64 ``(places, s)``: softmaxes, each adds up to 1.
    wanted
        int64 ``(places, n)``: the numbers of different words.
    """

    rows: Float64
    wanted: Int64

    @property
    def held(self) -> Float64:
        """What the softmaxes give to the wanted words: float64 ``(places,)``."""
        return np.asarray(np.take_along_axis(self.rows, self.wanted, axis=1).sum(axis=1))


def weigh_exponential(places: Places, loss: float) -> Float64:
    """Return the probability of a wanted word by the exponential mechanism over all words: float64 ``(places,)``.

    A word is chosen with a probability proportional to ``exp(loss * p)`` for its probability ``p`` in the softmax.
    Between two softmaxes that each have all their weight on one word the loss is ``loss``, and nowhere larger. The
    usual bound counts twice as much: here ``loss`` is what it really costs.
    """
    powers = np.exp(loss * places.rows)
    return np.asarray(np.take_along_axis(powers, places.wanted, axis=1).sum(axis=1) / powers.sum(axis=1))


def weigh_softmax_rr(places: Places, epsilon: float) -> Float64:
    """Return the probability of a wanted word by ``softmax-rr``: float64 ``(places,)``, exact.

    See :func:`wordveil.mechanisms.er_ae.symbol_choice.softmax_rr_law`.
    """
    symbols, count, held = places.rows.shape[1], places.wanted.shape[1], places.held
    kept = float(_sigma(np.array(epsilon / 2)))
    return np.asarray(kept * held + (1 - kept) * (count - held) / (symbols - 1))


@dataclass(frozen=True)
class DrawnSets:
    """Sets that ``two-set`` draws at places, and what decides its choice; each array ``(places, draws)``.

    Attributes
    ----------
    items
        int64: different words in a set.
    shares
        float64: what the softmax gives to them.
    found
        int64: wanted words among them.
    symbols, wanted
        how many words there are, and how many are wanted.
    """

    items: Int64
    shares: Float64
    found: Int64
    symbols: int
    wanted: int

    def weigh(self, epsilon: float) -> Float64:
        """Return the probability of a wanted word by ``two-set``, averaged over the sets: float64 ``(places,)``.

        Given a set it is exact; so its mean over the sets has no bias, and hardly varies. See
        :mod:`wordveil.mechanisms.er_ae.symbol_choice`.
        """
        others = self.symbols - self.items
        coin = _sigma(epsilon / 2 * (self.shares / self.items - (1 - self.shares) / others))
        inside, outside = self.found / self.items, (self.wanted - self.found) / others
        return np.asarray((coin * inside + (1 - coin) * outside).mean(axis=1))


def draw_sets(places: Places, candidates: int, draws: int, seed: int) -> DrawnSets:
    """Draw sets as ``two-set`` does: ``candidates`` words of each softmax, with replacement, ``draws`` times."""
    random = np.random.default_rng(seed)
    drawn = np.empty((len(places.rows), draws, candidates), np.int64)
    for place, row in enumerate(places.rows):
        ends = np.cumsum(row)
        drawn[place] = np.searchsorted(ends, random.random((draws, candidates)) * ends[-1], side="right")
    drawn.sort(axis=2)
    is_first = np.ones(drawn.shape, bool)
    is_first[..., 1:] = drawn[..., 1:] != drawn[..., :-1]
    chances = np.take_along_axis(places.rows[:, None], drawn, axis=2)
    is_wanted = (drawn[..., None] == places.wanted[:, None, None]).any(axis=3)
    return DrawnSets(
        is_first.sum(axis=2),
        np.minimum((chances * is_first).sum(axis=2), 1.0),
        (is_wanted & is_first).sum(axis=2),
        places.rows.shape[1],
        places.wanted.shape[1],
    )


def _sigma(value: Float64) -> Float64:
    return np.asarray(1 / (1 + np.exp(-value)))
