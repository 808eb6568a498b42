"""Sessions of commands."""

from __future__ import annotations

import atexit
import signal
from pathlib import Path
from typing import Any

import pytest

from wordveil.cli.options import prepare_plain_session
from wordveil.spark.platform import session


@pytest.mark.parametrize("has_table", [False, True])
def test_spark_s_own_directory_goes_at_the_end_if_it_is_empty(tmp_path: Path, monkeypatch: Any, has_table: bool):
    ends: list[Any] = []
    made = tmp_path / "spark-warehouse" / ("table" if has_table else "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atexit, "register", lambda *call: ends.append(call))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(session, "build_session", lambda *_, **__: made.mkdir(parents=True, exist_ok=True))
    start = prepare_plain_session()
    start()
    for function, *arguments in ends:
        function(*arguments)
    assert made.exists() == has_table
    made.mkdir(exist_ok=True)
    start()
    assert len(ends) == 1, "it was there before"
