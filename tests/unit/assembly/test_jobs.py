"""What a job runs with: what does not fit is named before Spark starts."""

from __future__ import annotations

import pytest

from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.jobs import load_release_job
from wordveil.errors import ConfigError
from wordveil.neighbours.blocks import BuildContext


def test_release_job_budget_below_price_refused(workspace: Workspace):
    price = 24 * build_bundle(workspace.config()).guarantee.pure
    budget = {"unit": "pure", "relation": "any_text", "delta": 1e-6}
    places = {"input": {"format": "delta"}, "output": {"format": "delta"}, "ledger": {"path": "ledger"}}
    low, enough = (workspace.config(**places, budgets={**budget, "record": limit}) for limit in (price / 2, price))
    with pytest.raises(ConfigError, match=r"budgets\.record"):
        load_release_job(low, BuildContext())
    assert load_release_job(enough, BuildContext()).budget is not None
