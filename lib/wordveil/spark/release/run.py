"""Commands that run a release: update it from its input, withdraw records, give up a run.

A run records its intent, then reserves, draws and settles, each exactly once, even if processes crash in between.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.jobs import ReleaseJob, load_release_job
from wordveil.assembly.run_report import NOTHING, RunReport, make_report
from wordveil.config.load import Config
from wordveil.config.schema import ReleaseHome
from wordveil.errors import ReleaseError, WordveilError
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.fixed_settings import list_settings
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.release.events import ABANDONED, FINISHED, INTENT, REFUSED, SHUFFLED, Intent, RunTerms
from wordveil.spark.input.source import COMPARE_ONCE, InputTable, open_input, require_records
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import TaskProgress, ignore, watch_tasks
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.ledger import RecordLimitError, Terms
from wordveil.spark.release.steps import RunSteps
from wordveil.spark.release.tables import Release, open_release
from wordveil.spark.sanitise.distribution import distribute_job
from wordveil.spark.sanitise.run_log import new_run_id

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReleaseRunner:
    """Runner of one open release. ``progress`` gets each step that begins, and ``tasks`` the finished tasks."""

    release: Release
    job: ReleaseJob
    params: Mapping[str, str]
    progress: Callable[[str], None]
    tasks: TaskProgress

    def run(self, run_id: str | None, *, full_snapshot: bool, skip_empty: bool = False) -> RunReport:
        """Run as :func:`run_release` describes."""

        def begin() -> RunReport | None:
            table = open_input(self.release.spark, self.job.source, self.params)
            if table.latest_version is None:
                raise ReleaseError(
                    f"input {self.job.source.name}: is neither a Delta nor an Iceberg table. A release reads one of "
                    "these, so that a run that was interrupted can read the same version again. Name one, or write "
                    "Parquet."
                )
            intent = self._make_intent(table, run_id or new_run_id(), full_snapshot=full_snapshot)
            last = self._journal.last_of(intent.slice)
            if skip_empty and last is None and not full_snapshot:  # else records may have left the slice
                require_records(table)
            if last is not None and not full_snapshot and last.reads_as(intent):
                return self._report(replace(intent, changes="none"), NOTHING, 0.0)
            rows = table.read(intent.version)
            if intent.changes == "feed":  # a run that has begun could not be finished without it
                table.changes(*intent.feed_range)
            hidden = {pseudonym.name: F.lit("") for pseudonym in self.job.source.pseudonyms}
            self.release.create(rows.withColumns(hidden), self.job.source.kept_names, self.job.settings.columns)
            return self._begin(intent, table)

        return self._repeat(run_id, begin)

    def withdraw(self, run_id: str | None, find_ids: Callable[[], list[str]]) -> RunReport:
        """Withdraw, as :func:`withdraw` describes, the ids of the release that ``find_ids`` lists."""
        chosen = run_id or new_run_id()

        def begin() -> RunReport | None:
            if not self._journal.intents():
                raise ReleaseError(
                    f"release {self.release.name}: has no runs, so there is nothing to withdraw. Check release and "
                    "output.path."
                )
            # The ledger is first, and has the ids alone: the journal keeps what it is told.
            known = pa.table({"record_id": pa.array(find_ids(), pa.string())})
            name = Terms.naming(self.release.name, self.release.draws.identifier(), chosen)
            self.release.ledger.withdraw(name, from_arrow(self.release.spark, known))
            return self._begin(Intent(chosen, 0, "withdraw", self._terms()), None)

        return self._repeat(run_id, begin)

    def _repeat(self, run_id: str | None, begin: Callable[[], RunReport | None]) -> RunReport:
        """Finish interrupted runs, then begin this one unless it was among them. Repeat if the journal has grown."""
        while True:
            self.finish_interrupted()
            if run_id is not None and (done := self._journal.finished(run_id)) is not None:
                return RunReport.from_dict(done)
            if (report := begin()) is not None:
                return report

    def finish_interrupted(self) -> None:
        """Finish interrupted runs. Raises :class:`ReleaseError` if the journal does not allow another run."""
        self._journal.refresh()
        self._journal.require_live()
        if self._journal.intents():
            self._journal.check_key(self.job.materials.key)
            self._journal.require_same_terms(self._terms())
        for intent in self._journal.open_intents():
            if self._is_superseded(intent):
                self.progress(f"giving up the interrupted run {intent.run_id}, which has reserved nothing")
                self._refuse(intent, 0)
                continue
            self.progress(f"finishing the interrupted run {intent.run_id} with the settings that it started with")
            self._execute(intent, self._reopen_input(intent) if intent.kind == "sanitise" else None)

    def _is_superseded(self, intent: Intent) -> bool:
        """Return whether an open run waits for a feed that is gone, has reserved nothing, and another one compares.

        The configuration then does not read the feed. As long as that can be read, its deletions are, too.
        """
        if intent.changes != "feed" or self.job.source.changes == "feed":
            return False
        run = Terms.naming(self.release.name, self.release.draws.identifier(), intent.run_id)
        if self.release.ledger.has_reserved(run) or self.release.has_drawn(intent):
            return False
        try:
            with job_errors("the feed is gone"):
                feed = self._reopen_input(intent).changes(*intent.feed_range)
                feed.agg(F.count(column(self.job.source.id))).collect()  # opens every file
        except WordveilError:
            return True
        return False

    def _begin(self, intent: Intent, table: InputTable | None) -> RunReport | None:
        """Begin a run. Return None if another process has added to the journal since the run was decided."""
        known = len(self._journal.events)
        event = self._journal.add(
            INTENT,
            intent.run_id,
            lambda seq: replace(intent, seq=seq).to_dict(),
            unless=lambda events: len(events) != known,
        )
        if event is None:
            _LOGGER.debug("run %s: another process has added to the journal; deciding again", intent.run_id)
            return None
        plan = (intent.run_id, intent.kind, intent.changes, intent.version)
        _LOGGER.debug("run %s: %s, changes %s, input version %s", *plan)
        return self._execute(replace(intent, seq=event.seq), table, is_fresh=self.release.is_exclusive)

    def _execute(self, intent: Intent, table: InputTable | None, *, is_fresh: bool = False) -> RunReport:
        started = time.perf_counter()
        spark, settings = self.release.spark, self._settings_of(intent)
        lost = "; if its change data feed is gone, with --set input.changes=scan;" if intent.changes == "feed" else ","
        give_up = f"or give it up with `wordveil release abandon {intent.run_id}`"
        outcome = f"run {intent.run_id} is open (start it again{lost} {give_up})"
        steps = RunSteps(
            release=self.release,
            intent=intent,
            table=table,
            job=distribute_job(spark, self.job.materials, replace(settings, internal=2), intent.terms.epoch),
            terms=release_terms(settings, self.job.materials.bundle),
            columns=replace(self.job.source, max_bytes=intent.max_bytes) if table else self.job.source,
            progress=self.progress,
            is_fresh=is_fresh,
        )
        try:
            with job_errors(outcome), watch_tasks(spark.sparkContext, intent.run_id, self.tasks):
                if exceeding := steps.reserve():
                    self._refuse(intent, exceeding)
                    raise ReleaseError(
                        f"budgets: {exceeding:,} records would exceed a limit and on_exceeded is fail. Nothing was "
                        "drawn or charged. Raise the limit, leave records out with input.where, or set "
                        "on_exceeded: quarantine."
                    )
                steps.draw()
                steps.settle()
                report = self._report(intent, steps.counts(), time.perf_counter() - started)
                self._journal.add(
                    FINISHED,
                    intent.run_id,
                    lambda _: report.to_dict(),
                    unless=lambda events: any(e.event == FINISHED and e.run_id == intent.run_id for e in events),
                )
        except RecordLimitError as error:
            self._refuse(intent, error.over)
            raise
        finally:
            steps.close()
        return report

    def _refuse(self, intent: Intent, over: int) -> None:
        """Record that a run was refused, so that it is not open. ``over``: the number of records over the budget."""
        self._journal.add(REFUSED, intent.run_id, lambda _: {"over": over})

    @property
    def _journal(self) -> Journal:
        return self.release.journal

    def _reopen_input(self, intent: Intent) -> InputTable:
        hint = (
            "Finish the run with its own configuration, or give it up, which charges it in full: "
            f"`wordveil release abandon {intent.run_id}`"
        )
        if self.job.source.name != intent.source:
            raise ReleaseError(
                f"run {intent.run_id} was interrupted while it read {intent.source}, and the configuration names "
                f"{self.job.source.name}. {hint}"
            )
        named = replace(self.job.source, rename=intent.renamed, cast=intent.cast)
        pinned = replace(named, where=intent.where or None, version=intent.version, timestamp=None)
        table = open_input(self.release.spark, pinned, intent.params)
        if table.table_id != intent.source_id:
            raise ReleaseError(
                f"run {intent.run_id} was interrupted while it read {intent.source}, and that table has since been "
                f"replaced by another. {hint}"
            )
        return table

    def _settings_of(self, intent: Intent) -> RecordSettings:
        """Return the settings of a run's beginning, which its rows state."""
        return replace(self.job.settings, run_id=intent.run_id, shown=intent.terms.shown)

    def _terms(self) -> RunTerms:
        source, settings, key = self.job.source, self.job.settings, self.job.materials.key
        text = source.texts[0] if len(source.texts) == 1 else source.texts
        kept = [*source.keep, *map(str, source.pseudonyms)]
        columns = {"id": source.id, "text": text, "author": source.author, "keep": kept}
        if source.language is not None:  # releases that were begun before this setting have no entry
            columns["language"] = source.language
        symbols = settings.columns.symbols and settings.policy.draws_words
        fixed = {
            "release": self.release.name,
            "mechanism_fingerprint": self.job.materials.bundle.fingerprint,
            "policy_fingerprint": settings.policy_fingerprint,
            "key_fingerprint": key.fingerprint,
            "columns": json.dumps(columns),
            "ledger": self.release.ledger.table.path,
            **({"rows": SHUFFLED} if self.job.home.output.shuffle else {}),
            **({"output.symbols": "true"} if symbols else {}),
            # Only weights that the private corpus trained have a limit.
            **({} if settings.max_records is None else {"max_records": str(settings.max_records)}),
        }
        listed = list_settings(settings.policy, self.job.materials.bundle, settings.columns)
        return RunTerms(fixed, key.epoch, key.epoch_fingerprints, settings.shown, listed)

    def _make_intent(self, table: InputTable, run_id: str, *, full_snapshot: bool) -> Intent:
        source, budget, runs = self.job.source, self.job.budget, self._journal.intents()
        if full_snapshot and source.where:
            raise ReleaseError(
                "--full-snapshot: input.where selects a part of the input, and a record outside that part has not left "
                "the corpus. Remove --full-snapshot or input.where."
            )
        intent = Intent(
            run_id=run_id,
            seq=0,
            kind="sanitise",
            terms=self._terms(),
            source=source.name,
            source_id=table.table_id or "",
            version=-1 if table.latest_version is None else table.latest_version,
            where=source.where or "",
            params=dict(self.params),
            renamed=dict(source.rename),
            cast=dict(source.cast),
            full_snapshot=full_snapshot,
            budgets=asdict(budget) if budget else None,
            max_bytes=source.max_bytes,
            anew=runs[0].anew if runs else self.release.ledger.knows(self.release.name),
        )
        last = self._journal.last_of(intent.slice)
        if last is None or source.changes != "feed" or full_snapshot:
            changes = "scan" if any(run.kind == "sanitise" for run in runs) else "all"
            return replace(intent, changes=changes, null_id_count=self._journal.null_id_count(intent.slice))
        require_feed(last, intent)
        return replace(intent, changes="feed", since=last.version, retried=not last.refuses_as(intent))

    def _report(self, intent: Intent, counts: Mapping[str, Any], seconds: float) -> RunReport:
        reads_input = intent.kind == "sanitise"
        return make_report(
            self._settings_of(intent),
            self.job.materials.bundle,
            self.job.materials.key.fingerprint,
            counts,
            output=self.release.path,
            seconds=seconds,
            changes=intent.changes if reads_input else intent.kind,
            input_version=intent.version if reads_input else None,
        )


def require_feed(last: Intent, intent: Intent) -> None:
    """Raise :class:`ReleaseError` if the input's change feed does not lead from the ``last`` run to this one."""
    if last.source_id != intent.source_id:
        raise ReleaseError(
            f"input {intent.source}: is not the table that the release has read so far, so its change feed does not "
            f"say what changed since. {COMPARE_ONCE}"
        )
    if intent.version < last.version:
        raise ReleaseError(
            f"input {intent.source}: is at version {intent.version}, and the release has read version {last.version}. "
            f"A change feed cannot be read backwards. {COMPARE_ONCE}"
        )


def run_release(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    run_id: str | None = None,
    full_snapshot: bool = False,
    skip_empty: bool = False,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> RunReport:
    """Update a release from its input: draw new and changed records, withdraw missing ones, charge the ledger.

    Interrupted runs are finished first, with the settings that they started with. A ``run_id`` that has finished
    reports its results and does nothing; one that was interrupted is finished, and nothing else is done. If another run
    of the same release is active on this machine, this one waits for it.

    Raises a :class:`WordveilError`: a :class:`ReleaseError` if the release, its key, its ledger or a budget does not
    allow the run, and with ``skip_empty`` an :class:`EmptyInputError` if the input, or its slice, has no record.
    Whatever happens, another call can finish a run that has begun.
    """
    check_params(config.source.where, params)
    job = load_release_job(config, BuildContext(progress, tasks))
    with open_runner(job, session, params, progress, tasks) as runner:
        return runner.run(run_id, full_snapshot=full_snapshot, skip_empty=skip_empty)


def withdraw(
    config: Config,
    session: Callable[[], SparkSession],
    ids: list[str],
    *,
    run_id: str | None = None,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> RunReport:
    """Withdraw records permanently. The next publication removes their public text, and a purge their draws.

    Raises as :func:`run_release` does, and :class:`ReleaseError` for ids that the release does not hold.
    """
    job = load_release_job(config, BuildContext(progress, tasks))
    with open_runner(job, session, NO_PARAMS, progress, tasks) as runner:
        return runner.withdraw(run_id, lambda: runner.release.find_known_ids(ids))


def abandon(home: ReleaseHome, session: Callable[[], SparkSession], run_id: str) -> None:
    """Give up an interrupted run. Its reserved budget is spent; its rows are discarded.

    Raises :class:`ReleaseError` for a run that is not open, or whose draws are written.
    """
    with open_release(home, session, outcome="the same command can be run again") as release:
        journal = release.journal
        intent = next((intent for intent in journal.open_intents() if intent.run_id == run_id), None)
        if intent is None:
            raise ReleaseError(f"run {run_id}: is not open. `wordveil release show` lists the runs.")
        if release.has_drawn(intent):
            raise ReleaseError(
                f"run {run_id}: its draws are written already. Start the job again: it finishes the run without "
                "reading the input."
            )
        release.ledger.abandon(Terms.naming(release.name, release.draws.identifier(), run_id))
        journal.add(ABANDONED, run_id, lambda _: {})


@contextmanager
def open_runner(
    job: ReleaseJob,
    session: Callable[[], SparkSession],
    params: Mapping[str, str],
    progress: Callable[[str], None],
    tasks: TaskProgress,
) -> Iterator[ReleaseRunner]:
    """Open the release of ``job``, which passed all checks that need no Spark."""
    outcome = "the same command can be run again"
    with open_release(job.home, session, progress, outcome=outcome, waiting_for="another run") as release:
        yield ReleaseRunner(release, job, params, progress, tasks)
