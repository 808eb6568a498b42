"""Configurations as mappings, and the faults that are found in them."""

from __future__ import annotations

from typing import Any

import pytest

from wordveil.config.load import Config, parse_config
from wordveil.errors import ConfigError

LAPLACE = {"name": "laplace", "epsilon": 5.0, "embedding": "demo", "public": True}


def settings(*, source: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """A sound configuration with other ``sections``, and with ``source`` added to its section ``input``."""
    return {
        "format_version": 2,
        "release": "mail",
        "input": {"path": "in", "id": "id", "text": "body", **(source or {})},
        "mechanism": LAPLACE,
        "bundle_store": "bundles",
        "text": {"n_max": 8},
        "key": {"file": "key"},
        "output": {"path": "out"},
        **sections,
    }


def find_faults(raw: Any) -> dict[str, str]:
    """The faults of a configuration that has some, by their places."""
    with pytest.raises(ConfigError) as caught:
        parse_config(raw, "job.yaml")
    assert caught.value.exit_code == 2
    return {fault.where: str(fault) for fault in caught.value.faults}


def parse(raw: Any) -> Config:
    return parse_config(raw, "job.yaml")
