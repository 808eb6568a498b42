"""Tables and lists of public words: text in UTF-8 with a tab between columns and no header, each line checked.

The suffix of a name (.gz, .bz2, .zst, .lz4) determines the compression. A byte order mark and any line ends are
accepted. Nothing is trimmed or quoted: words are compared with those of the embedding byte by byte. ``wordfreq:de``
names a list of frequencies of the package wordfreq instead of a file.

The package has an English list of words of special categories (``data/word_lists/sensitive.tsv``), which
``mechanism.merge`` joins, and one of ordinary words (``ordinary.tsv``). `make word-lists` makes both from WordNet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.config.paths import WORDFREQ
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.errors import PublicFileError
from wordveil.mechanisms.inputs import ORDINARY, SENSITIVE, Groups
from wordveil.text.language import find_version
from wordveil.text.types.classes import LISTED_LANGUAGES
from wordveil.text.types.lists import PublicLists

_DATA = files("wordveil") / "data" / "word_lists"
SHIPPED_SENSITIVE, _ORDINARY = str(_DATA / "sensitive.tsv"), str(_DATA / "ordinary.tsv")
# An embedding counts as English if half of its first words, this many, are ordinary English words.
_FIRST = 1_000

_WHOLE_NUMBER = "^0*[1-9][0-9]{0,17}$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SHOWN = 40


@dataclass(frozen=True)
class WordTable:
    """Columns of a table of words, and the setting that names its file, for messages."""

    setting: str
    source: str
    columns: tuple[pa.StringArray, ...]
    """Arrays ``(lines,)`` without empty cells."""

    def error(self, problem: str, fix: str) -> PublicFileError:
        """Make an error that names setting and file."""
        return _error(self.setting, self.source, problem, fix)

    def whole_numbers(self, column: int) -> Int64:
        """Parse a column as positive whole numbers below 10^18: int64 ``(lines,)``. Raises :class:`PublicFileError`."""
        return self._numbers(column, _WHOLE_NUMBER, pa.int64(), "a whole number from 1 to 10^18 - 1")

    def numbers(self, column: int) -> Float64:
        """Parse a column as finite numbers: float64 ``(lines,)``. Raises :class:`PublicFileError`."""
        kind = "a finite number, with a point and no spaces"
        numbers = self._numbers(column, _NUMBER, pa.float64(), kind)
        self._refuse(~np.isfinite(numbers), column, kind)
        return numbers

    def _numbers(self, column: int, pattern: str, kind: pa.DataType, wanted: str) -> NDArray[Any]:
        values = self.columns[column]
        self._refuse(~np.asarray(pc.match_substring_regex(values, pattern)), column, wanted)
        return np.asarray(values.cast(kind))

    def _refuse(self, bad: Bool, column: int, wanted: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            value = self.columns[column][row].as_py()[:_SHOWN]
            header = " A file has no header line." if row == 0 else ""
            raise self.error(
                f"line {row + 1}, column {column + 1}: {value!r} is not {wanted}.{header}", "Repair the line."
            )

    def require_distinct(self, columns: int) -> None:
        """Raise :class:`PublicFileError` if two lines have the same first ``columns`` columns."""
        numbers = np.zeros(len(self.columns[0]), np.int64)
        for column in self.columns[:columns]:
            numbers = _number_values(pa.array(numbers * len(numbers) + _number_values(column)))
        # Numbers rise at the first occurrence of a value.
        known = np.maximum.accumulate(numbers)
        again = np.flatnonzero(numbers[1:] <= known[:-1])
        if len(again):
            row = int(again[0]) + 1
            first = int(np.argmax(numbers == numbers[row]))
            shown = ", ".join(repr(column[row].as_py()[:_SHOWN]) for column in self.columns[:columns])
            raise self.error(f"lines {first + 1} and {row + 1} have the same words ({shown}).", "Keep one of them.")


def _number_values(values: pa.Array) -> Int64:
    return np.asarray(values.dictionary_encode().indices).astype(np.int64)


def _error(setting: str, source: str, problem: str, fix: str) -> PublicFileError:
    return PublicFileError(f"{setting} = {source}: {problem} {fix}")


def require_file(source: str, setting: str) -> Path:
    """Return the path of an existing file. Raises :class:`PublicFileError`."""
    path = Path(source)
    if not path.exists():
        raise _error(setting, source, "no such file.", "Name an existing file.")
    if not path.is_file():
        raise _error(setting, source, "is not a file.", "Name a file.")
    return path


def read_word_table(source: str, setting: str, names: Sequence[str]) -> WordTable:
    """Read a file whose lines have the columns ``names``, which its messages use.

    Raises :class:`PublicFileError` if it is missing, not UTF-8, or has lines of other or empty columns.
    """
    path = require_file(source, setting)

    def fault(problem: str) -> PublicFileError:
        columns = f"{len(names)} columns: {', '.join(names[:-1])} and {names[-1]}, with a tab between"
        return _error(
            setting,
            source,
            problem,
            f"Each line has {columns if len(names) > 1 else f'one {names[0]}'}. Repair the file.",
        )

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data = stream.read()
    except (pa.ArrowException, OSError) as error:
        raise fault(f"cannot be read ({error}).") from None
    table = _parse(_decoded(data, fault), names, fault)
    columns = tuple(column.combine_chunks() for column in table.columns)
    for name, column in zip(names, columns, strict=True):
        empty = np.asarray(pc.equal(pc.utf8_trim_whitespace(column), ""))
        if empty.any():
            raise fault(f"line {int(np.argmax(empty)) + 1}: {name} is empty.")
    return WordTable(setting, source, columns)


def _decoded(data: bytes, fault: Callable[[str], PublicFileError]) -> bytes:
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise fault("is empty.")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = len(data[: error.start].splitlines()) + data[: error.start].endswith((b"\n", b"\r"))
        raise fault(f"line {max(line, 1)} is not UTF-8.") from None
    return data


def _parse(data: bytes, names: Sequence[str], fault: Callable[[str], PublicFileError]) -> pa.Table:
    odd: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        odd.append(row)
        return "error"

    try:
        return csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=False, column_names=list(names)),
            csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False, invalid_row_handler=refuse),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowException as error:
        if odd:
            raise fault(f"line {odd[0].number} has {odd[0].actual_columns} column(s).") from None
        raise fault(f"cannot be read ({error}).") from None


CASE = "Words are compared exactly: the case of letters counts."


@dataclass(frozen=True)
class FittedWords:
    """Words that a file is fitted to, and the notes on it. ``language``: theirs, as a code of ISO 639-1."""

    words: pa.StringArray
    name: str
    source: str
    notes: list[str]
    language: str = "en"

    def __len__(self) -> int:
        return len(self.words)

    def find(self, listed: pa.StringArray) -> Int32:
        """Find the id of each word of a file, -1 for those that the embedding does not have."""
        return WordIndex(self.words).numbers(listed)

    def note(self, count: int, what: str) -> None:
        """Note something about the file, unless its ``count`` is 0."""
        if count:
            self.notes.append(f"{self.name}: {count:,} {what}")

    def note_unknown(self, ids: Int32) -> None:
        """Note how many words of the file, one for each line, the embedding lacks."""
        self.note(int((ids < 0).sum()), f"of {len(ids):,} words of {self.source} are not in the embedding: ignored.")


_PER_WORDS = 10**10
"""Number of words that counts refer to: the rarest word of a list has 100."""


def is_wordfreq(source: str) -> bool:
    """Return whether a setting names a list of wordfreq and no file."""
    return source.startswith(WORDFREQ)


def has_wordfreq(source: str) -> bool:
    """Return whether the list is available."""
    return find_version("wordfreq") is not None and source.removeprefix(WORDFREQ) in _languages()


def read_wordfreq(source: str, setting: str) -> WordTable:
    """Read the words of a list and their counts, in the form of a file of words and counts.

    wordfreq counted words of 42 languages in subtitles, news, books, encyclopaedias and web pages until 2021 (Speer
    2022, doi:10.5281/zenodo.7199437), and is not updated: later web pages hold texts that machines wrote. A recipe has
    the digest of the counts, so another version of the package with the same counts changes nothing. Raises
    :class:`PublicFileError` if wordfreq is not installed, or has no list of the language.
    """
    if find_version("wordfreq") is None:
        problem = "needs wordfreq, which Python does not have here. Run `pip install 'wordveil[languages]'`."
        raise PublicFileError(f"{setting} = {source}: {problem}")
    if not has_wordfreq(source):
        problem = f"there is no such list. There are: {', '.join(sorted(_languages()))}."
        raise PublicFileError(f"{setting} = {source}: {problem}")
    words, counts = _load(source.removeprefix(WORDFREQ))
    return WordTable(setting, source, (pa.array(words, pa.string()), pa.array(counts, pa.int64()).cast(pa.string())))


def digest_wordfreq(source: str, setting: str) -> str:
    """Compute the SHA-256 of a list's words and counts, hexadecimal. Raises as :func:`read_wordfreq`."""
    words, counts = read_wordfreq(source, setting).columns
    lines = "".join(f"{word}\t{count}\n" for word, count in zip(words.to_pylist(), counts.to_pylist(), strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.available_languages("best"))


@lru_cache(maxsize=1)
def _load(language: str) -> tuple[list[str], list[int]]:
    import wordfreq

    shares = wordfreq.get_frequency_dict(language, "best")
    words = sorted(shares)
    return words, [max(1, round(shares[word] * _PER_WORDS)) for word in words]


def read_groups(source: str, setting: str) -> WordTable:
    """Read the table of ``mechanism.merge``. Raises :class:`wordveil.errors.PublicFileError` if it has a fault."""
    table = read_word_table(SHIPPED_SENSITIVE if source == SENSITIVE else source, setting, ("word", "group"))
    table.require_distinct(1)
    return WordTable(setting, source, table.columns)


def fit_groups(table: WordTable, to: FittedWords) -> Groups:
    """Fit groups to an embedding, numbered in the table's order. A group's name is in it unless in another."""
    ids = to.find(table.columns[0])
    if not (ids >= 0).any():
        raise table.error("has no word of the embedding.", f"Name another file. {CASE}")
    known = ids >= 0
    encoded = table.columns[1].filter(pa.array(known)).dictionary_encode()
    labels = np.full(len(to), -1, np.int32)
    labels[ids[known]] = np.asarray(encoded.indices)
    names = to.find(encoded.dictionary)
    named = np.flatnonzero(names >= 0)
    named = named[labels[names[named]] < 0]
    labels[names[named]] = named
    own = np.where(names >= 0, labels[names], -1) == np.arange(len(names))
    if to.source != SENSITIVE:
        to.note_unknown(ids)
    to.note(
        int((labels >= 0).sum()), f"words of {to.source} are in {len(names):,} groups, which nobody can tell apart."
    )
    return Groups(labels, np.where(own, names, -1).astype(np.int32))


def read_writable(source: str, setting: str) -> WordTable:
    """Read the list of ``mechanism.written``. Raises :class:`wordveil.errors.PublicFileError` if it has a fault."""
    table = read_word_table(_ORDINARY if source == ORDINARY else source, setting, ("word",))
    table.require_distinct(1)
    return WordTable(setting, source, table.columns)


def fit_writable(table: WordTable, to: FittedWords) -> Bool:
    """Select the words of an embedding that may be written: bool ``(size,)``.

    For ``ordinary`` these are all except names and, in an English embedding, words that the list lacks.
    """
    if to.source != ORDINARY:
        ids = to.find(table.columns[0])
        to.note_unknown(ids)
        chosen = np.zeros(len(to), np.bool_)
        chosen[ids[ids >= 0]] = True
        if not chosen.any():
            raise table.error("has no word of the embedding.", f"Name another file. {CASE}")
        return chosen
    words = pc.utf8_lower(to.words)
    listed = WordIndex(table.columns[0]).numbers(words) >= 0
    plain = ~find_names(words)
    if 2 * listed[:_FIRST].sum() < len(listed[:_FIRST]):
        listed = np.ones(len(to), np.bool_)
    chosen = np.asarray(listed & plain)
    to.note(int(chosen.sum()), f"of {len(to):,} words may be written: the others are names, or no ordinary words.")
    return chosen


def find_names(words: pa.StringArray) -> Bool:
    """Find names, places and nationalities among lower-case words, also with ``'s`` or in plural."""
    found = np.zeros(len(words), np.bool_)
    stems = pc.replace_substring_regex(words, "['\u2019]s?$", "")
    for forms in (words, stems, pc.replace_substring_regex(stems, "s$", "")):
        found |= _names().numbers(forms) >= 0
    return found


@cache
def _names() -> WordIndex:
    return WordIndex(pa.array(sorted(list_names()), pa.string()))


def list_names(*, world: bool = True) -> set[str]:
    """List names, places and nationalities of all lists, in lower case. ``world``: with names that are never drawn."""
    lists = [PublicLists.load(language) for language in LISTED_LANGUAGES]
    kinds = [names for one in lists for names in (one.first_names, one.surnames, one.places, one.nationalities)]
    kinds += [names for one in lists for names, _ in one.others.values() if world]
    return {name for names in kinds for name in pc.utf8_lower(names).to_pylist()}


@cache
def digest_ordinary() -> str:
    """Return the SHA-256 of all data that decide which words are ordinary, in hexadecimal."""
    digest = hashlib.sha256(Path(_ORDINARY).read_bytes())
    digest.update("".join(f"{name}\n" for name in sorted(list_names())).encode())
    return digest.hexdigest()
