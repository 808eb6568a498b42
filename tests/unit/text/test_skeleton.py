"""What is copied and what is drawn are written where they belong, whatever their lengths."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.choices import DROP, HIDE, KEEP, SHOW
from wordveil.text.skeleton import Skeleton, join_words
from wordveil.text.tokeniser import Tokeniser

# Bytes are copied 16 at a time: lengths about that, and the last words of their buffer.
WORDS = ["", "b" * 16, *("w" * size for size in (1, 2, 8, 15, 16, 17, 31, 33)), "é" * 8, "\x00", "\x02", "end"]
ALPHABET = [*"aB .'-\n", " ", " ", "é", "\U0001f600", "\x00", "\x02", "long" * 5]


def write(skeleton: Skeleton, drawn: list[str], values: list[str]) -> list[str]:
    """What :meth:`Skeleton.fill` must give, a token at a time."""
    tokens = skeleton.tokens
    data, edges = view_strings(tokens.texts)
    read = bytes(data)
    out = []
    hidden, shown = iter(drawn), iter(values)
    for record, (first, last) in enumerate(itertools.pairwise(tokens.offsets)):
        parts, copied = [], int(edges[record])
        for token in range(first, last):
            start, end = int(tokens.starts[token]), int(tokens.ends[token])
            what = skeleton.action[token]
            gap = read[copied:start].decode() if skeleton.gaps else " " if parts and what != DROP else ""
            word = {HIDE: lambda: next(hidden), SHOW: lambda: next(shown), DROP: str}.get(
                what, read[start:end].decode
            )()
            if skeleton.gaps or what != DROP:
                parts.append(gap + word)
            copied = end
        out.append("".join(parts) + (read[copied : edges[record + 1]].decode() if skeleton.gaps else ""))
    return out


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("actions", [(HIDE,), (KEEP,), (SHOW,), (DROP,), (HIDE, DROP, KEEP, SHOW)])
def test_skeletons_are_filled_as_a_token_at_a_time(*, gaps: bool, actions: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    words = view_strings(pa.array(["x", *WORDS])[1:])
    for count in (0, 1, 2, 60):
        for _ in range(10):
            texts = ["".join(rng.choice(ALPHABET, rng.integers(0, 40))) for _ in range(count + 2)]
            tokens = Tokeniser().cut_words(pa.array(texts)[1 : count + 1])
            skeleton = Skeleton(tokens, rng.choice(np.array(actions, np.int8), len(tokens.starts)), gaps, None)
            ids = rng.integers(0, len(WORDS), int((skeleton.action == HIDE).sum())).astype(np.int32)
            values = [WORDS[number] for number in rng.integers(0, len(WORDS), int((skeleton.action == SHOW).sum()))]
            filled = skeleton.fill(ids, words, pa.array(values, pa.string()))
            filled.validate(full=True)
            assert filled.to_pylist() == write(skeleton, [WORDS[number] for number in ids], values)


def test_words_of_every_length_are_joined() -> None:
    rng = np.random.default_rng(2)
    words = view_strings(pa.array(["x", *WORDS])[1:])
    for _ in range(50):
        counts = rng.integers(0, 9, 20)
        ids = rng.integers(0, len(WORDS) + 1, counts.sum()).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        records = [ids[start:end] for start, end in itertools.pairwise(offsets)]
        joined = join_words(words, ids, offsets)
        joined.validate(full=True)
        assert joined.to_pylist() == [
            " ".join(WORDS[number] for number in some if number < len(WORDS)) for some in records
        ]


def test_texts_beyond_what_an_array_holds_are_refused() -> None:
    words = view_strings(pa.array(["w" * 2**20]))
    with pytest.raises(OverflowError, match="2 GiB"):
        join_words(words, np.zeros(2**11, np.int32), np.array([0, 2**11]))
