"""Release that follows a stream: each micro-batch lands in the release's input, and becomes one nightly run.

A batch may begin again after a crash. Its rows land once, by the number that Delta keeps of the stream; its run has the
batch's name, and a run that has ended is not repeated. So a replayed batch draws and charges nothing.

That number also includes the batch's end: a checkpoint, source or landing table that was restored from an older copy
gives other rows under the numbers of batches that have landed, and is refused before a row lands.
"""

from __future__ import annotations

import gc
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from wordveil.assembly.jobs import load_release_job
from wordveil.config.load import Config
from wordveil.config.schema import StreamSection
from wordveil.errors import ConfigError, Fault, ReleaseError
from wordveil.neighbours.blocks import BuildContext
from wordveil.release.layout import DELTA_LOG
from wordveil.spark.input.source import adapt_columns
from wordveil.spark.input.table_versions import find_snapshot, require_hidden_texts
from wordveil.spark.platform.columns import check_columns, column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import input_errors, job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.locks import hold_lock
from wordveil.spark.platform.progress import TaskProgress, ignore
from wordveil.spark.release.maintenance import compact
from wordveil.spark.release.night import Night, run_night

_STREAM = "stream "
_PLACES = 2**32
"""Delta's number of a batch is the batch's own number times this, plus a digest of its end."""
_INTERVAL = 0.25
_COMPACT_AFTER = 50
"""Number of batches after which files are merged. Without that, a hundred batches double the time of each."""


def run_stream(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    every: str | None = None,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
    done: Callable[[Night], None] = ignore,
) -> None:
    """Append the new rows of ``stream`` to the release's input, with a nightly run for each micro-batch.

    ``every``: an interval of Spark's, such as ``5 minutes``, at which batches are taken until the process is stopped;
    None takes the available rows and ends. ``done`` is called after each batch; an error in it stops the stream, and
    the batch begins again with the next call. Raises :class:`ConfigError` without a section ``stream`` or if the source
    lacks the release's columns, :class:`InputError` for a source that cannot be read, and the errors of
    :func:`run_night`.
    """
    stream, landing = config.stream, config.input.path
    if stream is None or landing is None:
        raise ConfigError("configuration", [Fault("stream", "", "is required. Name the source and stream.checkpoint.")])
    # Faults of bundle, key and budgets stop the stream before a row lands.
    load_release_job(config, BuildContext(progress, tasks))
    spark = session()
    source = adapt_columns(_read_source(spark, stream), config.source, "the stream's source")
    check_columns(source.schema, config.source, "the stream's source")
    setting = "stream.table" if stream.table else "stream.path"
    require_hidden_texts(_read_table(spark, stream), config.source.known_texts, setting, stream.name)
    batches = _Batches(
        id=config.source.id,
        checkpoint=_Checkpoint(spark, stream),
        landing=DeltaTable(spark, landing, "input"),
        night=partial(run_night, config, lambda: spark, progress=progress, tasks=tasks),
        compact=partial(compact, config.home, lambda: spark, progress=progress),
        progress=progress,
        done=done,
    )
    with job_errors(f"the batch begins again with the next start from {stream.checkpoint}"):
        batches.create(source)
        batches.check()
        writer = source.writeStream.option("checkpointLocation", stream.checkpoint).foreachBatch(batches.process)
        writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
        query = _run_query(writer)
        if batches.failure is not None:
            raise batches.failure
        query.awaitTermination()  # raises any other error that ended it


def _run_query(writer: DataStreamWriter) -> StreamingQuery:
    query = writer.start()
    try:
        # Waiting in Java would occupy the connection, and a signal could not stop the query.
        while query.isActive:
            time.sleep(_INTERVAL)
    finally:
        query.stop()  # once its batch has ended
    return query


def _read_source(spark: SparkSession, stream: StreamSection) -> DataFrame:
    reader = spark.readStream.format("delta")
    if stream.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", stream.max_files)
    with input_errors("stream", stream.name, "stream of a Delta table"):
        return reader.table(stream.name) if stream.table else reader.load(stream.name)


def _read_table(spark: SparkSession, stream: StreamSection) -> DataFrame:
    reader = spark.read.format("delta")
    return reader.table(stream.name) if stream.table else reader.load(stream.name)


@dataclass(frozen=True)
class _Checkpoint:
    """Spark's files in the directory ``stream.checkpoint`` of a query."""

    spark: SparkSession
    stream: StreamSection

    def read(self, name: str) -> str | None:
        """Read a file's text, or None if there is no file."""
        files = Files(self.spark, f"{self.stream.checkpoint}/{name}")
        return files.read() if files.exists() else None

    def find_end(self, number: int) -> int | None:
        """Return a digest of a batch's end in its source: the offsets and the last commit that it has read.

        Return None if Delta has deleted that commit since, as it does after some weeks.
        """
        offsets = (self.read(f"offsets/{number}") or "").splitlines()[2:]  # after the format and the batch's settings
        commit = self._read_commit(json.loads(offsets[0]))
        if commit is None:
            return None
        return int.from_bytes(hashlib.sha256("\n".join([*offsets, commit]).encode()).digest()[:4])

    def _read_commit(self, offset: dict[str, int]) -> str | None:
        """Read the last commit of a Delta table that lies wholly or in part before an offset.

        Return an empty string if the table does not have it yet, None if the table has deleted it.
        """
        version = offset["reservoirVersion"] - (offset["index"] < 0)
        if (snapshot := find_snapshot(_read_table(self.spark, self.stream))) is None:
            return ""
        commit = Files(self.spark, f"{snapshot.deltaLog().dataPath().toString()}/{DELTA_LOG}/{version:020d}.json")
        if commit.exists():
            return commit.read()
        return "" if snapshot.version() < version else None


@dataclass(kw_only=True)
class _Batches:
    """Processing of one query's batches.

    ``id``: the id column. ``night``: does the nightly run of a ``run_id``. ``compact``: merges the release's files.
    ``failure``: the error of the last batch.
    """

    id: str
    checkpoint: _Checkpoint
    landing: DeltaTable
    night: Callable[..., Night]
    compact: Callable[[], object]
    progress: Callable[[str], None]
    done: Callable[[Night], None]
    failure: Exception | None = field(default=None, init=False)
    others: bool | None = field(default=None, init=False)
    """True if the landing table has rows of another query; None before the first batch."""

    def create(self, source: DataFrame) -> None:
        """Create the landing table if there is none, with its change data feed on."""
        if not self.landing.exists():
            with hold_lock(self.landing.spark, self.landing.path):
                empty = source.sparkSession.createDataFrame([], source.schema)
                writer = empty.write.format("delta").option("delta.enableChangeDataFeed", "true")
                # Otherwise the least and greatest texts of its files would be in the log, and in Spark's scratch.
                writer.option("delta.dataSkippingStatsColumns", f"`{self.id}`").save(self.landing.path)

    def check(self) -> None:
        """Raise :class:`ReleaseError` unless the query continues after, or repeats, the batch that landed last."""
        if (query := self.checkpoint.read("metadata")) is None:  # it has not begun
            return
        landed = self.landing.number(f"{_STREAM}{json.loads(query)['id']}")
        last, end = (-1, 0) if landed is None else divmod(landed, _PLACES)
        is_begun = self.checkpoint.read(f"offsets/{last}") is not None
        is_same = last < 0 or (is_begun and self.checkpoint.find_end(last) in (end, None))
        if is_same and self.checkpoint.read(f"commits/{last + 1}") is None and not self.landing.is_restored():
            return
        raise ReleaseError(
            f"stream.checkpoint = {self.checkpoint.stream.checkpoint}: does not go on where the last batch of its "
            f"query landed in {self.landing.path}. The checkpoint, the source or that table was put back from another "
            "time, and rows would be lost or land twice. Nothing was done. Delete the checkpoint: the stream then "
            "begins at the beginning of its source, and rows that have landed are left out."
        )

    def process(self, rows: DataFrame, number: int) -> None:
        """Land a batch and do its nightly run. An empty batch, such as the first of an empty table, has none."""
        query = str(rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        try:
            self.progress(f"batch {number}: taking its rows")
            self._land(rows, query, number)
            if rows.isEmpty():
                return
            run_id = f"stream-{query.replace('-', '')[:16]}-{number}"
            self.done(self.night(run_id=run_id))
            if (number + 1) % _COMPACT_AFTER == 0:
                self.compact()
            gc.collect()  # Python's proxies keep the plans of a night in Java's memory until then
            self.progress("looking for new rows")
        except Exception as error:  # noqa: BLE001 - Spark logs errors that it gets, and their messages may quote a record
            self.failure = error
            raise RuntimeError("the batch failed") from None

    def _land(self, rows: DataFrame, query: str, number: int) -> None:
        """Append a batch once. Rows that another query appended are left out: a lost checkpoint brings them again."""
        table, key = self.landing, f"{_STREAM}{query}"
        landed = table.read()
        wanted = rows.select(*map(column, landed.columns))
        if self.others is None:
            self.others = any(other.startswith(_STREAM) and other != key for other in table.idempotency_keys())
        if self.others:
            # Salted, and of fixed length: neither texts nor values to check a guess against are shuffled.
            whole = F.sha2(F.concat(F.lit(secrets.token_hex(16)), F.to_json(F.struct("*"))), 256)
            known = landed.select(whole.alias("__row"))
            wanted = wanted.withColumn("__row", whole).join(known, "__row", "left_anti").drop("__row")
        end = self.checkpoint.find_end(number) or 0
        table.append(wanted, step="land", idempotency_key=key, number=number * _PLACES + end)
