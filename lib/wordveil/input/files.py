"""Formats of files that are neither Parquet nor Delta, by their names, and ways to read or convert them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from wordveil.errors import InputError
from wordveil.input.source import VERSIONED_FORMATS

# The first bytes of every Parquet file; the second if the footer is encrypted.
_MAGIC = (b"PAR1", b"PARE")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_CSV = "d.CsvFileFormat(c.ParseOptions({delimiter}newlines_in_values=True))"


class _Known(NamedTuple):
    """Format: its name, its name in pyarrow.dataset, and the settings that read it; empty if not supported."""

    name: str = ""
    arrow: str = ""
    kind: str = ""
    options: str = ""


# By the suffix of a file's name.
_FORMATS = {
    "csv": _Known("CSV", _CSV.format(delimiter=""), "csv"),
    "tsv": _Known("CSV with tabs", _CSV.format(delimiter='delimiter="\\t", '), "csv", 'sep: "\\t"'),
    **dict.fromkeys(("jsonl", "ndjson"), _Known("JSON lines", '"json"', "json")),
    "json": _Known("JSON", '"json"', "json"),
    "orc": _Known("ORC", '"orc"', "orc"),
    **dict.fromkeys(("arrow", "feather"), _Known("Arrow", '"ipc"')),
    "avro": _Known("Avro", "", "avro"),
    "txt": _Known("plain text", "", "text", 'wholetext: "true"'),
    "xml": _Known("XML"),
    "xlsx": _Known("Excel"),
}


@dataclass(frozen=True)
class FileFormat:
    """Settings ``input.format`` and ``input.options`` that read a file, the latter as YAML between braces."""

    kind: str = "parquet"
    options: str = ""

    @property
    def options_map(self) -> dict[str, str]:
        """Parse the options."""
        values: dict[str, str] = yaml.safe_load(f"{{{self.options}}}")
        return values


def find_format(path: str) -> FileFormat:
    """Find the format of the files at ``path`` by the suffix of their names; Parquet if it is unclear.

    On this machine's disk, the first bytes of the first file show whether they are Parquet.
    """
    file = next(walk_files(_local_path(path)), None)
    known = _find_known(file.name if file else path)
    if not known.kind or (file is not None and _is_parquet(file)):
        return FileFormat()
    return FileFormat(known.kind, known.options)


def describe_foreign(path: str) -> str:
    """Describe a file that is not Parquet, by its name, and the settings that read it, in sentences."""
    known = _find_known(path)
    if not known.kind:
        return _name_foreign(known)
    options = f" and input.options: {{{known.options}}}" if known.options else ""
    return f"{_name_foreign(known)} Set input.format: {known.kind}{options}."


def _name_foreign(known: _Known) -> str:
    named = f"; by its name it is {known.name}" if known.name else ""
    return f"It is not a Parquet file{named}."


def require_format(path: str, kind: str) -> None:
    """Check the first file of an input on this machine's disk, by its first bytes, against its format ``kind``.

    Raises :class:`InputError`, which names the format to set. Other file systems, empty files, unreadable files and
    tables of Delta and Iceberg, whose files are Parquet, are left to Spark.
    """
    file = next(walk_files(_local_path(path)), None)
    if kind in VERSIONED_FORMATS or file is None:
        return
    if kind != "parquet":
        if os.access(file, os.R_OK) and _starts_as_parquet(file):
            raise _error("input.path", path, file, "is a Parquet file. Set input.format: parquet, or remove it.")
    elif file.suffix != ".parquet" and not _is_parquet(file):
        convert = "" if _find_known(file.name).kind else f" {_conversion(path, file.name)}"
        raise _error("input.path", path, file, f"{describe_foreign(file.name)}{convert}")


def require_parquet(setting: str, path: str) -> None:
    """Check the first bytes of the first file of a supposed Parquet table on this machine's disk.

    Raises :class:`InputError`, with a way to convert the data, if it is not Parquet. Other file systems, empty files,
    unreadable files, and damaged files with the suffix ``.parquet`` are left to Spark.
    """
    file = next((file for file in walk_files(_local_path(path)) if file.stat().st_size), None)
    if file is not None and file.suffix != ".parquet" and not _is_parquet(file):
        raise _error(setting, path, file, f"{_name_foreign(_find_known(file.name))} {_conversion(path, file.name)}")


def _error(setting: str, path: str, file: Path, problem: str) -> InputError:
    local = _local_path(path)
    within = f" (looked at {file.relative_to(local)})" if local.is_dir() else ""
    return InputError(f"{setting} = {path}{within}: {problem}")


def _local_path(path: str) -> Path:
    return Path(path.removeprefix("file:"))


def walk_files(path: Path) -> Iterator[Path]:
    """Yield the files of a local table by name: ``path`` itself, or those below it that Spark reads."""
    if path.is_file():
        yield path
    for folder, names in walk_folders(path):
        yield from (folder / name for name in sorted(names) if not is_hidden(name))


def walk_folders(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the directories of a local table that Spark lists, ``path`` first, with their file names."""
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not is_hidden(name))
        yield Path(folder), names


def is_hidden(name: str) -> bool:
    """Return whether Spark skips a file or a directory of that name below a table.

    This is ``HadoopFSUtils.shouldFilterOutPathName``, except for Parquet's summary files, which have no rows.
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _is_parquet(file: Path) -> bool:
    try:
        return _starts_as_parquet(file)
    except OSError:
        return True  # Spark's error has the reason


def _starts_as_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) in _MAGIC


def _find_known(path: str) -> _Known:
    name = path.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return _FORMATS.get(name.rpartition(".")[2], _Known())


def _conversion(path: str, file: str) -> str:
    reader = _find_known(file).arrow
    if not reader:
        return "Write it as Parquet first, with a column for the id and one for the text."
    stem = path.rstrip("/")
    while Path(stem).suffix:
        stem = stem.removesuffix(Path(stem).suffix)
    source, target = json.dumps(path), json.dumps(f"{stem}.parquet")
    modules = "pyarrow.csv as c, pyarrow.dataset as d" if "c." in reader else "pyarrow.dataset as d"
    code = (
        f"import {modules}, pyarrow.parquet as p; "
        f"p.write_table(d.dataset({source}, format={reader}).to_table(), {target})"
    )
    return f"Convert it: python -c {shlex.quote(code)}"
