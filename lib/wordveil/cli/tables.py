"""Tables and notes of previews and runs, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from wordveil.cli.output import Table
from wordveil.privacy.guarantees import CORPUS_METRIC
from wordveil.privacy.recovery import PriorRecovery, Recovery
from wordveil.report.values import show_recovered, show_share

if TYPE_CHECKING:
    from wordveil.measures.comparison import MechanismLine, SentenceComparison
    from wordveil.measures.preview import Quantiles, Sample, UnknownWord, WordPreview
    from wordveil.measures.text_lengths import OutputLength
    from wordveil.release.rules import GateResult, RuleResult
    from wordveil.release.verify import Verified
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.plan.sample import Preview
    from wordveil.spark.sanitise.report import RunReport
    from wordveil.text.codec import TokenReading

PRIVATE_NOTE = (
    "the figures of the sample come from the private corpus and are internal. Do not tune epsilon on them: use public "
    "text or words of the vocabulary (`wordveil docs figures`)."
)
SPEED_NOTE = (
    "speed and core-hours are of splitting texts into words and drawing, on one core of this machine. `wordveil "
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
CHANGES = {
    "all": "all: no record of this input was known yet",
    "feed": "feed: the records that the table's change data feed names",
    "scan": "scan: the contents of all records were compared",
    "none": "none: the input has not changed; nothing was read",
    "withdraw": "withdraw: records were withdrawn as asked",
}
"""The meaning of a run's ``changes``, for people."""
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
WORDS_NOTE = "words of the vocabulary, drawn with a throwaway key; shares are estimates, see `wordveil docs figures`."
CLUSTERS_NOTE = (
    "only the word that stands for a cluster can stay. The other words of its cluster become it, and never stay."
)
SENTENCE_NOTE = "drawn once with a throwaway key: another draw reads differently."

_SHOWN_RUNS = 10
# The length of a generated run id.
_RUN_ID = 25


def sample_facts(sample: Sample, figures: Mapping[str, Any]) -> dict[str, str]:
    """Make the rows of the table of a sample.

    ``figures`` has ``table_rows``, ``core_hours``, ``core_hours_a_million``, and for a random sample ``files``,
    ``files_read`` and ``seed``.
    """
    rate, lengths = sample.unknown_rate, sample.lengths
    facts = {
        "records read": f"{sample.records:,} of {figures['table_rows']:,}{_drawn_from(sample, figures)}",
        "released": f"{sample.released:,}",
        "quarantined": _reasons(sample.quarantined),
        "unknown words": "no words" if rate is None else f"{rate:.2%} of {sample.words:,}",
        "tokens a record": "none" if lengths is None else _quantiles(lengths),
    }
    if sample.distinct is not None:
        facts["different words a record"] = _quantiles(sample.distinct)
    if sample.emptied:
        facts["released as the empty text"] = _reasons(sample.emptied)
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
    kept = sample.keep_rate
    facts["expected keep-rate"] = (
        "no known words" if kept is None else f"{kept:.1%} of {sample.keep_draws:,} known words stay"
    )
    facts["speed"] = f"{sample.tokens_per_second:,.0f} tokens a second on one core"
    facts["core-hours, this table"] = _hours(figures["core_hours"])
    facts["core-hours, a million records"] = _hours(figures["core_hours_a_million"])
    return facts


def _drawn_from(sample: Sample, figures: Mapping[str, Any]) -> str:
    """Describe how the records were chosen."""
    if sample.records >= figures["table_rows"]:
        return ", all of the table"
    return f", at random, from {figures['files_read']:,} of {figures['files']:,} files; --seed {figures['seed']}"


def _quantiles(quantiles: Quantiles) -> str:
    return f"min {quantiles.min:,}, median {quantiles.median:,}, p95 {quantiles.p95:,}, max {quantiles.max:,}"


def _reasons(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values()):,}" + (f" ({shown})" if shown else "")


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({count / whole:.1%})" if whole else "0"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:,.3g}"


def words_notes(preview: Preview) -> list[str]:
    """Make the notes for readers of :func:`word_table`."""
    return [WORDS_NOTE, *([CLUSTERS_NOTE] if preview.by_cluster else [])]


def word_table(previews: Sequence[WordPreview]) -> Table:
    """Make a table of the outputs of each word, with a line for each epsilon."""
    draws = previews[0].draws if previews else 0
    table = Table(f"What words become, by {draws:,} draws each")
    for heading in ("word", "epsilon", "stays", "different"):
        table.add_column(heading, justify="left" if heading == "word" else "right")
    table.add_column("likeliest others")
    for word, group in groupby(previews, key=lambda preview: preview.word):
        lines = list(group)
        for number, line in enumerate(lines):
            others = ", ".join(f"{other} {share:.1%}" for other, share in line.replacements) or "none drawn twice"
            last = number == len(lines) - 1
            cells = (f"{line.epsilon:g}", f"{line.stays:.1%}", f"{line.different:,}", others)
            table.add_row("" if number else word, *cells, end_section=last)
    return table


def token_table(tokens: Sequence[TokenReading]) -> Table:
    """Make a table of the class and the treatment of each token of a sentence."""
    table = Table("What each token was taken for")
    for heading in ("token", "taken for", "what happens"):
        table.add_column(heading)
    for reading in tokens:
        table.add_row(*reading)
    return table


def unknown_facts(words: Sequence[UnknownWord]) -> dict[str, str]:
    """Make the rows of the table of words that the vocabulary lacks."""
    return {word.word: f"unknown: {word.becomes} (text.unknown: {word.rule})" for word in words}


def length_facts(lines: Sequence[OutputLength]) -> dict[str, str]:
    """Make the rows on the numbers of words in output texts."""
    return {
        f"a text of {line.words} words": f"{_about(line)} (standard deviation {line.deviation:.2g})" for line in lines
    }


def _about(line: OutputLength) -> str:
    return f"comes out with {'about ' if line.draws else ''}{line.mean:,.4g} words"


def comparison_tables(comparison: SentenceComparison) -> list[Table]:
    """Make the tables of :func:`compared_lines`."""
    return [_lines(title, lines) for title, lines in compared_lines(comparison)]


def compared_lines(comparison: SentenceComparison) -> list[tuple[str, list[MechanismLine]]]:
    """Return, with titles, each mechanism at the configured one's share of kept words and at its pure epsilon."""
    first = comparison.configured
    titles = (
        (f"The sentence at a keep-rate of {first.kept:.0%}", comparison.equal_kept),
        (f"The sentence at a pure epsilon of at most {first.pure:.3g} for each token", comparison.equal_pure),
    )
    return [(title, [first, *lines]) for title, lines in titles]


def _lines(title: str, lines: Sequence[MechanismLine]) -> Table:
    table = Table(title, has_lines=True)
    table.add_column("mechanism", max_width=24)
    for heading in ("epsilon", "pure", "kept"):
        table.add_column(heading, justify="right")
    table.add_column("text", ratio=1)
    for line in lines:
        epsilon = "" if line.epsilon is None else f"{line.epsilon:g}"
        table.add_row(line.mechanism, epsilon, f"{line.pure:.3g}", f"{line.kept:.0%}", line.text)
    return table


def report_facts(report: RunReport, *, is_release: bool = False) -> dict[str, str]:
    """Make the rows of the table of a run.

    ``is_release``: the run updated an incremental release, and may have read only a part of its input, or nothing.
    """
    rate = report.unknown_rate
    facts = {}
    if is_release:
        facts = {"changes": CHANGES[report.changes], "withdrawn": f"{report.withdrawn:,}"}
        if report.corrected:
            facts["authors corrected"] = f"{report.corrected:,}: also charged to the new author, nothing drawn"
        if report.refused:
            facts["over budget"] = f"{_reasons(report.refused)}, those refused before among them"
        if report.stale:
            facts["stale"] = f"{report.stale:,}: the edit is over a budget, the last version stays"
    if report.input_version is not None:
        facts["input version"] = str(report.input_version)
    pure = "none: unbounded for any two texts" if report.released else "nothing released"
    return facts | {
        "records": f"{report.records:,}",
        "released": f"{report.released:,}",
        "quarantined": _reasons(report.quarantined),
        "tokens drawn": f"{report.tokens:,}",
        **padding_facts(report.padding_as_words),
        "unknown words": "none seen" if rate is None else f"{rate:.1%} of {report.words:,}",
        "epsilon a token": price_epsilon(report.epsilon, report.metric),
        "epsilon a record": f"{_span(report.epsilon_bound)} between texts related by {report.relation}"
        if report.epsilon_bound
        else "nothing released",
        "pure epsilon": _span(report.epsilon_pure) if report.epsilon_pure else pure,
        **({"delta a record": f"{report.delta:.3g} at most"} if report.delta else {}),
        **recovery_facts(Recovery.from_dict(report.recovery) if report.recovery else None),
        "exposes": ", ".join(report.exposes) or "nothing",
        "speed": f"{report.tokens_per_second:,.0f} tokens a second, {report.seconds:.1f} s: the whole job",
        "run": report.run_id,
        "output": report.output,
    }


def padding_facts(share: float | None) -> dict[str, str]:
    """Make the row with the share of padding that becomes words; none without padding or if it is unknown."""
    return {} if share is None else {"padding": f"{share:.1%} of it comes out as words"}


def price_epsilon(epsilon: float, metric: str) -> str:
    """Show an epsilon and its unit. ``metric``: its identifier; empty if it is not known yet."""
    name = metric.partition(":")[0]
    if name == CORPUS_METRIC:
        return f"{epsilon:g} between any two corpora"
    per = "between any two words" if name == "discrete" else " ".join(filter(None, ("per unit of", name, "distance")))
    return f"{epsilon:g} {per}"


def price_plan(plan: Plan) -> str:
    """Show the epsilon of a plan's mechanism and its unit, even before a bundle gives the metric."""
    from wordveil.mechanisms.registry import MECHANISMS

    mechanism = MECHANISMS[plan.mechanism]
    if mechanism.priced:
        return f"{plan.epsilon:g} of {mechanism.priced}"
    return price_epsilon(plan.epsilon, plan.metric or ("discrete" if mechanism.is_pure else ""))


def recovery_facts(recovery: Recovery | None) -> dict[str, str]:
    """Make the rows on an attacker's recovery of single words; ``recovery`` is None for a bundle without it."""
    if recovery is None:
        return {"words recovered": NOT_MEASURED}
    return {
        "words recovered": f"an attacker who knows word frequencies recovers {_recovered(recovery.frequency)}",
        "rare words too": f"where all words are equally likely, an attacker recovers {_recovered(recovery.uniform)}",
    }


def _recovered(prior: PriorRecovery) -> str:
    once, last = prior.after[0], prior.after[-1]
    shown = f"{show_recovered(once)} of the words (without looking: {show_share(prior.before)})"
    return shown if last is once else f"{shown}; after {last.draws} draws of one word {show_recovered(last)}"


def _span(span: tuple[float, float]) -> str:
    return number(span[0]) if span[0] == span[1] else f"{number(span[0])} to {number(span[1])}"


def number(value: float | None) -> str:
    """Show a figure in six digits."""
    return "unknown" if value is None else f"{value:,.6g}"


def gate_table(result: GateResult, release: str, version: int) -> Table:
    """Make a table with a line for each rule and its measured value."""
    table = Table(f"Gate of {release}, version {version} of the draws")
    for heading in ("rule", "kind", "measured", "bound", "passed"):
        table.add_column(heading)
    for rule in result.results:
        kind, passed = str(rule.kind).replace("_", "-"), "yes" if rule.passed else "NO"
        table.add_row(rule.name, kind, show_figure(rule), show_value(rule.bound), passed)
    return table


def show_figure(result: RuleResult) -> str:
    """Show a rule's measured value."""
    return "no figure" if result.value is None else show_value(result.value)


def show_value(value: object) -> str:
    """Show a figure or a limit of a rule."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "nothing"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def verified_facts(verified: Verified, *, pinned: bool) -> dict[str, Any]:
    """Make the rows of a verified manifest."""
    manifest = verified.manifest
    return {
        "release": manifest.release,
        "publication": manifest.publication,
        "public_version": manifest.public_version,
        "records": manifest.snapshot.records,
        "files": len(manifest.snapshot.files),
        "relation": str(manifest.relation),
        "exposes": ", ".join(manifest.exposes) or "nothing",
        "created": manifest.created,
        "recovery": manifest.recovery.to_dict() if manifest.recovery else None,
        "manifest_sha256": verified.manifest_sha256,
        "public_key": "the one you named" if pinned else "not pinned",
        "pinned": pinned,
    }


def compact_table(done: Mapping[str, Mapping[str, int]]) -> Table:
    """Make a table of the files and bytes of each table, before and after."""
    table = Table("Compacted")
    table.add_column("table")
    for heading in ("files before", "files", "bytes before", "bytes"):
        table.add_column(heading, justify="right")
    for name, counts in done.items():
        table.add_row(name, *(f"{counts[key]:,}" for key in ("files_before", "files", "bytes_before", "bytes")))
    return table


def release_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Make the rows of the table of ``show``."""
    gate, published, withdrawn = facts["gate"], facts["published"], facts.get("withdrawn")
    failed = ", ".join(rule["name"] for rule in gate["results"] if not rule["passed"]) if gate else ""
    shown = {
        "path": facts["path"],
        **({"writers": f"{facts['writers']}, as output.writers states"} if facts["writers"] else {}),
        "runs": f"{len(facts['runs']):,}",
        "interrupted": ", ".join(facts["open_runs"]) or "none",
        "frozen": f"since {facts['frozen']}: its key was destroyed" if facts["frozen"] else "no",
        "gate": f"version {gate['draws_version']} {f'did not pass: {failed}' if failed else 'passed'}, {gate['at']}"
        if gate
        else "not gated yet",
        "published": f"version {published['draws_version']}, {published['records']:,} records, {published['at']}"
        if published
        else "nothing yet",
    }
    if withdrawn is not None:
        shown["draws"] = f"version {facts['draws_version']}"
        shown["records"] = ", ".join(f"{count:,} {name}" for name, count in sorted(facts["records"].items())) or "none"
        old = sum(withdrawn["files_of_old_versions"].values())
        shown["withdrawn text"] = (
            ("gone" if withdrawn["records"] else "none")
            if withdrawn["gone"]
            else f"still exists: {withdrawn['in_draws']:,} records in the draws, "
            f"{withdrawn['in_public_table']:,} in the public table, perhaps more in {old:,} files of old versions"
        )
    return shown


def long_run_ids(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids that :func:`runs_table` breaks into several lines on a narrow terminal."""
    return [run["run_id"] for run in runs[-_SHOWN_RUNS:] if len(run["run_id"]) > _RUN_ID]


def runs_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Make the table of the last runs."""
    more = f", the last {_SHOWN_RUNS} of {len(runs):,}" if len(runs) > _SHOWN_RUNS else ""
    table = Table(f"Runs{more}")
    for heading in ("run", "kind", "input version", "epoch", "state"):
        table.add_column(heading, min_width=_RUN_ID if heading == "run" else None)
    for run in runs[-_SHOWN_RUNS:]:
        version = "" if run["input_version"] < 0 else str(run["input_version"])
        table.add_row(run["run_id"], run["kind"], version, str(run["epoch"]), run["state"])
    return table
