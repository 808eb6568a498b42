"""Counting of words and n-grams of public text, a batch at a time: stateless bodies of Spark's ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int64
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.scanner import Scanned
from wordveil.text.slots import Grams, NgramSettings
from wordveil.text.tokeniser import Tokeniser, fold_words

WORD_FIELDS = (pa.field("word", pa.string()), pa.field("number", pa.int64()))
GRAM_FIELDS = (pa.field("gram", pa.binary()), pa.field("number", pa.int64()))
PACKED_FIELDS = (pa.field("grams", pa.binary()), pa.field("numbers", pa.binary()))


class WordsBroadcast(Protocol):
    """Broadcast variable of Spark with the model's words."""

    @property
    def value(self) -> pa.StringArray: ...


@dataclass(frozen=True)
class CountWords:
    """Counter that turns batches of one column of texts (string, no nulls) into :data:`WORD_FIELDS`.

    Each word without a digit, as it is looked up, with its number in the batch; and the empty string with the number of
    texts that the tokeniser does not refuse.
    """

    settings: NgramSettings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            cut, texts = _cut(self.settings, batch)
            folded = fold_words(cut.words)
            counted = folded.filter(pc.invert(pc.match_substring_regex(folded, r"\p{N}"))).value_counts()
            words = pa.concat_arrays([counted.field(0), pa.array([""])])
            numbers = pa.concat_arrays([counted.field(1), pa.array([texts], pa.int64())])
            yield pa.RecordBatch.from_arrays([words, numbers], schema=pa.schema(WORD_FIELDS))


@dataclass(frozen=True)
class CountGrams:
    """Counter that turns such batches into :data:`GRAM_FIELDS`: n-grams of two known words or more, and numbers."""

    settings: NgramSettings
    words: WordsBroadcast

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = WordIndex(self.words.value)
        grams = Grams(self.settings.max_n)
        for batch in batches:
            cut, _ = _cut(self.settings, batch)
            keys = grams.encode(index.numbers(fold_words(cut.words)), cut.offsets)
            counted: Any = pa.table({"gram": keys}).group_by("gram", use_threads=False).aggregate([([], "count_all")])
            columns = [counted.column("gram").cast(pa.binary()), counted.column("count_all")]
            yield from pa.Table.from_arrays(columns, schema=pa.schema(GRAM_FIELDS)).to_batches()


def rank_words(counted: pa.Table) -> tuple[pa.StringArray, Int64]:
    """Rank the words of a model in the order of their numbers, with their counts.

    The beginning of a text is first, then the most frequent word, ties by bytes. ``counted``: of :data:`WORD_FIELDS`,
    each word once.
    """
    words = counted.column("word").cast(pa.string())
    start = pc.cast(pc.equal(words, ""), pa.int8())
    keyed = pa.table({"word": words, "number": counted.column("number"), "start": start})
    keyed = keyed.sort_by([("start", "descending"), ("number", "descending"), ("word", "ascending")])
    words = keyed.column("word").combine_chunks()
    whole = pa.concat_arrays(words.chunks) if isinstance(words, pa.ChunkedArray) else words
    return whole, keyed.column("number").to_numpy()


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack batches of :data:`GRAM_FIELDS` into one row each, of :data:`PACKED_FIELDS`, since drivers take single rows.

    A row has the n-grams one after the other, and their numbers as little-endian int64.
    """
    for batch in batches:
        grams = b"".join(batch.column(0).to_pylist())
        numbers = batch.column(1).to_numpy().astype("<i8").tobytes()
        arrays = [pa.array([grams], pa.binary()), pa.array([numbers], pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(PACKED_FIELDS))


def _cut(settings: NgramSettings, batch: pa.RecordBatch) -> tuple[Scanned, int]:
    """Cut the texts that the tokeniser does not refuse into words, and count these texts."""
    tokeniser = Tokeniser(settings.tokeniser, settings.hyphens)
    texts = tokeniser.normalise(batch.column(0))
    cut = tokeniser.cut_words(texts)
    if cut.refused.any():
        cut = tokeniser.cut_words(texts.filter(pc.invert(pa.array(cut.refused))))
    return cut, len(cut.refused)
