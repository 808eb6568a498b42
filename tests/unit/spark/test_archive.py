"""The archive of Spark's classes: made once, and read from then on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wordveil.spark.platform.jvm import find_archive, make_archive, read_archive


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, with a Java beside it."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    return tmp_path / "the cache"


def test_an_archive_is_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch):
    archive = find_archive()
    assert archive is not None
    assert read_archive() == ""
    assert make_archive()
    assert os.environ["SPARK_SUBMIT_OPTS"] == f'-Dmine=1 "-XX:ArchiveClassesAtExit={archive}" -Xlog:disable'
    assert archive.parent.stat().st_mode & 0o77 == 0
    archive.touch()
    assert read_archive() == "", "another process wrote it meanwhile; Java ends if it is to read and write one file"
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "")
    assert read_archive() == f'"-XX:SharedArchiveFile={archive}" -Xlog:disable'
    assert not make_archive()
    assert os.environ["SPARK_SUBMIT_OPTS"] == ""


def test_another_java_has_another_archive(cache: Path, tmp_path: Path):
    first = find_archive()
    (tmp_path / "jdk" / "bin" / "java").unlink()
    assert find_archive() is None
    assert read_archive() == ""
    make_archive()
    (tmp_path / "jdk" / "bin" / "java").write_text("newer")
    assert find_archive() != first


def test_a_cache_that_cannot_be_written_does_no_harm(cache: Path):
    cache.write_text("no directory")
    assert not make_archive()
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dmine=1"
