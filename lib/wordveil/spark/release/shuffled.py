"""Publication of a shuffled release: it adds the rows of records that no earlier publication has, in a secret order.

What a publication adds is in the journal before it is written, so that one that was killed adds the same rows, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.bundles import PublishedFacts
from wordveil.config.schema import ShuffleSection
from wordveil.privacy.table import TablePrivacy, TableTerms
from wordveil.records.sanitiser import RecordSettings
from wordveil.records.schema import RELEASED
from wordveil.release.events import ADDING, PUBLISHED, Event
from wordveil.spark.platform.columns import column
from wordveil.spark.release.ledger import Terms
from wordveil.spark.release.tables import Release
from wordveil.spark.sanitise.job import add_promise, count_groups, require_rows
from wordveil.spark.sanitise.layout import arrange_rows


@dataclass(frozen=True)
class Addition:
    """Rows that a publication adds: the newest draws at ``draws_version`` of runs after ``since``.

    ``gate``: the number of the event that passed them. ``public_version``: of the public table before.
    """

    publication: int
    draws_version: int
    gate: int
    since: int
    public_version: int


def find_unfinished(release: Release) -> Addition | None:
    """Find the addition of a publication that was killed, or None; None too if its table was moved away since."""
    begun, done = release.journal.latest(ADDING), release.journal.latest(PUBLISHED)
    if begun is None or (done is not None and done.seq > begun.seq):
        return None
    addition = Addition(**begun.body)
    return addition if addition.public_version < 0 or release.public.exists() else None


def make_terms(shuffle: ShuffleSection, local: float, settings: RecordSettings, facts: PublishedFacts) -> TableTerms:
    """Make the terms of a release's additions. ``local``: the pure loss of a record; ``facts``: of the bundle."""
    symbols = facts.responses if settings.policy.n_max == 1 else None
    return TableTerms(local, symbols, shuffle.epsilon, shuffle.delta)


def find_waiting(release: Release, version: int, since: int) -> DataFrame:
    """Find the released rows at a version of the draws that a publication after the run ``since`` adds.

    A later run copies the row of a record whose author was corrected, with the id of the run that drew it.
    """
    runs = [intent.run_id for intent in release.journal.intents() if intent.seq > since]
    return release.newest_rows(version).where(f"status = '{RELEASED}'").where(F.col("run_id").isin(runs))


def measure_waiting(release: Release, version: int, kept: Sequence[str], terms: TableTerms) -> float | None:
    """Compute the epsilon of the rows that wait for publication, 0 without any; None if a group is too small."""
    last = release.journal.latest(PUBLISHED)
    waiting = find_waiting(release, version, published_until(release, last))
    smallest, _, total = count_groups(waiting, kept)
    if not total:
        return 0.0
    return terms.measure(smallest).epsilon if terms.delta * total < 1 and terms.holds_for(smallest) else None


def published_until(release: Release, last: Event | None) -> int:
    """Return the last run whose rows the public table has; 0 before the first, and if the table was moved away."""
    return int(last.body["seq"]) if last is not None and release.public.exists() else 0


def add_rows(
    release: Release,
    addition: Addition,
    rows: DataFrame,
    kept: Sequence[str],
    terms: TableTerms,
    prepare: Callable[[DataFrame], DataFrame],
) -> tuple[int, TablePrivacy]:
    """Add the waiting ``rows`` once; return the public table's version and what the addition is for each record.

    ``prepare``: makes public rows, and the table if it is missing. Raises :class:`InputError` for groups that are too
    small; nothing is written then.
    """
    public, output, journal = release.public, release.home.output, release.journal
    shuffle = output.shuffle
    assert shuffle is not None
    privacy = require_rows(counted := count_groups(rows, kept), terms)
    if find_unfinished(release) is None:
        journal.add(ADDING, "", lambda _: asdict(addition))
    naming = Terms.naming(release.name, release.draws.identifier(), f"publication-{addition.publication}")
    release.ledger.record_table(naming, privacy)
    token = f"wordveil publication {addition.publication} of {release.name}"
    written = public.find_commit(token, addition.public_version)
    if written is None:
        arranged = arrange_rows(
            prepare(rows), None, release.home.id, number=counted[2], partition_by=output.partition_by
        )
        without_ids = hide_ids(arranged, release.home.id, shuffle)
        written = public.add(without_ids, records_per_file=output.records_per_file, token=token)
    return written, privacy


def hide_ids(rows: DataFrame, name: str, shuffle: ShuffleSection) -> DataFrame:
    """Remove the ids from public rows, and add what the table promises to their column ``privacy``."""
    return add_promise(rows.select(*(column(field) for field in rows.columns if field != name)), shuffle)
