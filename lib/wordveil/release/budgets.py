"""Budgets: what a record, an author and a corpus may cost, and which records are refused because they would cost more.

Everything here is exact and does not depend on the order of additions, so that a query on Spark decides as this module
does. A cost is a whole number times a price: tokens times the price of a token, or contexts times epsilon. Whole
numbers of one price are added first, as whole numbers; then comes one multiplication in float64, rounded to nearest as
IEEE 754 says. Costs at several prices are added in ascending order of price, from the left, in float64; where a run
asks whether something more fits, its own price comes last. A cost is within a limit if it is ``<=`` it: no tolerance.
So a limit of exactly what ``epsilon_bound`` shows admits that record.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wordveil.privacy.events import ReleaseTerms
from wordveil.privacy.relations import Relation

PURE = "pure"
OVER_RECORD_BUDGET = "over_record_budget"
OVER_AUTHOR_BUDGET = "over_author_budget"
OVER_CORPUS_BUDGET = "over_corpus_budget"
NULL_AUTHOR = "null_author"
BUDGET_REASONS = (OVER_RECORD_BUDGET, OVER_AUTHOR_BUDGET, OVER_CORPUS_BUDGET, NULL_AUTHOR)

MAX_EXACT = 2**53
"""float64 represents all whole numbers up to this one. No sum of tokens may exceed it."""


@dataclass(frozen=True)
class Budget:
    """Limits on what is spent, in one unit.

    Attributes
    ----------
    unit
        ``pure``, or the identifier of a metric (``euclidean:1f0c9a...``).
    relation
        the pairs of texts for which the sums must hold. Under another relation a cost is infinite, unless that covers
        this one.
    record
        what one record of the release may cost, all its versions together. None: no limit.
    author
        what one author may cost, over all releases of the ledger. None: no limit.
    corpus
        the limit for the author who costs most within the release; for the record, where there are no authors. None:
        no limit.
    on_exceeded
        ``quarantine`` the records that would exceed a limit, or ``fail`` the run before anything is drawn.
    delta
        what the deltas of each scope with a limit may add up to. A pure unit needs it where a mechanism has a delta,
        because its epsilon alone bounds nothing there. None: the mechanism has none.

    Raises
    ------
    ValueError
        If a limit is no finite number of at least 0, a delta is 1 or more, or the unit is empty.
    """

    unit: str
    relation: Relation
    record: float | None = None
    author: float | None = None
    corpus: float | None = None
    on_exceeded: Literal["quarantine", "fail"] = "quarantine"
    delta: float | None = None

    def __post_init__(self) -> None:
        if not self.unit:
            raise ValueError("Expected a unit: pure, or the identifier of a metric.")
        for name, limit in self.limits.items():
            if not 0 <= limit < math.inf:
                raise ValueError(f"Expected {name}={limit} in [0, inf).")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise ValueError(f"Expected delta={self.delta} in [0, 1).")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "relation": str(self.relation)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Budget:
        """The inverse of :meth:`to_dict`."""
        return cls(**{**values, "relation": Relation(values["relation"])})

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by scope."""
        scopes = {"record": self.record, "author": self.author, "corpus": self.corpus}
        return {scope: limit for scope, limit in scopes.items() if limit is not None}


@dataclass(frozen=True)
class Charge:
    """What one drawn context costs: one version of one record.

    Attributes
    ----------
    tokens
        the tokens paid for, as in the ``privacy`` column.
    price
        the maximum that a token costs under ``relation``, in nats: ``epsilon * D + slack`` or its largest loss.
    epsilon
        the proved constant, per unit of ``metric``'s distance.
    metric
        the metric's identifier.
    relation
        the pairs of texts for which that holds.
    delta
        of a token: by how much the probability of an output may exceed what ``price`` allows.
    """

    tokens: int
    price: float
    epsilon: float
    metric: str
    relation: Relation
    delta: float = 0.0

    @classmethod
    def of(cls, terms: ReleaseTerms, tokens: int) -> Charge:
        """The charge of a record of a release that pays for ``tokens`` tokens."""
        guarantee = terms.guarantee
        return cls(
            tokens, guarantee.pure, guarantee.epsilon, guarantee.metric.identifier, terms.relation, guarantee.delta
        )


@dataclass(frozen=True, order=True)
class Amount:
    """``quantity`` units at one ``price``: tokens in nats per token, or contexts in epsilon. The price may be
    infinite.
    """

    price: float
    quantity: int


def amount(charge: Charge, unit: str, relation: Relation) -> Amount:
    """What ``charge`` adds to a budget in ``unit`` for pairs of ``relation``; its price is infinite where it is not
    covered.

    A metric counts epsilon once a context: the loss is at most the sum of epsilons times the largest distance between
    the two texts of any context, each in its own composition, and ``slack`` beside it.
    """
    covered = charge.relation.covers(relation)
    if unit == PURE:
        return Amount(charge.price if covered else math.inf, charge.tokens)
    return Amount(charge.epsilon if covered and charge.metric == unit else math.inf, 1)


def cost(charge: Charge, unit: str, relation: Relation) -> float:
    """The cost of one context in ``unit``; infinite where ``unit`` and ``relation`` do not cover it, even for no
    tokens.
    """
    return total([amount(charge, unit, relation)])


def total(amounts: Iterable[Amount]) -> float:
    """The sum of amounts as this module defines it, whatever their order; infinite if one of them is."""
    quantities: Counter[float] = Counter()
    for one in amounts:
        quantities[one.price] += one.quantity
    spent = 0.0
    for price in sorted(quantities):
        spent += _product(quantities[price], price)
    return spent


def max_quantity(limit: float, price: float, others: float = 0.0) -> int:
    """The maximum number of units at ``price`` that, with ``others`` spent at other prices, stay within ``limit``; -1
    where not even 0 units do.

    The greatest whole ``q`` up to :data:`MAX_EXACT` with ``others + q * price <= limit`` in float64: two roundings to
    nearest, each monotone, so that every smaller ``q`` is within the limit too. For a pure budget these are tokens.
    """
    if not others <= limit or price == math.inf:
        return -1
    low, high = 0, MAX_EXACT
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if others + middle * price <= limit else (low, middle - 1)
    return low


def _product(quantity: int, price: float) -> float:
    if quantity > MAX_EXACT:
        raise OverflowError(f"{quantity} units are more than {MAX_EXACT}, above which float64 skips whole numbers.")
    return math.inf if price == math.inf else quantity * price


@dataclass(frozen=True)
class ReleaseFacts:
    """What a budget is checked against before anything is read.

    ``tokens``: what every record pays for, None where its own text decides. ``authors``: whether the input names an
    author column. ``price``, ``epsilon``, ``metric`` and ``delta`` (of a token)
    are the bundle's, None while there is none.
    """

    relation: Relation
    tokens: int | None
    authors: bool
    price: float | None = None
    epsilon: float | None = None
    metric: str | None = None
    delta: float | None = None

    @classmethod
    def of(cls, terms: ReleaseTerms, *, authors: bool) -> ReleaseFacts:
        """The facts of a release whose bundle is known."""
        guarantee = terms.guarantee
        metric = guarantee.metric.identifier
        return cls(terms.relation, terms.tokens, authors, guarantee.pure, guarantee.epsilon, metric, guarantee.delta)


def budget_faults(budget: Budget, facts: ReleaseFacts) -> list[tuple[str, str]]:
    """Why no run could meet ``budget``, as (setting, what is wrong and what to do); empty where one could."""
    faults = []
    if not budget.limits:
        faults.append(("budgets", "sets no limit. Set record, author or corpus."))
    if budget.author is not None and not facts.authors:
        faults.append(("budgets.author", "needs input.author, the column that says who wrote a record."))
    if budget.limits and not facts.relation.covers(budget.relation):
        problem = (
            f"{budget.relation}, but under text and input.where the bound only holds for {facts.relation}: for "
            f"{budget.relation} every record costs infinitely much, so no limit can admit it. Set relation: "
            f"{facts.relation}"
        )
        hide = (
            ", or text.length: pad or sample, copy nothing, leave out text.repeat: same and keep the text out of "
            "input.where."
            if budget.relation is Relation.ANY_TEXT
            else "."
        )
        faults.append(("budgets.relation", problem + hide))
    if budget.limits and budget.unit != PURE and facts.metric not in (None, budget.unit):
        problem = (
            f"{budget.unit}, but the bundle's metric is {facts.metric}, and epsilons only add up under one metric. "
            "Name the bundle's metric, or set unit: pure."
        )
        faults.append(("budgets.unit", problem))
    return faults or [*_delta_faults(budget, facts), *_single_faults(budget, facts)]


def _delta_faults(budget: Budget, facts: ReleaseFacts) -> Iterator[tuple[str, str]]:
    """Faults of a pure budget that does not limit its mechanism's deltas, or limits them so that no record fits."""
    delta = facts.delta or 0.0
    if not budget.limits:
        return
    if budget.unit == PURE and budget.delta is None and delta > 0:
        problem = (
            f"is required: each token of this mechanism has a delta of {delta:.3g}, and its pure epsilon alone bounds "
            "nothing. Set the maximum that the deltas of a record, or an author, may add up to, for instance 1e-6; or "
            "use a mechanism whose arithmetic is exact, such as exponential."
        )
        yield "budgets.delta", problem
    single = (facts.tokens or 0) * delta
    if budget.delta is not None and not single <= budget.delta:
        what = f"{facts.tokens} tokens at {delta:.3g}"
        problem = f"{budget.delta!r} is less than {single!r}, what every record costs ({what}): it admits no record."
        yield "budgets.delta", f"{problem} Raise it."


def _single_faults(budget: Budget, facts: ReleaseFacts) -> list[tuple[str, str]]:
    """Limits that every record exceeds, whatever its text."""
    pure = budget.unit == PURE
    price = facts.price if pure else facts.epsilon
    quantity = facts.tokens if pure else 1
    if price is None or quantity is None:
        return []
    single = _product(quantity, price)
    what = f"{quantity} tokens at {price:.6g}" if pure else "epsilon once"
    return [
        (
            f"budgets.{scope}",
            f"{limit!r} is less than {single!r}, what every record costs ({what}): it admits no record. Raise it.",
        )
        for scope, limit in budget.limits.items()
        if not single <= limit
    ]


@dataclass(frozen=True)
class Candidate:
    """A context that is about to be reserved: the record's id (as UTF-8 bytes), its author, and its charge."""

    record: bytes
    author: str | None
    charge: Charge


@dataclass(frozen=True)
class Entry:
    """A context in the ledger, spent or reserved by an open run: both count alike."""

    release: str
    record: bytes
    author: str | None
    charge: Charge


def admit(budget: Budget, release: str, candidates: Sequence[Candidate], ledger: Iterable[Entry]) -> list[str | None]:
    """Which candidates of one run of ``release`` are refused: for each, in the order given, the reason or None.

    This is the definition that a query must implement. Scopes and their keys:

    - record: the record's id, with the entries of this release;
    - author: the author, with the entries of all releases. A null author is refused with ``null_author`` if
      ``author`` is limited;
    - corpus: the author, or the record where the author is null, with the entries of this release.

    With ``budget.delta`` the same holds in each scope of the sums of deltas, tokens times the delta of a token,
    whatever the unit.

    Candidates are ordered by the bytes of their ids. In each limited scope a candidate is within the limit iff the
    entries of its key, **all** candidates of its key before it and itself cost no more than the limit:
    :func:`max_quantity` at the candidates' price, ``others`` being the entries of its key at other prices. Candidates
    that are refused, in this scope or another, count for those after them: so each decision is one running sum and
    needs no decision before it. The first scope that fails, in the order record, author, corpus, names the reason.

    Raises :class:`ValueError` where an id occurs twice, or where candidates differ in price: a run has one mechanism.
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
        one = measure(candidate.charge)
        running[key] += one.quantity
        if key not in room:  # the same for all candidates of the key, which have one price
            before = spent.get(key, [])
            same = sum(item.quantity for item in before if item.price == one.price)
            others = total(item for item in before if item.price != one.price)
            room[key] = max_quantity(limit, one.price, others) - same
        if running[key] > room[key]:
            yield candidate.record


def _key(scope: str, item: Candidate | Entry) -> object:
    by_author = scope == "author" or (scope == "corpus" and item.author is not None)
    return ("author", item.author) if by_author else ("record", item.record)
