"""Limit on the records that may still be drawn from weights that the private corpus trained.

Every record pays for ``mechanism.max_records`` draws from the first one on, so that more must never be drawn: not in
this run, and not in another run or release of the ledger. All draws of a ledger from such weights have one metric
(:func:`wordveil.privacy.corpus.charge_corpus`), by which they are counted. One under another name would be a draw from
other weights, or at another price, which records that were charged before have not paid for: it is refused.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from wordveil.errors import ReleaseError
from wordveil.privacy.corpus import CORPUS_METRIC
from wordveil.spark.release.ledger import ABANDON, RESERVE, SETTLE, Terms, count_used


class RecordLimitError(ReleaseError):
    """Error for a run that would draw more from the weights than its ledger has room for, by ``over`` records. Nothing
    was drawn or charged.
    """

    def __init__(self, message: str, over: int) -> None:
        super().__init__(message)
        self.over = over


def check_record_limit(candidates: DataFrame, ledger: DataFrame, terms: Terms, max_records: int) -> None:
    """Check that the ledger has room for a run's draws from weights that the private corpus trained.

    ``candidates``: what the run asks for, with ``reason``, null where the record is admitted. ``ledger``: the ledger's
    entries, of all its releases. ``terms``: what a draw of the run costs. ``max_records``: the most records that are
    ever drawn from the weights.

    Raises
    ------
    RecordLimitError
        where the ledger has draws from such weights under another metric, or there would be too many.
    """
    drawn = ledger.where(F.col("kind").isin(RESERVE, SETTLE, ABANDON) & F.col("metric").startswith(f"{CORPUS_METRIC}:"))
    counted = drawn.groupBy("metric").agg(F.sum(count_used("draws")).alias("draws"))
    before = {row.metric: int(row.draws) for row in counted.collect() if row.draws}
    asked = candidates.where(F.col("reason").isNull()).count()
    if others := sorted(before.keys() - {terms.metric}):
        raise RecordLimitError(
            f"mechanism.max_records = {max_records}: the ledger has draws from a generator of a private corpus at "
            f"another price ({others[0]}; this run's is {terms.metric}). Weights, mechanism.epsilon, text.n_max and "
            "mechanism.max_records must be the same for all releases of a ledger, because its records have paid for "
            "no others. Use those of the first run. For another corpus, name another ledger.path.",
            asked,
        )
    used = before.get(terms.metric, 0)
    if (over := used + asked - max_records) > 0:
        raise RecordLimitError(
            f"mechanism.max_records = {max_records}: {used:,} records have been drawn from these weights, over all "
            f"releases of the ledger, and this run asks for {asked:,} more, {over:,} too many. Nothing was drawn or "
            "charged. Each record has paid for max_records draws and no more, so it cannot be raised. Leave records "
            "out with input.where, or go on with weights that public text trained.",
            over,
        )
