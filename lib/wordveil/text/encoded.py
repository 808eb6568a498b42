"""Texts on their way to token ids: all their words, then the ids that a mechanism draws for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.crypto.streams import Payload
from wordveil.text.repetition import Pattern
from wordveil.text.skeleton import Skeleton
from wordveil.text.tokeniser import Pieces
from wordveil.text.types.typed import ShownTokens, TypedWords


@dataclass(frozen=True)
class Encoded:
    """Texts as canonical ids.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``.
    offsets
        int64 ``(records + 1,)``.
    words
        int64 ``(records,)``, words of the text before the policy.
    unknown
        int64 ``(records,)``, of those outside the vocabulary.
    refused
        reason code per record, or None: object ``(records,)``. A refused record has no ids.
    skeleton
        what is copied, or None where the policy copies nothing.
    pattern
        which tokens are the same word, or None where each is drawn on its own. A token of padding is the same as no
        other.
    forms
        the form in which each token is looked up, null for padding: a dictionary array ``(tokens,)``. None where
        ``pattern`` is.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    unknown: NDArray[np.int64]
    refused: NDArray[np.object_]
    skeleton: Skeleton | None
    pattern: Pattern | None = None
    forms: pa.DictionaryArray | None = None

    @property
    def shown(self) -> ShownTokens | None:
        """The typed tokens whose class shows; None where the policy shows no class."""
        return self.skeleton.shown if self.skeleton else None

    @property
    def shown_content(self) -> list[Payload]:
        """All that the output depends on beside the hidden words' ids: what the policy copies with the classes that it
        shows, and which positions hold the same word or token.
        """
        content = [] if self.skeleton is None else [self.skeleton.serialise()]
        patterns = (self.pattern, self.shown.pattern if self.shown else None)
        return content + [pattern.payload for pattern in patterns if pattern is not None]


@dataclass(frozen=True)
class CutWords:
    """All words of texts: their ids, what happens to each, and why a text is refused; ``pieces`` where Arrow cut them.

    ``action`` is None where every word is hidden. ``forms``, the form in which each word is looked up, is None where it
    does not matter which words are the same.
    ``is_typed``: bool ``(tokens,)``, None where no class is distinguished; ``typed`` where Arrow cut the texts.
    """

    ids: NDArray[np.int32]
    action: NDArray[np.int8] | None
    offsets: NDArray[np.int64]
    refused: NDArray[np.object_]
    pieces: Pieces | None = None
    forms: pa.DictionaryArray | None = None
    is_typed: NDArray[np.bool_] | None = None
    typed: TypedWords | None = None

    @property
    def unlisted(self) -> NDArray[np.int32]:
        """The ids, with -1 for typed tokens: these are not words that the vocabulary lacks."""
        return self.ids if self.is_typed is None else np.where(self.is_typed, np.int32(-1), self.ids)


class TokenReading(NamedTuple):
    """What a codec takes a token for: the token, its class (or ``word``, ``unknown word``), and what happens to it."""

    token: str
    taken_for: str
    treatment: str
