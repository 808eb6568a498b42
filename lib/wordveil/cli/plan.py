"""The command ``wordveil plan``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from typer import Option

from wordveil.cli import tables
from wordveil.cli.clusters import cluster_table
from wordveil.cli.distances import DISTANCE_NOTE, distance_facts, move_table
from wordveil.cli.options import ConfigOption, JsonOption, ParamOption, SetOption, prepare_session, read_config
from wordveil.cli.output import print_json, print_note, print_rows, print_table, show_progress, show_status
from wordveil.cli.pages import PAGE_NOTE, HtmlOption, check_page, render_plan, save_page
from wordveil.cli.report_file import ReportOption, write_report
from wordveil.errors import BundleError, usage_error
from wordveil.input.parameters import parse_params
from wordveil.privacy.events import Composition
from wordveil.privacy.recovery import Recovery
from wordveil.privacy.relations import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wordveil.assembly.bundles import FindBundle
    from wordveil.config.load import Config
    from wordveil.measures.comparison import SentencePreview
    from wordveil.measures.text_distance import TextDistance
    from wordveil.spark.plan.plan import FindTrials, Plan
    from wordveil.spark.plan.sample import Preview


def plan(
    config: ConfigOption,
    overrides: SetOption = None,
    params: ParamOption = None,
    *,
    sample: Annotated[
        int | None,
        Option(
            "--sample",
            metavar="N",
            help="Read N random records, spread over the table, and show rates, lengths, keep-rate and core-hours; of "
            "the ledger, how many more runs each limit lasts.",
        ),
    ] = None,
    seed: Annotated[
        int | None, Option("--seed", metavar="SEED", help="Take the sample that had this seed; by default a new one.")
    ] = None,
    words: Annotated[
        str | None,
        Option(
            "--words",
            metavar="WORD,...",
            help="Show what these words become, and the cluster of each.",
        ),
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
    has_records: Annotated[
        bool,
        Option(
            "--has-records", help="Report whether the input, or the slice that input.where selects, has any record."
        ),
    ] = False,
    as_json: JsonOption = False,
    report: ReportOption = None,
    html: HtmlOption = None,
) -> None:
    """Validate the configuration and show what the longest record costs.

    Reads rows only with --sample or --has-records.

    Example: `wordveil plan --config reviews.yaml --sample 1000`
    """
    from wordveil.assembly.bundles import compare_mechanisms, find_once, measure_texts
    from wordveil.neighbours.blocks import BuildContext
    from wordveil.spark.plan.plan import find_trials_once, make_plan
    from wordveil.spark.plan.sample import check_preview, make_preview

    with write_report("plan", report) as tell:
        page = check_page(html) if html else None
        settings = read_config(config, overrides)
        values = parse_params(params or ())
        check_text(text, compare=compare, against=against)
        find = find_once(settings)
        find_trials = find_trials_once(settings.policy, find)
        with show_status() as progress:
            wanted = check_preview(settings, sample, words, find, seed=seed)
            sentence = _sentence(settings, find, text) if text or page else None
        if text and not (sentence or compare or page):
            raise BundleError(
                f"bundle_store = {settings.bundle_store}: the store has no bundle that fits, and --text is drawn with "
                "one. Run `wordveil build` first."
            )
        apart = measure_texts(settings, find, (text, against)) if text and against is not None else None
        comparison = None
        if text and compare:
            with show_progress() as (progress, steps):
                comparison = compare_mechanisms(settings, text, BuildContext(progress, steps))
        with show_status() as progress:
            progress("reading the schema")
            session = prepare_session(settings, is_short=True)
            result = make_plan(settings, session, params=values, look=has_records, find=find, find_trials=find_trials)
            preview = make_preview(wanted, session, progress, params=values)
            result = _add_sampled(result, preview, find_trials, settings, session)
        compared = {"comparison": asdict(comparison)} if comparison else {}
        shown = {"sentence": sentence.to_dict()} if sentence and text else {}
        measured = {"text_distance": apart.to_dict()} if apart else {}
        document = {**result.to_dict(), **preview.to_dict(), **shown, **measured, **compared}
        tell(document)
        if page:
            facts = plan_facts(result) | (distance_facts(apart) if apart else {})
            save_page(page, render_plan(result, facts, _plan_notes(result), preview, sentence, comparison))
            print_note(f"{page}: {PAGE_NOTE}")
    if as_json:
        print_json(document)
    else:
        print_table("Plan", plan_facts(result), _plan_notes(result))
        _print_preview(preview)
        if sentence:
            _print_sentence(sentence)
        if apart:
            _print_distance(apart)
        if comparison:
            for table in tables.comparison_tables(comparison):
                print_rows(table)
            print_note(tables.COMPARISON_NOTE)


def _add_sampled(
    plan: Plan, preview: Preview, find_trials: FindTrials, config: Config, session: Callable[[], SparkSession]
) -> Plan:
    """Add figures of a sample: the linkage of records of its median length, and how long the budgets last."""
    from wordveil.spark.plan.plan import add_typical
    from wordveil.spark.platform.errors import job_errors
    from wordveil.spark.release.ledger_report import forecast_runs

    if preview.sample is None:
        return plan
    with job_errors("nothing was planned"):
        runs_left = forecast_runs(session(), config.budget, config.ledger, config.release)
    return replace(add_typical(plan, preview.sample, find_trials, config.policy), runs_left=runs_left)


def check_text(text: str | None, *, compare: bool, against: str | None = None) -> None:
    """Raise :class:`ConfigError` if a sentence is missing or empty."""
    if against is not None and text is None:
        raise usage_error("--against", against[:80], 'needs a public text to be compared with: add --text "...".')
    if compare and not (text or "").strip():
        raise usage_error("--compare", "", 'needs a public sentence: add --text "...".')
    if text is not None and not text.strip():
        raise usage_error("--text", text[:80], "is empty. Give a public sentence.")


def linkage_fact(plan: Plan) -> str:
    """Describe how likely a record is linked."""
    if (linkage := plan.linkage) is None:
        why = "for this mechanism and policy" if plan.bundle else "before the bundle is built"
        return (
            f"no forecast {why}. Who holds the candidate originals finds the right one for "
            "nearly every record of usual length, wherever a text stays useful: `wordveil evaluate` measures it"
        )
    word = "different words" if plan.composition == Composition.DISTINCT else "words"
    shares = " and ".join(
        f"{share:.0%} of the records of {words} {word}" + " (the sample's median)" * (words == linkage.typical)
        for words, share in linkage.linked.items()
    )
    half = f"from {linkage.half} {word} on" if linkage.half else "for no length up to 512"
    is_more_shown = plan.relation != Relation.ANY_TEXT
    knows = "" if linkage.is_exact else ", and estimates the mechanism's laws from draws,"
    return (
        f"who holds {linkage.candidates:,} candidate originals{knows} finds the right one for {shares}; "
        f"more than half {half}"
        + ". Better estimates link more of them" * (not linkage.is_exact)
        + ". What shows beside the drawn words links more of them, at any epsilon" * is_more_shown
    )


_FITTING = {
    "record": "versions of a record",
    "author": "records or versions of an author, over all releases of the ledger",
    "corpus": "records or versions of each author (of each record, where there are no authors)",
}


def plan_facts(plan: Plan) -> dict[str, str]:
    """Make the rows of the table of a plan."""
    hidden = plan.tokens is not None
    word = "distinct word of a record" if plan.composition == Composition.DISTINCT else "token"
    of = "that pays for" if plan.composition == Composition.CORPUS else "of"
    unit = f"a record {of} {plan.tokens} tokens" if hidden else f"a {word} (the length is public)"
    facts = {
        "linked": linkage_fact(plan),
        "release": plan.release,
        "input": plan.input,
        "columns": ", ".join(f"{name} {kind}" for name, kind in plan.columns.items()),
        "mechanism": f"{plan.mechanism}, epsilon {tables.price_plan(plan)} for each token",
        "bundle": plan.bundle or "none yet",
        "largest distance": tables.number(plan.diameter),
        "composition": tables.COMPOSED.get(plan.composition, plan.composition),
        "holds for": f"pairs of texts related by {plan.relation}",
        "exposes": ", ".join(plan.exposes) or "nothing",
        f"epsilon of {unit}": tables.number(plan.epsilon_bound),
        "pure epsilon": tables.number(plan.epsilon_pure)
        if plan.epsilon_pure is not None or plan.bundle is None
        else "none: unbounded for any two texts",
    }
    if hidden and plan.composition in tables.COMPOSED and plan.epsilon_bound is not None and plan.tokens:
        facts["epsilon of a token"] = tables.number(plan.epsilon_bound / plan.tokens)
    if plan.delta:
        facts[f"delta of {unit}"] = f"{plan.delta:.3g}: the probability with which an output may exceed these bounds"
    for scope in plan.fitting | plan.runs_left:
        admits = [f"admits {plan.fitting[scope]:,} {_FITTING[scope]}"] if scope in plan.fitting else []
        lasts = [f"lasts {plan.runs_left[scope]:,} more runs at their mean rate"] if scope in plan.runs_left else []
        facts[f"budgets.{scope}"] = "; ".join(admits + lasts)
    if plan.bundle is not None:
        facts |= tables.recovery_facts(Recovery.from_dict(plan.recovery) if plan.recovery else None)
    if plan.has_records is not None:
        facts["records to read"] = "some" if plan.has_records else "none"
    if hidden and plan.output_words:
        facts |= tables.length_facts(plan.output_words)
    return facts


def _plan_notes(plan: Plan) -> list[str]:
    notes = [plan.bundle_problem] if plan.bundle_problem else []
    if plan.tokens is not None and plan.output_words and plan.output_words[0].mean >= 1:
        notes.append(tables.LENGTH_NOTE)
    if plan.bundle is None:
        notes.append("prices need the embedding's diameter, which is in the bundle: run `wordveil build` first.")
    if plan.output_format != "delta":
        notes.append(tables.ALONE_NOTE)
    return notes


def _sentence(config: Config, find: FindBundle, text: str | None) -> SentencePreview | None:
    """Preview a public sentence before and after; None if there is no bundle, or no sentence fits the vocabulary."""
    from wordveil.assembly.bundles import find_ngrams
    from wordveil.measures.comparison import preview_default, preview_sentence

    with suppress(BundleError):
        if (bundle := find()) is not None:
            model = find_ngrams(config)
            if text is None:
                return preview_default(bundle, config.sentence_policy, model)
            return preview_sentence(bundle, config.sentence_policy, text, model)
    return None


def _print_preview(preview: Preview) -> None:
    if preview.sample:
        facts = tables.sample_facts(preview.sample.sample, preview.sample.to_dict())
        advice = [tables.ADVICE_NOTE] if preview.sample.sample.suggested else []
        print_table("Sample", facts, [*advice, tables.PRIVATE_NOTE, tables.SPEED_NOTE])
    if preview.words:
        print_rows(tables.word_table(preview.words))
    if preview.clusters:
        print_rows(cluster_table(preview.clusters))
    if preview.words:
        for note in tables.words_notes(preview):
            print_note(note)
    if preview.unknown:
        print_table("Unknown words", tables.unknown_facts(preview.unknown))


def _print_sentence(sentence: SentencePreview) -> None:
    refused = f"refused: {sentence.reason}"
    after = refused if sentence.output is None else sentence.output or "(the empty text)"
    print_table("Sentence", {"before": sentence.text, "after": after}, [tables.SENTENCE_NOTE])
    if sentence.tokens:
        print_rows(tables.token_table(sentence.tokens))


def _print_distance(apart: TextDistance) -> None:
    print_table("Distance", distance_facts(apart), [DISTANCE_NOTE])
    if apart.moves:
        print_rows(move_table(apart))
