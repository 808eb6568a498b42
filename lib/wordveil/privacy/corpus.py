"""Cost of draws from weights that the private corpus trained.

Every such draw depends on every record, and each record pays for all that will ever be drawn from the weights
(:attr:`wordveil.privacy.events.Composition.CORPUS`). That is true only if all of it is drawn at one price, and counted
in one ledger. So all that decides the price goes into the name of a metric of its own: draws at another price have
another name, and a ledger with a draw under such a name accepts none under another.
"""

from __future__ import annotations

import hashlib

from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.metrics import Metric

CORPUS_METRIC = "corpus"
"""The name of a metric under which any two corpora that differ are at distance 1."""


def charge_corpus(guarantee: WordGuarantee, weights: str, n_max: int, max_records: int) -> WordGuarantee:
    """Convert the guarantee of one symbol to one between any two corpora.

    ``guarantee``: what it guarantees between any two texts, whatever the weights are. ``weights``: what identifies the
    weights (:attr:`wordveil.mechanisms.base.Mechanism.private_weights`). ``n_max``: the public number of tokens of a
    record. ``max_records``: the most records that are ever drawn from the weights.

    Returns
    -------
    WordGuarantee
        with the same :attr:`WordGuarantee.pure` and delta. Its metric identifies weights, price and both numbers.
    """
    named = f"{weights} {guarantee.pure.hex()} {guarantee.delta.hex()} {n_max} {max_records}"
    metric = Metric(CORPUS_METRIC, hashlib.sha256(named.encode()).hexdigest())
    return WordGuarantee(metric, guarantee.nominal_epsilon, guarantee.pure, diameter=1.0, delta=guarantee.delta)
