"""The same input gives the same rows, however it is cut, batched, spread or retried; anything that should change them
does.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest

import helpers
from sparking import EMBEDDING, WORDS, Workspace, clean_environment, corpus, fresh_key, read_output
from wordveil.config.load import parse_config
from wordveil.spark.sanitise.job import run_sanitise

RECORDS = 400


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.write_corpus(corpus(RECORDS), files=2)
    return workspace


def rows_of(spark, workspace: Workspace, name: str, **sections):
    config = workspace.config(output={"path": str(workspace.root / name)}, **sections)
    run_sanitise(config, lambda: spark)
    return read_output(workspace.root / name)


def repartition_corpus(spark, workspace: Workspace, parts: int) -> str:
    path = str(workspace.root / f"corpus-{parts}")
    spark.read.parquet(str(workspace.root / "corpus")).repartition(parts, "note").write.parquet(path)
    return path


@pytest.mark.parametrize(
    "text",
    [{"profile": "strict", "n_max": 24}, {"profile": "readable"}, {"length": "sample", "n_max": 10, "output": "bag"}],
)
def test_partitions_and_batches_change_nothing(spark, filled: Workspace, text):
    text = {"profile": "strict", **text}
    reference = rows_of(spark, filled, "reference", text=text)
    assert len(reference) == RECORDS
    for parts in (1, 7):
        source = {"path": repartition_corpus(spark, filled, parts)}
        assert rows_of(spark, filled, f"parts-{parts}", text=text, input=source) == reference
    option = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(option)
    try:
        spark.conf.set(option, "1")
        assert rows_of(spark, filled, "batches", text=text) == reference
    finally:
        spark.conf.set(option, before)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "exponential", "epsilon": 3.0, "gamma": 3.0, "neighbours": 12, "tight": True},
        {"name": "exponential", "epsilon": 3.0, "metric": "manhattan"},
        {"name": "syntf", "epsilon": 20.0, "neighbours": 12},
    ],
    ids=["exponential", "whole", "syntf"],
)
@pytest.mark.parametrize("profile", ["strict", "readable"])
def test_partitions_change_nothing_for_a_table_either(spark, filled: Workspace, mechanism, profile):
    text = {"profile": profile, **({"n_max": 24} if profile == "strict" else {})}
    reference = rows_of(spark, filled, "reference", text=text, mechanism=mechanism)
    assert len(reference) == RECORDS
    assert {row["privacy"]["mechanism"] for row in reference if row["privacy"]} == {mechanism["name"]}
    source = {"path": repartition_corpus(spark, filled, 5)}
    assert rows_of(spark, filled, "parts", text=text, mechanism=mechanism, input=source) == reference


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "hyperbolic-laplace", "epsilon": 12.0},
        {"name": "hyperbolic-fdd", "epsilon": 3.0},
        {"name": "exponential", "epsilon": 3.0, "metric": "hyperbolic", "gamma": 3.0},
    ],
    ids=["laplace", "fdd", "exponential"],
)
def test_partitions_change_nothing_in_hyperbolic_space_either(spark, filled: Workspace, mechanism):
    embedding = helpers.toy_embedding(WORDS, EMBEDDING.vectors * 0.15)
    embedding.save(filled.root / "ball")
    settings = {
        "text": {"length": "sample", "n_max": 10},
        "mechanism": {**mechanism, "embedding": str(filled.root / "ball")},
    }
    reference = rows_of(spark, filled, "reference", **settings)
    assert {row["privacy"]["metric"].split(":")[0] for row in reference if row["privacy"]} <= {
        "hyperbolic",
        "hyperbolic-capped",
    }
    true = 3.0 + 8 if mechanism["name"] == "hyperbolic-fdd" else mechanism["epsilon"]
    assert {(row["privacy"]["nominal_epsilon"], row["privacy"]["epsilon"]) for row in reference if row["privacy"]} == {
        (mechanism["epsilon"], true)
    }
    source = {"path": repartition_corpus(spark, filled, 5)}
    assert rows_of(spark, filled, "parts", input=source, **settings) == reference


def test_random_keeps_no_word_and_costs_nothing(spark, filled: Workspace):
    settings = filled.settings(text={"profile": "strict", "n_max": 24})
    settings["mechanism"] = {"name": "random", "embedding": str(filled.root / "embedding"), "public": True}
    settings["output"] = {"path": str(filled.root / "random")}
    report = run_sanitise(parse_config(settings, "test"), lambda: spark)
    assert report.epsilon_pure == (0.0, 0.0)
    assert {len(row["text"].split()) for row in read_output(filled.root / "random")} == {24}


def test_cores_change_nothing_and_a_rerun_repeats_the_rows(spark, filled: Workspace):
    """Two cores here, three in a process of their own."""
    reference = rows_of(spark, filled, "reference")
    config = filled.write_config(output={"path": str(filled.root / "cores")}, spark={"master": "local[3]"})
    command = [sys.executable, "-m", "wordveil", "sanitise", "--config", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment())
    assert json.loads(done.stdout)["records"] == RECORDS
    assert read_output(filled.root / "cores") == reference


def test_key_release_policy_and_bundle_change_the_noise(spark, filled: Workspace):
    reference = [row["text"] for row in rows_of(spark, filled, "reference")]
    other_key = filled.write_key("second.key", fresh_key())
    changes = {
        "key": {"key": {"file": str(other_key)}},
        "release": {"release": "another"},
        "policy": {"text": {"profile": "strict", "n_max": 24, "hyphens": "inner"}},
        "bundle": {"mechanism": {"epsilon": 4.000001}},
    }
    for name, change in changes.items():
        texts = [row["text"] for row in rows_of(spark, filled, f"other-{name}", **change)]
        same = sum(mine == theirs for mine, theirs in zip(reference, texts, strict=True))
        assert same < RECORDS / 20, name


def test_an_edited_record_gets_fresh_noise_and_the_others_keep_theirs(spark, filled: Workspace):
    reference = rows_of(spark, filled, "reference")
    table = corpus(RECORDS)
    bodies = table["body"].to_pylist()
    bodies[17] += " waaa"
    filled.write_corpus(table.set_column(1, "body", pa.array(bodies)), name="edited")
    edited = rows_of(spark, filled, "after", input={"path": str(filled.root / "edited")})
    changed = [mine["id"] for mine, theirs in zip(reference, edited, strict=True) if mine != theirs]
    assert changed == ["r00017"]
    assert reference[17]["content_tag"] != edited[17]["content_tag"]
    before, after = reference[17]["text"].split(), edited[17]["text"].split()
    assert sum(mine == theirs for mine, theirs in zip(before, after, strict=False)) < len(before) / 2


def test_equal_texts_of_two_records_get_unequal_noise(spark, workspace: Workspace):
    text = " ".join(["waaa"] * 20)
    workspace.write_corpus(pa.table({"id": ["a", "b"], "body": [text] * 2, "day": ["d"] * 2}))
    first, second = rows_of(spark, workspace, "output")
    assert first["text"] != second["text"]
    assert first["content_tag"] != second["content_tag"]
