"""Jobs and nights in a session that encrypts nothing and keeps all that it writes to scratch: ``open_nights.py
DIRECTORY KINDS...``.

The directory's configurations as jobs at debug level, each of these kinds of nights, first and later, and a job that
is killed. Prints as JSON the files of scratch in which a planted word stands, the number of those with a planted id,
and what is said of a table that has statistics of its texts.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from support.releases import Lake
from support.workspaces import SMALL, WORDS, Workspace, delta_jars
from wordveil.cli.app import main
from wordveil.config.schema import SparkSection
from wordveil.errors import PlatformError
from wordveil.spark.platform.jvm import java_class
from wordveil.spark.platform.session import ENCRYPTION, build_session
from wordveil.spark.release.night import run_night
from wordveil.spark.release.run import run_release
from wordveil.spark.release.stream import run_stream

WORD, ID = "zqxcanary", "zqxid"
SLICE = {"where": "day = 'd0'"}
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "feed": ({"changes": "feed"}, {}),
    "slice": ({"changes": "feed", **SLICE}, {}),
    "scan": ({"changes": "scan"}, {}),
    "full": ({"changes": "scan"}, {"full_snapshot": True}),
}
OPTIONS = {
    **SMALL,
    **dict.fromkeys(ENCRYPTION, "false"),
    **dict.fromkeys((f"spark.{part}.compress" for part in ("shuffle", "shuffle.spill", "broadcast", "rdd")), "false"),
    "spark.cleaner.referenceTracking": "false",
}


def add(path: Path, rows: list[tuple[str, str]], *, hidden: bool = True) -> None:
    """Append records with planted words without Spark; ``hidden``: without statistics of the texts."""
    names, texts = zip(*rows, strict=True)
    table = {"id": [f"{ID}{name}" for name in names], "body": [f"{WORD}{text} {WORDS[0]}" for text in texts]}
    same = {name: [value] * len(rows) for name, value in (("day", "d0"), ("author", "a"))}
    properties = {"delta.enableChangeDataFeed": "true"} | ({"delta.dataSkippingStatsColumns": "id"} if hidden else {})
    write_deltalake(path, pa.table({**table, **same}), mode="append", configuration=properties)


def follow(lake: Lake, config: Any, options: dict[str, Any], *, is_short: bool) -> None:
    """A run of one kind, a night after changes, and, unless it is to be short, one over other budgets."""
    add(lake.input, [(str(number), f"first{number}") for number in range(6)])
    run_release(config(), lambda: lake.spark, **options)
    lake.update(f"id = '{ID}1'", body=f"{WORD}edited")
    lake.update(f"id = '{ID}2'", body=f"{WORD}moved", day="d1")
    lake.delete(f"id = '{ID}3'")
    add(lake.input, [("9", "new"), ("4", "repeated")])
    run_night(config(), lambda: lake.spark, **options)
    if is_short:
        return
    budgets = {"unit": "pure", "relation": "any_text", "record": 1e9, "delta": 0.9, "on_exceeded": "keep_last"}
    run_night(config(budgets=budgets), lambda: lake.spark, **options)


def stream(lake: Lake) -> None:
    """Batches of a stream, the last after its checkpoint was lost."""
    source, checkpoint = lake.root / "source", lake.root / "checkpoint"
    config = lake.config(input={"changes": "feed"}, stream={"path": str(source), "checkpoint": str(checkpoint)})
    for number in range(2):
        add(source, [(f"s{number}", f"streamed{number}")])
        run_stream(config, lambda: lake.spark)
        shutil.rmtree(checkpoint)


LOG = """\
logger.all.name = org
logger.all.level = debug
logger.delta.name = io
logger.delta.level = debug
rootLogger.level = debug
rootLogger.appenderRef.e.ref = e
appender.e.type = Console
appender.e.name = e
appender.e.target = SYSTEM_ERR
appender.e.layout.type = PatternLayout
appender.e.layout.pattern = %p %c: %m%n%ex
"""
"""Spark holds back what only the root logger asks for, as in a shell."""


def log_all(root: Path) -> dict[str, str]:
    """Options of a session that prints at debug level and writes an event log."""
    (root / "events").mkdir()
    (log := root / "log4j2.properties").write_text(LOG)
    return {
        "spark.log.level": "DEBUG",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{root / 'events'}",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log}",
    }


def run_jobs(spark: Any, root: Path) -> None:
    """Run the configurations. The log, in which nights would take long, is off afterwards."""
    for config in sorted(root.glob("job-*.yaml")):
        try:
            main(["sanitise", "--config", str(config), "--debug"])
        except SystemExit as end:
            if end.code:
                raise
    error = java_class(spark, "org.apache.logging.log4j.Level").ERROR
    for name in ("org", "io"):
        java_class(spark, "org.apache.logging.log4j.core.config.Configurator").setLevel(name, error)


def message_of(action: Callable[[], object]) -> str:
    try:
        action()
    except PlatformError as error:
        return str(error)
    return ""


def work() -> None:
    root = Path(sys.argv[1])
    options = {**OPTIONS, "spark.local.dir": str(root / "scratch"), "spark.driver.memory": "2g"}
    if "jobs" in sys.argv:
        options |= log_all(root)
    section = SparkSection(master="local[2]", delta_jars=str(delta_jars()), options=options)
    spark = build_session(section, delta=True)
    known: set[Path] = set()
    found: dict[str, Any] = {}

    def look(kind: str) -> None:
        files = {path for path in (root / "scratch").rglob("*") if path.is_file()} - known
        known.update(files)
        held = {path: path.read_bytes() for path in files}
        words = [path.name for path, content in held.items() if WORD.encode() in content]
        found[kind] = {"words": words, "ids": sum(ID.encode() in content for content in held.values())}

    for kind in sys.argv[2:]:
        if kind == "killed":
            break
        if kind == "jobs":
            run_jobs(spark, root)
            look(kind)
            continue
        (home := root / kind).mkdir()
        lake = Lake(spark, Workspace(home))
        if kind == "stream":
            stream(lake)
        elif kind == "refused":
            add(lake.input, [("1", "seen")], hidden=False)
            found["message"] = message_of(lambda lake=lake: lake.run())
        else:
            given, options_of_kind = KINDS[kind]
            config = lambda lake=lake, given=given, **more: lake.config(input=given, **more)
            follow(lake, config, options_of_kind, is_short=kind == "feed")
        look(kind)
    print(json.dumps(found), flush=True)
    if "killed" in sys.argv:
        main(["sanitise", "--config", str(root / "killed.yaml")])


if __name__ == "__main__":
    work()
