"""Texts on their way to token ids: all their words, then the ids that a mechanism draws for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Int8, Int32
from wordveil.crypto.streams import Payload
from wordveil.text.repetition import Forms, Pattern
from wordveil.text.scanner import A_WORD, Scanned
from wordveil.text.skeleton import Skeleton
from wordveil.text.types.typed import ShownTokens


@dataclass(frozen=True)
class Encoded:
    """Texts as canonical ids.

    ``ids``: int32 ``(tokens,)``. ``offsets``: int64 ``(records + 1,)``. ``words``: int64 ``(records,)``, words of the
    text before the policy. ``unknown``: int64 ``(records,)``, of those outside the vocabulary. ``refused``: reason code
    per record, or None: object ``(records,)``. A refused record has no ids. ``skeleton``: what is copied, or None where
    the policy copies nothing. ``pattern``: which tokens are the same word, or None where each is drawn on its own. A
    token of padding is the same as no other. ``forms``: the form in which each token is looked up. None where
    ``pattern`` is.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    unknown: NDArray[np.int64]
    refused: NDArray[np.object_]
    skeleton: Skeleton | None
    pattern: Pattern | None = None
    forms: Forms | None = None

    @property
    def shown(self) -> ShownTokens | None:
        """Typed tokens whose class shows; None if the policy shows no class."""
        return self.skeleton.shown if self.skeleton else None

    @property
    def shown_content(self) -> list[Payload]:
        """All inputs of the output besides the hidden words' ids.

        They are the copied parts with the classes that the policy shows, and which positions hold the same word or
        token.
        """
        content = [] if self.skeleton is None else [self.skeleton.serialise()]
        patterns = (self.pattern, self.shown.pattern if self.shown else None)
        return content + [pattern.payload for pattern in patterns if pattern is not None]


@dataclass(frozen=True)
class CutWords:
    """Words of texts: their ids, int32 ``(tokens,)``, the action on each, and the reason why a text is refused.

    ``action``: int8 ``(tokens,)``, None if every word is hidden. ``kinds``: int8 ``(tokens,)``, the classes of typed
    tokens, -1 for words. ``barred``: bool ``(records,)``, texts that are refused for an invisible character.
    """

    tokens: Scanned
    ids: Int32
    action: Int8 | None
    kinds: Int8
    refused: NDArray[np.object_]
    barred: NDArray[np.bool_]

    @property
    def unlisted(self) -> Int32:
        """Ids, with -1 for typed tokens: these are not words that the vocabulary lacks."""
        return np.where(self.kinds == A_WORD, self.ids, np.int32(-1))


class TokenReading(NamedTuple):
    """Explanation of a token: the token, its class (or ``word``, ``unknown word``), and the action on it."""

    token: str
    taken_for: str
    treatment: str
