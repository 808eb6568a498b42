"""Reader of an input's files, or of a Spark source: by format, options and columns.

A row of CSV, JSON or XML that cannot be parsed becomes a row without values, marked in ``__malformed``. Spark's mode
PERMISSIVE would fill its columns with what it could read: after a stray quote, a piece of the text could land in a
column that may be published. DROPMALFORMED loses the row; FAILFAST writes it into Spark's logs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from wordveil.errors import ConfigError, Fault, InputError
from wordveil.input.files import is_hidden
from wordveil.input.formats import CORRUPT_COLUMN, find_option, has_header, reader_options
from wordveil.input.source import PARSED_FORMATS, Source
from wordveil.records.paths import read_path
from wordveil.records.schema import MALFORMED_COLUMN
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import error_condition
from wordveil.spark.platform.filesystem import Files, has_glob, load_path
from wordveil.spark.platform.jvm import find_relation, java_class
from wordveil.spark.platform.versions import file_path

OPENED_FORMATS = PARSED_FORMATS | {"text"}
"""Formats of text files, which Spark reads with wordveil's options."""
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_LONGEST_HEADER = 2**20
_PARQUET = "org.apache.parquet"
_CONVERTER = "org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter"


def read_source(
    spark: SparkSession, source: Source, columns: StructType | None = None, options: Mapping[str, str] = NO_OPTIONS
) -> DataFrame:
    """Read a source without a ``table``, with ``__malformed`` if rows can be malformed.

    ``columns``: those of :func:`find_columns`, by default found again. ``options``: more options of the reader, such as
    a version of a Delta table. Raises :class:`ConfigError` if an environment variable is missing or ``input.columns``
    cannot be read. Errors of Spark pass through.
    """
    if source.kind in PARSED_FORMATS and columns is None:
        columns = find_columns(spark, source)
    frame = load_files(spark, source, columns, options)
    if source.kind in PARSED_FORMATS:
        return _mark_malformed(frame)
    if source.kind == "text":
        return frame.select("*", F.col("_metadata.file_name").alias("file_name"))
    return frame


def require_doubled_quotes(spark: SparkSession, source: Source, columns: StructType | None) -> None:
    """Raise :class:`InputError` for a file of CSV with a quote between quotes that is not written twice.

    Spark ends such a value at a separator, so that rows are joined, and a piece of a text is in another column. The
    value keeps its first quote, and is null where Spark skips such values: then fewer values begin with a quote.
    """
    quote = find_option(source, "quote") or '"'
    counts: list[dict[str, int]] = []
    for handling in ("STOP_AT_DELIMITER", "SKIP_VALUE"):
        rows = load_files(spark, source, columns, {"unescapedQuoteHandling": handling})
        texts = (field.name for field in rows.schema.fields if field.dataType == StringType())
        quoted = (F.count_if(column(name).startswith(quote)) for name in texts if name != CORRUPT_COLUMN)
        number = reduce(Column.__add__, quoted)
        found = rows.groupBy(file_path(rows).alias("file")).agg(number.alias("number")).where("number > 0").collect()
        counts.append({row.file: row.number for row in found})
        if not found:
            break
    if differing := sorted(file for file, number in counts[0].items() if counts[-1].get(file) != number):
        raise InputError(
            f"input.path = {source.path}: {differing[0]} has a quote between quotes that is not written twice, so that "
            "nobody can say where its row ends. Write the file again with such quotes doubled, as a library for CSV "
            "does."
        )


def find_columns(spark: SparkSession, source: Source) -> StructType | None:
    """Find the columns of a format whose rows are parsed, with :data:`CORRUPT_COLUMN`, or None for other formats.

    They are configured, or come from the first line of CSV, or from reading JSON once.
    """
    if source.kind not in PARSED_FORMATS or source.table is not None:
        return None
    frame = _infer_columns(spark, source)
    fields = [field for field in frame.schema.fields if field.name != CORRUPT_COLUMN]
    if source.kind == "json" and not {field.name for field in fields} - partition_columns(frame):
        raise InputError(
            f"input.path = {source.path}: no line is a JSON object, and each record is one on a line of its own. Write "
            "an array so with jq -c '.[]', and objects over several lines with jq -c '.'."
        )
    return StructType([*fields, StructField(CORRUPT_COLUMN, StringType())])


def _infer_columns(spark: SparkSession, source: Source) -> DataFrame:
    """Load the source with the columns that Spark finds in its files.

    To find a first record of CSV that may have line breaks, Hadoop reads the files by their names, as globs. If those
    could match other files, only the first line is read.
    """
    if source.kind != "csv" or source.path is None or source.columns is not None:
        return load_files(spark, source)
    files = load_files(spark, source, StructType([StructField(CORRUPT_COLUMN, StringType())])).inputFiles()
    is_glob = has_glob(unquote("".join(files))) or any(":" in file.partition(":")[2] for file in files)
    return load_files(spark, source, options={"multiLine": "false"} if is_glob else NO_OPTIONS)


def _reader(
    spark: SparkSession, source: Source, columns: StructType | None, options: Mapping[str, str]
) -> DataFrameReader:
    _check_environment(source.options_env)
    reader = spark.read.format(source.reader).options(**reader_options(source, os.environ)).options(**options)
    if columns is not None:
        return reader.schema(columns)
    return reader if source.columns is None else reader.schema(_parse_columns(spark, source.columns))


def _check_environment(options_env: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` unless the environment has the variables that ``options_env`` names."""
    problem = "is not set in the environment. Name a variable that is, or remove this option."
    faults = [
        # A value that is not a variable's name may be the secret itself.
        Fault(f"input.options_env.{name}", variable if variable.isupper() else "", problem)
        for name, variable in options_env.items()
        if variable not in os.environ
    ]
    if faults:
        raise ConfigError("configuration", faults)


def _parse_columns(spark: SparkSession, columns: str) -> StructType:
    """Parse ``input.columns``. Raises :class:`ConfigError` if Spark cannot, and for unknown types."""
    try:
        return StructType.fromJson(
            json.loads(java_class(spark, "org.apache.spark.sql.types.StructType").fromDDL(columns).json())
        )
    except ParseException as error:
        unknown = (error.getMessageParameters() or {}).get("typeName", "")
        problem = (
            f"Spark cannot read it as names and types of columns ({error_condition(error)}{unknown and f': {unknown}'})"
            ". Write them as in CREATE TABLE: id BIGINT, body STRING."
        )
        raise ConfigError("configuration", [Fault("input.columns", columns[:80], problem)]) from None


def load_files(
    spark: SparkSession, source: Source, columns: StructType | None = None, options: Mapping[str, str] = NO_OPTIONS
) -> DataFrame:
    """Load the source as Spark reads it; ``columns`` include :data:`CORRUPT_COLUMN` if rows are parsed."""
    reader = _reader(spark, source, columns, options)
    if source.path is None:
        return reader.load()
    try:
        return load_path(spark, reader, source.path)
    except AnalysisException as error:
        name = error_condition(error)
        if source.kind != "parquet" or not (name.startswith("PARQUET_TYPE") or name == "UNSUPPORTED_TIME_TYPE"):
            raise
    return load_path(spark, reader.schema(_readable_columns(spark, source)), source.path)


def _readable_columns(spark: SparkSession, source: Source) -> StructType:
    """Return a Parquet file's columns except times of a day or in nanoseconds, which Spark cannot read.

    Raises :class:`InputError` if the configuration names such a column.
    """
    files = Files(spark, source.path or "")
    below = sorted(name for name in files.list_files() if not is_hidden(name.rpartition("/")[2]))
    first = files.path if files.is_file(files.path) else files.below(below[0])
    session = spark._jsparkSession.sessionState()  # noqa: SLF001
    found = java_class(spark, f"{_PARQUET}.hadoop.util.HadoopInputFile").fromPath(first, session.newHadoopConf())
    footer = java_class(spark, f"{_PARQUET}.hadoop.ParquetFileReader").open(found)
    try:
        written = footer.getFileMetaData().getSchema().getFields()
    finally:
        footer.close()
    convert = java_class(spark, _CONVERTER)(session.conf()).convert
    fields, others = list[StructField](), dict[str, str]()
    for field in written:
        one = java_class(spark, "java.util.Collections").singletonList(field)
        message = java_class(spark, f"{_PARQUET}.schema.MessageType")("one", one)
        try:
            kind = json.loads(convert(message).json())
        except AnalysisException:
            kind = None
        if kind is None or '"time' in json.dumps(kind).replace('"timestamp', ""):
            others[str(field.getName())] = str(field.toString())
        else:
            fields.extend(StructType.fromJson(kind).fields)
    for setting in ("id", "text", "author", "language", "keep"):
        value = getattr(source, setting)
        for name in [value] if isinstance(value, str) else value or ():
            if (column := read_path(name)[0]) in others:
                raise InputError(
                    f"input.{setting} = {name}: is of the Parquet type {others[column]}, which Spark does not read. "
                    "Write the table with times in microseconds and times of a day as text, or do not name the column."
                )
    return StructType(fields)


def _mark_malformed(frame: DataFrame) -> DataFrame:
    """Replace Spark's column by ``__malformed``. A malformed row keeps only its directory's values."""
    sound = F.col(CORRUPT_COLUMN).isNull()
    partitions = partition_columns(frame)
    columns = [name for name in frame.columns if name != CORRUPT_COLUMN]
    values = [
        F.col(f"`{name}`") if name in partitions else F.when(sound, F.col(f"`{name}`")).alias(name) for name in columns
    ]
    return frame.select(*values, (~sound).alias(MALFORMED_COLUMN))


def partition_columns(table: DataFrame) -> set[str]:
    """Return the columns whose values are in directory names, which only Spark's plan shows."""
    return set(find_relation(table, "LogicalRelation").relation().partitionSchema().fieldNames())


def check_headers(spark: SparkSession, source: Source) -> None:
    """Check that the first lines of CSV files, which name the columns, are the same. Reads nothing else.

    Spark takes the names from one file and drops the first line of each. A file with other columns would put its text
    into a column that may be published, and one without a header would lose its first record.

    Raises :class:`InputError`, which quotes no line, and :class:`ConfigError` if ``input.columns`` has other names.
    """
    if not has_header(source):
        return
    frame = _infer_columns(spark, replace(source, columns=None))
    lines = {name: _first_line(spark, name, source) for name in frame.inputFiles()}
    first = next((line for line in lines.values() if line), None)
    for name, line in lines.items():
        if line and line != first:
            raise InputError(
                f"input.path = {source.path}: the first line of {name} is not that of the other files. The first line "
                "of each CSV file names its columns, all in the same order. Add or mend it, or read the file on its "
                'own. Where no file has such a line set options: {header: "false"}.'
            )
    if source.columns is None:
        return
    partitions = {name.lower() for name in partition_columns(frame)}
    named, chosen = (
        [name.lower() for name in columns if name.lower() not in partitions]
        for columns in (frame.columns, load_files(spark, source).columns)
    )
    if named != chosen:
        problem = (
            "has other names than the first line of the CSV files, or another order. Name all columns, in the order "
            "of the files."
        )
        raise ConfigError("configuration", [Fault("input.columns", source.columns[:80], problem)])


def _first_line(spark: SparkSession, name: str, source: Source) -> str:
    """Return the first line with content of a file, which may be compressed, or an empty string."""
    encoding = find_option(source, "encoding") or find_option(source, "charset") or "UTF-8"
    stream: Any = Files(spark, unquote(name)).open_text(encoding)
    try:
        characters = java_class(spark, "org.apache.commons.io.input.BoundedReader")(stream, _LONGEST_HEADER)
        lines = java_class(spark, "java.io.BufferedReader")(characters)
        while (line := lines.readLine()) is not None:
            if line.strip("\ufeff \t\r"):
                return str(line.strip("\ufeff\r"))
        return ""
    finally:
        stream.close()
