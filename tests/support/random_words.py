"""The lower bound of every task: texts whose words are all replaced by random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa

from wordveil.crypto.keys import MasterKey, make_throwaway_keys
from wordveil.crypto.streams import CONTEXT_BYTES, KeyedStream
from wordveil.evaluation.classifiers import TextSanitiser
from wordveil.evaluation.utility.words import Words, cut_words

RANDOM = "random"
"""The subject of figures of random words."""


@dataclass(frozen=True)
class RandomWords(TextSanitiser):
    """Replaces every word by one drawn uniformly from a vocabulary: what is left is the number of words.

    Attributes
    ----------
    words
        string array ``(size,)``, at least one.
    """

    words: pa.StringArray

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Random words in place of those of the texts. The same seed gives the same words."""
        found = cut_words(texts)
        key = make_throwaway_keys().noise if seed is None else _derive_key(seed).subkey(RANDOM)
        count = len(found.words)
        uniforms = KeyedStream(key, 1).uniforms(np.zeros((count, CONTEXT_BYTES), np.uint8), np.arange(count))[0]
        chosen = np.minimum((uniforms * len(self.words)).astype(np.int64), len(self.words) - 1)
        return Words(self.words.take(pa.array(chosen)), found.offsets).join()


def _derive_key(seed: int) -> MasterKey:
    return MasterKey(sha256(b"wordveil: random words, %d" % seed).digest())
