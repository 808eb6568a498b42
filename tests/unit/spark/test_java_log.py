"""The log of Spark's Java process stays where a message has named it, and nowhere else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

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
