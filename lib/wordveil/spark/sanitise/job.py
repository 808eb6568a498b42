"""Main job: a corpus in, one table of sanitised and quarantined records out."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from wordveil.assembly.bundles import describe_symbols
from wordveil.assembly.jobs import find_table_terms, load_materials
from wordveil.assembly.run_report import RunReport, make_report
from wordveil.config.load import Config
from wordveil.config.schema import OutputSection, ShuffleSection
from wordveil.crypto.keys import KEY_BYTES, MasterKey
from wordveil.errors import InputError
from wordveil.input.columns import Columns
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.table import TablePrivacy, TableTerms
from wordveil.records.sanitiser import RecordSettings
from wordveil.records.schema import (
    REASON_COLUMN,
    RELEASED,
    STATISTIC_FIELDS,
    STATISTICS,
    SYMBOLS_FILE,
    is_internal,
)
from wordveil.spark.input.listing import describe_hidden
from wordveil.spark.input.reading import require_doubled_quotes
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import open_input, require_records
from wordveil.spark.platform.columns import as_read, column
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files, require_free_paths
from wordveil.spark.platform.output import draft_output, list_drafts
from wordveil.spark.platform.progress import TaskProgress, ignore, watch_tasks
from wordveil.spark.platform.session import require_classic
from wordveil.spark.sanitise.counts import aggregates, report_counts
from wordveil.spark.sanitise.distribution import distribute_job
from wordveil.spark.sanitise.layout import arrange_rows, check_directories
from wordveil.spark.sanitise.run_log import new_run_id
from wordveil.spark.sanitise.worker import Sanitise

INTERNAL_NOTE = (
    "the output is internal: it has content tags, and ids of quarantined records with their reasons. Pass on what "
    "output.public_only: true writes"
)
# No empty file _SUCCESS: the directory gets its name when it is complete, and some readers fail on other files.
_WRITE_OPTIONS = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}


def run_sanitise(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    overwrite: bool = False,
    skip_empty: bool = False,
    run_id: str | None = None,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> RunReport:
    """Sanitise the corpus of ``config`` and write the output table atomically.

    ``session`` is called once all checks without Spark have passed. ``params``: those of ``input.where``. Raises
    :class:`WordveilError`; the output is then unchanged. With ``skip_empty`` this is an :class:`EmptyInputError` if the
    input, or its slice, has no record.
    """
    check_params(config.source.where, params)
    settings = config.record_settings(run_id or new_run_id())
    materials = load_materials(config, BuildContext(progress, tasks))
    shuffled = find_table_terms(config.output.shuffle, settings, materials.bundle)
    if shuffled:
        # With one key, two tables of nearly the same records would differ in the rows of the others alone.
        materials = replace(materials, key=MasterKey(secrets.token_bytes(KEY_BYTES)))
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    require_free_paths(spark, config.output, config.ledger)
    draft = draft_output(spark, config.output.path, settings.run_id, overwrite=overwrite)
    source = open_input(spark, config.source, params)
    if skip_empty:
        require_records(source)
    table = source.read()
    with job_errors():
        if source.source.kind == "csv" and source.source.table is None:
            progress("checking quotes")
            require_doubled_quotes(spark, source.source, source.columns)
        hidden = describe_hidden(table)
    started = time.perf_counter()
    privacy: TablePrivacy | None = None
    try:
        job = distribute_job(spark, materials, settings)
        with job_errors(), watch_tasks(spark.sparkContext, settings.run_id, tasks):
            check_directories(table, config.output.partition_by)
            if shuffled:
                progress("counting groups")
                require_rows(count_groups(table, config.source.keep), shuffled)
            counts = write_sanitised(table, draft.path, job, config.source, config.output, progress)
            if shuffled:
                # As Spark would guess the types of directories' values, "01" and "1" would be one group.
                kept = StructType([table.schema[name] for name in config.source.keep])
                written = (spark.read.schema(kept) if kept else spark.read).parquet(draft.path)
                privacy = require_rows(count_groups(written, config.source.keep), shuffled)
            if settings.columns.symbols:
                described = json.dumps(describe_symbols(materials.bundle), indent=1, ensure_ascii=False)
                Files(spark, f"{draft.path}/{SYMBOLS_FILE}").write(described)
            draft.publish(overwrite=overwrite)
    except BaseException:
        draft.discard()
        raise
    notes = (*hidden, *map(_leftover_note, list_drafts(draft.files)))
    if not config.output.public_only:
        notes = (*notes, INTERNAL_NOTE)
    return make_report(
        settings,
        materials.bundle,
        materials.key.fingerprint,
        counts,
        output=str(draft.files.path),
        seconds=time.perf_counter() - started,
        notes=notes,
        input_version=source.latest_version,
        table=asdict(privacy) if privacy else None,
    )


def write_sanitised(
    table: DataFrame,
    path: str,
    job: Sanitise,
    columns: Columns,
    output: OutputSection,
    progress: Callable[[str], None] = ignore,
) -> dict[str, Any]:
    """Sanitise ``table``, write the result as Parquet to the new directory ``path``, and return the run's counts.

    ``output``: the order of rows, the columns that name directories, the rows of a file, and whether only publishable
    columns are written; its ``path`` is not used. Errors of Spark and of workers pass through.
    """
    progress("looking for duplicate ids")
    rows = sanitise_records(screen_input(table, columns), job)
    if output.order == "hashed":
        progress("counting records")
        seed, by = None if output.shuffle else job.keys.layout_seed, output.partition_by
        rows = arrange_rows(rows, seed, columns.id, kept=columns.kept_names, partition_by=by, counted=table)
    progress("sanitising")
    return _write(rows.drop(columns.id) if output.shuffle else rows, path, output)


def _leftover_note(path: str) -> str:
    if path.endswith(".replaced"):
        return f"{path} is a table that an interrupted --overwrite moved aside. Delete it when you no longer need it"
    return f"{path} is the draft of a run. If no run is writing it, an interrupted run left it: delete it"


def sanitise_records(records: DataFrame, job: Sanitise) -> DataFrame:
    """Sanitise a screened table, with the statistics columns."""

    def wordveil_sanitise(batches: Any) -> Any:
        return job(batches)

    added = pa.schema([*job.settings.columns.output_fields, *STATISTIC_FIELDS])
    return map_records(records, wordveil_sanitise, job.settings, added)


def map_records(
    records: DataFrame, function: Callable[[Any], Any], settings: RecordSettings, added: pa.Schema
) -> DataFrame:
    """Map the batches of a screened table by ``function``, whose ``added`` columns replace texts and reason."""
    # PySpark looks up input columns by unquoted names and fails on a dot in one, so they go in and out by number.
    unpassed = (*settings.columns.inputs, REASON_COLUMN)
    passed = records.columns[: -len(unpassed)]
    numbered = records.toDF(*(f"__{number}" for number in range(len(passed))), *unpassed)
    fields = numbered.schema.fields[: len(passed)]
    for place in settings.pseudonym_places:
        fields[place] = StructField(fields[place].name, StringType())
    result = numbered.mapInArrow(function, StructType([*fields, *from_arrow_schema(added).fields]))
    return result.toDF(*passed, *result.columns[len(passed) :])


def count_groups(rows: DataFrame, kept: Sequence[str]) -> tuple[int, int, int]:
    """Count the rows of the smallest group of ``kept`` columns as readers see them, the groups, and all rows."""
    values = [as_read(column(name), rows.schema[name].dataType) for name in kept]
    groups = rows.groupBy(*(value.alias(f"__{place}") for place, value in enumerate(values))).count()
    counted = groups.agg(F.min("count"), F.count(F.lit(1)), F.coalesce(F.sum("count"), F.lit(0))).first()
    assert counted is not None
    smallest, number, total = counted
    return smallest or 0, number, total


def require_rows(counted: tuple[int, int, int], terms: TableTerms) -> TablePrivacy:
    """Return what a shuffled table is, from what :func:`count_groups` counted.

    Raises :class:`InputError` if a group is too small for the promise, or delta not below one over the number of rows.
    """
    smallest, groups, total = counted
    if terms.delta * total >= 1:
        raise InputError(
            f"output.shuffle.delta = {terms.delta:g}: is not below 1 over {total:,} rows, and a table that shows one "
            "whole record would have that delta. Set a smaller one, such as 1e-8."
        )
    if not terms.holds_for(smallest):
        least = terms.find_least_rows()
        needed = f"{least:,} rows" if least else "more rows than any table has"
        raise InputError(
            f"output.shuffle.epsilon = {terms.epsilon:g}: the smallest of {groups:,} groups of equal kept columns has "
            f"{smallest:,} rows, and the promise needs {needed} in each at delta {terms.delta:g}. Merge groups in a "
            "view of the input, keep fewer columns, wait for more records, or set a larger epsilon."
        )
    return terms.measure(smallest, groups, total)


def add_promise(rows: DataFrame, shuffle: ShuffleSection) -> DataFrame:
    """Add ``table_epsilon`` and ``table_delta`` to the column ``privacy``."""
    privacy = F.col("privacy").withField("table_epsilon", F.lit(shuffle.epsilon))
    return rows.withColumn("privacy", privacy.withField("table_delta", F.lit(shuffle.delta)))


def _write(result: DataFrame, path: str, output: OutputSection) -> dict[str, Any]:
    observation = Observation()
    rows = result.observe(observation, *aggregates())
    if output.public_only:
        # All rows were arranged, so the ends of files follow from ids alone.
        public = [column(name) for name in rows.columns if not is_internal(name)]
        rows = rows.where(F.col("status") == RELEASED).select(public)
    if output.shuffle:
        rows = add_promise(rows, output.shuffle)
    writer = rows.drop(*STATISTICS).write.mode("error").options(**_WRITE_OPTIONS)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    if output.records_per_file:
        writer = writer.option("maxRecordsPerFile", output.records_per_file)
    writer.parquet(path)
    return report_counts(observation.get)
