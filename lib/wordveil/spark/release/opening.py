"""Opening of a release for a command: its session, its tables and, unless the command only reads, its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame, Row, SparkSession

from wordveil.config.load import Config
from wordveil.records.columns import TextColumns
from wordveil.spark.platform.delta import require_exclusive_commits
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.free_paths import require_free_paths
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import NewestRows, count_newest
from wordveil.spark.release.tables import ReleaseTables


@dataclass(frozen=True)
class OpenRelease:
    """Release that a command works on, in a classic session that has Delta.

    ``name``: its id column. ``is_exclusive``: whether no other process can work on it until it is closed.
    """

    spark: SparkSession
    tables: ReleaseTables
    name: str
    is_exclusive: bool
    _newest: dict[int, NewestRows] = field(default_factory=dict, init=False)
    _counted: dict[int, Row] = field(default_factory=dict, init=False)

    @cached_property
    def journal(self) -> Journal:
        """Events of the release, read at the first use. Raises as :meth:`ReleaseTables.journal`."""
        return self.tables.journal()

    def newest_rows(self, version: int) -> DataFrame:
        """Find the newest draw of each record at a version of the draws, once."""
        if version not in self._newest:
            draws = self.tables.draws.read(version)
            self._newest[version] = NewestRows.find(draws, self.name, self.journal)
        return self._newest[version].rows

    def count_rows(self, version: int, texts: TextColumns) -> Row:
        """Count by :func:`count_newest` at a version of the draws, once for gate and publication of one nightly run."""
        if version not in self._counted:
            self._counted[version] = count_newest(self.newest_rows(version), texts)
        return self._counted[version]

    def close(self) -> None:
        """Let the session forget the frames kept for the block."""
        for found in self._newest.values():
            found.close()


@contextmanager
def open_release(
    config: Config,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None] = ignore,
    *,
    outcome: str,
    waiting_for: str = "a run",
    is_locked: bool = True,
) -> Iterator[OpenRelease]:
    """Open the release of ``config``, and close it after the ``with`` block.

    ``config``: a configuration with ``output.format: delta``. ``session``: starts the Spark session, or returns the
    running one. ``progress``: called with what begins, and with what is waited for. ``outcome``: what holds when a
    Spark job of the block fails; it completes the sentence "the Spark job failed and". ``waiting_for``: what holds the
    lock as a rule. ``is_locked``: whether other runs, gates and publications of the release wait until it is closed.

    Raises
    ------
    PlatformError
        If the session cannot be used.
    ConfigError
        If a table would be created inside another release or a Delta table, or is where several writers overwrite each
        other's commits.
    SparkJobError
        In place of Spark's own errors in the block.
    """
    if SparkSession.getActiveSession() is None:
        progress("starting Spark")
    spark = session()
    require_classic(spark)
    require_free_paths(spark, config.output, config.ledger)
    assert config.ledger is not None
    if is_locked:
        places = {"output.path": config.output.path, "ledger.path": config.ledger.path}
        places |= {"output.public": config.output.public} if config.output.public else {}
        require_exclusive_commits(spark, places, is_only_writer=config.output.writers == "one")
    tables = ReleaseTables(spark, config.release, config.output, config.ledger.path)
    lock = tables.locked(lambda: progress(f"waiting for {waiting_for} of this release")) if is_locked else None
    with (
        job_errors(outcome),
        lock or nullcontext(enter_result=False) as is_exclusive,
        closing(OpenRelease(spark, tables, config.source.id, is_exclusive)) as release,
    ):
        yield release
