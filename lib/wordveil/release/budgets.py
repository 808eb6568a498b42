"""Budgets: limits on what a record, an author and a corpus may cost, and checks for limits that no run can meet.

A cost is a whole number times a price: tokens times the price of a token, or contexts times epsilon. Sums do not depend
on the order of additions. Whole numbers at one price are added first; then comes one multiplication in float64, rounded
to nearest as in IEEE 754. Costs at several prices are added in ascending order of price, from the left, in float64; to
decide whether something more fits, its own price comes last. A cost is within a limit if it is ``<=`` it, without
tolerance. So a limit of exactly ``epsilon_bound`` admits that record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wordveil.errors import Fault, shown_value
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.relations import Relation

BudgetScope = Literal["record", "author", "corpus"]
PURE = "pure"
OVER_RECORD_BUDGET = "over_record_budget"
OVER_AUTHOR_BUDGET = "over_author_budget"
OVER_CORPUS_BUDGET = "over_corpus_budget"
NULL_AUTHOR = "null_author"
STALE = "stale"
"""Public column of a release that keeps the last version of a record whose edit a budget refuses."""
BUDGET_REASONS = (OVER_RECORD_BUDGET, OVER_AUTHOR_BUDGET, OVER_CORPUS_BUDGET, NULL_AUTHOR)

MAX_EXACT = 2**53
"""Largest n up to which float64 represents all whole numbers. No sum of tokens may exceed it."""


@dataclass(frozen=True)
class Budget:
    """Limits on what is spent, in one unit. A limit of None is no limit.

    ``unit``: ``pure``, or the identifier of a metric (``euclidean:1f0c9a...``). ``relation``: the pairs of texts for
    which the sums must hold; a cost under a relation that does not cover it is infinite. ``record``: what one record of
    the release may cost, all its versions together. ``author``: what one author may cost, over all releases of the
    ledger. ``corpus``: what the release's most expensive author may cost, or record if there are no authors.
    ``on_exceeded``: ``quarantine`` the records that would exceed a limit; ``keep_last`` does so too, but leaves the
    last released version of an edited record in the release, marked as stale; or ``fail`` the run before anything is
    drawn. ``delta``: the limit on the deltas of each scope with a limit. A pure unit needs it if a mechanism has a
    delta, because its epsilon alone bounds nothing there.

    Raises :class:`ValueError` if a limit is no finite number of at least 0, a delta is 1 or more, or the unit is empty.
    """

    unit: str
    relation: Relation
    record: float | None = None
    author: float | None = None
    corpus: float | None = None
    on_exceeded: Literal["quarantine", "keep_last", "fail"] = "quarantine"
    delta: float | None = None

    def __post_init__(self) -> None:
        if not self.unit:
            raise ValueError("Expected a unit: pure, or the identifier of a metric.")
        for name, limit in self.limits.items():
            if not 0 <= limit < math.inf:
                raise ValueError(f"Expected {name}={limit} in [0, inf).")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ValueError(f"Expected delta={self.delta} in [0, 1).")

    @property
    def limits(self) -> dict[BudgetScope, float]:
        """Limits that are set, by scope."""
        scopes: dict[BudgetScope, float | None] = {"record": self.record, "author": self.author, "corpus": self.corpus}
        return {scope: limit for scope, limit in scopes.items() if limit is not None}

    @property
    def unit_name(self) -> str:
        """Unit of the limits, for people."""
        return "nats" if self.unit == PURE else f"epsilon of {self.unit}"


def multiply(quantity: int, price: float) -> float:
    """Return ``quantity * price``, infinite if the price is. Raises :class:`OverflowError` beyond :data:`MAX_EXACT`."""
    if quantity > MAX_EXACT:
        raise OverflowError(f"{quantity} units are more than {MAX_EXACT}, above which float64 skips whole numbers.")
    return math.inf if price == math.inf else quantity * price


def count_fitting(limit: float, price: float, tokens: int) -> int:
    """Count the contexts that ``limit`` admits, each of ``tokens`` tokens at ``price``."""
    most = int(min(limit / (price * tokens), MAX_EXACT // tokens)) + 1 if price * tokens > 0 else MAX_EXACT // tokens
    return next(count for count in range(most, -1, -1) if multiply(count * tokens, price) <= limit)


def count_runs_left(row: Mapping[str, Any], runs: int) -> int | None:
    """Estimate how many more runs fit into a row of the ledger's report at the mean rate; None if unlimited."""
    used = row.get("corpus", row["spent"] + row.get("returned", 0))
    return int(max(row["left"], 0) * runs / used) if runs and used and row.get("left") is not None else None


@dataclass(frozen=True)
class RefusedGroup:
    """Number of ``rows`` with a ``value`` in a kept ``column``, and of those that a budget refuses. None: null."""

    column: str
    value: str | None
    rows: int
    refused: int

    @property
    def share(self) -> float:
        """Share of the rows that a budget refuses."""
        return self.refused / self.rows

    def __str__(self) -> str:
        value = "null" if self.value is None else shown_value(self.value)
        return f"{self.column}={value} {self.share:.1%}"


@dataclass(frozen=True)
class RefusalForecast:
    """Forecast of what budgets refuse if a run draws the whole input.

    ``records``: those of the input that no other reason refuses. ``refused``: the number that budgets refuse, by
    reason. ``authors``: the number over their limit. ``most_refused``: of each kept column, the value that loses most.
    ``by_sample``: the lengths of texts, and the share refused for them, are those of a sample.
    """

    records: int
    refused: Mapping[str, int]
    authors: int
    most_refused: tuple[RefusedGroup, ...]
    by_sample: bool

    @property
    def share(self) -> float:
        """Share of the records that budgets refuse."""
        return sum(self.refused.values()) / self.records if self.records else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        groups = [{**asdict(group), "share": group.share} for group in self.most_refused]
        return {**asdict(self), "share": self.share, "most_refused": groups}


@dataclass(frozen=True)
class AuthorRecords:
    """Records of an author in the input, over its ``authors``: half have at most ``median``, 95% at most ``p95``."""

    authors: int
    median: int
    p95: int
    most: int

    def suggest_limit(self, cost: float) -> float:
        """Suggest an author's limit: the ``cost`` of the longest record times ``p95``, rounded up to two digits."""
        limit = self.p95 * cost
        step = 10.0 ** (math.floor(math.log10(limit)) - 1) if limit > 0 else 1.0
        return math.ceil(limit / step) * step


def find_budget_faults(
    budget: Budget | None,
    relation: Relation,
    tokens: int | None,
    guarantee: WordGuarantee | None = None,
    *,
    has_authors: bool,
) -> list[Fault]:
    """List the reasons why no run could meet ``budget``, before anything is read.

    ``tokens``: the number that every record pays for, None if its own text decides. ``guarantee``: the cost of a token,
    None without a bundle. ``has_authors``: the input names an author column.
    """
    if budget is None:
        return []
    if not budget.limits:
        return [Fault("budgets", "", "sets no limit. Set record, author or corpus.")]
    faults = []
    if budget.author is not None and not has_authors:
        faults.append(Fault("budgets.author", "", "needs input.author, the column that says who wrote a record."))
    if not relation.covers(budget.relation):
        problem = (
            f"{budget.relation}, but under text the bound only holds for {relation}: for "
            f"{budget.relation} every record costs infinitely much, so no limit can admit it. Set relation: "
            f"{relation}"
        )
        hide = (
            ", or text.length: pad or sample, copy nothing, and leave out text.repeat: same."
            if budget.relation is Relation.ANY_TEXT
            else "."
        )
        faults.append(Fault("budgets.relation", "", problem + hide))
    metric = guarantee.metric.identifier if guarantee else None
    if budget.unit != PURE and metric not in (None, budget.unit):
        problem = (
            f"{budget.unit}, but the bundle's metric is {metric}, and epsilons only add up under one metric. Name the "
            "bundle's metric, or set unit: pure."
        )
        faults.append(Fault("budgets.unit", "", problem))
    delta_faults = _find_delta_faults(budget, tokens or 0, guarantee.delta if guarantee else 0.0)
    return faults or [*delta_faults, *_find_cost_faults(budget, tokens, guarantee)]


def _find_delta_faults(budget: Budget, tokens: int, delta: float) -> Iterator[Fault]:
    """List faults of a pure budget: no limit on its mechanism's deltas, or one that every record exceeds."""
    if budget.unit == PURE and budget.delta is None and delta > 0:
        problem = (
            f"is required: each token of this mechanism has a delta of {delta:.3g}, and its pure epsilon alone bounds "
            "nothing. Set the maximum that the deltas of a record, or an author, may add up to, for instance 1e-6; or "
            "use a mechanism whose arithmetic is exact, such as exponential."
        )
        yield Fault("budgets.delta", "", problem)
    if budget.delta is not None and not tokens * delta <= budget.delta:
        yield _admits_nothing("delta", budget.delta, tokens * delta, f"{tokens} tokens at {delta:.3g}")


def _find_cost_faults(budget: Budget, tokens: int | None, guarantee: WordGuarantee | None) -> Iterator[Fault]:
    quantity = tokens if budget.unit == PURE else 1
    if guarantee is None or quantity is None:
        return
    price = guarantee.pure if budget.unit == PURE else guarantee.epsilon
    cost = multiply(quantity, price)
    what = f"{quantity} tokens at {price:.6g}" if budget.unit == PURE else "epsilon once"
    for scope, limit in budget.limits.items():
        if not cost <= limit:
            yield _admits_nothing(scope, limit, cost, what)


def _admits_nothing(scope: str, limit: float, cost: float, what: str) -> Fault:
    problem = f"{limit!r} is less than {cost!r}, what every record costs ({what}): it admits no record. Raise it."
    return Fault(f"budgets.{scope}", "", problem)
