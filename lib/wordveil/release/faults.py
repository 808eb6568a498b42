"""Budgets and rules that no run of a release can keep, found before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.privacy.relations import Exposure, Relation
from wordveil.release.budgets import Budget, ReleaseFacts, budget_faults
from wordveil.release.exposures import is_exposure
from wordveil.release.rules import GateRules, public_faults


def find_budget_faults(budget: Budget | None, facts: ReleaseFacts) -> list[Fault]:
    """List faults of a budget; None where there is none."""
    return [Fault(where, "", problem) for where, problem in budget_faults(budget, facts)] if budget else []


def find_gate_faults(
    exposes: Sequence[str] | None, rules: Callable[[], GateRules], relation: Relation, shown: tuple[str, ...]
) -> Iterator[Fault]:
    """List exposures that do not exist, and rules that fail whatever is drawn.

    Parameters
    ----------
    exposes
        what the gate allows to be shown; None where it allows all.
    rules
        makes the gate's rules, where these exposures exist.
    relation
        the pairs of texts for which the release's bound holds.
    shown
        what the release shows without the gate.
    """
    unknown = [name for name in exposes or () if not is_exposure(name)]
    for name in unknown:
        near = did_you_mean(name, Exposure)
        yield Fault(
            "gate.exposes",
            shown_value(name),
            f"is not something that a release can show. Allowed: {', '.join(Exposure)}, column:NAME.{near}",
        )
    if not unknown:
        for name, problem in public_faults(rules(), relation, shown):
            yield Fault(f"gate.{name}", "", problem)
