"""Both DAGs in a real Airflow with scheduler, DAG processor, triggerer and API server.

It takes minutes, so it is in the long suite.
"""

from __future__ import annotations

import json
import subprocess
import sys

import psutil
import pyarrow.dataset as ds
import pytest

from support.repository import ROOT
from support.workspaces import clean_environment

HOME = ROOT / "build" / "airflow-demo"

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.long]


def test_scheduler_runs_nights_a_backfill_and_asset_analytics():
    command = [sys.executable, ROOT / "scripts" / "airflow_demo.py", "--backfill"]
    done = subprocess.run(
        command,
        env={**clean_environment(), "PYTHONPATH": str(ROOT / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    nights = [line.split() for line in done.stdout.splitlines() if line.startswith("sanitise_articles  ")]
    analytics = [line.split() for line in done.stdout.splitlines() if line.startswith("verify_articles  ")]
    assert sorted(run.split("__")[0] for _, run, _ in nights) == ["backfill", "backfill", "scheduled"]
    assert {state for *_, state in nights} == {"success"}
    assert analytics
    assert {run.split("__")[0] for _, run, _ in analytics} == {"asset_triggered"}
    manifest = json.loads((HOME / "public" / "_manifest.json").read_text())["manifest"]
    assert manifest["records"] == 300
    assert len(manifest["run_ids"]) == 3
    assert ds.dataset([HOME / "public" / file["path"] for file in manifest["files"]]).count_rows() == 300
    assert (HOME / "analytics" / "drawn" / "_delta_log").is_dir()
    key = (HOME / "wordveil.key").read_text().strip()
    for path in [*HOME.glob("*.log"), HOME / "lineage.json", *(HOME / "airflow").rglob("*")]:
        assert not path.is_file() or key.encode() not in path.read_bytes(), path
    for process in psutil.process_iter(["environ"]):
        assert (process.info["environ"] or {}).get("AIRFLOW_HOME") != str(HOME / "airflow"), f"{process}: still running"
