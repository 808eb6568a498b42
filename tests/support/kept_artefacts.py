"""What earlier versions of the package left on a disk, as ``tests/releases/make.py`` wrote it."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wordveil.assembly.bundles import find_bundle, find_ngrams
from wordveil.config.load import Config
from wordveil.crypto.keys import load_key
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN

VERSIONS = sorted(
    path for path in (Path(__file__).parents[1] / "releases").iterdir() if (path / "expected.json").exists()
)

DRAWN = [path for path in VERSIONS if path.name != "0.1.0"]
"""Those whose bundles are read. Version 0.1.0 wrote format 1."""


UNKNOWN = {"syntf", "random"} - set(MECHANISMS)
"""Jobs of mechanisms that have moved to the laboratory, where it is not installed."""


def origin_of(version: Path) -> Path:
    """Where the files of a version were made. A release knows the path of its ledger."""
    return Path("/tmp") / f"wordveil-{version.name}"


def copy(version: Path, target: Path) -> Path:
    """Copy a version's files to where they may change. Git does not keep the mode that a key needs."""
    shutil.copytree(version, target, copy_function=shutil.copy)  # Delta ages its log by the times of files
    for name in UNKNOWN:
        (target / f"{name}.yaml").unlink(missing_ok=True)
    for key in target.glob("*.key"):
        key.chmod(0o600)
    return target


@contextlib.contextmanager
def restore(version: Path) -> Iterator[Path]:
    """Copy a version's files to where they were made, for as long as the context lasts; one process at a time."""
    origin = origin_of(version)
    with origin.with_name(f"{origin.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(origin, ignore_errors=True)
        try:
            yield copy(version, origin)
        finally:
            shutil.rmtree(origin)


def draw(config: Config, table: pa.Table, *, epoch: int = 1, run_id: str = "kept") -> list[dict[str, Any]]:
    """Draw what a configuration makes of records, without Spark, as rows of an output. ``epoch``: the key's."""
    keys = load_key(config.key.file, config.key.env).for_release(config.release, epoch)
    sanitiser = RecordSanitiser(config.record_settings(run_id), find_bundle(config), keys, find_ngrams(config))
    columns = {name: table[name] for name in (config.input.id, *config.input.keep)}
    reasons = pa.array([None] * len(table), pa.string())
    whole = pa.table({**columns, TEXT_COLUMN: table[config.input.text], REASON_COLUMN: reasons}).combine_chunks()
    return [row for batch in whole.to_batches() for made in sanitiser.sanitise(batch) for row in made.to_pylist()]


def read_corpus(config: Config) -> pa.Table:
    """Read the input of a Parquet job."""
    assert config.input.path is not None
    return pq.read_table(config.input.path)
