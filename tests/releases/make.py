"""Write what a version of the package leaves on a disk, for tests of later versions: ``make.py [--again]``."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import wordveil
from wordveil.assembly.bundles import find_bundle, find_ngrams
from wordveil.cli.app import main
from wordveil.config.load import Config, load_config
from wordveil.config.schema import SparkSection
from wordveil.crypto.keys import load_key
from wordveil.embeddings import embedding as embeddings
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import save_weights
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.spark.platform.session import build_session
from wordveil.spark.platform.versions import from_arrow

HERE = Path(__file__).parent
_WORDS = (
    "the a of to and we saw two old boats near grey harbour night when cold wind came from north men pulled nets home "
    "sang loud songs while children slept under warm blankets dog barked cat watched rain fell on roof mother read"
)
WORDS = _WORDS.split()
TEXTS = {
    "r1": "The men pulled two old boats home.",
    "r2": "A cold wind came from the north, and we sang!",
    "r3": "Mother read while the dog slept on Anna's blankets.",
    "r4": "",
    "r5": "Rain fell on 3 grey roofs: ask ruth@example.org or call 020 7946 0018.",
}
CHANGED = "The cat watched the rain near the harbour."

PASSAGES = (
    *("The boats came home to the harbour.", "Two old boats near the harbour.", "The men pulled nets and sang."),
    *("Cold wind came from the north.", "Rain fell on the roof at night.", "The wind sang loud in the night."),
    *("The cat watched the dog.", "The dog barked while children slept.", "Mother read to the children."),
)

MECHANISMS: dict[str, dict[str, Any]] = {
    "tree": {"epsilon": 5.0, "sizes": [4], "frequencies": "frequencies.tsv"},
    "staircase": {"epsilon": 5.0, "similarity": "similarity.txt"},
    "exponential": {"epsilon": 6.0, "gamma": 3.0, "neighbours": 12},
    "laplace": {"epsilon": 8.0},
    "hyperbolic-laplace": {"epsilon": 12.0, "embedding": "ball.txt"},
    "hyperbolic-fdd": {"epsilon": 12.0, "embedding": "ball.txt"},
    "er-ae": {"epsilon": 12.0, "model": "generator.npz"},
    "clusters": {"name": "tree", "epsilon": 5.0, "clusters": [4], "least": 5, "frequencies": "frequencies.tsv"},
    "passages": {"epsilon": 5.0, "clusters": 3, "passages": "passages.txt"},
}
STRICT = {"profile": "strict", "n_max": 10}
PORTUGUESE = {"profile": "readable", "language": "pt", "stop_word_list": ["the", "a", "of", "to", "and"]}
POLICIES: dict[str, dict[str, Any]] = {
    "staircase": {"profile": "carrier_phrases", "ngrams": "ngrams", "types": "none", "names": "words"},
    "exponential": PORTUGUESE,
    "laplace": {**STRICT, "output": "bag"},
    "hyperbolic-laplace": {"length": "sample", "n_max": 6},
    "hyperbolic-fdd": {"profile": "readable", "types": "none", "names": "words", "repeat": "same"},
    "passages": {"profile": "passages"},
}


def run(*arguments: object) -> None:
    """Run a command, as a user does."""
    try:
        main([*map(str, arguments)])
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"wordveil {' '.join(map(str, arguments))} ended with {left.code}") from None


def write_vectors(place: Path, scale: float, seed: int) -> None:
    """Write a vector for each word, as text; ``scale``: the length of all, or 0 for standard normal ones."""
    vectors = np.random.default_rng(seed).standard_normal((len(WORDS), 6))
    if scale:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors *= scale * np.linspace(0.1, 1.0, len(WORDS))[:, None] / lengths
    lines = [" ".join([word, *(f"{value:.4f}" for value in row)]) for word, row in zip(WORDS, vectors, strict=True)]
    place.write_text("\n".join(lines) + "\n")


def write_public(home: Path, session: Any) -> None:
    """Write what mechanisms and policies are made from: embeddings, frequencies, a generator, a model of n-grams."""
    write_vectors(home / "words.txt", 0.0, 1)
    write_vectors(home / "similarity.txt", 0.0, 2)
    write_vectors(home / "ball.txt", 0.9, 3)
    (home / "frequencies.tsv").write_text("".join(f"{word}\t{9000 // n}\n" for n, word in enumerate(WORDS, 1)))
    (home / "passages.txt").write_text("".join(f"{passage}\n" for passage in PASSAGES))
    embedding = embeddings.load(str(home / "words.txt"))
    embedding.save(home / "embedding")
    save_weights(home / "generator.npz", make_repeating_weights(embedding, 8))
    with tempfile.TemporaryDirectory() as public:
        from_arrow(session, pa.table({"text": [*TEXTS.values()] * 3})).write.parquet(f"{public}/texts")
        run("ngrams", "--input", f"{public}/texts", "--text", "text", "--output", home / "ngrams", "--public",
            "--min-count", 2)  # fmt: skip


def write_configurations(home: Path) -> None:
    """Write a job for each mechanism, a release, and a training."""
    for name, settings in MECHANISMS.items():
        values = {
            "format_version": 2,
            "release": f"kept-{name}",
            "input": {"path": "corpus.parquet", "id": "id", "text": "text", "keep": ["day"]},
            "mechanism": {"name": name, "embedding": "embedding", "public": True, **settings},
            "bundle_store": "bundles",
            "text": POLICIES.get(name, STRICT),
            "key": {"file": "job.key"},
            "output": {"path": f"output-{name}"},
        }
        (home / f"{name}.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    values = yaml.safe_load((home / "tree.yaml").read_text())
    values |= {
        "release": "kept-release",
        "input": {"path": "input", "format": "delta", "changes": "feed", "id": "id", "text": "text", "author": "author",
                  "keep": ["day"]},
        "output": {"path": "release", "format": "delta"},
        "key": {"file": "release.key"},
        "ledger": {"path": "ledger"},
        "budgets": {"unit": "pure", "relation": "any_text", "record": 500, "on_exceeded": "quarantine"},
        "gate": {"min_records": 1, "exposes": ["presence", "edited", "withdrawn", "kept_changed", "column:day"]},
    }  # fmt: skip
    (home / "release.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    generator: dict[str, Any] = {"output": "trained.npz", "embedding": "embedding", "public": True, "corpus": "public"}
    generator["texts"] = {"path": "corpus.parquet", "format": "parquet", "column": "text", "validation": 0.0}
    training = {"format_version": 1, "generator": generator}
    (home / "training.yaml").write_text(yaml.safe_dump(training, sort_keys=False))


def draw(config: Config) -> list[dict[str, Any]]:
    """Draw the input of a Parquet job without Spark, as rows of an output."""
    assert config.input.path is not None
    table = pq.read_table(config.input.path)
    keys = load_key(config.key.file, config.key.env).for_release(config.release)
    sanitiser = RecordSanitiser(config.record_settings("kept"), find_bundle(config), keys, find_ngrams(config.text))
    columns = {name: table[name] for name in (config.input.id, *config.input.keep)}
    reasons = pa.array([None] * len(table), pa.string())
    whole = pa.table({**columns, TEXT_COLUMN: table[config.input.text], REASON_COLUMN: reasons}).combine_chunks()
    return [row for batch in whole.to_batches() for made in sanitiser.sanitise(batch) for row in made.to_pylist()]


def describe(config: Config) -> dict[str, Any]:
    """Say what must stay as it is while the files of this version are read."""
    return {
        "bundle": find_bundle(config).fingerprint,
        "policy": config.policy.fingerprint,
        "relation": str(config.relation),
        "rows": [{**row, "content_tag": row["content_tag"].hex()} for row in draw(config)],
    }


def write_release(home: Path, session: Any) -> None:
    """Write a release of two nights with a rotated key, a changed record and a withdrawn one."""
    table = pa.table({"id": [*TEXTS], "text": [*TEXTS.values()], "author": ["ann", "ann", "bob", "bob", "cy"]})
    table = table.append_column("day", pa.array(["d1"] * len(TEXTS)))
    source = from_arrow(session, table).coalesce(1).write.format("delta")
    source.option("delta.enableChangeDataFeed", "true").save(str(home / "input"))
    config = home / "release.yaml"
    run("audit", "bundle", "--config", config, "--draws", 1000)
    run("release", "night", "--config", config, "--run-id", "night-1", "--json")
    run("key", "rotate", home / "release.key")
    session.sql(f"UPDATE delta.`{home}/input` SET text = '{CHANGED}' WHERE id = 'r2'")
    run("release", "withdraw", "--config", config, "--id", "r5", "--run-id", "withdrawal")
    run("release", "night", "--config", config, "--run-id", "night-2", "--json")


def write_all(home: Path) -> None:
    """Write all files into an empty directory."""
    session = build_session(SparkSection(master="local[2]", options={"spark.sql.shuffle.partitions": "1"}), delta=True)
    for name in ("job", "release"):
        run("key", "new", home / f"{name}.key")
    pq.write_table(pa.table({"id": [*TEXTS], "text": [*TEXTS.values()], "day": ["d1"] * 5}), home / "corpus.parquet")
    write_public(home, session)
    write_configurations(home)
    for name in MECHANISMS:
        run("build", "--config", home / f"{name}.yaml")
    expected = {name: describe(load_config(home / f"{name}.yaml")) for name in MECHANISMS}
    run("sanitise", "--config", home / "tree.yaml", "--run-id", "kept", "--report", home / "report.json")
    recorded = wordveil.Run.recorded(release="kept-run", run_log_dir=str(home / "runs"), key_file=str(home / "job.key"))
    frame = session.read.parquet(str(home / "corpus.parquet"))
    tree = load_config(home / "tree.yaml")
    found = wordveil.sanitise(
        frame, bundle=find_bundle(tree).path, run=recorded, id="id", text="text", policy=tree.text
    )
    expected["run"] = {row.id: row.text for row in found.collect()}
    write_release(home, session)
    text = json.dumps(expected, indent=1, ensure_ascii=False, default=str)
    (home / "expected.json").write_text(f"{text}\n", "utf-8")
    session.stop()


if __name__ == "__main__":
    place = HERE / wordveil.__version__
    again = sys.argv[1:] == ["--again"]
    if place.exists() and not again:
        sys.exit(f"{place} is there: files of a version are written once, or with --again")
    work = Path("/tmp") / f"wordveil-{place.name}"  # a release knows the path of its ledger
    work.mkdir()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work)
        write_all(work)
        if again:
            shutil.rmtree(place, ignore_errors=True)
        # Hadoop's checksums of single files, locks and what builds keep are no part of a format.
        shutil.copytree(work, place, ignore=shutil.ignore_patterns(".*.crc", "*.lock", ".parts"))
