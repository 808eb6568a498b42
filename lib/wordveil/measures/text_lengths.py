"""Number of words of sanitised texts, and public lengths that fit texts of given lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Int32, Int64
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.measures.token_draws import draw_texts, draw_tokens, spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.text.policy import TextPolicy

EXAMPLES = (0, 10, 100)
"""Numbers of words of the texts whose output is forecast."""
_WORDS, _DRAWS, _TEXTS = 100, 1_000, 20
_MIN_SUGGESTED = 8


@dataclass(frozen=True)
class Suggestion:
    """Public length for texts like those of a sample.

    ``n_max``: the p95 of the tokens of a record, rounded up to 8, 12, 16, 24, 32 and so on, so that it reveals little
    of the corpus. ``cut``: number of released records that are longer.
    """

    n_max: int
    cut: int


def suggest_length(lengths: Int64, p95: int, largest: int) -> Suggestion:
    """Suggest a public length, at most ``largest``, for texts of ``lengths``, int64 ``(texts,)``, with this ``p95``."""
    length = min(round_length(p95), largest)
    return Suggestion(length, int((lengths > length).sum()))


def round_length(tokens: int) -> int:
    """Round up to the least of 8, 12, 16, 24, 32, 48 and so on that is not below ``tokens``."""
    power = _MIN_SUGGESTED
    while power < tokens:
        if 3 * power // 2 >= tokens:
            return 3 * power // 2
        power *= 2
    return power


@dataclass(frozen=True)
class OutputLength:
    """Number of words of a sanitised text whose original has ``words`` words to replace.

    ``draws``: number of draws that ``mean`` and standard ``deviation`` are estimated from; None if they follow from
    exact laws.
    """

    words: int
    mean: float
    deviation: float
    draws: int | None = None


def forecast_lengths(policy: TextPolicy, mechanism: Mechanism[Any], size: int) -> list[OutputLength]:
    """Forecast the number of words of sanitised texts with 0, 10 and 100 words, spread evenly over the vocabulary.

    Unknown probabilities are estimated with a throwaway key.
    """
    if not policy.pads:
        return [OutputLength(words, float(policy.n_max or words), 0.0) for words in EXAMPLES]
    width = policy.n_max or 0
    if mechanism.reads_context:
        return [_forecast_texts(words, width, mechanism, size) for words in EXAMPLES]
    word, draws = _word_share(mechanism, spread_words(size, _WORDS), size)
    padding, _ = _word_share(mechanism, np.array([size], np.int32), size)
    lengths = []
    for words in EXAMPLES:
        word_count = min(words, width)
        filled = width - word_count
        variance = word_count * word * (1 - word) + filled * padding * (1 - padding)
        lengths.append(OutputLength(words, word_count * word + filled * padding, math.sqrt(variance), draws))
    return lengths


def share_padding(policy: TextPolicy, mechanism: Mechanism[Any], size: int) -> float | None:
    """Compute the share of padding that becomes words; None if the policy does not pad, or without known laws."""
    law = mechanism.probabilities(size) if policy.pads and not mechanism.reads_context else None
    return None if law is None else 1.0 - float(law[size])


def _forecast_texts(words: int, width: int, mechanism: Mechanism[Any], size: int) -> OutputLength:
    """Forecast by draws of whole texts, for mechanisms with outputs that depend on other words."""
    word_count = min(words, width)
    texts = np.full((_TEXTS, width), size, np.int32)
    texts[:, :word_count] = (np.arange(_TEXTS * word_count).reshape(_TEXTS, word_count) * 7919) % size
    offsets = np.arange(_TEXTS + 1) * width
    drawn, _ = draw_texts(mechanism, texts.ravel(), offsets, math.inf)
    written = (drawn.reshape(_TEXTS, width) != size).sum(axis=1)
    return OutputLength(words, float(written.mean()), float(written.std()), _TEXTS)


def _word_share(mechanism: Mechanism[Any], symbols: Int32, pad: int) -> tuple[float, int | None]:
    """Estimate the probability that one of ``symbols`` becomes a word, not padding; with the number of draws."""
    laws = [mechanism.probabilities(symbol) for symbol in symbols.tolist()]
    padding_shares = [law[pad] for law in laws if law is not None]
    if padding_shares:
        return 1.0 - float(np.mean(padding_shares)), None
    ids = np.resize(symbols, _DRAWS).astype(np.int32)
    return float(np.mean(draw_tokens(mechanism, ids, b"length", make_throwaway_keys()) != pad)), _DRAWS
