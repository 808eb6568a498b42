"""Write docs/settings.md: every setting of a configuration, from its models. A test keeps the page up to date.

What a setting means stands beside it: as the docstring of the model's field, or else where the settings' own class has
it. Without arguments the page is written; ``--print`` prints it.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from numpydoc.docscrape import NumpyDocString
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from wordveil.config import generators
from wordveil.config.load import Config
from wordveil.config.mechanisms import MECHANISM_SECTIONS, EmbeddingTrainingSection, MechanismSection
from wordveil.config.schema import GateSection, TextSection
from wordveil.embeddings.training.hypernyms import PoincareSettings
from wordveil.generators.training import settings as generator_settings
from wordveil.mechanisms.registry import SHIPPED
from wordveil.release.rules import RULES
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import PROFILES, SLOT_START_THRESHOLD, SLOT_THRESHOLD
from wordveil.text.types.classes import TypeAction

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
INTRO = """\
# All settings

Every setting of a configuration, with its type, bounds and default; any other is refused. `scripts/settings.py`
generates this page from the code. `--set text.repeat=same` overrides a setting on the command line.
`wordveil docs conf/nightly.yaml` and `wordveil docs conf/release.yaml` print complete examples.
"""
SEE = {
    "input": "See [inputs.md](inputs.md).",
    "mechanism": "See [mechanisms.md](mechanisms.md) and [choosing.md](choosing.md).",
    "text": "See [text-policies.md](text-policies.md). Profiles differ in the settings marked *by profile*.",
    "key": "See [operations.md](operations.md#the-key).",
    "output": "See [operations.md](operations.md#reading-the-output).",
    "ledger": "See [releases.md](releases.md#budgets-and-the-ledger).",
    "budgets": "See [releases.md](releases.md#budgets-and-the-ledger).",
    "stream": "See [releases.md](releases.md#a-stream).",
    "gate": "See [releases.md](releases.md#gate-and-publication).",
    "evaluation": "See [figures.md](figures.md#what-evaluate-prints).",
    "spark": "See [operations.md](operations.md#spark-options).",
}
WIDTH = 120
SCALARS = {str: "text", int: "integer", float: "number", bool: "`true`, `false`"}
# What a policy takes with `slots: carrier_phrases` alone.
THRESHOLDS = {"slot_threshold": SLOT_THRESHOLD, "slot_start_threshold": SLOT_START_THRESHOLD}
PLUGGED = ", or one of an installed package"
METHODS = {
    setting: f"list of {', '.join(f'`{name}`' for name in registry.shipped)}{PLUGGED}"
    for setting, registry in (("attackers", AUTHOR_ATTACKS), ("tasks", TEXT_TASKS))
}
CLASSES = {
    "types": "`none`, or a mapping of [classes](types.md#classes-and-their-sets) to "
    f"{', '.join(f'`{action}`' for action in TypeAction)}"
}
Meanings = Mapping[str, str]


def make_page() -> str:
    """Make the whole page."""
    sections = {name: model for name, field in Config.model_fields.items() if (model := model_of(field)) is not None}
    parts = [INTRO, "## Top level", entries(Config, leave_out=set(sections) | {"mechanism"})]
    for name in Config.model_fields:
        if name == "mechanism":
            parts += mechanism_parts()
        elif name in sections:
            values = {"evaluation": METHODS, "text": CLASSES}.get(name, {})
            parts += [f"## {name}", f"{summary(sections[name])}\n{SEE[name]}", entries(sections[name], values=values)]
    parts += generator_parts()
    return "\n\n".join(part.strip() for part in parts) + "\n"


def generator_parts() -> Iterator[str]:
    """Return the file of `wordveil train`, which is a configuration of its own."""
    yield (
        "## generator\n\n`wordveil train` reads a file of its own, with `format_version: 1` and this section.\n"
        "See [training.md](training.md#generators)."
    )
    yield entries(generators.GeneratorSection)
    meanings = {
        "reward": attributes(generator_settings.RewardSettings),
        "training": {
            **attributes(generator_settings.TrainingSettings),
            **attributes(generator_settings.Schedule),
        },
    }
    for name, field in generators.GeneratorSection.model_fields.items():
        if (model := model_of(field)) is not None:
            yield f"### generator.{name}\n\n{summary(model)}\n\n{entries(model, meanings.get(name))}"


def mechanism_parts() -> Iterator[str]:
    """Return the section ``mechanism``: what all share, then each mechanism's own settings."""
    shared = set(MechanismSection.model_fields)
    yield from (
        "## mechanism",
        f"{summary(MechanismSection)}\n{SEE['mechanism']}",
        "All mechanisms have these settings:",
    )
    names = ", ".join(f"`{kind.name}`" for kind in SHIPPED) + PLUGGED
    yield entries(MechanismSection, values={"name": names})
    training = entries(EmbeddingTrainingSection, attributes(PoincareSettings))
    yield from ("### training", summary(EmbeddingTrainingSection), training)
    for shipped in SHIPPED:
        name, kind, section = shipped.name, shipped.settings_type, MECHANISM_SECTIONS[shipped.name]
        own = [setting for setting in section.model_fields if setting not in shared]
        rows = entries(section, attributes(kind), leave_out=shared) if own else ""
        yield f"### {name}\n\n{summary(kind)}\n\n{rows}"


def entries(
    model: type[BaseModel],
    meanings: Meanings | None = None,
    *,
    leave_out: Iterable[str] = (),
    values: Mapping[str, str] = types.MappingProxyType({}),
) -> str:
    """List a model's settings. ``meanings`` explain fields without a docstring; ``values`` replace types."""
    known = {**(meanings_of(model) if meanings is None else meanings), **docstrings(model)}
    rows = []
    for name, field in model.model_fields.items():
        if name in leave_out:
            continue
        allowed = values.get(name) or describe(field.annotation, field.metadata)
        if field.default is not None and type(None) in get_args(field.annotation):
            allowed += ", or `null`"
        default = default_of(model, name, field)
        entry = f"- `{name}` ({allowed}{'; ' if default else ''}{default}): {sentence(known.get(name, ''))}"
        rows.append(wrap(entry))
    return "\n".join(rows)


def wrap(entry: str) -> str:
    """Wrap an entry of a list between words. Code stays on one line: a line that begins with `+` would be a list."""
    whole = re.sub("`[^`]+`", lambda span: span[0].replace(" ", "\0"), entry)
    wrapped = textwrap.fill(whole, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return wrapped.replace("\0", " ")


def meanings_of(model: type[BaseModel]) -> Meanings:
    """Return explanations that stand elsewhere than in the model: a policy's beside the policy, a rule's beside the
    rule.
    """
    if model is TextSection:
        return attributes(DraftPolicy)
    if model is GateSection:
        return {name: rule.meaning for name, rule in RULES.items()}
    return {}


def docstrings(model: type[BaseModel]) -> Meanings:
    """Return the docstrings below a model's fields, and those of its bases. Pydantic could read them too, but it would
    do so whenever a command starts, which would take a third of a second.
    """
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        try:
            source = inspect.getsource(kind) if is_model(kind) and kind is not BaseModel else ""
        except OSError:  # made of a settings class
            continue
        body = [inner for outer in ast.parse(textwrap.dedent(source)).body for inner in getattr(outer, "body", [])]
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(said))):
                    found[name] = said
    return found


def attributes(kind: type) -> Meanings:
    """Return the section ``Attributes`` of a class's docstring."""
    entries = NumpyDocString(inspect.getdoc(kind) or "")["Attributes"]
    return {name.strip(): " ".join(entry.desc) for entry in entries for name in entry.name.split(",")}


def model_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a setting that is a section with one model."""
    found = [kind for kind in (field.annotation, *get_args(field.annotation)) if is_model(kind)]
    return found[0] if len(found) == 1 else None


def is_model(kind: Any) -> bool:
    """Return whether a type is a model."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def describe(kind: Any, metadata: Sequence[Any] = ()) -> str:  # noqa: PLR0911 - one line for each kind of type
    """Describe a type with its bounds, for people."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return describe(inner[0], [*metadata, *inner[1:]])
    if origin in (Union, types.UnionType):
        return ", or a ".join(describe(one, metadata) for one in inner if one is not type(None))
    if origin is Literal:
        return ", ".join(code(value) for value in inner)
    if origin is dict:
        return f"mapping of {describe(inner[0])} to {describe(inner[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of {describe(inner[0])}"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(code(choice.value) for choice in kind)
    if is_model(kind):
        return "section"
    return SCALARS[kind] + bounds(metadata)


def bounds(metadata: Sequence[Any]) -> str:
    """Return the bounds of a number, as the end of a phrase."""
    found = {}
    for item in flatten(metadata):
        for kind, name in (("Ge", "ge"), ("Gt", "gt"), ("Le", "le"), ("Lt", "lt")):
            if isinstance(item, getattr(annotated_types, kind)):
                found[name] = getattr(item, name)
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    if set(found) == {"ge", "le"}:
        return f", {number(found['ge'])} to {number(found['le'])}"
    return "".join(f", {word} {number(found[name])}" for name, word in words.items() if name in found)


def flatten(metadata: Sequence[Any]) -> Iterator[Any]:
    """Return the constraints of a type, those inside ``Field`` included."""
    for item in metadata:
        yield from flatten(item.metadata) if isinstance(item, FieldInfo) else (item,)


def number(value: float) -> str:
    """Return a number; large powers of two as such."""
    if isinstance(value, int) and value >= 2**20 and math.log2(value).is_integer():
        return f"2^{int(math.log2(value))}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def default_of(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    """Return a default, for people."""
    if field.is_required():
        return "**required**"
    value = field.default
    if model is TextSection and value is None:
        if any(name in profile for profile in PROFILES.values()):
            return "*by profile*"
        value = THRESHOLDS.get(name, getattr(DraftPolicy, name, None))
    if value is None or value == () or isinstance(value, BaseModel):
        return ""
    return f"default {code(list(value) if isinstance(value, tuple) else value)}"


def code(value: Any) -> str:
    """Return a value between backticks, as YAML writes it."""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def summary(kind: type) -> str:
    """Return the first sentence of a docstring, without the class that it points to."""
    text = (inspect.getdoc(kind) or "").split("\n\n")[0]
    return sentence(re.sub(r" \(:class:`[^`]*`\)", "", text))


def sentence(text: str) -> str:
    """Return a docstring on one line of Markdown, for readers who write YAML: they leave out what Python calls None."""
    plain = re.sub(r"\bNone\b", "Left out", " ".join(text.split()).replace("``", "`"))
    plain = re.sub(r" \(:\w+:`[^`]*`\)| It has no default\.", "", plain)
    return plain[:1].upper() + plain[1:]


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(make_page(), end="")
    else:
        PAGE.write_text(make_page(), "utf-8")
