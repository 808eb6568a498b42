"""The newest state of each record, counted in arrays. On real tables: tests/spark/test_local_state.py."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from wordveil.assembly.local_state import count_latest

STATUSES = ("released", "quarantined", "withdrawn")


def chunked(values: list[object], kind: pa.DataType) -> pa.ChunkedArray:
    """In two chunks, as of two files."""
    middle = len(values) // 2
    return pa.chunked_array([pa.array(values[:middle], kind), pa.array(values[middle:], kind)], kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_a_record_by_record_reading(kind: pa.DataType, seed: int):
    rng = np.random.default_rng(seed)
    rows = [(int(rng.integers(40)), STATUSES[rng.integers(3)], int(rng.integers(-1, 9))) for _ in range(150)]
    rows = list({(record, seq): (record, status, seq) for record, status, seq in rows}.values())
    by_id = defaultdict(list)
    for record, status, seq in rows:
        by_id[record].append((seq, status))
    expected: dict[str, list[int]] = {}
    for found in by_id.values():
        counts = expected.setdefault(max(found)[1], [0, 0])
        counts[0] += 1
        counts[1] += any(status == "released" and seq >= 0 for seq, status in found)
    ids = [str(record) if kind == pa.string() else record for record, _, _ in rows]
    counts, withdrawn = count_latest(
        chunked(ids, kind),
        chunked([status for _, status, _ in rows], pa.string()),
        chunked([seq for _, _, seq in rows], pa.int64()),
    )
    assert counts == {status: tuple(found) for status, found in expected.items()}
    gone = {record for record, found in by_id.items() if max(found)[1] == "withdrawn"}
    assert {int(name) for name in withdrawn.to_pylist()} == gone
    assert withdrawn.type == kind


def test_no_rows_are_no_records():
    counts, withdrawn = count_latest(chunked([], pa.string()), chunked([], pa.string()), chunked([], pa.int64()))
    assert (counts, len(withdrawn)) == ({}, 0)
