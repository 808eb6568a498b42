"""Tables and notes of previews and runs, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from wordveil.cli.output import print_grid
from wordveil.privacy.guarantees import CORPUS_METRIC, TEXTS
from wordveil.privacy.recovery import PriorRecovery, Recovery
from wordveil.privacy.table import TablePrivacy
from wordveil.release.budgets import OVER_AUTHOR_BUDGET
from wordveil.report.values import show_recovered, show_share
from wordveil.text.choices import DrawnUnit

if TYPE_CHECKING:
    from wordveil.measures.comparison import MechanismLine, SentenceComparison
    from wordveil.measures.preview import Quantiles, Sample, WordPreview
    from wordveil.measures.text_lengths import OutputLength
    from wordveil.release.rules import RuleResult
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.plan.sample import Preview

PRIVATE_NOTE = (
    "the figures of the sample come from the private corpus and are internal. Do not tune epsilon on them: use public "
    "text or words of the vocabulary (`wordveil docs figures`)."
)
SPEED_NOTE = (
    "speed is of drawing alone, time of splitting texts into words and drawing, on one core of this machine. `wordveil "
    "sanitise` reports the speed of its whole job on all cores, with reading, shuffling and writing."
)
COMPARISON_NOTE = (
    "drawn with a throwaway key. kept: the share of words that stay, over words evenly spread over the vocabulary. "
    "pure: the largest loss of one token between any two words. Equal nominal epsilons of two mechanisms do not mean "
    "equal protection. The others are built over the first 20,000 words of the embedding at most."
)
LENGTH_NOTE = (
    "texts are filled up with padding, which is drawn like any word and may come out as one. A smaller text.n_max adds "
    "fewer such words, and cuts more texts."
)
ADVICE_NOTE = (
    "n_max is public, and what is suggested comes from the private lengths, in round numbers so that it says little "
    "about them. Choose n_max once, by what is publicly known of such texts where you can, and do not tune it again."
)
NOT_MEASURED = "not measured: the mechanism reads whole texts, or the bundle is old (move it away and build it again)"
"""Placeholder for figures that a bundle lacks."""
COMPOSED = {
    "text": "text: what is drawn at a position depends on the whole text, so any two texts may differ at all positions",
    "corpus": "corpus: the private corpus trained the weights, so each record pays for all that are ever drawn",
}
"""The meaning of compositions whose names do not explain it."""
ALONE_NOTE = (
    "the price is of this output alone, and no ledger keeps it. Outputs of the same records under another policy, "
    "bundle, key or release name add their prices to it, because readers join them by id. `wordveil docs "
    "guarantees` says more."
)
SHUFFLED_NOTE = (
    "the epsilon of the table is of this output alone, and no ledger keeps it. Every further table of the same records "
    "adds its own. `wordveil docs releases` says more."
)
WORDS_NOTE = "words of the vocabulary, drawn with a throwaway key; shares are estimates, see `wordveil docs figures`."
CLUSTERS_NOTE = (
    "stays: the share of draws that stay in the word's cluster, and give the word that stands for it. No other word of "
    "the cluster is ever written."
)
SENTENCE_NOTE = "drawn once with a throwaway key: another draw reads differently."


def sample_facts(sample: Sample, figures: Mapping[str, Any]) -> dict[str, str]:
    """Make the rows of the table of a sample.

    ``figures`` has ``table_rows``, ``core_hours``, ``core_hours_a_million``, and for a random sample ``files``,
    ``files_read`` and ``seed``.
    """
    rate, lengths = sample.unknown_rate, sample.lengths
    facts = {
        "records read": f"{sample.records:,} of {figures['table_rows']:,}{_drawn_from(sample, figures)}",
        "released": f"{sample.released:,}",
        "quarantined": show_reasons(sample.quarantined),
        "unknown words": "no words" if rate is None else f"{rate:.2%} of {sample.words:,}",
        ("tokens a record" if sample.unit == DrawnUnit.WORD else "words a record"): "none"
        if lengths is None
        else _quantiles(lengths),
    }
    if sample.distinct is not None:
        facts["different words a record"] = _quantiles(sample.distinct)
    if sample.emptied:
        facts["released as the empty text"] = show_reasons(sample.emptied)
    if others := sample.other_languages:
        share, most = _share(sum(others.values()), sample.released), max(others, key=lambda name: others[name])
        facts["in another language"] = (
            f"{share} at least, most of them {most}: their words come out as noise. Set text.other_language: quarantine"
        )
    if sample.cut is not None:
        facts["longer than n_max"] = f"{_share(sample.cut, sample.released)}, cut"
        facts["shorter than n_max"] = f"{_share(sample.padded or 0, sample.released)}, padded"
    for column in sample.columns:
        facts[f"tokens of {column.name}"] = _quantiles(column.lengths)
        if column.suggested:
            facts[f"suggested n_max of {column.name}"] = f"{column.suggested.n_max:,}, the p95 rounded up"
    if suggested := figures.get("suggested"):
        cut = _share(suggested["cut"], sample.released)
        facts["suggested n_max"] = f"{suggested['n_max']:,}, the p95 rounded up; {cut} cut"
        facts["epsilon of a record at that"] = number(suggested["epsilon_bound"])
    kept, is_whole = sample.keep_rate, sample.unit != DrawnUnit.WORD
    stays = "known words stay in their cluster" if sample.by_cluster else "known words stay"
    stays = f"{sample.unit}s keep their subject" if is_whole else stays
    facts["expected keep-rate"] = "no known words" if kept is None else f"{kept:.1%} of {sample.keep_draws:,} {stays}"
    if not is_whole:  # the time to draw a text is nothing beside the time to read it
        facts["speed of drawing"] = f"{sample.tokens_per_second:,.0f} tokens a second on one core"
    facts["time on one core, this table"] = show_time(figures["core_hours"])
    facts["time on one core, a million records"] = show_time(figures["core_hours_a_million"])
    return facts


def _drawn_from(sample: Sample, figures: Mapping[str, Any]) -> str:
    """Describe how the records were chosen."""
    if sample.records >= figures["table_rows"]:
        return ", all of the table"
    return f", at random, from {figures['files_read']:,} of {figures['files']:,} files; --seed {figures['seed']}"


def _quantiles(quantiles: Quantiles) -> str:
    return f"min {quantiles.min:,}, median {quantiles.median:,}, p95 {quantiles.p95:,}, max {quantiles.max:,}"


def show_reasons(counts: Mapping[str, int]) -> str:
    """Show counts by reason after their sum."""
    shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values()):,}" + (f" ({shown})" if shown else "")


def left_out_facts(refused: Mapping[str, int] | None) -> dict[str, str]:
    """Make the row on records that budgets keep out of a published table; empty without budgets."""
    if refused is None:
        return {}
    biased = ". Counts of the table lack records of frequent authors" if OVER_AUTHOR_BUDGET in refused else ""
    return {"left out by budgets": f"{show_reasons(refused)}{biased}"}


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({count / whole:.1%})" if whole else "0"


def show_time(hours: float | None) -> str:
    """Show a time in the largest unit of which it has at least two, up to hours, in two digits or as a whole number."""
    if hours is None:
        return "unknown"
    if hours * 3600 < 1:
        return "under a second"
    units = {"hours": 1.0, "minutes": 60.0, "seconds": 3600.0}
    name = next((name for name, parts in units.items() if hours * parts >= 2), "seconds")
    return f"{hours * units[name]:,.0f} {name}" if hours * units[name] >= 10 else f"{hours * units[name]:.2g} {name}"


def words_notes(preview: Preview) -> list[str]:
    """Make the notes for readers of :func:`print_words`."""
    return [WORDS_NOTE, *([CLUSTERS_NOTE] if preview.by_cluster else [])]


def list_words(previews: Sequence[WordPreview]) -> tuple[list[str], list[list[str]]]:
    """List headings and a row for each word: how often it stays at each epsilon, and the likeliest others at its own.

    ``previews``: not empty, by word and rising epsilon, with the configuration's in the middle.
    """
    groups = {word: list(group) for word, group in groupby(previews, key=lambda preview: preview.word)}
    lines = next(iter(groups.values()))
    stays = [f"stays at {line.epsilon:g}" for line in lines]
    rows = []
    for word, lines in groups.items():
        likeliest = lines[len(lines) // 2].replacements
        others = ", ".join(f"{other} {share:.1%}" for other, share in likeliest) or "none drawn twice"
        rows.append([word, *(f"{line.stays:.1%}" for line in lines), others])
    return ["word", *stays, f"likeliest others at {lines[len(lines) // 2].epsilon:g}"], rows


def print_words(previews: Sequence[WordPreview]) -> None:
    """Print the outputs of each word, as :func:`list_words`."""
    (word, *stays, others), rows = list_words(previews)
    print_grid(f"What words become, by {previews[0].draws:,} draws each", rows, (word,), stays, (others,))


def length_facts(lines: Sequence[OutputLength]) -> dict[str, str]:
    """Make the rows on the numbers of words in output texts."""
    return {
        f"a text of {line.words} words": f"comes out with {'about ' if line.draws else ''}{line.mean:,.4g} words "
        f"(standard deviation {line.deviation:.2g})"
        for line in lines
    }


def compared_lines(comparison: SentenceComparison) -> list[tuple[str, list[MechanismLine]]]:
    """Return, with titles, each mechanism at the configured one's share of kept words and at its pure epsilon."""
    first = comparison.configured
    titles = (
        (f"The sentence at a keep-rate of {first.kept:.0%}", comparison.equal_kept),
        (f"The sentence at a pure epsilon of at most {first.pure:.3g} for each token", comparison.equal_pure),
    )
    return [(title, [first, *lines]) for title, lines in titles]


def print_mechanisms(title: str, lines: Sequence[MechanismLine]) -> None:
    """Print one item of :func:`compared_lines`."""
    epsilons = ["" if line.epsilon is None else f"{line.epsilon:g}" for line in lines]
    figures = [(epsilon, f"{line.pure:.3g}", f"{line.kept:.0%}") for epsilon, line in zip(epsilons, lines, strict=True)]
    rows = [(line.mechanism, *shown, line.text) for line, shown in zip(lines, figures, strict=True)]
    widths = {"mechanism": {"max_width": 24}, "text": {"ratio": 1}}
    print_grid(title, rows, ("mechanism",), ("epsilon", "pure", "kept"), ("text",), has_lines=True, **widths)


def price_epsilon(epsilon: float, metric: str) -> str:
    """Show an epsilon and its unit. ``metric``: its identifier; empty if it is not known yet."""
    name = metric.partition(":")[0]
    if name == CORPUS_METRIC:
        return f"{epsilon:g} between any two corpora"
    if name in _PAIRS:
        return f"{epsilon:g} between any two {_PAIRS[name]}"
    return f"{epsilon:g} {' '.join(filter(None, ('per unit of', name, 'distance')))}"


_PAIRS = {"discrete": "words", TEXTS: "texts"}


def price_plan(plan: Plan) -> str:
    """Show the epsilon of a plan's mechanism and its unit, even before a bundle gives the metric."""
    from wordveil.mechanisms.registry import MECHANISMS

    mechanism = MECHANISMS[plan.mechanism]
    if mechanism.priced:
        return f"{plan.epsilon:g} of {'a sentence' if plan.unit == DrawnUnit.SENTENCE else mechanism.priced}"
    return price_epsilon(plan.epsilon, plan.metric or ("discrete" if mechanism.is_pure else ""))


def table_facts(table: TablePrivacy) -> dict[str, str]:
    """Make the row of a shuffled table."""
    where = "rows" if table.groups == 1 else f"rows, the smallest of {table.groups:,} groups"
    return {
        "epsilon of the table": f"{table.epsilon:.4g} for each record at delta {table.delta:g}, by "
        f"{table.rows:,} {where}; "
        f"{table.local_epsilon:.4g} for who can tell which row is a record's"
    }


def recovery_facts(recovery: Recovery | None) -> dict[str, str]:
    """Make the rows on an attacker's recovery of words or subjects; ``recovery`` is None for a bundle without it."""
    if recovery is None:
        return {"words recovered": NOT_MEASURED}
    of = recovery.of
    often, rare = (_recovered(prior, of) for prior in (recovery.frequency, recovery.uniform))
    return {
        f"{of}s recovered": f"an attacker who knows {of} frequencies recovers {often}",
        f"rare {of}s too": f"where all {of}s are equally likely, an attacker recovers {rare}",
    }


def _recovered(prior: PriorRecovery, of: str) -> str:
    once, last = prior.after[0], prior.after[-1]
    shown = f"{show_recovered(once)} of the {of}s (without looking: {show_share(prior.before)})"
    return shown if last is once else f"{shown}; after {last.draws} draws of one {of} {show_recovered(last)}"


def number(value: float | None) -> str:
    """Show a figure in six digits."""
    return "unknown" if value is None else f"{value:,.6g}"


def show_cost(value: float) -> str:
    """Show a cost or a limit in ten digits, without errors of rounding in a rest."""
    return f"{round(value, 6) + 0.0:,.10g}"


def show_figure(result: RuleResult) -> str:
    """Show a rule's measured value."""
    return "no figure" if result.value is None else show_value(result.value)


def show_value(value: object) -> str:
    """Show a figure or a limit of a rule."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "nothing"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
