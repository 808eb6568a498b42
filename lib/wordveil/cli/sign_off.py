"""Page of ``plan --sign-off``: what one configuration promises and shows, for the person who answers for the data.

The page takes its figures from the plan and the bundle's guarantee, and computes none. `docs/officer.md` explains it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import yaml

from wordveil.cli import tables
from wordveil.cli.pages import (
    RELATIONS,
    describe_columns,
    describe_price,
    describe_rule,
    explain_exposure,
    list_recovered,
)
from wordveil.cli.plan_tables import linkage_fact, plan_facts
from wordveil.privacy.events import Composition
from wordveil.privacy.recovery import Recovery
from wordveil.privacy.relations import Exposure, Relation
from wordveil.release.budgets import STALE
from wordveil.release.layout import DRAWS, JOURNAL, PUBLIC
from wordveil.release.rules import RULES, Kind
from wordveil.report.templates import render_page
from wordveil.report.values import show_recovered, show_share
from wordveil.text.choices import DrawnUnit

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.config.schema import BudgetsSection
    from wordveil.mechanisms.base import Topics
    from wordveil.privacy.guarantees import WordGuarantee
    from wordveil.spark.plan.plan import Plan

# First words of a plan's facts on the promise. Other sections of the page have the others.
_PROMISE = (
    *("mechanism", "fit to", "largest", "composition", "holds for"),
    *("epsilon of", "pure epsilon", "delta of", "table of"),
)
_COPIED = (Exposure.UNKNOWN_WORDS, Exposure.DIGITS, Exposure.CARRIER_PHRASES)
_BY_TOKEN = (Composition.SEQUENCE, Composition.BAG, Composition.DISTINCT)
"""Those by which one changed word costs the loss of one draw."""
_OVER_LIMIT = {
    "quarantine": "The record is left out. An edit over a limit removes the version that was published.",
    "keep_last": "The version that was published last stays, marked as stale. A new record is left out.",
    "fail": "The run ends before anything is drawn.",
}
_SCOPES = {
    "record": "one record, all its versions",
    "author": "one author, over all releases of the ledger",
    "corpus": "the author of this release who costs most; without authors, the record",
}


def render_sign_off(config: Config, plan: Plan, guarantee: WordGuarantee | None, topics: Topics | None = None) -> str:
    """Render the page. ``guarantee``, of one token, and ``topics`` are the bundle's, if one is built."""
    # The settings that the configuration names: they hold no secret.
    values = config.model_dump(mode="json", exclude_unset=True, by_alias=True)
    written = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    facts = plan_facts(plan)
    is_release, is_shuffled = config.output.format == "delta", config.output.shuffle is not None
    return render_page(
        "sign_off.html",
        title=f"Sign-off of {plan.release}",
        plan=plan,
        missing=[] if guarantee else _list_missing(is_release=is_release),
        is_internal=not (is_release or config.output.public_only),
        subjects=[(show_share(share), passage, words) for _, share, passage, words in topics.rank()] if topics else [],
        is_release=is_release,
        is_shuffled=is_shuffled,
        attacks=list_attacks(plan),
        recovered=list_recovered(plan.recovery),
        price=[*describe_price(plan), *_weigh(plan, guarantee)],
        promise=_guarantee_facts(guarantee, plan.unit)
        | {name: fact for name, fact in facts.items() if name.startswith(_PROMISE)},
        columns=[*describe_columns(plan, config.source, is_shuffled=is_shuffled), *_list_added(config)],
        exposed=[(name, explain_exposure(name)) for name in plan.exposes],
        hidden=_list_hidden(plan, is_release=is_release),
        budgets=config.budgets and _budget_facts(config.budgets, facts),
        left_out=_list_left_out(plan, config, facts.get("left out by budgets")),
        rules=[describe_rule(name, bound) for name, bound in config.rules.bounds.items()],
        unchecked=[name for name in RULES if name not in config.rules.bounds],
        key=_name_key(config),
        places=list_places(config),
        limits=list_limits(plan, config),
        questions=list_questions(plan, config),
        identity={
            "mechanism fingerprint": plan.bundle or "no bundle yet",
            "policy fingerprint": config.record_settings("").policy_fingerprint,
            "rules": config.rules.digest,
            "settings digest": hashlib.sha256(written.encode()).hexdigest(),
        },
        settings=written,
    )


def _list_added(config: Config) -> list[dict[str, str]]:
    """List the published columns that the input does not have."""
    added = {"privacy": ("struct", "added: what the record cost, and what it shows")}
    if config.text_columns.symbols:
        counted = "; where words are copied, it tells how many were drawn"
        added["symbols"] = ("array<int>", f"added: the numbers of what was drawn{counted * config.policy.draws_words}")
    if config.budget and config.budget.on_exceeded == "keep_last":
        added[STALE] = ("boolean", "added: whether the text was edited since, and a budget refused the edit")
    return [{"name": name, "type": kind, "fate": fate} for name, (kind, fate) in added.items()]


def _list_missing(*, is_release: bool) -> list[str]:
    """List the figures without which the page cannot be signed."""
    return [
        "the proved constant, and what a word and a record cost",
        "how many records are linked, and the bound on it",
        "the words or subjects that an attacker recovers",
        *["how many versions and records each limit of the budgets admits"] * is_release,
    ]


def list_attacks(plan: Plan) -> list[tuple[str, str]]:
    """List known attacks on the output and what each finds, the worst first; recovery has bars of its own."""
    from wordveil.evaluation.linkage import CANDIDATES, bound_linkage  # it loads SciPy

    found = plan.recovery if plan.unit != DrawnUnit.WORD else None
    copied = [explain_exposure(name) for name in _COPIED if name in plan.exposes]
    linked = [_capitalise(linkage_fact(plan))]
    if plan.bundle and plan.epsilon_pure is None:
        linked.append(f"No bound limits this: the promise holds only between {RELATIONS[Relation(plan.relation)]}")
    elif plan.epsilon_pure is not None and plan.unit == DrawnUnit.WORD:
        bound = bound_linkage(plan.epsilon_pure, CANDIDATES)
        nothing = ", which rules nothing out" if bound > 0.5 else ""
        linked.append(
            f"Whatever the attacker knows, the right one of {CANDIDATES:,} equally likely candidates is named with a "
            f"probability of {show_share(bound)} at most{nothing}"
        )
    reading = "No attack is needed: names, codes and numbers among them stand in the output as they were written."
    return [
        *[("Reading what is copied", " ".join([*copied, reading]))] * bool(copied),
        *([_read_subjects(Recovery.from_dict(found))] if found else []),
        (f"Linking a {'row' if plan.table else 'record'} to its original", ". ".join(linked) + "."),
    ]


def _read_subjects(recovery: Recovery) -> tuple[str, str]:
    """Describe what anyone reads off a table of passages; it succeeds far more often than linking."""
    prior = recovery.frequency
    first, last = prior.after[0], prior.after[-1]
    result = (
        f"Anyone who reads the table names the subject of {show_recovered(first)} of the texts "
        f"({show_share(prior.before)} without it), and of {show_recovered(last)} after {last.draws} versions. "
        "Section 9 lists the subjects."
    )
    return "Reading the subject", result


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _weigh(plan: Plan, guarantee: WordGuarantee | None) -> list[str]:
    """Say what the losses mean for an attacker who hesitates between two originals."""
    from wordveil.evaluation.linkage import bound_linkage  # it loads SciPy

    if guarantee is None or plan.epsilon_bound is None:
        return []
    alike = "" if plan.epsilon_pure is not None else ", which agree in all that is shown or copied,"
    hesitates = "An attacker who hesitates between two originals of"
    sentences = []
    if plan.composition in _BY_TOKEN:
        alone = show_share(bound_linkage(guarantee.pure, 2), 4)
        sentences.append(f"{hesitates} one {plan.unit}{alike} is right with a probability of {alone} at most.")
    if plan.tokens is not None and (plan.tokens > 1 or not sentences):
        bound = bound_linkage(plan.epsilon_bound, 2)
        nothing = ", which says nothing about records: see the attacks above" if bound > 0.99 else ""
        sentences.append(
            f"{hesitates} a whole record{alike} is right with a probability of {show_share(bound, 4)} at most{nothing}."
        )
    return sentences


def _list_hidden(plan: Plan, *, is_release: bool) -> list[str]:
    """List what the output does not show. Without a release nothing follows what several outputs show together."""
    followed = () if is_release else (Exposure.EDITED, Exposure.KEPT_CHANGED, Exposure.WITHDRAWN, Exposure.GATE)
    return [name.replace("_", " ") for name in Exposure if name not in (*plan.exposes, *followed)]


def _guarantee_facts(guarantee: WordGuarantee | None, drawn: str) -> dict[str, str]:
    """Make the rows of the constants that the bundle certifies for one draw. ``drawn``: a word, or a text."""
    if guarantee is None:
        return {}
    unit = "token" if drawn == DrawnUnit.WORD else drawn
    distance = "" if guarantee.metric.is_discrete else " for each unit of distance"
    facts = {
        "proved epsilon": f"{tables.number(guarantee.epsilon)}{distance}",
        f"largest loss of one {unit}": f"{tables.number(guarantee.pure)} nats, between any two",
        "metric": guarantee.metric.identifier,
    }
    if guarantee.slack:
        facts[f"slack of a {unit}"] = f"{tables.number(guarantee.slack)} nats, for whole numbers"
    if guarantee.delta:
        facts[f"delta of a {unit}"] = f"{guarantee.delta:.3g}"
        facts["rounding"] = "its effect is not proved (`wordveil docs guarantees`, finite precision)"
    return facts


def _budget_facts(budgets: BudgetsSection, facts: Mapping[str, str]) -> dict[str, str]:
    return {
        **{f"{scope}: {name}": facts.get(f"budgets.{scope}", "no limit") for scope, name in _SCOPES.items()},
        "holds for": f"pairs of texts related by {budgets.relation}",
        "over a limit": _OVER_LIMIT[budgets.on_exceeded],
        **({"delta": f"at most {budgets.delta:g} in each scope with a limit"} if budgets.delta is not None else {}),
    }


def _list_left_out(plan: Plan, config: Config, shares: str | None) -> list[str]:
    """List what the sums of budgets do not count, and whom their limits leave out."""
    counted = "the ledger counts the releases that name it, and nothing else"
    others = "Outputs that are Parquet tables, frames of `wordveil.sanitise`, and releases of another ledger"
    if config.ledger is None:
        return [_capitalise(tables.SHUFFLED_NOTE if plan.table else tables.ALONE_NOTE)]
    lines = [f"{others} add their own costs: {counted}."]
    if config.source.author is None:
        lines.append("No column names authors, so nothing adds up what one person's records cost together.")
    lines.append("No sum covers what is shown (section 3), nor which versions of a text are equal.")
    if config.budgets is None:
        return lines
    has_authors = config.source.author is not None and {"author", "corpus"} & config.budgets.budget.limits.keys()
    last = "the last records, by id, of authors with many" if has_authors else "later versions of a record"
    lines.append(
        f"Records left out, a figure of the private corpus: {shares}."
        if shares
        else f"Limits leave out {last}. `--sample N` forecasts how many records."
    )
    return lines


def _name_key(config: Config) -> str:
    if config.key.file:
        return f"the file {config.key.file}"
    return f"the environment variable {config.key.env}"


def list_places(config: Config) -> list[tuple[str, str, str, str]]:
    """List the places of data: the setting that names each, its path, what it holds, and who may read it."""
    output, home = config.output, config.output.path.rstrip("/")
    internal = "internal: as secret as the input's ids"
    places = [(config.source.setting, config.source.name, "the original texts", "as now; wordveil only reads")]
    if config.stream:
        holds = "original texts that wait, and how far they were read"
        places.append(("stream", f"{config.stream.name}, {config.stream.checkpoint}", holds, internal))
    if config.ledger is None:
        rows = "sanitised rows" if output.public_only else "sanitised rows, and refused records with their reasons"
        readers = "may be passed on" if output.public_only else f"{internal}; pass on a table of output.public_only"
        places.append(("output.path", output.path, rows, readers))
    else:
        draws = "every draw: ids, authors, sanitised texts, why records were refused; never an original text"
        ids = "" if output.shuffle else "ids, "
        public = f"{ids}kept columns, sanitised texts and their cost, of released records"
        places += [
            ("output.path", f"{home}/{DRAWS}", draws, internal),
            ("output.path", f"{home}/{JOURNAL}", "runs, gates, publications; no ids", "internal"),
            ("output.public", output.public or f"{home}/{PUBLIC}", public, "the readers of the release"),
            ("output.path", f"{home}/manifests", "signed manifests of all publications", "may be published"),
            (
                "ledger.path",
                config.ledger.path,
                "ids and authors with their costs and content tags, also of erased records; no text",
                "internal: shows who has records",
            ),
        ]
    if config.mechanism.settings.record_limit:
        bundle = ("bundle_store", config.bundle_store, "weights that the private corpus trained", "like the input")
    else:
        bundle = ("bundle_store", config.bundle_store, "public data alone", "anyone; only its owner writes")
    return [*places, bundle, ("key", _name_key(config), "the master key", "the job alone")]


def list_limits(plan: Plan, config: Config) -> list[str]:
    """List what this configuration does not protect."""
    is_whole, is_shuffled = plan.unit != DrawnUnit.WORD, config.output.shuffle is not None
    limits = [
        "Against anyone on the machines of the job."
        if is_shuffled and config.ledger is None  # a key that is thrown away
        else "Against anyone with the key, or on the machines of the job: they can test a guess at any text."
    ]
    if is_whole:
        again = "" if is_shuffled else " Repeated versions show it nearly surely."
        limits.append(f"The subject of most texts: it is kept, on purpose.{again}")
        if plan.tokens != 1:
            limits.append(f"A whole record: the losses of its {plan.unit}s add up.")
        limits.append("A reader may take a public passage for the original. Say beside the release what it is.")
    else:
        limits.append(
            "A whole record: losses of its words add up, so that the drawn words together show which original it is."
        )
        limits.append("A word that is drawn often: each further draw is more evidence, and costs are added for each.")
    if names := ", ".join((*([] if is_shuffled else [config.source.id]), *config.source.keep)):
        limits.append(f"Columns that are published unchanged ({names}), and whatever they say about a text.")
    if config.source.where:
        limits.append(f"That this held for each published record: {config.source.where}.")
    if config.source.pseudonyms:
        limits.append("Pseudonyms show which records belong together. Their words add up for an attacker.")
    if plan.exposes:
        limits.append("What is shown of a record (section 3): no bound covers it.")
    if config.ledger is None:
        limits.append("Two outputs of the same records show together which texts changed, and which came back.")
    limits += [
        "What readers have copied: no command withdraws it.",
        "Files that are not as public as stated, or an epsilon chosen by looking at the corpus: nothing shows either.",
        "Figures of runs, gates and evaluations: they are functions of private text, and internal.",
    ]
    if config.mechanism.settings.record_limit:
        limits.append("Weights that the private corpus trained: whoever reads them may find whole sentences in them.")
    return limits


def list_questions(plan: Plan, config: Config) -> list[tuple[str, str]]:
    """List the questions to answer before signing, each after its name, in the order of the page."""
    files = ", ".join(f"{setting} {name}" for setting, name in config.mechanism.names.items())
    columns: Sequence[str] = (*([] if config.output.shuffle else [config.source.id]), *config.source.kept_names)
    questions = [
        ("Attackers", "Who has the originals, or could get them? Is each attack of section 1 acceptable from them?"),
        (
            "Measurement",
            "Which share of records and authors did `wordveil evaluate` find on this corpus? Attach its report.",
        ),
        ("Audit", "Did `wordveil audit bundle` pass for this bundle? Attach its result."),
        ("Epsilon", "Was it chosen on public text, and not by looking at outputs of this corpus?"),
        ("Public files", f"Where does each come from, and were all made without private text ({files})?"),
        ("Exposures", "May every reader learn each entry of what is shown?"),
    ]
    if columns:
        each = (
            f"Does the purpose need each published column ({', '.join(columns)})? Does an id mean anything elsewhere?"
        )
        questions.append(("Columns", each))
    if plan.unit != DrawnUnit.WORD:
        questions.append(("Subjects", "Have you read the list in section 9? Is one too telling?"))
    if config.ledger is None:
        questions.append(("Other outputs", "Which others exist of these records? Who adds up their costs?"))
    else:
        questions += [
            ("Budgets", "Which period do the limits cover? Who may raise them, and what follows at the end?"),
            ("Other outputs", "Do all releases with these people's records share the ledger? What else exists?"),
        ]
        private = [name for name in config.rules.bounds if RULES[name].kind is Kind.PRIVATE]
        reads = f" Are those that read originals ({', '.join(private)}) worth the bit they show?" if private else ""
        questions.append(("Gate", f"Are these the rules that were agreed, and is none missing?{reads}"))
    questions += [
        ("Key", "Who can read it, where are its copies, and when is it destroyed?"),
        ("Internal data", "Who reads drafts, reports, ledger and logs, and for how long are they kept?"),
        ("Erasure", "Who erases a person's records on request, in what time, and from backups?"),
        ("Readers", "Are they told that texts are not the originals, what they may conclude, and who is left out?"),
        ("Changes", "Who asks for a new sign-off when a fingerprint or the settings below change?"),
    ]
    return questions
