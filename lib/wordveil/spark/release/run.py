"""A run of a release: what is to be done is written first, then reserved, drawn and settled; each step once, whatever
crashes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wordveil.artifacts.bundle import Bundle
from wordveil.config.artifacts import find_ngrams, ready_bundle
from wordveil.config.load import Config
from wordveil.crypto.keys import MasterKey, key_faults, load_key
from wordveil.errors import ConfigError, Fault, ReleaseError
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.records.schema import NULL_ID
from wordveil.release.budgets import Charge, ReleaseFacts, budget_faults
from wordveil.spark.input.source import InputTable, open_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import TaskProgress, watch_tasks
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.gate import require_live
from wordveil.spark.release.journal import ABANDONED, FINISHED, INTENT, REFUSED, Event, Intent, Journal, intent_body
from wordveil.spark.release.ledger import Terms
from wordveil.spark.release.steps import RunSteps
from wordveil.spark.release.tables import ReleaseTables
from wordveil.spark.sanitise.counts import NOTHING
from wordveil.spark.sanitise.distribution import distribute, distribute_model
from wordveil.spark.sanitise.report import RunReport
from wordveil.spark.sanitise.run_log import new_run_id
from wordveil.spark.sanitise.worker import Sanitise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_PARAMS: Mapping[str, str] = {}


def _silent(*_: object) -> None:
    """Report nothing."""


def run_release(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    run_id: str | None = None,
    full_snapshot: bool = False,
    progress: Callable[[str], None] = _silent,
    tasks: TaskProgress = _silent,
) -> RunReport:
    """Bring a release in step with its input: draw what is new or has changed, withdraw what is gone, charge the
    ledger.

    Runs that were interrupted are finished first, as they were begun. A ``run_id`` that has finished reports what it
    did and does nothing; one that was interrupted is finished and nothing else is done. Another run of the same release
    on this machine is waited for.

    Raises a :class:`WordveilError`: a :class:`ReleaseError` where the release, its key, its ledger or a budget does not
    allow the run. Whatever happens, a run that has begun can be finished by another call.
    """
    steward = ReleaseRunner(config, session, params, progress, tasks)
    with steward.home.held(lambda: progress("waiting for another run of this release")) as steward.alone:
        return steward.run(run_id, full_snapshot=full_snapshot)


def withdraw(
    config: Config,
    session: Callable[[], SparkSession],
    ids: list[str],
    *,
    run_id: str | None = None,
    progress: Callable[[str], None] = _silent,
    tasks: TaskProgress = _silent,
) -> RunReport:
    """Take records out of a release for good. Their public text goes with the next publication, their draws with a
    purge.

    Raises as :func:`run_release` does, and :class:`ReleaseError` for ids that the release does not hold.
    """
    steward = ReleaseRunner(config, session, NO_PARAMS, progress, tasks)
    with steward.home.held(lambda: progress("waiting for another run of this release")) as steward.alone:
        return steward.withdraw(run_id, ids)


class ReleaseRunner:
    """One call on a release: its configuration, key, bundle and tables."""

    def __init__(
        self,
        config: Config,
        session: Callable[[], SparkSession],
        params: Mapping[str, str],
        progress: Callable[[str], None],
        tasks: TaskProgress,
    ) -> None:
        self.config = config
        self.params = dict(params)
        self.key: MasterKey = load_key(config.key.file, config.key.env)
        self.bundle: Bundle = ready_bundle(config, BuildContext(progress, tasks))
        self.ngrams = find_ngrams(config)
        self.settings = RecordSettings(config.release, "", config.policy, tuple(config.input.keep), config.shown)
        if config.budgets is not None:
            facts = ReleaseFacts.of(release_terms(self.settings, self.bundle), authors=config.input.author is not None)
            if faults := budget_faults(config.budgets.budget, facts):
                raise ConfigError("configuration", [Fault(where, "", problem) for where, problem in faults])
        self.progress, self.tasks = progress, tasks
        progress("starting Spark")
        self.spark = session()
        require_classic(self.spark)
        self.home = ReleaseTables(self.spark, config)
        self.alone = False
        """Whether nobody else can work on the release as long as this call holds it."""

    def settings_of(self, intent: Intent) -> RecordSettings:
        """What a run's rows say of themselves: what was true when it began."""
        return replace(self.settings, run_id=intent.run_id, shown=intent.shown)

    def terms_of(self, intent: Intent) -> Terms:
        """What a run's draws cost."""
        charge = Charge.of(release_terms(self.settings_of(intent), self.bundle), 0)
        return Terms(
            release=self.config.release,
            tables=self.home.draws.identifier(),
            run_id=intent.run_id,
            epoch=intent.epoch,
            epoch_key=intent.epochs[intent.epoch - 1],
            price=charge.price,
            epsilon=charge.epsilon,
            delta=charge.delta,
            metric=charge.metric,
            relation=str(charge.relation),
        )

    def run(self, run_id: str | None, *, full_snapshot: bool) -> RunReport:
        """See :func:`run_release`; the release is held."""
        while True:
            journal = self._journal()
            self._finish_open(journal)
            if run_id is not None and (done := journal.finished(run_id)) is not None:
                return RunReport.from_dict(done)
            table = open_input(self.spark, self.config.input, self.params)
            if not table.is_delta:
                raise ReleaseError(
                    f"input {self.config.input.source}: is no Delta table, and a release keeps to versions of one."
                )
            intent = self._intent(journal, table, run_id or new_run_id(), full_snapshot=full_snapshot)
            last = journal.last_of(intent.slice)
            if last is not None and not full_snapshot and _reads_the_same(last, intent):
                return self._report(replace(intent, changes="none"), NOTHING, 0.0)
            self.home.create(table.read(intent.version), self.config.input.keep, self.config.input.id)
            if (report := self._begin(journal, intent, table)) is not None:
                return report

    def withdraw(self, run_id: str | None, ids: list[str]) -> RunReport:
        """See :func:`withdraw`; the release is held."""
        while True:
            journal = self._journal()
            if not journal.intents():
                raise ReleaseError(f"release {self.config.release}: has no runs, so there is nothing to withdraw.")
            self._finish_open(journal)
            if run_id is not None and (done := journal.finished(run_id)) is not None:
                return RunReport.from_dict(done)
            epochs = self.key.epoch_fingerprints
            name, wanted = run_id or new_run_id(), tuple(sorted(set(ids)))
            intent = Intent(
                name, 0, "withdraw", self._fixed(), self.key.epoch, epochs, shown=self.config.shown, ids=wanted
            )
            RunSteps(self, intent, None).refuse_unknown_ids()
            if (report := self._begin(journal, intent, None)) is not None:
                return report

    def _begin(self, journal: Journal, intent: Intent, table: InputTable | None) -> RunReport | None:
        """Begin a run; None where somebody has added to the journal that it was decided on."""
        known = len(journal.events)
        event = journal.add(
            INTENT,
            intent.run_id,
            lambda seq: intent_body(replace(intent, seq=seq)),
            unless=lambda events: len(events) != known,
        )
        return (
            None if event is None else self._execute(journal, replace(intent, seq=event.seq), table, fresh=self.alone)
        )

    def _execute(self, journal: Journal, intent: Intent, table: InputTable | None, *, fresh: bool = False) -> RunReport:
        started = time.perf_counter()
        settings = replace(self.settings_of(intent), internal=2)
        place, identity = distribute(self.spark.sparkContext, self.bundle, self.config.spark.bundle)
        model = distribute_model(self.spark.sparkContext, self.ngrams, self.config.spark.bundle)
        job = Sanitise(settings, self.key.for_release(self.config.release, intent.epoch), place, identity, model)
        work = RunSteps(self, intent, table, fresh=fresh)
        try:
            with (
                job_errors(
                    f"run {intent.run_id} is open: start it again, or give it up by `wordveil release abandon {intent.run_id}`"
                ),
                watch_tasks(self.spark.sparkContext, intent.run_id, self.tasks),
            ):
                over = work.reserve(job)
                if over:
                    self._refuse(journal, intent, over)
                work.draw(job)
                work.settle()
                report = self._report(intent, work.counts(), time.perf_counter() - started)
                journal.add(
                    FINISHED,
                    intent.run_id,
                    lambda _: report.to_dict(),
                    unless=lambda events: _has_ended(events, intent),
                )
        finally:
            work.close()
            identity.unpersist()
        return report

    def _refuse(self, journal: Journal, intent: Intent, over: int) -> None:
        journal.add(REFUSED, intent.run_id, lambda _: {"over": over})
        raise ReleaseError(
            f"budgets: {over:,} records would exceed a limit and on_exceeded is fail. Nothing was drawn or charged. Raise the limit, "
            "leave records out by input.where, or set on_exceeded: quarantine."
        )

    def _journal(self) -> Journal:
        """The release's journal. Raises :class:`ReleaseError` where it does not allow another run in these terms."""
        journal = self.home.journal()
        require_live(journal, self.config.release)
        intents = journal.intents()
        if not intents:
            return journal
        recorded, last = intents[0].terms, intents[-1]
        if problem := key_faults(recorded["key_fingerprint"], last.epochs, self.key):
            raise ReleaseError(f"release {self.config.release}: {problem}")
        for name, value in self._fixed().items():
            if recorded[name] != value:
                raise ReleaseError(
                    f"release {self.config.release}: {name} is {value[:60]} now and {recorded[name][:60]} in its first run. A release has "
                    "one bundle, one text policy, one key and one set of columns: go on with them, or begin a release of another name."
                )
        return journal

    def _finish_open(self, journal: Journal) -> None:
        """Finish what was interrupted, as it was begun."""
        for intent in journal.open_intents():
            self.progress(
                f"finishing run {intent.run_id}, which was interrupted, under the settings that it began with"
            )
            if intent.kind == "withdraw":
                self._execute(journal, intent, None)
                continue
            hint = (
                f"Finish it with its own configuration, or charge it in full: wordveil release abandon {intent.run_id}"
            )
            if self.config.input.source != intent.source:
                raise ReleaseError(
                    f"run {intent.run_id} of {intent.source} was interrupted, and input is {self.config.input.source}. {hint}"
                )
            pinned = {"where": intent.where or None, "version": intent.version, "timestamp": None}
            table = open_input(self.spark, self.config.input.model_copy(update=pinned), intent.params)
            if table.table_id != intent.source_id:
                raise ReleaseError(
                    f"run {intent.run_id} was interrupted, and {intent.source} is another table now. {hint}"
                )
            self._execute(journal, intent, table)

    def _fixed(self) -> dict[str, str]:
        """What is the same in all runs of a release."""
        source = self.config.input
        columns = {"id": source.id, "text": source.text, "author": source.author, "keep": source.keep}
        return {
            "release": self.config.release,
            "mechanism_fingerprint": self.bundle.fingerprint,
            "policy_fingerprint": self.config.policy.fingerprint,
            "key_fingerprint": self.key.fingerprint,
            "columns": json.dumps(columns),
            "ledger": self.home.ledger.store.path,
        }

    def _intent(self, journal: Journal, table: InputTable, run_id: str, *, full_snapshot: bool) -> Intent:
        """What a new run is going to do."""
        if full_snapshot and self.config.input.where:
            raise ReleaseError(
                "--full-snapshot: the input is a slice (input.where), and what is not in a slice has not left. Remove one."
            )
        source = self.config.input
        intent = Intent(
            run_id=run_id,
            seq=0,
            kind="sanitise",
            terms=self._fixed(),
            epoch=self.key.epoch,
            epochs=self.key.epoch_fingerprints,
            source=source.source,
            source_id=table.table_id or "",
            version=-1 if table.latest_version is None else table.latest_version,
            where=source.where or "",
            params=self.params,
            full_snapshot=full_snapshot,
            budgets=self.config.budgets.budget.to_dict() if self.config.budgets else None,
            max_bytes=source.max_bytes,
            shown=self.config.shown,
            anew=self._is_anew(journal),
        )
        last = journal.last_of(intent.slice)
        if last is None or source.changes != "feed" or full_snapshot:
            changes = "scan" if any(other.kind == "sanitise" for other in journal.intents()) else "all"
            return replace(intent, changes=changes, null_id_count=_null_id_count(journal, intent.slice))
        if last.source_id != intent.source_id:
            raise ReleaseError(
                f"input {source.source}: is another table than the release has read so far, so that its change feed tells nothing of what "
                "was there before. Compare contents once: --set input.changes=scan, with --full-snapshot if the table is whole."
            )
        if intent.version < last.version:
            raise ReleaseError(
                f"input {source.source}: is at version {intent.version} and has been read up to {last.version}; a change feed does not go "
                "back. Compare contents: --set input.changes=scan"
            )
        return replace(intent, changes="feed", since=last.version, retried=not last.refuses_as(intent))

    def _is_anew(self, journal: Journal) -> bool:
        """Whether the release had other tables before, which were given up."""
        begun = journal.intents()
        return begun[0].anew if begun else self.home.ledger.knows(self.config.release)

    def _report(self, intent: Intent, counts: Mapping[str, Any], seconds: float) -> RunReport:
        terms = release_terms(self.settings_of(intent), self.bundle)
        return RunReport(
            run_id=intent.run_id,
            release=self.config.release,
            output=self.home.path,
            relation=str(terms.relation),
            metric=terms.guarantee.metric.identifier,
            nominal_epsilon=terms.guarantee.nominal_epsilon,
            epsilon=terms.guarantee.epsilon,
            exposes=terms.exposes,
            mechanism_fingerprint=self.bundle.fingerprint,
            policy_fingerprint=self.config.policy.fingerprint,
            key_fingerprint=self.key.fingerprint,
            seconds=seconds,
            notes=tuple(self.bundle.manifest["notes"]),
            changes=intent.changes if intent.kind == "sanitise" else intent.kind,
            input_version=intent.version if intent.kind == "sanitise" else None,
            **counts,
        )


def abandon(config: Config, session: Callable[[], SparkSession], run_id: str) -> None:
    """Give up an interrupted run: all that it reserved is charged, and nothing of it is ever released.

    Raises :class:`ReleaseError` for a run that is not open, or whose draws are there.
    """
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with home.held(), job_errors("the run can be given up by starting this again"):
        journal = home.journal()
        found = [intent for intent in journal.open_intents() if intent.run_id == run_id]
        if not found:
            raise ReleaseError(f"run {run_id}: is not open. `wordveil release show` lists the runs.")
        if home.has_drawn(found[0]):
            raise ReleaseError(
                f"run {run_id}: has drawn already. Start the job again: it finishes the run without reading the input."
            )
        home.ledger.abandon(Terms.naming(home.release, home.draws.identifier(), run_id))
        journal.add(ABANDONED, run_id, lambda _: {})


def _reads_the_same(last: Intent, intent: Intent) -> bool:
    return (last.version, last.source_id) == (intent.version, intent.source_id) and last.refuses_as(intent)


def _has_ended(events: list[Event], intent: Intent) -> bool:
    """Whether a run has finished: another process may have finished it too."""
    return any(event.event == FINISHED and event.run_id == intent.run_id for event in events)


def _null_id_count(journal: Journal, part: str) -> int:
    runs = {intent.run_id for intent in journal.intents() if intent.kind == "sanitise" and intent.slice == part}
    return sum(
        event.body["quarantined"].get(NULL_ID, 0)
        for event in journal.events
        if event.event == FINISHED and event.run_id in runs
    )
