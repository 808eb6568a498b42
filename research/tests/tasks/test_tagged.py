"""Tagged texts are read as they are written, keep their tags when they are sanitised, and are compared by spans."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from data_sets import DATA, needs_data
from wordveil.errors import InputError
from wordveil_research.tasks.slots import SlotTagger, load_intents, measure_slots
from wordveil_research.tasks.tagged import TaggedTexts, count_spans, load_tagged

LINES = """-DOCSTART- O

fly NN O
to TO O
New NNP B-city
York\tNNP\tI-city


now RB B-time
"""
ROWS = [
    {"split": "a", "tokens": ["fly", "to", "New", "York"], "tags": ["O", "O", "B-city", "I-city"]},
    {"split": "a", "tokens": ["now"], "tags": ["B-time"]},
    {"split": "b", "tokens": ["later"], "tags": ["B-time"]},
]


def read_back(texts: TaggedTexts) -> tuple[list[str], list[str], list[int]]:
    return texts.tokens.to_pylist(), texts.tags.to_pylist(), texts.offsets.tolist()


EXPECTED = (["fly", "to", "New", "York", "now"], ["O", "O", "B-city", "I-city", "B-time"], [0, 4, 5])


def test_files_of_two_columns_and_of_rows_are_read(tmp_path: Path):
    (tmp_path / "a.conll").write_text(LINES)
    (tmp_path / "a.bio.gz").write_bytes(gzip.compress(LINES.replace("\n", "\r\n").encode()))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    joined = [{**row, "tokens": " ".join(row["tokens"]), "tags": " ".join(row["tags"])} for row in ROWS]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in joined))
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    for name in ("a.conll", "a.bio.gz"):
        assert read_back(load_tagged(tmp_path / name)) == EXPECTED
    for name in ("a.jsonl", "b.jsonl", "a.parquet"):
        assert read_back(load_tagged(tmp_path / name, where={"split": "a"})) == EXPECTED
        assert len(load_tagged(tmp_path / name)) == 3


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", "secret O\nsecret\n", "line 2: expected a word and its tag"),
        ("a.txt", "secret city\n", "Expected tags that are O, or begin with B- or I-"),
        ("a.jsonl", '{"tokens": ["secret"], "tags": []}\n', "Expected one tag for each word"),
        ("a.jsonl", '{"words": ["secret"], "tags": ["O"]}\n', "has no column tokens; it has words, tags"),
        ("a.jsonl", '{"tokens": 3, "tags": ["O"]}\n', "expected columns tokens and tags of lists of texts"),
        ("a.xz", "secret", "cannot be read"),
        ("b.txt", None, "no such file"),
    ],
)
def test_what_cannot_be_read_is_named_without_its_content(tmp_path: Path, name: str, content: str, problem: str):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=problem) as caught:
        load_tagged(tmp_path / name)
    assert "secret" not in str(caught.value)
    assert name in str(caught.value)


def test_rows_are_chosen_in_files_of_rows_alone(tmp_path: Path):
    (tmp_path / "a.txt").write_text(LINES)
    with pytest.raises(InputError, match="no columns to choose rows by"):
        load_tagged(tmp_path / "a.txt", where={"split": "a"})


def tagged(*texts: str) -> TaggedTexts:
    """Texts of words and tags with a stroke between them."""
    pairs = [[item.split("/") for item in text.split()] for text in texts]
    return TaggedTexts.of([[word for word, _ in text] for text in pairs], [[tag for _, tag in text] for text in pairs])


def test_sanitised_texts_keep_their_tags_or_are_lost():
    texts = tagged("fly/O to/O paris/B-city", "now/B-time", "", "go/O")
    assert texts.join() == ["fly to paris", "now", "", "go"]
    other = texts.with_texts([" swim in  rome ", "soon after", "", ""])
    assert read_back(other) == (["swim", "in", "rome", "", ""], texts.tags.to_pylist(), [0, 3, 4, 4, 5])
    assert other.is_lost.tolist() == [False, True, False, True]
    taken = other.take(np.array([3, 0]))
    assert read_back(taken) == (["", "swim", "in", "rome"], ["O", "O", "O", "B-city"], [0, 1, 4])
    with pytest.raises(ValueError, match="Expected 4 texts, got 1"):
        texts.with_texts(["fly"])


def spans_of(tags: list[str]) -> set[tuple[int, int, str]]:
    """The spans of one text, token by token: an I that goes on with nothing begins one."""
    found, start = set(), None
    for place, tag in enumerate([*tags, "O"]):
        goes_on = start is not None and tag.startswith("I") and tag[2:] == tags[start][2:]
        if start is not None and not goes_on:
            found.add((start, place - 1, tags[start][2:]))
            start = None
        if tag != "O" and not goes_on:
            start = place
    return found


def test_spans_are_counted_as_token_by_token():
    rng = np.random.default_rng(2)
    kinds = np.array(["O", "B-a", "I-a", "B-b", "I-b"])
    sizes = rng.integers(0, 9, 300)
    true = [rng.choice(kinds, size).tolist() for size in sizes]
    found = [[tag if rng.random() < 0.7 else str(rng.choice(kinds)) for tag in tags] for tags in true]
    flat = [pa.array([tag for text in part for tag in text], pa.string()) for part in (true, found)]
    counts = count_spans(*flat, np.cumsum([0, *sizes]))
    pairs = [(spans_of(one), spans_of(other)) for one, other in zip(true, found, strict=True)]
    assert counts.true.tolist() == [len(one) for one, _ in pairs]
    assert counts.found.tolist() == [len(other) for _, other in pairs]
    assert counts.right.tolist() == [len(one & other) for one, other in pairs]
    right, sums = counts.right.sum(), counts.true.sum() + counts.found.sum()
    assert counts.f1 == pytest.approx(2 * right / sums)
    assert counts.f1 == pytest.approx(2 * counts.precision * counts.recall / (counts.precision + counts.recall))


def orders(count: int, seed: int) -> TaggedTexts:
    """Orders of two forms, with names of cities of one or two words, and of songs: the same words in other places."""
    rng = np.random.default_rng(seed)
    names = ["paris", "new york", "los angeles", "texas"]
    texts = []
    for name, is_song in zip(rng.choice(names, count), rng.integers(0, 2, count), strict=True):
        kind = "song" if is_song else "city"
        words = [f"{word}/{'I' if place else 'B'}-{kind}" for place, word in enumerate(name.split())]
        before = "play/O the/O song/O" if is_song else "fly/O me/O to/O"
        texts.append(" ".join([before, *words, "now/O"]))
    return tagged(*texts)


def test_slots_are_found_by_the_words_around_them():
    train, test = orders(120, 1), orders(80, 2)
    scores = {score.figure: score for score in measure_slots(train, test, "original", "made", 0)}
    assert set(scores) == {"f1", "precision", "recall"}
    assert scores["f1"].value > 0.98
    assert (scores["f1"].count, scores["f1"].chance) == (80, 0.0)
    assert scores["f1"].low <= scores["f1"].value <= scores["f1"].high
    assert SlotTagger.fit(train, 3).predict(test).to_pylist() == SlotTagger.fit(train, 3).predict(test).to_pylist()


def test_slots_of_random_words_are_missed_and_lost_texts_too():
    train, test = orders(120, 1), orders(80, 2)
    rng = np.random.default_rng(4)
    hidden = [
        part.with_texts([" ".join(rng.choice(list("abcdefgh"), len(text.split()))) for text in part.join()])
        for part in (train, test)
    ]
    assert measure_slots(*hidden, "random", "made", 0)[0].value < 0.6
    half = test.with_texts([text if place % 2 else text + " please" for place, text in enumerate(test.join())])
    f1, precision, recall = measure_slots(train, half, "release", "made", 0)
    assert (precision.value, recall.value) == (pytest.approx(1.0, abs=0.03), pytest.approx(0.5, abs=0.02))
    assert f1.note.startswith("0 of 120 training texts and 40 of 80 test texts have other words")


def test_a_tagger_needs_tags():
    with pytest.raises(ValueError, match="at least two different tags"):
        SlotTagger.fit(tagged("a/O b/O"), 0)
    with pytest.raises(ValueError, match="at least one span"):
        measure_slots(orders(9, 1), tagged("a/O b/O"), "original", "made", 0)


def test_intents_are_read_in_two_parts_with_the_labels_of_the_first(tmp_path: Path):
    rows = [("play", "music", "train"), ("rain?", "weather", "train"), ("sing", "music", "valid")]
    with lzma.open(tmp_path / "snips7.jsonl.xz", "wt") as file:
        file.writelines(json.dumps({"text": a, "label": b, "split": c}) + "\n" for a, b, c in rows)
    train, test = load_intents(tmp_path)
    assert (train.texts, train.names, test.texts) == (["play", "rain?"], ("music", "weather"), ["sing"])
    assert (train.labels.tolist(), test.labels.tolist(), test.names) == ([0, 1], [0], train.names)


@needs_data("snips7.jsonl.xz")
def test_snips_has_intents_in_two_parts():
    train, test = load_intents(DATA)
    assert (len(train), len(test), len(train.names)) == (13_784, 700, 7)
    assert train.names == test.names
