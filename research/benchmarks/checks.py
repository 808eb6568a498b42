"""What checks of inputs, bundles and published tables take, over the same work without them.

* input: `InputTable.read` of a Parquet directory, of a table of the catalogue, and of a view over 20 tables, with and
without the walk over the plan that refuses what Spark parsed from text;
* bundle: `open_bundle` of a tree over the demo's words, and the same fingerprint without guarantee and versions;
* verify: `verify_by_spark`, and reading and hashing the same files, which is all that version 0.1.0 compared.

In one session, in turns.

    python research/benchmarks/checks.py [--smallest]

Writes research/results/checks.json and prints a table.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from common import SLOTS, Job, machine, make_parser, save_results

ROUNDS, ROWS, FILES, VIEWS = 7, 400_000, 40, 20
WORDS_A_RECORD = 60


def take_turns(rounds: int, **actions: Callable[[], Any]) -> dict[str, list[float]]:
    """Measure seconds of each action in each round. One more round before the first warms Java up."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            started = time.perf_counter()
            action()
            if number:
                found[name].append(time.perf_counter() - started)
    return found


def read_inputs(spark: Any, home: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Read each kind of input, with the walk and without."""
    from pyspark.sql import DataFrame

    from wordveil.input.source import Source
    from wordveil.spark.input import source

    rows = spark.range(1000).selectExpr("cast(id AS string) AS id", "'some words' AS body")
    rows.write.parquet(str(home / "input"))
    tables = [f"part_{number}" for number in range(VIEWS)]
    for name in tables:
        rows.write.saveAsTable(name)
    reduce(DataFrame.union, map(spark.table, tables)).createOrReplaceTempView("all_parts")
    found = {}
    for label, place in (
        ("path", {"path": str(home / "input"), "format": "parquet"}),
        ("table", {"table": tables[0]}),
        (f"view over {VIEWS} tables", {"table": "all_parts"}),
    ):
        section = Source("id", "body", **place)

        def read(section: Any = section) -> None:
            source.open_input(spark, section).read()

        def read_unchecked(read: Callable[[], None] = read) -> None:
            with patch.object(source, "check_scans"):
                read()

        found[label] = take_turns(rounds, checked=read, unchecked=read_unchecked)
    return found


def open_bundles(home: Path, rounds: int, words: str) -> dict[str, list[float]]:
    """Opening a bundle, and hashing its content with and without what format 2 adds."""
    from wordveil.artifacts.bundle import open_bundle
    from wordveil.artifacts.content_store import encode_canonical
    from wordveil.assembly.bundles import build_bundle
    from wordveil.config.load import parse_config

    settings = Job(home, words, {"profile": "strict", "n_max": 24}).settings
    settings["input"]["path"], settings["output"]["path"] = str(home / "no-input"), str(home / "no-output")
    settings["mechanism"] |= {"name": "tree", "sizes": [20]}
    path = build_bundle(parse_config(settings, "benchmark")).path
    content = json.loads((path / "manifest.json").read_text())["content"]
    added = ("guarantee", "certificate_version", "padding")
    before = {name: value for name, value in content.items() if name not in added}

    def digest(values: Mapping[str, Any]) -> str:
        return hashlib.sha256(encode_canonical(values)).hexdigest()

    return take_turns(
        20 * rounds, open=lambda: open_bundle(path), new=lambda: digest(content), old=lambda: digest(before)
    )


def verify_tables(spark: Any, home: Path, rounds: int, rows: int) -> dict[str, dict[str, list[float]]]:
    """Return a small table and a large one, signed by a key of this benchmark."""
    from pyspark.sql import functions as F  # noqa: N812

    from wordveil.crypto.keys import MasterKey
    from wordveil.privacy.relations import Relation
    from wordveil.release.manifest import Manifest, sign
    from wordveil.release.verify import MANIFEST
    from wordveil.spark.platform.delta_table import DeltaTable
    from wordveil.spark.release import verify

    words = F.array_join(
        F.transform(F.sequence(F.lit(1), F.lit(WORDS_A_RECORD)), lambda at: F.hex(F.hash("id", at))), " "
    )
    found = {}
    for count, files in ((1_000, 1), (rows, FILES)):
        path = home / f"public-{count}"
        table = spark.range(0, count, 1, files).select("id", (F.col("id") % 4).alias("day"), words.alias("text"))
        table.write.format("delta").partitionBy("day").save(str(path))
        snapshot = verify.SparkTable(DeltaTable(spark, str(path), "table")).describe(0)
        manifest = Manifest(
            **dict.fromkeys(("release", "mechanism", "policy", "key", "input", "rules"), "benchmark"),
            **dict.fromkeys(("publication", "draws_version", "public_version", "epoch", "input_version"), 0),
            **dict.fromkeys(("run_ids", "exposes", "gate"), ()),
            relation=Relation.ANY_TEXT,
            n_max=None,
            software={},
            created="2026-11-25T00:00:00Z",
            snapshot=snapshot,
        )
        document = sign(manifest, MasterKey(os.urandom(32)).signing_key("benchmark"))
        (path / MANIFEST).write_text(json.dumps(document))
        names = [f"{path}/{file.path}" for file in snapshot.files]

        def hash_files(names: list[str] = names) -> None:
            contents = spark.read.format("binaryFile").load(names)
            contents.select("path", "length", F.sha2("content", 256)).collect()

        label = f"{count:,} rows, {len(names)} files, {sum(file.bytes for file in snapshot.files) / 1e6:.0f} MB"
        found[label] = take_turns(
            rounds,
            checked=lambda path=path: verify.verify_by_spark(spark, str(path)),
            unchecked=hash_files,
        )
    return found


def main() -> None:
    """Measure all parts."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    rounds, rows = (1, 400) if smallest else (ROUNDS, ROWS)
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    content: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        options = {"spark.sql.warehouse.dir": str(home / "warehouse")}
        spark = build_session(SparkSection(master=f"local[{SLOTS}]", options=options), delta=True)
        content["input"] = read_inputs(spark, home, rounds)
        content["bundle"] = open_bundles(home, rounds, "small" if smallest else "demo")
        content["verify"] = verify_tables(spark, home, rounds, rows)
        spark.stop()
    save_results("checks", content, smallest=smallest)
    table = Table("what", "with, ms", "without, ms", "ratio", title="What checks take, medians")
    timings = {**content["input"], **content["verify"]}
    for label, seconds in timings.items():
        table.add_row(label, *_compare(seconds["checked"], seconds["unchecked"]))
    opened, new, old = (content["bundle"][name] for name in ("open", "new", "old"))
    without = [whole - (more - less) for whole, more, less in zip(opened, new, old, strict=True)]
    table.add_row("a bundle", *_compare(opened, without))
    Console().print(table)


def _compare(checked: list[float], unchecked: list[float]) -> tuple[str, str, str]:
    one, other = statistics.median(checked), statistics.median(unchecked)
    return f"{one * 1000:.2f}", f"{other * 1000:.2f}", f"{one / other:.2f}"


if __name__ == "__main__":
    main()
