"""Made reports of runs: counts that no run has had."""

from __future__ import annotations

from typing import Any

from wordveil.assembly.run_report import RunReport


def make_run_report(**changes: Any) -> RunReport:
    """Return the report of a run that released two of three records, with ``changes``."""
    fields: dict[str, Any] = {
        "run_id": "night-1",
        "release": "support",
        "output": "lake/support",
        "records": 3,
        "released": 2,
        "quarantined": {"null_text": 1},
        "tokens": 48,
        "words": 40,
        "unknown": 4,
        "relation": "any_text",
        "metric": "euclidean:aa",
        "nominal_epsilon": 4.0,
        "epsilon": 4.0,
        "epsilon_bound": (10.0, 12.5),
        "epsilon_pure": None,
        "exposes": ("edited",),
        "seconds": 2.0,
        "mechanism_fingerprint": "m",
        "policy_fingerprint": "p",
        "key_fingerprint": "k",
    }
    return RunReport(**{**fields, **changes})
