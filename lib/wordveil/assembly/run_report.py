"""Report of a run: its counts and prices, as commands print it and a release's journal keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from wordveil.artifacts.bundle import Bundle
from wordveil.measures.text_lengths import share_padding
from wordveil.records.sanitiser import RecordSettings, release_terms

NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("records", "released", "withdrawn", "tokens", "words", "unknown", "poorly_covered"), 0),
    **dict.fromkeys(("corrected", "kept_changed", "stale"), 0),
    "quarantined": {},
    "refused": {},
    "epsilon_bound": None,
    "epsilon_pure": None,
    "delta": None,
}
"""Counts of a run that read nothing."""


@dataclass(frozen=True)
class RunReport:
    """Report of a run. Counts are of this run's input; it has no text.

    ``poorly_covered``: released records of five words or more, a third of them unknown or more.
    ``epsilon_bound`` and ``epsilon_pure``: the minimum and maximum price of a released record; None without released
    records, and ``epsilon_pure`` also without a pure bound under the relation. ``delta``: the maximum of a released
    record. ``changes``: the way in which a release's run found its records: ``all``, ``feed``, ``scan``, ``none`` if
    the input had not changed and nothing was read, or ``withdraw``. ``corrected``: records of which the author had
    changed and the text had not, so that nothing was drawn. ``kept_changed``: released records whose kept columns had
    changed, and for which nothing was drawn. ``refused``: records that a budget keeps out, by its name, including those
    that the last run had refused already. ``stale``: records whose edit a budget has refused in this run and whose last
    version stays released. ``recovery``: the share of single words that an attacker recovers, as
    :class:`wordveil.privacy.recovery.Recovery` writes it, or None. ``padding_as_words``: the share of padding that
    becomes words, by the mechanism's law, so that it reveals nothing of the texts; None if none is drawn or the law is
    unknown. ``table``: of a shuffled table, :class:`wordveil.privacy.table.TablePrivacy` as plain values.
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
    poorly_covered: int = 0
    changes: str = "all"
    withdrawn: int = 0
    corrected: int = 0
    kept_changed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    stale: int = 0
    delta: float | None = None
    input_version: int | None = None
    recovery: dict[str, Any] | None = None
    padding_as_words: float | None = None
    table: dict[str, Any] | None = None

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
    table: dict[str, Any] | None = None,
) -> RunReport:
    """Make the report of a run under ``settings``, from its ``counts`` (:mod:`wordveil.spark.sanitise.counts`).

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
        table=table,
        recovery=bundle.recovery.to_dict() if bundle.recovery else None,
        padding_as_words=None
        if bundle.topics
        else share_padding(settings.policy, bundle.mechanism, bundle.vocabulary.size),
        **counts,
    )
