"""Erasure of records: withdraw them, delete their draws, publish without them, and look for what is left.

Each step finds out whether it has been done before, so the same command finishes an erasure that was killed. The draws
keep a mark without text for each record until it has left the public table, so that its files are written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.audits import find_audits
from wordveil.assembly.bundles import find_facts
from wordveil.assembly.evaluations import load_attackers
from wordveil.assembly.jobs import load_release_job
from wordveil.config.load import Config
from wordveil.errors import WordveilError, usage_error
from wordveil.input.parameters import NO_PARAMS
from wordveil.input.source import Source
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.schema import RELEASED, REQUESTED, WITHDRAWN
from wordveil.release.events import FINISHED, PUBLISHED
from wordveil.release.layout import AUTHOR_COLUMN, DELTA_LOG, SEQ_COLUMN
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.progress import TaskProgress, ignore
from wordveil.spark.platform.versions import try_cast
from wordveil.spark.release.gate import GateDecision, gate_release
from wordveil.spark.release.latest import filter_by_ids, latest_state
from wordveil.spark.release.maintenance import (
    compact_tables,
    count_lost_rows,
    count_old_files,
    delete_draws,
    require_vacuum,
)
from wordveil.spark.release.publish import Publication, publish_release
from wordveil.spark.release.run import open_runner
from wordveil.spark.release.tables import Release, refuse_ids

OWNED = ("draws", "public table", "old files", "journal", "logs and manifests")
"""Places from which an erasure removes records."""


@dataclass(frozen=True)
class Place:
    """Remains of erased records in one place.

    ``named``: the number of rows, entries or files that have an id. ``texts``: of those that have a text, or may.
    ``note``: what becomes of it. ``named`` is None if nobody could look.
    """

    place: str
    path: str
    named: int | None
    texts: int
    note: str = ""


@dataclass(frozen=True)
class Erasure:
    """Result of an erasure.

    ``records``: the number of erased records, of which ``withdrawn`` were not withdrawn before. ``unknown``: listed ids
    that the release lacks. ``decision``, ``publication``: None if no publication was needed, or the gate did not pass.
    """

    release: str
    records: int
    withdrawn: int
    unknown: tuple[str, ...]
    retain_hours: int
    decision: GateDecision | None = None
    publication: Publication | None = None
    places: tuple[Place, ...] = ()

    @property
    def is_gone(self) -> bool | None:
        """True if no place that an erasure reaches has an id or a text; None if nothing was searched."""
        left = (place for place in self.places if place.place in OWNED and (place.named or place.texts))
        return next(left, None) is None if self.places else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; internal."""
        return {
            "release": self.release,
            "records": self.records,
            "withdrawn": self.withdrawn,
            "unknown": list(self.unknown),
            "retain_hours": self.retain_hours,
            "gate": self.decision and self.decision.to_dict(),
            "publish": self.publication and self.publication.to_dict(),
            "places": [asdict(place) for place in self.places],
            "gone": self.is_gone,
        }


def erase(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    ids: Collection[str] = (),
    listed: Collection[str] = (),
    authors: Collection[str] = (),
    retain_hours: int = 0,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
) -> Erasure:
    """Erase records permanently, and look for what is left of them.

    ``ids`` must be in the release, ``listed`` ones may be unknown, and each of ``authors`` must have a record. Files of
    old versions younger than ``retain_hours`` stay. Interrupted runs are finished first. Rows of a shuffled table stay.

    Raises as :func:`wordveil.spark.release.run.withdraw`, and :class:`ConfigError` for an author without records. A
    gate that does not pass is no error: the records then stay in the public table.
    """
    rules, audits, find = config.rules, partial(find_audits, config), partial(find_facts, config)
    job = load_release_job(config, BuildContext(progress, tasks))
    with open_runner(job, session, NO_PARAMS, progress, tasks) as runner:
        release = runner.release
        require_vacuum(release, retain_hours)
        runner.finish_interrupted()
        release.journal.require_no_open_runs()
        progress("looking for the records")
        chosen, standing, unknown = _select(release, ids, listed, authors)
        made = Erasure(release.name, len(chosen), len(standing), unknown, retain_hours)
        if not chosen:
            return made
        if standing:
            runner.withdraw(None, lambda: standing)
        erased = release.cast_ids(chosen).select("__id", "named").persist()
        try:
            progress("deleting draws")
            delete_draws(release, erased, f"status = '{RELEASED}'")
            if _needs_publication(release):
                attackers = load_attackers(config)
                decision = gate_release(release, job.settings, rules, attackers, audits, find, progress)
                made = replace(made, decision=decision)
                if decision.result.passed:
                    key = job.materials.key
                    published = publish_release(release, job.settings, rules, key, find, progress)
                    made = replace(made, publication=published)
            if not _needs_publication(release):
                delete_draws(release, erased, "status IS NOT NULL")
            compact_tables(release, (release.draws, release.public), retain_hours, progress)
            progress("looking for what is left")
            places = [_search_input(release.spark, job.source, erased, authors)]
            places += _search_release(release, erased, frozenset(chosen), retain_hours)
            places += _search_ledger(release, erased, authors)
        finally:
            erased.unpersist()
    if job.settings.max_records is not None:  # only weights that the private corpus trained have a limit
        note = "its weights were trained on the private corpus: if that had the records, train it again"
        places.append(Place("generator", str(job.materials.bundle.path), None, 0, note))
    return replace(made, places=tuple(places))


def _select(
    release: Release, ids: Collection[str], listed: Collection[str], authors: Collection[str]
) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Find the records to erase among the draws and the withdrawals of the ledger, which outlive the draws.

    Returns the texts of their ids, those of records that have draws and are not withdrawn yet, and the ``listed`` ids
    that nothing has.
    """
    state = latest_state(release.draws.read(), release.home.id)
    is_requested = (F.col("status") == WITHDRAWN) & (F.col("reason") == REQUESTED)
    drawn = state.select("__id", is_requested.alias("requested")).persist()
    try:
        listed_before = release.ledger.withdrawn(release.name)
        before = listed_before.select(try_cast("record_id", release.id_type).alias("__id")).where("__id IS NOT NULL")
        named = {*ids, *listed}
        found = release.match_ids(named, drawn.select("__id").union(before)) if named else {}
        if unknown := set(ids) - found.keys():
            raise refuse_ids(release.name, unknown)
        chosen = set(found.values()) | find_records(release, authors, before)
        wanted = release.cast_ids(sorted(chosen)).select("__id", "named")
        standing = wanted.join(drawn.where("NOT requested"), "__id").select("named").collect() if chosen else []
    finally:
        drawn.unpersist()
    return sorted(chosen), sorted(row.named for row in standing), tuple(sorted(set(listed) - found.keys()))


def find_records(release: Release, authors: Collection[str], before: DataFrame) -> set[str]:
    """Find the ids of the records of ``authors``: by the newest draw that names an author, or withdrawn ``before``.

    Raises :class:`ConfigError` for an author without any.
    """
    if not authors:
        return set()
    name, asked = release.home.id, [*authors]
    is_named = (F.col("status") != WITHDRAWN) & F.col(AUTHOR_COLUMN).isNotNull()
    newest = F.max_by(AUTHOR_COLUMN, F.when(is_named, F.col(SEQ_COLUMN))).alias("author")
    known = release.draws.read().where(column(name).isNotNull()).groupBy(column(name).alias("__id")).agg(newest)
    entries = release.ledger.table.read().where(F.col("release") == release.name)
    charged = entries.select(try_cast("record_id", release.id_type).alias("__id"), "author")
    charged = charged.where(F.col("author").isin(asked)).join(before, "__id", "left_semi")
    both = known.where(F.col("author").isin(asked)).unionByName(charged)
    rows = both.select(F.col("__id").cast("string").alias("id"), "author").distinct().collect()
    for author in asked:
        if author not in {row.author for row in rows}:
            problem = f"has no record in release {release.name}. Nothing was done. Correct it, or erase by --id."
            raise usage_error("--author", author, problem)
    return {row.id for row in rows}


def _needs_publication(release: Release) -> bool:
    """Return whether the public table may have rows of records that were withdrawn since it was published."""
    journal, public = release.journal, release.public
    # To remove a row of a shuffled table would show which one it was.
    if release.home.output.shuffle or not public.exists():
        return False
    withdrawals = {intent.run_id for intent in journal.intents() if intent.kind == "withdraw"}
    ended = (event.seq for event in journal.events if event.event == FINISHED and event.run_id in withdrawals)
    published = journal.latest(PUBLISHED)
    return published is None or published.seq < max(ended, default=0)


def _search_release(release: Release, erased: DataFrame, ids: frozenset[str], hours: int) -> Iterator[Place]:
    """Search the tables, logs and manifests of the release."""
    name, draws, public = release.home.id, release.draws, release.public
    rows = filter_by_ids(draws.read(), name, erased)
    counts = rows.agg(F.count("*").alias("rows"), F.count_if(F.col("status") == RELEASED).alias("texts")).collect()[0]
    note = "marks without text, until the public table is published without the records" if counts.rows else ""
    yield Place("draws", draws.path, counts.rows, counts.texts, note)
    old = count_old_files(draws)
    if public.exists():
        old += count_old_files(public)
        yield _search_public(release, erased)
    note = f"of versions up to {hours} hours old: `release compact --retain-hours 0` deletes them" if old else ""
    yield Place("old files", release.path, 0, old, note)
    events = sum(names_record(event.body, name, ids) for event in release.journal.events)
    yield Place("journal", release.journal_table.path, events, 0)
    number = _count_naming_files(release, ids)
    note = "made by an earlier version. Delete the old manifests; Delta deletes old entries of its logs after 30 days"
    yield Place("logs and manifests", release.path, number, 0, note if number else "")


def _search_public(release: Release, erased: DataFrame) -> Place:
    public = release.public
    if release.home.output.shuffle:
        lost = count_lost_rows(release)
        note = (
            "of all withdrawn records. Rows have no ids, and to remove one would show which it was: move the table "
            "away, then `release gate` and `release publish`"
        )
        return Place("public table", public.path, 0, lost, note if lost else "")
    rows = filter_by_ids(public.read(), release.home.id, erased).count()
    note = "the gate did not pass: see its rules, then run this command again" if rows else "readers may have copies"
    return Place("public table", public.path, rows, rows, note)


def _count_naming_files(release: Release, ids: frozenset[str]) -> int:
    """Count the files of the release, except for data of its tables, that name one of ``ids``."""
    name, number, roots = release.home.id, 0, [release.path]
    if not release.public.path.startswith(f"{release.path}/"):
        roots.append(release.public.path)
    for root in roots:
        files = Files(release.spark, root)
        for path in files.list_files():
            if not path.endswith(".parquet"):
                number += names_record(files.read(files.below(path)), name, ids)
            elif f"{DELTA_LOG}/" in path:
                rows = release.spark.read.parquet(f"{root}/{path}").select(F.to_json(F.struct("*")).alias("line"))
                number += any(names_record(row.line, name, ids) for row in rows.toLocalIterator())
    return number


def names_record(value: object, name: str, ids: Collection[str], *, is_id: bool = False) -> bool:
    """Return whether a value of JSON has one of ``ids``, perhaps in JSON inside its texts.

    Numbers occur everywhere, so they count only under ``name``, the id column's. ``is_id``: the value stands there.
    """
    if isinstance(value, Mapping):
        return any(names_record(part, name, ids, is_id=is_id or key in (name, "ids")) for key, part in value.items())
    if isinstance(value, list | tuple):
        return any(names_record(part, name, ids, is_id=is_id) for part in value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            return names_record(json.loads(value), name, ids, is_id=is_id)
        lines = value.splitlines()
        if len(lines) > 1:
            return any(names_record(line, name, ids) for line in lines)
    return str(value) in ids and (is_id or (isinstance(value, str) and not value.isdigit()))


def _search_ledger(release: Release, erased: DataFrame, authors: Collection[str]) -> Iterator[Place]:
    """Search the ledger for the records, and for other releases with these ids or ``authors``."""
    table = release.ledger.table
    entries, ids = table.read(), erased.select(F.col("named").alias("record_id"))
    ours = F.col("release") == release.name
    number = entries.where(ours).join(ids, "record_id", "left_semi").count()
    note = "ids, authors and costs stay: budgets go on counting them, and the withdrawal keeps the records out"
    yield Place("ledger", table.path, number, 0, note)
    same = entries.join(ids, "record_id", "left_semi").unionByName(entries.where(F.col("author").isin([*authors])))
    others = sorted(row.release for row in same.where(~ours).select("release").distinct().collect())
    if others:
        note = f"{', '.join(others)}: they have these ids, or the author. Erase there, too"
        yield Place("other releases", table.path, len(others), 0, note)


def _search_input(spark: SparkSession, source: Source, erased: DataFrame, authors: Collection[str]) -> Place:
    """Search the input, which belongs to others, without its condition. A fault of it is no fault of the erasure."""
    whole = replace(source, where=None, version=None, timestamp=None)
    try:
        with job_errors("the erasure is done"):
            rows = open_input(spark, whole).read()
            author = F.lit(None) if source.author is None else column(source.author)
            rows = rows.select(column(source.id).alias("id"), author.cast("string").alias("author"))
            ids = erased.select(try_cast("named", rows.schema["id"].dataType).alias("__id")).where("__id IS NOT NULL")
            number = filter_by_ids(rows, "id", ids).count()
            others = filter_by_ids(rows.where(F.col("author").isin([*authors])), "id", ids, "left_anti").count()
    except WordveilError:
        return Place("input", source.name, None, 0, "cannot be read: look for the records there yourself")
    notes = ["its old versions keep deleted rows until they are vacuumed"]
    if number:
        notes = ["delete the records there, and vacuum. They are not drawn again under these ids"]
    if others:
        notes.append(f"{others:,} more records of the author will be drawn by the next run")
    return Place("input", source.name, number, number, "; ".join(notes))
