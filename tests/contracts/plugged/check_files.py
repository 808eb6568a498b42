"""What a configuration makes of a mechanism with lists of numbers and public files; see
``tests/contracts/test_plugin.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.ngram_models import make_model
from support.toys import toy_settings
from wordveil.assembly.bundles import build_bundle, find_bundle
from wordveil.config.load import Config, load_config, parse_config
from wordveil.errors import BundleError, ConfigError
from wordveil.text.slots import NgramSettings

WORDS = ["the", "cat", "sat", "on", "mat", "dog"]
SECTION = {"name": "well-read", "epsilon": 5, "embedding": "demo", "public": True}


def config(mechanism: dict[str, Any], store: Path = Path("bundles")) -> Config:
    return parse_config(toy_settings({**SECTION, **mechanism}, bundle_store=str(store)), "job.yaml")


def vectors(place: Path, words: list[str], turn: int) -> str:
    rows = [f"{word} {row + 1} {(row * turn) % 5} 1" for row, word in enumerate(words)]
    place.write_text("\n".join(rows) + "\n")
    return str(place)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Every setting that names a file, with one."""
    (tmp_path / "counts.tsv").write_text("".join(f"{word}\t{9 - row}\n" for row, word in enumerate(WORDS)))
    (tmp_path / "pairs.tsv").write_text("cat\tdog\t0.5\n")
    (tmp_path / "classes.tsv").write_text("cat\tnoun\ndog\tnoun\nmat\tnoun\nbird\tnoun\n")
    make_model(tmp_path / "models", ["the cat sat on the mat"], NgramSettings(max_n=2, min_count=1))
    return {
        "embedding": vectors(tmp_path / "words.txt", WORDS, 2),
        "similarity": vectors(tmp_path / "similar.txt", WORDS, 3),
        "frequencies": str(tmp_path / "counts.tsv"),
        "pairs": str(tmp_path / "pairs.tsv"),
        "classes": str(tmp_path / "classes.tsv"),
        "ngrams": str(tmp_path / "models"),
    }


def test_lists_tuples_of_settings_lists_of_recipe(tmp_path: Path):
    chosen = config({"sizes": [10, 80], "losses": [0, 2.5]})
    assert (chosen.mechanism.settings.sizes, chosen.mechanism.settings.losses) == ((10, 80), (0.0, 2.5))  # type: ignore[attr-defined]
    recipe = chosen.recipe("").settings
    assert recipe == {"epsilon": 5.0, "sizes": [10, 80], "losses": [0.0, 2.5]}
    assert json.loads(json.dumps(recipe)) == recipe
    assert config({}).recipe("").settings == {"epsilon": 5.0, "sizes": [20], "losses": []}
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(toy_settings(SECTION)))
    given = load_config(file, ["mechanism.sizes=[10,80]", "mechanism.losses=[0, 2.5]"])
    assert given.recipe("") == chosen.recipe("")


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ({"sizes": 20}, ["mechanism.sizes = 20: should be a list, such as [one, two]."]),
        ({"sizes": [20, 1]}, ["mechanism.sizes.1 = 1: should be greater than or equal to 2."]),
        ({"sizes": [True]}, ["mechanism.sizes.0 = true: should be a valid integer"]),
        ({"losses": [1, -2]}, ["mechanism.losses: the first must be 0.", "mechanism.losses.1 = -2: should be"]),
        ({"pairs": 3}, ["mechanism.pairs = 3: should be a valid string"]),
    ],
)
def test_faults_of_lists_and_files(mechanism: dict[str, Any], words: list[str]):
    with pytest.raises(ConfigError) as error:
        config(mechanism)
    assert len(error.value.faults) == len(words), error.value
    assert all(word in str(error.value) for word in words), error.value


def test_every_file_reaches_the_build_and_the_recipe(tmp_path: Path, files: dict[str, str]):
    chosen = config(files, tmp_path / "bundles")
    bundle = build_bundle(chosen)
    fields = ["bigrams", "classes", "frequencies", "pairs", "similarity"]
    assert bundle.manifest["content"]["parameters"]["used"] == fields
    assert bundle.manifest["notes"] == [
        f"classes: 1 of 4 words of {files['classes']} are not in the embedding: ignored.",
        f"classes: 3 of 6 words are not in {files['classes']}: together they are a class of their own.",
        "built from files.",
    ]
    recipe = bundle.manifest["recipe"]
    assert set(recipe["settings"]) == {"epsilon", "sizes", "losses"}
    assert {name: entry["name"] for name, entry in recipe["inputs"].items()} == {
        name: place for name, place in files.items() if name != "embedding"
    }
    assert all(len(entry["digest"]) == 64 for entry in recipe["inputs"].values())
    assert find_bundle(chosen).path == bundle.path  # type: ignore[union-attr]


def test_each_file_identifies_the_bundle(tmp_path: Path, files: dict[str, str]):
    store = tmp_path / "bundles"
    chosen = config(files, store)
    bundle = build_bundle(chosen)
    make_model(tmp_path / "other", ["the cat sat on the dog"], NgramSettings(max_n=2, min_count=1))
    other_model = config({**files, "ngrams": str(tmp_path / "other")}, store)
    with pytest.raises(BundleError, match=r"content of mechanism.ngrams is"):
        find_bundle(other_model)
    assert build_bundle(other_model).path != bundle.path
    for name, line in {"similarity": "fish 1 2 3\n", "pairs": "dog\tcat\t1\n", "classes": "fish\t3\n"}.items():
        with pytest.raises(BundleError, match=rf"mechanism\.{name} is .* in the bundle, None in the configuration"):
            find_bundle(config({place: value for place, value in files.items() if place != name}, store))
        content = Path(files[name]).read_bytes()
        Path(files[name]).write_bytes(content + line.encode())
        with pytest.raises(BundleError, match=f"content of mechanism.{name} is"):
            find_bundle(chosen)
        Path(files[name]).write_bytes(content)
