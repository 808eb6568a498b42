"""The command ``wordveil plan``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Option

from wordveil.cli.files import check_page, save_page
from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import print_note, show_progress, show_status
from wordveil.cli.pages import describe_columns, render_plan
from wordveil.cli.plan_tables import distance_facts, plan_facts, plan_notes, print_plan
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import BundleError, usage_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wordveil.assembly.bundles import FindBundle
    from wordveil.config.schema import TextSection
    from wordveil.measures.comparison import SentencePreview
    from wordveil.spark.plan.plan import FindTrials, Plan
    from wordveil.spark.plan.sample import Preview
    from wordveil.text.policy import TextPolicy

_SIGN_NOTE = "to print and sign (`wordveil docs officer`). It is internal."
_UNSIGNED_NOTE = "cannot be signed yet: its figures need the bundle. Run `wordveil build` first."


@command(read_config, params=True, report=True, html=True)
def plan(
    call: Call,
    *,
    sample: Annotated[
        int | None,
        Option(
            "--sample",
            metavar="N",
            help="Read N random records, spread over the table, and show rates, lengths, keep-rate and time; of "
            "a release, whom its budgets leave out, by the ids, authors and kept columns of all records, and how many "
            "more runs each limit lasts.",
        ),
    ] = None,
    seed: Annotated[
        int | None, Option("--seed", metavar="SEED", help="Take the sample that had this seed; by default a new one.")
    ] = None,
    words: Annotated[
        str | None, Option("--words", metavar="WORD,...", help="Show what these words become, and the cluster of each.")
    ] = None,
    text: Annotated[
        str | None,
        Option(
            "--text", metavar="TEXT", help="Show what this public sentence becomes, and what each token is taken for."
        ),
    ] = None,
    against: Annotated[
        str | None,
        Option(
            "--against",
            metavar="TEXT",
            help="Show how far --text is from this public text, which word goes to which, and what that bounds.",
        ),
    ] = None,
    compare: Annotated[
        bool,
        Option("--compare", help="Show --text under each mechanism, at equal keep-rate and at equal pure epsilon."),
    ] = False,
    rows: Annotated[
        int | None,
        Option(
            "--rows",
            min=1,
            metavar="N",
            help="Show what N records, a public number, give: the least count of a symbol that stands out, and the "
            "epsilon of a shuffled table whose smallest group has N rows.",
        ),
    ] = None,
    sign_off: Annotated[
        str | None,
        Option(
            "--sign-off",
            metavar="FILE",
            help="Also write a page to print and sign: what this configuration promises and shows, what an attacker "
            "gets, budgets, gate, key and places, and the questions to answer. It must not exist yet.",
        ),
    ] = None,
) -> Result:
    """Validate the configuration and show what the longest record costs.

    Reads rows only with --sample.

    Example: `wordveil plan --config reviews.yaml --sample 1000`
    """
    from wordveil.assembly.bundles import compare_mechanisms, find_once, measure_texts
    from wordveil.neighbours.blocks import BuildContext
    from wordveil.spark.plan.plan import find_trials_once, make_plan
    from wordveil.spark.plan.sample import check_preview, make_preview

    config = call.config
    signed = check_page(sign_off, "--sign-off") if sign_off is not None else None
    check_text(text, compare=compare, against=against)
    if rows and not (config.output.shuffle or config.text_columns.symbols):
        problem = "is for a shuffled table, or one with symbols, and this is neither. Set output.symbols, or remove it."
        raise usage_error("--rows", str(rows), problem)
    if config.mechanism.mechanism.draws_texts:
        _refuse_words(config.mechanism.name, compare=compare, against=against)
    find = find_once(config)
    find_trials = find_trials_once(config.policy, find)
    with show_status() as progress:
        request = check_preview(config, sample, words, find, seed=seed)
        sentence = _sentence(config.text, config.sentence_policy, find, text) if text or call.page else None
    if text and not (sentence or compare or call.page):
        raise BundleError(
            f"bundle_store = {config.bundle_store}: the store has no bundle that fits, and --text is drawn with "
            "one. Run `wordveil build` first."
        )
    apart = measure_texts(config, find, (text, against)) if text and against is not None else None
    comparison = None
    if text and compare:
        with show_progress() as (progress, steps):
            comparison = compare_mechanisms(config, text, BuildContext(progress, steps))
    with show_status() as progress:
        progress("reading the schema")
        session = prepare_session(config, is_short=True)
        planned = make_plan(config, session, params=call.params, rows=rows, find=find, find_trials=find_trials)
        preview = make_preview(request, session, progress, params=call.params)
        planned = _add_sampled(planned, preview, find, find_trials, call, session, progress)
    parts = {"sentence": sentence if text else None, "text_distance": apart}
    document = {**planned.to_dict(), **preview.to_dict()}
    document |= {name: part.to_dict() for name, part in parts.items() if part}
    document |= {"comparison": asdict(comparison)} if comparison else {}
    call.tell(document)
    if call.page:
        facts = plan_facts(planned) | (distance_facts(apart) if apart else {})
        columns = describe_columns(planned, config.source, is_shuffled=config.output.shuffle is not None)
        call.save_page(render_plan(planned, facts, plan_notes(planned), columns, preview, sentence, comparison))
    if signed:
        from wordveil.cli.sign_off import render_sign_off

        bundle = None if planned.bundle is None else find()
        page = render_sign_off(config, planned, *((bundle.guarantee, bundle.topics) if bundle else (None, None)))
        save_page(signed, page, "--sign-off")
        print_note(f"{signed}: {_SIGN_NOTE if bundle else _UNSIGNED_NOTE}")
    return Result(document, partial(print_plan, planned, preview, sentence, apart, comparison))


def _add_sampled(
    plan: Plan,
    preview: Preview,
    find: FindBundle,
    find_trials: FindTrials,
    call: Call,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None],
) -> Plan:
    """Add figures of a sample: linkage at its median length, how long budgets last, whom they refuse, their limits."""
    from wordveil.records.sanitiser import release_terms
    from wordveil.records.schema import TEXT_REASONS
    from wordveil.spark.input.source import open_input
    from wordveil.spark.plan.plan import add_sampled_costs, add_typical
    from wordveil.spark.platform.errors import job_errors
    from wordveil.spark.release.forecast import count_authors, forecast_refusals
    from wordveil.spark.release.ledger_report import find_left

    if preview.sample is None:
        return plan
    config, sample = call.config, preview.sample.sample
    with job_errors("nothing was planned"):
        left, runs_left = find_left(session(), config.budget, config.ledger, config.release)
        plan = replace(add_typical(plan, preview.sample, find_trials, config.policy), left=left, runs_left=runs_left)
        if (bundle := find()) is None or config.output.format != "delta":
            return plan
        terms = release_terms(config.record_settings(""), bundle)
        plan = add_sampled_costs(plan, sample, config.budget, terms)
        progress("counting the records of authors")
        table = open_input(session(), config.source, call.params)
        if config.budget is None:
            return replace(plan, author_records=count_authors(table))
        refused = sum(count for reason, count in sample.quarantined.items() if reason in TEXT_REASONS)
        lengths = [*sample.draws, *[None] * refused]
        refusals, authors = forecast_refusals(table, config.budget, config.home, terms, lengths)
        return replace(plan, refusals=refusals, author_records=authors)


def _refuse_words(mechanism: str, *, compare: bool, against: str | None) -> None:
    """Raise :class:`ConfigError` for questions about words, which a mechanism of whole texts cannot answer."""
    if against is not None:
        problem = f"{mechanism} draws a whole text: two texts cost epsilon, or nothing if they have one "
        raise usage_error("--against", against[:80], f"{problem}subject. Show the subject of each with --text.")
    if compare:
        problem = f"{mechanism} draws a whole text, and the others draw words. Show --text under each."
        raise usage_error("--compare", "", problem)


def check_text(text: str | None, *, compare: bool, against: str | None = None) -> None:
    """Raise :class:`ConfigError` if a sentence is missing or empty."""
    if against is not None and text is None:
        raise usage_error("--against", against[:80], 'needs a public text to be compared with: add --text "...".')
    if compare and not (text or "").strip():
        raise usage_error("--compare", "", 'needs a public sentence: add --text "...".')
    if text is not None and not text.strip():
        raise usage_error("--text", text[:80], "is empty. Give a public sentence.")


def _sentence(section: TextSection, policy: TextPolicy, find: FindBundle, text: str | None) -> SentencePreview | None:
    """Preview a public sentence before and after; None if there is no bundle, or no sentence fits the vocabulary."""
    from wordveil.assembly.bundles import find_ngrams
    from wordveil.measures.comparison import preview_default, preview_sentence

    with suppress(BundleError):
        if (bundle := find()) is not None:
            model = find_ngrams(section)
            if text is None:
                return preview_default(bundle, policy, model)
            return preview_sentence(bundle, policy, text, model)
    return None
