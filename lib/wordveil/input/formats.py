"""Formats of inputs and options of their readers. Options that lose records, or change types, are faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType

from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.input.columns import find_column_faults, fold_name
from wordveil.input.source import PARSED_FORMATS, VERSIONED_FORMATS, Source
from wordveil.records.paths import read_path

KNOWN = ("parquet", "delta", "iceberg", "orc", "json", "csv", "text", "avro", "jdbc", "xml", "binaryfile")
"""Spark's names of formats, in lower case. Others are possible, by name or class."""
FILE_FORMATS = frozenset({"parquet", "delta", "iceberg", "orc", "json", "csv", "text", "avro", "xml"})
"""Formats of files, which require a path."""
CORRUPT_COLUMN = "__corrupt"
"""Column in which Spark puts a row that it cannot parse."""

# With Spark's own defaults for CSV a line break or a quote inside a quoted text cuts the record: then pieces of the
# text are in other columns, which may be published. With columnPruning Spark would not notice missing or extra columns.
_CSV = {"header": "true", "multiLine": "true", "escape": '"', "columnPruning": "false"}
READER_OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType({"csv": MappingProxyType(_CSV)})
"""Options that differ from Spark's defaults, unless a configuration sets them."""

NO_FEED = (
    "Iceberg tables have no change data feed. Set input.changes: scan, which compares the contents of all records, or "
    "remove it."
)
"""Fault of ``input.changes: feed`` for an Iceberg table."""
_TIME_TRAVEL = "Set input.version or input.timestamp."
_FEED = "Set input.changes."
_PART = "would read only a part of the table. Remove it; a release finds what changed by comparing contents."
_TYPES = "takes types from the data, so that they may differ from night to night. Name them in input.columns."
_LOSES = "would drop records silently. Remove it."
_OURS = "is set by wordveil, so that no row is lost silently. Remove it."
# By name in lower case: the effect of each option, and what to do instead.
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "path": "is not an option here. Set input.path.",
        "paths": "is not an option here. Set input.path.",
        "schema": "is not an option here. Set input.columns.",
        "versionasof": _TIME_TRAVEL,
        "timestampasof": _TIME_TRAVEL,
        "readchangefeed": _FEED,
        "readchangedata": _FEED,
        "startingversion": _FEED,
        "startingtimestamp": _FEED,
        "endingversion": _FEED,
        "endingtimestamp": _FEED,
        **dict.fromkeys(("snapshot-id", "as-of-timestamp"), _TIME_TRAVEL),
        **dict.fromkeys(("start-snapshot-id", "end-snapshot-id"), _PART),
        "inferschema": _TYPES,
        "samplingratio": _TYPES,
        "ignorecorruptfiles": _LOSES,
        "ignoremissingfiles": _LOSES,
        "comment": _LOSES,
        "mode": "decides what happens to rows that cannot be parsed: wordveil quarantines them. Remove it.",
        "columnnameofcorruptrecord": _OURS,
        "columnpruning": _OURS,
        "enforceschema": _OURS,
    }
)
# Options that could cut a text, lose a piece of it, or write it into a log, for formats whose rows are parsed.
_REFUSED_PARSED: Mapping[str, str] = MappingProxyType(
    {
        "multiline": "is set by wordveil, so that a line break in a text does not end its record. Remove it.",
        "unescapedquotehandling": "would lose pieces of texts, or write them into Spark's logs. Remove it.",
        "rescueddatacolumn": "hides rows that cannot be parsed: wordveil quarantines them. Remove it.",
        "singlevariantcolumn": "puts a whole row into one column. Name the columns in input.columns.",
    }
)
_REFUSED_ICEBERG = {"branch": _TIME_TRAVEL, "tag": _TIME_TRAVEL}


def find_source_faults(source: Source) -> Iterator[Fault]:
    """List faults of columns, path, name, version, format and options."""
    yield from find_column_faults(source)
    yield from _rename_faults(source)
    yield from _format_faults(source)
    named = (source.path is not None) + (source.table is not None)
    if named > 1 or (named == 0 and source.kind in FILE_FORMATS):
        where = "input.table" if source.table else "input.path"
        yield Fault(where, "", "name exactly one of input.path and input.table.")
    if source.table is not None and source.format is not None:
        problem = "must not be set with input.table, because the catalogue knows the format. Remove it."
        yield Fault("input.format", source.format, problem)
    chosen = {name: value for name in ("version", "timestamp") if (value := getattr(source, name)) is not None}
    if len(chosen) == 2:
        problem = "and input.version both say which version to read. Remove one of them."
        yield Fault("input.timestamp", str(source.timestamp), problem)
    if not source.may_have_versions:
        for name, value in chosen.items():
            problem = "only Delta and Iceberg tables have versions. Set input.format: delta or iceberg, or remove it."
            yield Fault(f"input.{name}", shown_value(value), problem)
    if source.table is None and source.kind == "iceberg" and source.changes == "feed":
        yield Fault("input.changes", source.changes, NO_FEED)
    if source.where and "${" in source.where:
        problem = (
            "has a variable ${...}, which Spark replaces with SQL from elsewhere. Write a parameter, such as :day, "
            "which --param sets."
        )
        yield Fault("input.where", shown_value(source.where), problem)
    if source.timestamp is not None:
        try:
            datetime.fromisoformat(source.timestamp)
        except ValueError:
            problem = 'is not a date or time. Write "2026-11-20 03:00:00", in quotes.'
            yield Fault("input.timestamp", shown_value(source.timestamp), problem)


def _rename_faults(source: Source) -> Iterator[Fault]:
    """List columns that are renamed to nothing new or to one name, and new names and types that no setting uses."""
    named = {*source.columns_read, *(read_path(text)[0] for text in source.texts)}
    seen: dict[str, str] = {}
    for old, new in source.rename.items():
        where, folded = f"input.rename.{old}", fold_name(new)
        if folded == fold_name(old):
            yield Fault(where, new, "is the column's own name. Remove it.")
        elif folded in seen:
            yield Fault(where, new, f"is the new name of {seen[folded]}, too. Keep one of them.")
        elif new not in named and source.where is None:
            problem = (
                f"is a name that no setting of input has.{did_you_mean(new, named)} Name the column by its new name."
            )
            yield Fault(where, new, problem)
        seen[folded] = old
    for name, kind in source.cast.items():
        if name == source.author and name not in source.keep:
            problem = "is the type of the author: a value that does not fit would be nobody. Authors need none."
            yield Fault(f"input.cast.{name}", kind, problem)
        elif name not in source.columns_read:
            problem = "is the type of a column that no setting of input has, or of a text, which needs none. Remove it."
            yield Fault(f"input.cast.{name}", kind, problem)


def _format_faults(source: Source) -> Iterator[Fault]:
    """List faults of format, options and columns. No fault shows the value of an option: it may be a secret."""
    if source.table is not None:
        for name in ("options", "options_env", "columns"):
            if getattr(source, name):
                problem = "must not be set with input.table, because the catalogue knows them. Remove it."
                yield Fault(f"input.{name}", "", problem)
    if source.format is not None and source.kind not in KNOWN and (near := did_you_mean(source.kind, KNOWN)):
        problem = f"is not a format that Spark is known to have.{near} Other sources can also be named by their class."
        yield Fault("input.format", source.format, problem)
    if source.columns is not None and source.kind in VERSIONED_FORMATS:
        problem = "the table has its own columns. Remove it."
        yield Fault("input.columns", source.columns[:80], problem)
    refused = {**_REFUSED, **(_REFUSED_PARSED if source.kind in PARSED_FORMATS else {})}
    refused |= _REFUSED_ICEBERG if source.kind == "iceberg" else {}
    yield from _option_faults(source, refused)
    if source.kind == "text" and find_option(source, "wholetext").lower() != "true":
        problem = (
            'reads a record a file: set options: {wholetext: "true"}, id: file_name and text: value. Lines of a file '
            "have no ids that stay the same. For a record a line, write JSON lines or CSV with an id in each."
        )
        yield Fault("input.format", source.reader, problem)


def _option_faults(source: Source, refused: Mapping[str, str]) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    named = [("options", name) for name in source.options] + [("options_env", name) for name in source.options_env]
    for setting, name in named:
        where, folded = f"input.{setting}.{name}", name.lower()
        if folded in seen:
            yield Fault(
                where, "", f"is set twice: also as {seen[folded]}. Spark treats both as one option. Remove one."
            )
        seen[folded] = where
        if folded in refused:
            yield Fault(where, "", refused[folded])


def find_option(source: Source, name: str) -> str:
    """Return the value of a reader's option, whatever the case of its name; empty if it is not set."""
    defaults = READER_OPTIONS.get(source.kind, {})
    values = {key.lower(): value for key, value in (*defaults.items(), *source.options.items())}
    return values.get(name.lower(), "")


def has_header(source: Source) -> bool:
    """Return whether the first line of each file of the input names its columns."""
    return source.kind == "csv" and source.table is None and find_option(source, "header").lower() == "true"


def reader_options(source: Source, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the options of Spark's reader: wordveil's, replaced by those that the configuration sets.

    ``variables``: the environment. Raises :class:`KeyError` for a missing variable.
    """
    given = {**source.options, **{name: variables[variable] for name, variable in source.options_env.items()}}
    folded = {name.lower() for name in given}
    defaults = {
        name: value for name, value in READER_OPTIONS.get(source.kind, {}).items() if name.lower() not in folded
    }
    corrupt = {"columnNameOfCorruptRecord": CORRUPT_COLUMN} if source.kind in PARSED_FORMATS else {}
    return {**defaults, **given, **corrupt}
