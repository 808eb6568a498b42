"""N-gram models without Spark, and slot selection by its definition: counts of everything, in plain Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordveil.artifacts.ngram_model import open_model, write_model
from wordveil.text.slots import NgramModel, NgramSettings, assemble_trie

BEGINNING = ("",)


def cut_words(text: str) -> list[str]:
    return re.findall(r"[a-zà-öø-ÿ0-9]+(?:'[a-zà-öø-ÿ0-9]+)*", text.lower())


def has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def count_ngrams(texts: Iterable[str], max_n: int) -> Counter[tuple[str, ...]]:
    """Count every n-gram; a text begins with the word ``""``, and words with a digit are in no n-gram."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = ["", *cut_words(text)]
        for n in range(1, max_n + 1):
            for start in range(len(words) - n + 1):
                gram = tuple(words[start : start + n])
                if not any(has_digit(word) for word in gram):
                    counts[gram] += 1
    return counts


def select_slots(
    text: str, counts: Counter[tuple[str, ...]], settings: NgramSettings, threshold: float, start: float
) -> list[bool]:
    total = sum(count for gram, count in counts.items() if len(gram) == 1 and gram != BEGINNING)
    kept = []
    context: list[str] = [""]
    for word in cut_words(text):
        keep = False
        if counts[word,] >= settings.min_count:
            ends = [tuple(context[-n:]) for n in range(min(len(context), settings.max_n - 1), 0, -1)]
            seen = [end for end in ends if counts[end] * threshold >= settings.min_count]
            keep = counts[*seen[0], word] >= counts[seen[0]] * threshold if seen else counts[word,] >= start * total
        kept.append(keep)
        context = [*context, word] if keep else []
    return kept


def make_model(store: Path, texts: Sequence[str], settings: NgramSettings) -> NgramModel:
    counts = count_ngrams(texts, settings.max_n)
    total = sum(count for gram, count in counts.items() if len(gram) == 1 and gram != BEGINNING)
    frequent = {gram: count for gram, count in counts.items() if count >= settings.min_count or gram == BEGINNING}
    words = [
        "",
        *sorted(
            (gram[0] for gram in frequent if len(gram) == 1 and gram[0]), key=lambda word: (-frequent[word,], word)
        ),
    ]
    numbers = {word: number for number, word in enumerate(words)}
    rows = sorted(
        (len(gram), [numbers[word] for word in gram], count) for gram, count in frequent.items() if len(gram) > 1
    )
    grams = np.full((len(rows), settings.max_n), -1, np.int32)
    for row, (length, ids, _) in enumerate(rows):
        grams[row, :length] = ids
    word_counts = np.array([frequent.get((word,), 0) for word in words], np.int64)
    trie = assemble_trie(word_counts, grams, np.array([count for *_, count in rows], np.int64))
    return open_model(write_model(store, settings, pa.array(words, pa.string()), total, trie, {}))
