"""Gate rules: what must hold before a release is published.

A rule is *public* (decided by the configuration), *output-only* (decided by sanitised text) or *private* (it reads
originals). Only private rules cost something: that they passed is a bit about the original texts, which no bound
covers. So a release with one of them exposes ``gate``, and what they measured is never published.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from wordveil.privacy.relations import Exposure, Relation
from wordveil.release.exposures import is_exposure

Value = float | int | str | tuple[str, ...]

AUDITS = ("bundle", "release")
"""The kinds of audits that a gate can ask for."""
_LISTS = {"exposes", "audited"}


class Kind(StrEnum):
    """What decides a rule."""

    PUBLIC = "public"
    OUTPUT_ONLY = "output_only"
    PRIVATE = "private"


@dataclass(frozen=True)
class Measured:
    """The figures of one release. None means that a figure is missing, and fails the rules that need it.

    Attributes
    ----------
    relation, exposes
        of the release, as in the ``privacy`` column.
    epsilon_pure, epsilon_bound
        the maximum over the records, in nats. None also means infinite.
    records
        records of the input.
    released, quarantined
        records with a text, and without.
    empty
        released records whose sanitised text is empty.
    distinct_words
        distinct words in all sanitised texts.
    words
        words of the released records' original texts, before the text policy.
    unknown
        those of them that are not in the vocabulary.
    unchanged
        those of them that are unchanged in the sanitised text.
    attack_to_chance
        the accuracy of the best adaptive attacker on authors, divided by the chance level.
    audited
        the kinds of audits that passed of what made the release as it is.
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
    words: int | None = None
    unknown: int | None = None
    unchanged: int | None = None
    attack_to_chance: float | None = None
    audited: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GateRules:
    """The rules of a gate, each with its bound; None where the gate does not have the rule. Rates are shares in [0, 1].

    Raises :class:`ValueError` for a bound that must be a mistake, since everything or nothing would meet it: a rate
    outside [0, 1], a number that is below 0, infinite or NaN, an exposure or an audit that does not exist.
    """

    relation: Relation | None = None
    exposes: tuple[str, ...] | None = None
    epsilon_pure: float | None = None
    epsilon_bound: float | None = None
    min_records: int | None = None
    max_empty_rate: float | None = None
    min_distinct_words: int | None = None
    quarantine_rate: float | None = None
    unknown_rate: float | None = None
    unchanged_rate: float | None = None
    attack_to_chance: float | None = None
    audited: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, bound in self.bounds.items():
            if isinstance(bound, float | int) and not 0 <= bound < math.inf:
                raise ValueError(f"Expected {name}={bound} in [0, inf).")
            if name.endswith("_rate") and isinstance(bound, float | int) and bound > 1:
                raise ValueError(f"Expected {name}={bound} in [0, 1]: a rate is a share.")
        for exposure in self.exposes or ():
            if not is_exposure(exposure):
                raise ValueError(f"Expected {exposure} to be one of {', '.join(Exposure)} or column:NAME.")
        if unknown := sorted(set(self.audited or ()) - set(AUDITS)):
            raise ValueError(f"Expected audits among {', '.join(AUDITS)}, got {', '.join(unknown)}.")

    @property
    def bounds(self) -> dict[str, Value]:
        """The rules that the gate has, by name, with their bounds."""
        bounds = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @property
    def private(self) -> tuple[str, ...]:
        """The names of the gate's private rules."""
        return tuple(name for name in self.bounds if RULES[name].kind is Kind.PRIVATE)

    @property
    def has_private_rules(self) -> bool:
        """Whether some rule reads originals."""
        return bool(self.private)

    @property
    def shown(self) -> tuple[str, ...]:
        """What the gate adds to the release's ``exposes``."""
        return (str(Exposure.GATE),) if self.has_private_rules else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: equal rules give equal values, whether a bound was written 1 or 1.0."""
        return {name: _plain(name, bound) for name, bound in self.bounds.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GateRules:
        """The inverse of :meth:`to_dict`. Raises :class:`ValueError`, also for a rule that does not exist."""
        if unknown := set(values) - set(RULES):
            raise ValueError(f"Expected rules among {', '.join(RULES)}, got {', '.join(sorted(unknown))}.")
        made = dict(values)
        if made.get("relation") is not None:
            made["relation"] = Relation(made["relation"])
        for name in _LISTS & set(made):
            made[name] = None if made[name] is None else tuple(made[name])
        return cls(**made)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of :meth:`to_dict`, hexadecimal."""
        content = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _plain(name: str, bound: Value) -> Any:
    if name in _LISTS:
        assert isinstance(bound, tuple)
        return sorted(set(bound))
    if isinstance(bound, str):
        return str(bound)
    return bound if name.startswith("min_") else float(bound)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    name
        its name in the configuration.
    kind
        what decides it.
    figure
        takes the figure that it needs from those of a release; None where that is missing.
    holds
        whether a figure, its first argument, meets a bound, its second one.
    """

    name: str
    kind: Kind
    figure: Callable[[Measured], Value | None]
    holds: Callable[[Any, Any], bool]


RULES: dict[str, Rule] = {}
"""All rules by name, in the order of :class:`GateRules`."""


def _at_most(value: float, bound: float) -> bool:
    return 0 <= value <= bound


def _at_least(value: float, bound: float) -> bool:
    return bound <= value < math.inf


def _rule(
    kind: Kind, holds: Callable[[Any, Any], bool]
) -> Callable[[Callable[[Measured], Value | None]], Callable[..., Any]]:
    def register(figure: Callable[[Measured], Value | None]) -> Callable[[Measured], Value | None]:
        RULES[figure.__name__] = Rule(figure.__name__, kind, figure, holds)
        return figure

    return register


def _share(part: int | None, whole: int | None) -> float | None:
    """A part's share of the whole: 0 if both are 0, None where a count is missing or the part exceeds the whole."""
    if part is None or whole is None or not 0 <= part <= whole:
        return None
    return part / whole if whole else 0.0


@_rule(Kind.PUBLIC, lambda value, bound: Relation(value).covers(Relation(bound)))
def relation(measured: Measured) -> Value | None:
    """The bound holds at least for the pairs of texts of this relation."""
    return measured.relation


@_rule(Kind.PUBLIC, lambda value, bound: set(value) <= set(bound))
def exposes(measured: Measured) -> Value | None:
    """The release shows only the sanitised words and what is listed here."""
    return measured.exposes


@_rule(Kind.PUBLIC, _at_most)
def epsilon_pure(measured: Measured) -> Value | None:
    """No record's ``epsilon_pure`` is higher, in nats; a null one is infinite and fails."""
    return measured.epsilon_pure


@_rule(Kind.PUBLIC, _at_most)
def epsilon_bound(measured: Measured) -> Value | None:
    """No record's ``epsilon_bound`` is higher, in nats."""
    return measured.epsilon_bound


@_rule(Kind.OUTPUT_ONLY, _at_least)
def min_records(measured: Measured) -> Value | None:
    """At least this many records are released."""
    return measured.released


@_rule(Kind.OUTPUT_ONLY, _at_most)
def max_empty_rate(measured: Measured) -> Value | None:
    """At most this share of the released texts is empty."""
    return _share(measured.empty, measured.released)


@_rule(Kind.OUTPUT_ONLY, _at_least)
def min_distinct_words(measured: Measured) -> Value | None:
    """The released texts have at least this many distinct words."""
    return measured.distinct_words


@_rule(Kind.PRIVATE, _at_most)
def quarantine_rate(measured: Measured) -> Value | None:
    """At most this share of the input's records is quarantined."""
    return _share(measured.quarantined, measured.records)


@_rule(Kind.PRIVATE, _at_most)
def unknown_rate(measured: Measured) -> Value | None:
    """At most this share of the original words is outside the vocabulary."""
    return _share(measured.unknown, measured.words)


@_rule(Kind.PRIVATE, _at_most)
def unchanged_rate(measured: Measured) -> Value | None:
    """At most this share of the original words is released unchanged."""
    return _share(measured.unchanged, measured.words)


@_rule(Kind.PRIVATE, _at_most)
def attack_to_chance(measured: Measured) -> Value | None:
    """The best adaptive attacker of ``evaluation`` names at most this many times as many authors right as a guesser who
    never looks.
    """
    return measured.attack_to_chance


@_rule(Kind.PUBLIC, lambda value, bound: set(bound) <= set(value))
def audited(measured: Measured) -> Value | None:
    """These audits passed, of the bundle and the settings that the release has now: ``wordveil audit bundle`` and
    ``wordveil audit release``.
    """
    return measured.audited


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule. The ``value`` of a private rule is internal; None means that the figure is missing."""

    name: str
    kind: Kind
    value: Value | None
    bound: Value
    passed: bool

    def __str__(self) -> str:
        value = "no figure" if self.value is None else _shown(self.value)
        return f"{self.name}: {value}, {'within' if self.passed else 'outside'} {_shown(self.bound)}"


@dataclass(frozen=True)
class GateResult:
    """What a gate decided: ``passed`` if and only if every rule passed."""

    passed: bool
    results: tuple[RuleResult, ...]

    @property
    def failures(self) -> tuple[RuleResult, ...]:
        """The rules that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; internal, since private rules' values are among them."""
        return {"passed": self.passed, "results": [asdict(result) for result in self.results]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GateResult:
        """The inverse of :meth:`to_dict`. Raises :class:`ValueError` or :class:`TypeError`."""
        results = tuple(
            RuleResult(
                **{**one, "kind": Kind(one["kind"]), "value": _hashable(one["value"]), "bound": _hashable(one["bound"])}
            )
            for one in values["results"]
        )
        return cls(values["passed"], results)


def evaluate(rules: GateRules, measured: Measured, kinds: frozenset[Kind] = frozenset(Kind)) -> GateResult:
    """Check the figures against the gate's rules of these kinds. A missing figure fails its rule."""
    results = []
    for name, bound in rules.bounds.items():
        rule = RULES[name]
        if rule.kind in kinds:
            value = rule.figure(measured)
            passed = value is not None and rule.holds(value, bound)
            results.append(RuleResult(name, rule.kind, _hashable(value), _hashable(bound), passed))
    return GateResult(all(result.passed for result in results), tuple(results))


def public_faults(rules: GateRules, relation: Relation, exposes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Public rules that the configuration alone fails, as (rule, what is wrong and what to do).

    ``exposes`` is what the release shows without the gate. Such a release could never be published, and the budget of
    its draws would be lost.
    """
    faults = []
    if rules.relation is not None and not relation.covers(rules.relation):
        faults.append(
            ("relation", f"the bound under text and input.where only holds for {relation}. Change them, or the rule.")
        )
    if rules.epsilon_pure is not None and relation is not Relation.ANY_TEXT:
        problem = f"the bound only holds for {relation}, so every record's pure epsilon is infinite. Use epsilon_bound."
        faults.append(("epsilon_pure", problem))
    if rules.exposes is not None:
        if shown := sorted(set(exposes) - set(rules.exposes)):
            problem = (
                f"the release also shows {', '.join(shown)}. Change text, input.keep or input.where, or allow it here."
            )
            faults.append(("exposes", problem))
        if rules.has_private_rules and Exposure.GATE not in rules.exposes:
            names = ", ".join(rules.private)
            problem = (
                f"lacks gate, which a gate with private rules shows ({names} read original texts). Add gate, or remove "
                "these rules."
            )
            faults.append(("exposes", problem))
    return faults


def _hashable(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return str(value)
    return tuple(value) if isinstance(value, list | tuple) else value


def _shown(value: Value) -> str:
    return (", ".join(value) or "nothing") if isinstance(value, tuple) else f"{value}"
