"""Columns of a table, for a first configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from wordveil.config.guess import Column
from wordveil.config.schema import SparkSection
from wordveil.config.template import is_local_delta
from wordveil.errors import InputError
from wordveil.input.files import FileFormat, find_format, require_parquet
from wordveil.input.formats import has_header
from wordveil.input.source import Source
from wordveil.records.schema import MALFORMED_COLUMN
from wordveil.spark.input.local_schema import read_local_schema
from wordveil.spark.input.reading import check_headers, find_columns, load_files, partition_columns, read_source
from wordveil.spark.input.source import has_change_feed, is_delta_path
from wordveil.spark.platform.delta import EXTENSION
from wordveil.spark.platform.errors import input_errors
from wordveil.spark.platform.filesystem import Files, load_path

# If the first line of a CSV file is in fact a record, it must not get into a configuration.
_NAME = re.compile(r"[^\W\d][\w .()/#%-]{0,63}")


def read_columns(session: Callable[[], SparkSession], path: str, *, is_release: bool = False) -> list[Column]:
    """Read the columns of the table at ``path``, starting Spark only if nothing else can determine them.

    They come from file names, a Delta log, one footer, or the first line of CSV; JSON is read as a whole.
    ``is_release``: the table is to be a release's input, so it must be a Delta table. Raises :class:`InputError`.
    """
    is_delta = is_local_delta(path)
    files = FileFormat() if is_delta else find_format(path)
    if files.kind != "parquet" and not is_release:
        return _read_files(session, path, files)
    if (is_delta or not is_release) and (local := read_local_schema(path, SparkSection(), delta=is_delta)):
        return _list_columns(local.schema, local.partitions)
    table = open_path(session, path, "--from", "Draft an incremental release of it with --release.")
    if is_release and not is_delta_path(table.sparkSession, path):
        raise InputError(
            f"--from = {path}: is a Parquet table, and a release reads a Delta table. Write it as one, for example "
            'with spark.read.parquet(...).write.format("delta").save(...), or leave out --release.'
        )
    return _list_columns(table.schema, partition_columns(table))


def reads_changes(session: Callable[[], SparkSession], path: str) -> bool:
    """Return whether the Delta table at ``path`` has a change feed. Spark starts only if its log cannot show it."""
    if is_local_delta(path) and (local := read_local_schema(path, SparkSection(), delta=True)):
        return local.has_feed
    return has_change_feed(open_path(session, path, "--from", "Draft an incremental release of it with --release."))


def _read_files(session: Callable[[], SparkSession], path: str, files: FileFormat) -> list[Column]:
    source = Source("id", "text", path=path, format=files.kind, options=files.options_map)
    spark = session()
    with input_errors("--from", path, files.kind):
        check_headers(spark, source)
        columns = find_columns(spark, source)
        schema = read_source(spark, source, columns).drop(MALFORMED_COLUMN).schema
        partitions = partition_columns(load_files(spark, source, columns))
    if has_header(source) and not all(_NAME.fullmatch(name) for name in schema.names):
        raise InputError(
            f"--from = {path}: the first line of its files does not look like names of columns: they begin with a "
            "letter and have at most 64 letters, digits, spaces or signs such as _ and -. Add such a line."
        )
    return _list_columns(schema, partitions)


def _list_columns(schema: StructType, partitions: Collection[str]) -> list[Column]:
    return [Column(field.name, field.dataType.simpleString(), field.name in partitions) for field in schema.fields]


def open_path(session: Callable[[], SparkSession], path: str, option: str, otherwise: str) -> DataFrame:
    """Open the Parquet or Delta table at ``path``, which ``option`` of the command line names.

    Spark starts only if the file's format is right, and reads only metadata. Raises :class:`InputError`; ``otherwise``
    is the fix for a Delta table that the session cannot read.
    """
    require_parquet(option, path)
    spark = session()
    with input_errors(option, path):
        if not Files(spark, path).exists():
            raise InputError(f"{option} = {path}: there is no such file or directory. Check the path.")
        delta = is_delta_path(spark, path)
        if delta and EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
            raise InputError(
                f"{option} = {path}: this command reads Delta tables only from this machine's disk. {otherwise}"
            )
        return load_path(spark, spark.read.format("delta" if delta else "parquet"), path)
