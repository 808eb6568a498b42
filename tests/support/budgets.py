"""Admission to a budget on plain data: the definition of docs/guarantees.md, which the queries on Spark must match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wordveil.privacy.relations import Relation
from wordveil.release.budgets import (
    MAX_EXACT,
    NULL_AUTHOR,
    OVER_AUTHOR_BUDGET,
    OVER_CORPUS_BUDGET,
    OVER_RECORD_BUDGET,
    PURE,
    Budget,
    multiply,
)


@dataclass(frozen=True)
class Charge:
    """One drawn context: its tokens, the most that one costs in nats, the epsilon of its metric, and its delta."""

    tokens: int
    price: float
    epsilon: float
    metric: str
    relation: Relation
    delta: float = 0.0


@dataclass(frozen=True, order=True)
class Amount:
    """``quantity`` units at one ``price``, which may be infinite: tokens in nats, or contexts in epsilon."""

    price: float
    quantity: int


def amount(charge: Charge, unit: str, relation: Relation) -> Amount:
    """Compute what a charge adds to a budget in ``unit``; its price is infinite where ``relation`` is not covered."""
    covered = charge.relation.covers(relation)
    if unit == PURE:
        return Amount(charge.price if covered else math.inf, charge.tokens)
    return Amount(charge.epsilon if covered and charge.metric == unit else math.inf, 1)


def cost(charge: Charge, unit: str, relation: Relation) -> float:
    """Compute the cost of one context; infinite where ``unit`` and ``relation`` do not cover it, even for no tokens."""
    return total([amount(charge, unit, relation)])


def total(amounts: Iterable[Amount]) -> float:
    """The sum of amounts, whatever their order; infinite if one of them is."""
    quantities: Counter[float] = Counter()
    for item in amounts:
        quantities[item.price] += item.quantity
    spent = 0.0
    for price in sorted(quantities):  # by hand: from Python 3.12 on, sum() compensates for rounding
        spent += multiply(quantities[price], price)
    return spent


def max_quantity(limit: float, price: float, others: float = 0.0) -> int:
    """Find the most units at ``price`` that stay within ``limit`` with ``others`` spent, in float64; -1 for none."""
    if not others <= limit or price == math.inf:
        return -1
    low, high = 0, MAX_EXACT
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if others + middle * price <= limit else (low, middle - 1)
    return low


@dataclass(frozen=True)
class Candidate:
    """A context that is about to be drawn; ``is_charged``: the release has paid for it before."""

    record: bytes
    author: str | None
    charge: Charge
    is_charged: bool = False


@dataclass(frozen=True)
class Entry:
    """A context in the ledger, spent or reserved by an open run: both count alike."""

    release: str
    record: bytes
    author: str | None
    charge: Charge


def admit(budget: Budget, release: str, candidates: Sequence[Candidate], ledger: Iterable[Entry]) -> list[str | None]:
    """Name for each candidate of one run of ``release`` the reason why it is refused, or None.

    The scope record sums the entries of a record's id in this release, author those of an author in all releases, and
    corpus those of the author, or of the record without one, in this release. Candidates are ordered by the bytes of
    their ids; those that are refused count for those after them, and those charged before cost nothing.
    """
    if len({candidate.record for candidate in candidates}) < len(candidates):
        raise ValueError("Expected each record id once among the candidates of a run.")
    if len({amount(candidate.charge, budget.unit, budget.relation).price for candidate in candidates}) > 1:
        raise ValueError("Expected one price among the candidates of a run.")
    entries = [*ledger]
    own = [entry for entry in entries if entry.release == release]
    ordered = sorted(candidates, key=lambda candidate: candidate.record)
    reasons: dict[bytes, str] = {}
    # From the last scope to the first: a later round overwrites the reason.
    for scope, reason, counted in (
        ("corpus", OVER_CORPUS_BUDGET, own),
        ("author", OVER_AUTHOR_BUDGET, entries),
        ("record", OVER_RECORD_BUDGET, own),
    ):
        if scope in budget.limits:
            for limit, measure in _measures(budget, scope):
                reasons |= dict.fromkeys(_beyond(limit, measure, scope, ordered, counted), reason)
        if scope == "author" and scope in budget.limits:
            reasons |= {candidate.record: NULL_AUTHOR for candidate in ordered if candidate.author is None}
    for candidate in candidates:
        if candidate.is_charged:
            reasons.pop(candidate.record, None)
            if candidate.author is None and "author" in budget.limits:
                reasons[candidate.record] = NULL_AUTHOR
    return [reasons.get(candidate.record) for candidate in candidates]


def _measures(budget: Budget, scope: str) -> Iterator[tuple[float, Callable[[Charge], Amount]]]:
    """The limits of a scope, each with what a charge adds to the sum that it limits."""
    yield budget.limits[scope], lambda charge: amount(charge, budget.unit, budget.relation)
    if budget.delta is not None:
        yield budget.delta, lambda charge: Amount(charge.delta, charge.tokens)


def _beyond(
    limit: float,
    measure: Callable[[Charge], Amount],
    scope: str,
    ordered: Sequence[Candidate],
    entries: Sequence[Entry],
) -> Iterator[bytes]:
    """The ids of candidates that exceed one limit of one scope."""
    spent: dict[object, list[Amount]] = {}
    for entry in entries:
        spent.setdefault(_key(scope, entry), []).append(measure(entry.charge))
    room: dict[object, int] = {}
    running: Counter[object] = Counter()
    for candidate in ordered:
        key = _key(scope, candidate)
        added = measure(candidate.charge)
        running[key] += 0 if candidate.is_charged else added.quantity
        if key not in room:  # the same for all candidates of the key, which have one price
            before = spent.get(key, [])
            same = sum(item.quantity for item in before if item.price == added.price)
            others = total(item for item in before if item.price != added.price)
            room[key] = max_quantity(limit, added.price, others) - same
        if running[key] > room[key]:
            yield candidate.record


def _key(scope: str, item: Candidate | Entry) -> object:
    by_author = scope == "author" or (scope == "corpus" and item.author is not None)
    return ("author", item.author) if by_author else ("record", item.record)
