"""Counts the bigram model that comes with the package, over the words of its embeddings `glove` and `demo`.

    python scripts/bigrams.py BOOKS

BOOKS is a directory or a tar archive with the texts that lib/wordveil/data/bigrams/books.tsv lists: one UTF-8 file a
book, by the names of its first column; other files are left alone. A blank line ends a paragraph. The sentences of
WordNet that come with the package are counted too: they are newer. Writes lib/wordveil/data/bigrams. Two minutes on one
core; the same texts give the same model on every machine.
"""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordveil.artifacts import content_store
from wordveil.artifacts.ngram_model import open_model, read_model, write_model
from wordveil.embeddings.embedding import DEMO, GLOVE, load
from wordveil.text.counting import CountGrams, CountWords, rank_words
from wordveil.text.slots import Grams, NgramSettings, assemble_trie
from wordveil.version import __version__

ROOT = Path(__file__).parents[1]
STORE = ROOT / "lib" / "wordveil" / "data" / "bigrams"
LIST = STORE / "books.tsv"
SENTENCES = ROOT / "lib" / "wordveil" / "data" / "sentences" / "wordnet.parquet"

# Rarer pairs would make the package larger and add little.
SETTINGS = NgramSettings(max_n=2, min_count=6)

PARAGRAPH_END = re.compile(r"\n\s*\n")
SHORTENED = re.compile(r"\b(Mr|Mrs|Messrs|Dr|St|Capt|Col|Rev|Hon|Esq|[A-HJ-Z])\.")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)\]]*\s+(?=[\"'\u201c\u2018(\[_]*[A-Z])")


@dataclass(frozen=True)
class Words:
    """The model's words, where a Spark job has a broadcast variable."""

    value: pa.StringArray


def cut_sentences(book: str) -> list[str]:
    """Cut out the sentences of a book: the beginning of a text is the beginning of a sentence."""
    return [
        sentence
        for paragraph in PARAGRAPH_END.split(book)
        for sentence in SENTENCE_END.split(SHORTENED.sub(r"\1", paragraph))
        if sentence.strip()
    ]


def read_files(books: Path) -> Iterator[tuple[str, bytes]]:
    """Read the name and content of each file of a directory or a tar archive."""
    if books.is_dir():
        for path in sorted(books.rglob("*")):
            if path.is_file():
                yield path.name, path.read_bytes()
        return
    with tarfile.open(books) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream:
                yield PurePosixPath(member.name).name, stream.read()


def read_books(books: Path, names: list[str]) -> list[str]:
    """Read the texts of the books by these names, in this order."""
    found = {name: content.decode("utf-8-sig") for name, content in read_files(books) if name in set(names)}
    if missing := [name for name in names if name not in found]:
        sys.exit(f"{books}: lacks {len(missing)} of the {len(names)} books of {LIST}, such as {missing[0]}.")
    return [found[name].replace("\r\n", "\n") for name in names]


def add_up(batches: Iterator[pa.RecordBatch], key: str) -> pa.Table:
    """Join batches of a key and a number as one table, each key once."""
    found = pa.Table.from_batches(list(batches)).group_by(key, use_threads=False).aggregate([("number", "sum")])
    return found.rename_columns([key, "number"])


def main() -> None:
    """Count, write, say what was written."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).exists():
        sys.exit(
            "usage: python scripts/bigrams.py BOOKS, or make bigrams BOOKS=...: a directory or a tar archive with the "
            f"texts that {LIST.relative_to(ROOT)} lists, UTF-8."
        )
    names = [line.split("\t")[0] for line in LIST.read_text("utf-8").splitlines()[1:]]
    texts = [pa.array(cut_sentences(book), pa.string()) for book in read_books(Path(sys.argv[1]), names)]
    texts += pq.read_table(SENTENCES).column("text").chunks

    def batches() -> Iterator[pa.RecordBatch]:
        return (pa.record_batch([text], ["text"]) for text in texts)

    counted = add_up(CountWords(SETTINGS)(batches()), "word")
    of_text = counted.filter(pc.not_equal(counted.column("word"), ""))
    total = pc.sum(of_text.column("number")).as_py()
    known = pc.is_in(counted.column("word"), pa.concat_arrays([pa.array([""]), load(GLOVE).words, load(DEMO).words]))
    frequent = pc.greater_equal(counted.column("number"), SETTINGS.min_count)
    words, counts = rank_words(counted.filter(pc.and_(known, frequent)))

    pairs = add_up(CountGrams(SETTINGS, Words(words))(batches()), "gram")
    pairs = pairs.filter(pc.greater_equal(pairs.column("number"), SETTINGS.min_count)).sort_by("gram")
    grams = Grams(SETTINGS.max_n).decode(b"".join(pairs.column("gram").to_pylist()))
    trie = assemble_trie(counts, grams, pairs.column("number").to_numpy().astype(np.int64))

    provenance = {
        "wordveil": __version__,
        "source": f"{len(names)} novels in the public domain, listed in books.tsv, and sentences of WordNet 3.0",
        "texts": int(counts[0]),
        "note": "texts are sentences; words outside the embeddings glove and demo are left out",
    }
    for model in STORE.glob(f"*/{content_store.MANIFEST}"):
        shutil.rmtree(model.parent)
    path = write_model(STORE, SETTINGS, words, total, trie, provenance)
    model = open_model(path)
    covered = int(counts[1:].sum()) / total
    print(
        f"written: {path.relative_to(ROOT)}: {len(words) - 1:,} words, {len(grams):,} bigrams of {total:,} words in "
        f"{counts[0]:,} sentences; {covered:.1%} of the words are in the model; "
        f"{content_store.payload_bytes(read_model(model.path)):,} bytes"
    )


if __name__ == "__main__":
    main()
