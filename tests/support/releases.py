"""A release with its input, and states of it that are made once, for tests on real Delta."""

from __future__ import annotations

import contextlib
import copy
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from support.workspaces import Workspace, corpus, write_delta
from wordveil.assembly.run_report import RunReport
from wordveil.config.load import Config
from wordveil.spark.platform import delta_table
from wordveil.spark.platform.jvm import java_class
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import publish
from wordveil.spark.release.run import run_release

EXPONENTIAL = {"name": "exponential", "epsilon": 6.0, "gamma": 4.0}


class DiedError(Exception):
    """The process is gone."""


@contextlib.contextmanager
def die_after(commit: str | int) -> Iterator[list[str]]:
    """Let the process die after its first commit of a step, or after so many commits. Gives the steps that it did."""
    steps: list[str] = []

    def committed(step: str) -> None:
        steps.append(step)
        if commit in (step, len(steps)):
            raise DiedError(step)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(DiedError):
        patch.setattr(delta_table, "after_commit", committed)
        yield steps


class Lake:
    """A workspace with a Delta input and a release over it."""

    def __init__(self, spark: Any, workspace: Workspace) -> None:
        self.spark = spark
        self.workspace = workspace
        self.root = workspace.root
        self.input = self.root / "input"
        self.home = self.root / "release"
        self.ledger = self.root / "ledger"
        self.public = self.home / "public"

    def write(self, table: pa.Table, *, feed: bool = True, mode: Literal["append", "overwrite"] = "append") -> None:
        write_delta(table, self.input, feed=feed, mode=mode)

    def update(self, where: str | None, **values: Any) -> None:
        DeltaTable(self.input).update(predicate=where, new_values=values)

    def delete(self, where: str) -> None:
        DeltaTable(self.input).delete(where)

    def sql(self, statement: str) -> None:
        """A statement of Spark in which ``{input}`` is the input, for what :meth:`update` cannot say."""
        self.spark.sql(statement.format(input=f"delta.`{self.input}`"))

    def forget(self) -> None:
        """As in a new process: Delta keeps snapshots by path."""
        java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog").clearCache()

    def config(self, **sections: Mapping[str, Any] | Any) -> Config:
        """The release's configuration; sections are merged into it, one level deep."""
        base: dict[str, Any] = {
            "release": "support",
            "input": {"path": str(self.input), "format": "delta"},
            "output": {"path": str(self.home), "format": "delta"},
            "ledger": {"path": str(self.ledger)},
        }
        for name, value in sections.items():
            base[name] = {**base.get(name, {}), **value} if isinstance(value, Mapping) and name != "text" else value
        return self.workspace.config(**base)

    def run(self, config: Config | None = None, **options: Any) -> RunReport:
        return run_release(config or self.config(), lambda: self.spark, **options)

    def release(self, config: Config | None = None) -> None:
        chosen = config or self.config()
        assert run_gate(chosen, lambda: self.spark).result.passed
        publish(chosen, lambda: self.spark)

    def rows(self, path: Path) -> list[dict[str, Any]]:
        return sorted(read_delta(path), key=lambda row: str(sorted(row.items(), key=lambda item: item[0])))

    def draws(self) -> list[dict[str, Any]]:
        return self.rows(self.home / "draws")

    def entries(self) -> list[dict[str, Any]]:
        """The ledger, but for the identifiers of tables, which differ from release to release."""
        return [{name: value for name, value in row.items() if name != "tables"} for row in self.rows(self.ledger)]

    def newest(self) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for row in sorted(self.draws(), key=lambda row: row["__seq"]):
            rows[row["id"]] = row
        return rows

    def spent(self) -> dict[str, int]:
        sums: dict[str, int] = {}
        for row in self.entries():
            if row["kind"] in ("reset", "table"):
                continue
            sums[row["record_id"]] = sums.get(row["record_id"], 0) + row["spent_tokens"]
        return sums

    def reserved(self) -> int:
        return sum(row["reserved_tokens"] for row in self.entries())


class States:
    """States of a lake's directory, by name, which come back at the place where they were made."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._kept = lake.root.with_name(f"{lake.root.name}-states")
        self.report: RunReport | None = None
        """What the run that drew has reported."""

    def keep(self, name: str) -> None:
        shutil.copytree(self._lake.root, self._kept / name)

    def restore(self, name: str) -> Lake:
        """Put a kept state back, whatever has happened since. Returns the lake as it was made."""
        shutil.rmtree(self._lake.root)
        shutil.copytree(self._kept / name, self._lake.root)
        self._lake.forget()
        return copy.copy(self._lake)


def corpus_with_authors(count: int, seed: int = 0, authors: int = 4) -> pa.Table:
    table = corpus(count, seed)
    return table.append_column("author", pa.array([f"a{number % authors}" for number in range(count)]))


def read_delta(path: Path) -> list[dict[str, Any]]:
    """All rows of a Delta table as it is now, without Spark, which takes a second for a few rows."""
    with TemporaryDirectory() as plain:  # deltalake refuses control characters in paths
        copied = shutil.copytree(path, plain, dirs_exist_ok=True)
        return DeltaTable(copied).to_pyarrow_table().to_pylist()
