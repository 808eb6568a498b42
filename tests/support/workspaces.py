"""Corpora, configurations and outputs for tests on real Spark."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake

from support import toys
from support.repository import ROOT
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import Config, parse_config
from wordveil.input.parameters import NO_PARAMS
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.session import SHORT_JAVA, SHORT_OPTIONS
from wordveil.spark.sanitise import layout
from wordveil.text.types.classes import CHARACTER_TYPES
from wordveil.text.types.typed import Recogniser

EMBEDDING = toys.random_embedding(300, 8, seed=5)
WORDS = EMBEDDING.words.to_pylist()
KEY = bytes(range(7, 39)).hex()
Command = Callable[..., tuple[int, str, str]]
"""Runs a command: exit code, standard output, standard error."""
SMALL = SHORT_OPTIONS
TRUSTING_JAVA = f"{SHORT_JAVA} -XX:MetaspaceSize=256m -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java neither verifies the classes that it loads nor collects garbage because of their number."""
# Spark packs files of a few kilobytes by bytes, the largest first, some to a task.
_PACKED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.files.maxPartitionBytes": "6000",
    "spark.sql.files.openCostInBytes": "0",
}


@contextlib.contextmanager
def options_set(spark: Any, options: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in options}
    try:
        for name, value in options.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@contextlib.contextmanager
def packed_session(spark: Any) -> Iterator[Any]:
    """The session, with adaptive execution and small splits, and several tasks to write."""
    with pytest.MonkeyPatch.context() as patch, options_set(spark, _PACKED):
        patch.setattr(layout, "TASK_ROWS", 60)
        yield spark


def random_texts(count: int, seed: int = 0, longest: int = 40) -> list[str]:
    """Texts of vocabulary words, a few unknown ones and some punctuation."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        words = [WORDS[i] for i in rng.integers(0, len(WORDS), rng.integers(0, longest))]
        texts.append(" ".join(word if rng.random() > 0.05 else "zzunknownzz" for word in words) + ".")
    return texts


def corpus(count: int, seed: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"r{i:05d}" for i in range(count)],
            "body": random_texts(count, seed),
            "day": [f"d{i % 3}" for i in range(count)],
            "note": list(range(count)),
        }
    )


class Workspace:
    """A directory with an embedding, a key, and a configuration that uses them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        EMBEDDING.save(root / "embedding")
        self.write_key("key", KEY)

    def write_key(self, name: str, digits: str) -> Path:
        """A key file that its owner alone can read."""
        path = self.root / name
        path.touch(mode=0o600)
        path.write_text(digits)
        return path

    def write_corpus(self, table: pa.Table, name: str = "corpus", files: int = 1) -> Path:
        path = self.root / name
        path.mkdir()
        size = -(-max(table.num_rows, 1) // files)
        for number in range(files):
            pq.write_table(table.slice(number * size, size), path / f"part-{number}.parquet")
        return path

    def settings(self, **sections: Mapping[str, Any] | Any) -> dict[str, Any]:
        """The configuration as plain values; ``sections`` are merged into it, one level deep."""
        base: dict[str, Any] = {
            "format_version": 2,
            "release": "tests",
            "input": {"path": str(self.root / "corpus"), "id": "id", "text": "body", "keep": ["day"]},
            "mechanism": {"name": "laplace", "epsilon": 4.0, "embedding": str(self.root / "embedding"), "public": True},
            "bundle_store": str(self.root / "bundles"),
            "build_missing": True,
            "text": {"profile": "strict", "n_max": 24},
            "key": {"file": str(self.root / "key")},
            "output": {"path": str(self.root / "output")},
            "spark": {"master": "local[2]"},
        }
        for name, value in sections.items():
            base[name] = {**base.get(name, {}), **value} if isinstance(value, Mapping) and name != "text" else value
        return base

    def config(self, **sections: Mapping[str, Any] | Any) -> Config:
        return parse_config(self.settings(**sections), "tests")

    def write_config(self, name: str = "job.yaml", **sections: Mapping[str, Any] | Any) -> Path:
        path = self.root / name
        path.write_text(yaml.safe_dump(self.settings(**sections)))
        return path


def delta_jars() -> Path:
    """Return a directory with Delta's jars alone, which start a session sooner than resolving them; fail without."""
    from wordveil.spark.platform.delta import fetched_jars

    jars = fetched_jars()
    if not jars:
        pytest.fail(
            "Delta's jars are not on this machine. `make test` fetches them, or scripts/delta_jars.py.", pytrace=False
        )
    home = Path(tempfile.gettempdir()) / f"wordveil-delta-{os.getuid()}-{jars[0].stem}"
    home.mkdir(exist_ok=True)
    for jar in jars:
        with contextlib.suppress(FileExistsError):
            (home / jar.name).symlink_to(jar)
    return home


def write_delta(
    table: pa.Table, path: Path, *, feed: bool = False, mode: Literal["append", "overwrite"] = "append"
) -> None:
    """Add rows to a Delta table in one commit with one file; ``feed``: with its change data feed, if it is new."""
    write_deltalake(
        path,
        table,
        mode=mode,
        schema_mode="overwrite" if mode == "overwrite" else None,
        configuration={"delta.enableChangeDataFeed": "true"} if feed else None,
    )


def read_input(spark: Any, config: Config, params: Mapping[str, str] = NO_PARAMS) -> Any:
    return open_input(spark, config.source, params).read()


def read_output(path: Path | str, order_by: str = "id") -> list[dict[str, Any]]:
    table = ds.dataset(str(path), format="parquet", partitioning="hive").to_table()
    rows = table.drop_columns(["run_id"]).to_pylist()
    return sorted(rows, key=lambda row: (str(row[order_by]), str(row)))


def draw_key() -> str:
    return secrets.token_hex(32)


_CACHE = ROOT / "build"


@contextlib.contextmanager
def _hold(name: str) -> Iterator[None]:
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_EXAMPLE = "of 12 May 2020, by a@b.org; dear Ms Smith, 日本"


def _run_once(*policies: Mapping[str, Any]) -> None:
    columns = {"id": pa.array(["r1"]), "day": pa.array(["d1"])}
    batch = pa.record_batch({**columns, TEXT_COLUMN: pa.array([_EXAMPLE]), REASON_COLUMN: pa.nulls(1, pa.string())})
    with _hold(".loops-lock"), tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory))
        for text in policies:
            config = workspace.config(text=text)
            toys.sanitise(RecordSanitiser(config.record_settings("r"), build_bundle(config), toys.KEYS), batch)


def compile_half() -> None:
    """Compile what most jobs run but the recogniser of typed tokens, which takes as long as all other loops."""
    _run_once({"profile": "readable", "types": "none"})


def compile_loops() -> None:
    """Compile what most jobs run: in a fresh clone all Python workers of Spark would do so for themselves at once."""
    with _hold(".recogniser-lock"):
        Recogniser(CHARACTER_TYPES).find(pa.array([_EXAMPLE]))
    _run_once({"profile": "strict", "n_max": 24}, {"profile": "readable"})


def clean_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    return {**kept, "SPARK_SUBMIT_OPTS": TRUSTING_JAVA}
