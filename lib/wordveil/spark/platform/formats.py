"""Files that are neither Parquet nor Delta: what they seem to be, and how to read or convert them."""

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

# How every Parquet file begins; the second where the footer is encrypted.
_MAGIC = (b"PAR1", b"PARE")
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_CSV = "d.CsvFileFormat(c.ParseOptions({delimiter}newlines_in_values=True))"


class _Known(NamedTuple):
    """A format: its name, what pyarrow.dataset calls it, and how an input of it is read; empty where they cannot."""

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
    """How files are read: the settings ``input.format`` and ``input.options``, the latter as YAML between braces."""

    kind: str = "parquet"
    options: str = ""

    @property
    def options_map(self) -> dict[str, str]:
        """The options."""
        values: dict[str, str] = yaml.safe_load(f"{{{self.options}}}")
        return values


def find_format(path: str) -> FileFormat:
    """How the files at ``path`` are read, by the suffix of their names. Of files on this machine's disk, the first
    bytes of the first one say whether they are Parquet. Parquet where it is unclear.
    """
    file = next(walk_files(_local_path(path)), None)
    known = _find_known(file.name if file else path)
    if not known.kind or (file is not None and _is_parquet(file)):
        return FileFormat()
    return FileFormat(known.kind, known.options)


def describe_foreign(path: str) -> str:
    """What a file that is not Parquet is by its name, and how an input of it is read, in sentences."""
    known = _find_known(path)
    if not known.kind:
        return _name_foreign(known)
    options = f" and input.options: {{{known.options}}}" if known.options else ""
    return f"{_name_foreign(known)} Set input.format: {known.kind}{options}."


def _name_foreign(known: _Known) -> str:
    named = f"; by its name it is {known.name}" if known.name else ""
    return f"It is not a Parquet file{named}."


def require_format(setting: str, path: str, kind: str) -> None:
    """Check the first file of an input on this machine's disk, by its first bytes, against its format ``kind``.

    Raises :class:`InputError`, which names the format to set. Other file systems, empty files, what cannot be read and
    tables of Delta and Iceberg, whose files are Parquet, are left to Spark.
    """
    file = next(walk_files(_local_path(path)), None)
    if kind in VERSIONED_FORMATS or file is None:
        return
    if kind != "parquet":
        if os.access(file, os.R_OK) and _starts_as_parquet(file):
            raise _error(setting, path, file, "is a Parquet file. Set input.format: parquet, or remove it.")
    elif file.suffix != ".parquet" and not _is_parquet(file):
        convert = "" if _find_known(file.name).kind else f" {_conversion(path, file.name)}"
        raise _error(setting, path, file, f"{describe_foreign(file.name)}{convert}")


def require_parquet(setting: str, path: str) -> None:
    """Check the first file of what should be a Parquet table on this machine's disk, by its first bytes.

    Raises :class:`InputError`, which says how to convert the data, where it is not Parquet. Other file systems, empty
    files, what cannot be read, and damaged files whose name says Parquet are left to Spark.
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
    """The files of a local table in the order of their names: ``path`` itself, or those below it that Spark reads."""
    if path.is_file():
        yield path
    for folder, names in walk_folders(path):
        yield from (folder / name for name in sorted(names) if not is_hidden(name))


def walk_folders(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """The directories of a local table that Spark lists, ``path`` first, each with the names of its files."""
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not is_hidden(name))
        yield Path(folder), names


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


def _find_known(path: str) -> _Known:
    """The format that a file's name tells, compressed or not."""
    name = path.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return _FORMATS.get(name.rpartition(".")[2], _Known())


def _conversion(path: str, file: str) -> str:
    """How to convert ``path``, which is ``file`` or a directory of such files."""
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
