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
        "cron": getattr(dag.timetable, "expression", ""),
        "params": {name: dag.params.get_param(name).schema for name in dag.params},
        "templates": sorted({str(getattr(task, field, None)) for task in dag.tasks for field in task.template_fields}),
        "serialised": len(json.dumps(DagSerialization.serialize_dag(dag), default=str)),
        "reschedule": [task.task_id for task in dag.tasks if getattr(task, "mode", "") == "reschedule"],
    }
core = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags["sanitise_plain"]))
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


# Files of a folder of releases.
GOOD = {
    "plain.yaml": "config: /etc/wordveil/plain.yaml",
    "held.yaml": "{config: /etc/wordveil/held.yaml, publish: approved, analytics: /lake/held, schedule: 0 3 * * *}",
    "job.yaml": "{config: /etc/wordveil/job.yaml, publish: never}",
}
SLICES = {
    "overrides: [\"input.where=ds = '{slice}'\"]": "overrides: input.where=ds = '{slice}': SQL gets the slice by",
    "overrides: ['release={slice}']": "overrides: release={slice}: only input.path and output.path",
    "overrides: ['ledger.path=/lake/{slice}']": "only input.path and output.path",
    "overrides: ['output={path: /lake/{slice}}']": "only input.path and output.path",
    "overrides: ['{slice}=/lake/out']": "only input.path and output.path",
    "overrides: ['output.path=/lake/out-{slice}']": "output.path=/lake/out-{slice}: {slice} must be a whole",
    "overrides: ['output.path=/lake/{slice}.parquet']": "must be a whole",
    "overrides: ['output.path=/lake/{slice}=x']": "must be a whole",
    "overrides: [\"output.path='/lake/{slice}'\"]": "must be a whole",
    "overrides: ['output.path=s3a://{slice}/out']": "must be a whole",
    "overrides: ['output.path=s3a:{slice}/out']": "must be a whole",
    "marker: '/lake/raw-{slice}/_SUCCESS'": "marker: /lake/raw-{slice}/_SUCCESS: {slice} must be a whole",
    "marker: 's3://{slice}@lake/raw'": "must be a whole",
    "overrides: ['output.path=s3a://KEY:zq7@lake/x-{slice}?sig=zq7']": "overrides: output.path=s3a://lake/x-",
}
BROKEN = {
    "no config: [": "is not YAML (",
    "password: zq7: zq7": "is not YAML (mapping values are not allowed here, line 1)",
    "": "has no settings. Write at least: config: /path/of/release.yaml",
    "{}": "config is missing. Set it: ",
    "confg: x": "confg: there is no such setting. Did you mean config?",
    "wait_hours: long": "wait_hours = long: Input should be a valid number.",
    "publish: sometimes": "publish = sometimes: Input should be 'passed', 'approved' or 'never'.",
    "schedule: '@fortnightly'": "schedule = @fortnightly: ",
    "every: day": "every = day: Input should be '', 'week', 'month', 'quarter' or 'year'.",
    "config: /etc/wordveil/x.yaml\nevery: week": "every = week: needs over, a kept column of dates.",
    "overrides: [1]": "overrides.0: Input should be a valid string.",
    "overrides: output.path=s3a://KEY:zq7@lake/x": "overrides: Input should be a valid list.",
    "spark_conf: [spark.hadoop.fs.s3a.secret.key=zq7]": "spark_conf: Input should be a valid dictionary.",
    **{f"config: /etc/wordveil/broken.yaml\n{text}": problem for text, problem in SLICES.items()},
}


def write_releases(folder: Path, releases: dict[str, str]) -> None:
    """Write a folder of DAGs with the files of releases."""
    (folder / "wordveil_releases").mkdir(parents=True)
    for path in DAGS.glob("*.py"):
        (folder / path.name).symlink_to(path)
    for name, text in releases.items():
        (folder / "wordveil_releases" / name).write_text(text)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The reading by Airflow of a folder of good and broken releases."""
    folder = tmp_path_factory.mktemp("dags")
    named = {"plain.yml": GOOD["plain.yaml"], "two words.yaml": GOOD["plain.yaml"]}
    broken = {f"broken{number:02d}.yaml": text for number, text in enumerate(BROKEN)}
    write_releases(folder / "dags", {**GOOD, **named, **broken})
    return read_dags(folder / "dags", folder)


def test_each_release_has_its_dags(found):
    verbs = {"plain": ("sanitise", "verify", "compact", "erase"), "job": ("sanitise",)}
    verbs["held"] = verbs["plain"]
    assert set(found["dags"]) == {f"{verb}_{name}" for name in verbs for verb in verbs[name]}


def test_broken_releases_are_one_import_error_and_stop_no_other(found):
    """Airflow stops all DAGs of a file that has an import error, so it is that of a file without any."""
    assert list(found["errors"]) == ["wordveil_faults.py"]
    faults = found["errors"]["wordveil_faults.py"].split("ValueError: ")[1].splitlines()
    assert len(faults) == len(BROKEN) + 2
    for number, wanted in enumerate(BROKEN.values()):
        (fault,) = (line for line in faults if f"/wordveil_releases/broken{number:02d}.yaml: " in line)
        assert wanted in fault
    assert all("is not named RELEASE.yaml" in fault for fault in faults[-2:])
    assert "zq7" not in found["errors"]["wordveil_faults.py"]


def test_files_import_airflow_and_its_spark_provider_alone(found):
    """The scheduler parses them every few seconds."""
    airflows = {"airflow", "packaging", "asgiref"}
    ours = {name for name in found["imported"] if not name.startswith("unusual_prefix_")} - airflows
    assert ours == {"wordveil_airflow"}


def test_the_graphs_are_the_documented_ones(found):
    dags = found["dags"]
    assert dags["sanitise_plain"]["graph"] == dags["sanitise_job"]["graph"] == {"night": []}
    assert dags["sanitise_plain"]["outlets"] == {"night": ["wordveil_plain"]}
    assert dags["sanitise_job"]["outlets"] == {}
    held = dags["sanitise_held"]
    assert held["graph"] == {"night": ["approve"], "approve": ["publish"], "publish": []}
    assert held["outlets"] == {"publish": ["wordveil_held"]}
    assert dags["verify_plain"]["graph"] == {"verify": []}
    assert dags["verify_held"]["graph"] == {"verify": ["analyse"], "analyse": []}
    assert dags["compact_plain"]["graph"] == {"compact": []}
    assert dags["erase_held"]["graph"] == {"approve": ["erase"], "erase": []}
    assert dags["erase_plain"]["outlets"] == {"erase": ["wordveil_plain"]}
    assert [dags[f"{verb}_plain"]["timetable"] for verb in ("sanitise", "verify", "compact", "erase")] == [
        *("CronDataIntervalTimetable", "AssetTriggeredTimetable", "CronDataIntervalTimetable", "NullTimetable")
    ]
    assert held["cron"] == "0 3 * * *"
    assert dags["sanitise_plain"]["reschedule"] == ["night"]
    for name in ("sanitise_held", "verify_held"):
        drawn = dags[name]["doc"].split("```")[1]
        assert all(task in drawn for task in dags[name]["graph"])
        assert "wordveil_held" in drawn


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
    assert set(found["dags"]["sanitise_plain"]["params"]) == {"slice", "wait_hours"}
    assert set(found["dags"]["erase_plain"]["params"]) == {"ids", "author", "retain_hours"}


def test_backfill_of_days_has_one_run_for_each_days_interval(found):
    days = [f"2026-11-{number:02d} 00:00:00+00:00" for number in range(1, 7)]
    assert found["backfill"] == [list(pair) for pair in pairwise(days)]


def test_no_setting_is_in_a_template(found):
    """Airflow shows templated fields in clear. These contain names and no values until a task runs."""
    for dag in found["dags"].values():
        assert not any("WORDVEIL_KEY" in value or "wordveil_key" in value for value in dag["templates"])


def test_the_documentation_lists_every_setting(found):
    page = (ROOT / "docs" / "airflow.md").read_text("utf-8")
    for dag in found["dags"].values():
        rows = [line.split("|")[1:-1] for line in dag["doc"].split("| setting | default |")[1].splitlines()[2:] if line]
        assert rows[0][:2] == [" `config` ", " required "]
        assert len(rows) == 24
        assert all(row[0].strip() in page for row in rows)
        assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows)


@pytest.mark.long
def test_dag_folder_written_by_init_is_read_by_airflow(tmp_path):
    from wordveil.cli.init import JOBS, write_dags

    folder, home = tmp_path / "dags", tmp_path / "home"
    home.mkdir()
    write_dags(folder)
    (folder / "wordveil_releases").mkdir()
    (folder / "wordveil_releases" / "plain.yaml").write_text(GOOD["plain.yaml"])
    found = read_dags(folder, home)
    assert found["errors"] == {}
    assert len(found["dags"]) == 4
    assert all(f"`{folder / JOBS}`" in dag["doc"] for dag in found["dags"].values())
