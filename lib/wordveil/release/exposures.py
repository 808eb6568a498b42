"""Exposures: what the form and the budget of an output reveal besides its sanitised words."""

from __future__ import annotations

from wordveil.privacy.relations import ORDER_EXPOSES, Exposure, Relation
from wordveil.release.budgets import Budget


def is_exposure(name: str) -> bool:
    """Return whether ``name`` may be listed in ``exposes``: one of :class:`Exposure`, or ``column:NAME``."""
    return name in list(Exposure) or (name.startswith("column:") and name != "column:")


def output_exposes(order: str, *, is_release: bool, budget: Budget | None, n_max: int | None) -> tuple[str, ...]:
    """List what an output exposes by the order of its rows. A release also exposes what it follows in its input, and
    what it refuses for a budget.

    ``order``: ``hashed`` or ``input``. ``is_release``: whether the output follows its input, and is no table of one
    job. ``budget``: the limits; None where there are none. ``n_max``: the public number of tokens of a record; None
    where the length is visible.
    """
    if not is_release:
        return ORDER_EXPOSES[order]
    # Where costs follow from texts, so does which records are refused. An author's limit counts other releases too, and
    # costs of visible lengths are finite but for any text.
    follows = n_max is None or bool(budget and budget.author is not None and budget.relation is not Relation.ANY_TEXT)
    refused = (str(Exposure.PRESENCE),) if budget and budget.limits and follows else ()
    return (*ORDER_EXPOSES[order], str(Exposure.EDITED), str(Exposure.WITHDRAWN), *refused)
