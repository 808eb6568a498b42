"""Terms of a release, and the price of one record under them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.relations import Relation


class Composition(StrEnum):
    """Composition of tokens' losses to the record's, over a metric on texts."""

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
    """``epsilon * sum over the distinct words of d(w, v)``: a word that a text has more than once is drawn once."""

    TEXT = "text"
    """``N * epsilon`` between any two different texts: the draw at one position depends on words at all others."""

    CORPUS = "corpus"
    """``M * N * epsilon`` between any two corpora, with M the most records that are ever drawn from one generator's
    weights.

    The private corpus trained the weights, so that every draw depends on every record, and one record costs as much as
    all of them, from the first draw on (docs/proofs/composition.md).
    """


@dataclass(frozen=True)
class ReleaseTerms:
    """Terms that all records of a release share: the constant part of the ``privacy`` column.

    ``bundle``: mechanism fingerprint. ``guarantee``: for one token; ``composition`` adds tokens up. ``relation``: pairs
    of texts that the bound covers. ``exposes``: other exposures, a function of the configuration alone. ``n_max``:
    public number of tokens of a text; None if its length shows. ``search``: lookup of the word nearest to a noisy
    point. It sees only the noisy point, so it is no part of the guarantee. ``search_recall``: share of noisy points for
    which it finds the nearest word, as measured by the build. ``max_records``: the most records that are ever drawn
    from private weights, each of which every record pays for (:attr:`Composition.CORPUS`); None for a mechanism made
    from public data alone.
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
    max_records: int | None = None

    @property
    def tokens(self) -> int | None:
        """Number of tokens that each record pays for; None if it is the number drawn for it."""
        return None if self.n_max is None else self.n_max * (self.max_records or 1)


@dataclass(frozen=True)
class Price:
    """Price of one record.

    ``tokens``: ``n_max`` if the length is hidden, else the tokens drawn; with private weights, ``n_max`` for each
    record that may ever be drawn from them. ``epsilon_bound``: largest loss between two texts of the stated relation.
    ``epsilon_pure``: ``epsilon_bound`` if the relation is ``any_text``, else None (infinite). ``delta``: largest
    probability by which an output may be likelier than these bounds allow; 0 if the arithmetic is exact.
    """

    tokens: int
    epsilon_bound: float
    epsilon_pure: float | None
    delta: float = 0.0


def price(terms: ReleaseTerms, drawn: int) -> Price:
    """Price a record with ``drawn`` tokens (ignored if the length is hidden).

    All compositions have the pure form ``m * (epsilon * D + slack)``, and deltas add up (docs/proofs/composition.md).
    """
    tokens = drawn if terms.tokens is None else terms.tokens
    bound = tokens * terms.guarantee.pure
    return Price(tokens, bound, bound if terms.relation is Relation.ANY_TEXT else None, tokens * terms.guarantee.delta)
