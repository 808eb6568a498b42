"""YAML files as mappings, each key once, and single keys set from the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from wordveil.errors import ConfigError, Fault


class _ConfigLoader(yaml.SafeLoader):
    """Loader of YAML 1.2, in which ``no``, ``012``, ``12:30`` and dates are text, and each key is given once.

    PyYAML would read the first three as false, 10 and 750, and silently keep the last of two keys.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML declares it

    def construct_mapping(  # PyYAML's signature
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                mark = node.value[place][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given more than once", mark)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping

    def construct_document(self, node: yaml.Node) -> Any:
        """Construct all at once, by which PyYAML refuses a value that holds itself."""
        return self.construct_object(node, deep=True)


for _tag, _pattern, _first in (
    ("merge", "<<", "<"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?(?:0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
):
    _ConfigLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))

_NO_TEXT = Fault("YAML", "", "not UTF-8 text in YAML.")


def read_yaml(file: Path) -> dict[str, Any]:
    """Read the mapping in a YAML file. Raises :class:`ConfigError`."""
    try:
        content = file.read_text("utf-8")
    except OSError as error:
        raise ConfigError(str(file), [Fault("--config", str(file), f"cannot be read: {error.strerror}.")]) from None
    except UnicodeDecodeError:
        raise ConfigError(str(file), [_NO_TEXT]) from None
    try:
        raw = yaml.load(content, Loader=_ConfigLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        # A password that begins with * or ! is an alias or a tag to YAML, which would quote it.
        problem = re.sub(r"(alias|anchor|tag|handle) .*", r"\1", error.problem or "not readable", flags=re.DOTALL)
        raise ConfigError(str(file), [Fault("YAML", "", f"{line}{problem}.")]) from None
    except yaml.YAMLError:
        raise ConfigError(str(file), [_NO_TEXT]) from None
    if not isinstance(raw, dict):
        raise ConfigError(str(file), [Fault("YAML", "", "a configuration is a mapping of keys to values.")])
    return raw


def set_key(raw: dict[str, Any], override: str) -> list[Fault]:
    """Set the value of ``key=value``, with a dotted key and a YAML value; return the faults."""
    key, equals, value = override.partition("=")
    if not equals or not key:
        # What follows the name may be a secret.
        name = re.match(r"[\w.]*", key)
        return [Fault("--set", name[0] if name else "", "is not of the form key=value.")]
    *parents, last = key.split(".")
    section: Any = raw
    for parent in parents:
        section = section.setdefault(parent, {}) if isinstance(section, dict) else None
    if not isinstance(section, dict):
        return [Fault("--set", key, "no such key: something above it is a plain value.")]
    try:
        section[last] = yaml.load(value, Loader=_ConfigLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        return [Fault("--set", key, "its value is not readable as YAML; quote it.")]
    return []
