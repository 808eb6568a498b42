"""Configuration: ``conf/*.yaml`` read, checked, and every fault of a file reported at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wordveil.artifacts.bundle import KEEP_ONLY, Recipe
from wordveil.config.checks import Sections, find_contradictions, find_form_exposures, find_place_faults
from wordveil.config.credential_checks import find_credential_faults
from wordveil.config.evaluation import EvaluationSection
from wordveil.config.mechanisms import MECHANISM_SECTIONS, AnyMechanism, check_misnamed
from wordveil.config.paths import Location
from wordveil.config.schema import (
    BudgetsSection,
    GateSection,
    InputSection,
    KeySection,
    LedgerSection,
    OutputSection,
    ReleaseHome,
    ReleaseName,
    Section,
    SparkSection,
    StreamSection,
    TextSection,
)
from wordveil.config.yaml_file import read_yaml, set_key
from wordveil.errors import ConfigError, Fault, did_you_mean, shown_value
from wordveil.input.source import Source
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.privacy.relations import Relation
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSettings
from wordveil.release.budgets import PURE, Budget
from wordveil.release.rules import GateRules
from wordveil.scores.methods import ENCODERS
from wordveil.text.policy import TextPolicy

_LOGGER = logging.getLogger(__name__)
FORMAT_VERSION = 2
NO_DIGESTS: Mapping[str, str] = MappingProxyType({})


class Config(Section):
    """A job: one corpus, one mechanism, one policy, one release."""

    format_version: Literal[2]
    """The version of this format."""
    release: ReleaseName
    """The name of what is published, not of one run: another name draws other noise. It has 1 to 128 letters, digits,
    ``.``, ``_`` or ``-``, and begins with a letter or digit.
    """
    input: InputSection
    mechanism: AnyMechanism
    bundle_store: Location
    """The directory of bundles, in which a job finds its own; or the directory of one bundle. It may be on an object
    store.
    """
    build_missing: bool = False
    """``true``: the job builds a bundle that is missing."""
    text: TextSection = TextSection()
    key: KeySection
    output: OutputSection
    ledger: LedgerSection | None = None
    budgets: BudgetsSection | None = None
    stream: StreamSection | None = None
    gate: GateSection = GateSection()
    evaluation: EvaluationSection = EvaluationSection()
    spark: SparkSection = SparkSection()

    @cached_property
    def source(self) -> Source:
        """Corpus, as plain values."""
        return self.input.source()

    @cached_property
    def policy(self) -> TextPolicy:
        """Text policy."""
        return TextPolicy(**self.text.policy_settings(self.source.texts))

    @cached_property
    def text_columns(self) -> TextColumns:
        """Text columns of the output."""
        names = self.source.text_names
        widths = self.text.widths(names) if len(names) > 1 else ()
        return TextColumns(names, widths, symbols=self.output.symbols or not self.policy.draws_words)

    @property
    def sentence_policy(self) -> TextPolicy:
        """Policy of a single text: of several columns, that of the one with most tokens."""
        widths = self.text_columns.widths
        return replace(self.policy, n_max=max(widths)) if widths else self.policy

    def record_settings(self, run_id: str) -> RecordSettings:
        """Collect the settings of the records of a run."""
        return RecordSettings(
            self.release,
            run_id,
            self.policy,
            tuple(self.source.keep),
            self.shown,
            columns=self.text_columns,
            max_records=self.mechanism.settings.record_limit,
            pseudonyms=tuple(self.source.pseudonyms),
        )

    @cached_property
    def budget(self) -> Budget | None:
        """Limits on what records may cost; None if there are none."""
        return self.budgets.budget if self.budgets else None

    @cached_property
    def form_shown(self) -> tuple[str, ...]:
        """Exposures of the output by its form and by its budgets."""
        return find_form_exposures(self.output, self.budget, self.policy, self.source)

    @cached_property
    def rules(self) -> GateRules:
        """Rules of the gate, with that of ``output.shuffle``."""
        rules, shuffle = self.gate.rules, self.output.shuffle
        if shuffle is None:
            return rules
        limits = (limit for limit in (shuffle.epsilon, rules.table_epsilon) if limit is not None)
        return replace(rules, table_epsilon=min(limits))

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Exposures of the release in addition to the policy's and to kept columns."""
        return self.form_shown + self.rules.shown + self.source.shown

    @property
    def relation(self) -> Relation:
        """Pairs of texts for which the release's bound holds."""
        return self.policy.relation

    @property
    def author(self) -> str | None:
        """Column of authors whom attackers of an evaluation guess; None if there is none."""
        return self.evaluation.author or self.source.author

    @property
    def needs_delta(self) -> bool:
        """True if the session needs Delta."""
        return self.source.needs_delta or self.output.format == "delta"

    @property
    def ledger_budget(self) -> Budget:
        """Budget in whose unit the ledger is read; without one, pure costs under the release's own relation."""
        return self.budget or Budget(PURE, self.relation)

    @property
    def home(self) -> ReleaseHome:
        """Place of the release; only with ``output.format: delta``, which requires a ledger."""
        assert self.ledger is not None
        return ReleaseHome(self.release, self.source.id, self.output, self.ledger)

    @property
    def places(self) -> dict[str, str | None]:
        """Places of texts of records, read or written, by setting."""
        return {
            "input.path": self.input.path,
            "output.path": self.output.path,
            "output.public": self.output.public,
            "ledger.path": self.ledger.path if self.ledger else None,
        }

    def recipe(self, embedding_digest: str, file_digests: Mapping[str, str] = NO_DIGESTS) -> Recipe:
        """Make the recipe that the bundle must have.

        ``file_digests``: those of the available public files besides the embedding, by setting
        (:func:`wordveil.assembly.inputs.digest_files`).
        """
        names = self.mechanism.names
        if self.text.keep_only:
            names[KEEP_ONLY] = Path(self.text.keep_only).name
        return Recipe(
            mechanism=self.mechanism.name,
            settings=self.mechanism.recipe,
            padding=self.policy.needs_padding,
            embedding=names["embedding"],
            embedding_digest=embedding_digest,
            inputs={
                name: {"name": names[name], "digest": file_digests.get(name, "")}
                for name in sorted({*names} - {"embedding"})
            },
            lists=self.policy.language if self.policy.draws_types else "",
        )


def load_config(file: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a configuration. ``overrides`` are ``key=value`` with a dotted key and a YAML value.

    Relative paths are taken from the directory of ``file``. Raises :class:`ConfigError` with every fault of the file.
    """
    raw = read_yaml(file)
    faults: list[Fault] = []
    for override in overrides:
        faults.extend(set_key(raw, override))
    config = parse_config(raw, str(file), faults, file.parent)
    _LOGGER.debug("read %s with %d overrides: release %s", file, len(overrides), config.release)
    return config


def parse_config(
    raw: Mapping[str, Any], source: str, faults: Sequence[Fault] = (), directory: Path | None = None
) -> Config:
    """Check a configuration that is already a mapping; otherwise as :func:`load_config`. Relative paths are taken from
    ``directory``, by default the working directory.
    """
    all_faults = [*faults, *find_credential_faults(raw)]
    config = None
    try:
        config = Config.model_validate(dict(raw), context=directory)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            all_faults.extend(make_faults(details))
    # A section may seem to lack a setting only because it was faulty and left out.
    known = {where for fault in all_faults for where in (fault.where, fault.where.partition(".")[0])}
    others = find_contradictions(_sound_sections(raw, directory))
    all_faults.extend(fault for fault in others if fault.where not in known)
    for name in ("passages", "texts") if config is not None else ():
        if config is not None and (texts := getattr(config.mechanism, name, None)):
            all_faults.extend(find_place_faults(f"mechanism.{name}", texts, config.places))
    if all_faults or config is None:
        raise ConfigError(source, sorted(set(all_faults), key=lambda fault: (_order(fault.where), fault.where)))
    return config


def _sound_sections(raw: Mapping[str, Any], directory: Path | None) -> Sections:
    mechanism = raw.get("mechanism")
    sound: dict[str, Any] = {
        "mechanism": mechanism if isinstance(mechanism, Mapping) else {},
        "bundle_store": str(raw.get("bundle_store")),
    }
    for name in {field.name for field in fields(Sections)} - {*sound}:
        kind: Any = Config.model_fields[name].annotation
        model = next(iter(get_args(kind)), kind)  # a section that may be missing is a union with None
        sound[name] = _sound(model, raw.get(name, {}), directory)
    return Sections(**sound)


def _sound(model: type[Section], values: Any, directory: Path | None) -> Section | None:
    """Parse the section without its faulty values; None if a required one is missing then."""
    try:
        return model.model_validate(values, context=directory)
    except ValidationError as error:
        faulty = {details["loc"][0] for details in error.errors() if details["loc"]}
    if not isinstance(values, Mapping) or "profile" in faulty:  # which decides what the others mean
        return None
    try:
        sound = {name: value for name, value in values.items() if name not in faulty}
        return model.model_validate(sound, context=directory)
    except ValidationError:
        return None


_MESSAGES: dict[tuple[str, str], str] = {
    ("input.id", "empty"): "is empty. Name the column that holds the ids.",
    ("input.text", "empty"): "is empty. Name the column that holds the text.",
    ("input.keep.as", "missing"): (
        "is required: write as: pseudonym, or the column's name alone, under which it is published unchanged."
    ),
    ("mechanism.public", "missing"): (
        "is required: set `public: true` if the embedding, its vocabulary and its index, and all frequencies, texts, "
        "similarities, pairs, classes, n-grams and passages that this section names, were made without the private "
        "corpus, and a generator as well, unless corpus: private says otherwise. What is made from the corpus leaks "
        "it: use another embedding, or another file."
    ),
    ("mechanism.public", "literal_error"): (
        "only `public: true` can be used: an embedding, frequencies, texts, similarities, pairs, classes, n-grams or "
        "generators made from the private corpus break the guarantee. Use those made from public text."
    ),
    ("mechanism.model", "missing"): (
        "is required: name the weights of a generator that was trained with the words of mechanism.embedding."
    ),
    ("key", "missing"): "is required: set key.file or key.env. There is no default: no key, no run.",
    ("format_version", "missing"): f"is required: write `format_version: {FORMAT_VERSION}`.",
    ("format_version", "literal_error"): (
        f"this wordveil reads format_version {FORMAT_VERSION}. Write the file again; `wordveil init` drafts one."
    ),
    ("budgets.unit", "missing"): (
        "is required: `pure`, or a metric's identifier as the privacy column has it (euclidean:1f0c9a...)."
    ),
    ("budgets.relation", "missing"): (
        "is required: the pairs of texts for which the sums hold: any_text, same_length or same_skeleton."
    ),
    ("release", "string_pattern_mismatch"): (
        "use 1 to 128 letters, digits, '.', '_' or '-'; begin with a letter or digit."
    ),
    ("output.public_table", "string_pattern_mismatch"): (
        "use a table's name in the catalogue: one to three parts separated by dots, without quotes."
    ),
    ("evaluation.encoder", "string_pattern_mismatch"): f"is no sentence encoder. Allowed: {ENCODERS}.",
    ("text.types", "literal_error"): "write classes and what happens to each, such as {email: surrogate}, or none.",
    ("key.env", "string_pattern_mismatch"): (
        "is not the name of an environment variable. Never write the key itself here."
    ),
}


def make_faults(details: ErrorDetails) -> list[Fault]:
    """Translate what pydantic found into the user's words, with what a mechanism's unknown name hides."""
    if details["type"] not in ("union_tag_not_found", "union_tag_invalid"):
        return [make_fault(details)]
    section = details["input"]
    rest = check_misnamed(section) if isinstance(section, Mapping) else []
    return [_name_fault(section), *map(make_fault, rest)]


def make_fault(
    details: ErrorDetails, root: type[BaseModel] = Config, messages: Mapping[tuple[str, str], str] = _MESSAGES
) -> Fault:
    """Put one fault that pydantic found into the user's words. ``root``: the model of the whole file. ``messages``:
    those of single settings, by key and kind of fault.
    """
    path = [
        part for part in details["loc"] if not (isinstance(part, str) and ("[" in part or part in ("english", "str")))
    ]
    kind = details["type"]
    model: type[BaseModel] | None = None
    mechanism = ""
    if path[:1] == ["mechanism"] and len(path) > 1:
        mechanism = str(path.pop(1))
        model = MECHANISM_SECTIONS.get(mechanism)
    where = ".".join(str(part) for part in path)
    setting = ".".join(part for part in path if isinstance(part, str))  # without positions in lists
    if kind == "extra_forbidden":
        keys = _keys_of(path[1:-1], model) if model else _keys_of(path[:-1], root)
        near = did_you_mean(str(path[-1]), keys)
        allowed = ", ".join(keys)
        return Fault(where, "", f"unknown key.{near or f' Allowed here: {allowed}.'}")
    if kind == "missing" or details["input"] in (None, ""):
        kinds = ("empty", kind, "missing")
        message = next((messages[setting, kind] for kind in kinds if (setting, kind) in messages), "")
        if where == "mechanism.epsilon":
            message = _explain_epsilon(mechanism)
        return Fault(
            where, "", message or ("is required." if kind == "missing" else "is empty: fill it in, or remove it.")
        )
    message = messages.get((setting, kind)) or _message(details)
    # The value may be a key or a password.
    is_hidden = where.startswith(("key", "input.options", "spark.options"))
    return Fault(where, "" if is_hidden else shown_value(details["input"]), message)


def _explain_epsilon(mechanism: str) -> str:
    """Explain why the epsilon of a mechanism must be set, and what it is the price of."""
    chosen = MECHANISMS.get(mechanism)
    meaning = "the privacy of each word, per unit of distance"
    if chosen and chosen.is_pure:
        meaning = f"the most that {chosen.priced or 'any two words, near or far,'} can cost"
    return f"is required and has no default: it is {meaning}. `wordveil docs choosing` works through a choice."


def _name_fault(section: Any) -> Fault:
    """List the allowed names, for a section whose name is unknown or missing."""
    name = section.get("name") if isinstance(section, Mapping) else None
    allowed = f"one of {', '.join(MECHANISM_SECTIONS)}. `wordveil docs mechanisms` compares them."
    if name is None:
        return Fault("mechanism.name", "", f"is required: {allowed}")
    return Fault(
        "mechanism.name", shown_value(name), f"should be {allowed}{did_you_mean(str(name), MECHANISM_SECTIONS)}"
    )


_WRITE = {
    "bool_type": " Write true or false.",
    "int_type": " Write its digits alone, without quotes or leading zeros.",
    "string_type": " Write it in quotes.",
}
_MAPPING = "should be a mapping, such as {key: value}."
_LIST = "should be a list, such as [one, two]."
# pydantic names classes of Python.
_COLLECTIONS = {
    "dict_type": _MAPPING,
    "mapping_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "is_instance_of": _LIST,
}
_LIMITS = {"greater_than": "gt", "greater_than_equal": "ge"}


def _message(details: ErrorDetails) -> str:
    if details["type"] in ("literal_error", "enum"):
        allowed = str(details.get("ctx", {}).get("expected", ""))
        near = did_you_mean(str(details["input"]), allowed.replace("'", "").replace(" or ", ", ").split(", "))
        return f"allowed: {allowed}.{near}"
    if (problem := _COLLECTIONS.get(details["type"])) is not None:
        return problem
    text = details["msg"].replace("Input should be", "should be").rstrip(".")
    limit = details.get("ctx", {}).get(_LIMITS.get(details["type"], ""), 0)
    if details["loc"][-1:] == ("epsilon",) and limit > 0:
        # Such a bound comes from the arithmetic. To a user the bound is 0.
        least = "at least" if details["type"] == "greater_than_equal" else "above"
        text = f"should be greater than 0, and {least} {limit:g}"
    if details["type"].startswith("float") and isinstance(details["input"], str):
        text += " (write 1000.0, not 1e3, and no quotes)"
    return f"{text}.{_WRITE.get(details['type'], '')}"


def _keys_of(path: Sequence[int | str], model: type[BaseModel]) -> list[str]:
    for part in path:
        if isinstance(part, str):  # a number is a position in a list
            model = _find_model(model.model_fields[part].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _find_model(kind: Any) -> type[BaseModel] | None:
    """Find the model in the type of a setting, such as a union with None, or a list."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((model for inner in get_args(kind) if (model := _find_model(inner))), None)


def _order(where: str) -> int:
    known = [*Config.model_fields, where.split(".", maxsplit=1)[0]]
    return known.index(known[-1]) if known[-1] in known[:-1] else -1
