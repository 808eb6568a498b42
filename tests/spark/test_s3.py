"""Releases on S3: one of many writers creates a commit, no commit of two drivers is lost, and a store on which that
does not hold is refused. Outputs in Parquet there: half of one is not taken for a whole one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyarrow.fs import FileSystem, copy_files

from support import object_store
from support.releases import DiedError, Lake, States, corpus_with_authors, die_after
from support.workspaces import clean_environment, corpus
from wordveil.assembly.bundles import find_bundle
from wordveil.config.load import Config
from wordveil.config.schema import LedgerSection, OutputSection, ReleaseHome
from wordveil.errors import ConfigError, InputError, OutputExistsError, SparkJobError
from wordveil.release.lake_table import LakeTable
from wordveil.release.verify import verify_table
from wordveil.spark.platform import locks
from wordveil.spark.platform.delta import CLASS, require_exclusive_commits
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class
from wordveil.spark.platform.output import MARKER, Draft, list_drafts, require_complete
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release.maintenance import show
from wordveil.spark.release.tables import Release
from wordveil.spark.release.verify import verify_by_spark
from wordveil.spark.sanitise.job import INTERNAL_NOTE, run_sanitise

pytestmark = pytest.mark.skipif(object_store.missing() is not None, reason=str(object_store.missing()))

WRITERS = 8
NIGHTS = 20
# Another driver: it starts to write when it is told to.
DRIVER = """
import json, sys
from support import object_store
from support.workspaces import SMALL
from wordveil.config.load import parse_config
from wordveil.config.schema import SparkSection
from wordveil.spark.platform.session import build_session
from wordveil.spark.release.run import run_release
endpoint, *what = sys.argv[1:]
hadoop = {f"spark.hadoop.{name}": value for name, value in object_store.options(endpoint).items()}
section = SparkSection(master="local[1]", s3=True, options={**SMALL, **hadoop})
spark = build_session(section, delta=True)
spark.range(1).count()
print("ready", flush=True)
for line in sys.stdin:
"""
APPEND = DRIVER + '    object_store.append(spark, what[0], "theirs", int(what[1]))'
RUN = (
    DRIVER
    + """
    run_release(parse_config(json.loads(what[0]), 'theirs'), lambda: spark, run_id=line.strip())
    print("ran", flush=True)
"""
)


@pytest.fixture(scope="module")
def endpoint(spark: Any) -> Iterator[str]:
    with object_store.serve() as address:
        object_store.connect(spark, address)
        yield address


def commit(spark: Any, path: Any, content: str) -> bool:
    """Commit once through the log store. False where another commit has the path."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    actions = java_class(spark, "java.util.ArrayList")()
    actions.add(content)
    try:
        java_class(spark, CLASS)(conf).write(path, actions.iterator(), False, conf)
    except Py4JJavaError as error:
        assert error.java_exception.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
        return False
    return True


def race(spark: Any, bucket: str, rounds: int) -> list[list[str]]:
    """Who of several writers committed, in each round; all write at once."""
    names = [f"writer-{number}" for number in range(WRITERS)]
    winners = []
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(rounds):
            file = Files(spark, f"s3a://{bucket}/race-{rounds}/{number}.json")
            wrote = pool.map(lambda name, path=file.path: commit(spark, path, name), names)
            winners.append([name for name, won in zip(names, wrote, strict=True) if won])
            assert file.read().strip() in winners[-1]
    return winners


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.long)])
def test_of_many_writers_one_commits(spark: Any, endpoint: str, rounds: int):
    assert {len(names) for names in race(spark, "lake", rounds)} == {1}
    assert {len(names) for names in race(spark, "ignores-conditions", 1)} == {WRITERS}, "the race can be lost"


def test_a_commit_whose_answer_was_lost_is_no_conflict(spark: Any, endpoint: str):
    """The client sends it again, and the store refuses it because it is there."""
    file = Files(spark, "s3a://lake/lost/0.json")
    assert commit(spark, file.path, "ours")
    assert commit(spark, file.path, "ours")
    assert not commit(spark, file.path, "theirs")
    assert file.read() == "ours\n"


@contextmanager
def start_driver(program: str, *arguments: str) -> Iterator[Any]:
    """A driver that is ready."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**clean_environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, text=True, env=environment, bufsize=1, **pipes) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n", driver.communicate()[1]
        yield driver


@pytest.mark.long
def test_two_drivers_lose_no_commit(spark: Any, endpoint: str):
    commits, path = 60, "s3a://lake/shared"
    spark.range(0).selectExpr("'' AS writer", "id").write.format("delta").save(path)
    with start_driver(APPEND, endpoint, path, str(commits)) as other:
        other.stdin.write("go\n")
        other.stdin.close()
        object_store.append(spark, path, "ours", commits)
        assert (other.wait(timeout=120), other.stderr.read()) == (0, "")
    rows = spark.read.format("delta").load(path).groupBy("writer").count().collect()
    assert {row["writer"]: row["count"] for row in rows} == {"ours": commits, "theirs": commits}
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy("version").collect()
    writers = [row["userMetadata"] for row in history[1:]]
    assert len(writers) == 2 * commits
    assert writers not in (sorted(writers), sorted(writers, reverse=True)), "they wrote at the same time"


def place(
    lake: Lake, bucket: str, directory: str, author: str | None = "author", name: str = "support", **more: Any
) -> Config:
    """The lake's configuration with its tables on S3. ``name``: the release."""
    home = f"s3a://{bucket}/{directory}"
    return lake.config(
        release=name,
        input={"path": f"{home}/input", "author": author},
        output={"path": f"{home}/{name}", "public": f"{home}/shown"},
        ledger={"path": f"{home}/ledger"},
        **more,
    )


def rows(spark: Any, path: Any) -> list[tuple[Any, ...]]:
    """The rows of a Delta table, but for the identifiers of tables."""
    return sorted(map(tuple, spark.read.format("delta").load(str(path)).drop("tables").collect()), key=str)


def write_by_spark(spark: Any, table: pa.Table, path: str, mode: str = "append") -> None:
    """Add the table's rows to a Delta table on a store, or put them in place of its rows."""
    from_arrow(spark, table).write.format("delta").mode(mode).save(path)


def test_a_release_on_s3_is_the_release_on_a_disk(released: States, endpoint: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in object_store.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    lake = released.restore("published")
    public = {"mechanism": {"embedding": "s3a://lake/night/vectors"}, "bundle_store": "s3a://lake/night/bundles"}
    spark, here, there = lake.spark, lake.config(), place(lake, "lake", "night", None, **public)
    write_by_spark(spark, corpus(8), there.input.path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(lake.root / "cache"))
    store, root = FileSystem.from_uri("s3://lake/night")
    copy_files(here.mechanism.embedding, f"{root}/vectors", destination_filesystem=store)
    assert lake.run(there, run_id="night-1").released == 8
    lake.release(there)
    for name, ours in (("support/draws", "release/draws"), ("shown", "release/public"), ("ledger", "ledger")):
        found = rows(spark, f"s3a://lake/night/{name}")
        assert len(found) >= 8, name
        assert found == rows(spark, lake.root / ours), name
    shown = show(there.home, lambda: spark)
    assert shown["records"] == show(here.home, lambda: spark)["records"] == {"released": 8}
    verified = verify_by_spark(spark, "s3a://lake/night/shown")
    assert verified.manifest.snapshot.records == 8
    assert verify_table(LakeTable("s3a://lake/night/shown"), None, None, 0).manifest == verified.manifest
    left = [name for name in Files(spark, "s3a://lake/").list_files() if "probe" in name or ".lease-" in name]
    assert left == []
    bundles = Files(spark, "s3a://lake/night/bundles").list_files()
    assert {name.partition("/")[0] for name in bundles} == {find_bundle(there).fingerprint}


def test_a_run_waits_for_another_and_not_for_one_that_has_died(
    spark: Any, endpoint: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locks, "_LEASE_SECONDS", 0.5)
    monkeypatch.setattr(locks, "_LEASE_POLL_SECONDS", 0.05)
    output, ledger = OutputSection(path="s3a://lake/shared-release"), LedgerSection(path="s3a://lake/l")
    tables = Release(spark, ReleaseHome("support", "id", output, ledger))
    file = Files(spark, "s3a://lake/shared-release/.release.lease-7")
    events: list[str] = []

    def work(name: str) -> None:
        with tables.locked(lambda: events.append(f"{name} waits")) as is_exclusive:
            assert not is_exclusive, "a lease can be lost"
            events.append(f"{name} begins")
            time.sleep(1.2)
            events.append(f"{name} ends")

    file.write_new("")  # of a process that was killed
    work("first")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ("second", "third")))
    first, then = events[:3], events[3:]
    assert first == ["first waits", "first begins", "first ends"]
    assert sorted(event.split()[1] for event in then[:2]) == ["begins", "waits"]
    earlier, later = (name for name, what in map(str.split, then) if what == "begins")
    assert then[2:] == [f"{earlier} ends", f"{later} begins", f"{later} ends"]
    assert file.list_beside(".release.lease-") == []


@pytest.mark.long
def test_nights_on_s3_that_die_are_those_of_a_disk(released: States, endpoint: str):
    """Each night a process dies after one of its commits, and another one finishes."""
    lake = released.restore("written")
    spark = lake.spark
    there, here = place(lake, "lake", "nights"), lake.config(input={"author": "author"})
    for night in range(NIGHTS):
        added = corpus_with_authors(3 * night + 4, seed=night).slice(2 * night)
        lake.write(added, mode="overwrite")
        write_by_spark(spark, added, there.input.path, mode="overwrite" if night else "append")
        assert lake.run(here, run_id=f"night-{night}").released >= 4
        with die_after(1 + night % 5):
            lake.run(there, run_id=f"night-{night}")
        lake.forget()
        lake.run(there, run_id=f"night-{night}")
    lake.release(here)
    lake.release(there)
    for name, ours in (("support/draws", "release/draws"), ("shown", "release/public"), ("ledger", "ledger")):
        assert rows(spark, f"s3a://lake/nights/{name}") == rows(spark, lake.root / ours), name


@pytest.mark.long
def test_two_releases_on_one_ledger_lose_no_charge(released: States, endpoint: str):
    """Each night both run at once, in two processes."""
    lake = released.restore("written")
    spark, names = lake.spark, ("ours", "theirs")
    ours, theirs = (place(lake, "lake", "two", name=name) for name in names)
    alone = [
        lake.config(release=name, input={"author": "author"}, output={"path": str(lake.root / name)}) for name in names
    ]
    with start_driver(RUN, endpoint, theirs.model_dump_json(exclude_unset=True)) as other:
        for night in range(NIGHTS):
            records = corpus_with_authors(3 * night + 4, seed=night).slice(2 * night)
            lake.write(records, mode="overwrite")
            write_by_spark(spark, records, ours.input.path, mode="overwrite" if night else "append")
            other.stdin.write(f"night-{night}\n")
            lake.run(ours, run_id=f"night-{night}")
            assert other.stdout.readline() == "ran\n", other.communicate()[1]
            for config in alone:
                lake.run(config, run_id=f"night-{night}")
        other.stdin.close()
    assert rows(spark, "s3a://lake/two/ledger") == rows(spark, lake.ledger)


def test_a_parquet_output_says_that_it_is_complete(released: States, endpoint: str, monkeypatch: pytest.MonkeyPatch):
    """A rename copies file by file: where a process dies in it, half an output has the final name."""
    lake = released.restore("written")
    spark, path = lake.spark, "s3a://lake/jobs/out"
    config = lake.workspace.config(input={"path": str(lake.input), "format": "delta"}, output={"path": path})
    files = Files(spark, path)
    run_sanitise(config, lambda: spark, run_id="first")
    marker = json.loads(files.read(files.below(MARKER)))
    assert marker["run_id"] == "first"
    assert marker["files"]
    assert {**marker["files"], MARKER: files.list_files()[MARKER]} == files.list_files()
    assert spark.read.parquet(path).count() == 8
    require_complete(files)
    for wrote in ("other.parquet", MARKER):
        Files(spark, f"{path}/{wrote}").write("{}")
        with pytest.raises(InputError, match=f"its files are not those that its {MARKER} lists"):
            require_complete(files)

    with pytest.raises(OutputExistsError, match="or has files of two runs"):
        Draft(files, files.path, "second")._mark({})
    files.delete(files.path)
    with monkeypatch.context() as patch:
        patch.setattr(Draft, "discard", lambda _: None)
        patch.setattr(Files, "move", lambda *_: (_ for _ in ()).throw(DiedError))
        with pytest.raises(DiedError):
            run_sanitise(config, lambda: spark, run_id="killed")
    (draft,) = list_drafts(files)
    name = next(iter(Files(spark, draft).list_files()))
    Files(spark, f"{path}/{name}").write("part")
    with pytest.raises(OutputExistsError, match=f"it has no {MARKER}.* or was killed; {draft} has the rest"):
        run_sanitise(config, lambda: spark)
    assert ".out.wordveil-killed-" in draft
    with pytest.raises(InputError, match="Wait for the run, or write the output again"):
        require_complete(files)
    report = run_sanitise(config, lambda: spark, overwrite=True)
    require_complete(files)
    assert report.notes == (
        f"{draft} is the draft of a run. If no run is writing it, an interrupted run left it: delete it",
        INTERNAL_NOTE,
    )


def test_a_store_that_ignores_conditions_is_refused_by_name(released: States, endpoint: str):
    lake = released.restore("written")
    with pytest.raises(ConfigError) as caught:
        lake.run(place(lake, "ignores-conditions", "night"))
    assert [fault.where for fault in caught.value.faults] == ["output.path", "ledger.path", "output.public"]
    assert all("ignores conditional writes" in fault.problem for fault in caught.value.faults)
    assert "output.writers: one" in str(caught.value)
    assert Files(lake.spark, "s3a://ignores-conditions/night/support").list_files() == {}
    paths = {"ledger.path": "s3a://ignores-conditions/ledger"}
    require_exclusive_commits(lake.spark, paths, is_only_writer=True)


@pytest.mark.long
def test_a_bucket_that_is_not_there_is_refused_by_name(released: States, endpoint: str):
    lake = released.restore("written")
    spark = lake.spark
    with pytest.raises(ConfigError, match=r"ledger\.path = s3a://nowhere/l: cannot be written \(org\.") as caught:
        require_exclusive_commits(spark, {"ledger.path": "s3a://nowhere/l"}, is_only_writer=False)
    assert "output.writers" not in str(caught.value)
    unprobed = place(lake, "nowhere", "night")
    output = unprobed.output.model_copy(update={"writers": "one"})
    with pytest.raises(SparkJobError, match="the same command can be run again"):
        lake.run(unprobed.model_copy(update={"output": output}))
