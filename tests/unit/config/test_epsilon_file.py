"""A configuration is written again with another epsilon, and with nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from wordveil.config.epsilon_file import check_copy, replace_epsilon, show_epsilon, write_copy
from wordveil.config.load import load_config
from wordveil.config.yaml_file import read_yaml
from wordveil.errors import ConfigError, OutputExistsError

FILE = """\
# The first line.
format_version: 2
release: support   # its name
input: {path: in, id: id, text: body}

mechanism:
  name: tree        # clusters
  epsilon: 8        # to be chosen
  sizes: [20]
  embedding: demo
  public: true
bundle_store: bundles
text: {n_max: 64}
key: {env: KEY}
output: {path: out}
# The last line."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(FILE)
    return path


def test_one_value_is_changed_and_everything_else_is_kept(source: Path):
    target = source.with_name("chosen.yaml")
    write_copy(source, target, 6.25, ["chosen by a test:", "share_kept=0.3"])
    expected = FILE.replace("epsilon: 8 ", "epsilon: 6.25 ")
    assert target.read_text() == f"# chosen by a test:\n# share_kept=0.3\n{expected}"
    assert source.read_text() == FILE
    before, after = load_config(source), load_config(target)
    assert after.mechanism.nominal_epsilon == 6.25
    assert after == load_config(source, ["mechanism.epsilon=6.25"])
    assert after != before


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("mechanism: {name: tree, epsilon: 8, sizes: [20]}", "mechanism: {name: tree, epsilon: 0.5, sizes: [20]}"),
        ("mechanism: {name: tree}  # x", "mechanism: {epsilon: 0.5, name: tree}  # x"),
        ("mechanism:\n  # first\n  name: tree\n", "mechanism:\n  # first\n  epsilon: 0.5\n  name: tree\n"),
        ("mechanism:\n    name: tree\n    epsilon:\n", "mechanism:\n    name: tree\n    epsilon: 0.5\n"),
        ('"mechanism": {"name": "tree", "epsilon": 8}', '"mechanism": {"name": "tree", "epsilon": 0.5}'),
        ("text: {epsilon: 1}\nmechanism: {epsilon: 2}\n", "text: {epsilon: 1}\nmechanism: {epsilon: 0.5}\n"),
    ],
)
def test_layouts_of_the_section(section: str, expected: str):
    assert replace_epsilon(section, 0.5) == expected


@pytest.mark.parametrize("epsilon", [8.0, 0.1, 12.3, 1e-05, 123456.0])
def test_an_epsilon_is_read_back_as_the_number_it_was(epsilon: float):
    found: Any = yaml.safe_load(show_epsilon(epsilon))
    assert (found, type(found)) == (epsilon, float)


def test_a_file_without_an_epsilon_gets_one(source: Path):
    source.write_text(FILE.replace("  epsilon: 8        # to be chosen\n", ""))
    target = source.with_name("chosen.yaml")
    write_copy(source, target, 3.0, [])
    assert read_yaml(target)["mechanism"].pop("epsilon") == 3.0
    assert target.read_text().replace("  epsilon: 3.0\n", "") == source.read_text()


def test_what_cannot_be_changed_alone_is_refused(source: Path):
    shared = FILE.replace("epsilon: 8 ", "epsilon: &size 8 ").replace("{n_max: 64}", "{n_max: *size}")
    source.write_text(shared)
    target = source.with_name("chosen.yaml")
    with pytest.raises(ConfigError):
        write_copy(source, target, 3.0, [])
    assert not target.exists()
    source.write_text("other: 1")
    with pytest.raises(ConfigError, match="mechanism: is no section of the file"):
        write_copy(source, target, 3.0, [])


def test_nothing_is_overwritten_and_paths_keep_their_meaning(source: Path, tmp_path: Path):
    with pytest.raises(OutputExistsError, match=r"--write = .*job\.yaml: already exists and was not changed"):
        check_copy(source, source)
    with pytest.raises(ConfigError, match="there is no such directory"):
        check_copy(source, tmp_path / "none" / "job.yaml")
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match="lies in another directory"):
        check_copy(source, tmp_path / "other" / "job.yaml")
    check_copy(source, tmp_path / "new.yaml")
    assert not (tmp_path / "new.yaml").exists()
