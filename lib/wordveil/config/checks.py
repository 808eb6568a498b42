"""Checks between settings of a configuration: faults that no single value shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from wordveil.artifacts.ngram_model import find_model_faults
from wordveil.config.evaluation import EvaluationSection, find_evaluation_faults
from wordveil.config.mechanisms import HYPERNYMS, nearest_mechanism
from wordveil.config.schema import (
    BudgetsSection,
    GateSection,
    InputSection,
    KeySection,
    LedgerSection,
    OutputSection,
    Section,
    ShuffleSection,
    SparkSection,
    StreamSection,
    TextSection,
)
from wordveil.embeddings.embedding import SHIPPED
from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.input.columns import Columns, fold_name
from wordveil.input.formats import find_source_faults
from wordveil.input.locations import SCHEME, lies_in
from wordveil.input.source import Source
from wordveil.mechanisms.base import Mechanism
from wordveil.privacy.relations import Relation, column_exposure, pseudonym_exposure
from wordveil.records.paths import read_path
from wordveil.records.schema import SYMBOLS
from wordveil.release.budgets import STALE, Budget, find_budget_faults
from wordveil.release.rules import find_gate_faults, output_exposes
from wordveil.text.choices import DrawnUnit, Length, OtherLanguage, Refused, Slots
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import TextPolicy, find_context_faults, find_policy_faults


@dataclass(frozen=True, kw_only=True)
class Sections:
    """Valid sections, for the checks between sections; None for each section that has a fault.

    ``mechanism`` and ``bundle_store`` are as the user wrote them.
    """

    input: InputSection | None
    text: TextSection | None
    key: KeySection | None
    output: OutputSection | None
    ledger: LedgerSection | None
    budgets: BudgetsSection | None
    stream: StreamSection | None
    gate: GateSection | None
    evaluation: EvaluationSection | None
    spark: SparkSection | None
    mechanism: Mapping[str, Any]
    bundle_store: str


def find_contradictions(sections: Sections) -> Iterator[Fault]:
    """List the faults of a configuration that no single value shows: between sections, then inside each."""
    source, text = sections.input.source() if sections.input else None, sections.text
    policy = None
    if source:
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
        yield from _limit_faults(sections, source, policy)
    if sections.output:
        yield from _output_faults(sections, source, sections.output)
    yield from _mechanism_faults(sections)
    yield from _training_faults(sections.mechanism)
    if sections.evaluation and source:
        yield from find_evaluation_faults(sections.evaluation, source, sections.gate)
    for section in vars(sections).values():
        if isinstance(section, Section):
            yield from section.find_faults()


def find_text_faults(text: TextSection, names: Sequence[str] = ()) -> Iterator[Fault]:
    """List contradictions in the policy, faults of the n-gram model, and of the text columns ``names``, if known."""
    draft = DraftPolicy(**text.chosen_settings(names or ("text",)))
    yield from find_policy_faults(draft, dict(text), names)
    if text.ngrams is not None and draft.slots == Slots.CARRIER_PHRASES:
        yield from find_model_faults(Path(text.ngrams), draft)


def _mechanism_faults(sections: Sections) -> Iterable[Fault]:
    """List contradictions of a mechanism's settings with each other, the text policy or the output."""
    written, text = sections.mechanism, sections.text
    if (mechanism := nearest_mechanism(written.get("name"))) is None:
        return
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    for name, problem in mechanism.settings_type.find_faults(settings):
        yield Fault(f"mechanism.{name}", "", problem)
    if not mechanism.supports_padding and text and text.chosen_settings().get("length") == Length.PAD:
        yield Fault("text.length", "pad", f"pads texts, and {mechanism.padding_advice}")
    if text and text.keep_only and "model" in mechanism.settings_type.input_files:
        problem = "confines the vocabulary, and a generator writes with the words that it was trained with. Remove it."
        yield Fault("text.keep_only", shown_value(text.keep_only), problem)
    if text:
        source = sections.input.source() if sections.input else None
        yield from _unit_faults(mechanism, text, source, sections.output)
    if text and mechanism.reads_context:
        # Such a mechanism reads the words around a position, which these settings would hide from it.
        chosen = text.chosen_settings()
        for name, problem in find_context_faults(mechanism.name, DraftPolicy(**chosen)):
            yield Fault(f"text.{name}", str(chosen[name]), problem)
    yield from _corpus_faults(mechanism, sections)
    if sections.output and sections.output.shuffle:
        yield from _shuffle_faults(mechanism, sections, sections.output.shuffle)


def find_form_exposures(
    output: OutputSection, budget: Budget | None, policy: TextPolicy, source: Source
) -> tuple[str, ...]:
    """Find the exposures of an output by its form and by its budgets."""
    return output_exposes(
        output.order,
        is_release=output.format == "delta",
        budget=budget,
        n_max=policy.n_max,
        has_kept=bool(source.followed),
        is_shuffled=output.shuffle is not None,
    )


def find_place_faults(setting: str, texts: str, places: Mapping[str, str | None]) -> Iterator[Fault]:
    """List public texts that lie in places, by setting, where a job reads or writes texts of records."""
    for name, place in places.items():
        if place and (lies_in(texts, place) or lies_in(place, texts)):
            yield Fault(setting, texts, f"is {name}, inside it or above it, and must be public. Name public texts.")


def _unit_faults(
    mechanism: type[Mechanism[Any]], text: TextSection, source: Source | None, output: OutputSection | None
) -> Iterator[Fault]:
    """List a policy that draws words under a mechanism whose symbols stand for texts, and the other way round.

    Also lists symbols that a mechanism does not have, and columns of the input with the name of one that is added.
    """
    unit = text.chosen_settings().get("unit", DrawnUnit.WORD)
    if mechanism.draws_texts and unit == DrawnUnit.WORD:
        problem = (
            f"contradicts mechanism.name: {mechanism.name}, which draws one symbol for a whole text and copies nothing "
            "of it. Set text: {profile: passages}."
        )
        yield Fault("text.profile", text.profile, problem)
    if unit != DrawnUnit.WORD and not mechanism.draws_texts:
        problem = "needs a mechanism whose symbols stand for texts. Set mechanism.name: passages, or another profile."
        yield Fault("text.profile", text.profile, problem)
    adds_symbols = output is not None and output.symbols
    if adds_symbols and not mechanism.has_symbols:
        problem = f"needs clusters, and mechanism.name: {mechanism.name} draws single words. Set tree, or remove it."
        yield Fault("output.symbols", "true", problem)
    if source and (adds_symbols or unit != DrawnUnit.WORD):
        yield from find_symbol_faults(source)


def find_symbol_faults(source: Columns) -> Iterator[Fault]:
    """List columns with the name of the column of drawn symbols."""
    several = source.texts if len(source.texts) > 1 else ()
    named = {"input.id": (source.id,), "input.keep": source.kept_names, "input.text": several}
    for setting, names in named.items():
        for name in names:
            if fold_name(read_path(name)[0] if setting == "input.text" else name) == SYMBOLS:
                problem = "is the name of the column of drawn symbols. Rename it in a view of the input."
                yield Fault(setting, name, problem)


def _corpus_faults(mechanism: type[Mechanism[Any]], sections: Sections) -> Iterator[Fault]:
    """List settings that preclude draws from weights that the private corpus trained.

    They are a missing ledger, visible lengths, and files that only a store's own rules protect.
    """
    written, text, output = sections.mechanism, sections.text, sections.output
    if written.get("corpus") != "private" or "corpus" not in {item.name for item in fields(mechanism.settings_type)}:
        return
    why = "The private corpus trained the weights, so that every draw costs every record"
    if output and output.format != "delta":
        problem = (
            f"needs output.format: delta and a ledger. {why}, and only a ledger counts them all. Set both, or train "
            "the weights on public text and set corpus: public."
        )
        yield Fault("mechanism.corpus", "private", problem)
    if text and text.chosen_settings().get("length", Length.AS_IS) != Length.PAD:
        problem = f"must be pad with mechanism.corpus: private. {why}: their numbers of tokens must be public."
        yield Fault("text.length", "", problem)
    for name, place in (("bundle_store", sections.bundle_store), ("mechanism.model", str(written.get("model")))):
        if SCHEME.match(place):
            problem = "must be on a disk with mechanism.corpus: private, where only their owner can read the weights."
            yield Fault(name, shown_value(place), f"{problem} Name a path without a scheme.")


def _shuffle_faults(mechanism: type[Mechanism[Any]], sections: Sections, shuffle: ShuffleSection) -> Iterator[Fault]:
    """List settings under which a shuffled table has no bound, or none below the loss of a record's own draw."""
    written, text = sections.mechanism, sections.text
    where, advice = "output.shuffle", "Set text: {profile: passages} and mechanism.name: passages."
    if not mechanism.is_pure or written.get("corpus") == "private":
        problem = f"needs a mechanism with one pure loss for a record, and {mechanism.name} has none here. {advice}"
        yield Fault(where, "", problem)
        return
    if text and sections.input:
        source = sections.input.source()
        chosen = DraftPolicy(**text.chosen_settings(source.texts))
        tokens, price = chosen.n_max, written.get("epsilon")
        if tokens is None or chosen.relation is not Relation.ANY_TEXT:
            problem = (
                f"needs a loss that holds between any two texts, and here it holds for {chosen.relation}. {advice}"
            )
            yield Fault(where, "", problem)
        elif isinstance(price, int | float) and shuffle.epsilon >= tokens * price:
            problem = (
                f"is not below {tokens * price:g}, the loss of a record's own draws ({tokens:,} of {price:g}): to "
                "shuffle the rows adds nothing. Set less; below 1 is usual for published tables."
            )
            yield Fault(f"{where}.epsilon", f"{shuffle.epsilon:g}", problem)
        if chosen.refused != Refused.EMPTY or source.shown:
            problem = (
                "a record that is refused for its text is missing from the table, which no order hides. Set "
                "text.refused: empty, and read a format whose rows cannot be malformed, such as Parquet."
            )
            yield Fault(where, "", problem)
    rules = ("min_records", "max_empty_rate", "min_distinct_words", "max_stale_rate")
    for name in (name for name in rules if sections.gate and getattr(sections.gate, name) is not None):
        problem = "is measured on draws that the table does not show, such as withdrawn ones. Remove it."
        yield Fault(f"gate.{name}", "", problem)
    if sections.budgets and sections.budgets.on_exceeded == "keep_last":
        problem = (
            "keep_last marks rows of edited records, and output.shuffle draws a record once. Set quarantine or fail."
        )
        yield Fault("budgets.on_exceeded", "", problem)


def _training_faults(mechanism: Mapping[str, Any]) -> Iterable[Fault]:
    """List training without pairs to train on, and an embedding instead of the pairs that training needs."""
    pairs = mechanism.get("embedding_format") == HYPERNYMS
    if "training" in mechanism and not pairs:
        problem = (
            f"is only for an embedding that is trained from pairs. Set embedding_format: {HYPERNYMS}, or remove it."
        )
        yield Fault("mechanism.training", "", problem)
    if pairs and mechanism.get("embedding") in SHIPPED:
        problem = f"is an embedding, not pairs. Name a file of pairs, or remove embedding_format: {HYPERNYMS}."
        yield Fault("mechanism.embedding", shown_value(mechanism["embedding"]), problem)


def _language_faults(source: Source, text: TextSection) -> Iterable[Fault]:
    """List a column of languages that no setting uses."""
    if source.language and (text.other_language or OtherLanguage.RELEASE) == OtherLanguage.RELEASE:
        problem = (
            "has no effect with text.other_language: release, which does not tell languages apart. Set it to mask or "
            "quarantine, or remove this setting."
        )
        yield Fault("input.language", shown_value(source.language), problem)


def _limit_faults(sections: Sections, source: Source, policy: TextPolicy) -> Iterator[Fault]:
    """List budgets and rules that no run of a release can keep."""
    output, gate = sections.output, sections.gate
    if output is None or output.format != "delta":
        return
    budget = sections.budgets.budget if sections.budgets else None
    yield from find_budget_faults(budget, policy.relation, policy.n_max, has_authors=source.author is not None)
    if budget and budget.on_exceeded == "keep_last":
        for name in (source.id, *source.kept_names, *source.text_names):
            if fold_name(name) == STALE:
                problem = "is what budgets.on_exceeded: keep_last adds. Rename the column in a view of the input."
                yield Fault("input", name, problem)
    if gate:
        limit = gate.rules.table_epsilon
        if limit is not None and output.shuffle is None:
            problem = "is of a shuffled table. Set output.shuffle, or remove it."
            yield Fault("gate.table_epsilon", f"{limit:g}", problem)
        columns = (
            *(column_exposure(name) for name in source.keep),
            *(pseudonym_exposure(pseudonym.name) for pseudonym in source.pseudonyms),
        )
        form = find_form_exposures(output, budget, policy, source)
        shown = (*policy.exposes, *source.shown, *form, *columns)
        yield from find_gate_faults(gate.rules, policy.relation, shown)


def _output_faults(sections: Sections, source: Source | None, output: OutputSection) -> Iterator[Fault]:
    """List missing settings that a release needs, and settings that a one-shot job cannot have."""
    if output.format != "delta":
        yield from _one_shot_faults(sections, output)
        return
    if source and not source.may_have_versions:
        problem = (
            "a release reads a Delta or an Iceberg table, so that a retry can read the same version. Set input.format: "
            "delta or iceberg, or output.format: parquet."
        )
        yield Fault("output.format", output.format, problem)
    if sections.ledger is None:
        problem = (
            "is required with output.format: delta. Name ledger.path: one ledger for all releases that share records "
            "or authors."
        )
        yield Fault("ledger", "", problem)
    if output.public_only:
        problem = "is for Parquet outputs: readers of a release have its public table (output.public). Remove it."
        yield Fault("output.public_only", "true", problem)
    yield from _nesting_faults(source, output, sections.ledger)
    if sections.stream:
        yield from _stream_faults(source, sections.stream)


def _one_shot_faults(sections: Sections, output: OutputSection) -> Iterable[Fault]:
    """List settings of a release in a job that writes Parquet."""
    given = {
        "ledger": sections.ledger,
        "budgets": sections.budgets,
        "stream": sections.stream,
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
    """List tables that lie inside each other."""
    paths = {"output.path": output.path, "ledger.path": ledger and ledger.path, "output.public": output.public}
    tables = {name: path for name, path in paths.items() if path}
    if source and source.path:
        tables["input.path"] = source.path
    for (name, path), (other, above) in itertools.permutations(tables.items(), 2):
        # _table_faults reports an output inside the input.
        reported = name == "input.path" or {name, other} == {"output.path", "input.path"}
        if not reported and lies_in(path, above):
            yield Fault(name, path, f"is {other}, or inside it. Choose another path.")


def _stream_faults(source: Source | None, stream: StreamSection) -> Iterable[Fault]:
    """List what prevents a stream from landing in the input."""
    if source is None:
        return
    if source.path is None:
        yield Fault(
            "input.path", "", "is required with `stream`, whose rows land there. Name it in place of input.table."
        )
    elif stream.path and stream.path.rstrip("/") == source.path.rstrip("/"):
        problem = "is input.path, where the rows land. Name another path there, or remove `stream`."
        yield Fault("stream.path", stream.path, problem)
    if source.version is not None or source.timestamp is not None:
        yield Fault("stream", "", "adds versions to the input. Remove input.version and input.timestamp.")


def _table_faults(source: Source, output: OutputSection) -> Iterable[Fault]:
    for name in output.partition_by:
        if name in source.kept_names and name not in source.keep:
            problem = (
                "is a column of pseudonyms, of which each would be a directory. Partition by a column that is kept "
                "unchanged, such as a day."
            )
            yield Fault("output.partition_by", name, problem)
        elif name not in source.keep:
            near = did_you_mean(name, source.keep)
            yield Fault(
                "output.partition_by", name, f"is not among input.keep; only kept columns are in the output.{near}"
            )
    for pseudonym in source.pseudonyms if output.shuffle else ():
        problem = (
            "must not be a pseudonym with output.shuffle: rows of one value would be linked, and those rows have no "
            "identity. Remove it, or output.shuffle."
        )
        yield Fault("input.keep", pseudonym.column, problem)
    if source.path and (lies_in(source.path, output.path) or lies_in(output.path, source.path)):
        yield Fault("output.path", output.path, "is the input, inside it or above it. Choose another path.")
