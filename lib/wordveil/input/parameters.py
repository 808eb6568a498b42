"""Values of the command line for the named parameters of ``input.where``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wordveil.errors import ConfigError, Fault, did_you_mean
from wordveil.input.conditions import PARAMETER, tokens

NO_PARAMS: Mapping[str, str] = MappingProxyType({})


def parse_params(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs. Raises :class:`ConfigError` with every fault: a bad name, or a repeated one."""
    params: dict[str, str] = {}
    faults = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(PARAMETER, name):
            problem = "should be NAME=VALUE, with a name of letters, digits and '_' that does not begin with a digit."
            faults.append(Fault("--param", name[:80], problem))
        elif name in params:
            faults.append(Fault("--param", name, "is given more than once."))
        params[name] = value
    if faults:
        raise ConfigError("command line", faults)
    return params


def find_parameter_names(condition: str) -> list[str]:
    """List the parameters that a condition uses, each once, in their order."""
    return list(dict.fromkeys(token.value for token in tokens(condition) if token.kind == "parameter"))


def check_params(where: str | None, params: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` unless ``params`` are exactly those that the condition ``where`` uses."""
    used = find_parameter_names(where or "")
    faults = [
        Fault("input.where", f":{name}", "has no value.", f"Add --param {name}=... to the command.")
        for name in used
        if name not in params
    ]
    for name in params:
        if name not in used:
            fix = did_you_mean(name, used) or " Remove it."
            faults.append(Fault("--param", name, f"input.where does not use :{name}.{fix}"))
    if faults:
        raise ConfigError("command line", faults)
