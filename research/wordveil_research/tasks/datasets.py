"""Read labelled texts from files: JSON lines, CSV or Parquet, one text a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json, parquet

from wordveil.errors import InputError
from wordveil.scores.documents import Documents

# What tar and curl leave: pyarrow opens gzip, bz2, lz4 and zstd by itself, and not this one.
_XZ = ".xz"
_BLOCK = 2**26


def read_table(path: Path) -> pa.Table:
    """Read the rows of a file by its name: ``.jsonl`` or ``.json``, ``.csv``, ``.tsv``, ``.parquet``; text files may
    end in ``.gz``, ``.bz2``, ``.zst`` or ``.xz`` besides.

    Raises :class:`InputError` for a file that is missing, has another name or cannot be read. The message has no
    content of it.
    """
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix in _READERS), "")
    if not kind:
        raise InputError(f"{path}: expected a file whose name ends in {', '.join(_READERS)}.")
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    try:
        if path.suffix == _XZ:
            import lzma

            with lzma.open(path) as stream:
                return _READERS[kind](pa.PythonFile(stream, "r"))
        if kind == ".parquet":
            return parquet.read_table(path)
        with pa.input_stream(str(path), compression="detect") as stream:
            return _READERS[kind](stream)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        # pyarrow's own messages quote the row that it cannot read.
        raise InputError(f"{path}: cannot be read as {kind[1:]} ({type(error).__name__}).") from None


def _read_json(stream: Any) -> pa.Table:
    return json.read_json(stream, read_options=json.ReadOptions(block_size=_BLOCK))


def _read_csv(stream: Any, delimiter: str = ",") -> pa.Table:
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    return csv.read_csv(stream, read_options=csv.ReadOptions(block_size=_BLOCK), parse_options=parsing)


_READERS = {
    ".jsonl": _read_json,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": lambda stream: _read_csv(stream, "\t"),
    ".parquet": parquet.read_table,
}


def read_columns(path: Path, columns: tuple[str, ...], where: Mapping[str, str] | None = None) -> list[list[str]]:
    """Read columns of a file as texts, a null as the empty text; of the rows whose columns equal ``where`` alone.

    Raises :class:`InputError` as :func:`read_table`, and for a column that the file lacks.
    """
    table = read_table(path)
    for name in (*columns, *(where or {})):
        if name not in table.column_names:
            raise InputError(f"{path}: has no column {name}; it has {', '.join(table.column_names)}.")
    for name, value in (where or {}).items():
        table = table.filter(pc.equal(table[name].cast(pa.string()), value))
    return [pc.fill_null(table[name].cast(pa.string()), "").to_pylist() for name in columns]


def load_documents(
    path: Path,
    label: str,
    text: str = "text",
    where: Mapping[str, str] | None = None,
    names: tuple[str, ...] | None = None,
) -> Documents:
    """Labelled texts of a file.

    Parameters
    ----------
    path
        see :func:`read_table`.
    label, text
        the columns.
    where
        values that columns must have, such as ``{"split": "train"}``.
    names
        the labels in their order, as those of the training part; by default all that occur, in alphabetical order.
        Other labels become unknown.

    Raises
    ------
    InputError
        as :func:`read_columns`.
    """
    texts, labels = read_columns(path, (text, label), where)
    return Documents.of(texts, labels, names)
