"""Paths where no table may be created: inside an existing release or Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wordveil.config.schema import LedgerSection, OutputSection
from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.delta import DELTA_LOG
from wordveil.spark.platform.filesystem import Files

DRAWS, JOURNAL = "draws", "journal"
"""The directories of a release's tables, which identify the release's directory."""


def require_free_paths(spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None) -> None:
    """Raise :class:`ConfigError` where a table would be created inside a release or a Delta table, whose clean-up or
    removal would delete it too. Tables of the configuration that exist already stay where they are.

    Without a session only paths on this machine's disk are checked.
    """
    faults = [
        Fault(setting, path, f"is {owner}, or inside it.", "Choose another path.")
        for setting, path in _list_new_tables(spark, output, ledger)
        if (owner := _find_owner(spark, path))
    ]
    if faults:
        raise ConfigError("configuration", faults)


def _list_new_tables(
    spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None
) -> Iterator[tuple[str, str]]:
    """The settings whose tables a run would create, with their paths."""
    if output.format != "delta":
        yield "output.path", output.path
        return
    tables = (
        ("output.path", output.path, f"{DRAWS}/{DELTA_LOG}"),
        ("output.public", output.public, DELTA_LOG),
        ("ledger.path", ledger and ledger.path, DELTA_LOG),
    )
    for setting, path, sign in tables:
        if path and not _exists(spark, f"{path.rstrip('/')}/{sign}"):
            yield setting, path


def _find_owner(spark: SparkSession | None, path: str) -> str:
    """The release or the Delta table that is at ``path`` or above it; empty where there is none."""
    with suppress(Py4JError):  # a file system that cannot be reached; opening the table says how
        for directory in _list_ancestors(spark, path):
            shown = directory.removeprefix("file:")
            if all(_exists(spark, f"{directory}/{name}/{DELTA_LOG}") for name in (JOURNAL, DRAWS)):
                return f"the directory of a release, {shown}"
            if _exists(spark, f"{directory}/{DELTA_LOG}"):
                return f"the Delta table {shown}"
    return ""


def _list_ancestors(spark: SparkSession | None, path: str) -> Iterator[str]:
    """``path`` and the directories above it, without a slash at the end."""
    if spark is None:
        local = Path(path.removeprefix("file:"))
        yield from (str(directory).rstrip("/") for directory in (local, *local.parents))
        return
    directory: Any = Files(spark, path).path
    while directory is not None:
        yield str(directory).rstrip("/")
        directory = directory.getParent()


def _exists(spark: SparkSession | None, path: str) -> bool:
    """Whether the path exists; false where this cannot be found out."""
    if spark is None:
        local = Path(path.removeprefix("file:"))
        return local.is_absolute() and local.exists()
    try:
        return Files(spark, path).exists()
    except Py4JError:
        return False
