"""What version 0.1.0 and later ones left on a disk is read, and from bundles of 0.2.0 on the same rows are drawn. A
format of another version is refused with what to do. ``docs/compatibility.md`` promises both;
``tests/spark/test_compatibility.py`` goes on with what only Spark reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support import kept_artefacts
from support.releases import read_delta
from wordveil.artifacts import ngram_model
from wordveil.assembly.bundles import build_bundle, find_bundle
from wordveil.assembly.local_paths import open_directory
from wordveil.assembly.local_state import read_local_state
from wordveil.audit.store import BUNDLE, load_audit
from wordveil.config.generators import load_generator_config
from wordveil.config.load import Config, load_config
from wordveil.embeddings import embedding as embeddings
from wordveil.errors import BundleError, ReleaseError, WordveilError
from wordveil.generators.npz_file import read_npz, write_npz
from wordveil.generators.weights import load_weights
from wordveil.mechanisms.tree.mechanism import Tree
from wordveil.release.delta_log import read_log
from wordveil.release.manifest import open_document
from wordveil.spark.sanitise.report import RunReport

JOBS = [
    pytest.param(version, file.stem, id=f"{version.name} {file.stem}")
    for version in kept_artefacts.DRAWN
    for file in sorted(version.glob("*.yaml"))
    if file.stem in json.loads((version / "expected.json").read_text("utf-8"))
    and file.stem not in kept_artefacts.UNKNOWN
]


@pytest.fixture(params=kept_artefacts.VERSIONS, ids=lambda version: version.name)
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A version's files. A session of another test in this process would leave tables to Spark."""
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    return kept_artefacts.copy(request.param, tmp_path / "kept")


drawn = pytest.mark.parametrize("home", kept_artefacts.DRAWN, ids=lambda version: version.name, indirect=True)


def expect(home: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((home / "expected.json").read_text("utf-8"))[name])


def test_there_are_files_of_the_first_version():
    assert kept_artefacts.VERSIONS[0].name == "0.1.0"
    assert len(JOBS) >= 7


@pytest.mark.parametrize(("version", "name"), JOBS)
def test_a_configuration_finds_its_bundle_and_draws_the_same_rows(version: Path, name: str, tmp_path: Path):
    """Of policies that copy, version 0.2.0 copied more: they are other policies now."""
    home = kept_artefacts.copy(version, tmp_path / "kept")
    expected, config = expect(home, name), load_config(home / f"{name}.yaml")
    is_read_otherwise = version.name == "0.2.0" and bool(config.policy.copies)
    assert (config.policy.fingerprint != expected["policy"]) == is_read_otherwise
    assert str(config.relation) == expected["relation"]
    bundle = find_bundle(config)
    assert bundle.fingerprint == expected["bundle"]
    assert (bundle.recovery is None) == bundle.mechanism.reads_context
    rows = kept_artefacts.draw(config, kept_artefacts.read_corpus(config))
    same = [{**row, "content_tag": row["content_tag"].hex()} for row in rows] == expected["rows"]
    assert same != is_read_otherwise


def test_configurations_are_read(home: Path):
    names = [file.stem for file in home.glob("*.yaml") if file.stem != "training"]
    assert len(names) >= 8
    for name in names:
        config = load_config(home / f"{name}.yaml")
        assert str(config.relation) == expect(home, "tree" if name == "release" else name)["relation"]


def test_a_bundle_of_the_first_version_is_refused_until_it_is_built_in_another_store(tmp_path: Path):
    home = kept_artefacts.copy(kept_artefacts.VERSIONS[0], tmp_path / "kept")
    with pytest.raises(BundleError, match=r"format_version 1 is not 2\. Build the bundle again in another store"):
        find_bundle(load_config(home / "tree.yaml"))
    config = load_config(home / "tree.yaml", [f"bundle_store={home}/others"])
    assert build_bundle(config).fingerprint == find_bundle(config).fingerprint != expect(home, "tree")["bundle"]


def test_an_output_has_its_columns_and_a_report(home: Path):
    rows = ds.dataset(home / "output-tree").to_table().to_pylist()
    expected = {row["id"]: row for row in expect(home, "tree")["rows"]}
    assert {row["id"]: row["text"] for row in rows} == {name: row["text"] for name, row in expected.items()}
    assert all(row.keys() <= expected[row["id"]].keys() for row in rows)
    report = json.loads((home / "report.json").read_text("utf-8"))
    assert set(report["result"]) <= {*RunReport.__dataclass_fields__, "unknown_rate", "tokens_per_second"}
    assert report["exit_code"] == 0


@drawn
def test_an_output_has_the_rows_that_its_job_draws(home: Path):
    config = load_config(home / "tree.yaml")
    rows = ds.dataset(home / "output-tree").to_table().to_pylist()
    same = {row["id"]: row for row in kept_artefacts.draw(config, kept_artefacts.read_corpus(config))}
    assert len(rows) == 5
    assert rows == [{name: same[row["id"]][name] for name in row} for row in rows]


def test_what_mechanisms_are_made_from_is_read(home: Path):
    words = embeddings.load(str(home / "embedding"))
    assert words.digest == embeddings.load(str(home / "words.txt")).digest
    assert load_weights(home / "generator.npz").shape.size == words.size
    assert load_generator_config(home / "training.yaml").schedule.epochs > 0


@drawn
def test_an_audit_is_read(home: Path):
    fingerprint = find_bundle(load_config(home / "tree.yaml")).fingerprint
    audit = load_audit(home / "bundles", BUNDLE, fingerprint)
    assert audit is not None
    assert audit.is_passed


def test_a_release_is_what_it_was(home: Path):
    config = load_config(home / "release.yaml")
    state = read_local_state(config)
    assert state is not None
    assert [(run["run_id"], run["kind"], run["epoch"], run["state"]) for run in state["runs"]] == [
        ("night-1", "sanitise", 1, "finished"),
        ("withdrawal", "withdraw", 2, "finished"),
        ("night-2", "sanitise", 2, "finished"),
    ]
    assert state["published"]["public_version"] == read_log(open_directory(home / "release" / "public")).version
    assert state["withdrawn"] == {
        "records": 1,
        "in_draws": 1,
        "in_public_table": 0,
        "files_of_old_versions": {"draws": 0, "public table": 1},
        "gone": False,
    }


@drawn
def test_published_rows_are_drawn_from_bundle_and_key(home: Path):
    """Under the key's first epoch, and after its rotation under the second: r2 was changed then, and r5 withdrawn."""
    config = load_config(home / "release.yaml")
    drawn = {}
    for epoch, place in ((1, home / "corpus.parquet"), (2, home / "input")):
        rows = read_delta(place) if place.is_dir() else pq.read_table(place).to_pylist()
        table = pa.table({name: [row[name] for row in rows] for name in ("id", "day", "text")})
        drawn |= {(row["id"], epoch): row for row in kept_artefacts.draw(config, table, epoch=epoch)}
    draws = [row for row in read_delta(home / "release" / "draws") if row["status"] == "released"]
    assert sorted((row["id"], row["__epoch"]) for row in draws) == [*((f"r{n}", 1) for n in (1, 2)), ("r2", 2),
                                                                     *((f"r{n}", 1) for n in (3, 4, 5))]  # fmt: skip
    for row in draws:
        same = drawn[row["id"], row["__epoch"]]
        assert (row["text"], row["content_tag"]) == (same["text"], same["content_tag"])
    public = {row["id"]: row["text"] for row in read_delta(home / "release" / "public")}
    epochs = {"r1": 1, "r2": 2, "r3": 1, "r4": 1}
    assert public == {name: drawn[name, epoch]["text"] for name, epoch in epochs.items()}


def test_a_manifest_of_an_earlier_version_is_refused(home: Path):
    """It says less than what readers see: the first one lists files alone, and the second one no properties."""
    document = json.loads((home / "release/public/_manifest.json").read_text("utf-8"))
    number = document["manifest"]["format_version"]
    with pytest.raises(ReleaseError, match=f"format_version = {number}: .* Publish the table again."):
        open_document(document, None)


def test_ledger_and_journal_add_up(home: Path):
    entries = read_delta(home / "ledger")
    spent = {(row["record_id"], row["author"]): 0 for row in entries if row["spent_tokens"]}
    for row in entries:
        if row["spent_tokens"]:
            spent[row["record_id"], row["author"]] += row["spent_tokens"]
    assert sum(row["reserved_tokens"] for row in entries) == 0
    assert spent == {("r1", "ann"): 10, ("r2", "ann"): 20, ("r3", "bob"): 10, ("r4", "bob"): 10, ("r5", "cy"): 10}


def change_version(place: Path) -> None:
    text, count = re.subn(r"""("?format_version"?: )\d+""", r"\g<1>99", place.read_text("utf-8"))
    assert count == 1
    place.write_text(text, "utf-8")


def change_weights(place: Path) -> None:
    about, arrays = read_npz(place)
    write_npz(place, {**about, "format_version": 99}, arrays, private=False)


def first(pattern: str) -> Callable[[Path], Path]:
    return lambda home: min(home.glob(pattern))


def open_tree(home: Path) -> Config:
    config = load_config(home / "tree.yaml")
    find_bundle(config)
    return config


LATER: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None], Callable[[Path], object], str]] = {
    "configuration": (first("tree.yaml"), change_version, open_tree, "this wordveil reads format_version 2"),
    "training": (
        first("training.yaml"),
        change_version,
        lambda home: load_generator_config(home / "training.yaml"),
        "this wordveil reads format_version 1 of generators",
    ),
    "bundle": (
        first("bundles/*/manifest.json"),
        change_version,
        open_tree,
        "Build the bundle again in another store, or use the wordveil that wrote it.",
    ),
    "n-gram model": (
        first("ngrams/*/manifest.json"),
        change_version,
        lambda home: ngram_model.open_model(ngram_model.find_model(home / "ngrams")),
        "Build the n-gram model again in another store, or use the wordveil that wrote it.",
    ),
    "embedding": (
        first("embedding/embedding.json"),
        change_version,
        lambda home: embeddings.load(str(home / "embedding")),
        "format_version 99 is not 1. Write it again with this version of wordveil.",
    ),
    "weights": (
        first("generator.npz"),
        change_weights,
        lambda home: load_weights(home / "generator.npz"),
        "its format is version 99, and this version of wordveil reads 1. Train it again.",
    ),
    "manifest": (
        first("release/public/_manifest.json"),
        change_version,
        lambda home: open_document(json.loads((home / "release/public/_manifest.json").read_text("utf-8")), None),
        "this wordveil reads manifests of format_version 3. Use the version of wordveil that wrote it.",
    ),
}


@pytest.mark.parametrize("kind", LATER)
def test_a_later_format_is_refused_with_what_to_do(kind: str, tmp_path: Path):
    home = kept_artefacts.copy(kept_artefacts.VERSIONS[-1], tmp_path / "kept")
    find, change, read, message = LATER[kind]
    if kind != "manifest":  # of which no files are given: the version is looked at first
        read(home)
    change(find(home))
    with pytest.raises(WordveilError, match=re.escape(message)):
        read(home)


@drawn
def test_a_bundle_that_draws_otherwise_is_refused_until_it_is_built_in_another_store(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Tree, "sampler_version", 99)
    for name in ("tree", "laplace"):
        with pytest.raises(BundleError, match=r"sampler_version 1 is not 99\. Build the bundle again in another store"):
            find_bundle(load_config(home / f"{name}.yaml"))
    config = load_config(home / "tree.yaml", [f"bundle_store={home}/others"])
    assert build_bundle(config).fingerprint == find_bundle(config).fingerprint != expect(home, "tree")["bundle"]


@drawn
def test_an_audit_of_a_later_format_does_not_count(home: Path):
    fingerprint = find_bundle(load_config(home / "tree.yaml")).fingerprint
    change_version(home / "bundles" / ".audits" / fingerprint / "bundle.json")
    assert load_audit(home / "bundles", BUNDLE, fingerprint) is None


def test_a_table_of_a_later_format_is_left_to_spark(home: Path):
    """Which says what it is; see ``tests/spark/test_compatibility.py``."""
    log = home / "release" / "draws" / "_delta_log" / f"{0:020d}.json"
    text = log.read_text("utf-8")
    assert '"wordveil.formatVersion":"3"' in text
    log.write_text(text.replace('"wordveil.formatVersion":"3"', '"wordveil.formatVersion":"99"'), "utf-8")
    assert read_local_state(load_config(home / "release.yaml")) is None
