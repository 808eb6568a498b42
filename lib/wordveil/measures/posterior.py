"""Best guesses of a word from its outputs: once exactly, and after several draws of the same word.

Given outputs ``y_1 .. y_k`` the best guess is the word ``x`` with the largest ``ln p(x) + sum of ln P(y_i|x)``. Words
that are equally probable then are a tie. The choice among them does not change the mean number of right guesses; here
it is the one with the lowest id. Logarithms are rounded to whole multiples of 2^-32, so that their sums are exact in
any order, and a tie is a tie on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import WordLaws

_UNIT = 2.0**32
# The logarithm that stands for that of 0: less than any sum of logarithms of 64 probabilities of at least 2^-128.
_NEVER = -6_000.0
_LEAST = 1e-300


DENSE = 4 * 10**9
"""Up to this many probabilities laws are read one by one; of more a sample is read, or they are estimated."""


def guess_outputs(laws: WordLaws, prior: Float64) -> tuple[Int32, Float64]:
    """Find the best guess for each output, int32 ``(outputs,)``, and the joint probability of the two, float64.

    Exact except for rounding, in time proportional to entries plus outputs: among the words that do not list an output
    the best has the largest ``prior * share``. Ties go to the lower id. ``prior``: float64 ``(size,)``, the probability
    of each word before any output.
    """
    leader = int(np.argmax(prior * laws.shares))
    joint = prior[leader] * laws.shares[leader] * laws.common
    guesses = np.full(len(joint), leader, np.int32)
    _guess_listed(laws.common, laws.shares, laws.offsets, laws.ids, laws.extras, prior, joint, guesses)
    return guesses, joint


@compiled
def _guess_listed(
    common: Float64,
    shares: Float64,
    offsets: Int64,
    ids: Int32,
    extras: Float64,
    prior: Float64,
    joint: Float64,
    guesses: Int32,
) -> None:
    for word in range(len(prior)):
        for j in range(offsets[word], offsets[word + 1]):
            y = ids[j]
            value = prior[word] * (shares[word] * common[y] + extras[j])
            if value > joint[y] or (value == joint[y] and word < guesses[y]):
                joint[y] = value
                guesses[y] = word


def require_law(mechanism: Mechanism[Any], symbol: int) -> Float64:
    """Return the probabilities of a symbol's outputs. Raises :class:`ValueError` if they are not known."""
    law = mechanism.probabilities(symbol)
    if law is None:
        raise ValueError(f"Expected a mechanism whose probabilities are known, got {mechanism.name}.")
    return law


class Scores(NamedTuple):
    """Scores of words given outputs, in multiples of 2^-32 of a natural logarithm.

    ``floors``, int64 ``(size,)``: the logarithm of each word's share. ``starts``, int64 ``(outputs + 1,)``: output
    ``y`` has the entries ``starts[y]`` up to ``starts[y + 1]``. ``words``, int32, and ``gains``, int64 ``(entries,)``:
    the words that list it, and the excess of each over its floor.
    """

    floors: Int64
    starts: Int64
    words: Int32
    gains: Int64


class WordScores:
    """Posterior probabilities of words after several draws, from the laws of all words."""

    def __init__(self, laws: WordLaws) -> None:
        floors = _whole_logs(laws.shares)
        counts = np.bincount(laws.ids, minlength=len(laws.common))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        words, gains = np.empty(len(laws.ids), np.int32), np.empty(len(laws.ids), np.int64)
        # An output without a share in `common` is never unlisted where it occurs, so any number serves instead.
        common = np.maximum(laws.common, _LEAST)
        arrays = laws.shares, laws.offsets, laws.ids, laws.extras
        _list_by_output(common, *arrays, floors, starts[:-1].copy(), words, gains)
        self._scores = Scores(floors, starts, words, gains)

    @property
    def by_output(self) -> Scores:
        """Scores of words for each output."""
        return self._scores

    def guess(self, prior: Float64, drawn: Int32, marks: Sequence[int]) -> Int32:
        """Find the best guess of each word after its first ``marks`` draws: int32 ``(words, marks)``.

        ``prior``: as of :func:`guess_outputs`. ``drawn``: int32 ``(words, draws)``, outputs, each row of one word.
        ``marks``: rising numbers of draws, from 1 to ``draws``.
        """
        logs = _whole_logs(prior)
        leaders = np.array([np.argmax(logs + mark * self._scores.floors) for mark in marks], np.int32)
        out = np.empty((len(drawn), len(marks)), np.int32)
        _guess_words(self._scores, logs, np.ascontiguousarray(drawn), np.array(marks, np.int64), leaders, out)
        return out


def _whole_logs(values: Float64) -> Int64:
    """Compute logarithms in multiples of 2^-32; :data:`_NEVER` for 0."""
    with np.errstate(divide="ignore"):
        return np.rint(np.maximum(np.log(values), _NEVER) * _UNIT).astype(np.int64)


@compiled
def _list_by_output(
    common: Float64,
    shares: Float64,
    offsets: Int64,
    ids: Int32,
    extras: Float64,
    floors: Int64,
    ends: Int64,
    words: Int32,
    gains: Int64,
) -> None:
    for word in range(len(shares)):
        for j in range(offsets[word], offsets[word + 1]):
            y = ids[j]
            score = np.int64(np.rint(np.log(shares[word] + extras[j] / common[y]) * _UNIT))
            words[ends[y]] = word
            gains[ends[y]] = max(score - floors[word], 0)
            ends[y] += 1


@compiled
def _guess_words(scores: Scores, prior: Int64, drawn: Int32, marks: Int64, leaders: Int32, out: Int32) -> None:
    floors, starts, words, gains = scores
    gained, touched = np.zeros(len(floors), np.int64), np.empty(len(floors), np.int32)
    for row in range(len(drawn)):
        count, mark = 0, 0
        for j in range(drawn.shape[1]):
            y = drawn[row, j]
            for entry in range(starts[y], starts[y + 1]):
                word = words[entry]
                if gains[entry] > 0:
                    if gained[word] == 0:
                        touched[count] = word
                        count += 1
                    gained[word] += gains[entry]
            if mark < len(marks) and j + 1 == marks[mark]:
                # A word that lists none of the outputs is beaten by the best of those, or is that one.
                best = leaders[mark]
                highest = prior[best] + (j + 1) * floors[best] + gained[best]
                for i in range(count):
                    word = touched[i]
                    score = prior[word] + (j + 1) * floors[word] + gained[word]
                    if score > highest or (score == highest and word < best):
                        highest, best = score, word
                out[row, mark] = best
                mark += 1
        for i in range(count):
            gained[touched[i]] = 0


@dataclass(frozen=True)
class Guesses:
    """Best guesses under one prior.

    ``outputs``: int32 ``(outputs,)``, the guess for each output. ``joint``: float64 ``(outputs,)``, the joint
    probability of each output and its guess. Their sum is the share of words that are guessed right. ``words``: int32
    ``(words, marks)``, the guess of each word after some of its draws.
    """

    outputs: Int32
    joint: Float64
    words: Int32


def guess_densely(
    mechanism: Mechanism[Any], priors: Sequence[Float64], drawn: Sequence[Int32], marks: Sequence[int]
) -> list[Guesses]:
    """Find the best guesses under each of ``priors``, from one word's probabilities at a time.

    Time is proportional to words times the sum of outputs and draws. ``drawn`` and ``marks``: as in
    :meth:`WordScores.guess`, for each prior. Raises :class:`ValueError` if probabilities are not known.
    """
    ends, outputs = np.array(marks, np.int64), len(require_law(mechanism, 0))
    seen, indices = np.unique(np.concatenate([rows.ravel() for rows in drawn]), return_inverse=True)
    parts = np.split(indices.ravel().astype(np.int32), np.cumsum([rows.size for rows in drawn])[:-1])
    rows_of = [part.reshape(rows.shape) for part, rows in zip(parts, drawn, strict=True)]
    logs = [_whole_logs(prior) for prior in priors]
    best = [np.full((len(rows), len(marks)), np.iinfo(np.int64).min) for rows in drawn]
    guessed = [
        Guesses(np.zeros(outputs, np.int32), np.full(outputs, -1.0), np.zeros(scores.shape, np.int32))
        for scores in best
    ]
    for word in range(len(priors[0])):
        law = require_law(mechanism, word)
        seen_logs = _whole_logs(law[seen])
        for prior, log, rows, scores, guesses in zip(priors, logs, rows_of, best, guessed, strict=True):
            joint = prior[word] * law
            guesses.outputs[joint > guesses.joint] = word
            np.maximum(guesses.joint, joint, out=guesses.joint)
            _weigh_word(word, log[word], seen_logs, rows, ends, scores, guesses.words)
    return guessed


@compiled
def _weigh_word(word: int, prior: int, logs: Int64, indices: Int32, marks: Int64, best: Int64, out: Int32) -> None:
    for row in range(len(indices)):
        score, mark = prior, 0
        for j in range(indices.shape[1]):
            score += logs[indices[row, j]]
            if mark < len(marks) and j + 1 == marks[mark]:
                if score > best[row, mark]:
                    best[row, mark], out[row, mark] = score, word
                mark += 1
