"""A session beside what runs already: spark-submit, or a session of Spark Connect."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from wordveil.config.schema import SparkSection
from wordveil.errors import PlatformError
from wordveil.spark.platform import session


def test_two_masters_are_refused(monkeypatch: pytest.MonkeyPatch):
    """Before anything is started."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "_submitted_options", lambda: {"spark.master": "local[1]"})
    with pytest.raises(
        PlatformError, match=r"spark\.master = local\[2\]: spark-submit was given --master local\[1\]\. Remove one"
    ) as refused:
        session.build_session(SparkSection(master="local[2]"))
    assert refused.value.exit_code == 7


def test_a_running_session_of_connect_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: SimpleNamespace(conf=None))
    with pytest.raises(PlatformError, match=r"Spark Connect sessions are not supported.* Use a classic session\.$"):
        session.build_session(SparkSection())
