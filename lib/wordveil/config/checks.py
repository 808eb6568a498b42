"""Faults of a configuration that no single value shows: settings that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordveil.artifacts.ngram_model import find_model, read_model
from wordveil.config.evaluation import EvaluationSection, find_evaluation_faults
from wordveil.config.generator_checks import find_corpus_faults, find_text_conflicts
from wordveil.config.mechanisms import HYPERNYMS, nearest_mechanism
from wordveil.config.schema import (
    BudgetsSection,
    GateSection,
    InputSection,
    KeySection,
    LedgerSection,
    OutputSection,
    SparkSection,
    TextSection,
)
from wordveil.embeddings.embedding import SHIPPED
from wordveil.errors import Fault, NgramError, did_you_mean, shown_value
from wordveil.input.columns import find_column_faults
from wordveil.input.conditions import find_reading
from wordveil.input.formats import find_source_faults
from wordveil.input.source import Source
from wordveil.privacy.relations import Exposure, Relation, column_exposure, narrow_relation
from wordveil.release.budgets import ReleaseFacts, budget_faults
from wordveil.release.exposures import is_exposure, output_exposes
from wordveil.release.rules import public_faults
from wordveil.text.choices import Length, OtherLanguage, Profile, Repeat, Slots
from wordveil.text.contradictions import find_faults
from wordveil.text.draft import DraftPolicy
from wordveil.text.language import find_missing_packages
from wordveil.text.policy import TextPolicy
from wordveil.text.stop_words import find_list_problem

_NO_LENGTH = (
    "profile: strict (the default) hides the length and needs n_max: the public number of words to which every text is "
    "cut or filled, 1 to 16777215, e.g. n_max: 64. Set it, or set length: as_is, which shows the length."
)


@dataclass(frozen=True, kw_only=True)
class Sections:
    """The valid sections, for the checks between sections; None for each section that has a fault.

    ``mechanism`` is the section as the user wrote it.
    """

    input: InputSection | None
    text: TextSection | None
    key: KeySection | None
    output: OutputSection | None
    ledger: LedgerSection | None
    budgets: BudgetsSection | None
    gate: GateSection | None
    evaluation: EvaluationSection | None
    spark: SparkSection | None
    mechanism: Mapping[str, Any]


def find_contradictions(sections: Sections) -> Iterator[Fault]:
    """List the faults of a configuration that no single value shows."""
    source, text = sections.input.source if sections.input else None, sections.text
    policy = None
    if source:
        yield from find_column_faults(source)
        yield from find_source_faults(source)
        if sections.output:
            yield from _table_faults(source, sections.output)
    if text:
        faults = list(find_text_faults(text, source.texts if source else ()))
        yield from faults
        if source:
            policy = None if faults else TextPolicy(**text.policy_settings(source.texts))
            yield from _language_faults(source, text)
    if source and policy:
        yield from _condition_faults(source, policy)
    yield from _release_faults(sections, source, policy)
    yield from _mechanism_faults(sections.mechanism, text, sections.output)
    yield from _training_faults(sections.mechanism)
    yield from _spark_faults(sections.spark)
    if sections.evaluation:
        yield from find_evaluation_faults(sections.evaluation, source, sections.gate)
    key = sections.key
    if key and (key.file is None) == (key.env is None):
        yield Fault("key", "", "name exactly one of key.file and key.env. There is no default: no key, no run.")


def _spark_faults(spark: SparkSection | None) -> Iterator[Fault]:
    for name in spark.options if spark else ():
        if name.lower() in ("spark.sql.files.ignorecorruptfiles", "spark.sql.files.ignoremissingfiles"):
            problem = "would silently drop damaged or missing files, and their records with them. Remove it."
            yield Fault("spark.options", name, problem)


def _mechanism_faults(
    written: Mapping[str, Any], text: TextSection | None, output: OutputSection | None
) -> Iterable[Fault]:
    """A mechanism's settings that contradict each other, the text policy or the output."""
    if (mechanism := nearest_mechanism(written.get("name"))) is None:
        return
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    for name, problem in mechanism.settings_type.find_faults(settings):
        yield Fault(f"mechanism.{name}", "", problem)
    if not mechanism.supports_padding and text and text.chosen_settings().get("length") == Length.PAD:
        yield Fault("text.length", "pad", f"pads texts, and {mechanism.padding_advice}")
    if text:
        yield from find_text_conflicts(mechanism, text)
    yield from find_corpus_faults(mechanism, written, text, output)


def _training_faults(mechanism: Mapping[str, Any]) -> Iterable[Fault]:
    """Training where there is nothing to train on, and an embedding where pairs are needed."""
    pairs = mechanism.get("embedding_format") == HYPERNYMS
    if "training" in mechanism and not pairs:
        problem = (
            f"is only for an embedding that is trained from pairs. Set embedding_format: {HYPERNYMS}, or remove it."
        )
        yield Fault("mechanism.training", "", problem)
    if pairs and mechanism.get("embedding") in SHIPPED:
        problem = f"is an embedding, not pairs. Name a file of pairs, or remove embedding_format: {HYPERNYMS}."
        yield Fault("mechanism.embedding", shown_value(mechanism["embedding"]), problem)


def find_text_faults(text: TextSection, names: Sequence[str] = ()) -> Iterable[Fault]:
    """Settings of the policy that contradict each other, the n-gram model, or the text columns ``names``; these are not
    known where there are none.
    """
    settings = text.chosen_settings(names or ("text",))
    if names and isinstance(text.n_max, dict):
        yield from _width_faults(text.n_max, names)
    for name, problem in find_faults(DraftPolicy(**settings)):
        if name == "n_max" and text.profile == Profile.STRICT and text.length is None:
            yield Fault("text.n_max", "", _NO_LENGTH)
            continue
        if name == "stop_word_list":
            problem = find_list_problem(settings.get("language", DraftPolicy.language)) or problem  # noqa: PLW2901
        yield Fault(f"text.{name}", shown_value(getattr(text, name, None)), problem)
    for name, problem in find_missing_packages(DraftPolicy(**settings)):
        yield Fault(f"text.{name}", shown_value(getattr(text, name)), problem)
    if text.profile == Profile.STRICT and text.repeat == Repeat.SAME:
        problem = (
            "contradicts profile: strict (the default), whose bound covers any two texts: repetition shows which "
            "places of a text hold the same word. Remove it, or set profile: readable; with case: lower, "
            "punctuation: drop, stop_words: hide, types: none and names: words that copies nothing, and length: pad "
            "with n_max still hides the number of words that are not repeated."
        )
        yield Fault("text.repeat", text.repeat, problem)
    if text.ngrams is not None and settings.get("slots") == Slots.CARRIER_PHRASES:
        yield from _model_faults(text.ngrams, settings)


def _width_faults(widths: Mapping[str, int], names: Sequence[str]) -> Iterable[Fault]:
    """A mapping of numbers of tokens that is not for these text columns."""
    for name in widths:
        if name not in names:
            problem = f"is not a column of input.text ({', '.join(names)}).{did_you_mean(name, names)}"
            yield Fault(f"text.n_max.{name}", str(widths[name]), problem)
    if missing := [name for name in names if name not in widths]:
        problem = f"lacks {', '.join(missing)}. Name every column of input.text, or give one number for all."
        yield Fault("text.n_max", "", problem)


def _condition_faults(source: Source, policy: TextPolicy) -> Iterable[Fault]:
    """A condition that reads the text under a policy whose bound is for any two texts: it could admit one of them and
    not the other.
    """
    if source.where is None or policy.relation is not Relation.ANY_TEXT:
        return
    if how := find_reading(source.where, source.texts):
        problem = (
            f"{how}. The presence of a record would reveal something about its text, but the text policy's bound "
            "holds for any two texts. Filter on kept columns or in a view of public columns, or use a policy of "
            "text.profile: readable, under which exposes lists condition."
        )
        yield Fault("input.where", shown_value(source.where), problem)


def _language_faults(source: Source, text: TextSection) -> Iterable[Fault]:
    """A column of languages that no setting uses."""
    if source.language and (text.other_language or OtherLanguage.RELEASE) == OtherLanguage.RELEASE:
        problem = (
            "has no effect with text.other_language: release, which tells no languages apart. Set it to mask or "
            "quarantine, or remove this setting."
        )
        yield Fault("input.language", shown_value(source.language), problem)


def _model_faults(path: str, settings: Mapping[str, Any]) -> Iterable[Fault]:
    """An n-gram model that is missing, or that was counted with another definition of words than the policy's."""
    try:
        counted = read_model(find_model(Path(path)))["content"]["settings"]
    except NgramError as error:
        yield Fault("text.ngrams", "", str(error))
        return
    policy = DraftPolicy(**settings)
    for name, value in counted.items():
        chosen = getattr(policy, name, value)
        if chosen != value:
            problem = (
                f"the n-gram model was counted with {name}: {value}. Set text.{name} to it, or run "
                f"`wordveil ngrams` with --{name} {chosen}."
            )
            yield Fault(f"text.{name}", shown_value(chosen), problem)


def _release_faults(sections: Sections, source: Source | None, policy: TextPolicy | None) -> Iterable[Fault]:
    """What a release needs and a one-shot job cannot have, and rules and budgets that none of its runs can keep."""
    output = sections.output
    if output is None:
        return
    if output.format != "delta":
        yield from _one_shot_faults(sections, output)
        return
    if source and not source.needs_delta:
        problem = (
            "a release reads a Delta table, so that a retry can read the same version. Set input.format: delta, or "
            "output.format: parquet."
        )
        yield Fault("output.format", output.format, problem)
    if sections.ledger is None:
        problem = (
            "is required with output.format: delta. Name ledger.path: one ledger for all releases that share records "
            "or authors."
        )
        yield Fault("ledger", "", problem)
    yield from _nesting_faults(source, output, sections.ledger)
    if source is None or policy is None:
        return
    relation = narrow_relation(policy.relation, source.shown)
    budget = sections.budgets.budget if sections.budgets else None
    if budget:
        facts = ReleaseFacts(relation, policy.n_max, source.author is not None)
        yield from (Fault(where, "", problem) for where, problem in budget_faults(budget, facts))
    if sections.gate:
        columns = (column_exposure(name) for name in source.keep)
        form = output_exposes(output.order, is_release=True, budget=budget, n_max=policy.n_max)
        yield from _gate_faults(sections.gate, relation, (*policy.exposes, *source.shown, *form, *columns))


def _one_shot_faults(sections: Sections, output: OutputSection) -> Iterable[Fault]:
    """Settings of a release in a job that writes Parquet."""
    given = {
        "ledger": sections.ledger,
        "budgets": sections.budgets,
        "gate": sections.gate and sections.gate.model_dump(exclude_none=True),
        "output.public": output.public,
        "output.public_table": output.public_table,
        "input.changes": sections.input and sections.input.changes,
    }
    problem = (
        "needs output.format: delta. A Parquet output belongs to one job and records no earlier runs. Set "
        "output.format: delta, or remove this setting."
    )
    yield from (Fault(name, "", problem) for name, value in given.items() if value)


def _nesting_faults(source: Source | None, output: OutputSection, ledger: LedgerSection | None) -> Iterable[Fault]:
    """Tables that lie inside each other."""
    paths = {"output.path": output.path, "ledger.path": ledger and ledger.path, "output.public": output.public}
    tables = {name: path.rstrip("/") for name, path in paths.items() if path}
    if source and source.path:
        tables["input.path"] = source.path.rstrip("/")
    for name, path in tables.items():
        for other, above in tables.items():
            if (
                name not in (other, "input.path")
                and (path + "/").startswith(above + "/")
                and {name, other} != {"output.path", "input.path"}
            ):
                yield Fault(name, path, f"is {other}, or inside it. Choose another place.")


def _gate_faults(gate: GateSection, relation: Relation, shown: tuple[str, ...]) -> Iterable[Fault]:
    """Exposures that do not exist, and rules that no run of this configuration can pass."""
    unknown = [name for name in gate.exposes or () if not is_exposure(name)]
    for name in unknown:
        near = did_you_mean(name, Exposure)
        yield Fault(
            "gate.exposes",
            shown_value(name),
            f"is not something that a release can show. Allowed: {', '.join(Exposure)}, column:NAME.{near}",
        )
    if not unknown:
        for name, problem in public_faults(gate.rules, relation, shown):
            yield Fault(f"gate.{name}", "", problem)


def _table_faults(source: Source, output: OutputSection) -> Iterable[Fault]:
    for name in output.partition_by:
        if name not in source.keep:
            near = did_you_mean(name, source.keep)
            yield Fault(
                "output.partition_by", name, f"is not among input.keep; only kept columns are in the output.{near}"
            )
    here, there = (source.path or "").rstrip("/"), output.path.rstrip("/")
    if here and (here == there or here.startswith(there + "/") or there.startswith(here + "/")):
        yield Fault("output.path", output.path, "is the input, inside it or above it. Choose another place.")
