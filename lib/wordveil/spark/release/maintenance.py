"""Keeping a release's tables: purging what was withdrawn, compacting files, removing old ones, and telling what is
still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from wordveil.config.load import Config
from wordveil.crypto.keys import load_key
from wordveil.errors import ReleaseError
from wordveil.records.schema import RELEASED, WITHDRAWN
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.gate import require_no_open_runs
from wordveil.spark.release.journal import FROZEN, GATE, PUBLISHED, PURGED, VACUUMED
from wordveil.spark.release.latest import latest_state
from wordveil.spark.release.publish import check_key
from wordveil.spark.release.tables import SEQ_COLUMN, ReleaseTables
from wordveil.spark.sanitise.run_log import new_run_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_RETAIN_HOURS = 168
FILE_BYTES = 128 * 2**20
"""Compaction makes no larger files."""


def purge(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = lambda _: None
) -> int:
    """Delete the draws of withdrawn records from the newest version of the draws; returns how many rows that were.

    Their text stays in old files until they are vacuumed, and in the public table until the next publication.
    """
    from pyspark.sql import functions as F  # noqa: N812

    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with home.held(lambda: progress("waiting for a run of this release")), job_errors("the draws are as they were"):
        journal = require_no_open_runs(home)
        progress("purging")
        withdrawn = (
            latest_state(home.draws.read(), config.input.id).where(f"status = '{WITHDRAWN}'").select("__id").persist()
        )
        try:
            gone = (F.col("status") != WITHDRAWN) & column(config.input.id).isNotNull()
            rows = (
                home.draws.read()
                .where(gone)
                .join(withdrawn, column(config.input.id) == F.col("__id"), "left_semi")
                .count()
            )
            if rows:
                home.draws.delete(withdrawn, config.input.id, f"status <> '{WITHDRAWN}'")
                version = home.draws.version()
                journal.add(PURGED, "", lambda _: {"rows": rows, "draws_version": version})
        finally:
            withdrawn.unpersist()
    return rows


def compact(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    retain_hours: int = DEFAULT_RETAIN_HOURS,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, dict[str, int]]:
    """Write small files together and delete files that no version of the last ``retain_hours`` needs, of draws, public
    table and ledger.

    The public table's files are those that its manifest names, so that they stay as they are until the next
    publication. Returns, for each table, files and bytes before and after, data files of old versions included.
    """
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    done = {}
    with home.held(lambda: progress("waiting for a run of this release")), job_errors("no row was changed"):
        journal = require_no_open_runs(home)
        with _settings(spark, retain_hours):
            for store in (home.draws, home.public, home.ledger.store):
                if not store.exists():
                    continue
                progress(f"compacting the {store.kind}")
                before = _on_disk(store)
                store.compact(retain_hours, rewrite=store is not home.public)
                after = _on_disk(store)
                done[store.kind] = {
                    "files_before": len(before),
                    "bytes_before": sum(before.values()),
                    "files": len(after),
                    "bytes": sum(after.values()),
                }
        journal.add(VACUUMED, "", lambda _: {"retain_hours": retain_hours})
    return done


def reset(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Give up the tables of a release that are gone, so that a first run may make new ones. Returns Delta's identifiers
    of what was given up.

    What was spent stays charged, and records that somebody asked to be withdrawn stay out. Raises :class:`ReleaseError`
    where the tables are there, or the ledger does not know the release.
    """
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with home.held(lambda: progress("waiting for a run of this release")), job_errors("nothing was given up"):
        if home.has_tables():
            raise ReleaseError(
                f"release {config.release}: its tables, or a part of them, are at {home.path}. This command gives up tables that are lost. "
                "If what is left is of no use, move it away first. Nothing was done."
            )
        known = home.ledger.tables_of(config.release)
        if not known:
            raise ReleaseError(
                f"release {config.release}: the ledger {home.ledger.store.path} knows no tables of it that could be given up. Nothing was done."
            )
        home.ledger.reset(config.release, new_run_id(), known)
    return known


def freeze(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = lambda _: None
) -> str:
    """Mark a release as one whose key is destroyed; returns since when (UTC). Nothing is drawn, gated or published
    afterwards.

    A second time it does nothing. Raises :class:`ReleaseError` for a release without runs, with an open one, or with
    another key.
    """
    key = load_key(config.key.file, config.key.env)
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with home.held(lambda: progress("waiting for a run of this release")), job_errors("nothing was destroyed"):
        journal = require_no_open_runs(home)
        check_key(journal, key, config.release)
        frozen = journal.latest(FROZEN) or journal.add(FROZEN, "", lambda _: {"key": key.fingerprint})
        assert frozen is not None
    return frozen.at


def show(config: Config, session: Callable[[], SparkSession]) -> dict[str, Any]:
    """Where a release stands: its runs, its records, what was published, and withdrawn text that is still there."""
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with job_errors("nothing was changed"):
        journal = home.journal()
        states = journal.states()
        facts: dict[str, Any] = {
            "release": config.release,
            "path": home.path,
            "runs": [
                {
                    "run_id": intent.run_id,
                    "seq": intent.seq,
                    "kind": intent.kind,
                    "input_version": intent.version,
                    "epoch": intent.epoch,
                    "state": states[intent.run_id],
                }
                for intent in journal.intents()
            ],
            "open_runs": [intent.run_id for intent in journal.open_intents()],
            "frozen": (event := journal.latest(FROZEN)) and event.at,
            "gate": (event := journal.latest(GATE)) and {"at": event.at, **event.body},
            "published": (event := journal.latest(PUBLISHED)) and {"at": event.at, **event.body},
        }
        if home.draws.exists():
            facts |= _records(home, config)
    return facts


def _records(home: ReleaseTables, config: Config) -> dict[str, Any]:
    from pyspark.sql import functions as F  # noqa: N812

    name = config.input.id
    state = latest_state(home.draws.read(), name).persist()
    try:
        counts = {str(row.status): int(row["count"]) for row in state.groupBy("status").count().collect()}
        withdrawn = state.where(f"status = '{WITHDRAWN}'").select("__id")
        rows = home.draws.read().where((F.col("status") == RELEASED) & (F.col(SEQ_COLUMN) >= 0))
        waiting = (
            rows.join(withdrawn, column(name) == F.col("__id"), "left_semi").select(column(name)).distinct().count()
        )
        public = 0
        if home.public.exists():
            public = home.public.read().join(withdrawn, column(name) == F.col("__id"), "left_semi").count()
    finally:
        state.unpersist()
    old = {
        store.kind: len(set(_on_disk(store)) - _live(store)) for store in (home.draws, home.public) if store.exists()
    }
    return {
        "draws_version": home.draws.version(),
        "records": counts,
        "withdrawn": {
            "records": counts.get(WITHDRAWN, 0),
            "in_draws": waiting,
            "in_public_table": public,
            "files_of_old_versions": old,
            "gone": not (waiting or public or any(old.values())),
        },
    }


@contextmanager
def _settings(spark: SparkSession, retain_hours: int) -> Iterator[None]:
    """What Delta takes from the session alone, set for a while."""
    wanted = {
        "spark.databricks.delta.optimize.maxFileSize": str(FILE_BYTES),
        "spark.databricks.delta.optimize.minFileSize": str(FILE_BYTES),
        # Nobody writes to a release while it is held, so that no file of a transaction under way can be taken for an
        # old one.
        "spark.databricks.delta.retentionDurationCheck.enabled": str(retain_hours >= DEFAULT_RETAIN_HOURS).lower(),
    }
    # Delta lists a table's files by so many tasks: ten thousand, unless told otherwise, whatever the table's size.
    wanted["spark.sql.sources.parallelPartitionDiscovery.parallelism"] = str(4 * spark.sparkContext.defaultParallelism)
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _on_disk(store: DeltaTable) -> dict[str, int]:
    """Data files under the table, whether a version needs them or not, with their bytes."""
    return {
        name: size
        for name, size in Files(store.spark, store.path).list_files().items()
        if name.endswith(".parquet") and "_delta_log/" not in name
    }


def _live(store: DeltaTable) -> set[str]:
    root = str(Files(store.spark, store.path).path.toUri().getPath()).rstrip("/") + "/"
    return {unquote(name).split(root, 1)[1] for name in store.read().inputFiles()}
