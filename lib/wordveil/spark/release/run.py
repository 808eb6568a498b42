"""Commands that run a release: update it from its input, withdraw records, give up a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from wordveil.config.load import Config
from wordveil.errors import ConfigError, ReleaseError
from wordveil.input.parameters import NO_PARAMS
from wordveil.records.sanitiser import release_terms
from wordveil.release.budgets import ReleaseFacts, find_budget_faults
from wordveil.release.events import ABANDONED
from wordveil.spark.platform.progress import TaskProgress, ignore
from wordveil.spark.release.ledger import Terms
from wordveil.spark.release.opening import open_release
from wordveil.spark.release.runner import ReleaseRunner
from wordveil.spark.sanitise.materials import load_materials
from wordveil.spark.sanitise.report import RunReport


def run_release(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    run_id: str | None = None,
    full_snapshot: bool = False,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> RunReport:
    """Update a release from its input: draw new and changed records, withdraw missing ones, charge the ledger.

    Interrupted runs are finished first, with the settings that they started with. A ``run_id`` that has finished
    reports its results and does nothing; one that was interrupted is finished, and nothing else is done. If another run
    of the same release is active on this machine, this one waits for it.

    Raises a :class:`WordveilError`: a :class:`ReleaseError` if the release, its key, its ledger or a budget does not
    allow the run. Whatever happens, another call can finish a run that has begun.
    """
    with open_runner(config, session, params, progress, tasks) as runner:
        return runner.run(run_id, full_snapshot=full_snapshot)


def withdraw(
    config: Config,
    session: Callable[[], SparkSession],
    ids: list[str],
    *,
    run_id: str | None = None,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> RunReport:
    """Withdraw records from a release permanently. The next publication removes their public text, and a purge their
    draws.

    Raises as :func:`run_release` does, and :class:`ReleaseError` for ids that the release does not hold.
    """
    with open_runner(config, session, NO_PARAMS, progress, tasks) as runner:
        return runner.withdraw(run_id, ids)


def abandon(config: Config, session: Callable[[], SparkSession], run_id: str) -> None:
    """Give up an interrupted run. Its reserved budget is spent; its rows are discarded.

    Raises :class:`ReleaseError` for a run that is not open, or whose draws are written.
    """
    with open_release(config, session, outcome="the same command can be run again") as release:
        tables, journal = release.tables, release.journal
        intent = next((intent for intent in journal.open_intents() if intent.run_id == run_id), None)
        if intent is None:
            raise ReleaseError(f"run {run_id}: is not open. `wordveil release show` lists the runs.")
        if tables.has_drawn(intent):
            raise ReleaseError(
                f"run {run_id}: its draws are written already. Start the job again: it finishes the run without "
                "reading the input."
            )
        tables.ledger.abandon(Terms.naming(tables.release, tables.draws.identifier(), run_id))
        journal.add(ABANDONED, run_id, lambda _: {})


@contextmanager
def open_runner(
    config: Config,
    session: Callable[[], SparkSession],
    params: Mapping[str, str],
    progress: Callable[[str], None],
    tasks: TaskProgress,
) -> Iterator[ReleaseRunner]:
    """Open the release after all checks that need no Spark have passed."""
    settings, source, budget = config.record_settings(""), config.source, config.budget
    materials = load_materials(config, progress, tasks)
    terms = release_terms(settings, materials.bundle)
    facts = ReleaseFacts(terms.relation, terms.tokens, source.author is not None, terms.guarantee)
    if faults := find_budget_faults(budget, facts):
        raise ConfigError("configuration", faults)
    outcome = "the same command can be run again"
    with open_release(config, session, progress, outcome=outcome, waiting_for="another run") as release:
        yield ReleaseRunner(
            release=release,
            materials=materials,
            settings=settings,
            source=source,
            budget=budget,
            records_per_file=config.output.records_per_file,
            params=params,
            progress=progress,
            tasks=tasks,
        )
