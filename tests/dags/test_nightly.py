"""Nights of a release by real Airflow: what succeeds, what fails, what is retried, and what nobody may see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from support.airflow_runs import Airflow, Run, spark_conf
from support.releases import Lake, corpus_with_authors
from support.repository import ROOT
from support.workspaces import Workspace, corpus, delta_jars, read_output
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import load_config

CANARY = "zzquokkasecretzz"
DAY = "2026-11-20"
# Spark's driver is killed after its fifth commit: the draws are there, and are not settled. The next try finds the job
# itself.
_DYING = """
import os, runpy, sys
os.remove(__file__)
os.symlink({job!r}, __file__)
sys.path.insert(0, {tests!r})
sys.argv[1:] = ["5", "release", *sys.argv[1:]]
runpy.run_path({dying!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def airflow(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """One Airflow for all tests of this module; the session is there before a command is handed over."""
    airflow = Airflow(tmp_path_factory.mktemp("airflow"))
    yield airflow
    airflow.close()


def night(logical: str) -> str:
    """The logical date of a run by hand whose data interval is a day."""
    return f"{date.fromisoformat(logical) + timedelta(days=1)}T00:00:00+00:00"


def records(days: list[str], count: int = 6, seed: int = 0) -> pa.Table:
    """A few records a day, with an author of its own."""
    table = corpus_with_authors(count * len(days), seed)
    column = [days[number // count] for number in range(count * len(days))]
    table = table.set_column(table.schema.get_field_index("day"), "day", pa.array(column))
    return table.set_column(
        table.schema.get_field_index("author"), "author", pa.array([f"author of {day}" for day in column])
    )


def write_config(lake: Lake, *, key_env: str | None = None, **sections: Any) -> Path:
    """The release's configuration as a file."""
    base = {
        "release": "support",
        "input": {"path": str(lake.input), "format": "delta", "author": "author", "where": "day = :ds"},
        "output": {"path": str(lake.home), "format": "delta"},
        "ledger": {"path": str(lake.ledger)},
        "gate": {"min_records": 1, "quarantine_rate": 0.5},
        "spark": {"master": None, "delta_jars": str(delta_jars())},
    }
    for name, value in sections.items():
        base[name] = {**base.get(name, {}), **value}
    settings = lake.workspace.settings(**base)
    if key_env:
        settings["key"] = {"env": key_env}
    path = lake.root / "release.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def lake_at(spark: Any, root: Path) -> Lake:
    root.mkdir()
    return Lake(spark, Workspace(root))


def relay_settings(airflow: Airflow, config: Path, **more: Any) -> dict[str, Any]:
    """Settings of a release's DAGs whose commands run in this process."""
    return {"config": str(config), "spark_submit": str(airflow.relay), **more}


@pytest.mark.long
def test_night_with_killed_driver_is_published_and_analysed(spark: Any, airflow: Airflow, tmp_path: Path):
    table = records([DAY, "2026-11-21"])
    texts = [f"{CANARY} {text}" for text in table["body"].to_pylist()]
    table = table.set_column(table.schema.get_field_index("body"), "body", pa.array(texts))
    killed, twin = lake_at(spark, tmp_path / "killed"), lake_at(spark, tmp_path / "twin")
    for lake in (killed, twin):
        lake.write(table, feed=False)
    key = (twin.root / "key").read_text()
    config = write_config(killed, key_env="WORDVEIL_KEY")

    jobs = tmp_path / "jobs"
    jobs.mkdir()
    job = str(ROOT / "jobs" / "release.py")
    dying = _DYING.format(
        tests=str(ROOT / "tests"), dying=str(ROOT / "tests" / "support" / "killed_command.py"), job=job
    )
    (jobs / "release.py").write_text(dying)
    settings = relay_settings(airflow, config, jobs=str(jobs), key_conn_id="wordveil_key", spark_conf=spark_conf())
    secret = {"AIRFLOW_CONN_WORDVEIL_KEY": json.dumps({"conn_type": "generic", "password": key})}
    run = airflow.run("sanitise_killed", settings, logical_date=night(DAY), environment=secret)
    assert run.tasks == {"night": ["success", 2]}, run.log[-6000:]
    assert run.state == "success"
    assert run.interval[0].startswith(DAY)
    assert [command[:2] for command in run.commands] == [["release", "night"]], "and the one that was killed"
    assert airflow.keys == [key], "who submits has it by the environment"

    # The same rows and the same ledger as a run that nobody disturbed.
    twin.run(load_config(write_config(twin)), params={"ds": DAY}, run_id="undisturbed")
    found = run.xcom["night.return_value"]
    name = found["sanitise"]["run_id"]
    assert name.startswith("sanitise_killed-manual")
    assert {row["run_id"] for row in killed.draws()} == {name}
    same = [{**row, "run_id": ""} for row in killed.draws()]
    assert same == [{**row, "run_id": ""} for row in twin.draws()]
    assert killed.spent() == twin.spent()
    assert len(killed.spent()) == 6
    assert killed.reserved() == twin.reserved() == 0
    assert [row["record_id"] for row in killed.entries()] == [row["record_id"] for row in twin.entries()]

    # What is on record: run id, public counts, gate; the event has the manifest's path and digest.
    assert set(found["sanitise"]) == {
        *("run_id", "release", "output", "changes", "input_version", "relation", "exposes", "metric"),
        *("nominal_epsilon", "epsilon", "mechanism_fingerprint", "policy_fingerprint", "key_fingerprint"),
    }
    rules = found["gate"]["rules"]
    assert [rule["name"] for rule in rules] == ["min_records", "quarantine_rate"]
    assert rules[0]["value"] == 6
    assert "value" not in rules[1]
    assert found["publish"]["records"] == 6
    event = run.events[-1]
    assert event == found["publish"]
    assert event["manifest"].endswith("/_manifest.json")
    assert len(event["manifest_sha256"]) == 64
    assert run.queued == ["verify_killed"]

    analytics = {
        "analytics": str(tmp_path / "analytics"),
        "min_documents": 1,
        "public_key": event["public_key"],
        "delta_jars": str(delta_jars()),
    }
    settings = relay_settings(airflow, config, **analytics)
    read = airflow.run("verify_killed", settings, logical_date=night("2026-01-02"), by_asset=True)
    assert read.states == dict.fromkeys(("verify", "analyse"), "success"), read.log[-6000:]
    assert read.xcom["verify.return_value"]["table"] == str(killed.public)
    assert read.xcom["verify.return_value"]["pinned"] is True
    found = read.xcom["analyse.return_value"]
    assert found["records"] == 6
    terms = spark.read.format("delta").load(f"{tmp_path}/analytics/drawn")
    assert terms.count() == found["drawn"] > 0
    said = " ".join(row["text"] or "" for row in killed.rows(killed.public)).lower()
    assert all(row.term in said for row in terms.collect())

    # Nobody sees the key or a text: not in logs, XCom, events, templates, arguments, nor lineage.
    lineage = (airflow.home / "lineage.json").read_text()
    for one in (run, read):
        everything = " ".join([one.log, json.dumps(one.xcom), json.dumps(one.events), *one.rendered, str(one.commands)])
        assert key not in everything
        assert CANARY not in everything
    assert key not in lineage
    assert CANARY not in lineage
    assert "Spark-Submit cmd" in run.log
    database = (airflow.home / "airflow.db").read_bytes()
    assert key.encode() not in database
    assert CANARY.encode() not in database

    # OpenLineage, by Airflow's own provider.
    events = [json.loads(line) for line in lineage.splitlines()]
    jobs_seen = {event["job"]["name"] for event in events}
    assert {"sanitise_killed.night", "verify_killed.verify", "verify_killed.analyse"} <= jobs_seen, jobs_seen
    assert {event["job"]["namespace"] for event in events} == {"tests"}


@pytest.mark.long
def test_parquet_night_awaits_partition_and_ends_with_sanitise(airflow: Airflow, workspace: Workspace, spark: Any):
    path = workspace.root / "corpus"

    def write(day: str) -> None:
        (path / f"day={day}").mkdir(parents=True)
        pq.write_table(corpus(8).drop_columns(["day"]), path / f"day={day}" / "part-0.parquet")

    write("2026-11-19")
    config = workspace.write_config(input={"where": "day = :ds"}, spark={"master": None})

    def arrive(_: list[str]) -> None:
        """After the first look."""
        airflow.after = lambda _: None
        write(DAY)

    airflow.after = arrive
    settings = relay_settings(
        airflow, config, publish="never", overrides=[f"output.path={workspace.root}/out/{{slice}}"], wait_minutes=0.02
    )
    run = airflow.run("sanitise_job", settings, logical_date=night(DAY))
    assert run.tasks == {"night": ["success", 1]}, run.log
    assert "has no record of it yet. Next look in" in run.log
    assert len(read_output(workspace.root / "out" / DAY)) == 8
    assert [command[0] for command in run.commands] == ["sanitise", "sanitise"]


def test_a_slice_that_does_not_come_is_given_up(airflow: Airflow, spark: Any, tmp_path: Path):
    lake = lake_at(spark, tmp_path / "lake")
    lake.write(records(["2026-11-19"]), feed=False)
    config = write_config(lake)
    run = airflow.run(
        "sanitise_waiting",
        relay_settings(airflow, config, wait_minutes=0.01, wait_hours=3),
        logical_date=night(DAY),
        # Airflow makes parameters of all of it. Only the declared ones change a setting.
        conf={"wait_hours": 0.0005, "config": "/elsewhere/release.yaml", "jobs": "/elsewhere"},
    )
    assert run.tasks == {"night": ["failed", 1]}
    for words in (f"slice {DAY}", f"a record of ds={DAY}", str(config), "0.0005 hours", "clear this task"):
        assert words in run.log, words
    assert all(command[2:4] == ["--config", str(config)] for command in run.commands)
    assert run.commands
    assert not (lake.home / "draws").exists()

    marker = f"{tmp_path}/day={{slice}}/_SUCCESS"
    settings = relay_settings(airflow, config, wait_hours=0, marker=marker)
    run = airflow.run("sanitise_marked", settings, logical_date=night(DAY))
    assert run.tasks == {"night": ["failed", 1]}
    assert run.commands == []
    assert f"{tmp_path}/day={DAY}/_SUCCESS" in run.log


@pytest.mark.parametrize("over_budget", [False, pytest.param(True, marks=pytest.mark.long)])
def test_night_ended_by_gate_or_budget_lets_next_be_published(
    airflow: Airflow, spark: Any, tmp_path: Path, over_budget: bool
):
    """Neither is tried again. The night over budget draws nothing."""
    lake = lake_at(spark, tmp_path / "lake")
    days = [str(date.fromisoformat(DAY) + timedelta(days=number)) for number in range(3)]
    table = pa.concat_tables([records([day], 5 if day == days[1] else 2, seed=int(day[-2:])) for day in days])
    ids = [f"r{number:05d}" for number in range(table.num_rows)]
    lake.write(table.set_column(table.schema.get_field_index("id"), "id", pa.array(ids)), feed=False)
    pure = build_bundle(lake.config()).guarantee.pure
    assert pure
    limits = {"unit": "pure", "relation": "any_text", "author": 3.5 * 24 * pure, "on_exceeded": "fail", "delta": 1e-6}

    settings = relay_settings(airflow, write_config(lake, budgets=limits, gate={"min_records": 100}))
    run = airflow.run("sanitise_gated", settings, logical_date=night(days[0]))
    assert run.state == "failed"
    assert run.tasks == {"night": ["failed", 1]}
    for words in ("Gate of support", "min_records", "output-only", "NO", "did not pass: min_records"):
        assert words in run.log, words
    events = len(run.events)
    assert not any(event["table"] == str(lake.public) for event in run.events)
    found = run.xcom["night.return_value"]
    assert found["gate"]["passed"] is False
    assert all("value" not in rule for rule in found["gate"]["rules"])
    assert "publish" not in found
    assert not lake.public.exists()

    settings = relay_settings(airflow, write_config(lake, budgets=limits))
    if over_budget:
        run = airflow.run("sanitise_gated", settings, logical_date=night(days[1]))
        assert run.tasks == {"night": ["failed", 1]}
        assert (
            "budgets: 2 records would exceed a limit and on_exceeded is fail. Nothing was drawn or charged." in run.log
        )
        assert len(run.events) == events

    # The next night is published when somebody has approved it.
    run = airflow.run("sanitise_gated", {**settings, "publish": "approved"}, logical_date=night(days[2]))
    assert run.states == dict.fromkeys(("night", "approve", "publish"), "success"), run.log[-6000:]
    assert [command[1] for command in run.commands] == ["night", "publish"]
    approved = run.xcom["night.return_value"]["gate"]["draws_version"]
    assert run.commands[1][-4:-2] == ["--draws-version", str(approved)]
    assert "publish" not in run.xcom["night.return_value"]
    assert run.xcom["publish.return_value"]["records"] == 4
    assert len(run.events) == events + 1
    assert run.events[-1] == run.xcom["publish.return_value"]
    assert sum(lake.spent().values()) == 4 * 24

    run = airflow.run("compact_gated", settings, logical_date=night(days[2]))
    assert run.tasks == {"compact": ["success", 1]}, run.log[-6000:]
    assert [command[:2] for command in run.commands] == [["release", "compact"]]


@pytest.mark.long
def test_erase_dag_takes_records_off_every_place(airflow: Airflow, spark: Any, tmp_path: Path):
    lake = lake_at(spark, tmp_path / "lake")
    lake.write(records([DAY]), feed=False)
    settings = relay_settings(airflow, write_config(lake))
    run = airflow.run("sanitise_erased", settings, logical_date=night(DAY))
    first, second, *others = sorted(row["id"] for row in lake.rows(lake.public))
    settings |= {"publish": "approved"}
    run = airflow.run("erase_erased", settings, logical_date=night(DAY), conf={"ids": [first, second]})
    assert run.states == dict.fromkeys(("approve", "erase"), "success"), run.log[-6000:]
    assert [command[:2] for command in run.commands] == [["release", "erase"]]
    found = run.xcom["erase.return_value"]
    assert (found["gone"], found["publish"]["records"]) == (True, len(others))
    assert run.events[-1] == found["publish"]
    assert {row["id"] for row in lake.rows(lake.public)} == {*others}
    assert {row["id"] for row in lake.draws() if row["text"] is not None} == {*others}
    files = [*lake.public.rglob("*.parquet"), *(lake.home / "draws").rglob("*.parquet")]
    rows = [row for file in files for row in pq.ParquetFile(file).read(["id", "text"]).to_pylist()]
    assert {row["id"] for row in rows if row["text"] is not None} == {*others}, "old files too"


@pytest.mark.long
def test_analytics_remembers_the_last_publication(airflow: Airflow, spark: Any, tmp_path: Path):
    """A table that was published before, put back as it was signed then, is refused: a record may have left since."""
    lake = lake_at(spark, tmp_path / "lake")
    lake.write(records([DAY]), feed=False)
    settings = relay_settings(
        airflow,
        write_config(lake),
        analytics=str(tmp_path / "analytics"),
        min_documents=1,
        delta_jars=str(delta_jars()),
    )

    def publish(number: int) -> None:
        run = airflow.run("sanitise_seen", settings, logical_date=night(f"2026-02-0{number}"), conf={"slice": DAY})
        assert run.xcom["night.return_value"]["publish"]["publication"] == number, run.log[-6000:]

    def read(number: int) -> Run:
        return airflow.run("verify_seen", settings, logical_date=night(f"2026-03-0{number}"), by_asset=True)

    publish(1)
    shutil.copytree(lake.public, tmp_path / "older")
    publish(2)
    run = read(2)
    assert (run.state, run.xcom["verify.return_value"]["publication"]) == ("success", 2), run.log[-6000:]
    publish(3)
    shutil.rmtree(lake.public)
    shutil.copytree(tmp_path / "older", lake.public)
    lake.forget()
    run = read(3)
    assert (run.states["verify"], run.states["analyse"]) == ("failed", "upstream_failed")
    assert "publication = 1: is older than 2, which you have seen" in run.log


def test_what_is_missing_is_told_before_spark_is_started(airflow: Airflow, spark: Any, tmp_path: Path):
    lake = lake_at(spark, tmp_path / "lake")
    config = write_config(lake)
    cluster = {
        "AIRFLOW_CONN_FAR": json.dumps(
            {"conn_type": "spark", "host": "spark://far", "password": "p", "extra": {"deploy-mode": "cluster"}}
        )
    }
    far = {"spark_conn_id": "far", "reports": "s3://lake/reports", "key_conn_id": "far"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"config": f"{tmp_path}/none.yaml"}, f"config = {tmp_path}/none.yaml: there is no file"),
        ({"jobs": "/nowhere"}, "jobs = /nowhere: there is no file /nowhere/release.py"),
        ({"spark_conn_id": "gone"}, "Spark connection gone: is missing, and nothing was submitted"),
        ({"key_conn_id": "gone"}, "connection gone: is missing or has no password"),
        ({"spark_conn_id": "far"}, "reports: is missing, and the driver runs on the cluster"),
        (far, "key_conn_id = far: with deploy mode cluster the driver does not inherit"),
    ]
    for changed, wanted in cases:
        settings = {**relay_settings(airflow, config), **changed}
        ((kind, message),) = airflow.check_first_task("sanitise_missing", settings, environment=cluster)
        assert (kind, wanted in message) == ("AirflowFailException", True), message
    ((kind, message),) = airflow.check_first_task("sanitise_missing", relay_settings(airflow, config))
    assert (kind, message.split()[:3]) == ("", ["night", "--config", str(config)])

    settings = relay_settings(airflow, config, spark_conn_id="gone")
    run = airflow.run("sanitise_missing", settings, logical_date=night("2026-01-03"))
    assert run.tasks == {"night": ["failed", 1]}
    assert run.commands == []
    assert "Spark connection gone: is missing, and nothing was submitted" in run.log
    assert "Clear the task to start the same run again" in run.log
    assert "yarn" not in run.log


NO_SLICES = [
    *("../public/everyone-reads-this", "..", "a..b", ".", ".hidden", "_SUCCESS", "-x", "a/b", "a\\b", "/etc", "a%2Fb"),
    *("' OR ds = 'x", "2026-11-20' OR true --", "a b", "a\n", "2026-11-20\n", "ds=1", "{slice}", "a:b", "a@b", "é"),
    *("a" * 101, ["a"], {"a": "b"}, True),
]


def test_a_slice_is_a_name_whoever_gives_it(airflow: Airflow, tmp_path: Path):
    """The task checks it itself: not all that starts a run keeps to a parameter's pattern."""
    config = tmp_path / "release.yaml"
    config.touch()
    settings = relay_settings(airflow, config, overrides=["output.path=/lake/out/{slice}"])
    confs = [{"slice": part} for part in NO_SLICES]
    for part, (kind, message) in zip(
        NO_SLICES, airflow.check_first_task("sanitise_sliced", settings, *confs), strict=True
    ):
        assert kind == "AirflowFailException", (part, message)
        assert message.startswith("slice = "), part
        assert "letters, digits" in message, part
        assert "\n" not in message, part
    ((kind, message),) = airflow.check_first_task("sanitise_sliced", {**settings, "slice_format": "a/b"})
    assert (kind, "slice_format" in message) == ("AirflowFailException", True), message


def test_a_slice_is_a_directory_of_a_path(airflow: Airflow, tmp_path: Path):
    config = tmp_path / "release.yaml"
    config.touch()
    paths = (
        "/lake/out/{slice}",
        "s3a://lake/{slice}/x",
        "s3a:/lake/ds={slice}/",
        "abfss://c@a.dfs.core.windows.net/{slice}",
    )
    overrides = [*(f"output.path={path}" for path in paths), "input.path=/lake/raw/{slice}", "input.where=ds = :ds"]
    settings = relay_settings(airflow, config, overrides=overrides, marker="s3://conn@lake/raw/ds={slice}/_SUCCESS")
    parts = ("2026-11-20", "2026-11-20T02", "20261120", "de_CH.v2", "a" * 100)
    found = airflow.check_first_task("sanitise_sliced", settings, *({"slice": part} for part in parts))
    for part, (kind, arguments) in zip(parts, found, strict=True):
        assert kind == "", arguments
        assert f"--set output.path=/lake/out/{part} " in arguments
        assert f"--param ds={part} " in arguments


def test_an_erasure_names_records_as_the_command_does(airflow: Airflow, tmp_path: Path):
    config = tmp_path / "release.yaml"
    config.touch()
    settings = relay_settings(airflow, config, overrides=["input.path=/lake/raw/{slice}"])
    confs = [{}, {"ids": [1]}, {"ids": "88"}, {"ids": ["8812", "-x"]}, {"author": "c 1", "retain_hours": 168}]
    found = airflow.check_first_task("erase_asked", settings, *confs)
    assert [kind for kind, _ in found] == [*["AirflowFailException"] * 3, "", ""]
    assert "ids, author: name no record" in found[0][1]
    assert [arguments for _, arguments in found[3:]] == [
        f"erase --config {config} --id=8812 --id=-x --retain-hours 0",
        f"erase --config {config} --author=c 1 --retain-hours 168",
    ]


def test_verification_does_not_run_without_a_publication(airflow: Airflow, tmp_path: Path):
    ((kind, message),) = airflow.check_first_task("verify_asked", relay_settings(airflow, tmp_path / "release.yaml"))
    assert kind == "AirflowFailException"
    assert "was not started by the release's asset" in message
