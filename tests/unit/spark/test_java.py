"""Which Java and which sessions may start Spark; and its log, which stays where a message has named it alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from support.repository import ROOT
from wordveil.config.schema import SparkSection
from wordveil.errors import PlatformError
from wordveil.input.locations import cache_directory
from wordveil.spark.platform import jvm, session
from wordveil.spark.platform.jvm import check_java, check_user, start_java

CODE = """
import sys
from wordveil.spark.platform.jvm import java_log
with java_log.open() as stream:
    stream.write(b"WARNING: Using incubator modules\\nout of memory\\n")
print(java_log.last_lines())
if sys.argv[1] == "named":
    print(java_log.name())
"""


@pytest.mark.parametrize("kind", ["named", "unnamed"])
def test_a_log_that_no_message_names_is_deleted_when_python_ends(tmp_path: Path, kind: str):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, kind], capture_output=True, text=True, check=True, env=environment
    )
    left = list(tmp_path.glob("wordveil-*"))
    assert done.stdout.splitlines() == ["out of memory", *map(str, left)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in left] == ([0o600] if kind == "named" else [])


@pytest.mark.parametrize(
    ("version", "fits"), [("11.0.27", False), ("17.0.15", True), ("21.0.8", True), ("25.0.2", False)]
)
def test_a_java_that_spark_does_not_run_on_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = subprocess.run([ROOT / "scripts" / "prerequisites.sh", "java"], capture_output=True, text=True, check=False)
    if fits:
        check_java()
        assert (done.returncode, done.stderr) == (0, "")
    else:
        with pytest.raises(
            PlatformError, match=rf"java is Java {version[:2]}, and Spark needs Java 17 to 22\. Install "
        ):
            check_java()
        assert done.returncode == 1
        assert f"Spark needs Java 17 to 22, found '{version[:2]}'" in done.stderr


def test_user_without_name_is_told_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    check_user()
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    with pytest.raises(PlatformError, match=r"987654 has no entry in /etc/passwd.*echo 'spark:x:987654:"):
        check_user()
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(PlatformError, match=r"987654 has no home directory. Set HOME or XDG_CACHE_HOME"):
        cache_directory()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"LC_ALL": "C"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({}, "C.UTF-8"),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, "de_DE.UTF-8"),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, None),
    ],
)
def test_java_starts_in_a_locale_that_names_any_file(monkeypatch: pytest.MonkeyPatch, given, expected):
    started = []

    def launch(*_: object) -> None:
        started.append(os.environ.get("LC_ALL"))
        raise RuntimeError

    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(jvm, "launch_gateway", launch)
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    with pytest.raises(RuntimeError):
        start_java({}, is_logged=False)
    assert started == [expected]
    assert os.environ.get("LC_ALL") == given.get("LC_ALL")


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
