"""Credentials in a configuration or on the command line: each is a fault, because both are stored and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wordveil.credentials import find_credential, hide_in_value, is_secret_name, is_secret_value
from wordveil.errors import ConfigError, Fault

# SQL, in which a pair compares a column with a value, and names of environment variables.
_EXEMPT = frozenset({"input.where", "input.columns", "input.options_env"})
_LOCAL = ("mechanism.", "bundle_store", "key.", "text.", "generator.")
_STORED = "Configurations and commands are stored and shown."
_GIVE_STORAGE = (
    "Remove it. Let Spark have it from the machine's role, from Hadoop's credential providers "
    "(hadoop.security.credential.provider.path), or from a file that spark-submit reads (--properties-file)."
)


def find_credential_faults(raw: Mapping[str, Any]) -> Iterator[Fault]:
    """List the values of a configuration that hold a credential, those of unknown settings among them."""
    for where, name, value in _walk(raw, "", ""):
        if is_secret_name(name) and is_secret_value(value):
            yield Fault(where, "", f"seems to hold a secret. {_STORED} {_advise(where, name)}")
        elif isinstance(value, str) and (what := find_credential(value)):
            yield Fault(where, hide_in_value(value), f"holds a credential: {what}. {_STORED} {_advise(where, name)}")


def check_location(option: str, location: str, source: str = "command line") -> str:
    """Return a path or URL of the command line or of a call. Raises :class:`ConfigError` if it holds a credential."""
    if what := find_credential(location):
        problem = f"holds a credential: {what}. {_STORED} {_GIVE_STORAGE}"
        raise ConfigError(source, [Fault(option, hide_in_value(location), problem)])
    return location


def _walk(value: Any, where: str, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the dotted key of each value, the name of its setting or option, and the value."""
    if where in _EXEMPT:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, f"{where}.{key}" if where else str(key), str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk(inner, where, name)
    else:
        yield where, name, value


def _advise(where: str, name: str) -> str:
    if where.startswith("input.options."):
        return f"Put the value into an environment variable and name that: input.options_env: {{{name}: VARIABLE}}."
    return "Remove it. Download the file, and name its path." if where.startswith(_LOCAL) else _GIVE_STORAGE
