"""Evaluations of a release: its newest draws, or their published rows, beside the originals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from wordveil.assembly.evaluations import EvaluationContext, load_evaluation
from wordveil.config.load import Config
from wordveil.errors import ConfigError, ReleaseError
from wordveil.evaluation.encoders import make_encoder
from wordveil.evaluation.figures import find_attack_to_chance, find_linked
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.input.source import Source
from wordveil.release.events import PUBLISHED
from wordveil.release.rules import GateRules
from wordveil.scores.evaluation import Evaluation
from wordveil.spark.evaluate.job import OUTCOME, attack_authors, check_pairs, measure_pairs
from wordveil.spark.evaluate.pairs import read_pairs
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.tables import Release, open_release

_GATE_SEED = 0


def evaluate_release(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    published: bool = False,
    progress: Callable[[str], None] = ignore,
) -> Evaluation:
    """Measure a release against its originals: its newest draws, or the ``published`` rows.

    ``params``: those of ``input.where``, to measure that slice; by default all. Raises :class:`ReleaseError` if nothing
    was drawn, or published, yet; and as :func:`wordveil.spark.evaluate.job.evaluate_output`.
    """
    if params:  # without them the condition is left out
        check_params(config.source.where, params)
    context = load_evaluation(config)
    with open_release(config.home, session, progress, outcome=OUTCOME, is_locked=False) as release:
        rows, table = _read_rows(release, published=published)
        source, version = _read_originals(config.source, release, params, published=published)
        progress("reading records")
        pairs = read_pairs(source, rows, context, context.section.seed)
    facts = {"table": table, "input": config.source.name, "input version": version}
    return measure_pairs(context, pairs, facts, progress)


def measure_gate_attacks(
    context: EvaluationContext, rules: GateRules, release: Release, rows: DataFrame, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Measure the figures of the gate's rules ``attack_to_chance`` and ``linked`` on the newest draws in ``rows``.

    The first is None if fewer than two authors have enough records, or if these could not have shown an attack above
    the bound. Nothing is left to chance, not even the attacker's draws, which stay in this process: repeating a gate
    repeats its decision. Raises as :func:`evaluate_release`.
    """
    source, _ = _read_originals(context.source, release, NO_PARAMS)
    pairs = read_pairs(source, rows, context, _GATE_SEED)
    check_pairs(context, pairs)
    found: dict[str, float | None] = {}
    if (bound := rules.attack_to_chance) is not None:
        figures = attack_authors(context, pairs, _GATE_SEED, progress, drawing=_GATE_SEED)
        found["attack_to_chance"] = None if figures is None else find_attack_to_chance(figures, bound)
    if rules.linked is not None:
        progress("linking records to their originals")
        encoder = make_encoder(context.section.encoder, context.embedding)
        found["linked"] = find_linked(pairs, context.sanitiser, encoder, _GATE_SEED)
    return found


def _read_rows(release: Release, *, published: bool) -> tuple[DataFrame, str]:
    if published:
        if not release.public.exists():
            raise ReleaseError(f"release {release.name}: nothing was published yet. Measure its draws.")
        if release.home.output.shuffle:
            raise ReleaseError(
                f"release {release.name}: the rows of its published table have no ids, so none can be laid beside its "
                "original. Measure its draws."
            )
        version = release.public.version()
        return release.public.read(version), f"version {version} of the published table {release.public.path}"
    if not release.draws.exists() or not release.journal.intents():
        raise ReleaseError(f"release {release.name}: nothing was drawn yet. Run `wordveil sanitise` first.")
    version = release.draws.version()
    return release.newest_rows(version), f"version {version} of the draws {release.draws.path}"


def _read_originals(
    configured: Source, release: Release, params: Mapping[str, str], *, published: bool = False
) -> tuple[DataFrame, str]:
    """Read the input at the version of the rows' last run, if the table still has it; and name the version."""
    newest = replace(configured, version=None, timestamp=None, where=configured.where if params else None)
    source = open_input(release.spark, newest, params)
    # For `published`: the last run that read the input before that publication.
    journal = release.journal
    event = journal.latest(PUBLISHED) if published else None
    reads = [run for run in journal.intents() if run.kind == "sanitise" and (event is None or run.seq < event.seq)]
    intent = reads[-1] if reads else None
    if intent is not None and source.table_id == intent.source_id:
        try:
            return source.read(intent.version), f"{intent.version}, which run {intent.run_id} read"
        except ConfigError as error:
            if [fault.where for fault in error.faults] != ["input.version"]:
                raise
    return source.read(), f"{source.latest_version}, the current one: that of the last run is gone"
