"""Treatment of records that do not suit the words of a policy's mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.text.characters import count_unsegmented
from wordveil.text.choices import OtherLanguage, TokeniserKind
from wordveil.text.language import OTHER_REFUSED, UNKNOWN_SHARE_REFUSED, find_other, require_packages
from wordveil.text.policy import TextPolicy
from wordveil.text.scanner import A_WORD, Scanned


class ForeignTexts:
    """Treatment of such records under one policy, a batch at a time; ``unknown`` is the unknown word's id.

    They are records of another language (``other_language``), those with too many words outside the vocabulary
    (``max_unknown_share``), and those mostly in scripts that the tokeniser does not segment. In all methods ``other``
    is bool ``(records,)``, as :meth:`find` returns it, and ``offsets`` int64 ``(records + 1,)``. Raises
    :class:`wordveil.errors.PlatformError` if the packages that the policy needs are not installed in its versions.
    """

    def __init__(self, policy: TextPolicy, unknown: int) -> None:
        require_packages(policy)
        self._rule = policy.other_language
        self._language = policy.language
        self._share = policy.max_unknown_share
        self._unknown = unknown

    def find(self, texts: pa.StringArray, named: Sequence[str | None] | None = None) -> NDArray[np.bool_]:
        """Find the texts of another language (:func:`wordveil.text.language.find_other`). There are none if the policy
        does not distinguish languages.
        """
        if self._rule == OtherLanguage.RELEASE:
            return np.zeros(len(texts), np.bool_)
        return find_other(texts, self._language, named)

    def blank(self, texts: pa.StringArray, other: NDArray[np.bool_]) -> pa.StringArray:
        """Return the texts to cut into words: those that are refused are empty."""
        return pc.if_else(pa.array(other), "", texts) if self._rule == OtherLanguage.QUARANTINE else texts

    def mask(
        self, numbers: NDArray[np.int32], offsets: NDArray[np.int64], other: NDArray[np.bool_]
    ) -> NDArray[np.bool_] | None:
        """Find the words to mask, bool ``(tokens,)``; None if there are none.

        Their ids, ``numbers`` int32 ``(tokens,)``, become the unknown word's.
        """
        if self._rule != OtherLanguage.MASK or not other.any():
            return None
        masked = np.repeat(other, np.diff(offsets))
        numbers[masked] = self._unknown
        return masked

    def refuse(
        self,
        refused: NDArray[np.object_],
        unknown: NDArray[np.int64],
        offsets: NDArray[np.int64],
        other: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Write the reasons of refused records into ``refused``, object ``(records,)``. Return which records have too
        many unknown words, bool ``(records,)``. ``unknown``: the number of each, int64 ``(records,)``. Masked records
        may have any number.
        """
        if self._rule == OtherLanguage.QUARANTINE:
            refused[other] = OTHER_REFUSED
        if self._share is None:
            return np.zeros(len(other), np.bool_)
        over = ~other & (unknown > self._share * np.diff(offsets))
        refused[over] = UNKNOWN_SHARE_REFUSED
        return over


def find_unsegmented(tokens: Scanned, kind: TokeniserKind) -> NDArray[np.bool_]:
    """Find the texts mostly in scripts that the tokeniser does not segment, bool ``(records,)``.

    More than half of the characters of their words are. In other texts such words are words like any.
    """
    records = np.repeat(np.arange(len(tokens.refused)), np.diff(tokens.offsets))
    words = np.flatnonzero(tokens.refused[records] & (tokens.kinds == A_WORD))
    strings = tokens.cut(words)
    unsegmented = count_unsegmented(strings, kind)
    majority = 2 * unsegmented - np.asarray(pc.utf8_length(strings))
    return np.bincount(records[words], majority, len(tokens.refused)) > 0
