"""Pairs of a word and its hypernym: reading, checking, filtering and numbering them by the settings of a training.

The columns are strings ``word`` and ``hypernym``, and optionally ``count``, the occurrences of a pair (default 1): text
with tabs, without a header, compressed as the file's suffix says (.gz, .xz, .bz2, .zst); or Parquet, a file or a
directory.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from annotated_types import Ge, Gt, Le, Lt

from wordveil.arrays import Int64
from wordveil.errors import EmbeddingError

BURN_IN_SHARE = 0.1
"""Share of the learning rate in burn-in: Nickel and Kiela 2017 have only "a reduced learning rate" (section 3.1)."""

_VERSION = 1


@dataclass(frozen=True)
class PoincareSettings:
    """Settings of filtering pairs and training points. The configuration checks the ranges.

    Attributes
    ----------
    trainer
        ``gensim`` trains with gensim's PoincareModel, ``compiled`` with wordveil's own compiled loop.
    dimension
        the dimension of the ball.
    epochs
        passes over all pairs after burn-in.
    negative
        words that a pair is contrasted with (Nickel and Kiela 2017, equation 6).
    burn_in
        passes over all pairs before that, at a tenth of the learning rate.
    learning_rate
        the step of Riemannian stochastic gradient descent (equation 5).
    seed
        the seed of everything random in training.
    min_count
        pairs with smaller counts are left out.
    min_links
        words with fewer links are left out, once: words that lose links thereby stay. Feyisetan, Diethe and Drake 2019
        take 3 (they remove words with two links or fewer).
    stop_words
        ``drop`` leaves out pairs with a word of the package's list of English stop-words, ``keep`` keeps them.
    """

    trainer: Literal["gensim", "compiled"] = "gensim"
    dimension: Annotated[int, Ge(2), Le(1000)] = 10
    epochs: Annotated[int, Ge(1), Le(100_000)] = 50
    negative: Annotated[int, Ge(1), Le(1000)] = 10
    burn_in: Annotated[int, Ge(0), Le(100_000)] = 10
    learning_rate: Annotated[float, Gt(0), Le(100)] = 0.1
    seed: Annotated[int, Ge(0), Lt(2**32)] = 1
    min_count: Annotated[int, Ge(1), Lt(2**63)] = 1
    min_links: Annotated[int, Ge(1), Lt(2**31)] = 3
    stop_words: Literal["drop", "keep"] = "drop"

    @property
    def recipe(self) -> dict[str, Any]:
        """Settings as they are in a bundle's recipe: ``training.dimension`` and so on."""
        return {f"training.{name}": value for name, value in asdict(self).items()}

    @property
    def rates(self) -> list[float]:
        """Learning rate of each pass: burn-in, then epochs."""
        burning = [self.learning_rate * BURN_IN_SHARE] * self.burn_in
        return burning + [self.learning_rate] * self.epochs

    @property
    def left_out(self) -> frozenset[str]:
        """Words whose pairs are left out."""
        return _stop_words() if self.stop_words == "drop" else frozenset()

    def digest(self, source: str) -> str:
        """Identify the embedding trained from a file with SHA-256 ``source``."""
        content = json.dumps([_VERSION, source, asdict(self)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]


@cache
def _stop_words() -> frozenset[str]:
    text = (resources.files("wordveil") / "data" / "stop_words" / "english.txt").read_text("utf-8")
    return frozenset(text.split())


PAIR_SCHEMA = pa.schema([("word", pa.string()), ("hypernym", pa.string()), ("count", pa.int64())])
SHIPPED_PAIRS = Path(str(resources.files("wordveil") / "data" / "hypernyms" / "pairs.tsv"))
"""Pairs that come with the package."""
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class HypernymGraph:
    """Directed graph of words.

    ``words``: distinct, by falling number of links, then by code point. ``edges``: int64 ``(size, 2)``, the rows of a
    word and of its hypernym; distinct, sorted, no word with itself.
    """

    words: tuple[str, ...]
    edges: Int64

    @property
    def links(self) -> Int64:
        """Number of edges that each word is an end of: int64 ``(len(words),)``."""
        return np.bincount(self.edges.ravel(), minlength=len(self.words))


def is_parquet(path: Path) -> bool:
    """Return whether pairs are stored as Parquet: a directory, or a file with Parquet's first bytes."""
    if path.is_dir():
        return True
    with path.open("rb") as file:
        return file.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def read_pairs(path: Path, _: PoincareSettings | None = None) -> pa.Table:
    """Read the pairs of a file as a table of :data:`PAIR_SCHEMA`, unfiltered. Raises :class:`EmbeddingError`."""
    if not path.exists():
        raise EmbeddingError(
            f"mechanism.embedding = {path}: no such file or directory. Name a file of (word, hypernym) pairs."
        )
    try:
        return _read_parquet(path) if is_parquet(path) else _read_text(path)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        hint = "It needs two columns, word and hypernym, and counts as whole numbers in an optional third."
        raise EmbeddingError(f"mechanism.embedding = {path}: cannot be read as pairs ({error}). {hint}") from error


def check_columns(schema: dict[str, str], source: str) -> list[str]:
    """Choose the columns to read of a Parquet file with ``schema``, types by name. Raises :class:`EmbeddingError`."""
    for name in ("word", "hypernym"):
        if schema.get(name) not in ("string", "large_string"):
            raise EmbeddingError(
                f"{source}: column {name} is {schema.get(name, 'missing')}, and strings are needed. Rename or cast a "
                "column."
            )
    if not schema.get("count", "int64").startswith(("int", "uint", "bigint", "smallint", "tinyint")):
        raise EmbeddingError(
            f"{source}: column count is {schema['count']}, and whole numbers are needed. Cast or drop it."
        )
    return [name for name in PAIR_SCHEMA.names if name in schema]


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import dataset

    data = dataset.dataset(path, format="parquet")
    names = check_columns({field.name: str(field.type) for field in data.schema}, str(path))
    return _complete(data.to_table(columns=names))


def _read_text(path: Path) -> pa.Table:
    from pyarrow import csv
    from smart_open import open as open_any

    with open_any(str(path), "rb") as file:
        columns = file.readline().count(b"\t") + 1
    if columns not in (2, 3):
        raise EmbeddingError(
            f"{path}: the first line has {columns} column(s), separated by tabs, and 2 or 3 are needed. Repair the "
            "file."
        )
    names = PAIR_SCHEMA.names[:columns]
    with open_any(str(path), "rb") as file:
        table = csv.read_csv(
            file,
            csv.ReadOptions(use_threads=False, column_names=names),
            csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=PAIR_SCHEMA, strings_can_be_null=False),
        )
    return _complete(table)


def _complete(table: pa.Table) -> pa.Table:
    """Add a column of counts to a table that has none."""
    if "count" not in table.column_names:
        table = table.append_column("count", pa.array(np.ones(len(table), np.int64)))
    return table.cast(PAIR_SCHEMA)


def build_hierarchy(pairs: pa.Table, settings: PoincareSettings, source: str) -> HypernymGraph:
    """Build the graph of the pairs that pass the settings' filters.

    In this order: counts of equal pairs are added up; pairs of a word with itself are removed, then pairs with too
    small a count, pairs with a stop-word, once words with too few links, and words without a pair. Raises
    :class:`EmbeddingError` for missing or empty words, for counts under 1, and if nothing is left.
    """
    _check(pairs, source)
    pairs = pairs.group_by(["word", "hypernym"]).aggregate([("count", "sum")])
    keep = pc.and_(
        pc.not_equal(pairs["word"], pairs["hypernym"]), pc.greater_equal(pairs["count_sum"], settings.min_count)
    )
    pairs = pairs.filter(keep)
    for name in ("word", "hypernym"):
        stop = pc.is_in(pc.utf8_lower(pairs[name]), pa.array(sorted(settings.left_out), pa.string()))
        pairs = pairs.filter(pc.invert(stop))
    ends = (
        pa.chunked_array([*pairs["word"].chunks, *pairs["hypernym"].chunks], pa.string())
        .combine_chunks()
        .dictionary_encode()
    )
    edges = np.asarray(ends.indices, np.int64).reshape(2, -1).T
    enough = np.bincount(edges.ravel(), minlength=len(ends.dictionary)) >= settings.min_links
    edges = edges[enough[edges].all(axis=1)]
    if len(edges) == 0:
        raise EmbeddingError(
            f"{source}: mechanism.training.min_links = {settings.min_links} removes the {len(pairs):,} pairs that "
            "min_count and stop_words left. Lower min_count or min_links, or provide more pairs."
        )
    return _number_words(ends.dictionary.to_pylist(), edges)


def _number_words(names: list[str], edges: Int64) -> HypernymGraph:
    """Assign numbers to words in their order and build the graph."""
    links = np.bincount(edges.ravel(), minlength=len(names))
    order = sorted(np.flatnonzero(links), key=lambda row: (-links[row], names[row]))
    rank_of = np.zeros(len(names), np.int64)
    rank_of[order] = np.arange(len(order))
    edges = rank_of[edges]
    return HypernymGraph(tuple(names[row] for row in order), edges[np.lexsort(edges.T[::-1])])


def _check(pairs: pa.Table, source: str) -> None:
    for name in ("word", "hypernym"):
        blank = pc.fill_null(pc.match_substring_regex(pairs[name], r"^\s*$|[\n\r\x00]"), fill_value=True)
        row = pc.index(blank, value=True).as_py()
        if row >= 0:
            raise EmbeddingError(
                f"{source}: the {name} of pair {row + 1} is missing or empty, or holds a line break or NUL. Remove "
                "the pair."
            )
    row = pc.index(pc.fill_null(pc.less(pairs["count"], 1), fill_value=True), value=True).as_py()
    if row >= 0:
        value = pairs["count"][row].as_py()
        raise EmbeddingError(
            f"{source}: the count of pair {row + 1} is {'missing' if value is None else value}, and 1 or more is "
            "needed. Remove the pair."
        )
