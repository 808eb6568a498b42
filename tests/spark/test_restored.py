"""Tables of a release that were lost, damaged or put back from a backup alone: refused with what to do, before anything
is drawn or signed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.releases import Lake, States
from support.workspaces import corpus
from wordveil.errors import ReleaseError, SparkJobError, WordveilError
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import publish
from wordveil.spark.release.verify import verify_by_spark


@contextmanager
def away(lake: Lake, path: Path) -> Iterator[None]:
    """The file or directory is gone for a while, and no snapshot in memory knows it."""
    place = lake.root / "away"
    path.rename(place)
    lake.forget()
    yield
    shutil.rmtree(path, ignore_errors=True)
    place.rename(path)
    lake.forget()


def commit(table: Path, version: int) -> Path:
    """The file of a commit."""
    return table / "_delta_log" / f"{version:020d}.json"


def test_tables_that_are_not_what_the_journal_knows_are_refused(released: States):
    lake = released.restore("published")
    draws, journal = lake.home / "draws", lake.home / "journal"
    with (
        away(lake, journal),
        pytest.raises(ReleaseError, match=r"journal .*: is gone, though release support has draws"),
    ):
        lake.run()
    with away(lake, lake.ledger), pytest.raises(ReleaseError, match=r"ledger .*: is gone"):
        lake.run()
    for path in (draws, lake.input):
        with away(lake, path), pytest.raises(WordveilError, match=str(path)):
            lake.run()
    with away(lake, lake.input):
        lake.write(corpus(8))
        with pytest.raises(ReleaseError, match="is not the table that the release has read"):
            lake.run(lake.config(input={"changes": "feed"}))
    # Without its last commit a table is what a backup of an earlier moment would be.
    with (
        away(lake, commit(draws, 1)),
        pytest.raises(ReleaseError, match=r"draws .*: is at version 0, .* has seen version 1"),
    ):
        run_gate(lake.config(), lambda: lake.spark)
    with (
        away(lake, commit(lake.ledger, 2)),
        pytest.raises(ReleaseError, match=r"ledger .*: is at version 1, .* has seen version 2"),
    ):
        lake.run()
    with away(lake, commit(lake.ledger, 1)), pytest.raises(SparkJobError, match="The Delta log lacks a commit"):
        lake.run()
    lake.run()

    # A published table that has changed is not signed again.
    file = next(lake.public.glob("**/*.parquet"))
    with (
        away(lake, file),
        pytest.raises(
            ReleaseError, match=r"Files missing: .* A changed table is not signed again\. Move its directory away"
        ),
    ):
        publish(lake.config(), lambda: lake.spark)
    with away(lake, lake.public):
        publish(lake.config(), lambda: lake.spark)
        assert len(verify_by_spark(lake.spark, str(lake.public), None, None).manifest.snapshot.files) == 1
