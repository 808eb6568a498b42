"""Statistics of texts in the log of a Delta table, which may reach Spark's scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from wordveil.input.columns import fold_name
from wordveil.records.paths import read_path
from wordveil.spark.input.table_versions import find_snapshot
from wordveil.spark.platform.session import require_encrypted_scratch

_NAMED, _FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"


def require_hidden_texts(table: DataFrame, texts: Sequence[str], setting: str, name: str) -> None:
    """Raise :class:`PlatformError` for statistics of ``texts`` in a session that does not encrypt its scratch.

    By default a Delta table's log has the least and the greatest text of each file, cut off. To find the files, Delta
    shuffles the log, so that these texts get into Spark's scratch. ``setting``, ``name``: how the configuration names
    the table.
    """
    if (snapshot := find_snapshot(table)) is None:
        return
    properties = snapshot.metadata().configuration()
    if _has_statistics(_find(properties, _NAMED), _find(properties, _FIRST), texts):
        require_encrypted_scratch(
            table.sparkSession,
            f"{setting} = {name}: the table's log has the least and greatest texts of its files, which Delta shuffles "
            "to Spark's scratch",
            f"take the texts out of its statistics: ALTER TABLE ... SET TBLPROPERTIES ('{_NAMED}' = '...') with the "
            "columns that may have them, and write the files again that were written before.",
        )


def _find(properties: Any, key: str) -> str | None:
    found = properties.get(key)
    return str(found.get()) if found.isDefined() else None


def _has_statistics(named: str | None, first: str | None, texts: Sequence[str]) -> bool:
    """Return whether Delta may have statistics of ``texts``.

    ``named``: the columns that have them; ``first``: if none is named, the number of first columns that do.
    """
    if named is None:
        return first != "0"
    columns = {fold_name(read_path(column.strip())[0]) for column in named.split(",")}
    return any(fold_name(read_path(text)[0]) in columns for text in texts)
