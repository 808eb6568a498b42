"""Measuring a release against its gate, and remembering which version passed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordveil.config.load import Config
from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Exposure, Relation, narrow_relation
from wordveil.records.schema import QUARANTINED, RELEASED, UNCHANGED_COLUMN, UNKNOWN_COLUMN, WITHDRAWN, WORDS_COLUMN
from wordveil.release.rules import GateResult, Measured, evaluate
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.journal import FROZEN, GATE, PUBLISHED, Journal
from wordveil.spark.release.latest import latest_rows
from wordveil.spark.release.tables import LEDGER_VERSION, ReleaseTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Gated:
    """What a gate decided about one version of the draws."""

    release: str
    draws_version: int
    result: GateResult

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; internal."""
        return {"release": self.release, "draws_version": self.draws_version, **self.result.to_dict()}


def run_gate(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = lambda _: None
) -> Gated:
    """Hold the newest draws against ``gate`` and write the decision down. Raises :class:`ReleaseError` where nothing is
    drawn, or a run is open.
    """
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with home.held(lambda: progress("waiting for a run of this release")), job_errors("nothing was decided"):
        journal = require_no_open_runs(home)
        require_live(journal, config.release)
        version = home.draws.version()
        progress("measuring")
        rows = latest_rows(home.draws.read(version), config.input.id, len(journal.intents()))
        words = config.gate.rules.min_distinct_words is not None
        measured = measure(rows, words=words, shown=published_exposes(config, journal))
        gated = Gated(config.release, version, evaluate(config.gate.rules, measured))
        body = {**gated.to_dict(), "rules": config.gate.rules.digest, LEDGER_VERSION: home.ledger.store.version()}
        journal.add(GATE, "", lambda _: body)
    return gated


def require_no_open_runs(home: ReleaseTables) -> Journal:
    """The journal of a release whose runs have all ended. Raises :class:`ReleaseError` for another."""
    journal = home.journal()
    if not journal.intents():
        raise ReleaseError(f"release {home.release}: has no runs. Run `wordveil sanitise` first.")
    if found := journal.open_intents():
        raise ReleaseError(
            f"run {found[0].run_id} was interrupted. Run `wordveil sanitise` again: it finishes that run first."
        )
    return journal


def require_live(journal: Journal, release: str) -> None:
    """Raise :class:`ReleaseError` for a release that is frozen."""
    if (frozen := journal.latest(FROZEN)) is not None:
        raise ReleaseError(
            f"release {release}: is frozen since {frozen.at}, when its key was destroyed. What is published stays; nothing is drawn, "
            "gated or published any more. Go on under another release name, with another key."
        )


def published_exposes(config: Config, journal: Journal) -> tuple[str, ...]:
    """What a publication shows besides what each row said when it was drawn: by the configuration of today, by the
    runs, and by earlier publications.

    A record that a condition or a budget kept out has no row to say it. And what readers have seen, such as that
    private rules were passed, they know when the rules are gone.
    """
    before = journal.latest(PUBLISHED)
    seen = before.body["exposes"] if before else ()
    return tuple(sorted({*config.shown, *seen, *(entry for intent in journal.intents() for entry in intent.shown)}))


def measure(newest_draws: DataFrame, *, words: bool, shown: Collection[str] = ()) -> Measured:
    """The figures of a release as it stands; ``words``: whether different words are counted, which takes a shuffle of
    them; ``shown``: what a publication of it would show besides what its rows say.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = newest_draws.where(F.col("status") != WITHDRAWN)
    released = F.col("status") == RELEASED
    figures = rows.agg(
        F.count(F.lit(1)).alias("records"),
        F.count_if(released).alias("released"),
        F.count_if(F.col("status") == QUARANTINED).alias("quarantined"),
        F.count_if(released & (F.trim("text") == "")).alias("empty"),
        F.sum(WORDS_COLUMN).alias("words"),
        F.sum(UNKNOWN_COLUMN).alias("unknown"),
        F.sum(UNCHANGED_COLUMN).alias("unchanged"),
        F.max("privacy.epsilon_bound").alias("bound"),
        F.max("privacy.epsilon_pure").alias("pure"),
        F.count_if(released & F.col("privacy.epsilon_pure").isNull()).alias("unbounded"),
        F.collect_set("privacy.relation").alias("relations"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_set("privacy.exposes")))).alias("exposes"),
    ).first()
    assert figures is not None
    distinct = None
    if words:
        spoken = rows.where(released).select(F.explode(F.split("text", " ")).alias("word")).where("word <> ''")
        distinct = spoken.distinct().count()
    exposes = tuple(sorted({*figures.exposes, *shown}))
    relations = {narrow_relation(Relation(name), exposes) for name in figures.relations}
    unbounded = figures.unbounded or Exposure.CONDITION in exposes
    return Measured(
        relation=relations.pop() if len(relations) == 1 else None,
        exposes=exposes,
        epsilon_pure=None if unbounded else figures.pure or 0.0,
        epsilon_bound=figures.bound or 0.0,
        records=figures.records,
        released=figures.released,
        quarantined=figures.quarantined,
        empty=figures.empty,
        distinct_words=distinct,
        words=figures.words or 0,
        unknown=figures.unknown or 0,
        unchanged=figures.unchanged or 0,
    )
