"""What a job runs with: what does not fit is named before Spark starts."""

from __future__ import annotations

from typing import Any

import pytest

from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.jobs import load_release_job
from wordveil.config.load import Config
from wordveil.errors import ConfigError
from wordveil.neighbours.blocks import BuildContext


def release_config(workspace: Workspace, record: float = 5.0, **sections: Any) -> Config:
    """A release with a limit of what a record may cost."""
    return workspace.config(
        input={"format": "delta"},
        output={"format": "delta"},
        ledger={"path": str(workspace.root / "ledger")},
        budgets={"unit": "pure", "relation": "any_text", "delta": 1e-6, "record": record},
        **sections,
    )


def test_release_job_budget_below_price_refused(workspace: Workspace):
    price = 24 * build_bundle(workspace.config()).guarantee.pure
    with pytest.raises(ConfigError, match=r"budgets\.record"):
        load_release_job(release_config(workspace, price / 2), BuildContext())
    assert load_release_job(release_config(workspace, price), BuildContext()).budget is not None


def test_release_budget_infinite_cost_refused(workspace: Workspace):
    with pytest.raises(ConfigError, match=r"budgets\.relation.*infinitely"):
        release_config(workspace, text={"profile": "readable"})
