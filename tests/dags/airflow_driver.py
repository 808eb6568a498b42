"""Airflow in its own process: runs a DAG as ``airflow dags test`` does for each line of JSON on standard input.

It answers each with a line of JSON, to the file descriptor that is its last argument. Standard output and standard
error are Airflow's logs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from airflow.dag_processing.dagbag import BundleDagBag, DagBag
from airflow.models import dagrun as dagruns
from airflow.models.asset import AssetDagRunQueue, AssetEvent
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

_make = dagruns.get_or_create_dagrun
_sleep = time.sleep


def create_triggered_run(**options: Any) -> Any:
    """Create a DAG run as the scheduler does for an asset: with the events that no run has consumed yet."""
    made = _make(**options)
    session = options["session"]
    taken = {event.id for run in session.scalars(select(dagruns.DagRun)) for event in run.consumed_asset_events}
    made.consumed_asset_events.extend(event for event in session.scalars(select(AssetEvent)) if event.id not in taken)
    session.commit()
    return made


def run(bag: DagBag, order: dict[str, Any]) -> dict[str, Any]:
    """Run a DAG once, and return what Airflow recorded of it."""
    for name, value in order["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    dag = bag.dags[order["dag"]]
    if order["checked"]:
        return {"found": [check_first_task(dag, conf) for conf in order["checked"]]}
    for task in dag.tasks:
        task.retry_delay = timedelta(seconds=order["retry_seconds"])
        task.retry_exponential_backoff = 0
    dagruns.get_or_create_dagrun = create_triggered_run if order["by_asset"] else _make
    when = {"logical_date": datetime.fromisoformat(order["logical_date"])} if order["logical_date"] else {}
    # It sleeps for a second wherever no task is ready, such as before each task that an earlier one's failure fails.
    with patch("time.sleep", lambda seconds: _sleep(0.05 if seconds == 1 else seconds)):
        ended = dag.test(**when, run_conf=order["conf"] or None, mark_success_pattern=order["approved"])
    with create_session() as session:
        tasks = {ti.task_id: [ti.state, ti.try_number] for ti in ended.get_task_instances(session=session)}
        xcoms = session.scalars(
            select(XComModel).where(XComModel.dag_id == order["dag"], XComModel.run_id == ended.run_id)
        )
        return {
            "state": str(ended.state),
            "run_id": ended.run_id,
            "interval": [str(ended.data_interval_start), str(ended.data_interval_end)],
            "tasks": tasks,
            "xcom": {f"{xcom.task_id}.{xcom.key}": XComModel.deserialize_value(xcom) for xcom in xcoms},
            "events": [event.extra for event in session.scalars(select(AssetEvent).order_by(AssetEvent.id))],
            "queued": [item.target_dag_id for item in session.scalars(select(AssetDagRunQueue))],
            "rendered": [str(row.rendered_fields) for row in session.scalars(select(RenderedTaskInstanceFields))],
        }


def check_first_task(dag: Any, conf: dict[str, Any]) -> list[str]:
    """Do what the first task does before Spark starts, with nothing on record.

    Returns the type of its error and its message, or nothing and the command's arguments.
    """
    first = dag.get_task(dag.roots[0].task_id)
    day = datetime(2026, 11, 20, tzinfo=UTC)
    params = {name: conf.get(name) for name in dag.params}
    context = {
        "dag": dag,
        "run_id": "manual__1",
        "params": params,
        "data_interval_start": day,
        "triggering_asset_events": {},
    }
    try:
        first.check()
        return ["", " ".join(first.build_arguments(context))]
    except Exception as error:  # noqa: BLE001 - the caller asks which one it is
        return [type(error).__name__, str(error)]


def main() -> None:
    """Run what is asked for until standard input ends."""
    with os.fdopen(int(sys.argv[4]), "w") as answers:
        for line in sys.stdin:
            try:
                # The release's settings have changed, and a run leaves its parameters in the DAG.
                answer = run(BundleDagBag(sys.argv[3], bundle_path=Path(sys.argv[3])), json.loads(line))
            except Exception as error:
                answers.write(json.dumps({"broken": repr(error)}) + "\n")
                answers.flush()
                raise
            answers.write(json.dumps(answer, default=str) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
