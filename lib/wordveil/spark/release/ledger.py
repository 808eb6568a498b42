"""The ledger: what every context costs, reserved before it is drawn and settled from what was drawn.

One row is one entry and nothing is ever changed: ``reserve`` adds to what is reserved; ``settle`` takes that back and
adds what was drawn, or nothing for a context that has been charged before; ``abandon`` takes it back and adds all of
it; ``refuse`` says why a record was not admitted. So what is reserved and what is spent are plain sums, for any
selection of rows, whatever crashed.

Three more kinds cost nothing by themselves. ``attribute`` charges a context to a further author, whose record it turned
out to be: it counts for that author and not again for the record. ``withdraw`` names a record that somebody asked to be
withdrawn, for ever. ``reset`` gives up the tables of a release that are gone. They stand here, and not with the draws,
because they must outlive those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from wordveil.spark.platform.delta_table import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

RESERVE, REFUSE, SETTLE, ABANDON = "reserve", "refuse", "settle", "abandon"
ATTRIBUTE, WITHDRAW, RESET = "attribute", "withdraw", "reset"
COSTS = (RESERVE, SETTLE, ABANDON, ATTRIBUTE)
"""The kinds of entries whose numbers count."""
SCHEMA = (
    "release string, tables string, record_id string, author string, run_id string, origin string, kind string, reason string,"
    "content_tag binary, epoch int, epoch_key string, reserved_tokens bigint, reserved_draws bigint, spent_tokens bigint,"
    "spent_draws bigint, price double, epsilon double, delta double, metric string, relation string"
)
"""``tables``: Delta's identifier of the release's draws. ``origin``: of an ``attribute`` entry, the run whose draw it
is. ``epoch_key``: the fingerprint of the noise epoch's key; the number says nothing, since a key file can be put back
and rotated again. ``price``: epsilon a token, under ``relation``; ``delta``: of a token. ``epsilon``: per unit of
``metric``, a draw. ``draws``: contexts.
"""
INDEXED = ("release", "run_id", "kind")
"""What entries are looked for by, file by file. In the other columns every file has a bit of everything, and their
statistics make an entry a third dearer.
"""

_TASKS_A_CORE = 4


def ledger_schema() -> StructType:
    """The table's columns."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(SCHEMA)
    assert isinstance(schema, StructType)
    return schema


@dataclass(frozen=True)
class Terms:
    """What one draw of a release costs: the constant part of its entries."""

    release: str
    tables: str
    run_id: str
    epoch: int
    epoch_key: str
    price: float
    epsilon: float
    delta: float
    metric: str
    relation: str

    @classmethod
    def naming(cls, release: str, tables: str, run_id: str) -> Terms:
        """A run's name, for entries that are looked for or that cost nothing."""
        return cls(release, tables, run_id, 0, "", 0.0, 0.0, 0.0, "", "")


class Ledger:
    """The ledger's table."""

    def __init__(self, store: DeltaTable) -> None:
        self.store = store
        self._was_empty = False
        """Whether nobody had written to the table before this object reserved."""

    def create(self) -> None:
        """Make the table where there is none. Raises :class:`ReleaseError` for one of another layout."""
        self.store.create(ledger_schema(), indexed=INDEXED)

    def entries(self, terms: Terms, *kinds: str) -> DataFrame:
        """A run's entries of some kinds."""
        from pyspark.sql import functions as F  # noqa: N812

        ours = (
            (F.col("run_id") == terms.run_id) & (F.col("release") == terms.release) & (F.col("tables") == terms.tables)
        )
        return self.store.read().where(ours & F.col("kind").isin(*kinds))

    def has(self, terms: Terms, *kinds: str) -> bool:
        """Whether there are any."""
        return not self.entries(terms, *kinds).isEmpty()

    def reserve(
        self,
        terms: Terms,
        decide: Callable[[DataFrame], DataFrame | None],
        corrected: Callable[[], DataFrame | None],
        *,
        fresh: bool = False,
    ) -> None:
        """Write what ``decide(ledger)`` reserves and refuses, on a ledger that nobody adds to meanwhile; once a run.

        ``fresh``: it is known that this run has reserved nothing so far. ``corrected`` gives record_id and author of
        records whose author may be another one than before: what was drawn of them is charged to that author too, in
        the same commit, and stands in the ledger that ``decide`` is given. None: there are none. ``decide`` gives the
        columns record_id, author, reason (null if admitted) and tokens, the most that can be drawn; or None.
        """
        from pyspark.sql import functions as F  # noqa: N812

        def rows(table: DataFrame, version: int) -> DataFrame | None:
            self._was_empty = version == 0
            if not fresh and self.has(terms, RESERVE, REFUSE, ATTRIBUTE):
                return None
            records = corrected()
            owed = None if records is None else make_attributions(table, terms, records)
            decided = decide(table if owed is None else table.unionByName(owed))
            if decided is None:
                return None
            admitted = F.col("reason").isNull()
            made = _entries(
                decided,
                terms,
                kind=F.when(admitted, F.lit(RESERVE)).otherwise(F.lit(REFUSE)),
                reason=F.col("reason"),
                reserved_tokens=F.when(admitted, F.col("tokens")).otherwise(F.lit(0)),
                reserved_draws=admitted.cast("bigint"),
            )
            return made if owed is None else _few_files(made.unionByName(owed))

        self.store.compare_and_append(rows, step="reserve")

    def settle(self, terms: Terms, drawn: DataFrame, *, fresh: bool = False) -> None:
        """Settle a run's reservations from ``drawn``: record_id, author, reserved, tokens (null if not drawn),
        content_tag; once a run.

        ``fresh``: it is known that this run has settled nothing so far, and that this process reserved what was drawn.
        Otherwise reservations are looked up: those that are there are taken back, and no others; what was drawn without
        one is charged all the same.
        """
        from pyspark.sql import functions as F  # noqa: N812

        def rows(table: DataFrame, _: int) -> DataFrame | None:
            if not fresh and self.has(terms, SETTLE):
                return None
            paid = find_charged(table, terms.release).where(F.col("epoch_key") == terms.epoch_key)
            known = paid.select("record_id", "content_tag", F.lit(True).alias("known")).distinct()
            made = drawn.withColumn("reservations", F.lit(1)) if fresh else self._with_reservations(terms, drawn)
            found = (
                made if self._was_empty or paid.isEmpty() else made.join(known, ["record_id", "content_tag"], "left")
            )
            if "known" not in found.columns:
                found = found.withColumn("known", F.lit(None).cast("boolean"))
            costs = F.col("tokens").isNotNull() & F.col("known").isNull()
            return _entries(
                found,
                terms,
                kind=F.lit(SETTLE),
                content_tag=F.when(F.col("tokens").isNotNull(), F.col("content_tag")),
                reserved_tokens=-F.col("reserved"),
                reserved_draws=-F.col("reservations"),
                spent_tokens=F.when(costs, F.col("tokens")).otherwise(F.lit(0)),
                spent_draws=costs.cast("bigint"),
            )

        self.store.compare_and_append(rows, step="settle")

    def _with_reservations(self, terms: Terms, drawn: DataFrame) -> DataFrame:
        """``drawn`` with what was truly reserved for it, and rows for reservations of which nothing was drawn."""
        from pyspark.sql import functions as F  # noqa: N812

        there = self.entries(terms, RESERVE).select(
            "record_id",
            F.col("author").alias("reserved_author"),
            F.col("reserved_tokens").alias("__reserved"),
            F.lit(1).alias("__reservations"),
        )
        found = drawn.join(there, "record_id", "full").withColumn("author", F.coalesce("author", "reserved_author"))
        amounts = {
            "reserved": F.coalesce("__reserved", F.lit(0)),
            "reservations": F.coalesce("__reservations", F.lit(0)),
        }
        return found.withColumns(amounts).drop("reserved_author", "__reserved", "__reservations")

    def abandon(self, terms: Terms) -> None:
        """Charge all that a run has reserved; once a run."""
        from pyspark.sql import functions as F  # noqa: N812

        def rows(_: DataFrame, __: int) -> DataFrame | None:
            if self.has(terms, SETTLE, ABANDON):
                return None
            reserved = {f"reserved_{unit}": -F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            spent = {f"spent_{unit}": F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            entries = self.entries(terms, RESERVE)
            return entries.withColumns({"kind": F.lit(ABANDON), **spent, **reserved})

        self.store.compare_and_append(rows, step="abandon")

    def withdraw(self, terms: Terms, records: DataFrame) -> None:
        """Write down that ``records`` (record_id) are withdrawn for ever; once a run."""
        from pyspark.sql import functions as F  # noqa: N812

        def rows(_: DataFrame, __: int) -> DataFrame | None:
            return (
                None
                if self.has(terms, WITHDRAW)
                else _marks(records.withColumn("author", F.lit(None)), terms, WITHDRAW)
            )

        self.store.compare_and_append(rows, step="withdraw")

    def withdrawn(self, release: str) -> DataFrame:
        """The records of a release that somebody asked to be withdrawn, whatever became of its tables:
        ``record_id``.
        """
        from pyspark.sql import functions as F  # noqa: N812

        return (
            self.store.read()
            .where((F.col("release") == release) & (F.col("kind") == WITHDRAW))
            .select("record_id")
            .distinct()
        )

    def knows(self, release: str) -> bool:
        """Whether the release has entries, under whichever tables."""
        from pyspark.sql import functions as F  # noqa: N812

        return self.store.exists() and not self.store.read().where(F.col("release") == release).isEmpty()

    def tables_of(self, release: str) -> list[str]:
        """The identifiers of the tables that a release has drawn to or charged for, without those that were given
        up.
        """
        from pyspark.sql import functions as F  # noqa: N812

        if not self.store.exists():
            return []
        self.store.check()
        ours = self.store.read().where(F.col("release") == release)
        kinds = ours.groupBy("tables").agg(F.collect_set("kind").alias("kinds"))
        return sorted(row.tables for row in kinds.collect() if RESET not in row.kinds)

    def reset(self, release: str, run_id: str, tables: list[str]) -> None:
        """Give up tables of a release that are gone: another first run may make new ones."""
        import pyarrow as pa

        gone = pa.table({"record_id": pa.nulls(1, pa.string()), "author": pa.nulls(1, pa.string())})
        terms = [Terms.naming(release, name, run_id) for name in tables]

        def rows(table: DataFrame, _: int) -> DataFrame | None:
            row = table.sparkSession.createDataFrame(gone)
            made = [_marks(row, one, RESET) for one in terms]
            frame = made[0]
            for other in made[1:]:
                frame = frame.unionByName(other)
            return frame

        self.store.compare_and_append(rows, step="reset")


def find_charged(table: DataFrame, release: str) -> DataFrame:
    """The contexts of a release that have been charged: one row each."""
    from pyspark.sql import functions as F  # noqa: N812

    return table.where((F.col("release") == release) & (F.col("kind") == SETTLE) & (F.col("spent_draws") > 0))


def make_attributions(table: DataFrame, terms: Terms, records: DataFrame) -> DataFrame:
    """Entries that charge what was drawn of ``records`` (record_id, author) to those authors, as far as it has not
    been.

    Of each record all contexts of the release that have been charged, to whomever, at the price they were charged at.
    """
    from pyspark.sql import functions as F  # noqa: N812

    ours = table.where((F.col("release") == terms.release) & (F.col("spent_draws") > 0))
    entries = ours.withColumn("origin", F.coalesce("origin", "run_id"))
    now = records.where(F.col("author").isNotNull()).select("record_id", F.col("author").alias("now"))
    drawn = entries.where(F.col("kind").isin(SETTLE, ABANDON)).join(now, "record_id")
    names = {"record_id": "record_id", "origin": "origin", "content_tag": "content_tag", "author": "now"}
    done = (
        entries.where(F.col("author").isNotNull())
        .select(*(F.col(name).alias(f"done_{name}") for name in names))
        .distinct()
    )
    same = [F.col(there).eqNullSafe(F.col(f"done_{name}")) for name, there in names.items()]
    owed = drawn.join(done, same, "left_anti")
    fixed = {
        "author": F.col("now"),
        "kind": F.lit(ATTRIBUTE),
        "run_id": F.lit(terms.run_id),
        "tables": F.lit(terms.tables),
    }
    values = owed.withColumns({**fixed, "reserved_tokens": F.lit(0), "reserved_draws": F.lit(0)})
    return values.select(
        *(F.col(field.name).cast(field.dataType).alias(field.name) for field in ledger_schema().fields)
    )


def _marks(records: DataFrame, terms: Terms, kind: str) -> DataFrame:
    """Entries of a kind that costs nothing: what a draw would cost is left out."""
    from pyspark.sql import functions as F  # noqa: N812

    none = {name: F.lit(None) for name in ("epoch", "epoch_key", "price", "epsilon", "delta", "metric", "relation")}
    return _entries(records, terms, kind=F.lit(kind), **none)


def _entries(frame: DataFrame, terms: Terms, **columns: Column) -> DataFrame:
    """``frame`` (record_id, author and what ``columns`` use) as entries."""
    from pyspark.sql import functions as F  # noqa: N812

    constants = asdict(terms)
    made: list[Column] = []
    for field in ledger_schema().fields:
        if field.name in columns:
            value = columns[field.name]
        elif field.name in constants:
            value = F.lit(constants[field.name])
        elif field.name in ("record_id", "author"):
            value = F.col(field.name)
        else:
            value = F.lit(0 if field.name.startswith(("reserved", "spent")) else None)
        made.append(value.cast(field.dataType).alias(field.name))
    return _few_files(frame.select(*made))


def _few_files(entries: DataFrame) -> DataFrame:
    """Where texts are read tasks are small, and many; a file for each of them would cost more than the entries in
    it.
    """
    return entries.coalesce(_TASKS_A_CORE * entries.sparkSession.sparkContext.defaultParallelism)
