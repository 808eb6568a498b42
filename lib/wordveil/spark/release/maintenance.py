"""Maintenance of a release: purge withdrawn records, compact files and delete old ones, show what still exists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from wordveil.config.schema import ReleaseHome
from wordveil.crypto.keys import MasterKey
from wordveil.errors import ReleaseError, usage_error
from wordveil.records.schema import RELEASED, WITHDRAWN
from wordveil.release.events import FROZEN, PUBLISHED, PURGED, VACUUMED, describe_records, describe_release
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import set_options
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.latest import count_statuses, filter_by_ids, latest_state
from wordveil.spark.release.shuffled import find_unfinished, find_waiting
from wordveil.spark.release.tables import Release, open_release
from wordveil.spark.sanitise.run_log import new_run_id

DEFAULT_RETAIN_HOURS = 168
FILE_BYTES = 128 * 2**20
"""Largest size of a file that compaction makes."""


def purge(home: ReleaseHome, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore) -> int:
    """Delete the draws of withdrawn records from the newest version of the draws, and return their number.

    Their text stays in old files until those are vacuumed, and in the public table until the next publication.
    """
    with open_release(home, session, progress, outcome="the draws are unchanged") as release:
        release.journal.require_no_open_runs()
        progress("purging")
        withdrawn = _withdrawn_ids(release).persist()
        try:
            rows = delete_draws(release, withdrawn, f"status <> '{WITHDRAWN}'")
        finally:
            withdrawn.unpersist()
    return rows


def delete_draws(release: Release, ids: DataFrame, condition: str) -> int:
    """Delete draws that meet ``condition`` of the records in ``ids`` (``__id``), and return their number."""
    draws, name = release.draws, release.home.id
    rows = filter_by_ids(draws.read().where(condition), name, ids).count()
    if rows:
        draws.delete(ids, name, condition)
        version = draws.version()
        release.journal.add(PURGED, "", lambda _: {"rows": rows, "draws_version": version})
    return rows


def _withdrawn_ids(release: Release) -> DataFrame:
    return latest_state(release.draws.read(), release.home.id).where(f"status = '{WITHDRAWN}'").select("__id")


def compact(
    home: ReleaseHome,
    session: Callable[[], SparkSession],
    *,
    retain_hours: int = DEFAULT_RETAIN_HOURS,
    progress: Callable[[str], None] = ignore,
) -> dict[str, dict[str, int]]:
    """Merge small files of draws, journal and ledger, and delete files that no recent version of any table needs.

    Files of the last ``retain_hours`` stay. The public table's are not merged: its manifest names them. Returns, for
    each table, files and bytes before and after, data files of old versions included.
    """
    with open_release(home, session, progress, outcome="no row was changed") as release:
        release.journal.require_no_open_runs()
        require_vacuum(release, retain_hours)
        merged = (release.draws, release.journal_table, release.ledger.table)
        return compact_tables(release, (*merged, release.public), retain_hours, progress, merged=merged)


def require_vacuum(release: Release, retain_hours: int) -> None:
    """Raise :class:`ConfigError` if files younger than a week are to be deleted, which another writer may need."""
    if retain_hours < DEFAULT_RETAIN_HOURS and not release.is_exclusive and release.home.output.writers != "one":
        raise usage_error(
            "--retain-hours",
            str(retain_hours),
            f"deletes files that are younger than {DEFAULT_RETAIN_HOURS} hours, and nothing keeps other writers "
            f"away from {release.path}: a run that is writing could lose its files. If one process at a time "
            f"writes to the release and its ledger, say so with output.writers: one. Otherwise use "
            f"{DEFAULT_RETAIN_HOURS}.",
        )


def compact_tables(
    release: Release,
    tables: Sequence[DeltaTable],
    retain_hours: int,
    progress: Callable[[str], None],
    *,
    merged: Collection[DeltaTable] = (),
) -> dict[str, dict[str, int]]:
    """Merge small files of the ``merged`` tables and delete old files of all ``tables``, as :func:`compact` does."""
    done = {}
    parallelism = 4 * release.spark.sparkContext.defaultParallelism
    options = {  # which Delta reads only from the session
        "spark.databricks.delta.optimize.maxFileSize": str(FILE_BYTES),
        "spark.databricks.delta.optimize.minFileSize": str(FILE_BYTES),
        # Nobody else writes meanwhile, so no file of an unfinished transaction is mistaken for an old one.
        "spark.databricks.delta.retentionDurationCheck.enabled": str(retain_hours >= DEFAULT_RETAIN_HOURS).lower(),
        # Delta lists a table's files by this many tasks; by default ten thousand, whatever the table's size.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(parallelism),
    }
    with set_options(release.spark, options):
        for table in tables:
            if not table.exists():
                continue
            progress(f"compacting the {table.kind}")
            before = _files_on_disk(table).values()
            table.compact(retain_hours, rewrite=table in merged)
            after = _files_on_disk(table).values()
            counts = {"files_before": len(before), "bytes_before": sum(before)}
            done[table.kind] = {**counts, "files": len(after), "bytes": sum(after)}
    release.journal.add(VACUUMED, "", lambda _: {"retain_hours": retain_hours})
    return done


def reset(
    home: ReleaseHome, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore
) -> list[str]:
    """Give up the lost tables of a release, so that the next run may make new ones; return their identifiers.

    Spent budget stays spent, and records whose withdrawal was requested stay out. Raises :class:`ReleaseError` if the
    tables exist, or if the ledger has no entry of the release.
    """
    with open_release(home, session, progress, outcome="nothing was given up") as release:
        ledger = release.ledger
        if release.journal_table.exists() or release.draws.exists():
            raise ReleaseError(
                f"release {release.name}: some or all of its tables are at {release.path}. This command gives up lost "
                "tables. If you do not need what is left of them, move it away first. Nothing was done."
            )
        if not (known := ledger.tables_of(home.name)):
            raise ReleaseError(
                f"release {home.name}: the ledger {ledger.table.path} lists no tables of it that could be given "
                "up. Check the release's name and ledger.path. Nothing was done."
            )
        ledger.reset(home.name, new_run_id(), known)
    return known


def freeze(
    home: ReleaseHome, key: MasterKey, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore
) -> str:
    """Freeze a release whose key is about to be destroyed, and return the time since when it is frozen (UTC).

    Nothing is drawn, gated or published afterwards; freezing again does nothing. Raises :class:`ReleaseError` for a
    release without runs, with an open one, or with another key.
    """
    with open_release(home, session, progress, outcome="nothing was destroyed") as release:
        journal = release.journal
        journal.require_no_open_runs()
        journal.check_key(key)
        frozen = journal.latest(FROZEN) or journal.add(FROZEN, "", lambda _: {"key": key.fingerprint})
        assert frozen is not None
    return frozen.at


def show(
    home: ReleaseHome, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore
) -> dict[str, Any]:
    """Describe the state of a release: its runs, its records, its publication, and withdrawn text that still exists.

    For most releases :func:`wordveil.assembly.local_state.read_local_state` does so without Spark.
    """
    with open_release(home, session, progress, outcome="nothing was changed", is_locked=False) as release:
        facts = describe_release(home.name, release.path, home.output.writers, release.journal)
        if release.draws.exists():
            facts |= _count_records(release)
    return facts


def _count_records(release: Release) -> dict[str, Any]:
    counts = count_statuses(release.draws.read(), release.home.id)
    withdrawn, _ = counts.get(WITHDRAWN, (0, 0))
    in_public = 0
    if release.public.exists() and release.home.output.shuffle:
        in_public = count_lost_rows(release)
    elif withdrawn and release.public.exists():
        in_public = filter_by_ids(release.public.read(), release.home.id, _withdrawn_ids(release)).count()
    old = {table.kind: count_old_files(table) for table in (release.draws, release.public) if table.exists()}
    return describe_records(release.draws.version(), counts, in_public, old)


def count_lost_rows(release: Release) -> int:
    """Count the rows of a shuffled table whose records were withdrawn since."""
    # Rows have no ids. Those of records that were not withdrawn are still among the draws.
    last, unfinished = release.journal.latest(PUBLISHED), find_unfinished(release)
    until = unfinished[0].until if unfinished else last.body["seq"] if last else 0
    version = release.draws.version()
    standing = release.newest_rows(version).where(f"status = '{RELEASED}'").count()
    return release.public.read().count() - (standing - find_waiting(release, version, until).count())


def count_old_files(table: DeltaTable) -> int:
    """Count the data files on the disk that the table's newest version does not need."""
    root = str(Files(table.spark, table.path).path.toUri().getPath()).rstrip("/") + "/"
    return len(_files_on_disk(table).keys() - {unquote(name).split(root, 1)[1] for name in table.read().inputFiles()})


def _files_on_disk(table: DeltaTable) -> dict[str, int]:
    """List the data files under the table, of any version, with their bytes."""
    return {
        name: size
        for name, size in Files(table.spark, table.path).list_files().items()
        if name.endswith(".parquet") and "_delta_log/" not in name
    }
