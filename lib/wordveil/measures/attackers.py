"""Attackers of single tokens: which word was it, given what came out?

The attacker that guesses best of all is Bayes's: it takes an output ``y`` for the word ``w`` with the largest
``prior(w) Pr[M(w) = y]``, and its recovery rate is the sum over ``y`` of those largest values. No attacker who has the
same prior and sees one token alone recovers more words on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.crypto.keys import ReleaseKeys, make_throwaway_keys
from wordveil.measures.posterior import guess_densely, guess_outputs
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.base import Mechanism

DRAWS = 200_000


@dataclass(frozen=True)
class NearestWord:
    """Guesses that each output is the word itself, and ``fallback`` for padding.

    Attributes
    ----------
    fallback
        the most frequent word.
    size
        words of the vocabulary.
    """

    name: ClassVar[str] = "nearest-word"
    fallback: int
    size: int

    def predict(self, drawn: Int32) -> Int32:
        """The guess for each output: int32 ``(tokens,)`` for int32 ``(tokens,)``."""
        return np.where(drawn < self.size, drawn, self.fallback).astype(np.int32)


@dataclass(frozen=True)
class MaximumPosterior:
    """Guesses for each output the word that most probably led to it.

    An attacker knows the mechanism: it is fitted on pairs that anyone can draw with their own keys.

    Attributes
    ----------
    guesses
        int32 ``(outputs,)``: the word that each output is taken for. Ties go to the lower id.
    """

    name: ClassVar[str] = "maximum-posterior"
    guesses: Int32

    @classmethod
    def fit(cls, words: Int32, drawn: Int32, size: int) -> Self:
        """Learn the word that each output came from most often, from pairs of a word and what was drawn for it.

        For an output that never occurred the guess is the same word, and for padding that never occurred the most
        frequent word.

        Parameters
        ----------
        words
            int32 ``(pairs,)``: ids of words, ``0 .. size - 1``. How often each is there is the attacker's prior.
        drawn
            int32 ``(pairs,)``: what was drawn for each; ``size`` is padding.
        size
            words of the vocabulary.

        Raises
        ------
        ValueError
            where there are no pairs, or where ids are out of range.
        """
        _check_pairs(words, drawn, size)
        guesses = np.arange(size + 1, dtype=np.int32)
        guesses[size] = np.argmax(np.bincount(words))
        pairs, counts = np.unique(drawn.astype(np.int64) * size + words, return_counts=True)
        outputs, origins = np.divmod(pairs, size)
        order = np.lexsort((origins, -counts, outputs))
        seen, first = np.unique(outputs[order], return_index=True)
        guesses[seen] = origins[order][first]
        return cls(guesses)

    @classmethod
    def of_mechanism(cls, mechanism: Mechanism[Any], prior: Float64) -> tuple[Self, float] | None:
        """The best attacker against a mechanism, and its recovery rate: both exact. None where the mechanism does not
        know its probabilities.

        Time is proportional to the entries of the mechanism's laws, or, where it has none, to words times outputs.
        ``prior``: float64 ``(size,)``, the probability of each word before anything is seen. Raises
        :class:`ValueError` where that is no law over words.
        """
        check_prior(prior)
        if (laws := mechanism.word_laws()) is not None:
            guesses, joint = guess_outputs(laws, prior)
        elif mechanism.probabilities(0) is not None:
            best = guess_densely(mechanism, [prior], [np.empty((0, 1), np.int32)], [1])[0]
            guesses, joint = best.outputs, best.joint
        else:
            return None
        return cls(guesses), float(joint.sum())

    def predict(self, drawn: Int32) -> Int32:
        """The guess for each output: int32 ``(tokens,)`` for int32 ``(tokens,)``."""
        return self.guesses[drawn]


@dataclass(frozen=True)
class AttackResult:
    """How many of the words the best attacker recovers.

    Attributes
    ----------
    rate
        the share of tokens whose word is guessed right, from 0 to 1.
    baseline
        the same for a guesser who always names the most probable word.
    draws
        how many tokens it was estimated from; None where it is exact.
    """

    rate: float
    baseline: float
    draws: int | None


def attack(
    mechanism: Mechanism[Any], prior: Float64, draws: int = DRAWS, keys: tuple[ReleaseKeys, ReleaseKeys] | None = None
) -> AttackResult:
    """Measure how many words the best attacker recovers.

    Exact where the mechanism's probabilities are known. Else the attacker is fitted on ``draws`` tokens and measured on
    as many others, since it knows those that it was fitted on better than any others.

    Parameters
    ----------
    mechanism
        any mechanism.
    prior
        float64 ``(size,)``: the probability of each word before anything is seen.
    draws
        tokens of either set; each word's number in it is proportional to its prior, to within one token.
    keys
        keys to draw the first and the second set with; throwaway keys if left out.

    Raises
    ------
    ValueError
        where the prior is no law over words.
    """
    check_prior(prior)
    baseline = float(prior.max())
    if best := MaximumPosterior.of_mechanism(mechanism, prior):
        return AttackResult(best[1], baseline, None)
    words = np.searchsorted(np.cumsum(prior), (np.arange(draws) + 0.5) / draws * prior.sum())
    ids = np.minimum(words, np.flatnonzero(prior)[-1]).astype(np.int32)
    first, second = keys or (make_throwaway_keys(), make_throwaway_keys())
    fitted = MaximumPosterior.fit(ids, draw_tokens(mechanism, ids, b"fit", first), len(prior))
    guesses = fitted.predict(draw_tokens(mechanism, ids, b"measure", second))
    return AttackResult(float(np.mean(guesses == ids)), baseline, draws)


def _check_pairs(words: Int32, drawn: Int32, size: int) -> None:
    if words.shape != drawn.shape or words.ndim != 1 or not len(words):
        raise ValueError(f"Expected pairs of one shape (pairs,), at least one; got {words.shape} and {drawn.shape}.")
    if words.min() < 0 or words.max() >= size:
        raise ValueError(f"Expected words of ids 0 to {size - 1}, got {words.min()} to {words.max()}.")
    if drawn.min() < 0 or drawn.max() > size:
        raise ValueError(f"Expected outputs of ids 0 to {size}, got {drawn.min()} to {drawn.max()}.")


def check_prior(prior: Float64) -> None:
    """Raise :class:`ValueError` unless ``prior``, float64 ``(size,)``, is a law over words."""
    if prior.ndim != 1 or not (prior >= 0).all() or not abs(prior.sum() - 1) < 1e-9:
        raise ValueError(f"Expected a prior of shape (size,) that is not negative and adds up to 1, got {prior.shape}.")
