"""Input table by path or name, at one version if it has versions, limited to records that meet a condition."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.errors import ConfigError, EmptyInputError, Fault, InputError, did_you_mean
from wordveil.input.files import require_format
from wordveil.input.formats import FILE_FORMATS, NO_FEED, has_header
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.input.source import Source
from wordveil.records.schema import MALFORMED_COLUMN
from wordveil.release.layout import DELTA_LOG
from wordveil.spark.input.condition import check_condition, list_partitions
from wordveil.spark.input.listing import check_listing
from wordveil.spark.input.reading import OPENED_FORMATS, check_headers, find_columns, read_source
from wordveil.spark.input.scans import check_scans
from wordveil.spark.input.table_versions import (
    NO_VERSIONS,
    find_snapshot,
    find_version,
    refresh_table,
    require_hidden_texts,
    version_errors,
    wrong_version,
)
from wordveil.spark.platform.columns import check_columns, rename_columns
from wordveil.spark.platform.delta import (
    CHANGE_FEED,
    find_property,
    read_delta_files,
    read_delta_version,
    require_delta,
)
from wordveil.spark.platform.errors import error_condition, input_errors, job_errors, silence_query_logs
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.iceberg import find_iceberg_path
from wordveil.spark.platform.jvm import set_options
from wordveil.spark.platform.versions import file_path, parse_schema, try_cast

_LOGGER = logging.getLogger(__name__)
FILE_COLUMN = "__wordveil_file"
"""Column of :meth:`InputTable.read_with_files`."""
COMPARE_ONCE = (
    "Compare contents once with --set input.changes=scan; add --full-snapshot if the table holds the whole corpus. "
    "What was drawn is found again, and not charged."
)
_TABLE_NAMES = {"delta": "Delta", "iceberg": "Iceberg"}
_FORMAT_NAMES = {**_TABLE_NAMES, "parquet": "Parquet", "csv": "CSV", "json": "JSON", "orc": "ORC"}
# Delta's parser drops the parameters of a query that Spark binds while it parses. Those that the analyser binds stay.
_BIND_LATE = "spark.sql.legacy.parameterSubstitution.constantsOnly"


@dataclass(frozen=True)
class InputTable:
    """Opened input. Opening and reading check names, columns, version and condition, and read no data.

    ``latest_version``: the version that the settings choose, by default the latest when the table was opened; an
    Iceberg table's snapshot id. ``table_id``: the format's own identifier; a table that is deleted and created again
    has another. Both are None for tables without versions. ``is_delta``: the table has a change data feed. ``columns``:
    those of a format whose rows are parsed.
    """

    spark: SparkSession
    source: Source
    params: Mapping[str, str]
    latest_version: int | None = None
    table_id: str | None = None
    is_delta: bool = False
    columns: StructType | None = None
    partitions: frozenset[str] = frozenset()

    def over(self, where: str, params: Mapping[str, str]) -> InputTable:
        """Select other records of the table. Its changes are not read."""
        return replace(self, source=replace(self.source, where=where or None, changes="scan"), params=params)

    def read(self, version: int | None = None) -> DataFrame:
        """Read the records of ``version``, by default of :attr:`latest_version`, even if the table changes meanwhile.

        Raises :class:`InputError`, and :class:`ConfigError` for faults of columns, version or condition.
        """
        frame = self._load_version(version)
        self._check(frame)
        selected = self._filter(frame)
        with input_errors(self.source.setting, self.source.name):
            check_listing(selected, self.source.setting, self.source.name)
        return selected

    def changes(self, first: int, last: int) -> DataFrame:
        """Read the changes of versions ``first`` to ``last`` from Delta's change data feed.

        They have ``_change_type`` and ``_commit_version``. The condition applies to each row separately: if an update
        makes a record fail the condition, only the image before the update is returned. Raises as :meth:`read`, and
        :class:`InputError` if the feed was not on in all these versions.
        """
        if not self.is_delta:
            raise InputError(
                f"{self.source.setting} = {self.source.name}: only Delta tables have a change data feed. Set "
                "input.format: delta if this is one."
            )
        options = {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(last)}
        with input_errors(self.source.setting, self.source.name), _feed_errors(self.source, first, last):
            frame = self._load(options)
            frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - only planning makes Delta look for the feed
        self._check(frame)
        return self._filter(frame)

    def _check(self, frame: DataFrame) -> None:
        schema = frame.drop(MALFORMED_COLUMN).schema
        check_columns(schema, self.source, self._where, lists=self._lists, may_rename=True)

    @property
    def _where(self) -> str:
        return f"{self.source.setting} {self.source.name}"

    @property
    def _lists(self) -> bool:
        """True if messages may list columns. The first line of a CSV file may be a record after all."""
        return not has_header(self.source) or self.source.columns is not None

    def read_with_files(self, names: Collection[str] | None = None) -> DataFrame:
        """Read the records with their files in :data:`FILE_COLUMN`, opening only the files ``names`` if given.

        If a table has no files, as a view, the column is empty and ``names`` are ignored. Raises as :meth:`read`.
        """
        frame = self._load_version(None)
        self._check(frame)
        try:
            with silence_query_logs():
                located = frame.withColumn(FILE_COLUMN, file_path(frame))
        except AnalysisException:
            return self._filter(frame.withColumn(FILE_COLUMN, F.lit("")))
        return self._filter(located if names is None else self._read_files(frame, names))

    def _read_files(self, frame: DataFrame, names: Collection[str]) -> DataFrame:
        # Spark lists local files as file:///x and calls them file:/x in their metadata.
        both = {*names, *(re.sub("^file:/(?!/)", "file:///", name) for name in names)}
        if (snapshot := find_snapshot(frame)) is not None:
            with suppress(Py4JError):  # another version of Delta also opens the other files, and the filter drops them
                opened = read_delta_files(self.spark, snapshot.deltaLog(), int(snapshot.version()), names)
                frame = adapt_columns(opened, self.source, self._where, lists=self._lists)
        path = file_path(frame)
        return frame.where(path.isin(*both)).withColumn(FILE_COLUMN, path)

    def _load_version(self, version: int | None) -> DataFrame:
        chosen = self.latest_version if version is None else version
        if self.table_id is None:
            with input_errors(self.source.setting, self.source.name):
                return self._load({})
        at = replace(self.source, version=chosen, timestamp=None)
        with input_errors(self.source.setting, self.source.name), version_errors(at):
            frame = self._load({"versionAsOf": str(chosen)})
            found = find_version(frame, at)
        if found is None or found.number != chosen:
            raise InputError(
                f"{self.source.setting} = {self.source.name}: Spark does not read it at version {chosen}, so that two "
                "readings may differ. Name the table by the other of input.table and input.path."
            )
        return frame

    def _load(self, options: Mapping[str, str]) -> DataFrame:
        table = self.source.table
        if table is not None:
            frame = self._load_table(table, options)
            check_scans(frame, "input.table", table)
        else:
            frame = read_source(self.spark, self.source, self.columns, options)
            if self.source.kind not in OPENED_FORMATS:
                check_scans(frame, "input.format", self.source.reader)
        return adapt_columns(frame, self.source, self._where, lists=self._lists)

    def _load_table(self, name: str, options: Mapping[str, str]) -> DataFrame:
        try:
            return self.spark.read.options(**options).table(name)
        except AnalysisException as error:
            # Some catalogues, such as Unity Catalog's, pass names on to Delta's but no versions, and answer like this.
            if "versionAsOf" not in options or error_condition(error) != "TABLE_OR_VIEW_NOT_FOUND":
                raise
            if (snapshot := find_snapshot(self.spark.read.table(name))) is None:
                raise
            return read_delta_version(self.spark, snapshot.deltaLog(), int(options["versionAsOf"]))

    def _filter(self, frame: DataFrame) -> DataFrame:
        if self.source.where is None:
            return frame
        with _condition_errors(self.source.where, frame.columns):
            # Parsed alone, so that it can only be one expression: no parenthesis, LIMIT or UNION ends it.
            self.spark._jsparkSession.sessionState().sqlParser().parseExpression(self.source.where)  # noqa: SLF001
            selected = _apply_condition(self.spark, frame, self.source.where, self.params)
            plan = selected._jdf.queryExecution().analyzed().child()  # noqa: SLF001 - PySpark has no way to ask
            check_condition(self.spark, plan, self.source, self.partitions)
        return selected


def open_input(spark: SparkSession, source: Source, params: Mapping[str, str] = NO_PARAMS) -> InputTable:
    """Open the input. ``params``: the values of the condition's parameters.

    Raises :class:`InputError` if it cannot be opened, :class:`ConfigError` for faults of version or parameters, and
    :class:`PlatformError` if the table needs Delta and the session lacks it.
    """
    check_params(source.where, params)
    if source.needs_delta:
        require_delta(spark)
    if source.path is not None:
        _check_path(spark, source)
    chosen = {"versionAsOf": source.version, "timestampAsOf": source.timestamp}
    options = {name: str(value) for name, value in chosen.items() if value is not None}
    with input_errors(source.setting, source.name, _kind(source)), version_errors(source):
        check_headers(spark, source)
        table = InputTable(spark, source, params, columns=find_columns(spark, source))
        frame = table._load({})  # noqa: SLF001
        refresh_table(frame)
        partitions = (source.rename.get(name, name) for name in list_partitions(frame))
        table = replace(table, partitions=frozenset(partitions))
        version = find_version(table._load(options) if options else frame, source)  # noqa: SLF001
    shown = "without versions" if version is None else f"version {version.number}"
    _LOGGER.debug("opened input %s (%s), %s", source.name, source.kind, shown)
    if version is not None:
        require_hidden_texts(frame, source.known_texts, source.setting, source.name)
        if source.changes == "feed" and not version.is_delta:
            raise ConfigError("configuration", [Fault("input.changes", source.changes, NO_FEED)])
        return replace(table, latest_version=version.number, table_id=version.table_id, is_delta=version.is_delta)
    if options:  # Spark 3.5 ignores them for some tables
        raise wrong_version(source, NO_VERSIONS)
    if name := _TABLE_NAMES.get(source.kind):
        raise InputError(
            f"{source.setting} = {source.name}: {name} did not return the table's version. Use a classic session with "
            f"{name}."
        )
    return table


def require_records(table: InputTable) -> None:
    """Raise :class:`EmptyInputError` if the input, or the slice that its condition selects, has no record."""
    with job_errors("nothing was drawn"):
        is_empty = table.read().isEmpty()
    if is_empty:
        where = f" with {table.source.where}" if table.source.where else ""
        raise EmptyInputError(f"input {table.source.name}: has no record{where}. Nothing was done.")


def is_delta_path(spark: SparkSession, path: str) -> bool:
    """Return whether ``path`` is a Delta table, or has one above its last partitions such as ``ds=1``."""
    while True:
        files = Files(spark, path)
        if files.exists(files.below(DELTA_LOG)):
            return True
        parent, _, name = path.rstrip("/").rpartition("/")
        if "=" not in name:
            return False
        path = parent


def has_change_feed(table: DataFrame) -> bool:
    """Return whether ``table`` reads a Delta table whose change data feed is on."""
    snapshot = find_snapshot(table)
    return snapshot is not None and find_property(snapshot, CHANGE_FEED) == "true"


def _check_path(spark: SparkSession, source: Source) -> None:
    path = source.path or ""
    if source.kind not in FILE_FORMATS:
        return
    with input_errors("input.path", path):
        if not Files(spark, path).exists():
            raise InputError(f"input.path = {path}: there is no such file or directory. Check the path.")
        if source.kind != "delta" and is_delta_path(spark, path):
            problem = (
                f"is a Delta table. Read as {_FORMAT_NAMES.get(source.kind, source.reader)}, it would include "
                "deleted and replaced records. Set input.format: delta."
            )
            raise ConfigError("configuration", [Fault("input.path", path, problem)])
        if source.kind != "iceberg" and (table := find_iceberg_path(spark, path)):
            problem = (
                "is in an Iceberg table, whose data files include deleted and replaced records. Name the table: "
                f"input.table, or input.format: iceberg and input.path: {table}."
            )
            raise ConfigError("configuration", [Fault("input.path", path, problem)])
    require_format(path, source.kind)


def _kind(source: Source) -> str:
    if source.table is not None:
        return "table"
    return f"{_FORMAT_NAMES[source.kind]} table" if source.kind in _FORMAT_NAMES else source.reader


@contextmanager
def _feed_errors(source: Source, first: int, last: int) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        condition = error_condition(error)
        if condition.startswith("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
            raise InputError(
                f"{source.setting} = {source.name}: Delta does not read its change data feed from version {first} to "
                f"{last}, between which columns were renamed or dropped. {COMPARE_ONCE}"
            ) from None
        if condition != "DELTA_MISSING_CHANGE_DATA":
            raise
        name = source.table or f"delta.`{source.path}`"
        raise InputError(
            f"{source.setting} = {source.name}: its change data feed ({CHANGE_FEED}) was off in some of the versions "
            f"{first} to {last}. Switch it on with ALTER TABLE {name} SET TBLPROPERTIES ({CHANGE_FEED} = true). It "
            f"holds changes from then on. {COMPARE_ONCE}"
        ) from None


def adapt_columns(frame: DataFrame, source: Source, where: str, *, lists: bool = True) -> DataFrame:
    """Give the columns of a table, ``where`` in messages, the names and types that the settings know.

    ``lists``, and errors: as of :func:`rename_columns`.
    """
    if source.rename:
        frame = frame.toDF(*rename_columns(frame.columns, source.rename, where, lists=lists))
    # A column that is missing is named by the check of all columns.
    for name, kind in source.cast.items():
        if name in frame.columns and frame.schema[name].dataType.simpleString() != kind:
            frame = frame.withColumn(name, try_cast(name, parse_schema(f"x {kind}")["x"].dataType))
    return frame


def _apply_condition(spark: SparkSession, frame: DataFrame, where: str, params: Mapping[str, str]) -> DataFrame:
    view = f"wordveil_{secrets.token_hex(8)}"
    frame.createTempView(view)
    kept = f" OR {MALFORMED_COLUMN}" if MALFORMED_COLUMN in frame.columns else ""
    try:
        with set_options(spark, {_BIND_LATE: "true"}):
            return spark.sql(f"SELECT * FROM {view} AS input WHERE (\n{where}\n){kept}", args=dict(params))  # noqa: S608 - values are parameters
    finally:
        spark.catalog.dropTempView(view)


@contextmanager
def _condition_errors(where: str, columns: list[str]) -> Iterator[None]:
    """Turn Spark's error about the condition into a fault of it, without its parameters."""
    try:
        with silence_query_logs():
            yield
    except (PySparkException, Py4JError) as error:
        name = error_condition(error)
        if name.startswith("UNRESOLVED_COLUMN"):
            match = re.search(r"with name (`[^,\n]*?`) cannot be resolved", str(error))
            column = match[1].strip("`") if match else ""
            problem = f"names the column {column}, which the table does not have.{did_you_mean(column, columns)}"
        elif name.startswith("PARSE"):
            problem = "is not one condition in Spark SQL. Write a single boolean expression."
        elif name.endswith("FILTER_NOT_BOOLEAN"):
            problem = "is not a condition, because its value is not true or false. Compare it with a value."
        else:
            problem = f"Spark cannot use it as a condition ({name}). Check it in a query of the table."
        raise ConfigError("configuration", [Fault("input.where", where[:80], problem)]) from None
