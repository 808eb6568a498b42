"""Files that are neither Parquet nor Delta: what they seem to be, and how to read or convert them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from wordveil.errors import InputError

# How every Parquet file begins; the second one where the footer is encrypted.
_MAGIC = (b"PAR1", b"PARE")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_CSV = "d.CsvFileFormat(c.ParseOptions({delimiter}newlines_in_values=True))"
# What a file is by the ending of its name, and the format as pyarrow.dataset has it; empty where it has none.
# `_READERS` has the formats by which an input of these endings is read.
_FORMATS = {
    "csv": ("CSV", _CSV.format(delimiter="")),
    "tsv": ("CSV with tabs", _CSV.format(delimiter='delimiter="\\t", ')),
    "jsonl": ("JSON lines", '"json"'),
    "ndjson": ("JSON lines", '"json"'),
    "json": ("JSON", '"json"'),
    "orc": ("ORC", '"orc"'),
    "arrow": ("Arrow", '"ipc"'),
    "feather": ("Arrow", '"ipc"'),
    "avro": ("Avro", ""),
    "txt": ("plain text", ""),
    "xml": ("XML", ""),
    "xlsx": ("Excel", ""),
}


_READERS = {
    "csv": ("csv", ""),
    "tsv": ("csv", 'sep: "\\t"'),
    **dict.fromkeys(("jsonl", "ndjson", "json"), ("json", "")),
    "orc": ("orc", ""),
    "avro": ("avro", ""),
    "txt": ("text", 'wholetext: "true"'),
}


@dataclass(frozen=True)
class FileFormat:
    """How files are read: the settings ``input.format`` and ``input.options``, the latter as YAML between braces."""

    kind: str = "parquet"
    options: str = ""

    @property
    def options_map(self) -> dict[str, str]:
        """The options."""
        values: dict[str, str] = yaml.safe_load(f"{{{self.options}}}")
        return values


def find_format(path: str) -> FileFormat:
    """How the files at ``path`` are read, by the ending of their names; of those on this machine's disk the first is
    looked at, and its first bytes say whether it is Parquet. Parquet where it is unclear.
    """
    local = Path(path.removeprefix("file:"))
    found = next(walk_files(local), None)
    if found is not None and _is_parquet(found):
        return FileFormat()
    return FileFormat(*_READERS.get(_ending(found.name if found else path), ("parquet", "")))


def describe_foreign(path: str) -> str:
    """What a file that is no Parquet is by its name, and how an input of it is read, in sentences."""
    name, _ = _format_of(path)
    found = f"It is not a Parquet file; by its name it is {name}." if name else "It is not a Parquet file."
    if (reader := _READERS.get(_ending(path))) is None:
        return found
    return f"{found} Set input.format: {reader[0]}{f' and input.options: {{{reader[1]}}}' if reader[1] else ''}."


def require_format(setting: str, path: str, kind: str) -> None:
    """Check the first file of an input on this machine's disk, by its first bytes, against its format ``kind``.

    Raises :class:`InputError`, which names the format to set. Other file systems, empty files, what cannot be read and
    Delta tables, whose files are Parquet, are left to Spark.
    """
    if kind == "delta":
        return
    local = Path(path.removeprefix("file:"))
    found = next(walk_files(local), None)
    if found is None:
        return
    within = f" (looked at {found.relative_to(local)})" if local.is_dir() else ""
    if kind != "parquet":
        if os.access(found, os.R_OK) and _starts_as_parquet(found):
            raise InputError(f"{setting} = {path}{within}: is a Parquet file. Set input.format: parquet, or remove it.")
        return
    if found.suffix != ".parquet" and not _is_parquet(found):
        convert = "" if _ending(found.name) in _READERS else f" {_conversion(path, found.name)}"
        raise InputError(f"{setting} = {path}{within}: {describe_foreign(found.name)}{convert}")


def require_parquet(setting: str, path: str) -> None:
    """Check the first file of what should be a Parquet table on this machine's disk, by its first bytes.

    Raises :class:`InputError`, which says how to convert the data, where it is no Parquet file. Other file systems,
    empty files, what cannot be read, and damaged files whose name says Parquet are left to Spark.
    """
    local = Path(path.removeprefix("file:"))
    found = next((file for file in walk_files(local) if file.stat().st_size), None)
    if found is not None and found.suffix != ".parquet" and not _is_parquet(found):
        within = f" (looked at {found.relative_to(local)})" if local.is_dir() else ""
        name, _ = _format_of(found.name)
        said = f"It is not a Parquet file; by its name it is {name}." if name else "It is not a Parquet file."
        raise InputError(f"{setting} = {path}{within}: {said} {_conversion(path, found.name)}")


def walk_files(path: Path) -> Iterator[Path]:
    """The files of a table on this machine's disk in the order of their names: ``path`` itself, or those below it that
    Spark does not skip.
    """
    if path.is_file():
        yield path
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not is_hidden(name))
        yield from (Path(folder) / name for name in sorted(names) if not is_hidden(name))


def is_hidden(name: str) -> bool:
    """Whether Spark skips a file or a directory of that name below a table (``HadoopFSUtils.shouldFilterOutPathName``,
    but for Parquet's summary files, which have no rows).
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _is_parquet(file: Path) -> bool:
    try:
        return _starts_as_parquet(file)
    except OSError:
        return True  # Spark says why it cannot be read


def _starts_as_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) in _MAGIC


def _ending(path: str) -> str:
    """The ending of a file's name in lower case, before that of its compression."""
    name = path.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return name.rpartition(".")[2]


def _format_of(path: str) -> tuple[str, str]:
    """The name of a format and what pyarrow calls it, by the ending of a file's name; empty where it is unknown."""
    return _FORMATS.get(_ending(path), ("", ""))


def _conversion(path: str, file: str) -> str:
    """How to convert ``path``, which is ``file`` or a directory of such files."""
    _, reader = _format_of(file)
    if not reader:
        return "Write it as Parquet first, with a column for the id and one for the text."
    stem = path.rstrip("/")
    while Path(stem).suffix:
        stem = stem.removesuffix(Path(stem).suffix)
    places = [json.dumps(place) for place in (path, f"{stem}.parquet")]
    modules = "pyarrow.csv as c, pyarrow.dataset as d" if "c." in reader else "pyarrow.dataset as d"
    code = (
        f"import {modules}, pyarrow.parquet as p; "
        f"p.write_table(d.dataset({places[0]}, format={reader}).to_table(), {places[1]})"
    )
    return f"Convert it: python -c {shlex.quote(code)}"
