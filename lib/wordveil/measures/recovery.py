"""Measurement of an attacker's recovery of single words (:mod:`wordveil.privacy.recovery`).

Given outputs ``y_1 .. y_k`` of one word the best guess is the word ``x`` with the largest ``ln p(x) + sum of ln
P(y_i|x)``. Ties go to the lowest id; any other choice has the same mean number of right guesses. Logarithms are rounded
to whole multiples of 2^-32, so that their sums are exact in any order, and a tie is a tie on every machine.

One draw, if probabilities are known: the sum over outputs of the largest ``p(x) P(y|x)``, exact. Several draws of one
word: words are drawn from the prior, each is sanitised independently, and the best attacker's hits are counted, with
the 95% interval of Clopper and Pearson (1934). Counting is unbiased, since the attacker has the exact probabilities.

If probabilities are not known, the attacker is fitted on public draws: a word's law is a mixture of the outputs of its
own draws, of the word itself and of the outputs of all words' draws. It is measured on other draws. Such an attacker is
right no more often than the best one, so only the lower end of the interval is a bound.

The attacker sees the drawn words. The written ones may reveal less (:meth:`wordveil.mechanisms.base.Mechanism.render`),
never more. All draws are of words of the public vocabulary with public keys, so that every build of the same bundle
finds the same figures. No key of a release comes from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.crypto.streams import CONTEXT_BYTES, KeyedStream
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.laws import WordLaws
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery, round_figure
from wordveil.scores.counts import find_share_interval

_UNIT = 2.0**32
# The logarithm that stands for that of 0: less than any sum of logarithms of 64 probabilities of at least 2^-128.
_NEVER = -6_000.0
_LEAST = 1e-300


DENSE = 4 * 10**9
"""Largest number of probabilities that are read one by one; otherwise a sample is read, or they are estimated."""


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


class WordScores(NamedTuple):
    """Posterior probabilities of words after several draws, in multiples of 2^-32 of a natural logarithm.

    ``floors``, int64 ``(size,)``: the logarithm of each word's share. ``starts``, int64 ``(outputs + 1,)``: output
    ``y`` has the entries ``starts[y]`` up to ``starts[y + 1]``. ``words``, int32, and ``gains``, int64 ``(entries,)``:
    the words that list it, and the excess of each over its floor.
    """

    floors: Int64
    starts: Int64
    words: Int32
    gains: Int64

    @classmethod
    def of(cls, laws: WordLaws) -> Self:
        """Make from the laws of all words."""
        floors = _whole_logs(laws.shares)
        counts = np.bincount(laws.ids, minlength=len(laws.common))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        words, gains = np.empty(len(laws.ids), np.int32), np.empty(len(laws.ids), np.int64)
        # An output without a share in `common` is never unlisted where it occurs, so any number serves instead.
        common = np.maximum(laws.common, _LEAST)
        arrays = laws.shares, laws.offsets, laws.ids, laws.extras
        _list_by_output(common, *arrays, floors, starts[:-1].copy(), words, gains)
        return cls(floors, starts, words, gains)

    def guess(self, prior: Float64, drawn: Int32, marks: Sequence[int]) -> Int32:
        """Find the best guess of each word after its first ``marks`` draws: int32 ``(words, marks)``.

        ``prior``: float64 ``(size,)``. ``drawn``: int32 ``(words, draws)``, outputs, each row of one word. ``marks``:
        rising, from 1 to ``draws``.
        """
        logs = _whole_logs(prior)
        leaders = np.array([np.argmax(logs + mark * self.floors) for mark in marks], np.int32)
        out = np.empty((len(drawn), len(marks)), np.int32)
        _guess_words(self, logs, np.ascontiguousarray(drawn), np.array(marks, np.int64), leaders, out)
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
def _guess_words(scores: WordScores, prior: Int64, drawn: Int32, marks: Int64, leaders: Int32, out: Int32) -> None:
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
    probability of both; its sum is the share of words guessed right. ``words``: int32 ``(words, marks)``, the guess of
    each word after some of its draws.
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


DRAWS = (1, 2, 5, 20)
"""Numbers of draws of one word that the attacker sees."""
_KEY = MasterKey(sha256(b"wordveil: draws of public words, to measure what an attacker recovers").digest())
_CHUNK = 50_000

# Words that are guessed. With 4,000 an interval is at most 3.2 points wide, with 1,000 6.3.
_WORDS, _FEWEST, _WORDS_OF_DRAWS, _FEWEST_OF_DRAWS = 4_000, 500, 1_000, 300
# What one build spends: probabilities looked up one word at a time, and words that are scored to find a nearest one.
_LOOKED_UP, _SCORED, _FITTED = 10**9, 2 * 10**9, 100_000
# A few draws of each word suffice for a small vocabulary, such as a test's.
_FITTED_OF_WORD, _GUESSED_OF_WORD = 1_000, 50
# Draws that each word counts for itself in advance.
_STAYS = 0.5


class OtherLengthError(ValueError):
    """Error for a mechanism that draws texts of other lengths."""


@dataclass(frozen=True)
class _Trial:
    """Words drawn from a prior, int32 ``(words,)``, and the outputs of each, int32 ``(words, draws)``."""

    prior: Float64
    words: Int32
    drawn: Int32


@contextmanager
def load_built(kind: type[Mechanism[Any]], built: MechanismArtifact, size: int) -> Iterator[Mechanism[Any]]:
    """Load a mechanism of ``size`` symbols and class ``kind`` that was built and is in no bundle yet."""
    with TemporaryDirectory(prefix="wordveil-measure-") as directory:
        yield kind.load(size, built.parameters, built.arrays, built.write_files(Path(directory)))


def make_public_keys(purpose: str) -> ReleaseKeys:
    """Make public keys for draws of public words, different ones for each purpose."""
    return _KEY.for_release(purpose)


def check_prior(prior: Float64) -> None:
    """Raise :class:`ValueError` unless ``prior``, float64 ``(size,)``, is a law over words."""
    if prior.ndim != 1 or not (prior >= 0).all() or not abs(prior.sum() - 1) < 1e-9:
        raise ValueError(f"Expected a prior of shape (size,) that is not negative and adds up to 1, got {prior.shape}.")


def find_recovered(mechanism: Mechanism[Any], prior: Float64, draws: int) -> tuple[float, int | None]:
    """Find the share of words that the best attacker recovers from one draw, and the number of draws behind it.

    The share is exact, and the number None, if probabilities are known. Otherwise the attacker is fitted on ``draws``
    tokens and measured on as many others. ``prior``: float64 ``(size,)``. Raises :class:`ValueError` if it is no law.
    """
    check_prior(prior)
    if (laws := mechanism.word_laws()) is not None:
        return float(guess_outputs(laws, prior)[1].sum()), None
    if mechanism.probabilities(0) is not None:
        best = guess_densely(mechanism, [prior], [np.empty((0, 1), np.int32)], [1])[0]
        return float(best.joint.sum()), None
    guesses, _ = guess_outputs(fit_laws(mechanism, prior, draws), prior)
    words = spread_by(prior, draws)
    hits = guesses[draw_publicly(mechanism, words, "recovery: measure")] == words
    # An attacker may ignore what it sees, and always name the most frequent word.
    return max(float(hits.mean()), float(prior.max())), draws


def measure_recovery(mechanism: Mechanism[Any], frequencies: Float64) -> Recovery | None:
    """Measure the recovery of the best attacker under the uniform prior and under ``frequencies``.

    ``frequencies``: float64 ``(size,)``, the public frequency of each word; adds up to 1. Figures, of six digits, are
    exact for one draw and 95% intervals for more, if probabilities are known and not too many; otherwise lower bounds.
    Return None if the mechanism does not draw one output for each word, or reads the words around it: then single words
    do not represent a text. Raises :class:`ValueError` if ``frequencies`` is no law over words.
    """
    check_prior(frequencies)
    if mechanism.reads_context:
        return None
    size = len(frequencies)
    priors = [np.full(size, 1 / size), frequencies]
    laws = mechanism.word_laws()
    is_known = laws is not None or (size * size <= DENSE and mechanism.probabilities(0) is not None)
    try:
        trials = _draw_trials(mechanism, priors, _trial_words(size, listed=laws is not None, known=is_known))
        if not is_known:
            laws = fit_laws(mechanism, frequencies)
    except OtherLengthError:
        return None
    if laws is None:
        guessed = guess_densely(mechanism, priors, [trial.drawn for trial in trials], DRAWS)
    else:
        scores = WordScores.of(laws)
        guessed = [
            Guesses(*guess_outputs(laws, trial.prior), scores.guess(trial.prior, trial.drawn, DRAWS))
            for trial in trials
        ]
    uniform, frequency = (_summarise(trial, its, known=is_known) for trial, its in zip(trials, guessed, strict=True))
    return Recovery(uniform, frequency)


def _trial_words(size: int, *, listed: bool, known: bool) -> int:
    """Choose the number of words to guess for each prior: fewer if each costs more."""
    if listed:
        return _WORDS
    if known:
        return min(_WORDS, max(_FEWEST, _LOOKED_UP // (2 * DRAWS[-1] * size)))
    return min(_WORDS_OF_DRAWS, max(_FEWEST_OF_DRAWS, _SCORED // (100 * size)), _GUESSED_OF_WORD * size)


def _summarise(trial: _Trial, guesses: Guesses, *, known: bool) -> PriorRecovery:
    """Summarise the figures. An attacker may ignore draws, so each lower bound also holds for more draws."""
    without_draws = float(trial.prior.max())
    after, lower = [], without_draws
    right = (guesses.words == trial.words[:, None]).sum(axis=0).tolist()
    for draws, hits in zip(DRAWS, right, strict=True):
        low, high = find_share_interval(hits, len(trial.words))
        if known and draws == 1:
            low = high = min(float(guesses.joint.sum()), 1.0)
        lower = max(lower, low)
        after.append(Recovered(draws, round_figure(lower), round_figure(max(lower, high)) if known else None))
    return PriorRecovery(round_figure(without_draws), tuple(after))


def _draw_trials(mechanism: Mechanism[Any], priors: Sequence[Float64], words: int) -> list[_Trial]:
    trials = []
    for name, prior in zip(("uniform", "frequency"), priors, strict=True):
        chosen = _choose_words(prior, words, name)
        drawn = draw_publicly(mechanism, np.repeat(chosen, DRAWS[-1]), f"measure {name}")
        trials.append(_Trial(prior, chosen, drawn.reshape(words, DRAWS[-1])))
    return trials


def _choose_words(prior: Float64, count: int, name: str) -> Int32:
    """Draw independent words from a prior: int32 ``(count,)``."""
    stream = KeyedStream(_KEY.subkey("choose", name), 1)
    nowhere = np.zeros((count, CONTEXT_BYTES), np.uint8)
    below = np.cumsum(prior)
    chosen: Int32 = np.searchsorted(below, stream.uniforms(nowhere, np.arange(count))[0] * below[-1]).astype(np.int32)
    return chosen


def draw_publicly(mechanism: Mechanism[Any], ids: Int32, purpose: str) -> Int32:
    """Draw outputs with public keys for a purpose: int32 ``(tokens,)`` for ids, int32 ``(tokens,)``.

    Raises :class:`OtherLengthError` unless there is one output for each id.
    """
    step, keys = min(_CHUNK, mechanism.max_tokens), make_public_keys(purpose)
    parts = [
        draw_tokens(mechanism, ids[start : start + step], b"%d" % start, keys) for start in range(0, len(ids), step)
    ]
    drawn = np.concatenate(parts)
    if len(drawn) != len(ids):
        raise OtherLengthError
    return drawn


def find_laws(mechanism: Mechanism[Any], frequencies: Float64) -> tuple[WordLaws, bool] | None:
    """Return the laws of all words and True, or estimates by :func:`fit_laws` and False.

    Return None for a mechanism that does not draw one output for each word, or reads the words around it.
    """
    if (laws := mechanism.word_laws()) is not None:
        return laws, True
    if mechanism.reads_context:
        return None
    try:
        return fit_laws(mechanism, frequencies), False
    except OtherLengthError:
        return None


def spread_by(prior: Float64, draws: int) -> Int32:
    """Spread words in numbers proportional to a prior, to within one: int32 ``(draws,)``."""
    words = np.searchsorted(np.cumsum(prior), (np.arange(draws) + 0.5) / draws * prior.sum())
    return np.asarray(np.minimum(words, np.flatnonzero(prior)[-1]), np.int32)


def fit_laws(mechanism: Mechanism[Any], frequencies: Float64, most: int = _FITTED) -> WordLaws:
    """Estimate the laws of all words from at most ``most`` draws: half of them evenly, half by frequency.

    Witten and Bell 1991, method C: for a word whose ``n`` draws gave ``t`` different outputs, an output that came ``c``
    times gets ``c / (n + t)``, and ``t / (n + t)`` is spread over all outputs by their frequency over all words. Each
    word counts as drawn for itself half a time more than it was.
    """
    size = len(frequencies)
    draws = min(most, max(_SCORED // size, 2), _FITTED_OF_WORD * size) // 2
    evenly = (np.arange(draws) * size // draws).astype(np.int32)
    words = np.concatenate([evenly, spread_by(frequencies, draws)])
    drawn = draw_publicly(mechanism, words, "fit")
    outputs = size + 1
    common = np.bincount(drawn, minlength=outputs) + 1.0
    stays = np.arange(size) * (outputs + 1)
    pairs, index = np.unique(np.concatenate([words * np.int64(outputs) + drawn, stays]), return_inverse=True)
    weights = np.bincount(index, np.repeat([1.0, _STAYS], [len(words), size]))
    origins, ids = np.divmod(pairs, outputs)
    offsets = np.searchsorted(origins, np.arange(size + 1))
    kinds = np.diff(offsets)
    totals = np.bincount(words, minlength=size) + _STAYS + kinds
    return WordLaws(common / common.sum(), kinds / totals, offsets, ids.astype(np.int32), weights / totals[origins])
