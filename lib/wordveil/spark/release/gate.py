"""Gate of a release: it is measured and checked against rules, and its journal records the version that passed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.audits import find_audits
from wordveil.assembly.bundles import PublishedFacts, find_facts
from wordveil.assembly.evaluations import EvaluationContext, load_attackers
from wordveil.assembly.jobs import make_table_terms
from wordveil.config.load import Config
from wordveil.privacy.relations import Relation
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSettings
from wordveil.records.schema import RELEASED
from wordveil.release.budgets import RefusedGroup
from wordveil.release.events import GATE, PUBLISHED
from wordveil.release.layout import DRAWS_VERSION, LEDGER_VERSION, SEQ_COLUMN
from wordveil.release.rules import GateResult, GateRules, Measured, evaluate
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import find_most_refused, is_refused, join_texts
from wordveil.spark.release.shuffled import measure_waiting, require_kind
from wordveil.spark.release.tables import Release, open_release

_LOGGER = logging.getLogger(__name__)
_COUNTS = ("records", "released", "quarantined", "empty", "stale", "refused", "asked", "words", "unknown", "unchanged")


@dataclass(frozen=True)
class GateDecision:
    """Decision of a gate about one version of the draws.

    ``rules``: the digest of the rules, which a publication compares. ``runs``: as :meth:`Journal.list_runs` lists them.
    ``fingerprints``: of mechanism, policy and key, which all runs share. ``most_refused``: of each kept column, the
    value of which budgets refuse most of the records read since the last publication, if they refuse any.
    """

    release: str
    draws_version: int
    ledger_version: int
    result: GateResult
    rules: str
    runs: list[dict[str, Any]]
    fingerprints: dict[str, str]
    most_refused: tuple[RefusedGroup, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; internal."""
        groups = [asdict(group) for group in self.most_refused]
        return {**self.to_event(), "runs": self.runs, "fingerprints": self.fingerprints, "most_refused": groups}

    def to_event(self) -> dict[str, Any]:
        """Return the body of the journal's event, without the runs, which it has already."""
        versions = {DRAWS_VERSION: self.draws_version, LEDGER_VERSION: self.ledger_version}
        return {"release": self.release, **versions, **self.result.to_dict(), "rules": self.rules}


def run_gate(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore
) -> GateDecision:
    """Check the newest draws against the rules of ``gate`` and record the decision.

    Raises :class:`ReleaseError` if the release has no runs, has an open one, or is frozen; and with rules on attacks as
    :func:`wordveil.spark.release.evaluate.measure_gate_attacks`.
    """
    settings, rules, audits = config.record_settings(""), config.rules, partial(find_audits, config)
    attackers = load_attackers(config)
    with open_release(config.home, session, progress, outcome="nothing was decided") as release:
        return gate_release(release, settings, rules, attackers, audits, partial(find_facts, config), progress)


def gate_release(
    release: Release,
    settings: RecordSettings,
    rules: GateRules,
    attackers: EvaluationContext | None,
    audits: Callable[[str], tuple[str, ...]],
    find: Callable[[str], PublishedFacts],
    progress: Callable[[str], None],
) -> GateDecision:
    """Gate a release that is open, as :func:`run_gate` does; ``audits`` and ``find`` take a bundle's fingerprint."""
    with job_errors("nothing was decided"):
        journal = release.journal
        journal.require_no_open_runs()
        journal.require_live()
        require_kind(release)
        version = release.draws.version()
        progress("measuring")
        rows = release.newest_rows(version)
        shown = published_exposes(settings.shown, journal)
        # That takes a shuffle of all words.
        distinct = None if rules.min_distinct_words is None else _count_distinct_words(rows, settings.columns)
        counted = release.count_rows(version, settings.columns)
        measured = Measured(
            relation=Relation(counted.relations[0]) if len(counted.relations) == 1 else None,
            exposes=tuple(sorted({*counted.exposes, *shown})),
            epsilon_pure=None if counted.unbounded else counted.pure or 0.0,
            epsilon_bound=counted.bound or 0.0,
            distinct_words=distinct,
            **{name: counted[name] for name in _COUNTS},
        )
        if attackers is not None:
            from wordveil.spark.release.evaluate import measure_gate_attacks

            measured = replace(measured, **measure_gate_attacks(attackers, rules, release, rows, progress))
        terms = journal.intents()[0].terms.fixed
        if shuffle := release.home.output.shuffle:
            responses = find(terms["mechanism_fingerprint"]).responses
            table = make_table_terms(shuffle, measured.epsilon_pure or 0.0, settings, responses)
            waiting = measure_waiting(release, version, settings.kept, table)
            measured = replace(measured, table_epsilon=waiting)
        if rules.audited is not None:
            measured = replace(measured, audited=audits(terms["mechanism_fingerprint"]))
        most_refused: tuple[RefusedGroup, ...] = ()
        if measured.refused:
            asked = is_refused() | (F.col("status") == RELEASED)
            late = rows.where((F.col(SEQ_COLUMN) > release.published_seq) & asked)
            most_refused = find_most_refused(late, settings.kept, is_refused())
        decision = GateDecision(
            release=settings.release,
            draws_version=version,
            ledger_version=release.ledger.table.version(),
            result=evaluate(rules, measured),
            rules=rules.digest,
            runs=journal.list_runs(),
            fingerprints={name: value for name, value in terms.items() if name.endswith("_fingerprint")},
            most_refused=most_refused,
        )
        journal.add(GATE, "", lambda _: decision.to_event())
        failed = [result.name for result in decision.result.failures]
        _LOGGER.debug("gated version %d of the draws, failed rules: %s", version, failed)
    return decision


def published_exposes(configured: Collection[str], journal: Journal) -> tuple[str, ...]:
    """List the exposures of a publication in addition to those that each row had when it was drawn, sorted.

    They are those ``configured`` now, those of the runs, and those of earlier publications. A record that a budget kept
    out has no row that could state that; and readers remember earlier exposures, such as that private rules passed,
    when the rules are gone.
    """
    before = journal.latest(PUBLISHED)
    seen = before.body["exposes"] if before else ()
    return tuple(sorted({*configured, *seen, *(entry for intent in journal.intents() for entry in intent.terms.shown)}))


def _count_distinct_words(newest_draws: DataFrame, texts: TextColumns) -> int:
    released = newest_draws.where(F.col("status") == RELEASED)
    words = released.select(F.explode(F.split(join_texts(texts), " ")).alias("word")).where("word <> ''")
    return words.distinct().count()
