"""Releases and recorded runs that an earlier version began are continued."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wordveil
from support.published import VERSIONS, copy_version
from support.releases import read_delta
from wordveil.assembly.bundles import find_bundle
from wordveil.config.load import load_config
from wordveil.crypto.keys import encode_public_key, load_key
from wordveil.errors import ConfigError
from wordveil.spark.release.night import run_night
from wordveil.spark.release.verify import verify_by_spark


@pytest.fixture(params=VERSIONS, ids=lambda version: version.name)
def home(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A version's files where they were made, since a release has the path of its ledger."""
    origin = Path("/tmp") / f"wordveil-{request.param.name}"
    with origin.with_name(f"{origin.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(origin, ignore_errors=True)
        yield copy_version(request.param, origin)
        shutil.rmtree(origin)


def test_a_kept_release_goes_on(home: Path, spark: Any):
    config = load_config(home / "release.yaml")
    public = home / "release" / "public"
    public_key = encode_public_key(load_key(config.key.file, None).signing_key(config.release))
    assert verify_by_spark(spark, str(public), None, public_key).manifest.snapshot.records == 4
    before = {row["id"]: row["text"] for row in read_delta(public)}
    spark.sql(f"UPDATE delta.`{home}/input` SET text = 'Mother sang.' WHERE id = 'r3'")
    spark.sql(f"INSERT INTO delta.`{home}/input` VALUES ('r6', 'The dog barked.', 'ann', 'd2')")
    night = run_night(config, lambda: spark, run_id="night-3")
    assert night.publication is not None
    draws = read_delta(home / "release" / "draws")
    assert {row["id"] for row in draws if row["run_id"] == "night-3"} == {"r3", "r6"}
    after = {row["id"]: row["text"] for row in read_delta(public)}
    assert after.keys() == {"r1", "r2", "r3", "r4", "r6"}, "r5 was withdrawn"
    assert {name for name in before if before[name] != after[name]} == {"r3"}
    assert verify_by_spark(spark, str(public), None, public_key).manifest.snapshot.records == 5
    spent: Counter[str] = Counter()
    for row in read_delta(home / "ledger"):
        spent[row["record_id"]] += row["spent_tokens"]
    assert spent == {"r1": 10, "r2": 20, "r3": 20, "r4": 10, "r5": 10, "r6": 10}


def test_a_kept_run_keeps_its_terms(home: Path, spark: Any):
    config = load_config(home / "tree.yaml")
    frame = spark.read.parquet(str(home / "corpus.parquet"))
    run = wordveil.Run.recorded(release="kept-run", run_log_dir=str(home / "runs"), key_file=config.key.file)
    terms: dict[str, Any] = {"bundle": find_bundle(config).path, "run": run, "id": "id", "text": "text"}
    again = wordveil.sanitise(frame, policy=config.text, **terms).collect()
    assert {row.id: row.text for row in again} == json.loads((home / "expected.json").read_text("utf-8"))["run"]
    with pytest.raises(ConfigError, match="n_max"):
        wordveil.sanitise(frame, policy={"profile": "strict", "n_max": 9}, **terms)
