"""What a run reports beside its counts."""

from __future__ import annotations

from typing import Any

import pytest

from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.run_report import NOTHING, RunReport, make_report
from wordveil.config.load import parse_config


@pytest.mark.parametrize(("text", "pads"), [({"n_max": 8}, True), ({"length": "as_is"}, False)])
def test_a_run_under_strict_says_how_much_padding_becomes_words(workspace: Workspace, text: dict[str, Any], pads: bool):
    settings = workspace.settings(mechanism={"name": "exponential", "epsilon": 3.0}, text=text)
    config = parse_config(settings, "tests")
    bundle = build_bundle(config)
    report = make_report(config.record_settings("run"), bundle, "key", NOTHING, output="out", seconds=1.0)
    padding = bundle.vocabulary.size
    stays = bundle.mechanism.probabilities(padding)[padding] if pads else 0.0
    assert report.padding_as_words == (pytest.approx(1 - stays) if pads else None)
    assert stays < 1
    assert RunReport.from_dict(report.to_dict()) == report
