"""Which directories of a partitioned public table a publication has to write: those in which a record has changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DateType, IntegralType, StringType, StructField

from wordveil.config.schema import OutputSection
from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Exposure
from wordveil.records.schema import RELEASED
from wordveil.release.manifest import Manifest
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release.latest import filter_by_ids
from wordveil.spark.release.verify import SparkTable

# The condition names each directory. Where more have changed, the whole table is written.
_MOST = 1000
# Values of these types are the same after a cast to text and back. A timestamp is not where clocks are set back.
_EXACT = (StringType, DateType, IntegralType, BooleanType)
# What a quoted text of SQL keeps as it is: "$" may begin a variable. Delta writes an empty text as null.
_PLAIN = re.compile(r"[^'\\$\x00-\x1f]+")


def find_changed(
    drawn: DataFrame, name: str, published: DataFrame, public: DeltaTable, signed: Manifest, output: OutputSection
) -> str | None:
    """The directories that have to be written, as a condition in SQL: those in which a record was drawn since the
    publication of the manifest ``signed``, or stood before it was drawn again.

    ``drawn``: the draws since. ``name``: the id column. ``published``: the rows to publish. ``public``: the public
    table. Returns ``false`` where nothing has to be written, and None where the whole table has to.
    """
    if not output.partition_by or not _is_as_signed(public, signed, output):
        return None
    standing = public.read()
    was, now = ({field.name: field.dataType.simpleString() for field in of.schema} for of in (standing, published))
    fields = [standing.schema[name] for name in output.partition_by]
    if was != now or any(not isinstance(field.dataType, _EXACT) for field in fields):
        return None
    ids = drawn.where(column(name).isNotNull()).select(column(name).alias("__id"))
    rows = drawn.where(f"status = '{RELEASED}'"), filter_by_ids(standing, name, ids)
    values = [column(of).cast("string").alias(f"__{place}") for place, of in enumerate(output.partition_by)]
    now_in, was_in = (of.select(*values) for of in rows)
    directories = now_in.union(was_in).distinct().limit(_MOST + 1).collect()
    texts = (value for directory in directories for value in directory if value is not None)
    if len(directories) > _MOST or not all(map(_PLAIN.fullmatch, texts)):
        return None
    if {tuple(file.partition[of] for of in output.partition_by) for file in signed.snapshot.files} <= set(directories):
        return None
    return " OR ".join(_describe(fields, directory) for directory in directories) or "false"


def _is_as_signed(public: DeltaTable, signed: Manifest, output: OutputSection) -> bool:
    """Whether files of the public table may stay: they are as they were signed, and arranged as ``output`` says. Delta
    may have added versions without a change, such as those of a VACUUM.
    """
    before = signed.snapshot
    if tuple(output.partition_by) != before.partition_by:
        return False
    if output.order == "hashed" and Exposure.LAYOUT in signed.exposes:
        return False
    digests = {file.path: file.sha256 for file in before.files}
    with suppress(ReleaseError):  # somebody has made it a table that not all readers know
        log = SparkTable(public).read_log(public.version())
        files = tuple(file._replace(sha256=digests.get(file.path, "")) for file in log.files)
        return replace(log, files=files, records=before.records) == before
    return False


def _describe(fields: Sequence[StructField], values: Sequence[str | None]) -> str:
    """One directory, as a condition."""
    same = []
    for field, value in zip(fields, values, strict=True):
        wanted = "IS NULL" if value is None else f"= CAST('{value}' AS {field.dataType.simpleString()})"
        same.append(f"`{field.name}` {wanted}")
    return f"({' AND '.join(same)})"
