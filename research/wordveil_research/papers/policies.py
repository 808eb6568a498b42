"""Which words of a text an experiment hides: every word, or as the papers' own preprocessing leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from wordveil.artifacts.ngram_model import DEMO, open_named
from wordveil.text.choices import Slots, StopWords
from wordveil.text.policy import SLOT_START_THRESHOLD, SLOT_THRESHOLD, TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.stop_words import ENGLISH, load_stop_words

HIDDEN = ""
"""Every word is hidden."""
DROPPED = "stop-words dropped"
"""Stop-words are removed before anything else (Fernandes, Dras, McIver 2019)."""
KEPT = "stop-words kept"
"""Stop-words are copied (Feyisetan, Diethe, Drake 2019, section VII-B3)."""
CARRIERS = "carrier phrases kept"
"""Words that are likely after the one before them are copied (section VII-D3), by the package's bigrams."""


def choose_words(policy: TextPolicy, words: str) -> TextPolicy:
    """Return the same policy, where ``words``, one of the names above, says which words are hidden."""
    return replace(policy, **_find_settings(words))


def find_model(policy: TextPolicy) -> NgramModel | None:
    """Find the n-gram model that a policy of :func:`choose_words` names."""
    return _open_model() if policy.ngrams else None


@cache
def _open_model() -> NgramModel:
    return open_named(DEMO)


def _find_settings(words: str) -> Mapping[str, Any]:
    if words == HIDDEN:
        return {}
    if words == CARRIERS:
        return {
            "slots": Slots.CARRIER_PHRASES,
            "ngrams": _open_model().digest,
            "slot_threshold": SLOT_THRESHOLD,
            "slot_start_threshold": SLOT_START_THRESHOLD,
        }
    chosen = {DROPPED: StopWords.DROP, KEPT: StopWords.KEEP}[words]
    return {"stop_words": chosen, "stop_word_list": load_stop_words(ENGLISH)}
