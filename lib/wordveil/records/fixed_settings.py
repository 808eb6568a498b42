"""Settings behind a release's fingerprints, recorded with its first run to name the change that is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from wordveil.artifacts.bundle import KEEP_ONLY, Bundle, name_setting
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.text.policy import TextPolicy

_SECTIONS = {"mechanism_fingerprint": "mechanism", "policy_fingerprint": "text"}


def list_settings(policy: TextPolicy, bundle: Bundle, columns: TextColumns = ONE_TEXT) -> dict[str, str]:
    """List the settings that decide the fingerprints of policy and bundle, by their names in a configuration.

    They are values of the configuration and digests of public files. Nothing comes from records or from the key.
    """
    recipe = bundle.manifest["recipe"]
    settings = {f"text.{name}": _plain(value) for name, value in asdict(policy).items()}
    if len(columns.names) > 1:
        settings["text (columns that are sanitised together)"] = ", ".join(columns.names)
        settings |= {
            f"text.n_max.{name}": str(width) for name, width in zip(columns.names, columns.widths, strict=False)
        }
    settings |= {
        "mechanism.name": recipe["mechanism"],
        "mechanism.embedding (SHA-256 of its content)": recipe["embedding_digest"],
        "mechanism (version of its sampler)": str(bundle.manifest["content"]["sampler_version"]),
    }
    settings |= {f"mechanism.{name}": _plain(value) for name, value in recipe["settings"].items()}
    if bundle.lists is not None:
        settings["mechanism (SHA-256 of the public lists)"] = bundle.lists.digest
    files = recipe["inputs"]
    for name in sorted(files):
        # The list is a setting of the text, and decides the fingerprint of the mechanism.
        shown = f"mechanism ({name_setting(name)}, " if name == KEEP_ONLY else f"mechanism.{name} ("
        settings[f"{shown}SHA-256 of its content)"] = files[name]["digest"]
    return settings


def _plain(value: Any) -> str:
    """Convert a value to text, and a list of words, which may be long, to its digest."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(f"{kind}: {action}" for kind, action in value)
    if isinstance(value, tuple | list) and value and isinstance(value[0], str):
        return f"{len(value)} words, SHA-256 {hashlib.sha256(json.dumps(value).encode()).hexdigest()}"
    return "not set" if value is None else str(value)


def explain_change(term: str, now: str, before: str, settings: Mapping[str, str], recorded: Mapping[str, str]) -> str:
    """Explain which settings make a fixed term of a release differ: ``mechanism.epsilon is 5.0 now and was 4.0``.

    ``term``: such as ``policy_fingerprint``, with its values ``now`` and ``before``. ``settings``, ``recorded``: those
    of :func:`list_settings` now and in the first run.
    """
    whole = f"{term} is {now} now and was {before}"
    if term == "columns":
        return "; ".join(_differences(dict(_columns(now)), dict(_columns(before)))) or whole
    if (section := _SECTIONS.get(term)) is None:
        return whole
    # A release that was begun without the number has version 1 of the classes.
    mine, theirs = (
        {name: value for name, value in values.items() if name.split(" ")[0].split(".")[0] == section}
        for values in ({"text.types_version": "1", **settings}, {"text.types_version": "1", **recorded})
    )
    return "; ".join([*_differences(mine, theirs), whole])


def _columns(text: str) -> Iterator[tuple[str, str]]:
    for name, value in json.loads(text).items():
        yield f"input.{name}", (", ".join(value) or "none") if isinstance(value, list) else _plain(value)


def _differences(now: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    names = sorted({*now, *before})
    pairs = [(name, now.get(name, "not set"), before.get(name, "not set")) for name in names]
    return [f"{name} is {mine} now and was {theirs}" for name, mine, theirs in pairs if mine != theirs]
