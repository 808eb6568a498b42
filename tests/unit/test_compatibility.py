"""Files of earlier versions are read and draw the same rows, and other formats are refused with what to do.

docs/compatibility.md promises both. tests/spark/test_compatibility.py continues a release.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml

from support.ngram_models import make_model
from support.published import RELEASE, VERSIONS, copy_version
from support.repository import load_script
from support.workspaces import EMBEDDING
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.assembly.local_state import read_local_state
from wordveil.assembly.run_report import RunReport
from wordveil.audit.findings import BUNDLE, load_audit
from wordveil.config.generators import load_generator_config
from wordveil.config.load import load_config
from wordveil.embeddings import embedding as embeddings
from wordveil.errors import NgramError, WordveilError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import load_weights, read_npz, save_weights, write_npz
from wordveil.text.slots import NgramSettings

maker = load_script("tests/releases/make.py")
JOBS = [
    pytest.param(version, name, id=f"{version.name} {name}")
    for version in VERSIONS
    for name in json.loads((version / "expected.json").read_text("utf-8"))
    if name != "run"
]
VERSION = pytest.mark.parametrize("version", VERSIONS, ids=[version.name for version in VERSIONS])


def expect(version: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((version / "expected.json").read_text("utf-8"))[name])


@pytest.mark.parametrize(("version", "name"), JOBS)
def test_a_kept_configuration_draws_the_same_rows(version: Path, name: str, tmp_path: Path):
    home = copy_version(version, tmp_path / "kept")
    described = maker.describe(load_config(home / f"{name}.yaml"))
    assert json.loads(json.dumps(described, default=str)) == expect(version, name)


@VERSION
def test_a_kept_output_has_its_rows_and_report(version: Path):
    rows = ds.dataset(version / "output-tree", format="parquet").to_table().to_pylist()
    expected = {row["id"]: row for row in expect(version, "tree")["rows"]}
    told = {row["id"]: {**row, "content_tag": row["content_tag"].hex()} for row in rows}
    assert told == {name: {field: expected[name][field] for field in row} for name, row in told.items()}
    assert told.keys() == expected.keys()
    report = json.loads((version / "report.json").read_text("utf-8"))
    assert report["exit_code"] == 0
    assert RunReport.from_dict(report["result"]).released == len(rows)


@VERSION
def test_kept_public_files_and_audits_are_read(version: Path, tmp_path: Path):
    home = copy_version(version, tmp_path / "kept")
    words = embeddings.load(str(home / "embedding"))
    assert words.digest == embeddings.load(str(home / "words.txt")).digest
    assert load_weights(home / "generator.npz").shape.size == words.size
    assert load_generator_config(home / "training.yaml").schedule.epochs > 0
    audit = load_audit(home / "bundles", BUNDLE, expect(version, "tree")["bundle"])
    assert audit is not None
    assert audit.is_passed


@VERSION
def test_a_kept_release_is_read_without_spark(version: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    config = load_config(version / "release.yaml")
    state = read_local_state(config.home, config.spark)
    assert state is not None
    assert [(run["run_id"], run["kind"], run["epoch"], run["state"]) for run in state["runs"]] == [
        ("night-1", "sanitise", 1, "finished"),
        ("withdrawal", "withdraw", 2, "finished"),
        ("night-2", "sanitise", 2, "finished"),
    ]
    assert (state["published"]["public_version"], state["withdrawn"]["records"]) == (2, 1)


@pytest.mark.parametrize("number", [0, 99])
def test_a_training_of_another_format_is_refused(number: int, tmp_path: Path):
    file = tmp_path / "training.yaml"
    file.write_text(yaml.safe_dump({"format_version": number, "generator": {}}))
    with pytest.raises(WordveilError, match=f"format_version = {number}: this wordveil reads format_version 1 of gen"):
        load_generator_config(file)


@pytest.mark.parametrize("number", [0, 99])
def test_an_ngram_model_of_another_format_is_refused(number: int, tmp_path: Path):
    make_model(tmp_path, ["we saw two old boats"] * 3, NgramSettings(min_count=2))
    path = find_model(tmp_path)
    manifest = json.loads((path / "manifest.json").read_text("utf-8"))
    manifest["content"]["format_version"] = number
    (path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(
        NgramError, match=rf"format_version {number} is not 1\. Build the n-gram model again in another"
    ):
        open_model(path)


@pytest.mark.parametrize("number", [0, 99])
def test_weights_of_another_format_are_refused(number: int, tmp_path: Path):
    file = tmp_path / "generator.npz"
    save_weights(file, make_repeating_weights(EMBEDDING, 8))
    about, arrays = read_npz(file)
    write_npz(file, {**about, "format_version": number}, arrays, private=False)
    words = f"its format is version {number}, and this version of wordveil reads 1. Train it again."
    with pytest.raises(WordveilError, match=re.escape(words)):
        load_weights(file)


@pytest.mark.parametrize("number", ["2", "99"])
def test_a_table_of_another_format_is_left_to_spark(number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Spark says what the table is. Before, the release is read without Spark."""
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    config = load_config(shutil.copytree(RELEASE, tmp_path / "kept") / "release.yaml")
    assert read_local_state(config.home, config.spark) is not None
    log = tmp_path / "kept" / "release" / "draws" / "_delta_log" / f"{0:020d}.json"
    text = log.read_text("utf-8")
    assert '"wordveil.formatVersion":"3"' in text
    log.write_text(text.replace('"wordveil.formatVersion":"3"', f'"wordveil.formatVersion":"{number}"'), "utf-8")
    for summary in log.parent.glob("*.crc"):  # deltalake takes properties from the newest
        summary.unlink()
    assert read_local_state(config.home, config.spark) is None
