"""Fixtures of the tests on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.releases import Lake, States
from support.workspaces import Workspace, corpus, packed_session
from wordveil.spark.platform.versions import VERSION


@pytest.fixture(scope="session")
def released(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """A release of eight records that has not run (``written``), that has run as ``night-1`` (``drawn``), and that was
    then published (``published``).
    """
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("released")))
    states = States(lake)
    lake.write(corpus(8))
    states.keep("written")
    states.report = lake.run(run_id="night-1")
    states.keep("drawn")
    lake.release()
    states.keep("published")
    return states


@pytest.fixture
def lake(states: States) -> Lake:
    """The release of a module's ``states`` that has not run."""
    return states.restore("written")


@pytest.fixture
def drawn(states: States) -> Lake:
    """The same release, which has run once."""
    return states.restore("drawn")


@pytest.fixture(scope="module")
def packed(spark: Any) -> Iterator[Any]:
    """The session, which packs files by bytes."""
    with packed_session(spark) as session:
        yield session


@pytest.fixture
def newest_spark() -> None:
    """For what older versions of Spark and Delta lack: functions for SQL, statistics from values alone."""
    if VERSION < (4, 1):
        pytest.skip("needs Spark 4.1")
