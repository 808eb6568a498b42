"""Fixtures shared by all suites. The Spark session starts on first use, so that array tests never start a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparking import Workspace, delta_jars


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that share the session run in one process."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("session"))
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A local session as the job builds it, with Delta and an event log."""
    from wordveil.sections import SparkSection
    from wordveil.spark.session import build_session

    home = tmp_path_factory.mktemp("spark")
    (home / "events").mkdir()
    options = {
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "scratch"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{home / 'events'}",
    }
    session = build_session(SparkSection(master="local[2]", delta_jars=str(delta_jars()), options=options), delta=True)
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An embedding, a key and a configuration in a directory of their own."""
    return Workspace(tmp_path)
