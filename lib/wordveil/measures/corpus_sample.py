"""Effect of a job on the records of a sample: counts, shares and speeds. They are functions of private text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from wordveil.measures.text_lengths import Suggestion
from wordveil.scores.histogram import Bin


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a count over the records.

    ``min``: the smallest count of a record. ``median``: at least half of the records have no more than this. ``p95``:
    at least 95% of the records have no more than this. ``max``: the largest count of a record.
    """

    min: int
    median: int
    p95: int
    max: int


@dataclass(frozen=True)
class ColumnSample:
    """Sample of one of several text columns.

    ``name``: the column. ``lengths``: tokens to be replaced in a released record, before they are cut or filled.
    ``cut``: released records that are longer than the column's public length; None where the policy does not pad.
    ``suggested``: another public length; None where the policy has none.
    """

    name: str
    lengths: Quantiles
    cut: int | None
    suggested: Suggestion | None


@dataclass(frozen=True)
class Sample:
    """Effect of the job on the records that were read. Counts only.

    ``records``: records read. ``released``: those that would get a sanitised text. ``quarantined``: the others, by
    reason. ``emptied``: those released as the empty text (``refused: empty``), by reason. ``words``, ``unknown``: words
    of the released records before the policy, and those outside the vocabulary. ``lengths``: tokens to be replaced in a
    released record, before it is cut or filled; None where none is released. ``histogram``: how many released records
    have how many of them. ``distinct``: different words among them, each of which is drawn once; None where none is
    released, and under ``repeat: each``. ``cut``, ``padded``: released records longer and shorter than ``n_max``, of
    several columns in any of them; None where the policy does not pad. ``suggested``: another ``n_max`` for such
    records; None where the policy has none, where no record is released, and where there are several text columns.
    ``tokens``: tokens that the job would charge the released records for. ``keep_rate``: share of known words to be
    replaced that stay themselves; None where there are none. ``keep_draws`` words were drawn for it.
    ``tokens_per_second``: of one core of this machine, by processor time, so that a busy machine does not count.
    ``seconds``: of one core for all records read: cutting into words, and drawing ``tokens``; processor time.
    ``columns``: lengths by column, where there are several and a record is released.
    """

    records: int
    released: int
    quarantined: dict[str, int]
    emptied: dict[str, int]
    words: int
    unknown: int
    lengths: Quantiles | None
    histogram: tuple[Bin, ...]
    distinct: Quantiles | None
    cut: int | None
    padded: int | None
    suggested: Suggestion | None
    tokens: int
    keep_rate: float | None
    keep_draws: int
    tokens_per_second: float
    seconds: float
    columns: tuple[ColumnSample, ...] = ()

    @property
    def unknown_rate(self) -> float | None:
        """Share of words outside the vocabulary; None if no word was read."""
        return self.unknown / self.words if self.words else None

    def core_hours(self, records: int) -> float | None:
        """Compute hours of one core for ``records`` records like these; None if none was read."""
        return self.seconds / self.records * records / 3600 if self.records else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "unknown_rate": self.unknown_rate}
