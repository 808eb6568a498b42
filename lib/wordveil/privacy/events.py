"""Events: what a release does to one record, complete enough to price it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.relations import Relation


class Composition(StrEnum):
    """How the tokens' losses add up to the record's, over a metric on texts."""

    SEQUENCE = "sequence"
    """``epsilon * sum_i d(w_i, v_i)``: order is released."""

    BAG = "bag"
    """``epsilon * N * E_d``, with E_d the Earth Mover's distance of bags with masses 1/N (Fernandes, Dras, McIver 2019,
    Theorem 1; their 2018 bound without N is too small by that factor)."""

    SAMPLED = "sampled"
    """``epsilon * n * W_inf``, with W_inf the bottleneck distance: n tokens drawn i.i.d. from the text (Fernandes,
    Dras, McIver 2018, section 5.2; their W_1 is too small).
    """

    DISTINCT = "distinct"
    """``epsilon * sum over the distinct words of d(w, v)``: a word that a text has more than once is drawn once.

    Two texts with the same pattern of equal places have equally many distinct words; let ``w_j`` and ``v_j`` be those
    that are first in the same place. The output is a function of one independent draw for each ``j``, of the pattern
    and, for a bag, of an order that depends on neither. So the loss is at most that of the draws,
    ``sum_j epsilon * d(w_j, v_j)``: two texts that differ in one distinct word differ in one draw, however many places
    have it.
    """


@dataclass(frozen=True)
class ReleaseTerms:
    """All that is the same for each record of a release: the constant part of the ``privacy`` column.

    Attributes
    ----------
    release
        the release's name.
    mechanism
        its mechanism's name.
    bundle
        the mechanism fingerprint.
    guarantee
        what one token costs.
    composition
        how tokens add up.
    relation
        the pairs of texts for which the bound holds.
    exposes
        what is shown besides, as a function of the configuration alone.
    n_max
        the public number of tokens where the length is hidden, else None.
    search
        how the word nearest to a noisy point is found. No part of the guarantee: it sees the noisy point alone.
    search_recall
        the share of noisy points for which it is found, as measured by the build.
    """

    release: str
    mechanism: str
    bundle: str
    guarantee: WordGuarantee
    composition: Composition
    relation: Relation
    exposes: tuple[str, ...]
    n_max: int | None
    search: str
    search_recall: float
