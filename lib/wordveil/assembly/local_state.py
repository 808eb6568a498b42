"""State of a release whose tables are on this machine's disk, read without Java.

Unusual tables are left to Spark, and so are faults: Spark's reader explains the fault and its remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordveil.assembly.local_paths import find_local, require_free_paths
from wordveil.config.schema import ReleaseHome, SparkSection
from wordveil.records.schema import RELEASED, WITHDRAWN
from wordveil.release.events import Event, Events, describe_records, describe_release, parse_events
from wordveil.release.lake_table import UnusualTableError, list_plain_files, open_plain
from wordveil.release.layout import (
    DELTA_LOG,
    DRAWS,
    DRAWS_VERSION,
    JOURNAL,
    LEDGER_VERSION,
    PUBLIC,
    SEQ_COLUMN,
    TABLE_VERSION,
    VERSION_PROPERTY,
)

MAX_ROWS = 5_000_000
"""Largest number of draws read here; Spark needs no memory for all ids at once."""
UNREAD = (OSError, ValueError, KeyError, TypeError, pa.ArrowException)
"""Errors of tables that Spark has to read."""


def read_local_state(release: ReleaseHome, spark: SparkSection) -> dict[str, Any] | None:
    """Describe a release as ``wordveil release show`` does. Return None if a session of ``spark`` has to read it.

    Raises :class:`ConfigError` as opening the release does.
    """
    path, ledger = release.output.path.rstrip("/"), release.ledger
    public = release.output.public or f"{path}/{PUBLIC}"
    home, public_path, ledger_path = (find_local(place.rstrip("/"), spark) for place in (path, public, ledger.path))
    if home is None or public_path is None or ledger_path is None:
        return None
    require_free_paths(release.output, ledger)
    described = release.name, path, release.output.writers
    if not any((path / DELTA_LOG).exists() for path in (home / JOURNAL, home / DRAWS, ledger_path)):
        return describe_release(*described, Events([]))  # nothing has run yet
    try:
        events = Events(read_events(home / JOURNAL))
        intents = events.intents()
        if not intents or intents[0].terms.fixed["release"] != release.name:
            return None
        draws = _open_table(home / DRAWS, events.newest_version(DRAWS_VERSION))
        _open_table(ledger_path, events.newest_version(LEDGER_VERSION))
        published = _open_table(public_path) if (public_path / DELTA_LOG).exists() else None
        if published is not None and release.output.shuffle:  # rows have no ids, so all draws are compared
            return None
        return describe_release(*described, events) | _count_records(draws, published, release.id)
    except UNREAD:
        return None


def read_events(root: Path, version: int | None = None) -> list[Event]:
    """Read the events of the journal in ``root``, at ``version`` or the newest one, oldest first.

    Raises one of :data:`UNREAD` if Spark has to read it.
    """
    rows = _read_rows(_open_table(root, version=version), ["seq", "event", "run_id", "at", "body"])
    return parse_events(rows.to_pylist())


@dataclass(frozen=True)
class _LocalTable:
    """Version of the table in the directory ``root``: its data files, relative to it, and its partition columns."""

    root: Path
    version: int
    files: list[str]
    partition_by: list[str]


def _open_table(root: Path, min_version: int = 0, *, version: int | None = None) -> _LocalTable:
    """Open a table of this format at ``version`` or the newest, or raise :class:`UnusualTableError`."""
    table = open_plain(root, version)
    metadata = table.metadata()
    if metadata.configuration.get(VERSION_PROPERTY) != str(TABLE_VERSION) or table.version() < min_version:
        raise UnusualTableError(root)
    return _LocalTable(root, table.version(), list_plain_files(table), metadata.partition_columns)


def _read_rows(table: _LocalTable, columns: Sequence[str]) -> pa.Table:
    """Read columns. Raises :class:`UnusualTableError` for partition columns and more than :data:`MAX_ROWS` rows."""
    if set(columns) & set(table.partition_by):
        raise UnusualTableError(columns)
    opened = [pq.ParquetFile(table.root / name) for name in table.files]
    if sum(file.metadata.num_rows for file in opened) > MAX_ROWS:
        raise UnusualTableError("rows")
    parts = [file.read(columns=list(columns)).select(list(columns)) for file in opened]
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in columns})


def _count_records(draws: _LocalTable, public: _LocalTable | None, name: str) -> dict[str, Any]:
    """Count records as :func:`describe_records` does, from the tables' files. ``name``: the id column."""
    rows = _read_rows(draws, [name, "status", SEQ_COLUMN])
    rows = rows.filter(pc.is_valid(rows[name]))
    counts, withdrawn = count_latest(rows[name], rows["status"], rows[SEQ_COLUMN])
    in_public = 0
    if len(withdrawn) and public is not None:
        in_public = pc.sum(pc.is_in(_read_rows(public, [name])[name], withdrawn)).as_py() or 0
    tables = {"draws": draws, **({"public table": public} if public is not None else {})}
    old = {kind: len(set(_walk_data(one.root)) - set(one.files)) for kind, one in tables.items()}
    return describe_records(draws.version, counts, in_public, old)


def count_latest(
    ids: pa.ChunkedArray, statuses: pa.ChunkedArray, seqs: pa.ChunkedArray
) -> tuple[dict[str, tuple[int, int]], pa.Array]:
    """Count statuses as :func:`count_statuses` does, from columns without null ids, and list withdrawn ids."""
    if not len(ids):
        return {}, pa.array([], ids.type)
    coded = pc.dictionary_encode(ids).combine_chunks()
    code = coded.indices.to_numpy()
    seq = seqs.to_numpy()
    order = np.lexsort((seq, code))
    is_last = np.append(code[order][1:] != code[order][:-1], True)
    newest = statuses.combine_chunks().take(pa.array(order[is_last]))
    drawn = code[pc.equal(statuses, RELEASED).to_numpy() & (seq >= 0)]
    has_text = np.bincount(drawn, minlength=len(coded.dictionary)) > 0  # by code, as the rows of newest are
    table = pa.table({"status": newest, "text": has_text.astype(np.int64)})
    grouped = table.group_by("status").aggregate([("text", "count"), ("text", "sum")]).to_pylist()
    counts = {row["status"]: (row["text_count"], row["text_sum"]) for row in grouped}
    return counts, coded.dictionary.filter(pc.equal(newest, WITHDRAWN))  # the dictionary is in the order of newest


def _walk_data(root: Path) -> Iterator[str]:
    """Yield the data files below ``root``, of any version."""
    for path in root.rglob("*.parquet"):
        name = str(path.relative_to(root))
        if f"{DELTA_LOG}/" not in name and path.is_file():
            yield name
