"""Audit of any Python function from a word to a word: a test of ``epsilon * metric``.

The function is a black box (:mod:`wordveil.audit.two_phase`): any string that it returns is an output.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.audit.findings import Audit, Finding
from wordveil.audit.repetition import Agreement, compare_outputs, split_lag, summarise_agreements
from wordveil.audit.two_phase import DRAWS, ROUNDS, Naming, PairCounts, Sampler, WordPair, audit_pairs, choose_pairs
from wordveil.errors import ConfigError, Fault
from wordveil.version import __version__

WordFunction = Callable[[str], str]
BatchFunction = Callable[[list[str]], list[str]]
PAIRS, ALPHA = 24, 0.01
BATCH_ATTRIBUTE = "takes_lists"
"""Attribute of a function that takes a list of words and returns a list of the same length."""

_SOURCE = "callable"
# Draws and words that show whether a function draws at all.
_TRIED, _WORDS_TRIED = 50, 8
# The share of alpha for the test whether draws depend on each other.
_REPETITION = 0.1


@dataclass
class CallableSampler(Sampler):
    """Sampler of a function as a black box. Outputs are numbered by first occurrence, after its arguments ``words``."""

    function: Callable[[Any], Any]
    words: Sequence[str]
    takes_lists: bool
    outputs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outputs.update((word, number) for number, word in enumerate(self.words))

    def draw(self, word: int, count: int, series: int) -> Int64:  # noqa: ARG002 - it has its own randomness
        """Draw as :class:`wordveil.audit.two_phase.Sampler` describes. Raises :class:`ConfigError`."""
        text = self.words[word]
        try:
            drawn = self.function([text] * count) if self.takes_lists else [self.function(text) for _ in range(count)]
        except Exception as error:
            raise _fault(
                f"it raised {type(error).__name__} for {text!r}: {error}", "Every word must have an output."
            ) from error
        self._check(drawn, text, count)
        return np.fromiter((self.outputs.setdefault(output, len(self.outputs)) for output in drawn), np.int64, count)

    def show(self, output: int) -> str:
        """Show the output's text, in quotes."""
        return repr(list(self.outputs)[output])

    def _check(self, drawn: Any, text: str, count: int) -> None:
        if not isinstance(drawn, Sequence) or isinstance(drawn, str) or len(drawn) != count:
            what = f"a list of {len(drawn)}" if isinstance(drawn, list) else f"a {type(drawn).__name__}"
            raise _fault(f"it returned {what} for a list of {count} words.", f"Return a list of {count} strings.")
        wrong = next((type(output).__name__ for output in drawn if not isinstance(output, str)), None)
        if wrong is not None:
            raise _fault(f"it returned a {wrong} for {text!r}.", "Every output must be a string.")


def audit_callable(
    function: WordFunction | BatchFunction,
    words: Sequence[str],
    metric: Callable[[str, str], float],
    epsilon: float,
    *,
    pairs: int = PAIRS,
    draws: int = DRAWS,
    alpha: float = ALPHA,
    seed: int = 0,
    takes_lists: bool | None = None,
) -> Audit:
    """Try to refute that a function keeps ``epsilon * metric``.

    Half of the pairs are words and their nearest, a sixth words and their farthest, and the rest are random.

    ``function``: from a word to a word; or, which is faster, from a list of words to a list of the same length.
    ``words``: at least two different arguments, also unknown words, if ``metric`` accepts them. ``metric``: the
    distance between two words: finite, and not negative. ``epsilon``: the claimed loss for each unit of the metric, in
    nats. ``draws``: for each word, in each phase of the first of three rounds. ``alpha``: the probability that a true
    claim is refuted. ``seed``: for the choice of pairs, not of the function's own randomness. ``takes_lists``: by
    default the function's attribute of that name.

    Returns an audit of kind ``callable``. Raises :class:`ConfigError` if a number is out of range, words are too few or
    repeat, a distance is negative or not finite, or the function raises or returns something other than strings.
    """
    _check_arguments(words, epsilon, pairs, draws, alpha)
    if takes_lists is None:
        takes_lists = getattr(function, BATCH_ATTRIBUTE, False) is True
    sampler = CallableSampler(function, words, takes_lists)
    notes = _notes(sampler)
    chosen = _choose_pairs(words, metric, epsilon, pairs, seed)
    naming = Naming(show=sampler.show, known=range(len(words)))
    findings = audit_pairs(sampler, chosen, alpha=alpha * (1 - _REPETITION), draws=draws, naming=naming)
    repetition = _audit_repetition(sampler, chosen, alpha * _REPETITION, draws, seed)
    name = name_callable(function)
    facts = {
        "function": name,
        "metric": name_callable(metric),
        "words": f"{len(words):,}",
        "epsilon": f"{epsilon:g}",
        "pairs": f"{len(chosen):,}",
        "draws of a word": f"{draws:,}, up to {draws << (ROUNDS - 1):,}",
        "seed of the pairs": str(seed),
        "versions": f"wordveil {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    }
    return Audit("callable", name, name, facts, alpha, (*findings, repetition), notes)


def name_callable(function: Callable[..., Any]) -> str:
    """Return ``module:function``, or the type of an object that has no name."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def _notes(sampler: CallableSampler) -> tuple[str, ...]:
    """List remarks for readers: a function that does not draw hides nothing."""
    drawn = [np.unique(sampler.draw(word, _TRIED, 0)) for word in range(min(_WORDS_TRIED, len(sampler.words)))]
    notes = ["An audit can refute a claim. It cannot prove one: see the power of each test."]
    if all(len(outputs) == 1 for outputs in drawn):
        different = len(np.unique(np.concatenate(drawn)))
        what = (
            "it gives every word the same output, which tells nothing of a word"
            if different == 1
            else "its outputs tell words apart for certain: no finite epsilon holds"
        )
        notes.append(f"The function is deterministic: {_TRIED} calls gave one output for each word. So {what}.")
    return tuple(notes)


def _choose_pairs(
    words: Sequence[str], metric: Callable[[str, str], float], epsilon: float, pairs: int, seed: int
) -> tuple[WordPair, ...]:
    nearest, farthest = (pairs + 1) // 2, pairs // 6
    counts = PairCounts(nearest=nearest, farthest=farthest, random=pairs - nearest - farthest)

    def distances(word: int, others: Int32) -> Float64:
        return np.array([_measure(metric, words[word], words[other]) for other in others.tolist()])

    ids = np.arange(len(words), dtype=np.int32)
    return choose_pairs(ids, distances, lambda apart: epsilon * apart, counts=counts, seed=seed)


def _measure(metric: Callable[[str, str], float], first: str, second: str) -> float:
    try:
        distance = float(metric(first, second))
    except Exception as error:
        raise _fault(
            f"it raised {type(error).__name__} for {first!r} and {second!r}: {error}", where="metric"
        ) from error
    if not 0 <= distance < math.inf:
        raise _fault(
            f"the distance of {first!r} and {second!r} is {distance}.", "It must be finite, 0 or more.", "metric"
        )
    return distance


def _audit_repetition(
    sampler: CallableSampler, pairs: Sequence[WordPair], alpha: float, draws: int, seed: int
) -> Finding:
    """Test whether a call repeats the previous one, or a series an earlier one: a function may set its seed."""
    agreements: list[tuple[str, Agreement]] = []
    count = max(draws, 8)
    words = list(dict.fromkeys(pair.first for pair in pairs))[:_WORDS_TRIED]
    for word in words:
        first, second = sampler.draw(word, count, 0), sampler.draw(word, count, 1)
        shown = sampler.show(word)
        agreements.append((f"one call and the next, for {shown}", compare_outputs(*split_lag(first, 1), seed=seed)))
        agreements.append((f"two series of calls, for {shown}", compare_outputs(first, second, seed=seed)))
    return summarise_agreements(agreements, alpha, 2 * count * len(words))


def _check_arguments(words: Sequence[str], epsilon: float, pairs: int, draws: int, alpha: float) -> None:
    faults = []
    if not 0 <= epsilon < math.inf:
        faults.append(Fault("epsilon", str(epsilon), "expected a finite number, 0 or more."))
    if not 0 < alpha < 1:
        faults.append(Fault("alpha", str(alpha), "expected a number between 0 and 1."))
    if pairs < 1:
        faults.append(Fault("pairs", str(pairs), "expected 1 or more."))
    if draws < 4:
        faults.append(Fault("draws", str(draws), "expected 4 or more.", "Thousands are needed to refute anything."))
    if not all(isinstance(word, str) for word in words):
        faults.append(Fault("words", "", "expected strings only."))
    elif len(set(words)) < 2 or len(set(words)) < len(words):
        faults.append(Fault("words", f"{len(words)}", "expected at least two words, all different."))
    if faults:
        raise ConfigError(_SOURCE, faults)


def _fault(problem: str, hint: str = "", where: str = "function") -> ConfigError:
    return ConfigError(_SOURCE, [Fault(where, "", problem, hint)])
