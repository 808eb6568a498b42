"""A release that follows a stream: each micro-batch lands in the release's input, and becomes one of its nights.

A batch may begin again after a crash. Its rows land once, by the number that Delta keeps of the stream; its run has the
batch's name, and a run that has ended is not repeated. So a replayed batch draws and charges nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from wordveil.config.load import Config
from wordveil.config.schema import StreamSection
from wordveil.errors import ConfigError, Fault
from wordveil.spark.input.topic import is_cut_off, read_topic
from wordveil.spark.platform.columns import check_columns, column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import input_errors, job_errors
from wordveil.spark.platform.locks import hold_lock
from wordveil.spark.platform.progress import TaskProgress, ignore
from wordveil.spark.release.maintenance import compact
from wordveil.spark.release.night import Night, run_night
from wordveil.spark.sanitise.materials import load_materials

_STREAM = "stream "
_INTERVAL = 0.25
_COMPACT_AFTER = 50
"""Batches after which the files that they left are merged. A hundred batches double the time that one takes."""


def run_stream(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    every: str | None = None,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
    done: Callable[[Night], None] = ignore,
) -> None:
    """Take the new rows of ``stream`` into the release's input, and run a night for each micro-batch.

    ``every``: an interval of Spark's, such as ``5 minutes``, at which batches are taken until the process is stopped;
    None takes what there is and ends. ``done`` is called after each batch; what it raises stops the stream, and the
    batch begins again with the next call.

    Raises :class:`ConfigError` without a section ``stream`` or where the source lacks the release's columns,
    :class:`InputError` for a source that cannot be read, and what a night raises.
    """
    stream, landing = config.stream, config.input.path
    if stream is None or landing is None:
        raise ConfigError("configuration", [Fault("stream", "", "is required. Name the source and stream.checkpoint.")])
    load_materials(config, progress, tasks)  # what is wrong with bundle and key is said before a row lands
    spark = session()
    source = _read_source(spark, stream)
    check_columns(source.schema, config.source, "the stream's source")
    batches = _Batches(config, DeltaTable(spark, landing, "input"), progress, tasks, done)
    with job_errors(f"the batch begins again with the next start from {stream.checkpoint}"):
        batches.create(source)
        writer = source.writeStream.option("checkpointLocation", stream.checkpoint).foreachBatch(batches.process)
        writer = writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)
        while is_cut_off(query := _run_query(writer)) and batches.failure is None:
            pass
        if batches.failure is not None:
            raise batches.failure
        query.awaitTermination()  # raises what else has ended it


def _run_query(writer: DataStreamWriter) -> StreamingQuery:
    query = writer.start()
    try:
        # Not by waiting in Java: a signal would find the connection taken, and the query could not be stopped.
        while query.isActive:
            time.sleep(_INTERVAL)
    finally:
        query.stop()  # once its batch has ended
    return query


def _read_source(spark: SparkSession, stream: StreamSection) -> DataFrame:
    if stream.topic is not None:
        return read_topic(spark, stream)
    reader = spark.readStream.format("delta")
    if stream.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", stream.max_files)
    with input_errors("stream", stream.name, "stream of a Delta table"):
        return reader.table(stream.name) if stream.table else reader.load(stream.name)


@dataclass
class _Batches:
    """What becomes of the batches of one query. ``failure``: what the last one raised."""

    config: Config
    landing: DeltaTable
    progress: Callable[[str], None]
    tasks: TaskProgress
    done: Callable[[Night], None]
    failure: Exception | None = field(default=None, init=False)
    others: bool | None = field(default=None, init=False)
    """Whether the landing table has rows of another query, which is asked once."""

    def create(self, source: DataFrame) -> None:
        """Make the landing table where there is none, with its change data feed on."""
        if not self.landing.exists():
            with hold_lock(self.landing.spark, self.landing.path):
                empty = source.sparkSession.createDataFrame([], source.schema)
                empty.write.format("delta").option("delta.enableChangeDataFeed", "true").save(self.landing.path)

    def process(self, rows: DataFrame, number: int) -> None:
        """Land a batch and run its night. The first batch of a table without rows has none."""
        if rows.isEmpty():
            return
        spark = self.landing.spark
        query = str(rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        try:
            self.progress(f"batch {number}: taking its rows")
            self._land(rows, query, number)
            run_id = f"stream-{query.replace('-', '')[:16]}-{number}"
            self.done(run_night(self.config, lambda: spark, run_id=run_id, progress=self.progress, tasks=self.tasks))
            if (number + 1) % _COMPACT_AFTER == 0:
                compact(self.config, lambda: spark, progress=self.progress)
            gc.collect()  # Python's proxies keep the plans of a night in Java's memory until then
            self.progress("looking for new rows")
        except Exception as error:  # noqa: BLE001 - Spark logs what it gets, and messages of errors may quote a record
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
            whole = F.to_json(F.struct("*"))
            known = landed.select(whole.alias("__row"))
            wanted = wanted.withColumn("__row", whole).join(known, "__row", "left_anti").drop("__row")
        table.append(wanted, step="land", idempotency_key=key, number=number)
