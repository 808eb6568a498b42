"""Increments: the part of a public table that a publication writes, while its other files stay."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, DateType, IntegralType, StringType, StructField

from wordveil.config.schema import OutputSection
from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Exposure
from wordveil.records.schema import RELEASED
from wordveil.release.manifest import Manifest, Snapshot
from wordveil.release.verify import summarise
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release.latest import filter_by_ids
from wordveil.spark.release.verify import SparkTable
from wordveil.spark.sanitise.layout import TASK_ROWS

# The condition names each directory. If more have changed, the whole table is written.
_MOST = 1000
# Values of these types are the same after a cast to text and back. Timestamps are not when clocks are set back.
_EXACT = (StringType, DateType, IntegralType, BooleanType)
# Texts that SQL keeps as they are in quotes: "$" may begin a variable. Delta writes an empty text as null.
_PLAIN = re.compile(r"[^'\\$\x00-\x1f]+")
# Records are added until there are so many files more than twice those of a table that is written at once.
_SPARE_FILES = 50


def find_increment(
    drawn: DataFrame, name: str, published: DataFrame, public: DeltaTable, signed: Manifest, output: OutputSection
) -> str | None:
    """Find what has to be written after the publication of the manifest ``signed``; None: the whole table.

    The result names the directories whose rows are replaced, as a condition in SQL; if it is empty, the rows drawn
    since are added, and none is replaced.

    ``drawn``: the draws since. ``name``: the id column. ``published``: the rows to publish. ``public``: the public
    table. Directories are replaced in which a record was drawn, or stood before it was drawn again.
    """
    # Rewriting a single-task table is faster than searching it.
    if not output.partition_by and signed.snapshot.records <= TASK_ROWS:
        return None
    if not is_as_signed(public, signed, output):
        return None
    standing = public.read()
    was, now = ({field.name: field.dataType.simpleString() for field in of.schema} for of in (standing, published))
    if was != now:
        return None
    stood = filter_by_ids(standing, name, drawn.where(column(name).isNotNull()).select(column(name).alias("__id")))
    directories: set[tuple[str | None, ...]] = {()}
    if output.partition_by:
        places = [column(of).cast("string").alias(f"__{place}") for place, of in enumerate(output.partition_by)]
        now_in = drawn.where(f"status = '{RELEASED}'").select(*places, F.lit(True).alias("__new"))
        found = now_in.union(stood.select(*places, F.lit(False))).distinct().limit(2 * _MOST + 1).collect()
        directories = {tuple(row)[:-1] for row in found}
        is_new = len(found) <= 2 * _MOST and all(row["__new"] for row in found)
    else:  # where many stood, one is found in the first files
        is_new = stood.isEmpty()
    if is_new and not _is_crowded(signed.snapshot, output):
        return ""
    fields = [standing.schema[name] for name in output.partition_by]
    return describe_directories(fields, directories, signed.snapshot) or None


def describe_directories(
    fields: Sequence[StructField], directories: Collection[tuple[str | None, ...]], signed: Snapshot
) -> str | None:
    """Write ``directories`` as SQL. Return None if that is impossible, or no ``signed`` file would stay."""
    texts = (value for directory in directories for value in directory if value is not None)
    if len(directories) > _MOST or not all(map(_PLAIN.fullmatch, texts)):
        return None
    if any(not isinstance(field.dataType, _EXACT) for field in fields):
        return None
    if {tuple(file.partition[field.name] for field in fields) for file in signed.files} <= set(directories):
        return None
    return " OR ".join(_name_directory(fields, directory) for directory in directories)


def _is_crowded(signed: Snapshot, output: OutputSection) -> bool:
    """Return whether publications have added so many files that some should be written again."""
    rows_a_file = min(TASK_ROWS, output.records_per_file or TASK_ROWS)
    directories = {tuple(file.partition.values()) for file in signed.files}
    at_once = -(-signed.records // rows_a_file) + len(directories)
    return len(signed.files) > 2 * at_once + _SPARE_FILES


def is_as_signed(public: DeltaTable, signed: Manifest, output: OutputSection) -> bool:
    """Return whether files of the public table may stay: they are as signed, and arranged as ``output`` requires.

    Delta may have added versions without a change, such as those of a VACUUM.
    """
    before = signed.snapshot
    if tuple(output.partition_by) != before.partition_by:
        return False
    if output.order == "hashed" and Exposure.LAYOUT in signed.exposes:
        return False
    digests = {file.path: file.sha256 for file in before.files}
    with suppress(ReleaseError):  # somebody has made it a table that not all readers know
        version = public.version()
        log = summarise(SparkTable(public).read_log(version).states[version])
        files = tuple(file._replace(sha256=digests.get(file.path, "")) for file in log.files)
        return replace(log, files=files, records=before.records) == before
    return False


def _name_directory(fields: Sequence[StructField], values: Sequence[str | None]) -> str:
    same = []
    for field, value in zip(fields, values, strict=True):
        wanted = "IS NULL" if value is None else f"= CAST('{value}' AS {field.dataType.simpleString()})"
        same.append(f"`{field.name}` {wanted}")
    return f"({' AND '.join(same)})"
