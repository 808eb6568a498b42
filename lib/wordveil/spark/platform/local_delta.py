"""Delta tables on this machine's disk, read from their logs without Java: as Delta would read them, or not at all.

Java and Spark take many times longer to start than a log takes to read. Unusual tables are left to Delta: on another
file system, with another kind of checkpoint, with features that change names or rows, with deletion vectors. Delta's
protocol (PROTOCOL.md in its repository) says what a log holds and how its actions add up.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from wordveil.config.schema import SparkSection
from wordveil.spark.platform.delta import DELTA_LOG

# Variables by which users configure another file system, or options of Spark.
_SPARK_VARIABLES = ("HADOOP_CONF_DIR", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
# Hadoop takes what follows two slashes for a host, expands wildcards, and splits lists.
_PLAIN_PATH = re.compile(r"(file:(//)?(?=/[^/]))?(?!//)[\w./ +=@-]+", re.ASCII)
# Options that change neither where nor how a table is read.
_HARMLESS = re.compile(
    r"spark\.(driver|executor)\.(memory|memoryOverhead|cores|maxResultSize)|spark\.(memory|task|ui|shuffle)\..+"
    r"|spark\.local\.dir|spark\.sql\.shuffle\.partitions"
)
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
# Features of a Delta table that change how rows are read, but neither names nor types.
_READER_FEATURES = {"deletionVectors", "vacuumProtocolCheck"}


class UnusualTableError(ValueError):
    """A table that Delta may read differently from this module."""


@dataclass(frozen=True)
class DeltaLog:
    """The newest version of the Delta table in the directory ``root``.

    ``metadata``: the action ``metaData`` with ``id``, ``schemaString``, ``partitionColumns`` and ``configuration``.
    ``added``: the actions ``add`` of its data files by their paths; empty where only the metadata was read.
    """

    root: Path
    version: int
    metadata: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]

    def list_files(self) -> list[str]:
        """The data files relative to :attr:`root`, in order. Raises :class:`UnusualTableError` where files hold deleted
        rows or are elsewhere.
        """
        for path, action in self.added.items():
            if (action.get("deletionVector") or {}).get("storageType") is not None:
                raise UnusualTableError("deletion vectors")
            if path.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
                raise UnusualTableError("files elsewhere")
        return sorted(map(unquote, self.added))


def find_local(path: str, spark: SparkSection) -> Path | None:
    """``path`` on this machine's disk if Spark, started as ``spark`` says, would surely read that one; else None."""
    if not _PLAIN_PATH.fullmatch(path) or not is_plain(spark):
        return None
    return Path(path.removeprefix("file:"))


def is_plain(spark: SparkSection) -> bool:
    """Whether a path without a scheme is on this machine, and nothing changes how Spark reads a table."""
    is_changed = any(not _HARMLESS.fullmatch(name) for name in spark.options)
    if is_changed or not (spark.master or "local").startswith("local"):
        return False
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    is_running = getattr(context, "_active_spark_context", None) is not None
    return not is_running and not any(name in os.environ for name in _SPARK_VARIABLES)


def read_log(root: Path, *, files: bool = True) -> DeltaLog:
    """Read the log of the Delta table at ``root``; without ``files``, its metadata alone.

    Raises :class:`UnusualTableError` for features that are left to Delta. Raises :class:`OSError`, :class:`ValueError`,
    :class:`KeyError` or ``pyarrow.ArrowException`` where there is no table or its log is damaged: Delta says how.
    """
    log = root / DELTA_LOG
    names = [path.name for path in log.iterdir()]
    commits = {int(match[1]): log / match[0] for name in names if (match := _COMMIT.fullmatch(name))}
    checkpoints = {int(match[1]): log / match[0] for name in names if (match := _CHECKPOINT.fullmatch(name))}
    first, last = max(checkpoints, default=-1), max(commits)
    state: dict[str, Any] = {}
    added: dict[str, Mapping[str, Any]] = {}
    if checkpoints:
        state, added = _read_checkpoint(checkpoints[first], files=files)
    for version in range(first + 1, last + 1):
        actions = [json.loads(line) for line in commits[version].read_bytes().splitlines()]
        state |= {name: value for action in actions for name, value in action.items()}
        # A file whose rows change in place is removed and added by one commit, in any order.
        for action in actions:
            if "remove" in action:
                added.pop(action["remove"]["path"], None)
        added |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    features = set(state["protocol"].get("readerFeatures") or ())
    if state["protocol"]["minReaderVersion"] not in (1, 3) or not features <= _READER_FEATURES:
        raise UnusualTableError("features")
    return DeltaLog(root, max(first, last), state["metaData"], added if files else {})


def _read_checkpoint(path: Path, *, files: bool) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """The table's metadata and protocol, each in one row of a checkpoint, and its files."""
    # Most of a checkpoint are statistics of the files, which are not read. Columns that are not there are left out.
    columns = ["metaData", "protocol", *(("add.path", "add.deletionVector.storageType") if files else ())]
    table = pq.ParquetFile(path).read(columns=columns)
    state = {name: table[name].drop_null()[0].as_py() for name in ("metaData", "protocol")}
    # A map, which Arrow returns as pairs.
    state["metaData"]["configuration"] = dict(state["metaData"].get("configuration") or ())
    adds = [action for action in table["add"].to_pylist() if action and action["path"] is not None] if files else []
    return state, {action["path"]: action for action in adds}
