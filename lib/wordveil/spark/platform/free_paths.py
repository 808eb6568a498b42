"""Paths where no table may be created, on any file system that Spark reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wordveil.assembly import free_paths
from wordveil.config.schema import LedgerSection, OutputSection
from wordveil.spark.platform.filesystem import Files


def require_free_paths(spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None) -> None:
    """Check as :func:`wordveil.assembly.free_paths.require_free_paths` does. Without a session only paths on this
    machine's disk are checked.
    """
    if spark is None:
        free_paths.require_free_paths(output, ledger)
    else:
        free_paths.require_free_paths(output, ledger, partial(_exists, spark), partial(_list_ancestors, spark))


def _list_ancestors(spark: SparkSession, path: str) -> Iterator[str]:
    """Yield ``path`` and the directories above it, without a slash at the end."""
    with suppress(Py4JError):  # a file system that cannot be reached; opening the table says how
        directory: Any = Files(spark, path).path
        while directory is not None:
            yield str(directory).rstrip("/")
            directory = directory.getParent()


def _exists(spark: SparkSession, path: str) -> bool:
    """Return whether the path exists; False if this cannot be determined."""
    try:
        return Files(spark, path).exists()
    except Py4JError:
        return False
