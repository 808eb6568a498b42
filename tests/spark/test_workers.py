"""A session whose workers run a Python that cannot do the work is refused before anything is drawn."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from sparking import Workspace, clean_environment
from wordveil import build_bundle
from wordveil.spark.platform import workers
from wordveil.spark.platform.workers import MODULES, WorkerPython, describe_problem, require_workers
from wordveil.version import __version__

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


# As a worker of Python 3.10 sees itself where PySpark compares versions.
OLD = """
import runpy
import sys

import pyspark.worker_util


class Old:
    version_info = (3, 10, 0, "final", 0)

    def __getattr__(self, name):
        return getattr(sys, name)


pyspark.worker_util.sys = Old()
del sys.argv[1]  # -m
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def write_script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def pythons(tmp_path: Path) -> dict[str, Path]:
    """Pythons that cannot sanitise, each for another reason."""
    archives = ":".join(map(str, sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))))
    return {
        # As an environment in which nothing is installed: Spark brings PySpark along.
        "empty": write_script(
            tmp_path / "empty", f'#!/bin/sh\nPYTHONPATH={archives} exec "{sys.executable}" -S "$@"\n'
        ),
        "isolated": write_script(tmp_path / "isolated", f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n'),
        "old": write_script(
            tmp_path / "old",
            f"#!{sys.executable}\n{OLD}",
        ),
        "none": tmp_path / "none",
    }


SCRIPT = """
import json, os, sys
from pyspark.sql import SparkSession
from wordveil import Run, WordveilError, register, sanitise
from wordveil.spark.platform.workers import require_workers

settings = json.loads(sys.argv[1])
os.environ["PYSPARK_PYTHON"] = settings["pythons"]["empty"]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame([("a", "x y")], "id string, body string")
common = {"bundle": settings["bundle"], "policy": {"n_max": 8}}

def refusal(use):
    run = Run.recorded(release="tests", run_log_dir=settings["runs"], key_file=settings["key"])
    try:
        use(run)
    except WordveilError as error:
        return f"{type(error).__name__}: {error}"

found = {}
for name, path in settings["pythons"].items():
    spark.sparkContext.pythonExec = path
    found[name] = refusal(lambda run: sanitise(frame, run=run, id="id", text="body", **common))
found["register"] = refusal(lambda run: register(spark, run=run, **common))
found["recorded"] = os.path.exists(settings["runs"])

spark.sparkContext.pythonExec = sys.executable
require_workers(spark.sparkContext)
jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
require_workers(spark.sparkContext)
found["asked again"] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) - jobs
rows = sanitise(frame, run=Run.throwaway(), id="id", text="body", **common).collect()
found["status"] = [row.status for row in rows]
print(json.dumps(found))
"""


def test_workers_that_cannot_sanitise_are_found_before_anything_is_drawn(workspace: Workspace, pythons):
    bundle = build_bundle(workspace.config())
    settings = {
        "pythons": {name: str(path) for name, path in pythons.items()},
        "bundle": str(bundle.path),
        "runs": str(workspace.root / "runs"),
        "key": str(workspace.root / "key"),
    }
    command = [sys.executable, "-c", SCRIPT, json.dumps(settings)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=clean_environment(), cwd=workspace.root
    )
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for name, path in pythons.items():
        assert found[name].startswith(f"PlatformError: Spark's workers run {'' if name == 'empty' else path}"), found
        assert f"Set PYSPARK_PYTHON={sys.executable}" in found[name]
        assert "\n" not in found[name]
    assert f"(Python {HERE}), which cannot import {', '.join(MODULES[:-1])} and {MODULES[-1]}." in found["empty"]
    assert "which cannot import pyspark." in found["isolated"]
    assert f"(Python 3.10), and the driver runs Python {HERE}." in found["old"]
    assert "which does not start." in found["none"]
    assert found["register"] == found["none"]
    assert found["recorded"] is False
    assert found["asked again"] == 0
    assert found["status"] == ["released"]


def test_a_worker_that_fits_is_no_problem():
    good = WorkerPython("/env/bin/python", HERE, __version__, ())
    assert describe_problem(good) == ""


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        (("/usr/bin/python3", "3.10", __version__, ()), rf"\(Python 3\.10\), and the driver runs Python {HERE}\. Set"),
        (("/usr/bin/python3", HERE, "", ("wordveil",)), "which cannot import wordveil. Set PYSPARK_PYTHON="),
        (("/usr/bin/python3", HERE, __version__, ("numba", "scipy")), "which cannot import numba and scipy. Set"),
        (
            ("/usr/bin/python3", HERE, "0.0.1", ()),
            rf"imports wordveil 0\.0\.1, and the driver imports wordveil {__version__}",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_the_fix(worker, message):
    assert re.search(message, describe_problem(WorkerPython(*worker)))


def test_a_session_that_passed_is_not_asked_again(spark, monkeypatch: pytest.MonkeyPatch):
    context = spark.sparkContext
    require_workers(context)
    asked = []
    monkeypatch.setattr(workers, "_ask_worker", asked.append)
    require_workers(context)
    assert asked == []
    monkeypatch.setattr(context, "pythonExec", "/another/python")
    monkeypatch.setattr(
        workers, "_ask_worker", lambda _: asked.append(1) or WorkerPython("/another/python", HERE, __version__, ())
    )
    require_workers(context)
    assert asked == [1]


def test_sessions_of_wordveil_run_their_workers_with_this_python(spark):
    assert spark.sparkContext.pythonExec == os.environ["PYSPARK_PYTHON"]
