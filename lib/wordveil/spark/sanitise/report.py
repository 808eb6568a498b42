"""Report of a run, and its counts: aggregates that are observed while its table is written, or computed later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from wordveil.artifacts.bundle import Bundle
from wordveil.measures.text_lengths import share_padding
from wordveil.records.sanitiser import RecordSettings, release_terms
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

NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("records", "released", "withdrawn", "corrected", "stale", "tokens", "words", "unknown"), 0),
    "quarantined": {},
    "refused": {},
    "epsilon_bound": None,
    "epsilon_pure": None,
    "delta": None,
}
"""Counts of a run that read nothing."""
_REASONS = (*ID_REASONS, *TEXT_REASONS, *BUDGET_REASONS)


@dataclass(frozen=True)
class RunReport:
    """Report of a run. Counts are of this run's input; it has no text.

    ``epsilon_bound`` and ``epsilon_pure``: the minimum and maximum price of a released record; None without released
    records, and ``epsilon_pure`` also without a pure bound under the relation. ``delta``: the maximum of a released
    record. ``changes``: the way in which a release's run found its records: ``all``, ``feed``, ``scan``, ``none`` if
    the input had not changed and nothing was read, or ``withdraw``. ``corrected``: records of which only the author had
    changed, so that nothing was drawn. ``refused``: records that a budget keeps out, by its name, including those that
    the last run had refused already. ``stale``: records whose edit a budget has refused in this run and whose last
    version stays released. ``recovery``: the share of single words that an attacker recovers, as
    :class:`wordveil.privacy.recovery.Recovery` writes it, or None. ``padding_as_words``: the share of padding that
    becomes words, by the mechanism's law, so that it reveals nothing of the texts; None if none is drawn or the law is
    unknown.
    """

    run_id: str
    release: str
    output: str
    records: int
    released: int
    quarantined: dict[str, int]
    tokens: int
    words: int
    unknown: int
    relation: str
    metric: str
    nominal_epsilon: float
    epsilon: float
    epsilon_bound: tuple[float, float] | None
    epsilon_pure: tuple[float, float] | None
    exposes: tuple[str, ...]
    mechanism_fingerprint: str
    policy_fingerprint: str
    key_fingerprint: str
    seconds: float
    notes: tuple[str, ...] = field(default=())
    changes: str = "all"
    withdrawn: int = 0
    corrected: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    stale: int = 0
    delta: float | None = None
    input_version: int | None = None
    recovery: dict[str, Any] | None = None
    padding_as_words: float | None = None

    @property
    def unknown_rate(self) -> float | None:
        """Share of words in released records that are not in the vocabulary."""
        return self.unknown / self.words if self.words else None

    @property
    def tokens_per_second(self) -> float:
        """Number of tokens drawn per second, from reading to the finished table."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunReport:
        """Read what :meth:`to_dict` returned, from JSON."""
        chosen: dict[str, Any] = {item.name: values[item.name] for item in fields(cls) if item.name in values}
        chosen |= {name: tuple(value) for name, value in chosen.items() if isinstance(value, list)}
        return cls(**chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self.__dict__, "unknown_rate": self.unknown_rate, "tokens_per_second": self.tokens_per_second}


def make_report(
    settings: RecordSettings,
    bundle: Bundle,
    key_fingerprint: str,
    counts: Mapping[str, Any],
    *,
    output: str,
    seconds: float,
    notes: tuple[str, ...] = (),
    changes: str = "all",
    input_version: int | None = None,
) -> RunReport:
    """Make the report of a run under ``settings``, from the ``counts`` of :func:`report_counts` and of releases.

    ``notes`` follow those of the bundle.
    """
    terms = release_terms(settings, bundle)
    return RunReport(
        run_id=settings.run_id,
        release=settings.release,
        output=output,
        relation=str(terms.relation),
        metric=terms.guarantee.metric.identifier,
        nominal_epsilon=terms.guarantee.nominal_epsilon,
        epsilon=terms.guarantee.epsilon,
        exposes=terms.exposes,
        mechanism_fingerprint=bundle.fingerprint,
        policy_fingerprint=settings.policy_fingerprint,
        key_fingerprint=key_fingerprint,
        seconds=seconds,
        notes=(*bundle.manifest["notes"], *notes),
        changes=changes,
        input_version=input_version,
        recovery=bundle.recovery.to_dict() if bundle.recovery else None,
        padding_as_words=share_padding(settings.policy, bundle.mechanism, bundle.vocabulary.size),
        **counts,
    )


def aggregates() -> list[Column]:
    """List aggregates of rows with the columns status, reason, privacy and the statistics."""
    status, reason = F.col("status"), F.col("reason")
    released = status == RELEASED
    sums = {"tokens": "privacy.tokens", "words": WORDS_COLUMN, "unknown": UNKNOWN_COLUMN}
    prices = {"bound": F.col("privacy.epsilon_bound"), "pure": F.col("privacy.epsilon_pure")}
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(released).alias(RELEASED),
        F.count_if(status == WITHDRAWN).alias(WITHDRAWN),
        *(F.sum(F.when(released, F.col(name))).alias(kind) for kind, name in sums.items()),
        *(F.min(F.when(released, price)).alias(f"min_{kind}") for kind, price in prices.items()),
        *(F.max(F.when(released, price)).alias(f"max_{kind}") for kind, price in prices.items()),
        F.max(F.when(released, F.col("privacy.delta"))).alias("delta"),
        *(F.count_if((status == QUARANTINED) & (reason == name)).alias(name) for name in _REASONS),
    ]


def count_rows(rows: DataFrame) -> dict[str, Any]:
    """Count ``rows``; the result is that of :func:`report_counts`."""
    return report_counts(rows.agg(*aggregates()).collect()[0].asDict())


def read_observation(observation: Observation) -> dict[str, Any] | None:
    """Read the aggregates of the written rows, or None if none were written, because Delta already had them."""
    values: Any = observation._jo  # noqa: SLF001 - PySpark can only wait for the values, here possibly forever
    if not values.future().isCompleted():
        return None
    return observation.get


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
        "epsilon_bound": span("bound"),
        "epsilon_pure": span("pure"),
        "delta": values["delta"],
    }
