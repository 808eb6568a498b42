"""Plan of a configuration, from its settings and the input's schema alone: no row is read, nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import FindBundle, find_once
from wordveil.assembly.field import find_field_fit
from wordveil.assembly.jobs import find_table_terms
from wordveil.config.load import Config
from wordveil.config.schema import SparkSection
from wordveil.errors import BundleError
from wordveil.evaluation.linkage import CANDIDATES, LENGTHS, LinkageForecast, LinkageTrials
from wordveil.evaluation.redrawn import find_hidden_share
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.input.source import Source
from wordveil.measures.estimates import Estimator
from wordveil.measures.field_fit import FieldFit
from wordveil.measures.preview import Sample
from wordveil.measures.recovery import draw_publicly, find_laws
from wordveil.measures.text_lengths import OutputLength, forecast_lengths
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.privacy.events import ReleaseTerms, price
from wordveil.privacy.table import TableTerms
from wordveil.records.sanitiser import compose, release_terms
from wordveil.release.budgets import PURE, AuthorRecords, Budget, RefusalForecast, count_fitting, multiply
from wordveil.spark.input.local_schema import read_local_schema
from wordveil.spark.input.source import open_input
from wordveil.spark.plan.sample import TableSample
from wordveil.spark.platform.columns import check_columns, find_field, text_paths
from wordveil.spark.platform.filesystem import require_free_paths
from wordveil.text.choices import DrawnUnit, Length, Output
from wordveil.text.policy import TextPolicy

FindTrials = Callable[[], LinkageTrials | None]


@dataclass(frozen=True)
class Plan:
    """Plan of a run: what it would release and what it would cost.

    ``tokens`` is the public length at which a record is priced: ``n_max``, times the records that are ever drawn if the
    private corpus trained the weights; None if each record's own length is public. Then ``epsilon_bound`` and ``delta``
    are those of one token.
    ``recovery``: the share of single words that an attacker recovers, as :class:`wordveil.privacy.recovery.Recovery`
    writes it. ``output_words``: the number of words of the output for texts of some lengths. ``linkage``: the share of
    records linked to their originals; None also if the order of words is hidden, and for a mechanism that does not draw
    word by word. Without a bundle prices, ``recovery`` and ``linkage`` are None and ``output_words`` is empty.
    ``fitting``: the number of records of ``fitting_tokens`` tokens, or versions of one, that each limit of a pure
    budget admits, by scope: the public length or, with a sample, that of its 95th percentile. ``refusals``: of a
    release with budgets and a sample, the records that they would refuse. ``author_records``: of a release with authors
    and a sample, the records of an author. ``longest_cost``: what the longest record costs in the unit of the budgets,
    in nats without any: of the sample, if lengths are visible. ``budget``: that of the release. With a sample and a
    ledger, by scope, ``left``: what is left of each limit where the least is, and ``runs_left``: the number of further
    runs that it lasts at the mean rate so far. ``unit``: what a token is: a word, or a whole text.
    ``table``: of a shuffled table the promise, the ``least_rows`` of a group that it takes (None: more than any table
    has), and the ``epsilon_of_rows`` of ``rows``, if given. ``pseudonyms``: the input's columns that are published as
    pseudonyms. ``counted``: with a column of symbols, of so many ``draws`` the ``least`` of a symbol that stands out
    from none in an estimate. ``field_fit``: how well the vectors fit the public texts of ``mechanism.texts``, if named.
    """

    release: str
    input: str
    columns: dict[str, str]
    kept: tuple[str, ...]
    mechanism: str
    epsilon: float
    bundle: str | None
    bundle_problem: str | None
    metric: str | None
    diameter: float | None
    composition: str
    relation: str
    exposes: tuple[str, ...]
    tokens: int | None
    epsilon_bound: float | None
    epsilon_pure: float | None
    delta: float | None
    output_format: str
    recovery: dict[str, Any] | None = None
    output_words: tuple[OutputLength, ...] = ()
    linkage: LinkageForecast | None = None
    fitting: dict[str, int] = field(default_factory=dict)
    fitting_tokens: int | None = None
    refusals: RefusalForecast | None = None
    author_records: AuthorRecords | None = None
    longest_cost: float | None = None
    budget: Budget | None = None
    left: dict[str, float] = field(default_factory=dict)
    runs_left: dict[str, int] = field(default_factory=dict)
    unit: str = DrawnUnit.WORD
    table: dict[str, Any] | None = None
    counted: dict[str, int] | None = None
    pseudonyms: tuple[str, ...] = ()
    field_fit: FieldFit | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        made: dict[str, Any] = {"output_words": [asdict(line) for line in self.output_words]}
        if self.author_records is not None:
            limit = self.author_records.suggest_limit(self.longest_cost or 0.0)
            made["author_records"] = {**asdict(self.author_records), "suggested_limit": limit}
        if self.refusals is not None:
            made["refusals"] = self.refusals.to_dict()
        for name in ("budget", "linkage", "field_fit"):
            made[name] = (part := getattr(self, name)) and asdict(part)
        return {**self.__dict__, **made}


def make_plan(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    rows: int | None = None,
    find: FindBundle | None = None,
    find_trials: FindTrials | None = None,
) -> Plan:
    """Check the configuration against the input's schema and price the public maximum length.

    ``params``: those of ``input.where``. ``rows``: a number of rows of the smallest group of a shuffled table. Spark
    starts only if it alone can read the schema. ``find``, ``find_trials``: find the bundle and the trials of linkage,
    if a command has other uses of them. Raises :class:`WordveilError`.
    """
    source, policy, problem = config.source, config.policy, None
    check_params(source.where, params)
    find = find or find_once(config)
    find_trials = find_trials or find_trials_once(policy, find)
    try:
        bundle = find()
    except BundleError as error:
        bundle, problem = None, str(error)
    columns = _read_schema(source, config.spark)
    spark = session() if columns is None else None
    require_free_paths(spark, config.output, config.ledger)
    if spark is not None:
        columns = open_input(spark, source, params).read().schema
    assert columns is not None
    settings = config.record_settings("")
    terms = release_terms(settings, bundle) if bundle else None
    priced = price(terms, policy.n_max or 1) if terms else None
    lengths = (policy.n_max or 1,) if policy.pads and not policy.draws_words else LENGTHS
    texts = dict(zip(source.texts, text_paths(columns, source), strict=True))
    named = {source.id: (source.id,), **texts}
    named |= {name: (name,) for name in source.columns_read}
    fields = {name: find_field(columns, path) for name, path in named.items()}
    return Plan(
        release=config.release,
        input=source.name,
        columns={name: field.dataType.simpleString() for name, field in fields.items() if field},
        kept=tuple(source.keep),
        pseudonyms=tuple(pseudonym.column for pseudonym in source.pseudonyms),
        mechanism=config.mechanism.name,
        epsilon=config.mechanism.nominal_epsilon,
        bundle=bundle.fingerprint if bundle else None,
        bundle_problem=problem,
        metric=terms.guarantee.metric.identifier if terms else None,
        diameter=terms.guarantee.diameter if terms else None,
        composition=str(compose(config.mechanism.mechanism, policy, settings.max_records)),
        relation=str(settings.relation),
        exposes=settings.exposes,
        tokens=policy.n_max and policy.n_max * (settings.max_records or 1),
        epsilon_bound=priced.epsilon_bound if priced else None,
        epsilon_pure=priced.epsilon_pure if priced else None,
        delta=priced.delta if priced else None,
        output_format=config.output.format,
        recovery=bundle.recovery.to_dict() if bundle and bundle.recovery else None,
        output_words=tuple(forecast_lengths(policy, bundle.mechanism, bundle.vocabulary.size)) if bundle else (),
        linkage=trials.forecast(lengths) if bundle and (trials := find_trials()) else None,
        unit=policy.unit,
        fitting=_count_fitting(config.budget, terms, terms.tokens) if terms else {},
        fitting_tokens=terms.tokens if terms else None,
        budget=config.budget,
        longest_cost=_price_longest(config.budget, terms, terms.tokens) if terms and terms.tokens else None,
        field_fit=find_field_fit(config),
        counted=_plan_counts(bundle, policy, rows or CANDIDATES) if bundle and config.text_columns.symbols else None,
        table=_plan_table(find_table_terms(config.output.shuffle, settings, bundle), rows) if bundle else None,
    )


def _plan_counts(bundle: Bundle, policy: TextPolicy, rows: int) -> dict[str, int] | None:
    if (symbols := bundle.mechanism.symbols) is None:
        return None
    draws = rows * (policy.n_max or 1)
    with suppress(ValueError):  # a law that cannot be inverted
        return {"draws": draws, "least": Estimator(symbols.law).find_least_count(draws)}
    return None


def _plan_table(terms: TableTerms | None, rows: int | None) -> dict[str, Any] | None:
    if terms is None:
        return None
    reached = terms.measure(rows).epsilon if rows else None
    return {**asdict(terms), "least_rows": terms.find_least_rows(), "rows": rows, "epsilon_of_rows": reached}


def _count_fitting(budget: Budget | None, terms: ReleaseTerms, tokens: int | None) -> dict[str, int]:
    if budget is None or budget.unit != PURE or not tokens or not terms.relation.covers(budget.relation):
        return {}
    return {scope: count_fitting(limit, terms.guarantee.pure, tokens) for scope, limit in budget.limits.items()}


def _price_longest(budget: Budget | None, terms: ReleaseTerms, tokens: int) -> float:
    """Price the longest record in the unit of ``budget``; in nats without one."""
    if budget is None or budget.unit == PURE:
        return multiply(tokens, terms.guarantee.pure)
    return terms.guarantee.epsilon


def add_sampled_costs(plan: Plan, sample: Sample, budget: Budget | None, terms: ReleaseTerms) -> Plan:
    """Add what follows from the lengths of a sample, if no length is public: ``fitting``, and the longest record."""
    if terms.tokens is not None or not sample.draws:
        return plan
    usual = int(np.quantile(sample.draws, 0.95, method="inverted_cdf"))
    fitting, longest = _count_fitting(budget, terms, usual), _price_longest(budget, terms, max(sample.draws))
    return replace(plan, fitting=fitting, fitting_tokens=usual, longest_cost=longest)


def add_typical(plan: Plan, table: TableSample, find_trials: FindTrials, policy: TextPolicy) -> Plan:
    """Add the share of linked records of a sample's median number of drawn words to ``plan``."""
    counted = table.sample.distinct or table.sample.lengths
    if plan.linkage is None or not policy.draws_words or not counted or not counted.median:
        return plan
    trials = find_trials()
    assert trials is not None  # the plan's own forecast had them
    words = min(counted.median, policy.n_max or counted.median)
    linked = {**plan.linkage.linked, words: trials.find_linked(words)}
    return replace(plan, linkage=replace(plan.linkage, linked=dict(sorted(linked.items())), typical=words))


def find_trials_once(policy: TextPolicy, find: FindBundle) -> FindTrials:
    """Return a function that makes the trials of linkage once: estimating unknown laws takes seconds.

    It returns None without a bundle, if the order of words is hidden, and if words are not drawn one by one.
    """

    @cache
    def find_trials() -> LinkageTrials | None:
        bundle = find()
        if bundle is None or policy.output != Output.SEQUENCE or policy.length == Length.SAMPLE:
            return None
        mechanism, vocabulary = bundle.mechanism, bundle.vocabulary
        frequencies = bundle.topics.shares if bundle.topics else rank_frequencies(vocabulary.size)
        if (found := find_laws(mechanism, frequencies)) is None:
            return None
        laws, is_exact = found
        draw = None if is_exact else lambda ids: draw_publicly(mechanism, ids, "linkage")
        hidden_share = find_hidden_share(policy, vocabulary.array) if policy.draws_words else 1.0
        return LinkageTrials(laws, frequencies * hidden_share, draw)

    return find_trials


def _read_schema(source: Source, spark: SparkSection) -> StructType | None:
    """Read the input's schema, checked, if that is possible without Spark."""
    if source.path is None or source.kind not in ("parquet", "delta"):
        return None
    if source.options or source.columns or source.rename or source.cast:
        return None
    if (source.version, source.timestamp, source.where) != (None, None, None):
        return None
    local = read_local_schema(source.path, spark, delta=source.kind == "delta")
    if local is None:
        return None
    check_columns(local.schema, source, f"{source.setting} {source.name}", may_rename=True)
    return local.schema
