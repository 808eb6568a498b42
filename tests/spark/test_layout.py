"""The order of an output's rows and its files depend on ids and counts alone, whatever the sizes of the texts.

test_strict_runs.py shows the same of a public table.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from support import toys
from support.workspaces import WORDS, Workspace
from wordveil import Run, sanitise
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.sanitise import layout
from wordveil.spark.sanitise.job import run_sanitise

RECORDS, FILES = 200, 5
STRICT = {"profile": "strict", "n_max": 4, "refused": "empty"}


def table(lengths: np.ndarray, *, sound: bool = True) -> pa.Table:
    """Records with texts of so many words. Some ids are there twice, or are null, unless they are ``sound``."""
    rng = np.random.default_rng(3)
    bodies: list[str | None] = [" ".join(WORDS[i] for i in rng.integers(0, len(WORDS), length)) for length in lengths]
    ids = [f"r{number:04d}" for number in range(RECORDS)]
    if not sound:
        ids[10], ids[20], ids[21] = ids[11], None, None  # type: ignore[assignment]
    kept = {
        "day": [None if number % 7 == 0 else f"d{number % 3}" for number in range(RECORDS)],
        "note": list(range(RECORDS)),
    }
    return pa.table({"id": ids, "body": pa.array(bodies, pa.string()), **kept})


def sizes(seed: int) -> np.ndarray:
    """Lengths of which few are large: those of another seed are the same ones, elsewhere."""
    lengths = np.concatenate([np.full(4, 3000), np.arange(40), np.full(RECORDS - 44, 5)])
    return np.random.default_rng(seed).permutation(lengths)


def files_of(path: Path) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What a reader sees of the files in their order: directory, and ids and kept columns of the rows in theirs."""
    found = []
    for file in sorted(path.rglob("*.parquet"), key=lambda file: (str(file.parent), file.name[:10], file.name[-20:])):
        rows = pq.ParquetFile(file).read()
        found.append(
            (
                str(file.parent.relative_to(path)),
                list(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True)),
            )
        )
    return found


OUTPUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "directories": {"partition_by": ["day"]},
    "cut": {"records_per_file": 25},
    "cut directories": {"partition_by": ["day"], "records_per_file": 10},
    "input": {"order": "input"},
}


class Jobs:
    """Jobs over texts of permuted sizes, each run once."""

    def __init__(self, spark: Any, workspace: Workspace) -> None:
        self._spark, self._workspace = spark, workspace
        for seed in (1, 2):
            workspace.write_corpus(table(sizes(seed), sound=False), f"corpus-{seed}", files=FILES)

    @cache  # noqa: B019 - it ends with the module
    def layout(self, seed: int, kind: str, release: str = "tests") -> list[Any]:
        """The layout of the job's output."""
        place = self._workspace.root / f"{release}-{kind}-{seed}"
        config = self._workspace.config(
            release=release,
            input={"path": str(self._workspace.root / f"corpus-{seed}"), "keep": ["day", "note"]},
            text=STRICT,
            output={"path": str(place), **OUTPUTS[kind]},
        )
        report = run_sanitise(config, lambda: self._spark)
        assert report.quarantined == {"duplicate_id": 2, "null_id": 2}
        assert ("layout" in report.exposes) == (kind == "input")
        return files_of(place)


@pytest.fixture(scope="module")
def jobs(packed, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(packed, Workspace(tmp_path_factory.mktemp("jobs")))


@pytest.mark.parametrize(
    "kind",
    [
        "cut directories",
        pytest.param("plain", marks=pytest.mark.long),
        pytest.param("cut", marks=pytest.mark.long),
        pytest.param("directories", marks=pytest.mark.long),
    ],
)
def test_a_jobs_layout_does_not_follow_the_sizes_of_texts(jobs: Jobs, kind: str):
    """Quarantined rows among them."""
    one, two = (jobs.layout(seed, kind) for seed in (1, 2))
    assert len(one) > 3
    counts = [len(rows) for _, rows in one]
    assert sum(counts) == RECORDS
    if most := OUTPUTS[kind].get("records_per_file"):
        assert max(counts) == most
    assert one == two


def test_the_inputs_order_follows_them(jobs: Jobs):
    """Or the test above would show nothing."""
    one, two = (jobs.layout(seed, "input") for seed in (1, 2))
    assert sorted(row for _, rows in one for row in map(str, rows)) == sorted(
        row for _, rows in two for row in map(str, rows)
    )
    assert one != two


def test_another_release_has_another_order(jobs: Jobs):
    """The hash is keyed: rows of two releases cannot be matched by their places."""
    one, two = jobs.layout(1, "cut directories"), jobs.layout(1, "cut directories", "another")
    assert [rows for _, rows in one] != [rows for _, rows in two]


def test_directories_do_not_multiply_files(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Tasks take directories one after the other, also that of null, and each directory's rows are in their order."""
    monkeypatch.setattr(layout, "TASK_ROWS", 20)
    frame = from_arrow(spark, table(sizes(1))).select("id", "day", "note")
    layout.arrange_rows(frame, 7, "id", partition_by=["day"]).write.partitionBy("day").parquet(f"{tmp_path}/out")
    files = files_of(tmp_path / "out")
    tasks, directories = RECORDS // 20, {directory for directory, _ in files}
    assert len(directories) == 4
    assert tasks < len(files) <= tasks + len(directories)
    keyed = frame.select("id", F.shiftrightunsigned(F.xxhash64(F.lit(7), "id"), 1).alias("order")).collect()
    order_of = {row.id: row.order for row in keyed}
    for directory in directories:
        orders = [order_of[name] for of, rows in files if of == directory for name, _ in rows]
        assert orders == sorted(orders)
        assert len(orders) > 20


@pytest.mark.long
def test_a_frames_layout_does_not_follow_the_sizes_of_texts(packed, workspace: Workspace, tmp_path: Path):
    """What is written from the result as it is; in the order of the frame ``exposes`` says so."""
    bundle = toys.make_bundle(
        tmp_path,
        toys.random_embedding(300, 8, seed=5),
        {"epsilon": 4.0, "gamma": 3.0},
        padding=True,
        mechanism="exponential",
    )
    run = Run.recorded(release="frames", run_log_dir=str(tmp_path / "records"), key_file=str(workspace.root / "key"))
    seen: dict[str, list[Any]] = {"hashed": [], "input": []}
    for seed in (1, 2):
        frame = packed.read.parquet(str(workspace.write_corpus(table(sizes(seed)), f"corpus-{seed}", files=FILES)))
        for order, layouts in seen.items():
            done = sanitise(
                frame, bundle=bundle.path, run=run, id="id", text="body", keep=["note"], policy=STRICT, order=order
            )  # type: ignore[arg-type]
            done.write.parquet(str(tmp_path / f"{order}-{seed}"))
            layouts.append(files_of(tmp_path / f"{order}-{seed}"))
            exposes = pq.read_table(tmp_path / f"{order}-{seed}", columns=["privacy"])["privacy"][0]["exposes"].as_py()
            assert ("layout" in exposes) == (order == "input")
    assert seen["hashed"][0] == seen["hashed"][1]
    assert seen["input"][0] != seen["input"][1]
