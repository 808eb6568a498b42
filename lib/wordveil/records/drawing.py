"""From the hidden words of records to the words that are written for them: drawn, put into an order, rendered.

What is written is a function of what was drawn, of public data and of an order that does not depend on the words; and,
where a word is drawn once for all its places, of which places hold the same word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.keys import ReleaseKeys
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.text.order import draw_order
from wordveil.text.repetition import Pattern


@dataclass(frozen=True)
class Written:
    """What is written for the tokens of records.

    Attributes
    ----------
    batch
        what is written, with the offsets of the tokens.
    replaced
        int32 ``(tokens,)``: the id that each written one replaces.
    drawn
        int64 ``(records,)``: the tokens that were drawn.
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
) -> Written:
    """Draw the words of records and choose what is written for them.

    Parameters
    ----------
    mechanism
        what draws and renders.
    batch
        the tokens of records.
    keys
        the keys of noise and order.
    pattern
        which tokens are the same word: each is drawn once, at the number of distinct words before it as its position.
        Whatever is rendered at its first place is then written at all of them. None: every token is drawn.
    bag
        whether each record's tokens are written in a random order.
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
        order = draw_order(batch.offsets, batch.contexts, keys.shuffle)
        replaced, drawn = replaced[order], replace(drawn, ids=drawn.ids[order])
        pattern = pattern and pattern.reorder(order)
    written = mechanism.render(drawn)
    if pattern is not None:
        written = replace(written, ids=pattern.unify(written.ids))
    return Written(written, replaced, counts)
