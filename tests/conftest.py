"""Fixtures shared by all suites. The Spark session starts on first use: array tests alone never start a JVM."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Tests start hundreds of processes. Where Python may not write bytecode, each compiles all that it imports, which takes
# longer than its work: up to three seconds of the processor, and four in Airflow. `build` may hold it.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from typing import TYPE_CHECKING

import pytest

# pytest-xdist's first process runs no test, and others wait for it: fixtures import what they need.
if TYPE_CHECKING:
    from support.commands import Commands
    from support.workspaces import Command, Workspace

# Modules and tests live to the end: the garbage collector would look at all of them again and again, for a third of
# the time that collection takes.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on the collector looks at what tests make."""
    gc.freeze()
    gc.enable()


# What takes long begins first, so that all processes end together.
_ORDER = ("e2e", "dags", "spark", "contracts", "statistical", "unit")


@pytest.hookimpl(tryfirst=True)  # the groups must be there when tests are given out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file run in one process, unless they have another group: what the file shares is made once, and its
    loops are compiled once.

    Each process has one session of Spark, for all files that come to it. pytest-xdist gives the next group to the
    process that is free. What must not run twice at once, such as a cluster, shares a group over files: ``cluster``. So
    do files that begin with the same release: ``released``.
    """
    files = {item: item.nodeid.partition("::")[0].removesuffix(".py") for item in items}
    released = {file for item, file in files.items() if "released" in getattr(item, "fixturenames", ())}
    for item, file in files.items():
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("released" if file in released else file))
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    folders = {item: file.split("/")[1:2] for item, file in files.items()}
    items.sort(key=lambda item: next((_ORDER.index(folder) for folder in folders[item] if folder in _ORDER), 0))


# Most objects die young: a third of the memory for them spares two of three collections. With all of it from the start,
# old objects are not collected. Java's second compiler takes longer than it saves in a dozen nights, and tests run
# other code in each.
_LONG_LIVED = "-Xms2g -Xmn700m"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.{}FileSystemBasedCheckpointFileManager"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A local session as the job builds it, with Delta and an event log."""
    from support import lakes
    from support.workspaces import SMALL, TRUSTING_JAVA, compile_half, compile_loops, delta_jars
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session, fetched_s3_jars
    from wordveil.spark.platform.versions import VERSION

    # One process compiles one half of the loops before it starts Spark, and the other one the other half afterwards.
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        compile_half()
    os.environ["SPARK_SUBMIT_OPTS"] = f"{TRUSTING_JAVA} {_LONG_LIVED}"
    home = tmp_path_factory.mktemp("spark")
    (home / "events").mkdir()
    options = {
        "spark.driver.memory": "2g",
        # Pages of 32 MB, as tasks would take for a few rows, fill the memory of old objects.
        "spark.buffer.pageSize": "1m",
        # Tests of commands do without them.
        **SMALL,
        # Delta's store for any file system starts `readlink` a dozen times for each commit; this one starts nothing.
        # It is safe within one process, and no other writes at the same time where this session does.
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
        # The same of Delta's checksums: eight processes a commit.
        "spark.sql.streaming.checkpointFileManagerClass": _BY_FILE_SYSTEM.format(
            "checkpointing." if VERSION >= (4, 1) else ""
        ),
        # Delta deletes old files by ten thousand tasks otherwise.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "scratch"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "true",  # Spark 3.5 writes one file of another name
        "spark.eventLog.dir": f"file:{home / 'events'}",
        **lakes.options(home / "iceberg"),
    }
    # With S3A where it was fetched, so that the tests of object stores need no session of their own.
    has_s3 = bool(fetched_s3_jars())
    section = SparkSection(master="local[2]", delta_jars=str(delta_jars()), s3=has_s3, options=options)
    session = build_session(section, delta=True)
    compile_loops()
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An embedding, a key and a configuration in a directory of their own."""
    from support.workspaces import Workspace

    return Workspace(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """A command in this process: exit code, standard output, standard error. With ``spark`` it works in the session
    that is there.
    """
    from support.commands import keep_signals
    from wordveil.cli.app import main

    def command(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([*map(str, arguments)])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    with keep_signals():
        yield command


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """The same, held to what every command promises of its output."""
    from support.commands import Commands, keep_signals

    with keep_signals():
        yield Commands(capfd, tmp_path_factory.mktemp("report"))
