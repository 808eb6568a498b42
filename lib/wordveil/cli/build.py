"""The command ``wordveil build``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from wordveil.cli.options import ConfigOption, JsonOption, SetOption, prepare_session, read_config
from wordveil.cli.output import print_json, print_note, print_rows, print_table, show_progress

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle
    from wordveil.embeddings.training.poincare import ReadPairs


def build(
    config: ConfigOption,
    overrides: SetOption = None,
    *,
    on_spark: Annotated[
        bool,
        Option(
            "--on-spark", help="Count pairs and find neighbours on the executors of the configuration's Spark session."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build the bundle: check the embedding, build the mechanism, and write both to a content-addressed directory."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.embeddings.training.hypernyms import read_pairs
    from wordveil.neighbours.blocks import BuildContext

    settings = read_config(config, overrides)
    with show_progress() as (progress, steps):
        work = BuildContext(progress, steps)
        read: ReadPairs = read_pairs
        if on_spark:
            from wordveil.spark.builds.hypernyms import read_on_executors
            from wordveil.spark.builds.neighbours import compute_on_executors

            work = replace(work, compute=compute_on_executors(prepare_session(settings)))
            read = read_on_executors(prepare_session(settings))
        bundle = build_bundle(settings, work, read)
    if as_json:
        recovery = bundle.recovery.to_dict() if bundle.recovery else None
        measured = {"recovery": recovery, "suitability": bundle.suitability}
        print_json({**_bundle_facts(bundle), **measured, "notes": bundle.manifest["notes"]})
    else:
        _print_bundle(bundle)


def _print_bundle(bundle: Bundle) -> None:
    from wordveil.cli.embedding_tables import FIGURES_NOTE, epsilon_table, suitability_facts
    from wordveil.cli.tables import recovery_facts

    print_table("Bundle", {**_bundle_facts(bundle), **recovery_facts(bundle.recovery)}, bundle.manifest["notes"])
    suits = bundle.suitability
    print_table("Embedding", suitability_facts(suits))
    if suits and suits["epsilons"]:
        print_rows(epsilon_table(suits, bundle.guarantee.nominal_epsilon))
        print_note(FIGURES_NOTE)
    for warning in suits["warnings"] if suits else ():
        print_note(warning)


def _bundle_facts(bundle: Bundle) -> dict[str, Any]:
    guarantee = bundle.guarantee
    return {
        "mechanism": bundle.mechanism.name,
        "fingerprint": bundle.fingerprint,
        "path": str(bundle.path),
        "words": bundle.vocabulary.size,
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
