"""Publication of a shuffled release: it adds the rows of records that no earlier publication has, in a secret order.

What a publication adds is in the journal before it is written. If a killed one has written its rows, the next one signs
these, and adds none. If it has not, nobody has seen anything of it, and the next one begins anew.

A table that was moved away is written again from the rows that it had, without those withdrawn since; rows that wait
are another publication. Otherwise whoever has the former table would see them alone. Such a reader also knows the rows
that were withdrawn: each remaining one hides among those that its publication still has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from wordveil.config.schema import ShuffleSection
from wordveil.errors import ReleaseError
from wordveil.privacy.table import TablePrivacy, TableTerms
from wordveil.records.schema import RELEASED
from wordveil.release.events import ADDING, PUBLISHED, SHUFFLED, Event
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release.tables import Release
from wordveil.spark.sanitise.job import add_promise, count_groups, require_rows

_SHOWN = "__shown"


@dataclass(frozen=True)
class Addition:
    """Rows that a publication adds: the newest draws at ``draws_version`` of runs after ``since``, up to ``until``.

    ``gate``: the number of the event that passed them. ``public_version``: of the public table before. ``former``: what
    the rows are for their records by former publications, if the table was moved away. ``privacy``: what they are.
    """

    publication: int
    draws_version: int
    gate: int
    since: int
    until: int
    public_version: int
    former: TablePrivacy | None = None
    privacy: TablePrivacy | None = None

    @property
    def token(self) -> str:
        """Token of the commit."""
        return f"wordveil publication {self.publication}, runs {self.since} to {self.until}"


def require_kind(release: Release) -> None:
    """Raise :class:`ReleaseError` if the release was begun with rows of the other kind."""
    was = release.journal.intents()[0].terms.fixed.get("rows") == SHUFFLED
    if was != (release.home.output.shuffle is not None):
        kinds = ("without", "with") if was else ("with", "without")
        raise ReleaseError(
            f"release {release.name}: the configuration is {kinds[0]} output.shuffle, and its first run was "
            f"{kinds[1]} it. Use that setting, or start a release under another name."
        )


def find_unfinished(release: Release) -> tuple[Addition, int] | None:
    """Find the addition of a publication that was killed after it had written, with the version; or None."""
    begun, done = release.journal.latest(ADDING), release.journal.latest(PUBLISHED)
    if begun is None or (done is not None and done.seq > begun.seq) or not release.public.exists():
        return None
    parts = {name: begun.body[name] and TablePrivacy.from_dict(begun.body[name]) for name in ("former", "privacy")}
    addition = Addition(**{**begun.body, **parts})
    written = release.public.find_commit(addition.token, addition.public_version)
    return None if written is None else (addition, written)


def find_former(last: Event | None) -> TablePrivacy | None:
    """Return what published rows are for their records by all publications so far, the ``last`` one among them."""
    return None if last is None else TablePrivacy.from_dict(last.body["table"])


def sum_up(former: TablePrivacy | None, added: TablePrivacy) -> TablePrivacy:
    """Return what rows of two publications are for a record of either: the weaker of both."""
    if former is None:
        return added
    return replace(
        added,
        epsilon=max(former.epsilon, added.epsilon),
        delta=max(former.delta, added.delta),
        local_epsilon=max(former.local_epsilon, added.local_epsilon),
        records=former.records + added.records,
        groups=max(former.groups, added.groups),
        rows=min(former.rows, added.rows),
    )


def find_waiting(release: Release, version: int, since: int, until: int | None = None) -> DataFrame:
    """Find the released rows at a version of the draws of runs after ``since``, up to ``until``.

    A later run copies the row of a record whose author was corrected, with the id of the run that drew it.
    """
    seqs = {intent.run_id: intent.seq for intent in release.journal.intents()}
    runs = [run for run, seq in seqs.items() if since < seq and (until is None or seq <= until)]
    return release.newest_rows(version).where(f"status = '{RELEASED}'").where(F.col("run_id").isin(runs))


def measure_waiting(release: Release, version: int, kept: Sequence[str], terms: TableTerms) -> float | None:
    """Compute the epsilon of the rows that wait for publication, 0 without any; None if a group is too small.

    If the public table was moved away, its rows wait, and have at least the epsilon of their publications.
    """
    last = release.journal.latest(PUBLISHED)
    since, former = int(last.body["seq"]) if last else 0, find_former(last)
    if former is None or release.public.exists():
        former, counted = None, count_groups(find_waiting(release, version, since), kept)
    else:
        counted = _count_shown(release, find_waiting(release, version, 0, since), kept)
    smallest, _, total = counted
    if not total:
        return 0.0
    if terms.delta * total >= 1 or not terms.holds_for(smallest):
        return None
    return max(terms.measure(smallest).epsilon, former.epsilon if former else 0.0)


def _count_shown(release: Release, rows: DataFrame, kept: Sequence[str]) -> tuple[int, int, int]:
    """Count published ``rows`` as :func:`count_groups` does, those of each publication apart.

    Whoever has a table that was moved away can tell them apart, and sees which rows were withdrawn since.
    """
    intents, events = release.journal.intents(), release.journal.events
    ends = sorted({int(event.body["seq"]) for event in events if event.event == PUBLISHED})
    shown = {intent.run_id: next((end for end in ends if intent.seq <= end), None) for intent in intents}
    runs = pa.table({"run_id": list(shown), _SHOWN: pa.array(shown.values(), pa.int64())})
    told = rows.join(F.broadcast(from_arrow(release.spark, runs)), "run_id")
    return count_groups(told, [*kept, _SHOWN])


def plan_addition(release: Release, publication: int, gate: Event, newest: int) -> Addition:
    """Plan what a publication adds: rows that wait, or those of a table that was moved away.

    ``newest``: the last run with a released row. Raises :class:`ReleaseError` for a table with rows that no publication
    lists.
    """
    last, public, version = release.journal.latest(PUBLISHED), release.public, int(gate.body["draws_version"])
    until = int(last.body["seq"]) if last else 0
    if last is not None and public.exists():
        return Addition(publication, version, gate.seq, until, max(newest, until), public.version())
    if public.exists() and not public.read().isEmpty():
        raise ReleaseError(
            f"public table {public.path}: has rows that no publication of release {release.name} lists. Move its "
            "directory away, or name another output.public."
        )
    return Addition(publication, version, gate.seq, 0, until or newest, public.version(), find_former(last))


def measure_addition(
    release: Release, addition: Addition, rows: DataFrame, kept: Sequence[str], terms: TableTerms
) -> TablePrivacy:
    """Measure what added ``rows`` are for each record. Raises :class:`InputError` for groups that are too small."""
    if addition.former is None:
        return require_rows(count_groups(rows, kept), terms)
    smallest, groups, total = _count_shown(release, rows, kept)
    privacy = sum_up(addition.former, require_rows((smallest, groups, total), terms))
    return replace(privacy, records=total, groups=groups, rows=min(privacy.rows, smallest))


def hide_ids(rows: DataFrame, name: str, shuffle: ShuffleSection) -> DataFrame:
    """Remove the ids from public rows, and add what the table promises to their column ``privacy``."""
    return add_promise(rows.select(*(column(field) for field in rows.columns if field != name)), shuffle)
