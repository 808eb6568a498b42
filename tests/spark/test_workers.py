"""A session whose workers run a Python that cannot do the work is refused before anything is drawn."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from weakref import WeakKeyDictionary

import pyspark
import pytest

from support.workspaces import Workspace
from wordveil import Run, build_bundle, register, sanitise
from wordveil.errors import PlatformError
from wordveil.spark.platform import workers
from wordveil.spark.platform.jvm import java_class
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
        "old": write_script(tmp_path / "old", f"#!{sys.executable}\n{OLD}"),
        "none": tmp_path / "none",
    }


@pytest.mark.usefixtures("newest_spark")
def test_workers_that_cannot_sanitise_are_found_before_any_draw(
    spark, workspace: Workspace, pythons, monkeypatch: pytest.MonkeyPatch
):
    frame = spark.createDataFrame([("a", "x y")], "id string, body string")
    options = {"bundle": build_bundle(workspace.config()), "policy": {"n_max": 8}}
    recorded = {
        "release": "tests",
        "run_log_dir": str(workspace.root / "runs"),
        "key_file": str(workspace.root / "key"),
    }
    found = {}
    # As in a session that wordveil did not start.
    settings = java_class(spark, "org.apache.spark.SparkEnv").get().conf()
    daemon = settings.get("spark.python.daemon.module")
    with monkeypatch.context() as patch:
        settings.remove("spark.python.daemon.module")
        for name, path in pythons.items():
            patch.setattr(spark.sparkContext, "pythonExec", str(path))
            with pytest.raises(PlatformError) as refused:
                sanitise(frame, run=Run.recorded(**recorded), id="id", text="body", own_rows=True, **options)
            found[name] = str(refused.value)
        with pytest.raises(PlatformError, match=re.escape(found["none"])):
            register(spark, run=Run.recorded(**recorded), **options)
        settings.set("spark.python.daemon.module", daemon)
        # The daemon of a session of wordveil's imports it itself.
        patch.setattr(spark.sparkContext, "pythonExec", str(pythons["empty"]))
        with pytest.raises(PlatformError, match="which cannot import wordveil"):
            require_workers(spark)
    assert not (workspace.root / "runs").exists()
    for name, path in pythons.items():
        assert found[name].startswith(f"Spark's workers run {'' if name == 'empty' else path}"), found
        assert f"Set PYSPARK_PYTHON={sys.executable}" in found[name]
        assert "\n" not in found[name]
    assert f"(Python {HERE}), which cannot import {', '.join(MODULES[:-1])} and {MODULES[-1]}." in found["empty"]
    assert "which cannot import pyspark." in found["isolated"]
    assert f"(Python 3.10), and this process runs Python {HERE}." in found["old"]
    assert "which does not start." in found["none"]
    monkeypatch.setattr(workers, "_checked", WeakKeyDictionary())
    rows = sanitise(frame, run=Run.throwaway(), id="id", text="body", own_rows=True, **options).collect()
    assert [row.status for row in rows] == ["released"]


def test_a_worker_with_another_wordveil_does_not_fit():
    assert describe_problem(WorkerPython("/env/bin/python", HERE, __version__, ())) == ""
    said = describe_problem(WorkerPython("/env/bin/python", HERE, "0.0.1", ("numba", "scipy")))
    assert "which cannot import numba and scipy. Set PYSPARK_PYTHON=" in said
    said = describe_problem(WorkerPython("/env/bin/python", HERE, "0.0.1", ()))
    assert f"imports wordveil 0.0.1, and this process imports wordveil {__version__}" in said


def test_a_session_that_passed_is_not_asked_again(spark, monkeypatch: pytest.MonkeyPatch):
    require_workers(spark)
    asked = []
    monkeypatch.setattr(workers, "_ask_worker", asked.append)
    require_workers(spark)
    assert asked == []
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/another/python")
    monkeypatch.setattr(
        workers, "_ask_worker", lambda _: asked.append(1) or WorkerPython("/another/python", HERE, __version__, ())
    )
    require_workers(spark)
    assert asked == [1]
