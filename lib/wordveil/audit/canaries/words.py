"""Words of canaries: public words of the vocabulary, and made-up ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool
from wordveil.artifacts.bundle import Bundle
from wordveil.text.choices import Length, Names, Refused
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

MARK = "\ue000"
"""Stands in a document for a made-up word; each copy of the document has its own."""
MARK_LETTERS = 16
"""Letters of such a word."""
_PLAIN, _TRIED, _ATTEMPTS = 16, 3_000, 20
_STOP_WORDS = ("the", "of", "and", "to")
_LETTERS = "bcdfghjklmnpqrstvwxz"
_MARK = re.compile(f"zq[{_LETTERS}]{{{MARK_LETTERS - 2}}}")


@dataclass(frozen=True)
class CanaryWords:
    """Words of documents.

    ``plain``: words of the vocabulary that the policy hides in any order. ``cased``: those of them that have letters of
    two cases. ``stop``: two words of the policy's stop-word list, or common English words where it has none.
    ``carriers``: two words that the n-gram model copies anywhere, if there are any.
    """

    plain: tuple[str, ...]
    cased: tuple[str, ...]
    stop: tuple[str, ...]
    carriers: tuple[str, ...]


def choose_words(
    bundle: Bundle,
    policy: TextPolicy,
    model: NgramModel | None,
    rng: np.random.Generator,
    *,
    names_language: bool = False,
) -> CanaryWords:
    """Choose the words of documents.

    ``bundle``: its vocabulary and its public lists. ``policy``: the text policy of the release. ``model``: the n-gram
    model that the policy names, if any. ``rng``: chooses them. ``names_language``: whether records name their language,
    so that no language is identified.

    Raises
    ------
    ValueError
        where the policy hides no text of such words, for example because it refuses all of them.
    """
    open_policy = replace(policy, length=Length.AS_IS, n_max=None, refused=Refused.QUARANTINE)
    codec = Codec(open_policy, bundle.vocabulary, model, bundle.lists)
    listed = bundle.vocabulary.array
    tried = listed.take(pa.array(rng.permutation(len(listed))[:_TRIED]))
    words = [word for word in tried.to_pylist() if word.isalpha() and word == word.lower()] or tried.to_pylist()
    hidden = _find_hidden(codec, words)
    other = np.zeros(2, np.bool_) if names_language else None
    for _ in range(_ATTEMPTS):
        plain = [hidden[index] for index in rng.permutation(len(hidden))[:_PLAIN]]
        if plain and _are_hidden(codec, plain, bundle.vocabulary.unknown, other):
            carriers = _find_carriers(codec, model, words)
            return CanaryWords(tuple(plain), _find_cased(codec, policy, plain), _stop_words(policy), carriers)
    raise ValueError("the text policy hides no text that consists of words of the vocabulary.")


def make_marks(count: int, rng: np.random.Generator) -> list[str]:
    """Make words of consonants that no vocabulary has and that nobody can guess, one for each copy of a document."""
    letters = rng.choice(list(_LETTERS), (count, MARK_LETTERS - 2))
    return ["zq" + "".join(row) for row in letters.tolist()]


def find_marks(text: str) -> frozenset[str]:
    """Find all words in a text that :func:`make_marks` may have made, in any case, also inside others."""
    return frozenset(_MARK.findall(text.lower()))


def _find_hidden(codec: Codec, words: Sequence[str]) -> list[str]:
    """Select those of ``words`` that are hidden if each is a text of its own."""
    encoded = codec.encode(pa.array(words, pa.string()), np.zeros(len(words), np.bool_))
    starts, counts = encoded.offsets[:-1], np.diff(encoded.offsets)
    rows = zip(words, starts, counts, encoded.unknown, encoded.refused, strict=True)
    return [
        word
        for word, start, tokens, unknown, refused in rows
        if refused is None and tokens == 1 and not unknown and start < len(encoded.ids)
    ]


def _are_hidden(codec: Codec, words: Sequence[str], unknown: int, other: Bool | None) -> bool:
    """Return whether a text of ``words``, forwards or backwards, is released and all its words are hidden."""
    encoded = codec.encode(pa.array([" ".join(words), " ".join(reversed(words))], pa.string()), other)
    released = all(refused is None for refused in encoded.refused)
    return released and not (encoded.ids == unknown).any() and bool((np.diff(encoded.offsets) == len(words)).all())


def _find_cased(codec: Codec, policy: TextPolicy, words: Sequence[str]) -> tuple[str, ...]:
    """Select those of ``words`` with letters of two cases that no list of names has in another case."""
    cased = [word for word in words if len(word) > 1 and word.capitalize() not in (word, word.upper())]
    if policy.names == Names.WORDS:
        return tuple(cased)
    first, all_upper = ({*_find_hidden(codec, [turn(word) for word in cased])} for turn in (str.capitalize, str.upper))
    return tuple(word for word in cased if word.capitalize() in first and word.upper() in all_upper)


def _stop_words(policy: TextPolicy) -> tuple[str, ...]:
    plain = [word for word in policy.stop_word_list if word.isalpha()] or list(policy.stop_word_list)
    return tuple((plain * 2)[:2] or _STOP_WORDS[:2])


def _find_carriers(codec: Codec, model: NgramModel | None, words: Sequence[str]) -> tuple[str, ...]:
    """Find two words that are copied after a hidden one, if there are any."""
    if model is None:
        return ()
    tried = [*_STOP_WORDS, *words]
    texts = [f"{word} zqxkvw {word}" for word in tried]
    encoded = codec.encode(pa.array(texts, pa.string()), np.zeros(len(texts), np.bool_))
    copied = [word for word, tokens in zip(tried, np.diff(encoded.offsets), strict=True) if tokens == 1]
    return tuple((copied * 2)[:2])
