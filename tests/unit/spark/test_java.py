"""Which Java may start Spark; and its log, which stays where a message has named it, and nowhere else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT
from wordveil.errors import PlatformError
from wordveil.spark.platform.jvm import check_java

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
