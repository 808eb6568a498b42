"""The main job: a corpus in, one table of sanitised and quarantined records out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wordveil.artifacts.bundle import Bundle
from wordveil.config.artifacts import find_ngrams, ready_bundle
from wordveil.config.load import Config
from wordveil.config.parameters import check_params
from wordveil.crypto.keys import load_key
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.records.schema import OUTPUT_FIELDS, REASON_COLUMN, STATISTIC_FIELDS, STATISTICS, TEXT_COLUMN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import NO_PARAMS, read_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import draft_output
from wordveil.spark.platform.progress import TaskProgress, watch_tasks
from wordveil.spark.platform.session import require_classic
from wordveil.spark.sanitise.counts import aggregates, report_counts
from wordveil.spark.sanitise.distribution import distribute, distribute_model
from wordveil.spark.sanitise.layout import arrange_rows
from wordveil.spark.sanitise.report import RunReport
from wordveil.spark.sanitise.run_log import new_run_id
from wordveil.spark.sanitise.worker import Sanitise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def _silent(*_: object) -> None:
    """Report nothing."""


def run_sanitise(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    overwrite: bool = False,
    run_id: str | None = None,
    progress: Callable[[str], None] = _silent,
    tasks: TaskProgress = _silent,
) -> RunReport:
    """Sanitise the corpus of ``config`` and write the output table, whole or not at all.

    ``session`` is called once everything that needs no Spark is found in order. ``params``: those of ``input.where``.
    Raises a :class:`WordveilError` that says what is wrong; the output is then as it was before.
    """
    check_params(config.input.where, params)
    master = load_key(config.key.file, config.key.env)
    bundle = ready_bundle(config, BuildContext(progress, tasks))
    ngrams = find_ngrams(config)
    run_id = run_id or new_run_id()
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    draft = draft_output(spark, config.output.path, run_id, overwrite=overwrite)
    table = read_input(spark, config, params)
    settings = RecordSettings(config.release, run_id, config.policy, tuple(config.input.keep), config.shown)
    place, identity = distribute(spark.sparkContext, bundle, config.spark.bundle)
    model = distribute_model(spark.sparkContext, ngrams, config.spark.bundle)
    keys = master.for_release(config.release)
    job = Sanitise(settings, keys, place, identity, model)
    started = time.perf_counter()
    try:
        with job_errors(), watch_tasks(spark.sparkContext, run_id, tasks):
            progress("looking for duplicate ids")
            records = screen_input(table, config.input)
            rows = sanitise_records(records, job)
            if config.output.order == "hashed":
                progress("counting records")
                names = {"kept": config.input.keep, "partition_by": config.output.partition_by}
                rows = arrange_rows(rows, keys.layout_seed, table.count(), config.input.id, **names)
            progress("sanitising")
            counts = _write(rows, draft.path, config)
            draft.publish(overwrite=overwrite)
    except BaseException:
        draft.discard()
        raise
    finally:
        identity.unpersist()
    notes = (*bundle.manifest["notes"], *map(_leftover_note, draft.files.list_drafts()))
    return _report(
        config,
        bundle,
        settings,
        counts,
        time.perf_counter() - started,
        str(draft.files.path),
        master.fingerprint,
        notes,
    )


def _leftover_note(path: str) -> str:
    if path.endswith(".replaced"):
        return f"{path} is a table that an interrupted --overwrite put aside; delete it once it is not needed"
    return f"{path} is a draft of a run; if none is writing it, an interrupted one left it and it can be deleted"


def sanitise_records(records: DataFrame, job: Sanitise) -> DataFrame:
    """The sanitised records of a prepared table, with the statistics columns."""

    def wordveil_sanitise(batches: Any) -> Any:
        return job(batches)

    # PySpark looks its input columns up by unquoted names, so that a dot in one fails: they go in and out by number.
    passed = records.columns[:-2]
    numbered = records.toDF(*(f"__{place}" for place in range(len(passed))), TEXT_COLUMN, REASON_COLUMN)
    result = numbered.mapInArrow(wordveil_sanitise, _output_schema(numbered))
    return result.toDF(*passed, *result.columns[len(passed) :])


def _output_schema(records: DataFrame) -> StructType:
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    added = from_arrow_schema(pa.schema([*OUTPUT_FIELDS, *STATISTIC_FIELDS]))
    return StructType([*records.schema.fields[:-2], *added.fields])


def _write(result: DataFrame, path: str, config: Config) -> dict[str, Any]:
    """Write the table and return the run's counts, observed in the same pass."""
    from pyspark.sql import Observation

    observation = Observation()
    rows = result.observe(observation, *aggregates())
    writer = rows.drop(*STATISTICS).write.mode("error")
    if config.output.partition_by:
        writer = writer.partitionBy(*config.output.partition_by)
    if config.output.records_per_file:
        writer = writer.option("maxRecordsPerFile", config.output.records_per_file)
    writer.parquet(path)
    return report_counts(observation.get)


def _report(
    config: Config,
    bundle: Bundle,
    settings: RecordSettings,
    counts: dict[str, Any],
    seconds: float,
    output: str,
    key_fingerprint: str,
    notes: tuple[str, ...],
) -> RunReport:
    terms = release_terms(settings, bundle)

    return RunReport(
        run_id=settings.run_id,
        release=config.release,
        output=output,
        relation=str(terms.relation),
        metric=terms.guarantee.metric.identifier,
        nominal_epsilon=terms.guarantee.nominal_epsilon,
        epsilon=terms.guarantee.epsilon,
        exposes=terms.exposes,
        mechanism_fingerprint=bundle.fingerprint,
        policy_fingerprint=config.policy.fingerprint,
        key_fingerprint=key_fingerprint,
        seconds=seconds,
        notes=notes,
        **counts,
    )
