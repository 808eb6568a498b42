"""A build measures what an attacker recovers and writes it into the bundle; jobs refuse what does not fit."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.toys import random_embedding, toy_settings
from support.workspaces import Workspace
from wordveil.artifacts import bundle as bundles
from wordveil.assembly.bundles import build_bundle, compare_mechanisms, find_facts
from wordveil.assembly.jobs import load_release_job
from wordveil.config.load import parse_config
from wordveil.errors import BundleError, ConfigError
from wordveil.measures.recovery import measure_recovery
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.neighbours.blocks import BuildContext

SIZE = 50


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    random_embedding(SIZE, 3).save(tmp_path / "words")
    mechanism = {"name": "exponential", "epsilon": 2.0, "embedding": str(tmp_path / "words"), "public": True}
    return toy_settings(mechanism, bundle_store=str(tmp_path / "bundles"))


def test_a_build_measures_what_an_attacker_recovers(settings: dict[str, Any]):
    said: list[str] = []
    config = parse_config(settings, "job")
    bundle = build_bundle(config, BuildContext(said.append))
    assert "measuring what an attacker recovers" in said
    assert bundle.recovery == measure_recovery(bundle.mechanism, rank_frequencies(SIZE))
    assert bundle.recovery != measure_recovery(bundle.mechanism, np.full(SIZE, 1 / SIZE))
    said.clear()
    assert build_bundle(config, BuildContext(said.append)).recovery == bundle.recovery
    assert said == []


def test_the_recovery_of_a_release_is_that_of_its_bundle_alone(settings: dict[str, Any], monkeypatch):
    config = parse_config(settings, "job")
    assert find_facts(config, "00" * 32).recovery is None
    bundle = build_bundle(config)
    assert find_facts(config, bundle.fingerprint).recovery == bundle.recovery
    assert find_facts(config, "00" * 32).recovery is None
    settings["mechanism"]["epsilon"] = 3.0
    assert find_facts(parse_config(settings, "job"), bundle.fingerprint).recovery is None
    monkeypatch.setattr(bundles.Bundle, "recovery", None)
    assert find_facts(config, bundle.fingerprint).recovery is None


def test_a_configuration_may_name_its_bundle_itself(settings: dict[str, Any]):
    bundle = build_bundle(parse_config(settings, "job"))
    named = parse_config({**settings, "bundle_store": str(bundle.path)}, "job")
    assert build_bundle(named).path == bundle.path
    assert find_facts(named, bundle.fingerprint).recovery == bundle.recovery
    before = sorted(bundle.path.parent.rglob("*"))
    settings["mechanism"]["epsilon"] = 3.0
    with pytest.raises(BundleError, match="this bundle does not match the configuration"):
        build_bundle(parse_config({**settings, "bundle_store": str(bundle.path)}, "job"))
    assert sorted(bundle.path.parent.rglob("*")) == before


def test_a_store_that_cannot_be_written_keeps_nothing(settings: dict[str, Any], tmp_path: Path):
    settings["bundle_store"] = str(tmp_path / "words" / "words.txt" / "bundles")
    settings["mechanism"] |= {"neighbours": 5}
    assert compare_mechanisms(parse_config(settings, "job"), "waaa waab").equal_kept


def test_what_no_comparison_has_used_for_a_day_is_deleted(settings: dict[str, Any], tmp_path: Path):
    settings["mechanism"] |= {"neighbours": 5}
    config, kept = parse_config(settings, "job"), tmp_path / "bundles" / ".compared"
    compare_mechanisms(config, "waaa waab")
    used = {path.name for path in kept.iterdir()}
    long_ago = time.time() - 25 * 60 * 60
    for name in ("lists-of-another-embedding", "lists-of-today"):
        (kept / name).mkdir()
        (kept / name / "block.npz").touch()
    os.utime(kept / "lists-of-another-embedding", (long_ago, long_ago))
    for name in used:
        os.utime(kept / name, (long_ago, long_ago))
    compare_mechanisms(config, "waaa waab")
    assert {path.name for path in kept.iterdir()} == {*used, "lists-of-today"}


def test_release_job_budget_below_price_refused(workspace: Workspace):
    price = 24 * build_bundle(workspace.config()).guarantee.pure
    budget = {"unit": "pure", "relation": "any_text", "delta": 1e-6}
    places = {"input": {"format": "delta"}, "output": {"format": "delta"}, "ledger": {"path": "ledger"}}
    low, enough = (workspace.config(**places, budgets={**budget, "record": limit}) for limit in (price / 2, price))
    with pytest.raises(ConfigError, match=r"budgets\.record"):
        load_release_job(low, BuildContext())
    assert load_release_job(enough, BuildContext()).budget is not None
