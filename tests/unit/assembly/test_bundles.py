"""A build measures what an attacker recovers, writes it into the bundle, and its commands show it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from support.toys import random_embedding, toy_settings
from wordveil.artifacts import bundle as bundles
from wordveil.assembly.bundles import build_bundle, compare_mechanisms, find_facts, find_once
from wordveil.cli.app import app
from wordveil.config.load import parse_config
from wordveil.errors import BundleError
from wordveil.measures.recovery import measure_recovery
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.neighbours.blocks import BuildContext, compute_here

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


def test_build_of_a_finished_bundle_repeats_its_suitability(settings: dict[str, Any], tmp_path: Path):
    settings["mechanism"] |= {"gamma": 40.0, "neighbours": 10}
    file = tmp_path / "job.json"
    file.write_text(json.dumps(settings))
    runs = [CliRunner().invoke(app, ["build", "--config", str(file), "--json"]) for _ in range(2)]
    assert [run.exit_code for run in runs] == [0, 0], runs[0].output
    first, again = (json.loads(run.stdout)["suitability"] for run in runs)
    assert first == again == build_bundle(parse_config(settings, "job")).suitability
    assert (first["measure"], first["neighbour"]) == ("euclidean", SIZE - 1)
    assert {one["epsilon"] for one in first["epsilons"]} > {2.0}
    shown = CliRunner().invoke(app, ["build", "--config", str(file)], env={"COLUMNS": "160"})
    for words in ("gamma to begin with", f"{first['gamma']:g}, the median", "epsilons to look at", "2 (yours)"):
        assert words in shown.stdout
    assert "mechanism.gamma = 40: half of the words have 49 words nearer" in shown.stderr
    manifest = json.loads((Path(json.loads(runs[0].stdout)["path"]) / "manifest.json").read_text())
    assert manifest["suitability"] == first


def test_a_second_comparison_finds_the_lists_of_the_first(settings: dict[str, Any], tmp_path: Path):
    settings["mechanism"] |= {"neighbours": 5}
    config, searched, steps = parse_config(settings, "job"), [], []

    def compute(task, spans):
        searched.extend(spans)
        return compute_here(task, spans)

    work = BuildContext(steps=lambda done, known: steps.append((done, known)), compute=compute)
    first = compare_mechanisms(config, "waaa waab", work)
    assert searched
    assert steps[-1][0] == steps[-1][1] == len(steps)
    searched.clear()
    second = compare_mechanisms(config, "waaa waab", work)
    assert not searched
    assert [line.mechanism for line in second.equal_pure] == [line.mechanism for line in first.equal_pure]
    assert {path.name for path in (tmp_path / "bundles").iterdir()} == {".compared"}
    build_bundle(config)  # what is kept is no bundle


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


def test_a_bundle_that_is_found_once_is_opened_once(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    config = parse_config(settings, "job")
    built, opened, open_bundle = build_bundle(config), [], bundles.open_bundle
    monkeypatch.setattr(bundles, "open_bundle", lambda path: opened.append(path) or open_bundle(path))
    find = find_once(config)
    assert opened == []
    assert find() is find()
    assert opened == [built.path]
