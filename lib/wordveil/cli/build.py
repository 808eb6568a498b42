"""The command ``wordveil build``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import print_grid, print_note, print_table, show_progress
from wordveil.cli.scaffold import Call, Result, command
from wordveil.cli.tables import NOT_MEASURED, recovery_facts

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle
    from wordveil.embeddings.training.poincare import ReadPairs
    from wordveil.mechanisms.base import Topics

_SHOWN = 20  # subjects
FIGURES_NOTE = (
    "stay: words that stay themselves, each word of the vocabulary counted once. Where all words are equally likely an "
    "attacker recovers at least as many. All figures are of public words: `wordveil docs figures`."
)


@command(read_config)
def build(
    call: Call,
    *,
    on_spark: Annotated[
        bool,
        Option(
            "--on-spark",
            rich_help_panel="Spark",
            help="Count pairs and find neighbours on the executors of the configuration's Spark session.",
        ),
    ] = False,
) -> Result:
    """Check the embedding, build the mechanism, and write both as a bundle.

    The directory of a bundle is named after its contents. Building again from the same inputs changes nothing.

    Example: `wordveil build --config reviews.yaml`
    """
    from wordveil.assembly.bundles import build_bundle
    from wordveil.embeddings.training.hypernyms import read_pairs
    from wordveil.neighbours.blocks import BuildContext

    with show_progress() as (progress, steps):
        context = BuildContext(progress, steps)
        read: ReadPairs = read_pairs
        if on_spark:
            from wordveil.spark.builds.hypernyms import read_on_executors
            from wordveil.spark.builds.neighbours import compute_on_executors

            session = prepare_session(call.config, is_short=False)
            context = replace(context, compute=compute_on_executors(session))
            read = read_on_executors(session)
        bundle = build_bundle(call.config, context, read)
    recovery = bundle.recovery.to_dict() if bundle.recovery else None
    measured: dict[str, Any] = {"recovery": recovery, "suitability": bundle.suitability}
    if bundle.topics:
        names = ("symbol", "share", "passage", "keywords")
        measured["topics"] = [dict(zip(names, row, strict=True)) for row in bundle.topics.rank()]
    document = {**_bundle_facts(bundle), **measured, "notes": bundle.manifest["notes"]}
    return Result(document, partial(_print_bundle, bundle))


def _print_bundle(bundle: Bundle) -> None:
    print_table("Bundle", {**_bundle_facts(bundle), **recovery_facts(bundle.recovery)}, bundle.manifest["notes"])
    suits = bundle.suitability
    if bundle.topics:
        _print_topics(bundle.topics)
        return
    print_table("Embedding", suitability_facts(suits))
    if suits and suits["epsilons"]:
        print_epsilons(suits, bundle.guarantee.nominal_epsilon)
    for warning in suits["warnings"] if suits else ():
        print_note(warning)


def _print_topics(topics: Topics) -> None:
    title = f"Subjects: {_SHOWN} of {len(topics.shares)}, the most frequent in the public passages first"
    rows = [(str(symbol), f"{share:.2%}", passage, words) for symbol, share, passage, words in topics.rank()[:_SHOWN]]
    print_grid(title, rows, ("subject", "share", "what is written", "telling words"))


def _bundle_facts(bundle: Bundle) -> dict[str, Any]:
    guarantee = bundle.guarantee
    return {
        "mechanism": bundle.mechanism.name,
        "fingerprint": bundle.fingerprint,
        "path": str(bundle.path),
        "words": bundle.lexicon.size,
        **({"subjects": bundle.vocabulary.size} if bundle.topics else {}),
        "bytes": bundle.payload_bytes,
        "search": bundle.mechanism.search,
        "search_recall": bundle.mechanism.search_recall,
        "metric": guarantee.metric.identifier,
        "nominal_epsilon": guarantee.nominal_epsilon,
        "epsilon": guarantee.epsilon,
        "diameter": guarantee.diameter,
        "epsilon_pure_per_token": guarantee.pure,
        "slack": guarantee.slack,
        "delta_per_token": guarantee.delta,
    }


def suitability_facts(suits: Mapping[str, Any] | None) -> dict[str, str]:
    """Make the rows on the embedding's fit to the mechanism; ``suits`` is None for a bundle without these figures."""
    if suits is None:
        return {"embedding": NOT_MEASURED}
    cosine = suits["measure"] == "cosine"
    unit = "cosine" if cosine else f"{suits['measure']} distance"
    facts = {f"{unit}, nearest": _spread(suits["nearest"]), f"{unit}, word {suits['neighbour']}": _spread(suits["far"])}
    if suits["gamma"] is not None:
        facts["gamma to begin with"] = f"{suits['gamma']:g}, the median distance of word {suits['neighbour']}"
    if suits["epsilon"] is not None:
        low, high = suits["epsilon"]
        facts["epsilons to look at"] = f"{low:g} to {high:g}"
    covered = "not measured: gensim's test data is not installed"
    if suits["covered"] is not None:
        covered = f"{_percent(suits['covered'])} of {suits['text_words']:,} words of {suits['text']}"
    return {**facts, "words with digits": _digits(suits["digits"]), "public text covered": covered}


def _spread(quantiles: Mapping[str, float]) -> str:
    return f"median {quantiles['median']:.3g}; of 90% of words {quantiles['low']:.3g} to {quantiles['high']:.3g}"


def _digits(digits: Mapping[str, Any]) -> str:
    if not digits["words"]:
        return "none"
    stays = "" if digits["stays"] is None else f"; {_percent(digits['stays'])} of them stay"
    return f"{digits['words']:,}: {', '.join(digits['examples'])}{stays}"


def print_epsilons(suits: Mapping[str, Any], configured: float) -> None:
    """Print the effect of rising epsilons on words; ``configured`` is marked."""
    marks = {configured: " (yours)"}
    rows = [
        (
            f"{row['epsilon']:g}{marks.get(row['epsilon'], '')}",
            _percent(row["stays"]),
            f"at least {_percent(row['recovered'])}",
        )
        for row in suits["epsilons"]
    ]
    print_grid("What epsilon does to words", rows, (), ("epsilon", "stay", "recovered of running text"))
    print_note(FIGURES_NOTE)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
