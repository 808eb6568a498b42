"""Steps from the hidden words of records to the written ones: drawing, ordering, rendering.

The written words are a function of the drawn ones, of public data and of an order that does not depend on the words. If
a word is drawn once for all its occurrences, they also depend on which positions hold the same word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import Contexts, KeyedStream
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.text.order import draw_order
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.surrogates import WORDS, draw_values
from wordveil.text.types.typed import ShownTokens


@dataclass(frozen=True)
class Written:
    """Tokens written for those of records, with their offsets.

    ``replaced``: int32 ``(tokens,)``, the id that each written one replaces. ``drawn``: int64 ``(records,)``, the
    number of tokens drawn.
    """

    batch: TokenBatch
    replaced: NDArray[np.int32]
    drawn: NDArray[np.int64]


def write_words(
    mechanism: Mechanism[Any],
    batch: TokenBatch,
    keys: ReleaseKeys,
    pattern: Pattern | None = None,
    *,
    bag: bool = False,
    bounds: NDArray[np.int64] | None = None,
) -> Written:
    """Draw the words of records and choose the words to write for them.

    ``mechanism``: what draws and renders. ``batch``: the tokens of records. ``keys``: the keys of noise and order.
    ``pattern``: which tokens are the same word. Each word is drawn once, and its position is the number of distinct
    words before it. What is rendered for its first occurrence is written for all. None: every token is drawn. ``bag``:
    whether each text's tokens are written in a random order. ``bounds``: int64 ``(texts + 1,)``, the tokens of each
    text. Each record has the same number of texts. None: one.
    """
    if pattern is None:
        drawn = mechanism.draw(batch, keys)
        counts = np.diff(batch.offsets)
    else:
        distinct = TokenBatch(pattern.choose(batch.ids), pattern.distinct_offsets, batch.contexts)
        drawn = replace(batch, ids=pattern.spread(mechanism.draw(distinct, keys).ids))
        counts = np.diff(distinct.offsets)
    replaced = batch.ids
    if bag:
        order = draw_order(batch.offsets, batch.contexts, keys.shuffle, bounds)
        replaced, drawn = replaced[order], replace(drawn, ids=drawn.ids[order])
        pattern = pattern and pattern.reorder(order)
    written = mechanism.render(drawn if bounds is None else _by_text(drawn, bounds))
    if pattern is not None:
        written = replace(written, ids=pattern.unify(written.ids))
    return Written(replace(written, offsets=batch.offsets, contexts=batch.contexts), replaced, counts)


def draw_shown(
    shown: ShownTokens | None, contexts: Contexts, keys: ReleaseKeys, policy: TextPolicy, lists: PublicLists | None
) -> pa.StringArray | None:
    """Draw the texts to write for tokens whose class shows: uniformly, by class and shape alone.

    Within a class and shape a draw costs nothing, because the original token does not enter it. Equal tokens are drawn
    once if the policy draws words once. Of ``keys`` only ``types`` is used.

    Returns strings ``(shown,)``; None if the policy shows no class. ``lists``: the public lists, if the policy draws
    from them.
    """
    if shown is None:
        return None
    offsets = shown.offsets if shown.pattern is None else shown.pattern.distinct_offsets
    blocks = WORDS // 2  # a position of a stream has two words
    words = KeyedStream(keys.types, 1).record_words(contexts, offsets * blocks).reshape(-1, WORDS)
    if shown.pattern is not None:
        words = words[shown.pattern.spread(np.arange(len(words), dtype=np.int32))]
    return draw_values(shown.kinds, policy.type_actions, shown.shapes, words, lists)


def _by_text(batch: TokenBatch, bounds: NDArray[np.int64]) -> TokenBatch:
    """Split the tokens of records into texts, so that the output of one column does not depend on another."""
    texts = (len(bounds) - 1) // max(len(batch), 1)
    return TokenBatch(batch.ids, bounds, np.repeat(batch.contexts, texts, axis=0))
