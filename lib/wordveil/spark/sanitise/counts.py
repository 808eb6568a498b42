"""Counts of a run: aggregates that are observed while its table is written, or computed later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F  # noqa: N812

from wordveil.records.schema import (
    ID_REASONS,
    QUARANTINED,
    RELEASED,
    TEXT_REASONS,
    UNKNOWN_COLUMN,
    WITHDRAWN,
    WORDS_COLUMN,
)
from wordveil.release.budgets import BUDGET_REASONS

_REASONS = (*ID_REASONS, *TEXT_REASONS, *BUDGET_REASONS)
_FEWEST_WORDS = 5
"""Number of words from which on a record of which a third is unknown counts as poorly covered.

research/benchmarks/languages.py measures which texts these are.
"""


def aggregates() -> list[Column]:
    """List aggregates of rows with the columns status, reason, privacy and the statistics."""
    status, reason = F.col("status"), F.col("reason")
    released = status == RELEASED
    sums = {"tokens": "privacy.tokens", "words": WORDS_COLUMN, "unknown": UNKNOWN_COLUMN}
    words, unknown = F.col(WORDS_COLUMN), F.col(UNKNOWN_COLUMN)
    is_poor = (words >= _FEWEST_WORDS) & (unknown * 3 >= words)
    prices = {"bound": F.col("privacy.epsilon_bound"), "pure": F.col("privacy.epsilon_pure")}
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(released).alias(RELEASED),
        F.count_if(status == WITHDRAWN).alias(WITHDRAWN),
        *(F.sum(F.when(released, F.col(name))).alias(kind) for kind, name in sums.items()),
        F.count_if(released & is_poor).alias("poorly_covered"),
        *(F.min(F.when(released, price)).alias(f"min_{kind}") for kind, price in prices.items()),
        *(F.max(F.when(released, price)).alias(f"max_{kind}") for kind, price in prices.items()),
        F.max(F.when(released, F.col("privacy.delta"))).alias("delta"),
        *(F.count_if((status == QUARANTINED) & (reason == name)).alias(name) for name in _REASONS),
    ]


def read_observation(observation: Observation) -> dict[str, Any] | None:
    """Read the aggregates of the written rows, or None if none were written, because Delta already had them."""
    values: Any = observation._jo  # noqa: SLF001 - PySpark can only wait for the values, here possibly forever
    return observation.get if values.future().isCompleted() else None


def report_counts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of :func:`aggregates` by their names in a run's report."""

    def span(kind: str) -> tuple[float, float] | None:
        smallest, greatest = values[f"min_{kind}"], values[f"max_{kind}"]
        return None if smallest is None else (smallest, greatest)

    return {
        "records": values["rows"] - values[WITHDRAWN],
        "released": values[RELEASED],
        "withdrawn": values[WITHDRAWN],
        "quarantined": {reason: values[reason] for reason in _REASONS if values[reason]},
        "tokens": values["tokens"] or 0,
        "words": values["words"] or 0,
        "unknown": values["unknown"] or 0,
        "poorly_covered": values["poorly_covered"],
        "epsilon_bound": span("bound"),
        "epsilon_pure": span("pure"),
        "delta": values["delta"],
    }
