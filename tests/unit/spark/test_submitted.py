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
    with pytest.raises(PlatformError, match=r"^Spark Connect sessions serve .* in a classic session"):
        session.build_session(SparkSection())


def test_a_process_of_connect_starts_no_classic_session(monkeypatch: pytest.MonkeyPatch):
    """Nor does it become a client of the server that the environment names."""
    for name, value in {"SPARK_CONNECT_MODE_ENABLED": "1", "SPARK_REMOTE": "sc://db"}.items():
        with monkeypatch.context() as patch:
            patch.setattr(SparkSession, "getActiveSession", lambda: None)
            patch.setenv(name, value)
            with pytest.raises(PlatformError, match="without SPARK_REMOTE: `wordveil sanitise`"):
                session.build_session(SparkSection())
