"""Files of public passages: which are read, what of them is left out, and what is wrong with others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from wordveil.assembly.passages import digest_passages, fit_passages, read_passages
from wordveil.assembly.word_tables import FittedWords
from wordveil.errors import PublicFileError

LEXICON = "a and bank bread cloud in is melts rain rises snow storm the wind"
WORDS = pa.array(LEXICON.split(), pa.string())
TEXTS = ["The rain and the wind.", "Snow melts in the rain."]
SETTING = "mechanism.passages"


def write(path: Path) -> Path:
    table = pa.table({"text": TEXTS, "number": [1, 2]})
    if path.name.endswith(".parquet"):
        pa.parquet.write_table(table, path)
    elif path.name.endswith(".csv"):
        pa.csv.write_csv(table, path)
    elif path.name.endswith(".jsonl"):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), "utf-8")
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    else:
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(TEXTS).encode())
    return path


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.jsonl", "p.txt", "p.txt.gz"])
def test_files_of_each_format_are_read(name: str, tmp_path: Path):
    path = str(write(tmp_path / name))
    assert read_passages(path, SETTING).to_pylist() == TEXTS
    assert len(digest_passages(path, SETTING)) == 64


def test_a_directory_of_parquet_is_read(tmp_path: Path):
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts" / "1.parquet")
    assert read_passages(str(tmp_path / "parts"), SETTING).to_pylist() == TEXTS


def test_wordnet_comes_with_the_package():
    assert len(read_passages("wordnet", SETTING)) > 40_000
    assert digest_passages("wordnet", SETTING) == digest_passages("wordnet", SETTING)


def test_other_files_are_refused_by_name(tmp_path: Path):
    pa.parquet.write_table(pa.table({"title": ["a"], "body": ["secret"]}), tmp_path / "two.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"secret")
    (tmp_path / "latin.txt").write_bytes("caf\u00e9 secret".encode("latin-1"))
    (tmp_path / "other.pdf").write_bytes(b"secret")
    for name, problem in (
        ("none.txt", "no such file"),
        ("two.parquet", r"no column `text`, and 2 columns of strings \(title, body\)"),
        ("broken.parquet", "cannot be read as parquet"),
        ("latin.txt", "is no text in UTF-8"),
        ("other.pdf", "tells no format"),
    ):
        with pytest.raises(PublicFileError, match=problem) as caught:
            read_passages(str(tmp_path / name), SETTING)
        assert str(caught.value).startswith(f"{SETTING} = ")
        assert "secret" not in str(caught.value)


def test_what_cannot_serve_is_left_out_and_counted():
    notes: list[str] = []
    long = "The snow melts in the rain. " * 30
    repeated = ("> The rain <b>and</b> the\n>> wind.", "The rain and the wind.", "")
    named = ("Peter is in the rain and the snow", "The bank rises 47 in the wind")
    texts = [*repeated, "bank", "Lorem ipsum dolor sit rain snow", long, *named, "In the bank the snow melts"]
    found = fit_passages(pa.array(texts, pa.string()), FittedWords(WORDS, "passages", "toy.txt", notes))
    assert found.texts.to_pylist() == [
        "The rain and the wind.",
        "In the bank the snow melts",
        "The snow melts in the rain.",
    ]
    assert [note.split(" of ")[0] for note in notes] == ["passages: 2", "passages: 2", "passages: 2"]
    # Names and numbers are not read, and long texts are read to their end.
    words = [WORDS[number].as_py() for number in found.ids[found.offsets[2] : found.offsets[3]].tolist()]
    assert words == ["is", "in", "the", "rain", "and", "the", "snow"]
    assert np.diff(found.offsets).tolist() == [5, 6 * 30, 7, 6, 6]
    assert np.diff(found.text_offsets).tolist() == [5, 6, 6]


def test_passages_of_another_language_are_refused():
    texts = pa.array(["Lorem ipsum dolor sit amet", "consectetur adipiscing elit"], pa.string())
    with pytest.raises(PublicFileError, match="no passage has 3 words of the embedding"):
        fit_passages(texts, FittedWords(WORDS, "passages", "toy.txt", []))
