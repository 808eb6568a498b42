"""Pages of ``plan``, ``sanitise`` and ``release gate``, for ``--html``.

A page is one file that loads nothing from elsewhere, so it can be opened from a disk or a message. It has settings,
counts, costs and public words, and never a record. Everything in it is escaped: names in configurations and tables are
untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wordveil.cli import release_tables, tables
from wordveil.privacy.recovery import WORD, PriorRecovery, Recovery
from wordveil.privacy.relations import Exposure, Relation
from wordveil.release.rules import RULES, RuleResult
from wordveil.report.bars import Bar, draw_bars, draw_histogram
from wordveil.report.templates import render_page
from wordveil.report.values import show_recovered, show_share
from wordveil.text.choices import DrawnUnit

if TYPE_CHECKING:
    from wordveil.assembly.run_report import RunReport
    from wordveil.input.columns import Columns
    from wordveil.measures.comparison import SentenceComparison, SentencePreview
    from wordveil.measures.preview import Sample
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.plan.sample import Preview, TableSample
    from wordveil.spark.release.gate import GateDecision

_SHOWN_RUNS = 10
_UNBOUNDED = "There is no bound for any two texts at all: texts that differ in what is shown can be distinguished."
RELATIONS = {
    Relation.ANY_TEXT: "any two texts",
    Relation.SAME_LENGTH: "two texts with the same number of tokens",
    Relation.SAME_SKELETON: "two texts that agree in everything that is copied or shown",
}
"""The pairs of texts that a bound compares."""
EXPOSURES = {
    Exposure.PRESENCE: "Whether the record was refused because of its text, or of another one of its author; how many "
    "records each budget refused.",
    Exposure.LANGUAGE: "Which records are of another language: none of their words is copied.",
    Exposure.EDITED: "In which runs the text changed, and when it came back to what it had been.",
    Exposure.KEPT_CHANGED: "In which runs a kept column changed while the published text stayed.",
    Exposure.WITHDRAWN: "That the record was in the release and was taken out.",
    Exposure.GATE: "That the release passed rules which read original texts.",
    Exposure.LAYOUT: "The order of the input's rows, which follows the sizes of texts.",
    Exposure.LENGTH: "How many tokens the text has.",
    Exposure.REPETITION: "Which positions of the text hold the same word.",
    Exposure.TYPES: "Which tokens are addresses, numbers, dates or names, and the shape of those that keep it.",
    Exposure.PUNCTUATION: "Everything between words is copied.",
    Exposure.CASE: "Which words are capitalised or in upper case.",
    Exposure.DIGITS: "Words with a digit are copied.",
    Exposure.STOP_WORDS: "Stop-words are copied.",
    Exposure.UNKNOWN_WORDS: "Words outside the vocabulary are copied, without protection.",
    Exposure.CARRIER_PHRASES: "Words that public text expects in their place are copied, and show which are not.",
}
"""The meaning of each entry of ``exposes``, except columns."""


def render_plan(
    plan: Plan,
    facts: Mapping[str, str],
    notes: Sequence[str],
    columns: Sequence[Mapping[str, str]],
    preview: Preview,
    sentence: SentencePreview | None = None,
    comparison: SentenceComparison | None = None,
) -> str:
    """Render the page of a plan, with the ``facts`` and ``notes`` that the command prints."""
    shown = {"linked", "left out by budgets", "records of an author", *(name for name in facts if "budgets." in name)}
    return render_page(
        "plan.html",
        title=f"Plan of {plan.release}",
        plan=plan,
        linked=facts.get("linked"),
        left_out=facts.get("left out by budgets"),
        budgets={name: fact for name, fact in facts.items() if name in shown - {"linked", "left out by budgets"}},
        budget_bars=_draw_budgets(plan),
        facts={name: fact for name, fact in facts.items() if name not in shown},
        notes=notes,
        columns=columns,
        exposed=[(name, explain_exposure(name)) for name in plan.exposes],
        price=describe_price(plan),
        recovered=list_recovered(plan.recovery),
        sentence=sentence,
        words=tables.list_words(preview.words) if preview.words else None,
        words_notes=tables.words_notes(preview),
        compared=tables.compared_lines(comparison) if comparison else [],
        **_sample(preview.sample, plan.tokens if plan.unit == DrawnUnit.WORD else None),
    )


def render_run(report: RunReport, *, is_release: bool) -> str:
    """Render the page of a run. ``is_release``: the run updated an incremental release."""
    withdrawn = {"withdrawn": f"{report.withdrawn:,}"} if is_release else {}
    rate = report.unknown_rate
    groups = [("Quarantined, by reason", report.quarantined)]
    if report.refused:
        groups.append(("Over a budget, those refused before among them", report.refused))
    return render_page(
        "run.html",
        title=f"Run of {report.release}",
        report=report,
        changes=release_tables.CHANGES[report.changes] if is_release else None,
        notes=report.notes,
        tiles={
            "released": f"{report.released:,} of {report.records:,}",
            **withdrawn,
            "unknown words": "none seen" if rate is None else f"{rate:.1%}",
        },
        refusals=[(title, _draw_counts(counts, report.records)) for title, counts in groups],
        price=_describe_cost(report),
        exposed=[(name, explain_exposure(name)) for name in report.exposes],
        recovered=list_recovered(report.recovery),
        of_words=report.recovery is None or report.recovery.get("of", WORD) == WORD,
        facts=release_tables.report_facts(report, is_release=is_release),
    )


def _describe_cost(report: RunReport) -> list[str]:
    """Describe what the released records cost, in sentences."""
    if report.epsilon_bound is None:
        return ["Nothing was released, and nothing is charged."]
    low, high = (tables.number(value) for value in report.epsilon_bound)
    span = low if low == high else f"{low} to {high}"
    pairs = RELATIONS[Relation(report.relation)]
    sentences = [
        f"A released record cost epsilon {span}: its output changes the odds between {pairs} by e^{high} at most."
    ]
    return [*sentences, *_limit_price(report)]


def _limit_price(made: RunReport | Plan) -> list[str]:
    """Describe what a price does not cover: texts that differ in what is shown, and delta."""
    delta = f"With a probability of at most {made.delta:.3g} an output may exceed this price." if made.delta else ""
    return [*([_UNBOUNDED] if made.epsilon_pure is None else []), *([delta] if delta else [])]


def explain_exposure(name: str) -> str:
    """Explain an entry of ``exposes``."""
    if name.startswith("column:"):
        return "The column is published unchanged."
    if name.startswith("pseudonym:"):
        return "Which records have the same value in the column. The value itself is replaced by a pseudonym."
    return EXPOSURES[Exposure(name)]


def render_gate(decision: GateDecision) -> str:
    """Render the page of a gate's decision."""
    result = decision.result
    fingerprints = {name.replace("_", " "): value for name, value in decision.fingerprints.items()}
    return render_page(
        "gate.html",
        title=f"Gate of {decision.release}",
        decision=decision,
        failed=", ".join(rule.name for rule in result.failures),
        rules=[_rule(rule) for rule in result.results],
        runs=decision.runs,
        shown=decision.runs[-_SHOWN_RUNS:],
        facts={
            "release": decision.release,
            "version of the draws": decision.draws_version,
            "version of the ledger": decision.ledger_version,
            **fingerprints,
            "rules": decision.rules,
        },
    )


def _draw_budgets(plan: Plan) -> list[tuple[str, dict[str, Any]]]:
    """Draw what is used of each limit, and the records that budgets leave out; empty without a sample."""
    used = []
    for scope, limit in plan.budget.limits.items() if plan.budget else ():
        if scope in plan.left:
            spent = limit - plan.left[scope]
            share = min(spent / limit, 1.0) if limit else 1.0
            used.append(Bar(scope, share, f"{tables.show_cost(spent)} of {tables.show_cost(limit)}"))
    groups = [("Used of each limit, where most is used", draw_bars(used, show_share))] if used else []
    if plan.refusals and plan.refusals.refused:
        chart = _draw_counts(plan.refusals.refused, plan.refusals.records)
        groups.append((f"Left out, by reason, of {plan.refusals.records:,} records", chart))
    return groups


def describe_columns(plan: Plan, source: Columns, *, is_shuffled: bool) -> list[dict[str, str]]:
    """List the input's columns that are read, and the use of each."""
    replaced = "word by word" if plan.unit == DrawnUnit.WORD else f"by a public passage for each {plan.unit}"
    pays = "names whose budget pays" if plan.budget else "names authors, for evaluations"
    uses = {
        **dict.fromkeys(source.texts, f"replaced {replaced}"),
        **({source.language: "chooses the rules of a language; not published"} if source.language else {}),
        **({source.author: f"{pays}; not published"} if source.author else {}),
        **{pseudonym.column: "published as pseudonyms" for pseudonym in source.pseudonyms},
        **dict.fromkeys(source.keep, "published unchanged"),
        source.id: "not published" if is_shuffled else "published unchanged",
    }
    return [{"name": name, "type": kind, "fate": uses[name]} for name, kind in plan.columns.items()]


def describe_price(plan: Plan) -> list[str]:
    """Explain a plan's costs in sentences."""
    token = "token" if plan.unit == DrawnUnit.WORD else plan.unit
    sentences = [f"Each {token} is drawn by {plan.mechanism} with epsilon {tables.price_plan(plan)}."]
    if plan.epsilon_bound is None:
        return [*sentences, "The price of a record is not known yet. It needs the bundle: run `wordveil build` first."]
    bound = tables.number(plan.epsilon_bound)
    several = "s" * (plan.tokens != 1)
    unit = f"A record of {plan.tokens:,} {token}{several}" if plan.tokens is not None else f"A {token}"
    pairs = RELATIONS[Relation(plan.relation)]
    sentences.append(
        f"{unit} costs at most epsilon {bound}: whatever comes out, it changes the odds between {pairs} by at most a "
        f"factor of e^{bound}."
    )
    if plan.tokens is None:
        hundred = tables.number(100 * plan.epsilon_bound)
        sentences.append(
            f"The length is public, so a record costs this for each {token} that is drawn: 100 cost {hundred}."
        )
    return [*sentences, *_limit_price(plan)]


def list_recovered(figures: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Make the bars of what an attacker recovers, for each prior. ``figures``: a plan's, None if not measured."""
    if figures is None:
        return []
    recovery = Recovery.from_dict(figures)
    what = f"{recovery.of.capitalize()}s that are"
    priors = {
        f"{what} as frequent as in public text": recovery.frequency,
        f"{what} all equally likely, rare ones too": recovery.uniform,
    }
    return [
        {"label": label, "chart": draw_bars([*_list_bars(prior, recovery.of)], show_share)}
        for label, prior in priors.items()
    ]


def _list_bars(prior: PriorRecovery, of: str) -> Iterator[Bar]:
    yield Bar("without looking", prior.before, show_share(prior.before))
    for item in prior.after:
        label = "after one draw" if item.draws == 1 else f"after {item.draws} draws of a {of}"
        yield Bar(
            label,
            item.at_least,
            show_recovered(item),
            reach=1.0 if item.at_most is None else item.at_most,
            chance=prior.before,
        )


def _name_kept(sample: Sample) -> str:
    """Name what ``keep_rate`` is the share of."""
    if sample.unit != DrawnUnit.WORD:
        return "texts that keep their subject"
    return "known words that stay in their cluster" if sample.by_cluster else "known words that stay"


def _sample(table_sample: TableSample | None, n_max: int | None) -> dict[str, Any]:
    """Collect the template's values of a sample."""
    if table_sample is None:
        return {"sample": None}
    sample, figures = table_sample.sample, table_sample.to_dict()
    facts = tables.sample_facts(sample, figures)
    refusals = [("Quarantined, by reason", sample.quarantined)]
    if sample.emptied:
        refusals.append(("Released as the empty text, by reason", sample.emptied))
    return {
        "sample": sample,
        "sample_facts": facts,
        "speed_note": tables.SPEED_NOTE,
        "tiles": {
            "released": f"{sample.released:,} of {sample.records:,}",
            _name_kept(sample): "none" if sample.keep_rate is None else f"{sample.keep_rate:.1%}",
            "unknown words": "none" if sample.unknown_rate is None else f"{sample.unknown_rate:.1%}",
            **{name: fact for name, fact in facts.items() if name.startswith("time on one core")},
        },
        "chart": draw_histogram(sample.histogram, {} if n_max is None else {"n_max": n_max}),
        "refusals": [(title, _draw_counts(counts, sample.records)) for title, counts in refusals],
    }


def _draw_counts(counts: Mapping[str, int], records: int) -> dict[str, Any]:
    """Draw a bar for each reason, as a share of the records read; a budget may have refused more of them before."""
    whole = max(records, *counts.values(), 1)
    bars = [Bar(name, count / whole, f"{count:,}") for name, count in sorted(counts.items())]
    return draw_bars(bars, lambda share: tables.number(whole * share))


def describe_rule(name: str, bound: object) -> dict[str, str]:
    """Describe a rule of a gate, with its bound, for a template."""
    rule = RULES[name]
    kind, limit = str(rule.kind).replace("_", "-"), tables.show_value(bound)
    return {"name": name, "meaning": rule.meaning.replace("`", ""), "kind": kind, "limit": limit}


def _rule(result: RuleResult) -> dict[str, Any]:
    form = "list" if isinstance(result.bound, tuple) else "number"
    figures = {"figure": tables.show_figure(result), "form": form, "passed": result.passed}
    return {**describe_rule(result.name, result.bound), **figures}
