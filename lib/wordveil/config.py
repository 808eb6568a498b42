"""The configuration: ``conf/*.yaml`` read, checked, and every fault of a file reported at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from wordveil.bundle import Recipe
from wordveil.errors import ConfigError, Fault
from wordveil.neighbours.annoy import faults_of as annoy_faults
from wordveil.privacy.relations import Exposure, column_exposure
from wordveil.records import RESERVED_COLUMNS
from wordveil.release.rules import is_exposure, public_faults
from wordveil.sections import (
    MECHANISM_SECTIONS,
    AnyMechanism,
    ColumnsSection,
    GateSection,
    InputSection,
    KeySection,
    Name,
    OutputSection,
    ReleaseName,
    Section,
    SparkSection,
    TextSection,
)
from wordveil.text.policy import TextPolicy, faults_of
from wordveil.yaml_file import read_yaml, set_key

FORMAT_VERSION = 1
_SHOWN = 80


class Config(Section):
    """A job: one corpus, one mechanism, one policy, one release."""

    format_version: Literal[1]
    release: ReleaseName
    input: InputSection
    mechanism: AnyMechanism
    bundle: Name
    build_missing: bool = False
    text: TextSection = TextSection()
    key: KeySection
    output: OutputSection
    gate: GateSection = GateSection()
    spark: SparkSection = SparkSection()

    @property
    def policy(self) -> TextPolicy:
        """The text policy."""
        return TextPolicy(**self.text.policy_settings())

    def recipe(self, embedding_digest: str) -> Recipe:
        """What the bundle must be."""
        return Recipe(
            mechanism=self.mechanism.name,
            settings=self.mechanism.settings,
            padding=self.policy.pads,
            embedding=self.mechanism.embedding,
            embedding_digest=embedding_digest,
        )


@dataclass(frozen=True)
class _Checked:
    """Sections that are sound by themselves, for the checks between sections; ``mechanism`` as it was written."""

    sections: dict[str, Any]

    def get(self, name: str) -> Any:
        return self.sections.get(name)


def load_config(file: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a configuration. ``overrides`` are ``key=value`` with a dotted key and a YAML value.

    Raises :class:`ConfigError` with every fault of the file.
    """
    raw = read_yaml(file)
    faults: list[Fault] = []
    for override in overrides:
        faults.extend(set_key(raw, override))
    return parse_config(raw, str(file), faults)


def parse_config(raw: Mapping[str, Any], source: str, faults: Sequence[Fault] = ()) -> Config:
    """Check a configuration that is already a mapping; otherwise as :func:`load_config`."""
    found = [*faults]
    config = None
    try:
        config = Config.model_validate(dict(raw))
    except ValidationError as error:
        found.extend(fault_of(details) for details in error.errors(include_url=False))
    known = {fault.where for fault in found}
    found.extend(fault for fault in _between(_sound_sections(raw)) if fault.where not in known)
    if found or config is None:
        raise ConfigError(source, sorted(set(found), key=lambda fault: (_order(fault.where), fault.where)))
    return config


def _sound_sections(raw: Mapping[str, Any]) -> _Checked:
    models: dict[str, type[Section]] = {
        "input": InputSection,
        "text": TextSection,
        "key": KeySection,
        "output": OutputSection,
        "gate": GateSection,
        "spark": SparkSection,
    }
    sound = {name: _sound(model, raw.get(name, {})) for name, model in models.items()}
    return _Checked({**sound, "mechanism": raw.get("mechanism")})


def _sound(model: type[Section], values: Any) -> Section | None:
    """The section without its faulty values, or None where a required one is missing then."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        faulty = {details["loc"][0] for details in error.errors() if details["loc"]}
    if not isinstance(values, Mapping):
        return None
    try:
        return model.model_validate({name: value for name, value in values.items() if name not in faulty})
    except ValidationError:
        return None


def _between(sections: _Checked) -> list[Fault]:
    """Faults that no single value shows."""
    faults: list[Fault] = []
    source, output = sections.get("input"), sections.get("output")
    if source:
        faults.extend(column_faults(source))
        faults.extend(_source_faults(source))
    if source and output:
        faults.extend(_table_faults(source, output))
    if text := sections.get("text"):
        faults.extend(text_faults(text))
    if gate := sections.get("gate"):
        faults.extend(_gate_faults(gate, source, text))
    if isinstance(mechanism := sections.get("mechanism"), Mapping) and mechanism.get("name") == "laplace":
        faults.extend(Fault(f"mechanism.{name}", "", problem) for name, problem in annoy_faults(mechanism))
    if spark := sections.get("spark"):
        faults.extend(
            Fault(
                "spark.options", name, "would drop damaged or missing files without a word, and their records with them. Remove it."
            )
            for name in spark.options
            if name.lower() in ("spark.sql.files.ignorecorruptfiles", "spark.sql.files.ignoremissingfiles")
        )
    key = sections.get("key")
    if key and (key.file is None) == (key.env is None):
        faults.append(Fault("key", "", "name exactly one of key.file and key.env. There is no default: no key, no run."))
    return faults


def text_faults(text: TextSection) -> Iterable[Fault]:
    """Settings of the policy that contradict each other."""
    for name, problem in faults_of(text.policy_settings()):
        yield Fault(f"text.{name}", _shown(getattr(text, name, None)), problem)


def _gate_faults(gate: GateSection, source: ColumnsSection | None, text: TextSection | None) -> Iterable[Fault]:
    """Exposures that do not exist, and rules that no run of this configuration can pass."""
    unknown = [name for name in gate.exposes or () if not is_exposure(name)]
    for name in unknown:
        near = _near(name, Exposure)
        yield Fault(
            "gate.exposes", _shown(name), f"is nothing that a release can show. Allowed: {', '.join(Exposure)}, column:NAME.{near}"
        )
    if unknown or source is None or text is None or any(True for _ in text_faults(text)):
        return
    policy = TextPolicy(**text.policy_settings())
    shown = (*policy.exposes, *(column_exposure(name) for name in source.keep))
    for name, problem in public_faults(gate.rules, policy.relation, shown):
        yield Fault(f"gate.{name}", "", problem)


def column_faults(source: ColumnsSection) -> Iterable[Fault]:
    """Columns that contradict each other, or that the output cannot have."""
    if source.text == source.id:
        yield Fault("input.text", source.text, "is the id column too. An id is published as it is, so it must not be the text.")
    if source.text in source.keep:
        yield Fault("input.keep", source.text, "is the text column; keeping it would publish the original. Remove it.")
    if source.author == source.text:
        yield Fault("input.author", source.text, "is the text column.")
    for name in source.keep:
        if name == source.id:
            yield Fault("input.keep", name, "is the id column, which is always there. Remove it.")
        if source.keep.count(name) > 1:
            yield Fault("input.keep", name, "stands there twice.")
    for where, name in (("input.id", source.id), *(("input.keep", name) for name in source.keep)):
        if name in RESERVED_COLUMNS or name.startswith("__"):
            yield Fault(where, name, "is a name that the output uses itself. Rename the column in a view of the input.")


def _source_faults(source: InputSection) -> Iterable[Fault]:
    if (source.path is None) == (source.table is None):
        yield Fault("input.table" if source.table else "input.path", "", "name exactly one of input.path and input.table.")
    if source.table is not None and source.format is not None:
        yield Fault("input.format", source.format, "is the catalogue's to say where input.table is set. Remove it.")
    chosen = {name: value for name in ("version", "timestamp") if (value := getattr(source, name)) is not None}
    if len(chosen) == 2:
        yield Fault(
            "input.timestamp", str(source.timestamp), "and input.version both say which version to read. Remove one of them."
        )
    if source.table is None and source.format != "delta":
        for name, value in chosen.items():
            yield Fault(f"input.{name}", _shown(value), "only Delta tables have versions. Say `format: delta`, or remove it.")
    if source.timestamp is not None and not _is_timestamp(source.timestamp):
        yield Fault("input.timestamp", _shown(source.timestamp), 'is no date or time. Write "2026-11-20 03:00:00", in quotes.')


def _is_timestamp(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _table_faults(source: InputSection, output: OutputSection) -> Iterable[Fault]:
    for name in output.partition_by:
        if name not in source.keep:
            near = _near(name, source.keep)
            yield Fault("output.partition_by", name, f"is not among input.keep; only kept columns are in the output.{near}")
    here, there = (source.path or "").rstrip("/"), output.path.rstrip("/")
    if here and (here == there or here.startswith(there + "/") or there.startswith(here + "/")):
        yield Fault("output.path", output.path, "is the input, or inside it, or around it. Choose another place.")


_MESSAGES: dict[tuple[str, str], str] = {
    ("mechanism.epsilon", "missing"): (
        "is required and has no default: it is the privacy of each word, per unit of distance. conf/mechanisms helps to choose."
    ),
    ("mechanism.epsilon", "greater_than"): "should be greater than 0 (and than 1e-100, where noise leaves float64).",
    ("mechanism.epsilon", "greater_than_equal"): "should be greater than 0 (and at least 1e-9).",
    ("mechanism.public", "missing"): (
        "is required: say `public: true` if the embedding, its vocabulary and its index were made without the private corpus. "
        "One made from it leaks it; take another."
    ),
    ("mechanism.public", "literal_error"): (
        "only `public: true` can be used: an embedding made from the private corpus breaks the guarantee. Take one made from public text."
    ),
    ("key", "missing"): "is required: set key.file or key.env. There is no default: no key, no run.",
    ("format_version", "missing"): f"is required: write `format_version: {FORMAT_VERSION}`.",
    ("format_version", "literal_error"): f"this wordveil reads format_version {FORMAT_VERSION}. Take the one that wrote the file.",
    ("release", "string_pattern_mismatch"): "1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit.",
    ("input.timestamp", "string_type"): 'write it in quotes: "2026-11-20 03:00:00".',
    ("key.env", "string_pattern_mismatch"): "is not the name of an environment variable. Never write the key itself here.",
}


def fault_of(details: ErrorDetails) -> Fault:
    """What pydantic found, in the user's words."""
    path = [part for part in details["loc"] if not (isinstance(part, str) and ("[" in part or part in ("english", "str")))]
    kind = details["type"]
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _name_fault(details["input"])
    model: type[BaseModel] | None = None
    if path[:1] == ["mechanism"] and len(path) > 1:
        model = MECHANISM_SECTIONS.get(str(path.pop(1)))
    where = ".".join(str(part) for part in path)
    if kind == "extra_forbidden":
        allowed = list(model.model_fields) if model else _keys_of(path[:-1])
        near = _near(str(path[-1]), allowed)
        return Fault(where, "", f"unknown key.{near or f' Allowed here: {chr(44).join(allowed)}.'}".replace(",", ", "))
    message = _MESSAGES.get((where, kind)) or _message(details)
    return Fault(where, "" if kind == "missing" or where.startswith("key") else _shown(details["input"]), message)


def _name_fault(section: Any) -> Fault:
    """No mechanism has the name that the section gives, if it gives one."""
    name = section.get("name") if isinstance(section, Mapping) else None
    allowed = f"one of {', '.join(MECHANISM_SECTIONS)}. conf/mechanisms helps to choose."
    if name is None:
        return Fault("mechanism.name", "", f"is required: {allowed}")
    return Fault("mechanism.name", _shown(name), f"should be {allowed}{_near(str(name), MECHANISM_SECTIONS)}")


def _message(details: ErrorDetails) -> str:
    if details["type"] == "missing":
        return "is required."
    if details["type"] == "literal_error":
        allowed = str(details.get("ctx", {}).get("expected", ""))
        near = _near(str(details["input"]), allowed.replace("'", "").replace(" or ", ", ").split(", "))
        return f"allowed: {allowed}.{near}"
    text = details["msg"].replace("Input should be", "should be").rstrip(".")
    if details["type"].startswith("float") and isinstance(details["input"], str):
        text += " (write 1000.0, not 1e3, and no quotes)"
    return f"{text}."


def _keys_of(path: Sequence[int | str]) -> list[str]:
    model: type[BaseModel] = Config
    for part in path:
        annotation = model.model_fields[str(part)].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        model = annotation
    return list(model.model_fields)


def _near(name: str, allowed: Iterable[str]) -> str:
    return "".join(f" Did you mean {match}?" for match in difflib.get_close_matches(name, list(allowed), n=1))


def _shown(value: object) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _order(where: str) -> int:
    known = [*Config.model_fields, where.split(".", maxsplit=1)[0]]
    return known.index(known[-1]) if known[-1] in known[:-1] else -1
