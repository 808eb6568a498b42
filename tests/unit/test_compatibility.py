"""A file of another format is refused with the number found and what to do, as docs/compatibility.md promises."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from support.ngram_models import make_model
from support.published import RELEASE
from support.workspaces import EMBEDDING
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.assembly.local_state import read_local_state
from wordveil.config.generators import load_generator_config
from wordveil.config.load import load_config
from wordveil.errors import NgramError, WordveilError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import load_weights, read_npz, save_weights, write_npz
from wordveil.text.slots import NgramSettings


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
