"""Tables of public words: what is read, and every fault with its setting, file and line; the package's own lists."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wordveil.assembly.word_tables import WordTable, find_names, read_word_table
from wordveil.embeddings.embedding import load
from wordveil.errors import PublicFileError
from wordveil.text.types.lists import PublicLists

COUNTS = ("word", "count")
PAIRS = ("word", "similar word", "similarity")


def read(place: Path, data: bytes, names: tuple[str, ...] = COUNTS, name: str = "table.tsv") -> WordTable:
    (place / name).write_bytes(data)
    return read_word_table(str(place / name), "mechanism.frequencies", names)


def columns(table: WordTable) -> list[list[str]]:
    return [column.to_pylist() for column in table.columns]


def test_line_ends_and_a_byte_order_mark_are_no_part_of_a_table(tmp_path):
    lines = (b"the\t12\ncat\t3\n", b"the\t12\ncat\t3", b"the\t12\r\ncat\t3\r\n", b"the\t12\rcat\t3\r")
    for data in (*lines, b"\xef\xbb\xbf" + lines[0]):
        assert columns(read(tmp_path, data)) == [["the", "cat"], ["12", "3"]]


def test_a_compressed_file_is_one_by_its_name(tmp_path):
    assert columns(read(tmp_path, gzip.compress(b"the\t12\n"), name="a.tsv.gz")) == [["the"], ["12"]]
    with pytest.raises(PublicFileError, match=r"mechanism.frequencies = .*b.tsv.gz: cannot be read"):
        read(tmp_path, b"the\t12\n", name="b.tsv.gz")
    with pytest.raises(PublicFileError, match=r"c.tsv.gz: cannot be read"):
        read(tmp_path, gzip.compress(b"the\t12\n" * 10_000)[:-20], name="c.tsv.gz")


def test_words_are_taken_as_they_are(tmp_path):
    words = ['"quoted', "null", "NA", " spaced ", "été", "漢", "back\\slash", "a\u2028b", "# hash"]
    assert columns(read(tmp_path, "".join(f"{word}\t1\n" for word in words).encode()))[0] == words


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty."),
        (b"\xef\xbb\xbf", "is empty."),
        (b"the\t1\ncat\n", "line 2 has 1 column(s)."),
        (b"the\t1\ncat\t2\t3\n", "line 2 has 3 column(s)."),
        (b"the\t1\n\ncat\t2\n", "line 2: word is empty."),
        (b"the\t1\ncat\t2\n\n", "line 3: word is empty."),
        (b"the\t\n", "line 1: count is empty."),
        (b"the\t1\n\xff\t2\n", "line 2 is not UTF-8."),
        (b"the\t1\r\xff\t2\r", "line 2 is not UTF-8."),
        ("the\t1\n".encode("utf-16"), "line 1 is not UTF-8."),
        (b"the\t" + b"1" * 3_000_000, "cannot be read (straddling"),
        (b"the\t1\n" * 400_000 + b"\xff\t1\n", "line 400001 is not UTF-8."),
    ],
    ids=lambda part: repr(part[:12]),
)
def test_a_file_that_is_no_table_is_refused_with_its_line(tmp_path, data, problem):
    with pytest.raises(PublicFileError) as error:
        read(tmp_path, data)
    message = str(error.value)
    assert message.startswith(f"mechanism.frequencies = {tmp_path / 'table.tsv'}: {problem}"), message
    assert message.endswith("Each line has 2 columns: word and count, with a tab between. Repair the file.")
    assert error.value.exit_code == 4


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PublicFileError, match=r"mechanism.pairs = none.tsv: no such file. Name an existing file."):
        read_word_table("none.tsv", "mechanism.pairs", PAIRS)
    with pytest.raises(PublicFileError, match=r"is not a file. Name a file."):
        read_word_table(str(tmp_path), "mechanism.pairs", PAIRS)


def test_counts_are_read_and_others_refused_with_their_line(tmp_path):
    found = read(tmp_path, b"a\t1\nb\t999999999999999999\nc\t007\n").whole_numbers(1)
    assert found.dtype == np.int64
    assert found.tolist() == [1, 10**18 - 1, 7]
    for value in ("0", "000", "-1", "+1", "1.0", "1e3", " 1", "1,000", "1" + "0" * 18, "x", "²", "１"):
        with pytest.raises(PublicFileError) as error:
            read(tmp_path, f"the\t1\ncat\t{value}\n".encode()).whole_numbers(1)
        assert f"line 2, column 2: {value!r} is not a whole number from 1 to 10^18 - 1. Repair" in str(error.value)


def test_a_header_is_no_line_of_a_table(tmp_path):
    with pytest.raises(PublicFileError, match=r"line 1, column 2: 'count' is not .*A file has no header line"):
        read(tmp_path, b"word\tcount\nthe\t1\n").whole_numbers(1)


def test_numbers_are_read_and_others_refused_with_their_line(tmp_path):
    values = ["0.5", "-2", "1e-3", ".25", "3.", "+7", "0.1", "1E2"]
    found = read(tmp_path, "".join(f"{value}\tb\t{value}\n" for value in values).encode(), PAIRS).numbers(2)
    assert found.dtype == np.float64
    assert found.tolist() == [float(value) for value in values]
    for value in ("nan", "NaN", "inf", "-inf", "1e999", "0,5", "x", " 1", "0x1", "1_0", "."):
        with pytest.raises(PublicFileError) as error:
            read(tmp_path, f"a\tb\t1\nc\td\t{value}\n".encode(), PAIRS).numbers(2)
        assert f"line 2, column 3: {value!r} is not a finite number" in str(error.value)


@pytest.mark.parametrize(
    ("rows", "distinct", "problem"),
    [
        (["a b", "b a", "a c", "c c"], 2, ""),
        (["a b", "b a", "a b"], 2, "lines 1 and 3 have the same words ('a', 'b')."),
        (["a a", "b a", "b b", "c a", "b a"], 2, "lines 2 and 5 have the same words ('b', 'a')."),
        (["a x", "b x"], 1, ""),
        (["a x", "b x", "c x", "b y"], 1, "lines 2 and 4 have the same words ('b')."),
    ],
)
def test_words_that_come_twice_are_refused_with_both_lines(tmp_path, rows, distinct, problem):
    table = read(tmp_path, "".join(row.replace(" ", "\t") + "\n" for row in rows).encode())
    if not problem:
        table.require_distinct(distinct)
        return
    with pytest.raises(PublicFileError) as error:
        table.require_distinct(distinct)
    assert f"{problem} Keep one of them." in str(error.value)


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_name_of_any_list_may_be_written(language: str):
    lists = PublicLists.load(language)
    names = [name for found, _ in lists.others.values() for name in found.to_pylist()]
    names += [*lists.first_names.to_pylist(), *lists.surnames.to_pylist()]
    words = pa.array([form for name in names for form in (name.lower(), f"{name.lower()}'s")])
    assert find_names(words).all()
    assert find_names(pa.array(["svoboda", "raj", "salah", "table"])).tolist() == [True, True, True, False]


def test_sensitive_words_are_in_their_category():
    listed = files("wordveil") / "data" / "word_lists" / "sensitive.tsv"
    found = dict(line.split("\t") for line in listed.read_text("utf-8").splitlines())
    some = {
        "health": "hiv hiv-positive diabetic diagnosed patient's",
        "religion": "jew jews non-muslim bishop's",
        "politics": "unionist taliban pro-choice",
        "crime": "convict dui abuse",
        "ethnicity": "undocumented deported mixed-race",
        "sexuality": "gay trans anti-gay",
    }
    for category, words in some.items():
        assert {word: found.get(word) for word in words.split()} == dict.fromkeys(words.split(), category)
    # A possessive is as sensitive as its word.
    vocabulary = load("glove").words.to_pylist()
    assert not [word for word in vocabulary if word.endswith("'s") and word[:-2] in found and word not in found]
