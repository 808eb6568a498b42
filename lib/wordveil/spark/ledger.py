"""The ledger: what every context costs, reserved before it is drawn and settled from what was drawn.

One row is one entry and nothing is ever changed: ``reserve`` adds to what is reserved; ``settle`` takes that back and adds
what was drawn, or nothing for a context that has been charged before; ``abandon`` takes it back and adds all of it;
``refuse`` says why a record was not admitted. So what is reserved and what is spent are plain sums, for any selection of
rows, whatever crashed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wordveil.spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

RESERVE, REFUSE, SETTLE, ABANDON = "reserve", "refuse", "settle", "abandon"
SCHEMA = (
    "release string, record_id string, author string, run_id string, kind string, reason string, content_tag binary, epoch int,"
    "reserved_tokens bigint, reserved_draws bigint, spent_tokens bigint, spent_draws bigint,"
    "price double, epsilon double, metric string, relation string"
)
"""``price``: epsilon a token, under ``relation``. ``epsilon``: per unit of ``metric``, a draw. ``draws``: contexts."""
INDEXED = ("release", "run_id", "kind")
"""What entries are looked for by, file by file. In the other columns every file has a bit of everything, and their statistics make an entry a third dearer."""

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
    run_id: str
    epoch: int
    price: float
    epsilon: float
    metric: str
    relation: str


class Ledger:
    """The ledger's table."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._was_empty = False
        """Whether nobody had written to the table before this object reserved."""

    def create(self) -> None:
        """Make the table where there is none. Raises :class:`ReleaseError` for one of another layout."""
        self.store.create(ledger_schema(), indexed=INDEXED)

    def entries(self, release: str, run_id: str, *kinds: str) -> DataFrame:
        """A run's entries of some kinds."""
        from pyspark.sql import functions as F  # noqa: N812

        table = self.store.read()
        return table.where((F.col("run_id") == run_id) & (F.col("release") == release) & F.col("kind").isin(*kinds))

    def has(self, release: str, run_id: str, *kinds: str) -> bool:
        """Whether there are any."""
        return not self.entries(release, run_id, *kinds).isEmpty()

    def reserve(self, terms: Terms, decide: Callable[[DataFrame], DataFrame | None], *, fresh: bool = False) -> None:
        """Write what ``decide(ledger)`` reserves and refuses, on a ledger that nobody adds to meanwhile; once a run.

        ``fresh``: it is known that this run has reserved nothing so far.
        ``decide`` gives the columns record_id, author, reason (null if admitted) and tokens, the most that can be drawn; or None.
        """
        from pyspark.sql import functions as F  # noqa: N812

        def rows(table: DataFrame, version: int) -> DataFrame | None:
            self._was_empty = version == 0
            if not fresh and self.has(terms.release, terms.run_id, RESERVE, REFUSE):
                return None
            decided = decide(table)
            if decided is None:
                return None
            admitted = F.col("reason").isNull()
            return _entries(
                decided,
                terms,
                kind=F.when(admitted, F.lit(RESERVE)).otherwise(F.lit(REFUSE)),
                reason=F.col("reason"),
                reserved_tokens=F.when(admitted, F.col("tokens")).otherwise(F.lit(0)),
                reserved_draws=admitted.cast("bigint"),
            )

        self.store.swap(rows, step="reserve")

    def settle(self, terms: Terms, drawn: DataFrame, *, fresh: bool = False) -> None:
        """Settle a run's reservations from ``drawn``: record_id, author, reserved, tokens (null if not drawn), content_tag; once a run.

        ``fresh``: it is known that this run has settled nothing so far.
        """
        from pyspark.sql import functions as F  # noqa: N812

        def rows(table: DataFrame, _: int) -> DataFrame | None:
            if not fresh and self.has(terms.release, terms.run_id, SETTLE):
                return None
            paid = charged(table, terms.release).where(F.col("epoch") == terms.epoch)
            known = paid.select("record_id", "content_tag", F.lit(True).alias("known"))
            found = drawn if self._was_empty or paid.isEmpty() else drawn.join(known, ["record_id", "content_tag"], "left")
            if "known" not in found.columns:
                found = found.withColumn("known", F.lit(None).cast("boolean"))
            costs = F.col("tokens").isNotNull() & F.col("known").isNull()
            return _entries(
                found,
                terms,
                kind=F.lit(SETTLE),
                content_tag=F.when(F.col("tokens").isNotNull(), F.col("content_tag")),
                reserved_tokens=-F.col("reserved"),
                reserved_draws=F.lit(-1),
                spent_tokens=F.when(costs, F.col("tokens")).otherwise(F.lit(0)),
                spent_draws=costs.cast("bigint"),
            )

        self.store.swap(rows, step="settle")

    def abandon(self, release: str, run_id: str) -> None:
        """Charge all that a run has reserved; once a run."""
        from pyspark.sql import functions as F  # noqa: N812

        def rows(_: DataFrame, __: int) -> DataFrame | None:
            if self.has(release, run_id, SETTLE, ABANDON):
                return None
            reserved = {f"reserved_{unit}": -F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            spent = {f"spent_{unit}": F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            entries = self.entries(release, run_id, RESERVE)
            return entries.withColumns({"kind": F.lit(ABANDON), **spent, **reserved})

        self.store.swap(rows, step="abandon")


def charged(table: DataFrame, release: str) -> DataFrame:
    """The contexts of a release that have been charged: one row each."""
    from pyspark.sql import functions as F  # noqa: N812

    return table.where((F.col("release") == release) & (F.col("kind") == SETTLE) & (F.col("spent_draws") > 0))


def _entries(frame: DataFrame, terms: Terms, **columns: Column) -> DataFrame:
    """``frame`` (record_id, author and what ``columns`` use) as entries."""
    from pyspark.sql import functions as F  # noqa: N812

    constants = {
        "release": terms.release,
        "run_id": terms.run_id,
        "epoch": terms.epoch,
        "price": terms.price,
        "epsilon": terms.epsilon,
        "metric": terms.metric,
        "relation": terms.relation,
    }
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
    # Where texts are read tasks are small, and many; a file for each of them would cost more than the entries in it.
    return frame.select(*made).coalesce(_TASKS_A_CORE * frame.sparkSession.sparkContext.defaultParallelism)
