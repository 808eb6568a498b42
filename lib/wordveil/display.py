"""Tables and notes of a preview, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table

from wordveil.comparison import Comparison, Line
from wordveil.preview import Outlook, Sample

PRIVATE_NOTE = (
    "the figures of the sample come from the private corpus and are internal. Do not tune epsilon on them: choose it on public "
    "text or on words of the vocabulary (docs/choosing.md)."
)
SPEED_NOTE = "core-hours are those of cutting into words and drawing, on one core of this machine. Reading and writing the table come on top."
COMPARISON_NOTE = (
    "drawn with a throwaway key. kept: of words evenly spread over the vocabulary, each counted once. pure: what a token's "
    "replacement loses between any two words at most. Equal nominal epsilons of two mechanisms are not equal protection."
)
WORDS_NOTE = "words of the vocabulary, drawn with a throwaway key; shares are estimates, see docs/choosing.md."


def sample_facts(sample: Sample, figures: Mapping[str, Any]) -> dict[str, str]:
    """The rows of the table of a sample. ``figures`` has ``table_rows``, ``core_hours``, ``core_hours_a_million``."""
    rate, lengths = sample.unknown_rate, sample.lengths
    facts = {
        "records read": f"{sample.records:,} of {figures['table_rows']:,}, the first of the table",
        "released": f"{sample.released:,}",
        "quarantined": _reasons(sample.quarantined),
        "unknown words": "no words" if rate is None else f"{rate:.2%} of {sample.words:,}",
        "tokens a record": "none"
        if lengths is None
        else f"{lengths.least:,} least, {lengths.median:,} median, {lengths.high:,} at 95%, {lengths.most:,} most",
    }
    if sample.emptied:
        facts["released as the empty text"] = _reasons(sample.emptied)
    if sample.cut is not None:
        facts["longer than n_max"] = f"{_share(sample.cut, sample.released)}, cut"
        facts["shorter than n_max"] = f"{_share(sample.padded or 0, sample.released)}, padded"
    kept = sample.keep_rate
    facts["expected keep-rate"] = "no known words" if kept is None else f"{kept:.1%} of {sample.keep_draws:,} known words stay"
    facts["speed"] = f"{sample.tokens_per_second:,.0f} tokens a second on one core"
    facts["core-hours, this table"] = _hours(figures["core_hours"])
    facts["core-hours, a million records"] = _hours(figures["core_hours_a_million"])
    return facts


def _reasons(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values()):,}" + (f" ({shown})" if shown else "")


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({count / whole:.1%})" if whole else "0"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:,.3g}"


def outlook_table(outlooks: Sequence[Outlook]) -> Table:
    """What becomes of each word, a line an epsilon."""
    draws = outlooks[0].draws if outlooks else 0
    table = Table(title=f"What becomes of a word, by {draws:,} draws each", title_justify="left")
    for heading in ("word", "epsilon", "stays", "different"):
        table.add_column(heading, justify="left" if heading == "word" else "right")
    table.add_column("likeliest others")
    for word, group in groupby(outlooks, key=lambda outlook: outlook.word):
        lines = list(group)
        for number, line in enumerate(lines):
            others = ", ".join(f"{other} {share:.1%}" for other, share in line.replacements) or "none seen twice"
            last = number == len(lines) - 1
            cells = (f"{line.epsilon:g}", f"{line.stays:.1%}", f"{line.different:,}", others)
            table.add_row("" if number else word, *cells, end_section=last)
    return table


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Two tables: each mechanism at the configured one's share of words kept, and at its pure epsilon."""
    first = comparison.configured
    titles = (
        (f"The sentence where {first.kept:.0%} of words are kept", comparison.equal_kept),
        (f"The sentence where a token loses {first.pure:.3g} at most between any two words", comparison.equal_pure),
    )
    return [_lines(title, [first, *lines]) for title, lines in titles]


def _lines(title: str, lines: Sequence[Line]) -> Table:
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("mechanism", max_width=24)
    for heading in ("epsilon", "pure", "kept"):
        table.add_column(heading, justify="right")
    table.add_column("text", ratio=1)
    for line in lines:
        epsilon = "" if line.epsilon is None else f"{line.epsilon:g}"
        table.add_row(line.mechanism, epsilon, f"{line.pure:.3g}", f"{line.kept:.0%}", line.text)
    return table
