"""The order of an output's rows and its files depend on ids and counts alone, whatever the sizes of the texts.

test_strict_runs.py shows the same of a public table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import helpers
from sparking import WORDS, Workspace, packed_session
from wordveil import Run, sanitise
from wordveil.spark.sanitise.job import run_sanitise

RECORDS, FILES = 200, 5
STRICT = {"profile": "strict", "n_max": 4, "refused": "empty"}


@pytest.fixture
def packed(spark) -> Iterator[Any]:
    """Spark packs files by bytes."""
    with packed_session(spark) as session:
        yield session


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


def job_layout(spark: Any, workspace: Workspace, seed: int, name: str, **sections: Any) -> list[Any]:
    """The layout of a job's output over texts of permuted sizes."""
    workspace.write_corpus(table(sizes(seed), sound=False), name, files=FILES)
    output = {"path": str(workspace.root / f"{name}-output"), **sections.pop("output", {})}
    source = {"path": str(workspace.root / name), "keep": ["day", "note"]}
    config = workspace.config(input=source, text=STRICT, output=output, **sections)
    report = run_sanitise(config, lambda: spark)
    assert report.quarantined == {"duplicate_id": 2, "null_id": 2}
    assert ("layout" in report.exposes) == (output.get("order") == "input")
    return files_of(workspace.root / f"{name}-output")


@pytest.mark.parametrize(
    "output", [{}, {"partition_by": ["day"]}, {"records_per_file": 25}], ids=["plain", "directories", "cut"]
)
def test_a_jobs_layout_does_not_follow_the_sizes_of_texts(packed, workspace: Workspace, output: dict[str, Any]):
    """Quarantined rows among them."""
    one, two = (job_layout(packed, workspace, seed, f"corpus-{seed}", output=output) for seed in (1, 2))
    assert len(one) > 3
    assert sum(len(rows) for _, rows in one) == RECORDS
    assert max(len(rows) for _, rows in one) <= output.get("records_per_file", RECORDS)
    assert one == two


def test_the_inputs_order_follows_them(packed, workspace: Workspace):
    """Or the test above would show nothing."""
    one, two = (job_layout(packed, workspace, seed, f"corpus-{seed}", output={"order": "input"}) for seed in (1, 2))
    assert sorted(row for _, rows in one for row in map(str, rows)) == sorted(
        row for _, rows in two for row in map(str, rows)
    )
    assert one != two


def test_another_release_has_another_order(packed, workspace: Workspace):
    """The hash is keyed: rows of two releases cannot be matched by their places."""
    one = job_layout(packed, workspace, 1, "one")
    two = job_layout(packed, workspace, 1, "two", release="another")
    assert [rows for _, rows in one] != [rows for _, rows in two]


def test_a_frames_layout_does_not_follow_the_sizes_of_texts(packed, workspace: Workspace, tmp_path: Path):
    """What is written from the result as it is; in the order of the frame ``exposes`` says so."""
    bundle = helpers.make_bundle(
        tmp_path,
        helpers.random_embedding(300, 8, seed=5),
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
            exposes = done.select("privacy.exposes").first()
            assert exposes is not None
            assert ("layout" in exposes[0]) == (order == "input")
    assert seen["hashed"][0] == seen["hashed"][1]
    assert seen["input"][0] != seen["input"][1]
