"""Price of a record."""

from __future__ import annotations

from dataclasses import dataclass

from wordveil.privacy.events import ReleaseTerms
from wordveil.privacy.relations import Relation


@dataclass(frozen=True)
class Price:
    """Price of one record.

    ``tokens``: tokens that are paid for: ``n_max`` where the length is hidden, else the tokens drawn. Where the private
    corpus trained the weights, ``n_max`` for each record that may ever be drawn from them. ``epsilon_bound``: the
    largest loss between two texts of the stated relation. ``epsilon_pure``: the same where the relation is
    ``any_text``; None, meaning infinite, where it is not. ``delta``: the probability, at most, by which an output may
    be likelier than these bounds allow; 0 where the arithmetic is exact.
    """

    tokens: int
    epsilon_bound: float
    epsilon_pure: float | None
    delta: float = 0.0


def price(terms: ReleaseTerms, drawn: int) -> Price:
    """Price a record of which ``drawn`` tokens were drawn (ignored where the length is hidden).

    All compositions have the pure form ``m * (epsilon * D + slack)``: no distance exceeds the diameter D, and the
    Earth Mover's and bottleneck distances are at most the largest distance between two words. Deltas add up: ``m *
    delta`` (basic composition: Dwork and Roth 2014, Theorem 3.16).
    """
    tokens = drawn if terms.tokens is None else terms.tokens
    bound = tokens * terms.guarantee.pure
    return Price(tokens, bound, bound if terms.relation is Relation.ANY_TEXT else None, tokens * terms.guarantee.delta)
