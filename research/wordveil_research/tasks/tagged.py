"""Texts whose words have tags: the slots of an order, the names in a sentence. Read from files, and compared by spans.

Tags are in the form BIO: ``B-city`` begins a span, ``I-city`` goes on with it, ``O`` is outside all spans. An ``I`` tag
that goes on with nothing begins a span, as the script of CoNLL-2000 has it (Tjong Kim Sang, Buchholz 2000).
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Int64
from wordveil.errors import InputError
from wordveil_research.tasks.datasets import read_table

OUTSIDE = "O"
_ROWS = (".jsonl", ".json", ".parquet")
_DOCUMENT = "-DOCSTART-"
_SPAN = np.dtype([("first", np.int64), ("last", np.int64), ("kind", np.int64)])


@dataclass(frozen=True)
class TaggedTexts:
    """Texts as words with tags.

    Attributes
    ----------
    tokens
        string array ``(tokens,)``; an empty one is a word that nobody can read.
    tags
        string array ``(tokens,)``, in the form BIO.
    offsets
        int64 ``(texts + 1,)``: the tokens of each text.
    is_lost
        bool ``(texts,)``: which texts have other words than tags, so that their words are empty.
    """

    tokens: pa.StringArray
    tags: pa.StringArray
    offsets: Int64
    is_lost: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> TaggedTexts:
        """Texts as lists. Raises :class:`ValueError` where a text has more or fewer tags than words, or a tag is
        neither ``O`` nor begins with ``B-`` or ``I-``.
        """
        sizes = [len(text) for text in tokens]
        if sizes != [len(text) for text in tags]:
            raise ValueError("Expected one tag for each word of each text.")
        words, marks = (pa.array([item for text in part for item in text], pa.string()) for part in (tokens, tags))
        if not pc.all(pc.match_substring_regex(marks, "^(O$|[BI]-.)"), min_count=0).as_py():
            raise ValueError("Expected tags that are O, or begin with B- or I-.")
        return cls(words, marks, np.cumsum([0, *sizes]).astype(np.int64), np.zeros(len(sizes), np.bool_))

    @property
    def text_of(self) -> Int64:
        """The text of each token: int64 ``(tokens,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def join(self) -> list[str]:
        """Each text as its words with single spaces between them, to be sanitised."""
        lists = pa.LargeListArray.from_arrays(pa.array(self.offsets, pa.int64()), self.tokens)
        joined: list[str] = pc.binary_join(lists, " ").to_pylist()
        return joined

    def with_texts(self, texts: Sequence[str]) -> TaggedTexts:
        """The same tags on texts that are these sanitised, words between spaces.

        A text that has as many words as before keeps its tags in their places. Any other text is lost, such as one with
        a word of two parts, or one that was refused: its words become empty.

        Raises
        ------
        ValueError
            where there are more or fewer texts.
        """
        if len(texts) != len(self):
            raise ValueError(f"Expected {len(self)} texts, got {len(texts)}.")
        trimmed = pc.utf8_trim_whitespace(pa.array(list(texts), pa.string()))
        lists = pc.utf8_split_whitespace(trimmed)
        sizes = np.asarray(pc.list_value_length(lists)).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        # The empty text is split into one empty word.
        fits = np.where(np.asarray(pc.binary_length(trimmed)) > 0, sizes, 0) == np.diff(self.offsets)
        inside = np.arange(len(self.tokens)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        places = np.where(fits[self.text_of], starts[self.text_of] + inside, -1)
        taken = lists.flatten().take(pa.array(places, mask=places < 0))
        return replace(self, tokens=pc.fill_null(taken, ""), is_lost=~fits)

    def take(self, texts: Int64) -> TaggedTexts:
        """The texts at these places, in this order."""
        sizes = np.diff(self.offsets)[texts]
        firsts = np.cumsum(sizes) - sizes
        places = pa.array(np.repeat(self.offsets[texts] - firsts, sizes) + np.arange(int(sizes.sum())))
        offsets = np.concatenate([firsts, [int(sizes.sum())]]).astype(np.int64)
        return TaggedTexts(self.tokens.take(places), self.tags.take(places), offsets, self.is_lost[texts])


def load_tagged(
    path: Path, tokens: str = "tokens", tags: str = "tags", where: Mapping[str, str] | None = None
) -> TaggedTexts:
    """Read tagged texts.

    Parameters
    ----------
    path
        ``.jsonl``, ``.json`` or ``.parquet``: one text a row, with its words and its tags as lists or as texts with
        spaces between them. Any other name: lines of a word and its tag, the first and the last of the columns
        between spaces or tabs, and an empty line between texts. Text files may end in ``.gz``, ``.bz2`` or ``.xz``.
    tokens, tags, where
        columns of rows, and values that columns must have.

    Raises
    ------
    InputError
        for a file that is missing or cannot be read. The message has no content of it.
    """
    if any(suffix in _ROWS for suffix in path.suffixes):
        texts = _read_rows(path, tokens, tags, where or {})
    elif where:
        raise InputError(f"{path}: has no columns to choose rows by. Name a file of rows ({', '.join(_ROWS)}).")
    else:
        texts = _read_lines(path)
    try:
        return TaggedTexts.of(*texts)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _read_rows(path: Path, tokens: str, tags: str, where: Mapping[str, str]) -> tuple[list[list[str]], list[list[str]]]:
    table = read_table(path)
    for name in (tokens, tags, *where):
        if name not in table.column_names:
            raise InputError(f"{path}: has no column {name}; it has {', '.join(table.column_names)}.")
    for name, value in where.items():
        table = table.filter(pc.equal(table[name].cast(pa.string()), value))
    columns = [table[name] for name in (tokens, tags)]
    lists = [pc.utf8_split_whitespace(one) if pa.types.is_string(one.type) else one for one in columns]
    try:
        one, other = (part.cast(pa.list_(pa.string())).to_pylist() for part in lists)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"{path}: expected columns {tokens} and {tags} of lists of texts.") from None
    return [text or [] for text in one], [text or [] for text in other]


def _read_lines(path: Path) -> tuple[list[list[str]], list[list[str]]]:
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    try:
        lines = _read_bytes(path).decode("utf-8").splitlines()
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise InputError(f"{path}: cannot be read ({type(error).__name__}).") from None
    return _parse_lines(path, lines)


def _read_bytes(path: Path) -> bytes:
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read())


def _parse_lines(path: Path, lines: Iterable[str]) -> tuple[list[list[str]], list[list[str]]]:
    tokens: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    for number, line in enumerate(lines, 1):
        columns = line.split()
        if not columns or columns[0] == _DOCUMENT:
            if tokens[-1]:
                tokens.append([])
                tags.append([])
        elif len(columns) < 2:
            raise InputError(f"{path}: line {number}: expected a word and its tag.")
        else:
            tokens[-1].append(columns[0])
            tags[-1].append(columns[-1])
    return ([text for text in tokens if text], [text for text in tags if text])


@dataclass(frozen=True)
class SpanCounts:
    """How many spans of each text there are, were found, and were found exactly: int64 ``(texts,)`` each."""

    true: Int64
    found: Int64
    right: Int64

    @property
    def precision(self) -> float:
        """The share of found spans that are right; 0 without any."""
        return _divide(self.right, self.found)

    @property
    def recall(self) -> float:
        """The share of true spans that are found exactly; 0 without any."""
        return _divide(self.right, self.true)

    @property
    def f1(self) -> float:
        """Their harmonic mean over all texts together (micro-F1)."""
        return _divide(2 * self.right, self.true + self.found)


def count_spans(true: pa.StringArray, found: pa.StringArray, offsets: Int64) -> SpanCounts:
    """Compare the spans of tags: one is right where its first word, its last word and its kind are.

    Parameters
    ----------
    true, found
        string arrays ``(tokens,)``: tags in the form BIO.
    offsets
        int64 ``(texts + 1,)``: the tokens of each text.
    """
    both = pc.dictionary_encode(pc.utf8_slice_codeunits(pa.concat_arrays([true, found]), 2))
    kinds = both.indices.to_numpy().astype(np.int64)
    text_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    one = _find_spans(true, kinds[: len(true)], text_of)
    other = _find_spans(found, kinds[len(true) :], text_of)
    right = one[np.isin(one.view(_SPAN).ravel(), other.view(_SPAN).ravel())]
    return SpanCounts(*(np.bincount(text_of[spans[:, 0]], minlength=len(offsets) - 1) for spans in (one, other, right)))


def _find_spans(tags: pa.StringArray, kinds: Int64, text_of: Int64) -> Int64:
    """The first token, the last token and the kind of each span: int64 ``(spans, 3)``."""
    count = len(tags)
    outside = pc.equal(tags, OUTSIDE).to_numpy(zero_copy_only=False)
    begins = pc.starts_with(tags, "B").to_numpy(zero_copy_only=False)
    opens = np.diff(text_of, prepend=-1) != 0
    goes_on = ~opens & ~begins & ~outside
    goes_on[1:] &= ~outside[:-1] & (kinds[1:] == kinds[:-1])
    first = np.flatnonzero(~outside & ~goes_on)
    # A span ends before the next token that does not go on.
    after = np.append(np.flatnonzero(~goes_on), count)
    last = after[np.searchsorted(after, first, side="right")] - 1
    return np.ascontiguousarray(np.stack([first, last, kinds[first]], axis=1).astype(np.int64))


def _divide(part: Int64, whole: Int64) -> float:
    return float(part.sum() / whole.sum()) if whole.sum() else 0.0
