"""Paths in a configuration: relative ones are taken from the directory of its file, and no setting is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from wordveil.config.load import Config, load_config, parse_config
from wordveil.config.mechanisms import MECHANISM_SECTIONS
from wordveil.config.paths import PathSetting
from wordveil.config.schema import Section
from wordveil.crypto.keys import load_key
from wordveil.errors import ConfigError, KeyMaterialError
from wordveil.input.locations import make_absolute, relative_to_file

# Free text that is no path. A new setting is added here or gets a type of wordveil.config.paths.
NO_PATHS = {
    "release",
    *("input.text", "text.n_max", "text.types"),
    *("evaluation.author", "evaluation.label", "evaluation.encoder", "mechanism.encoder"),
    *("input.id", "input.author", "input.keep", "input.table", "input.timestamp", "input.where", "input.format"),
    *("input.rename", "input.cast"),
    *("input.options", "input.options_env", "input.columns", "input.language"),
    "stream.table",
    *("output.public_table", "output.partition_by", "key.env", "text.stop_word_list", "text.language"),
    *("budgets.unit", "gate.exposes", "spark.master", "spark.app_name", "spark.options"),
}


def settings(**changed: Any) -> dict[str, Any]:
    return {
        "format_version": 2,
        "release": "support-mail",
        "input": {"path": "raw/tickets", "format": "delta", "id": "ticket", "text": "body"},
        "mechanism": {
            "name": "staircase",
            "epsilon": 6.0,
            "embedding": "../vectors/words.vec",
            "similarity": "demo",
            "pairs": "pairs.tsv",
            "classes": "./classes.tsv",
            "frequencies": "counts.tsv",
            "public": True,
        },
        "bundle_store": "bundles",
        "text": {"profile": "strict", "n_max": 64},
        "key": {"file": "wordveil.key"},
        "output": {"path": "../lake/support", "format": "delta", "public": "public"},
        "ledger": {"path": "ledger"},
        "stream": {"path": "events", "checkpoint": "../checkpoint"},
        "spark": {"delta_jars": "jars"},
        **changed,
    }


def write(directory: Path, values: dict[str, Any]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "job.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


def paths_of(config: Config) -> dict[str, Any]:
    files = {f"mechanism.{name}": place for name, place in config.mechanism.public_files.items()}
    tables = ("input.path", "output.path", "output.public", "ledger.path", "stream.path", "stream.checkpoint")
    others = ("mechanism.embedding", "bundle_store", "key.file", "spark.delta_jars")
    return {**files, **{name: attrgetter(name)(config) for name in (*tables, *others)}}


def expected(home: str, conf: str) -> dict[str, str]:
    return {
        "input.path": f"{conf}/raw/tickets",
        "mechanism.embedding": f"{home}/vectors/words.vec",
        "mechanism.similarity": "demo",
        "mechanism.pairs": f"{conf}/pairs.tsv",
        "mechanism.classes": f"{conf}/classes.tsv",
        "mechanism.frequencies": f"{conf}/counts.tsv",
        "bundle_store": f"{conf}/bundles",
        "key.file": f"{conf}/wordveil.key",
        "output.path": f"{home}/lake/support",
        "output.public": f"{conf}/public",
        "ledger.path": f"{conf}/ledger",
        "stream.path": f"{conf}/events",
        "stream.checkpoint": f"{home}/checkpoint",
        "spark.delta_jars": f"{conf}/jars",
    }


def test_relative_paths_of_a_file_begin_at_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write(tmp_path / "conf", settings())
    monkeypatch.chdir("/")
    assert paths_of(load_config(file)) == expected(f"{tmp_path}", f"{tmp_path}/conf")
    monkeypatch.chdir(tmp_path)
    found = load_config(Path("conf/job.yaml"), ["output.public=elsewhere"])
    elsewhere = {"output.public": f"{tmp_path}/conf/elsewhere"}
    assert paths_of(found) == {**expected(f"{tmp_path}", f"{tmp_path}/conf"), **elsewhere}


def test_directory_with_a_colon_that_is_written_in_is_named(tmp_path: Path):
    """Although the relative path that is set has none."""
    file = write(tmp_path / "at 03:00", settings())
    with pytest.raises(ConfigError, match=rf"ledger\.path = ledger: is {tmp_path}/at 03:00/ledger, which has a colon"):
        load_config(file)


def test_relative_paths_of_a_mapping_begin_at_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert paths_of(parse_config(settings(), "job")) == expected(f"{tmp_path}", f"{tmp_path}/work")


def test_a_path_is_written_so_that_the_file_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    inside = {"raw/tickets": "../raw/tickets", "conf/tickets": "tickets", ".": str(tmp_path)}
    for place, written in {**inside, "/lake/in/": "/lake/in/", "s3a://lake/in": "s3a://lake/in"}.items():
        found = relative_to_file(place, Path("conf/job.yaml"))
        assert found == written
        assert make_absolute(found, tmp_path / "conf") == make_absolute(place)


@pytest.mark.parametrize("place", ["/lake/in", "/lake/../in/", "s3a://lake/in", "hdfs:///lake/in", "file:/lake/in"])
def test_absolute_paths_and_those_with_a_scheme_stay_as_written(place: str, tmp_path: Path):
    assert make_absolute(place, tmp_path) == place
    written = settings(input={"path": place, "id": "ticket", "text": "body"}, output={"path": "o"})
    plain = {name: value for name, value in written.items() if name not in ("ledger", "stream")}
    assert load_config(write(tmp_path, plain)).input.path == place


def test_model_path_begins_at_files_directory_unless_shipped(tmp_path: Path):
    tree = {"name": "tree", "epsilon": 8.0, "clusters": [500], "embedding": "demo", "public": True}
    for name, place in (("demo", "demo"), ("./demo", f"{tmp_path}/demo"), ("models", f"{tmp_path}/models")):
        config = load_config(write(tmp_path, settings(mechanism={**tree, "output": "hypernym", "pairs": name})))
        assert config.mechanism.public_files["pairs"] == place
    text = {"profile": "carrier_phrases", "ngrams": "models"}
    with pytest.raises(ConfigError, match=f"{tmp_path}/models: holds no n-gram model"):
        load_config(write(tmp_path, settings(text=text)))


def test_path_with_tilde_or_scheme_for_driver_alone_is_refused(tmp_path: Path):
    source = {"path": "~/raw", "id": "ticket", "text": "body", "format": "delta"}
    text = {"n_max": 8, "keep_only": "s3a://lake/words.tsv"}
    wrong = settings(input=source, key={"file": "~/wordveil.key"}, text=text)
    with pytest.raises(ConfigError) as error:
        load_config(write(tmp_path, wrong))
    found = [str(fault) for fault in error.value.faults]
    assert found[0].startswith("input.path = ~/raw: begins with ~")
    assert found[1].startswith("text.keep_only = s3a://lake/words.tsv: is a path on the driver's own file system.")
    assert found[2].startswith("key.file: begins with ~")
    assert len(found) == 3


def test_a_key_that_is_given_for_its_path_is_not_shown(tmp_path: Path):
    digits = "ab" * 32
    file = load_config(write(tmp_path, settings(key={"file": digits}))).key.file
    assert file == f"{tmp_path}/{digits}"
    with pytest.raises(KeyMaterialError, match="its value looks like a key") as error:
        load_key(file, None)
    assert digits not in str(error.value)


@pytest.mark.parametrize(
    "above", ["../lake/support", "/lake/../{root}/lake/support", "file://{root}/lake/support", "link"]
)
def test_tables_inside_each_other_however_written_are_found(tmp_path: Path, above: str):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "link").symlink_to(tmp_path / "lake" / "support")
    inside = f"{above.format(root=tmp_path)}/public"
    output = {"path": f"{tmp_path}/lake/support", "format": "delta", "public": inside}
    with pytest.raises(ConfigError, match=r"output.public = .*: is output.path, or inside it"):
        load_config(write(tmp_path / "conf", settings(output=output)))
    source = {"path": inside, "id": "ticket", "text": "body", "format": "delta"}
    with pytest.raises(ConfigError, match=r"output.path = .*: is the input, inside it or above it"):
        load_config(write(tmp_path / "conf", settings(input=source, output={**output, "public": "../shown"})))


def test_recipe_wherever_the_file_is_has_the_names_as_written(tmp_path: Path):
    here, there = (load_config(write(tmp_path / name, settings())).recipe("") for name in ("a", "b"))
    assert here == there
    assert here.embedding == "../vectors/words.vec"
    assert here.inputs["pairs"] == {"name": "pairs.tsv", "digest": ""}


def marks(kind: Any) -> Iterator[Any]:
    """The path marks of a type, those inside of ``| None`` included."""
    yield from (mark for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, PathSetting))
    for part in get_args(kind):
        yield from marks(part)


def is_free_text(kind: Any) -> bool:
    return kind is str or any(map(is_free_text, get_args(kind)))


def unmarked(model: type[Section], above: str = "") -> Iterator[str]:
    """The settings of a section and those below that take free text and have no mark."""
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from unmarked(kind, f"{above}{name}.")
        is_marked = any(isinstance(mark, PathSetting) for mark in field.metadata) or any(marks(field.annotation))
        if is_free_text(field.annotation) and not is_marked:
            yield f"{above}{name}"


def test_settings_of_free_text_are_paths_or_known_to_be_none():
    models = [(Config, ""), *((model, "mechanism.") for model in MECHANISM_SECTIONS.values())]
    assert {name for model, above in models for name in unmarked(model, above)} == NO_PATHS
