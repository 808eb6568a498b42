"""Known text and snippets have the lengths that were asked for, and share no text."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.tasks.snippets import split_known_and_snippets


def numbered(lengths: dict[str, list[int]]) -> Documents:
    """Return texts whose words say where they stand."""
    rows = [
        (f"{author}.{text}", length, author) for author, all_of in lengths.items() for text, length in enumerate(all_of)
    ]
    texts = ["  ".join(f"{name}.{place}" for place in range(length)) for name, length, _ in rows]
    return Documents.of(texts, [author for *_, author in rows])


def test_lengths_and_texts():
    documents = numbered({"a": [30] * 6, "b": [7] * 30, "short": [60]})
    known, snippets = split_known_and_snippets(documents, 1, known_words=50, snippet_words=20)
    assert known.names == snippets.names == documents.names
    assert known.labels.tolist() == [0, 1]
    assert {len(text.split()) for text in known.texts} == {50}
    assert {len(text.split()) for text in snippets.texts} == {20}
    assert np.bincount(snippets.labels).tolist() == [6, 7]  # of 120 and 154 words
    sources = [{tuple(word.split(".")[:2]) for word in " ".join(part.texts).split()} for part in (known, snippets)]
    assert not sources[0] & sources[1]
    assert {word.split(".")[0] for word in snippets.texts[0].split()} == {"a"}


def test_a_single_text_is_cut_after_its_known_words():
    known, snippets = split_known_and_snippets(numbered({"a": [100], "b": [75]}), 1, 50, 20, most_snippets=1)
    assert known.texts[0].split()[-1] == "a.0.49"
    assert [text.split()[0] for text in snippets.texts] == ["a.0.50", "b.0.50"]


def test_the_order_is_the_seed_s():
    documents = numbered({"a": [20] * 9, "b": [20] * 9})
    first, again, other = (split_known_and_snippets(documents, seed, 40, 20) for seed in (1, 1, 2))
    assert first.snippets.texts == again.snippets.texts
    assert first.known.texts == again.known.texts
    assert first.known.texts != other.known.texts


def test_too_few_authors_are_refused():
    with pytest.raises(ValueError, match="two authors with 70 words, got 1"):
        split_known_and_snippets(numbered({"a": [100], "b": [69]}), 1, 50, 20)
    with pytest.raises(ValueError, match="known_words=0"):
        split_known_and_snippets(numbered({"a": [100], "b": [69]}), 1, 0, 20)


def test_texts_of_unknown_authors_are_left_out():
    documents = numbered({"a": [100], "b": [100], "c": [100]})
    labels = np.where(documents.labels == 2, UNKNOWN, documents.labels)
    known, _ = split_known_and_snippets(Documents(documents.texts, labels, documents.names), 1, 50, 20)
    assert known.labels.tolist() == [0, 1]
