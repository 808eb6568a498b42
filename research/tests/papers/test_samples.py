"""Samples of corpora, on small made files."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest

from wordveil.errors import InputError
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.papers.samples import (
    NOVELS,
    cut_to_words,
    halve_each,
    keep_first,
    read_authors,
    read_labels,
    read_novels,
    shorten_to_words,
    take_each,
)


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_texts_are_cut_behind_a_word_and_short_ones_are_left_out():
    documents = Documents.of(["One, two -- three; four.", "one two", "a b c"], ["x", "y", "x"])
    found = cut_to_words(documents, 3)
    assert list(found.texts) == ["One, two -- three", "a b c"]
    assert found.labels.tolist() == [0, 0]
    assert found.names == ("x", "y")


def test_short_texts_stay_whole_where_long_ones_are_shortened():
    found = shorten_to_words(Documents.of(["One, two -- three!", "one", "a b c"], ["x", "y", "x"]), 2)
    assert list(found.texts) == ["One, two", "one", "a b"]


def test_a_long_text_without_words_is_judged_in_no_time():
    assert len(cut_to_words(Documents.of(["-" * 200_000], ["x"]), 50)) == 0


def test_sample_so_many_texts_per_label_same_each_time():
    labels = np.array([0] * 30 + [1] * 3 + [UNKNOWN] * 5)
    documents = Documents([str(number) for number in range(38)], labels, ("a", "b"))
    found = take_each(documents, 5, seed=1)
    assert np.bincount(found.labels).tolist() == [5, 3]
    assert list(found.texts) == list(take_each(documents, 5, seed=1).texts)
    assert list(found.texts) != list(take_each(documents, 5, seed=2).texts)


def test_halves_share_no_text_and_lose_none():
    documents = Documents.of([str(number) for number in range(26)], ["a", "b"] * 13)
    halves = halve_each(documents, seed=0)
    assert {*halves.train.texts} | {*halves.test.texts} == {*documents.texts}
    assert not {*halves.train.texts} & {*halves.test.texts}
    assert np.bincount(halves.train.labels).tolist() == [7, 7]


def test_the_first_labels_lose_the_other_names():
    found = keep_first(Documents.of(["1", "2", "3"], ["a", "b", "c"]), 2)
    assert (list(found.texts), found.names, found.chance) == (["1", "2"], ("a", "b"), 0.5)


def test_authors_without_known_text_are_not_judged(tmp_path):
    rows = [
        {"author": author, "split": split, "text": f"{author} {split}"}
        for author, split in (("a", "train"), ("b", "train"), ("a", "test+"), ("z", "test+"), ("b", "valid+"))
    ]
    write_rows(tmp_path / "pan11_small.jsonl.xz", rows)
    found = read_authors(tmp_path, "pan11_small")
    assert list(found.test.texts) == ["a test+", "b valid+"]
    assert found.test.labels.tolist() == [0, 1]


def test_task_without_parts_cut_in_two(tmp_path):
    rows = [{"label": str(number % 2), "split": "-", "text": f"text {number}"} for number in range(50)]
    write_rows(tmp_path / "mr.jsonl.xz", rows)
    found = read_labels(tmp_path, "mr")
    assert (len(found.train), len(found.test)) == (40, 10)
    assert not {*found.train.texts} & {*found.test.texts}
    parts = ("train", "train", "dev", "test")
    write_rows(tmp_path / "sst2.jsonl.xz", [{"label": str(n % 2), "split": p, "text": p} for n, p in enumerate(parts)])
    found = read_labels(tmp_path, "sst2")
    assert (list(found.train.texts), list(found.test.texts)) == (["train", "train"], ["test"])


def write_novels(path: Path, books: dict[str, str]) -> None:
    with tarfile.open(path, "w:xz") as archive:
        for name, text in books.items():
            entry = tarfile.TarInfo(f"corpus/{name}.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def test_novels_third_judged_authors_of_one_left_out(tmp_path):
    books = {f"Ann_{title}_{year}": f"{title} " * 100 for title, year in (("last", 1903), ("mid", 1902), ("old", 1901))}
    books |= {f"Bob_{title}_1890": f"b{title} " * 100 for title in ("a", "b", "c")} | {"Cat_only_1900": "c " * 100}
    write_novels(tmp_path / NOVELS, books)
    found = read_novels(tmp_path, tmp_path / "work", 20, 10, 3)
    assert found.train.names == found.test.names == ("Ann", "Bob")
    assert [text.split() for text in found.train.texts[:2]] == [["old"] * 20, ["mid"] * 20]
    assert [text.split() for text in found.test.texts[:3]] == [["last"] * 10] * 3
    again = read_novels(tmp_path, tmp_path / "work", 20, 10, 3)
    assert list(again.test.texts) == list(found.test.texts)


def test_a_book_that_is_too_short_is_named_and_not_quoted(tmp_path):
    write_novels(tmp_path / NOVELS, {f"Ann_{title}_1900": "secret " * 100 for title in "abc"})
    with pytest.raises(InputError, match="one of Ann has 80") as caught:
        read_novels(tmp_path, tmp_path / "work", 81, 10, 1)
    assert "secret" not in str(caught.value)


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(InputError, match=NOVELS):
        read_novels(tmp_path, tmp_path / "work", 1, 1, 1)
