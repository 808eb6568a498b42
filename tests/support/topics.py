"""Made texts of topics, for tests of what tells texts apart."""

from __future__ import annotations

from functools import cache

import numpy as np

from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.scores.documents import Documents

NAMES = ("animals", "music", "weather")
_WORDS, _SHARED, _LENGTH = 20, 30, 12


def _spell(number: int) -> str:
    """A word of letters alone."""
    return "".join(chr(ord("a") + digit) for digit in (number // 26, number % 26, 7))


@cache
def topic_embedding() -> Embedding:
    """Words of three topics, each around a centre of its own, and words of none."""
    rng = np.random.default_rng(3)
    centres = np.vstack([4 * np.eye(3, 8), np.zeros((1, 8))])
    sizes = [_WORDS] * len(NAMES) + [_SHARED]
    vectors = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sum(sizes), 8))
    return check_embedding([_spell(number) for number in range(sum(sizes))], vectors.astype(np.float32), "topics")


def topic_texts(count: int, seed: int, share: float = 0.4) -> Documents:
    """Texts of three topics, which each have ``share`` of their words from their topic, and the others from none."""
    rng = np.random.default_rng(seed)
    words = np.array(topic_embedding().words.to_pylist())
    labels = rng.integers(0, len(NAMES), count)
    own = rng.integers(0, _WORDS, (count, _LENGTH)) + _WORDS * labels[:, None]
    common = rng.integers(0, _SHARED, (count, _LENGTH)) + _WORDS * len(NAMES)
    chosen = np.where(rng.random((count, _LENGTH)) < share, own, common)
    return Documents([" ".join(row) for row in words[chosen].tolist()], labels.astype(np.int64), NAMES)
