"""Ledger: the cost of every context, reserved before it is drawn and settled after the draw.

One row is one entry, and no entry is ever changed. ``reserve`` adds to the reserved cost. ``settle`` takes that back
and adds the cost of the draws, or nothing for a context that has been charged before. ``abandon`` takes it back and
charges all of it. ``refuse`` has the reason why a record was not admitted; ``readmit`` marks one that was admitted
because its context has been charged, if lengths are visible. So reserved and spent costs are plain sums, for any
selection of rows, even after a crash. :func:`count_used` defines what counts towards a limit.

Four more kinds cost nothing by themselves. ``attribute`` charges a context to a further author, to whom its record
turned out to belong: it counts for that author, and not again for the record. ``withdraw`` names a record whose
permanent withdrawal was requested. ``reset`` gives up the lost tables of a release. ``table`` has the epsilon and delta
of what one publication of a shuffled release adds, for each of its records. These entries must outlive the draws, so
they are in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.errors import ReleaseError
from wordveil.privacy.events import ReleaseTerms
from wordveil.privacy.guarantees import CORPUS_METRIC
from wordveil.privacy.table import TablePrivacy
from wordveil.spark.platform.delta_table import Decision, DeltaTable
from wordveil.spark.platform.versions import from_arrow, parse_schema
from wordveil.spark.release.latest import filter_by_ids

RESERVE, REFUSE, READMIT = "reserve", "refuse", "readmit"
SETTLE, ABANDON = "settle", "abandon"
ATTRIBUTE, WITHDRAW, RESET = "attribute", "withdraw", "reset"
TABLE = "table"
COSTS = (RESERVE, SETTLE, ABANDON, ATTRIBUTE)
"""Kinds of entries whose numbers count."""
SCHEMA = (
    "release string, tables string, record_id string, author string, run_id string, origin string, kind string, reason "
    "string,content_tag binary, epoch int, epoch_key string, reserved_tokens bigint, reserved_draws bigint, "
    "spent_tokens bigint,spent_draws bigint, price double, epsilon double, delta double, metric string, relation string"
)
"""Columns of the ledger. ``tables``: Delta's identifier of the release's draws. ``origin``: of an ``attribute`` entry,
the run that drew the context. ``epoch_key``: the fingerprint of the noise epoch's key; the epoch's number is not
enough, since a key file can be restored and rotated again. ``price``: epsilon per token, under ``relation``.
``delta``: per token. ``epsilon``: of a draw, per unit of ``metric``. ``draws``: contexts.
"""
INDEXED = ("release", "run_id", "kind")
"""Columns by which Delta can skip files. The values of the others are spread over all files, and their statistics would
make an entry a third more expensive.
"""

_TASKS_A_CORE = 4


def ledger_schema() -> StructType:
    """Return the table's columns."""
    return parse_schema(SCHEMA)


@dataclass(frozen=True)
class Terms:
    """Cost of one draw of a release: the constant part of its entries."""

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
    def of(cls, terms: ReleaseTerms, *, tables: str, run_id: str, epoch: int, epoch_key: str) -> Terms:
        """Make the cost of a draw under ``terms``, for a run in a noise epoch."""
        guarantee = terms.guarantee
        costs = (guarantee.pure, guarantee.epsilon, guarantee.delta, guarantee.metric.identifier)
        return cls(terms.release, tables, run_id, epoch, epoch_key, *costs, relation=str(terms.relation))

    @classmethod
    def naming(cls, release: str, tables: str, run_id: str) -> Terms:
        """Make the name of a run, to find its entries or to write entries that cost nothing."""
        return cls(release, tables, run_id, 0, "", 0.0, 0.0, 0.0, "", "")


class Ledger:
    """Table of the ledger."""

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def create(self) -> None:
        """Create the table if it is missing. Raises :class:`ReleaseError` for a table of another format."""
        self.table.create(ledger_schema(), indexed=INDEXED)

    def entries(self, terms: Terms, *kinds: str) -> DataFrame:
        """Select a run's entries of these ``kinds``."""
        ours = [F.col(name) == getattr(terms, name) for name in ("run_id", "release", "tables")]
        return self.table.read().where(ours[0] & ours[1] & ours[2] & F.col("kind").isin(*kinds))

    def has(self, terms: Terms, *kinds: str) -> bool:
        """Return whether a run has entries of these ``kinds``."""
        return not self.entries(terms, *kinds).isEmpty()

    def has_reserved(self, terms: Terms) -> bool:
        """Return whether a run has reserved, or decided that there is nothing to reserve for some records."""
        return self.has(terms, RESERVE, REFUSE, READMIT, ATTRIBUTE)

    def reserve(
        self,
        terms: Terms,
        decide: Callable[[DataFrame], tuple[DataFrame, int]],
        find_corrected: Callable[[], DataFrame | None],
        *,
        is_fresh: bool = False,
    ) -> int:
        """Write, once for each run, the reservations and refusals of ``decide(ledger)``, without other writers.

        ``decide``: takes the ledger's entries and returns record_id, author, reason (null if the record is admitted),
        tokens, the most that can be drawn, and is_charged (nothing is reserved for it); and the number of records over
        a budget that fails the run. ``find_corrected``: gives record_id and author of records that may have another
        author than before, or None. Their draws are charged to that author too, in the same commit, and ``decide`` gets
        these entries too. ``is_fresh``: this run has reserved nothing so far.

        Returns that number; if it is not 0, nothing was written.
        """

        def decide_entries(ledger: DataFrame, _: int) -> Decision[int]:
            if not is_fresh and self.has_reserved(terms):
                return Decision(None, 0)
            corrected = find_corrected()
            owed = None if corrected is None else make_attributions(ledger, terms, corrected)
            records, exceeding = decide(ledger if owed is None else ledger.unionByName(owed))
            if exceeding:
                return Decision(None, exceeding)
            is_admitted, is_charged = F.col("reason").isNull(), F.col("is_charged")
            is_priced = is_admitted & ~is_charged
            entries = _make_entries(
                records,
                terms,
                kind=F.when(~is_admitted, REFUSE).when(is_charged, READMIT).otherwise(RESERVE),
                reason=F.col("reason"),
                reserved_tokens=F.when(is_priced, F.col("tokens")).otherwise(F.lit(0)),
                reserved_draws=is_priced.cast("bigint"),
            )
            return Decision(entries if owed is None else _merge_tasks(entries.unionByName(owed)), 0)

        return self.table.compare_and_append(decide_entries, step="reserve")

    def settle(
        self,
        terms: Terms,
        drawn: DataFrame,
        *,
        is_fresh: bool = False,
        is_first: bool = False,
        is_marked: bool = False,
        number: int | None = None,
    ) -> None:
        """Settle the reservations of a run, once.

        ``drawn``: record_id, author, reserved (null if nothing was), tokens (null if the record was not drawn) and
        content_tag; ``number``: their largest number, if known. ``is_fresh``: this run has settled nothing so far, and
        this process made the reservations. Otherwise reservations are looked up: only those that exist are taken back,
        and draws without one are charged too. ``is_first``: the ledger had no entry of the release when the run began.
        ``is_marked``: nothing was reserved for a context that has been charged before, so that a fresh run need not
        look for these again.
        """

        def decide(ledger: DataFrame, _: int) -> Decision[None]:
            if not is_fresh and self.has(terms, SETTLE):
                return Decision(None, None)
            costs = F.col("tokens").isNotNull()
            if is_fresh:
                count = F.col("reserved").isNotNull().cast("bigint")
                reserved = drawn.withColumns({"reservations": count, "reserved": F.coalesce("reserved", F.lit(0))})
            else:
                reserved = self._with_reservations(terms, drawn)
            if is_fresh and is_marked:
                costs &= F.col("reservations") > 0
            elif not is_first:
                reserved = mark_charged(reserved, ledger, terms, number)
                costs &= ~F.col("is_charged")
            entries = _make_entries(
                reserved,
                terms,
                kind=F.lit(SETTLE),
                content_tag=F.when(F.col("tokens").isNotNull(), F.col("content_tag")),
                reserved_tokens=-F.col("reserved"),
                reserved_draws=-F.col("reservations"),
                spent_tokens=F.when(costs, F.col("tokens")).otherwise(F.lit(0)),
                spent_draws=costs.cast("bigint"),
            )
            return Decision(entries, None)

        self.table.compare_and_append(decide, step="settle")

    def _with_reservations(self, terms: Terms, drawn: DataFrame) -> DataFrame:
        """Add the real reservations to ``drawn``, and rows for reservations without draws."""
        reservations = self.entries(terms, RESERVE).select(
            "record_id",
            F.col("author").alias("__author"),
            F.col("reserved_tokens").alias("__reserved"),
            F.lit(1).alias("__count"),
        )
        filled = {"reserved": F.coalesce("__reserved", F.lit(0)), "reservations": F.coalesce("__count", F.lit(0))}
        joined = drawn.join(reservations, "record_id", "full")
        return joined.withColumns({"author": F.coalesce("author", "__author"), **filled})

    def abandon(self, terms: Terms) -> None:
        """Charge all that a run has reserved, once."""

        def decide(_: DataFrame, __: int) -> Decision[None]:
            if self.has(terms, SETTLE, ABANDON):
                return Decision(None, None)
            reserved = {f"reserved_{unit}": -F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            spent = {f"spent_{unit}": F.col(f"reserved_{unit}") for unit in ("tokens", "draws")}
            entries = self.entries(terms, RESERVE)
            return Decision(entries.withColumns({"kind": F.lit(ABANDON), **spent, **reserved}), None)

        self.table.compare_and_append(decide, step="abandon")

    def withdraw(self, terms: Terms, records: DataFrame) -> None:
        """Record that ``records`` (record_id) are withdrawn permanently, each once for each run."""

        def decide(_: DataFrame, __: int) -> Decision[None]:
            new = records.join(self.entries(terms, WITHDRAW).select("record_id"), "record_id", "left_anti")
            if new.isEmpty():
                return Decision(None, None)
            return Decision(_make_marks(new.withColumn("author", F.lit(None)), terms, WITHDRAW), None)

        self.table.compare_and_append(decide, step="withdraw")

    def withdrawn(self, release: str) -> DataFrame:
        """List ``record_id`` of a release's requested withdrawals, maybe repeated, even if its tables were lost."""
        entries = self.table.read().where((F.col("release") == release) & (F.col("kind") == WITHDRAW))
        return entries.select("record_id")

    def knows(self, release: str) -> bool:
        """Return whether the release has entries, whichever tables it drew to."""
        return self.table.exists() and not self.table.read().where(F.col("release") == release).isEmpty()

    def tables_of(self, release: str) -> list[str]:
        """List the identifiers of the tables that a release has drawn to or charged for, without those given up."""
        if not self.table.exists():
            return []
        self.table.check()
        ours = self.table.read().where(F.col("release") == release)
        kinds = ours.groupBy("tables").agg(F.collect_set("kind").alias("kinds"))
        return sorted(row.tables for row in kinds.collect() if RESET not in row.kinds)

    def record_table(self, terms: Terms, privacy: TablePrivacy) -> None:
        """Record once what a publication of a shuffled release is for each of its records."""
        costs = {"price": privacy.local_epsilon, "epsilon": privacy.epsilon, "delta": privacy.delta}
        rows = f"{privacy.records} rows, {privacy.rows} in the smallest of {privacy.groups} groups"

        def decide(ledger: DataFrame, _: int) -> Decision[None]:
            if self.has(terms, TABLE):
                return Decision(None, None)
            filled = {name: F.lit(value) for name, value in {**costs, "reason": rows}.items()}
            return Decision(_make_marks(_make_nobody(ledger), terms, TABLE).withColumns(filled), None)

        self.table.compare_and_append(decide, step="table")

    def reset(self, release: str, run_id: str, tables: list[str]) -> None:
        """Give up ``tables`` of a release that are lost, so that its next run may make new ones."""

        def decide(ledger: DataFrame, _: int) -> Decision[None]:
            row = _make_nobody(ledger)
            marks = (_make_marks(row, Terms.naming(release, name, run_id), RESET) for name in tables)
            return Decision(reduce(DataFrame.unionByName, marks), None)

        self.table.compare_and_append(decide, step="reset")


def count_returned(unit: Literal["tokens", "draws"]) -> Column:
    """Count what an entry takes back for a context that was charged before: it adds nothing to the spent cost."""
    is_repeated = F.col("content_tag").isNotNull() & (F.col("spent_draws") == 0)
    return F.when(is_repeated, -F.least(F.col(f"reserved_{unit}"), F.lit(0))).otherwise(F.lit(0))


def count_used(unit: Literal["tokens", "draws"]) -> Column:
    """Count what an entry adds to a limited sum: spent and reserved costs, and a version that came back.

    Otherwise a later decision, over this record or another one, would depend on which texts are equal.
    """
    return F.col(f"reserved_{unit}") + F.col(f"spent_{unit}") + count_returned(unit)


def make_attributions(ledger: DataFrame, terms: Terms, records: DataFrame) -> DataFrame:
    """Make entries that charge the draws of ``records`` (record_id, author) to these authors, unless already charged.

    They cover all contexts of a record that the release has charged to anyone, at the price of that time. Versions that
    came back are reserved and taken back, so that they count for the new author and are not charged.
    """
    is_returned = count_returned("draws") > 0
    ours = ledger.where((F.col("release") == terms.release) & ((F.col("spent_draws") > 0) | is_returned))
    entries = ours.withColumn("origin", F.coalesce("origin", "run_id"))
    now = records.where(F.col("author").isNotNull()).select("record_id", F.col("author").alias("now"))
    drawn = entries.where(F.col("kind").isin(SETTLE, ABANDON)).join(now, "record_id")
    names = {"record_id": "record_id", "origin": "origin", "content_tag": "content_tag", "author": "now"}
    charged = entries.where(F.col("author").isNotNull())
    charged = charged.select(*(F.col(name).alias(f"charged_{name}") for name in names)).distinct()
    same = [F.col(column).eqNullSafe(F.col(f"charged_{name}")) for name, column in names.items()]
    signs = F.when(is_returned, F.array(F.lit(1), F.lit(-1))).otherwise(F.array(F.lit(0)))
    owed = drawn.join(charged, same, "left_anti").withColumn("sign", F.explode(signs))
    owed = owed.withColumns(
        {
            "author": F.col("now"),
            "kind": F.lit(ATTRIBUTE),
            "run_id": F.lit(terms.run_id),
            "tables": F.lit(terms.tables),
            "reserved_tokens": -F.col("sign") * F.col("reserved_tokens"),
            "reserved_draws": -F.col("sign") * F.col("reserved_draws"),
        }
    )
    return _conform(owed, {name: F.col(name) for name in owed.columns})


def mark_charged(records: DataFrame, ledger: DataFrame, terms: Terms, number: int | None = None) -> DataFrame:
    """Add ``is_charged`` to ``records`` (record_id, content_tag; at most ``number``): the epoch charged the context."""
    # The contexts of few records are found before they are shuffled.
    ids = records.select(F.col("record_id").alias("__id"))
    # An abandoned run names no content.
    is_spent = (F.col("release") == terms.release) & (F.col("kind") == SETTLE) & (F.col("spent_draws") > 0)
    spent = ledger.where(is_spent & (F.col("epoch_key") == terms.epoch_key))
    charged = filter_by_ids(spent, "record_id", ids, number=number)
    charged = charged.select("record_id", "content_tag", F.lit(True).alias("known")).distinct()
    marked = records.join(charged, ["record_id", "content_tag"], "left")
    return marked.withColumn("is_charged", F.col("known").isNotNull()).drop("known")


def _make_nobody(ledger: DataFrame) -> DataFrame:
    nobody = pa.table({name: pa.nulls(1, pa.string()) for name in ("record_id", "author")})
    return from_arrow(ledger.sparkSession, nobody)


def _make_marks(records: DataFrame, terms: Terms, kind: str) -> DataFrame:
    """Make entries of a kind that costs nothing: the costs of a draw are left out."""
    none = {name: F.lit(None) for name in ("epoch", "epoch_key", "price", "epsilon", "delta", "metric", "relation")}
    return _make_entries(records, terms, kind=F.lit(kind), **none)


def _make_entries(frame: DataFrame, terms: Terms, **columns: Column) -> DataFrame:
    """Make entries of ``frame`` (record_id, author and the columns that ``columns`` use)."""
    amounts = dict.fromkeys(("reserved_tokens", "reserved_draws", "spent_tokens", "spent_draws"), F.lit(0))
    constants = {name: F.lit(value) for name, value in asdict(terms).items()}
    known = {"record_id": F.col("record_id"), "author": F.col("author"), **amounts, **constants, **columns}
    return _merge_tasks(_conform(frame, known))


def _conform(frame: DataFrame, known: Mapping[str, Column]) -> DataFrame:
    """Select the ledger's columns: those that are ``known``, and null for the others."""
    fields = ledger_schema().fields
    return frame.select(*(known.get(one.name, F.lit(None)).cast(one.dataType).alias(one.name) for one in fields))


def _merge_tasks(entries: DataFrame) -> DataFrame:
    """Merge ``entries`` into few tasks: a file for each of many small ones would cost more than its entries."""
    return entries.coalesce(_TASKS_A_CORE * entries.sparkSession.sparkContext.defaultParallelism)


class RecordLimitError(ReleaseError):
    """Error for a run with ``over`` records more than may still be drawn from the weights. Nothing was charged."""

    def __init__(self, message: str, over: int) -> None:
        super().__init__(message)
        self.over = over


def check_record_limit(candidates: DataFrame, ledger: DataFrame, terms: Terms, max_records: int) -> None:
    """Check that the ledger has room for a run's draws from weights that the private corpus trained.

    Every record pays for ``mechanism.max_records`` draws from the first one on, so that more must never be drawn: not
    in this run, and not in another run or release of the ledger. All draws of a ledger from such weights have one
    metric (:func:`wordveil.privacy.guarantees.charge_corpus`), by which they are counted. A draw under another name
    would be from other weights, or at another price, which records that were charged before have not paid for.

    ``candidates``: with ``reason``, null if admitted. ``ledger``: entries of all releases. ``terms``: cost of a draw of
    the run. Raises :class:`RecordLimitError` if the ledger has draws from such weights under another metric, or too
    many.
    """
    drawn = ledger.where(F.col("kind").isin(RESERVE, SETTLE, ABANDON) & F.col("metric").startswith(f"{CORPUS_METRIC}:"))
    counted = drawn.groupBy("metric").agg(F.sum(count_used("draws")).alias("draws"))
    before = {row.metric: int(row.draws) for row in counted.collect() if row.draws}
    asked = candidates.where(F.col("reason").isNull()).count()
    if others := sorted(before.keys() - {terms.metric}):
        raise RecordLimitError(
            f"mechanism.max_records = {max_records}: the ledger has draws from a generator of a private corpus at "
            f"another price ({others[0]}; this run's is {terms.metric}). Weights, mechanism.epsilon, text.n_max and "
            "mechanism.max_records must be the same for all releases of a ledger, because its records have paid for "
            "no others. Use those of the first run. For another corpus, name another ledger.path.",
            asked,
        )
    used = before.get(terms.metric, 0)
    if (over := used + asked - max_records) > 0:
        raise RecordLimitError(
            f"mechanism.max_records = {max_records}: {used:,} records have been drawn from these weights, over all "
            f"releases of the ledger, and this run asks for {asked:,} more, {over:,} too many. Nothing was drawn or "
            "charged. Each record has paid for max_records draws and no more, so it cannot be raised. Leave records "
            "out with input.where, or go on with weights that public text trained.",
            over,
        )
