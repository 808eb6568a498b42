"""Paths that are surely on this machine's disk, whatever Spark is configured with."""

from __future__ import annotations

import os
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.config.schema import SparkSection

SMALL_BYTES, SMALL_FILES = 16 * 2**20, 1_000
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
    """Return ``path`` on this machine's disk if Spark, started with ``spark``, would surely read that one; otherwise
    None.
    """
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
    """Return whether all that a run reads is surely on this machine's disk, and small: the input, and a release's
    tables.
    """
    paths = [config.input.path]
    if config.output.format == "delta":
        paths += [config.output.path, config.output.public, config.ledger.path if config.ledger else None]
    roots = [find_local(path, config.spark) for path in paths if path]
    if config.input.path is None or None in roots:
        return False
    files = (file for root in roots if root for file in (root, *root.rglob("*")) if file.is_file())
    sizes = [file.stat().st_size for file in islice(files, SMALL_FILES + 1)]
    return len(sizes) <= SMALL_FILES and sum(sizes) <= SMALL_BYTES
