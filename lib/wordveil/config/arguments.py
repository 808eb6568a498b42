"""Checks of arguments in code, like those of a configuration: all faults together, with the same messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from wordveil.config.checks import find_symbol_faults, find_text_faults
from wordveil.config.load import make_fault
from wordveil.config.schema import ColumnsSection, ReleaseName, Section, TextSection
from wordveil.errors import ConfigError, Fault
from wordveil.input.columns import Columns, find_column_faults
from wordveil.records.columns import TextColumns
from wordveil.text.policy import TextPolicy

_Model = TypeVar("_Model", bound=Section)


def parse_arguments(columns: Mapping[str, Any], policy: Mapping[str, Any]) -> tuple[Columns, TextPolicy, TextColumns]:
    """Check the settings of the sections ``input`` (columns alone) and ``text``. Raises :class:`ConfigError`.

    Returns the columns of the input, the policy, and the text columns of the output.
    """
    faults: list[Fault] = []
    section = _parse(ColumnsSection, "input", columns, faults)
    source = Columns(**section.settings) if section else None
    faults.extend(find_column_faults(source) if source else ())
    text = _parse(TextSection, "text", policy, faults)
    faults.extend(find_text_faults(text, source.texts if source else ()) if text else ())
    if faults or source is None or text is None:
        raise ConfigError("arguments", faults)
    widths = text.widths(source.texts) if len(source.texts) > 1 else ()
    chosen = TextPolicy(**text.policy_settings(source.texts))
    if not chosen.draws_words and (clashes := list(find_symbol_faults(source))):
        raise ConfigError("arguments", clashes)
    return source, chosen, TextColumns(source.text_names, widths, symbols=not chosen.draws_words)


def parse_release(name: str, source: str = "arguments", where: str = "release") -> str:
    """Check a release's name as the configuration does. Raises :class:`ConfigError`, with a fault of ``where`` in
    ``source``.
    """
    try:
        return TypeAdapter(ReleaseName).validate_python(name, strict=True)
    except ValidationError as error:
        fault = make_fault({**error.errors()[0], "loc": ("release",)})
        raise ConfigError(source, [replace(fault, where=where)]) from None


def parse_run_id(run_id: str, source: str = "arguments", where: str = "run_id") -> str:
    """Check a run's name, which becomes part of file names. Raises :class:`ConfigError`, with a fault of ``where`` in
    ``source``.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,199}", run_id):
        problem = "give 1 to 200 letters, digits, '.', '_', ':', '+' or '-'; begin with a letter or digit."
        raise ConfigError(source, [Fault(where, run_id[:80], problem)])
    return run_id


def _parse(model: type[_Model], section: str, values: Mapping[str, Any], faults: list[Fault]) -> _Model | None:
    """Parse a section; return None if it has faults, which are added to ``faults``."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        faults.extend(make_fault({**details, "loc": (section, *details["loc"])}) for details in errors)
        return None
