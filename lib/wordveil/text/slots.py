"""Slot selection: an n-gram model of public text decides which words are carrier phrases, and which are hidden.

Feyisetan, Diethe, Drake (ICDM 2019, section VII-D) keep sub-phrases that are frequent in public text, the carrier
phrases, and hide the words with a low transition probability, the slots. A word is decided by the words before it:

- Its context is the words kept since the last hidden one, at most ``max_n - 1``, or since the beginning of the text,
  which counts as a word. So a hidden word influences no other decision.
- The longest end of the context that occurs ``min_count / threshold`` times or more in the public text decides: the
  word is kept if its probability after that is at least ``threshold``. An n-gram that the model left out occurs less
  than ``min_count`` times, so knowing its count would change no decision.
- Without such an end the word is kept if its share of all words is ``start_threshold`` or more.

Words that the model lacks and words with a digit, which it never holds, are hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool, Int32, Int64
from wordveil.compiled import compiled, compiled_part, find_first_from
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.choices import Hyphens, TokeniserKind

START = 0
"""Number of the beginning of a text among the model's words, written as the empty string, which is no word."""


@dataclass(frozen=True)
class NgramSettings:
    """Settings of counting an n-gram model.

    ``max_n``: words of the longest n-grams, 2 to :data:`wordveil.text.choices.MAX_N`, the beginning of a text included.
    ``min_count``: the least count of an n-gram, 1 or more. ``tokeniser``, ``hyphens``: those of the text policy.
    """

    max_n: int = 4
    min_count: int = 5
    tokeniser: TokeniserKind = TokeniserKind.WORDS
    hyphens: Hyphens = Hyphens.SPLIT


class Trie(NamedTuple):
    """Arrays of a :class:`NgramModel`, as compiled code takes them."""

    words: Int32
    counts: Int64
    first: Int64


@dataclass(frozen=True)
class NgramModel:
    """Model of n-gram counts as a trie.

    ``path``: its directory. ``digest``: SHA-256 of all that follows, in hex. ``settings``: how it was counted.
    ``total``: words of the public text without digits. ``index``: finds the numbers of words, with :data:`START`.
    ``words``: int32 ``(nodes,)``, the last word of each n-gram: first the words by number, then n-grams by length, then
    by the numbers of their words. ``counts``: int64 ``(nodes,)``, occurrences in the public text. ``first``: int64
    ``(nodes + 1,)``, node ``i`` has the children ``first[i]`` up to ``first[i + 1]``, ordered by their words.
    """

    path: Path
    digest: str
    settings: NgramSettings
    total: int
    index: WordIndex
    words: Int32
    counts: Int64
    first: Int64

    def mark_kept(self, words: pa.StringArray, offsets: Int64, threshold: float, start_threshold: float) -> Bool:
        """Mark the words that are kept: bool ``(len(words),)``.

        ``words``: all words of the texts, from :func:`wordveil.text.tokeniser.fold_words`. ``threshold``,
        ``start_threshold``: see the module; both above 0, at most 1.
        """
        kept = np.zeros(len(words), np.bool_)
        numbers = self.index.numbers(words)
        trie, settings = Trie(self.words, self.counts, self.first), self.settings
        start_count = start_threshold * self.total
        keep_phrases(numbers, offsets, trie, settings.max_n, settings.min_count, threshold, start_count, kept)
        return kept


def assemble_trie(word_counts: Int64, grams: Int32, gram_counts: Int64) -> Trie:
    """Assemble the trie of n-grams.

    ``word_counts``: int64 ``(words,)``. ``grams``: int32 ``(n-grams, max_n)``, the numbers of the words of all n-grams
    of two words or more, -1 after the last; ordered by length, then by the numbers. ``gram_counts``: int64
    ``(n-grams,)``. Raises :class:`ValueError` if an n-gram lacks its beginning.
    """
    size, width = len(word_counts), grams.shape[1]
    lengths = (grams >= 0).sum(axis=1)
    ends = size + np.searchsorted(lengths, np.arange(1, width + 1), side="right")  # of each length's nodes
    words = np.concatenate([np.arange(size, dtype=np.int32), grams[np.arange(len(grams)), lengths - 1]])
    first = np.full(len(words) + 1, len(words), np.int64)
    before = 0
    for length in range(2, width + 1):
        start, end = ends[length - 2], ends[length - 1]
        parents = np.empty(end - start, np.int64)
        find_parents(grams[start - size : end - size], length, words, first, parents)
        if (parents < before).any():
            raise ValueError("the n-grams contain one without its beginning.")
        first[before : start + 1] = start + np.searchsorted(parents, np.arange(before, start + 1))
        before = start
    return Trie(words.astype(np.int32), np.concatenate([word_counts, gram_counts]), first)


@compiled_part
def find_child(node: Any, word: Any, words: Int32, first: Int64) -> Any:
    """Find the n-gram ``node`` with ``word`` at its end, or -1."""
    end = first[node + 1]
    child = find_first_from(word, first[node], end, words)
    return child if child < end and words[child] == word else -1


@compiled
def find_parents(grams: Int32, length: int, words: Int32, first: Int64, out: Int64) -> None:
    """Find the node of each n-gram of ``length`` without its last word, or -1, by the children of shorter ones."""
    for row in range(len(grams)):
        node: Any = np.int64(grams[row, 0])
        for middle in range(1, length - 1):
            if node >= 0:
                node = find_child(node, grams[row, middle], words, first)
        out[row] = node


@compiled
def keep_phrases(
    numbers: Int32,
    offsets: Int64,
    trie: Trie,
    max_n: int,
    min_count: int,
    threshold: float,
    start_count: float,
    kept: Bool,
) -> None:
    """Decide which words are kept; see the module. ``start_count``: the least count of a word without context."""
    words, counts, first = trie
    ends = np.full(max_n, -1, np.int64)  # at k, the node of the last k words kept
    for record in range(len(offsets) - 1):
        run = 1  # words kept since the last hidden one, as far as they count
        ends[1] = START
        for token in range(offsets[record], offsets[record + 1]):
            word = numbers[token]
            keep = False
            if word >= 0:
                length = run
                while length > 0 and (ends[length] < 0 or threshold * counts[ends[length]] < min_count):
                    length -= 1
                if length > 0:
                    child = find_child(ends[length], word, words, first)
                    keep = child >= 0 and counts[child] >= threshold * counts[ends[length]]
                else:
                    keep = counts[word] >= start_count
            kept[token] = keep
            if not keep:
                run = 0
                continue
            run = min(run + 1, max_n - 1)
            for length in range(run, 1, -1):
                ends[length] = -1 if ends[length - 1] < 0 else find_child(ends[length - 1], word, words, first)
            ends[1] = word


@dataclass(frozen=True)
class Grams:
    """N-grams of texts as bytes, ordered as :func:`assemble_trie` needs them.

    Each is its length, then the words' numbers plus 1 in four bytes, highest first, and zeros up to ``max_n`` words.
    """

    max_n: int

    @property
    def width(self) -> int:
        """Number of bytes of an n-gram."""
        return 1 + 4 * self.max_n

    def encode(self, numbers: Int32, offsets: Int64) -> pa.FixedSizeBinaryArray:
        """Encode all n-grams of two words or more of the texts, those at their beginnings included.

        An n-gram never crosses a number below 0 in ``numbers``, int32 ``(tokens,)``.
        """
        numbers = np.insert(numbers, offsets[:-1], START)
        record = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets) + 1)
        digits = (numbers + 1).astype(">u4")
        known = numbers >= 0
        whole, parts = known, []
        for length in range(2, self.max_n + 1):
            if len(numbers) < length:
                break
            whole = whole[:-1] & known[length - 1 :] & (record[: 1 - length] == record[length - 1 :])
            starts = np.flatnonzero(whole)
            part = np.zeros((len(starts), self.max_n), ">u4")
            for step in range(length):
                part[:, step] = digits[starts + step]
            rows = np.full((len(starts), self.width), length, np.uint8)
            rows[:, 1:] = part.view(np.uint8).reshape(len(starts), self.width - 1)
            parts.append(rows)
        rows = np.concatenate(parts) if parts else np.empty((0, self.width), np.uint8)
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(self.width), len(rows), [None, pa.py_buffer(rows.tobytes())]
        )

    def decode(self, data: bytes) -> Int32:
        """Decode n-grams one after the other: int32 ``(n-grams, max_n)``, -1 after the last word."""
        rows = np.frombuffer(data, np.uint8).reshape(-1, self.width)[:, 1:]
        return (np.ascontiguousarray(rows).view(">u4").astype(np.int64) - 1).astype(np.int32)
