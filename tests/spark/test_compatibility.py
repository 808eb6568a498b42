"""What version 0.1.0 or a later one began goes on: a release, and runs that are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wordveil
from support import kept_artefacts
from support.releases import read_delta
from wordveil.assembly.bundles import build_bundle, find_bundle
from wordveil.config.load import load_config
from wordveil.crypto.keys import encode_public_key, load_key
from wordveil.errors import BundleError, ConfigError, ReleaseError
from wordveil.spark.release.night import run_night
from wordveil.spark.release.verify import verify_by_spark


@pytest.fixture(params=kept_artefacts.VERSIONS, ids=lambda version: version.name)
def home(request: pytest.FixtureRequest) -> Iterator[Path]:
    with kept_artefacts.restore(request.param) as place:
        yield place


drawn = pytest.mark.parametrize("home", kept_artefacts.DRAWN, ids=lambda version: version.name, indirect=True)


@drawn
def test_a_release_goes_on(home: Path, spark: Any):
    config = load_config(home / "release.yaml")
    public, key = home / "release" / "public", load_key(config.key.file, None).signing_key(config.release)
    with pytest.raises(ReleaseError, match=r"format_version = 2: .* Publish the table again"):
        verify_by_spark(spark, str(public), None, encode_public_key(key))
    before = {row["id"]: row["text"] for row in read_delta(public)}
    spark.sql(f"UPDATE delta.`{home}/input` SET text = 'Mother sang.' WHERE id = 'r3'")
    spark.sql(f"INSERT INTO delta.`{home}/input` VALUES ('r6', 'The dog barked.', 'ann', 'd2')")
    night = run_night(config, lambda: spark, run_id="night-3")
    assert night.report is not None
    assert night.publication is not None
    drawn = {row["id"] for row in read_delta(home / "release" / "draws") if row["run_id"] == "night-3"}
    assert drawn == {"r3", "r6"}
    after = {row["id"]: row["text"] for row in read_delta(public)}
    assert after.keys() == {"r1", "r2", "r3", "r4", "r6"}, "r5 was withdrawn"
    assert {name for name in before if before[name] != after[name]} == {"r3"}
    assert verify_by_spark(spark, str(public), None, encode_public_key(key)).manifest.snapshot.records == 5
    spent: dict[str, int] = {}
    for row in read_delta(home / "ledger"):
        spent[row["record_id"]] = spent.get(row["record_id"], 0) + row["spent_tokens"]
    assert spent == {"r1": 10, "r2": 20, "r3": 20, "r4": 10, "r5": 10, "r6": 10}


@pytest.mark.parametrize("home", kept_artefacts.VERSIONS[:1], ids=["0.1.0"], indirect=True)
def test_a_release_from_a_bundle_of_format_1_is_not_gone_on_with(home: Path, spark: Any):
    config = load_config(home / "release.yaml")
    before = read_delta(home / "ledger")
    with pytest.raises(BundleError, match=r"format_version 1 is not 2\. Build the bundle again in another store"):
        run_night(config, lambda: spark, run_id="night-3")
    config = load_config(home / "release.yaml", [f"bundle_store={home}/others"])
    build_bundle(config)
    with pytest.raises(ReleaseError, match="mechanism_fingerprint"):
        run_night(config, lambda: spark, run_id="night-3")
    assert read_delta(home / "ledger") == before


@drawn
def test_a_recorded_run_keeps_its_terms(home: Path, spark: Any):
    config = load_config(home / "tree.yaml")
    frame = spark.read.parquet(str(home / "corpus.parquet"))
    run = wordveil.Run.recorded(release="kept-run", run_log_dir=str(home / "runs"), key_file=config.key.file)
    terms = {"bundle": find_bundle(config).path, "run": run, "id": "id", "text": "text"}
    again = wordveil.sanitise(frame, policy=config.text, **terms).collect()
    assert {row.id: row.text for row in again} == json.loads((home / "expected.json").read_text("utf-8"))["run"]
    with pytest.raises(ConfigError, match="n_max"):
        wordveil.sanitise(frame, policy={"profile": "strict", "n_max": 9}, **terms)
