"""Rules of the gate that a release must pass before it is published.

A rule is *public* (decided by the configuration), *output-only* (decided by sanitised text) or *private* (it reads
originals). Only private rules leak: their result is one bit about the original texts, which no bound covers. So a
release with one of them exposes ``gate``, and their figures are never published.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.privacy.relations import ORDER_EXPOSES, Exposure, Relation, column_exposure, pseudonym_exposure
from wordveil.release.budgets import Budget


def is_exposure(name: str) -> bool:
    """Return whether ``name`` may be listed in ``exposes``: one of :class:`Exposure`, or that of a column."""
    kinds = (column_exposure(""), pseudonym_exposure(""))
    return name in list(Exposure) or (name.startswith(kinds) and name not in kinds)


def output_exposes(
    order: str,
    *,
    is_release: bool,
    budget: Budget | None,
    n_max: int | None,
    has_kept: bool,
    is_shuffled: bool = False,
) -> tuple[str, ...]:
    """List what an output exposes by its order, and a release by following its input and refusing records.

    ``order``: ``hashed`` or ``input``. ``is_release``: the output follows its input, and is no table of one job.
    ``budget``: the limits, if any. ``n_max``: the public number of tokens of a record; None if the length is visible.
    ``has_kept``: the output has kept columns. ``is_shuffled``: rows have no ids and are only added, so that they show
    neither edits nor withdrawals.
    """
    if not is_release:
        return ORDER_EXPOSES[order]
    # If costs follow from texts, so does which records are refused. An author's limit counts other releases too, and
    # costs of visible lengths are finite but for any text.
    follows = n_max is None or bool(budget and budget.author is not None and budget.relation is not Relation.ANY_TEXT)
    refused = (str(Exposure.PRESENCE),) if budget and budget.limits and follows else ()
    follows_input = () if is_shuffled else (Exposure.EDITED, Exposure.WITHDRAWN, *[Exposure.KEPT_CHANGED] * has_kept)
    return (*ORDER_EXPOSES[order], *map(str, follows_input), *refused)


Value = float | int | str | tuple[str, ...]
Rate = Annotated[float, Ge(0), Le(1)]
Limit = Annotated[float, Ge(0)]
Least = Annotated[int, Ge(0)]

AUDITS = ("bundle", "release")
"""Kinds of audits that a gate can require."""


class Kind(StrEnum):
    """Source of a rule's decision: the configuration, sanitised text, or originals."""

    PUBLIC = "public"
    OUTPUT_ONLY = "output_only"
    PRIVATE = "private"


@dataclass(frozen=True)
class Measured:
    """Figures of one release. None means that a figure is missing, and fails the rules that need it.

    ``relation``, ``exposes``: of the release, as in the ``privacy`` column. ``epsilon_pure``, ``epsilon_bound``: the
    maximum over the records, in nats; None also means infinite. ``records``: records of the input. ``released``,
    ``quarantined``: records with a text, and without. ``empty``: released records whose sanitised text is empty.
    ``distinct_words``: distinct words in all sanitised texts. ``stale``: released records whose last edit a budget has
    refused, so that an earlier version stays. ``refused``, ``asked``: of the records read since the last publication,
    those that a budget refuses, and these and the released ones together. ``words``: words of the released records'
    original texts, before the text policy. ``unknown``, ``unchanged``: those of them that are not in the vocabulary, or
    unchanged in the sanitised text. ``attack_to_chance``: the accuracy of the best adaptive attacker on authors, at
    the upper end of its 95% interval, divided by the chance level; None also if too few authors or records were
    measured to show an attack above the bound. ``linked``: the share of the records of ``evaluation`` that the best
    attacker links to their originals, at the upper end of its 95% interval. ``table_epsilon``: of the rows that wait
    for a shuffled publication, by the smallest group. ``audited``: the kinds of audits that passed for the release as
    it is made.
    """

    relation: Relation | None = None
    exposes: tuple[str, ...] | None = None
    epsilon_pure: float | None = None
    epsilon_bound: float | None = None
    records: int | None = None
    released: int | None = None
    quarantined: int | None = None
    empty: int | None = None
    distinct_words: int | None = None
    stale: int | None = None
    refused: int | None = None
    asked: int | None = None
    words: int | None = None
    unknown: int | None = None
    unchanged: int | None = None
    attack_to_chance: float | None = None
    linked: float | None = None
    table_epsilon: float | None = None
    audited: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GateRules:
    """Bounds of a gate's rules; None for a rule that the gate does not have.

    The section ``gate`` of a configuration is made of them, and checks their values.
    """

    relation: Literal["any_text", "same_length", "same_skeleton"] | None = None
    exposes: tuple[str, ...] | None = None
    epsilon_pure: Limit | None = None
    epsilon_bound: Limit | None = None
    min_records: Least | None = None
    max_empty_rate: Rate | None = None
    min_distinct_words: Least | None = None
    max_stale_rate: Rate | None = None
    max_refused_rate: Rate | None = None
    quarantine_rate: Rate | None = None
    unknown_rate: Rate | None = None
    unchanged_rate: Rate | None = None
    attack_to_chance: Limit | None = None
    linked: Rate | None = None
    table_epsilon: Limit | None = None
    audited: tuple[str, ...] | None = None

    @property
    def bounds(self) -> dict[str, Value]:
        """Bounds of the gate's rules, by name."""
        return {name: bound for name, bound in vars(self).items() if bound is not None}

    @property
    def private(self) -> tuple[str, ...]:
        """Names of the gate's private rules."""
        return tuple(name for name in self.bounds if RULES[name].kind is Kind.PRIVATE)

    @property
    def shown(self) -> tuple[str, ...]:
        """Exposures that the gate adds to the release's ``exposes``."""
        return (str(Exposure.GATE),) if self.private else ()

    @property
    def digest(self) -> str:
        """SHA-256 of the bounds as canonical JSON, hexadecimal: equal for bounds written 1 and 1.0."""
        bounds = {name: _plain(name, bound) for name, bound in self.bounds.items()}
        content = json.dumps(bounds, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _plain(name: str, bound: Value) -> Any:
    if isinstance(bound, tuple):
        return sorted(set(bound))
    return bound if isinstance(bound, str) or name.startswith("min_") else float(bound)


def _at_most(value: float, bound: float) -> bool:
    return 0 <= value <= bound


def _at_least(value: float, bound: float) -> bool:
    return bound <= value < math.inf


@dataclass(frozen=True)
class Rule:
    """Rule of a gate, ``meaning`` in words: ``holds(figure, bound)`` decides.

    ``kind``: what the decision reads. ``figures``: the release's figure or, for a share, part and whole; by default the
    figure with the rule's name.
    """

    kind: Kind
    meaning: str
    figures: tuple[str, ...] = ()
    holds: Callable[[Any, Any], bool] = _at_most


RULES = {
    "relation": Rule(
        Kind.PUBLIC,
        "The bound holds at least for the pairs of texts of this relation.",
        holds=lambda value, bound: Relation(value).covers(Relation(bound)),
    ),
    "exposes": Rule(
        Kind.PUBLIC,
        "The release shows only the sanitised words and what is listed here.",
        holds=lambda value, bound: set(value) <= set(bound),
    ),
    "epsilon_pure": Rule(
        Kind.PUBLIC, "No record's ``epsilon_pure`` is higher, in nats; a null one is infinite and fails."
    ),
    "epsilon_bound": Rule(Kind.PUBLIC, "No record's ``epsilon_bound`` is higher, in nats."),
    "min_records": Rule(Kind.OUTPUT_ONLY, "At least this many records are released.", ("released",), holds=_at_least),
    "max_empty_rate": Rule(
        Kind.OUTPUT_ONLY, "At most this share of the released texts is empty.", ("empty", "released")
    ),
    "min_distinct_words": Rule(
        Kind.OUTPUT_ONLY,
        "The released texts have at least this many distinct words.",
        ("distinct_words",),
        holds=_at_least,
    ),
    "max_stale_rate": Rule(
        Kind.OUTPUT_ONLY,
        "At most this share of the released records is an earlier version, since a budget refuses the last edit.",
        ("stale", "released"),
    ),
    "max_refused_rate": Rule(
        Kind.OUTPUT_ONLY,
        "Budgets refuse at most this share of the records that were read since the last publication and that are not "
        "refused for another reason. What a budget refused before, and refuses again, does not count.",
        ("refused", "asked"),
    ),
    "quarantine_rate": Rule(
        Kind.PRIVATE, "At most this share of the input's records is quarantined.", ("quarantined", "records")
    ),
    "unknown_rate": Rule(
        Kind.PRIVATE, "At most this share of the original words is outside the vocabulary.", ("unknown", "words")
    ),
    "unchanged_rate": Rule(
        Kind.PRIVATE, "At most this share of the original words is released unchanged.", ("unchanged", "words")
    ),
    "attack_to_chance": Rule(
        Kind.PRIVATE,
        "The best adaptive attacker of ``evaluation`` names at most this many times as many authors right as an "
        "attacker who never looks, even at the upper end of its 95% interval. Fails where so few authors or records "
        "were measured that no attack could have been above the bound.",
    ),
    "linked": Rule(
        Kind.PRIVATE,
        "The best attacker who holds the originals links at most this share of up to 2,000 records, under "
        "`passages` of up to 10,000, to the right one, even at the upper end of its 95% interval.",
    ),
    "table_epsilon": Rule(
        Kind.OUTPUT_ONLY,
        "The rows that are added are at most this epsilon for each record, at ``output.shuffle.delta``, by the number "
        "of rows of the smallest group. Set by ``output.shuffle.epsilon``; rows that fail it wait for more.",
    ),
    "audited": Rule(
        Kind.PUBLIC,
        "These audits passed, of the bundle and the settings that the release has now: ``wordveil audit bundle`` and "
        "``wordveil audit release``. One that could not have refuted anything does not pass.",
        holds=lambda value, bound: set(bound) <= set(value),
    ),
}
"""All rules by name, in the order of :class:`GateRules`."""


@dataclass(frozen=True)
class RuleResult:
    """Result of one rule. The ``value`` of a private rule is internal; None means that the figure is missing."""

    name: str
    kind: Kind
    value: Value | None
    bound: Value
    passed: bool


@dataclass(frozen=True)
class GateResult:
    """Decision of a gate: ``passed`` if and only if every rule passed."""

    passed: bool
    results: tuple[RuleResult, ...]

    @property
    def failures(self) -> tuple[RuleResult, ...]:
        """Rules that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; internal, since they include private rules' values."""
        return {"passed": self.passed, "results": [asdict(result) for result in self.results]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GateResult:
        """Read what :meth:`to_dict` returned."""
        results = (
            {**rule, "kind": Kind(rule["kind"]), **{name: _hashable(rule[name]) for name in ("value", "bound")}}
            for rule in values["results"]
        )
        return cls(values["passed"], tuple(RuleResult(**result) for result in results))


def evaluate(rules: GateRules, measured: Measured) -> GateResult:
    """Check the figures against the gate's rules. A missing figure fails its rule."""
    results = []
    for name, bound in rules.bounds.items():
        rule = RULES[name]
        value = _find_figure(measured, *(rule.figures or (name,)))
        passed = value is not None and rule.holds(value, bound)
        results.append(RuleResult(name, rule.kind, _hashable(value), _hashable(bound), passed))
    return GateResult(all(result.passed for result in results), tuple(results))


def _find_figure(measured: Measured, name: str, whole: str = "") -> Any:
    """Find a figure or its share of a ``whole``: 0 if both are 0, None if one is missing or the part is larger."""
    value = getattr(measured, name)
    if not whole or value is None:
        return value
    of = getattr(measured, whole)
    return None if of is None or not 0 <= value <= of else value / of if of else 0.0


def find_gate_faults(rules: GateRules, relation: Relation, shown: tuple[str, ...]) -> Iterator[Fault]:
    """List exposures that do not exist, and public rules that fail whatever is drawn, which would waste all draws.

    ``relation``: the pairs of texts for which the release's bound holds. ``shown``: what the release shows without the
    gate.
    """
    unknown = [name for name in rules.exposes or () if not is_exposure(name)]
    for name in unknown:
        near = did_you_mean(name, Exposure)
        yield Fault(
            "gate.exposes",
            shown_value(name),
            "is not something that a release can show. Allowed: "
            f"{', '.join(Exposure)}, column:NAME, pseudonym:NAME.{near}",
        )
    if not unknown:
        for name, problem in _list_failures(rules, relation, shown):
            yield Fault(f"gate.{name}", "", problem)


def _list_failures(rules: GateRules, relation: Relation, shown: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if rules.relation is not None and not relation.covers(Relation(rules.relation)):
        yield "relation", f"the bound under text only holds for {relation}. Change it, or the rule."
    if rules.epsilon_pure is not None and relation is not Relation.ANY_TEXT:
        problem = f"the bound only holds for {relation}, so every record's pure epsilon is infinite. Use epsilon_bound."
        yield "epsilon_pure", problem
    if rules.exposes is None:
        return
    if more := sorted(set(shown) - set(rules.exposes)):
        yield "exposes", f"the release also shows {', '.join(more)}. Change text or input.keep, or allow it here."
    if rules.private and Exposure.GATE not in rules.exposes:
        problem = (
            f"lacks gate, which a gate with private rules shows ({', '.join(rules.private)} read original texts). Add "
            "gate, or remove these rules."
        )
        yield "exposes", problem


def _hashable(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return str(value)
    return tuple(value) if isinstance(value, list | tuple) else value
