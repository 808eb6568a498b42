"""Tables of ``wordveil plan``: costs, linkage, previews of words and texts, and distances of texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wordveil.cli import tables
from wordveil.cli.output import print_grid, print_note, print_table
from wordveil.cli.tables import number
from wordveil.privacy.events import Composition
from wordveil.privacy.recovery import Recovery
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import PURE
from wordveil.text.choices import DrawnUnit

if TYPE_CHECKING:
    from wordveil.measures.comparison import SentenceComparison, SentencePreview
    from wordveil.measures.preview import ClusterPreview
    from wordveil.measures.text_distance import TextDistance
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.plan.sample import Preview

DISTANCE_NOTE = (
    "a token weighs 1/N of its text. The bound compares these two texts; the price of a record covers any two that its "
    "relation names."
)
# Members of a cluster, and pairs of words, that a table shows.
_SHOWN_MEMBERS, _SHOWN_PAIRS = 12, 30


def print_plan(
    plan: Plan,
    preview: Preview,
    sentence: SentencePreview | None,
    apart: TextDistance | None,
    comparison: SentenceComparison | None,
) -> None:
    """Print a plan, and whatever else was asked for."""
    print_table("Plan", plan_facts(plan), plan_notes(plan))
    _print_preview(preview)
    if sentence:
        _print_sentence(sentence)
    if apart:
        _print_distance(apart)
    if comparison:
        for title, lines in tables.compared_lines(comparison):
            tables.print_mechanisms(title, lines)
        print_note(tables.COMPARISON_NOTE)


def linkage_fact(plan: Plan) -> str:
    """Describe how likely a record is linked."""
    if (linkage := plan.linkage) is None:
        why = "for this mechanism and policy" if plan.bundle else "before the bundle is built"
        if plan.unit != DrawnUnit.WORD:
            return f"no forecast {why}. What a record costs bounds how many are linked"
        return (
            f"no forecast {why}. Anyone with the candidate originals can match nearly every record of usual length, "
            "wherever a text stays useful: `wordveil evaluate` measures it"
        )
    if plan.unit != DrawnUnit.WORD and plan.epsilon_pure is not None:
        from wordveil.evaluation.linkage import bound_linkage  # it loads SciPy

        (share,) = linkage.linked.values()
        bound = bound_linkage(plan.epsilon_pure, linkage.candidates)
        # A shuffled table draws no version again.
        draws_again = plan.output_format == "delta" and plan.table is None
        limit = plan.budget.limits.get("record") if plan.budget and plan.budget.unit == PURE else None
        admitted = ""
        if draws_again:
            most = 1.0 if limit is None else bound_linkage(limit, linkage.candidates)
            admitted = f"; of all versions that budgets admit of it together with {most:.1%} at most"
        return (
            f"anyone to whom {linkage.candidates:,} candidate originals are equally likely finds the right one for "
            f"{share:.2%} of the records, if subjects are as frequent as in the passages; of one "
            f"{'version of a record' if draws_again else 'record'} with a probability of {bound:.1%} at most, whatever "
            f"its subject{admitted}"
        )
    word = "different words" if plan.composition == Composition.DISTINCT else f"{plan.unit}s"
    shares = " and ".join(
        f"{share:.0%} of the records of {words} {word}" + " (the sample's median)" * (words == linkage.typical)
        for words, share in linkage.linked.items()
    )
    half = f"from {linkage.half} {word} on" if linkage.half else "for no length up to 512"
    is_more_shown = plan.relation != Relation.ANY_TEXT
    estimate = "" if linkage.is_exact else ", who estimates the mechanism's laws from draws,"
    return (
        f"anyone with {linkage.candidates:,} candidate originals{estimate} finds the right one for {shares}; "
        f"more than half {half}"
        + ". Better estimates link more of them" * (not linkage.is_exact)
        + ". Whatever is shown beside the drawn words links more of them, at any epsilon" * is_more_shown
    )


_FITTING = {
    "record": "versions of a record",
    "author": "records or versions of an author, over all releases of the ledger",
    "corpus": "records or versions of each author (of each record, where there are no authors)",
}
_OWNERS = {"record": "record", "author": "author", "corpus": "author (or record without one)"}


def plan_facts(plan: Plan) -> dict[str, str]:
    """Make the rows of the table of a plan."""
    hidden, is_whole = plan.tokens is not None, plan.unit != DrawnUnit.WORD
    word = "distinct word of a record" if plan.composition == Composition.DISTINCT else "token"
    of = "that pays for" if plan.composition == Composition.CORPUS else "of"
    unit = f"a record {of} {plan.tokens} tokens" if hidden else f"a {word} (the length is public)"
    if is_whole:
        unit = (
            f"a {plan.unit}"
            if not hidden
            else "a record"
            if plan.tokens == 1
            else f"a record of {plan.tokens} {plan.unit}s"
        )
    facts = {
        "linked, row by row" if plan.table else "linked": linkage_fact(plan),
        "release": plan.release,
        "input": plan.input,
        "columns": ", ".join(f"{name} {kind}" for name, kind in plan.columns.items()),
        "mechanism": f"{plan.mechanism}, epsilon {tables.price_plan(plan)}{'' if is_whole else ' for each token'}",
        "bundle": plan.bundle or "none yet",
        **({"fit to your field": plan.field_fit.describe()} if plan.field_fit else {}),
        "largest distance": number(plan.diameter),
        "composition": tables.COMPOSED.get(plan.composition, plan.composition),
        "holds for": f"pairs of texts related by {plan.relation}",
        "exposes": ", ".join(plan.exposes) or "nothing",
        f"epsilon of {unit}": number(plan.epsilon_bound),
        "pure epsilon": number(plan.epsilon_pure)
        if plan.epsilon_pure is not None or plan.bundle is None
        else "none: unbounded for any two texts",
    }
    if hidden and plan.composition in tables.COMPOSED and plan.epsilon_bound is not None and plan.tokens:
        facts[f"epsilon of a {plan.unit if is_whole else 'token'}"] = number(plan.epsilon_bound / plan.tokens)
    if plan.delta:
        facts[f"delta of {unit}"] = f"{plan.delta:.3g}: the probability with which an output may exceed these bounds"
    if plan.table:
        facts |= _promise_facts(plan.table)
    if plan.counted:
        draws = f"of {plan.counted['draws']:,} {'texts' if is_whole else 'words'}"
        least = f"stands out where `wordveil analytics` estimates, if {plan.counted['least']:,} or more {draws} had it"
        facts["counted"] = f"a {'subject' if is_whole else 'cluster of words'} {least}"
    facts |= _limit_facts(plan) | _refusal_facts(plan)
    if plan.bundle is not None:
        facts |= tables.recovery_facts(Recovery.from_dict(plan.recovery) if plan.recovery else None)
    if hidden and plan.output_words and not is_whole:
        facts |= tables.length_facts(plan.output_words)
    return facts


def _limit_facts(plan: Plan) -> dict[str, str]:
    """Make the rows about the limits of budgets: what each admits, what is left of it, and how long it lasts."""
    if plan.budget is None:
        return {}
    length = f", each of {plan.fitting_tokens} tokens, which 95% of the sample do not exceed"
    facts = {}
    for scope, limit in plan.budget.limits.items():
        parts = [f"{tables.show_cost(limit)} {plan.budget.unit_name}"]
        if scope in plan.fitting:
            parts.append(f"admits {plan.fitting[scope]:,} {_FITTING[scope]}{length * (plan.tokens is None)}")
        if scope in plan.left:
            parts.append(f"{tables.show_cost(plan.left[scope])} left for the {_OWNERS[scope]} that has used most")
        if scope in plan.runs_left:
            parts.append(f"lasts {plan.runs_left[scope]:,} more runs at their mean rate")
        facts[f"budgets.{scope}"] = "; ".join(parts)
    return facts


def _refusal_facts(plan: Plan) -> dict[str, str]:
    """Make the rows about the records that budgets refuse, and about authors."""
    facts = {}
    if (found := plan.refusals) is not None:
        count, authors = sum(found.refused.values()), f", of {found.authors:,} authors" if found.authors else ""
        most = f"; most of {', '.join(map(str, found.most_refused))}" if found.most_refused else ""
        lengths = ", by the sample's lengths of texts" if found.by_sample else ""
        records = f"{found.records:,} records{lengths}"
        shown = f"{found.share:.1%} of {records}: {tables.show_reasons(found.refused)}"
        facts["left out by budgets"] = f"{shown}{authors}{most}" if count else f"none of {records}"
    if (counts := plan.author_records) is not None and plan.longest_cost is not None:
        limit, cost = counts.suggest_limit(plan.longest_cost), number(plan.longest_cost)
        facts["records of an author"] = (
            f"at most {counts.p95:,} for 95% of {counts.authors:,} authors, {counts.most:,} for one. budgets.author: "
            f"{limit:.10g} has room for {counts.p95:,} of the longest record, which costs {cost}"
        )
    return facts


def _promise_facts(table: Mapping[str, Any]) -> dict[str, str]:
    """Make the rows about a shuffled table."""
    least = table["least_rows"]
    groups = f"in each group of kept columns, {least:,} rows or more" if least else "no table has enough rows"
    facts = {"epsilon of the table": f"{table['epsilon']:g} for each record at delta {table['delta']:g}: {groups}"}
    if table["rows"]:
        facts["table of --rows"] = f"epsilon {table['epsilon_of_rows']:.4g} by {table['rows']:,} rows"
    return facts


def plan_notes(plan: Plan) -> list[str]:
    """Make the notes of a plan."""
    notes = [plan.bundle_problem] if plan.bundle_problem else []
    if plan.tokens is not None and plan.unit == DrawnUnit.WORD and plan.output_words and plan.output_words[0].mean >= 1:
        notes.append(tables.LENGTH_NOTE)
    if plan.bundle is None:
        notes.append("prices need the embedding's diameter, which is in the bundle: run `wordveil build` first.")
    if plan.output_format != "delta":
        notes.append(tables.SHUFFLED_NOTE if plan.table else tables.ALONE_NOTE)
    return notes


def print_clusters(clusters: Sequence[ClusterPreview]) -> None:
    """Print the words that are indistinguishable from each word, and their common output."""
    rows = [
        (
            *(cluster.word, f"{len(cluster.members):,}"),
            ", ".join(cluster.members[:_SHOWN_MEMBERS]) + ", ..." * (len(cluster.members) > _SHOWN_MEMBERS),
            ", ".join(f"{word} {share:.2%}" for word, share in cluster.written),
        )
        for cluster in clusters
    ]
    headings = ("word", "words in its cluster", "of these", "written for each of them")
    print_grid("Nobody can tell which of its cluster a word was", rows, headings)


def distance_facts(apart: TextDistance) -> dict[str, str]:
    """Make the rows of the table of two texts."""
    first, second = apart.tokens
    words = "any two different words are 1 apart" if apart.metric == "discrete" else f"{apart.metric} distance of words"
    facts = {
        "metric": "none: the text is drawn as a whole" if apart.distance is None and not apart.moves else words,
        "tokens, N": f"{first:,}" if first == second else f"{first:,} and {second:,}",
    }
    if apart.distance is not None:
        facts["Earth Mover's distance"] = number(apart.distance)
    if apart.bottleneck is not None:
        facts["bottleneck distance"] = number(apart.bottleneck)
    if apart.bag_bound is not None and apart.distance is not None:
        product = apart.epsilon * first * apart.distance
        shown = f"{number(apart.epsilon)} * {first:,} * {number(apart.distance)} = {number(product)}"
        # Slack adds to it, and a largest loss that the build computed may be smaller.
        exact = "" if math.isclose(product, apart.bag_bound) else f"; the bags lose at most {number(apart.bag_bound)}"
        facts["epsilon * N * distance"] = shown + exact
    if apart.epsilon_bound is None:
        facts["epsilon between them"] = f"none: unbounded, since {apart.unbounded}"
        return facts
    facts["epsilon between them"] = f"{number(apart.epsilon_bound)}, by composition {apart.composition}"
    facts["in words"] = describe_factor(apart)
    if apart.delta:
        facts["delta"] = f"{apart.delta:.3g}: the probability with which an output may exceed this"
    return facts


def describe_factor(apart: TextDistance) -> str:
    """Describe the bound's meaning for any output."""
    bound = apart.epsilon_bound
    assert bound is not None
    if bound == 0:
        return "no output tells which of the two texts it came from"
    times = f"{math.exp(bound):,.4g}" if bound < math.log(1e6) else f"10^{bound / math.log(10):,.1f}"
    return f"any output is at most {times} times as likely for one of the texts as for the other"


def _print_preview(preview: Preview) -> None:
    if preview.sample:
        facts = tables.sample_facts(preview.sample.sample, preview.sample.to_dict())
        advice = [tables.ADVICE_NOTE] if preview.sample.sample.suggested else []
        print_table("Sample", facts, [*advice, tables.PRIVATE_NOTE, tables.SPEED_NOTE])
    if preview.words:
        tables.print_words(preview.words)
    if preview.clusters:
        print_clusters(preview.clusters)
    if preview.words:
        for note in tables.words_notes(preview):
            print_note(note)
    if preview.unknown:
        becomes = {word.word: f"unknown: {word.becomes} (text.unknown: {word.rule})" for word in preview.unknown}
        print_table("Unknown words", becomes)


def _print_sentence(sentence: SentencePreview) -> None:
    refused = f"refused: {sentence.reason}"
    after = refused if sentence.output is None else sentence.output or "(the empty text)"
    print_table("Sentence", {"before": sentence.text, "after": after}, [tables.SENTENCE_NOTE])
    if sentence.subjects:
        print_table("Subject", sentence.subjects)
    elif sentence.tokens:
        print_grid("What each token was taken for", sentence.tokens, ("token", "taken for", "what happens"))


def _print_distance(apart: TextDistance) -> None:
    print_table("Distance", distance_facts(apart), [DISTANCE_NOTE])
    if apart.moves:
        more = f", the {_SHOWN_PAIRS} that cost most of {len(apart.moves):,}" if len(apart.moves) > _SHOWN_PAIRS else ""
        rows = [
            (move.source, move.target, *map(number, (move.tokens, move.distance, move.tokens * move.loss)))
            for move in apart.moves[:_SHOWN_PAIRS]
        ]
        print_grid(f"Which word goes to which{more}", rows, ("word", "goes to"), ("tokens", "distance", "epsilon"))
