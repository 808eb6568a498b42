"""A session in a process that spark-submit started."""

from __future__ import annotations

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
