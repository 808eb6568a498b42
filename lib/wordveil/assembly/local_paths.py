"""Paths that are surely on this machine's disk, and paths where no table may be created."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from wordveil.errors import ConfigError, Fault
from wordveil.input.locations import resolve
from wordveil.release.layout import DELTA_LOG, DRAWS, JOURNAL

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.config.schema import LedgerSection, OutputSection, SparkSection

SMALL_BYTES, SMALL_FILES = 64 * 2**20, 1_000
"""Limits of small tables."""

# Variables by which users configure another file system, or options of Spark.
_SPARK_VARIABLES = ("HADOOP_CONF_DIR", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
# Hadoop takes what follows two slashes for a host, expands wildcards, and splits lists.
_PLAIN_PATH = re.compile(r"(file:(//)?(?=/[^/]))?(?!//)[\w./ +=@-]+", re.ASCII)
# Options that change neither where nor how a table is read.
_HARMLESS = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|cores|maxResultSize)|spark\.(memory|task|ui|shuffle)\..+"
    r"|spark\.local\.dir|spark\.sql\.shuffle\.partitions"
)


def find_local(path: str, spark: SparkSection) -> Path | None:
    """Return ``path`` on this machine's disk if Spark, started with ``spark``, would surely read that, or None."""
    if not _PLAIN_PATH.fullmatch(path) or not is_plain(spark):
        return None
    return Path(path.removeprefix("file:"))


def is_plain(spark: SparkSection) -> bool:
    """Return whether a path without a scheme is on this machine, and nothing changes how Spark reads a table."""
    is_changed = any(not _HARMLESS.fullmatch(name) for name in spark.options)
    return not is_changed and (spark.master or "local").startswith("local") and not is_spark_configured()


def is_spark_configured() -> bool:
    """Return whether a session runs in this process, or the environment configures how Spark reads paths."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    is_running = getattr(context, "_active_spark_context", None) is not None
    return is_running or any(name in os.environ for name in _SPARK_VARIABLES)


def is_small(config: Config) -> bool:
    """Return whether the input and a release's tables are surely small and on this machine's disk."""
    paths = [config.input.path]
    if config.output.format == "delta":
        paths += [config.output.path, config.output.public, config.ledger.path if config.ledger else None]
    roots = [find_local(path, config.spark) for path in paths if path]
    if config.input.path is None or None in roots:
        return False
    files = (file for root in roots if root for file in (root, *root.rglob("*")) if file.is_file())
    sizes = [file.stat().st_size for file in islice(files, SMALL_FILES + 1)]
    return len(sizes) <= SMALL_FILES and sum(sizes) <= SMALL_BYTES


def _exists(path: str) -> bool:
    local = Path(resolve(path))
    return local.is_absolute() and local.exists()


def _list_ancestors(path: str) -> Iterator[str]:
    local = Path(resolve(path))
    yield from (str(directory).rstrip("/") for directory in (local, *local.parents))


def require_free_paths(
    output: OutputSection,
    ledger: LedgerSection | None,
    exists: Callable[[str], bool] = _exists,
    list_ancestors: Callable[[str], Iterable[str]] = _list_ancestors,
) -> None:
    """Raise :class:`ConfigError` if a table would be created inside a release or a Delta table.

    Their clean-up or removal would delete it too. Tables of the configuration that exist already stay where they are.
    ``exists``, ``list_ancestors``: those of a file system; by default only paths on this machine's disk are checked.
    """
    faults = [
        Fault(setting, path, f"is {owner}, or inside it.", "Choose another path.")
        for setting, path in _list_new_tables(output, ledger, exists)
        if (owner := _find_owner(list_ancestors(path), exists))
    ]
    if faults:
        raise ConfigError("configuration", faults)


def _list_new_tables(
    output: OutputSection, ledger: LedgerSection | None, exists: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    if output.format != "delta":
        yield "output.path", output.path
        return
    tables = (
        ("output.path", output.path, f"{DRAWS}/{DELTA_LOG}"),
        ("output.public", output.public, DELTA_LOG),
        ("ledger.path", ledger and ledger.path, DELTA_LOG),
    )
    for setting, path, sign in tables:
        if path and not exists(f"{path.rstrip('/')}/{sign}"):
            yield setting, path


def _find_owner(directories: Iterable[str], exists: Callable[[str], bool]) -> str:
    """Find the release or the Delta table that one of the directories is; empty if none is."""
    for directory in directories:
        shown = directory.removeprefix("file:")
        if all(exists(f"{directory}/{name}/{DELTA_LOG}") for name in (JOURNAL, DRAWS)):
            return f"the directory of a release, {shown}"
        if exists(f"{directory}/{DELTA_LOG}"):
            return f"the Delta table {shown}"
    return ""
