"""The DAG files as Airflow reads them: no errors, nothing heavy imported, the graph and settings of the documents."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.repository import ROOT

DAGS = ROOT / "airflow_dags"
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"

pytestmark = pytest.mark.xdist_group("airflow")

# What Airflow reads in a folder of DAGs, as JSON. Its processes put the folder on sys.path by the same class.
_READ = """
import json, pathlib, sys
import airflow.providers.apache.spark.operators.spark_submit
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from airflow.serialization.serialized_objects import DagSerialization
bundle, before = pathlib.Path(sys.argv[1]), {*sys.modules}
bag = BundleDagBag(bundle, bundle_path=bundle)
imported = {name.split(".")[0] for name in {*sys.modules} - before} - sys.stdlib_module_names
found = {"errors": bag.import_errors, "imported": sorted(imported), "dags": {}}
for name, dag in bag.dags.items():
    found["dags"][name] = {
        "graph": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
        "outlets": {task.task_id: [asset.name for asset in task.outlets] for task in dag.tasks if task.outlets},
        "retries": {
            task.task_id: [task.retries, task.retry_exponential_backoff, task.execution_timeout is not None]
            for task in dag.tasks
        },
        "owners": sorted({task.owner for task in dag.tasks}),
        "callbacks": all(task.on_failure_callback for task in dag.tasks),
        "deadline": bool(dag.deadline),
        "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs,
        "tags": sorted(dag.tags),
        "doc": dag.doc_md,
        "timetable": type(dag.timetable).__name__,
        "params": {name: dag.params.get_param(name).schema for name in dag.params},
        "templates": sorted({str(getattr(task, field, None)) for task in dag.tasks for field in task.template_fields}),
        "serialised": len(json.dumps(DagSerialization.serialize_dag(dag), default=str)),
        "reschedule": [task.task_id for task in dag.tasks if getattr(task, "mode", "") == "reschedule"],
    }
core = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["sanitise_nightly"]))
from datetime import datetime, UTC
infos = core.iter_dagrun_infos_between(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 5, tzinfo=UTC))
found["backfill"] = [[str(info.data_interval.start), str(info.data_interval.end)] for info in infos]
print("FOUND" + json.dumps(found, default=str))
"""


def read_dags(folder: Path, home: Path) -> dict[str, Any]:
    """Read a folder of DAGs in an Airflow with the home directory ``home``."""
    if not PYTHON.exists():
        pytest.fail("Airflow is not installed. `make airflow` installs it.", pytrace=False)
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run(
        [PYTHON, "-c", _READ, folder], env=environment, capture_output=True, text=True, check=False, cwd=home
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rsplit("FOUND", 1)[1])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow reads in the folder of DAGs."""
    return read_dags(DAGS, tmp_path_factory.mktemp("airflow"))


def test_there_are_no_import_errors(found):
    assert found["errors"] == {}
    assert set(found["dags"]) == {"sanitise_nightly", "analytics_on_release"}


def test_files_import_airflow_and_its_spark_provider_alone(found):
    """The scheduler parses them every few seconds."""
    airflows = {"airflow", "packaging"}
    ours = {name for name in found["imported"] if not name.startswith("unusual_prefix_")} - airflows
    assert ours == {"wordveil_airflow"}


def test_the_graphs_are_the_documented_ones(found):
    nightly, analytics = found["dags"]["sanitise_nightly"], found["dags"]["analytics_on_release"]
    assert nightly["graph"] == {
        "check": ["plan"],
        "plan": ["sanitise"],
        "sanitise": ["gate"],
        "gate": ["publish"],
        "publish": [],
    }
    assert nightly["outlets"] == {"publish": ["wordveil_release"]}
    assert nightly["timetable"] == "CronDataIntervalTimetable"
    assert nightly["reschedule"] == ["plan"]
    assert analytics["graph"] == {"release": ["verify"], "verify": ["analyse"], "analyse": []}
    assert analytics["outlets"] == {}
    assert analytics["timetable"] == "AssetTriggeredTimetable"
    for dag in (nightly, analytics):
        drawn = dag["doc"].split("```")[1]
        assert all(task in drawn for task in dag["graph"])
        assert "wordveil_release" in drawn


def test_the_dags_have_what_airflow_users_expect(found):
    for dag in found["dags"].values():
        assert dag["owners"] not in ([], ["airflow"])
        assert all(retries == 3 and backoff and bounded for retries, backoff, bounded in dag["retries"].values())
        assert dag["callbacks"]
        assert dag["deadline"]
        assert not dag["catchup"]
        assert dag["max_active_runs"] == 1
        assert "wordveil" in dag["tags"]
        assert dag["serialised"] > 0
        assert all(schema.get("type") for schema in dag["params"].values())
    assert set(found["dags"]["sanitise_nightly"]["params"]) == {"slice", "wait_hours"}


def test_backfill_of_days_has_one_run_for_each_days_interval(found):
    days = [f"2026-11-{number:02d} 00:00:00+00:00" for number in range(1, 7)]
    assert found["backfill"] == [list(pair) for pair in pairwise(days)]


def test_no_setting_is_in_a_template(found):
    """Airflow shows templated fields in clear. These contain names and no values until a task runs."""
    for dag in found["dags"].values():
        assert not any("WORDVEIL_KEY" in value or "wordveil_key" in value for value in dag["templates"])


def test_the_documentation_lists_every_setting(found):
    page = (ROOT / "docs" / "airflow.md").read_text("utf-8")
    tables = {name: dag["doc"].split("| setting | type |")[1] for name, dag in found["dags"].items()}
    shared = ("jobs", "spark_conn_id", "spark_submit", "spark_conf", "reports")
    nightly = (
        "overrides",
        "slice_param",
        "slice_format",
        "marker",
        "wait_hours",
        "wait_minutes",
        "key_conn_id",
        "key_env",
    )
    analytics = ("public_key", "by", "over", "min_documents", "delta_jars")
    for dag, first, others in (("sanitise_nightly", "config", nightly), ("analytics_on_release", "output", analytics)):
        rows = [line.split("|")[1:-1] for line in tables[dag].splitlines()[2:] if line]
        assert {row[0].strip(" `") for row in rows} == {first, *shared, *others}
        assert rows[0][0].strip() == f"`{first}`"
        assert all(row[0].strip() in page for row in rows)
        assert rows[0][2].strip() == "required"
        assert all(len(row) == 4 and all(cell.strip() for cell in row) for row in rows)


@pytest.mark.long
def test_dag_folder_written_by_init_is_read_by_airflow(tmp_path):
    from wordveil.cli.init import JOBS, write_dags

    folder, home = tmp_path / "dags", tmp_path / "home"
    home.mkdir()
    write_dags(folder)
    found = read_dags(folder, home)
    assert found["errors"] == {}
    assert set(found["dags"]) == {"sanitise_nightly", "analytics_on_release"}
    assert all(f"`{folder / JOBS}`" in dag["doc"] for dag in found["dags"].values())
