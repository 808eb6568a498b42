"""What a configuration makes of an installed package's mechanism; see ``tests/contracts/test_plugin.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.toys import random_embedding, toy_settings
from wordveil.assembly.bundles import build_bundle, find_bundle
from wordveil.config.load import Config, parse_config
from wordveil.measures.comparison import compare
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil.text.policy import with_profile

YAML = """
mechanism:
  name: randomised-response
  # Pure, per token. There is no default.
  epsilon: 5
  embedding: demo
  public: true
"""


def config(place: Path, **mechanism: object) -> Config:
    section = {**yaml.safe_load(YAML)["mechanism"], **mechanism}
    return parse_config(toy_settings(section, bundle_store=str(place / "bundles")), "job.yaml")


def test_its_yaml_is_a_configuration_that_builds_a_bundle(tmp_path: Path):
    embedding = random_embedding(50, 4)
    rows = zip(embedding.words.to_pylist(), embedding.vectors.tolist(), strict=True)
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows]
    (tmp_path / "words.txt").write_text("".join(lines))
    chosen = config(tmp_path, embedding=str(tmp_path / "words.txt"), embedding_format="glove")
    built = build_bundle(chosen)
    assert built.manifest["recipe"]["settings"] == {"epsilon": 5.0}
    assert built.guarantee.pure == pytest.approx(5.0)
    found = find_bundle(chosen)
    assert found is not None
    assert found.mechanism.name == "randomised-response"


def test_it_is_shown_beside_the_others():
    settings = ExponentialSettings(epsilon=4.0, neighbours=20)
    comparison = compare(random_embedding(60, 3), with_profile("strict", n_max=8), "exponential", settings, "waab waac")
    for lines in (comparison.equal_kept, comparison.equal_pure):
        assert "randomised-response" in [line.mechanism for line in lines]
