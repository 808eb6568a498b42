"""A night of a wordveil release: wait for the day's records, sanitise them, gate, publish.

Copy this file into your DAG folder; it imports Airflow, its Spark provider and the standard library alone. What differs
from place to place stands in the Airflow Variable ``sanitise_nightly``, a JSON object; :data:`SETTINGS` lists what it
can say. A second release takes a copy of this file with another ``DAG_ID`` and another asset.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from zoneinfo import ZoneInfo

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    DAG,
    Asset,
    BaseHook,
    BaseSensorOperator,
    CronDataIntervalTimetable,
    DeadlineAlert,
    DeadlineReference,
    ObjectStoragePath,
    Param,
    PokeReturnValue,
    SyncCallback,
    Variable,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
)
from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

log = logging.getLogger(__name__)

DAG_ID = "sanitise_nightly"
RELEASE = Asset("wordveil_release")
TIMEZONE = "UTC"
# A data interval a day, whatever Airflow's configuration makes of "@daily": the interval's day is the slice.
SCHEDULE = CronDataIntervalTimetable("0 0 * * *", timezone=TIMEZONE)
DEADLINE = timedelta(hours=24)

VARIABLE = DAG_ID
EXAMPLE = '"config": "/etc/wordveil/release.yaml"'
REQUIRED = ("config",)
_JOBS = next(
    (
        place
        for place in (Path(__file__).parent / "wordveil_jobs", Path(__file__).parents[1] / "jobs")
        if place.is_dir()
    ),
    "",
)
# Name: kind, default, meaning.
SETTINGS: dict[str, tuple[type, Any, str]] = {
    "config": (str, "", "the release's YAML configuration, where Spark's driver reads it."),
    "jobs": (
        str,
        str(_JOBS),
        "the directory of wordveil's application files, as spark-submit takes them; `wordveil init --airflow` writes it.",
    ),
    "overrides": (
        list,
        [],
        "settings of the configuration to override, each KEY=VALUE; {slice} stands for the run's slice.",
    ),
    "slice_param": (
        str,
        "ds",
        "the parameter of input.where that chooses a night's records; empty where input.where has none.",
    ),
    "slice_format": (
        str,
        "%Y-%m-%d",
        "how the start of the data interval is written as the parameter's value (strftime).",
    ),
    "marker": (
        str,
        "",
        "a file that is there once a slice is complete, e.g. s3://conn@lake/raw/ds={slice}/_SUCCESS; looked for without Spark.",
    ),
    "wait_hours": (float, 6.0, "how long to wait for the slice's first record."),
    "wait_minutes": (float, 10.0, "the time between two looks."),
    "spark_conn_id": (str, "wordveil_spark", "the Spark connection: master, deploy mode, queue, namespace."),
    "spark_submit": (str, None, "the path of spark-submit; by default the one that the connection names, on the PATH."),
    "spark_conf": (dict, {}, "Spark options for spark-submit."),
    "reports": (
        str,
        "",
        "a directory or URL for the commands' reports; required where the driver runs on the cluster.",
    ),
    "key_conn_id": (
        str,
        "",
        "the connection whose password is the key, for a configuration with key: {env: WORDVEIL_KEY}.",
    ),
    "key_env": (str, "WORDVEIL_KEY", "the variable that the configuration names in key.env."),
}
ADVICE = {
    "check": "Mend what the error names, and clear the task.",
    "plan": "If the slice's records have come since, clear the task. Otherwise see the error of its last try.",
    "sanitise": (
        "Nothing of this run is published. Clear the task to start the same run again: it spends nothing twice. A budget that was exceeded "
        "(exit code 9) has to be raised, or the records left out, first; `wordveil release show` tells of interrupted runs."
    ),
    "gate": "What was published before stays. The table above says which rule failed; `wordveil sanitise` of a later night may pass.",
    "publish": "What was published before stays, or the new version is there whole. Clear the task to publish again.",
}
DOC = """
### A night of a wordveil release

```
                no record yet: lets its slot go
                      +-----+
                      v     |
  check ----------> plan ---+--> sanitise ------> gate ------> publish ===> asset wordveil_release
  settings,         prices a     draws what is    holds the    writes the      |
  connections       record,      new, charges     draws to     public table    |  starts
  and files         waits for    the ledger       its rules    and its         v
  are there         the slice                                  manifest     analytics_on_release
```

Nothing after `gate` runs unless the gate passes, and only `publish` updates the asset. A configuration with a Parquet output has neither
gate nor publication: its run ends with `sanitise`, and no asset is updated.

**A run is one slice**: the start of its data interval, as `--param ds=2026-11-20`. Backfill: `airflow backfill create --dag-id
sanitise_nightly --from-date 2026-11-01 --to-date 2026-11-05 --max-active-runs 1`. Trigger with `slice` for another slice, e.g. after late data.

**Retries and clearing** repeat the run of the same name, which spends nothing twice. Triggering by hand makes a new run.

| what failed | what happens | what to do |
| --- | --- | --- |
| `check` | fails at once | mend the Variable, connection or file that it names, and clear it |
| `plan`: no record within `wait_hours` | fails, names slice and table | clear it once the records are there |
| `sanitise`: a budget with `on_exceeded: fail` | fails at once, nothing drawn or charged | raise the budget or leave records out, and clear it |
| `sanitise`: the release refuses, e.g. its tables are not there | fails at once, nothing drawn or charged | `docs/runbook.md`, "A release refuses" |
| `gate` | fails at once, its table is in its log; no asset event | `docs/releases.md`; what was published before stays |
| `publish`: a later run has moved the release on | skipped: that run's publication has these records | nothing |
| configuration, key, an output that is there | fails at once | mend what the error names, and clear it |
| input, bundle, Java, Delta's jars | tried again, three times, ever later | mend what the error names, and clear it |
| Spark, a lost worker, the storage | tried again, three times, ever later | look at Spark's log; clear it |

The Airflow Variable `sanitise_nightly` is a JSON object with these settings:

""" + "\n".join(
    f"- `{name}` ({default if default not in ('', None) else 'none'}): {about}"
    for name, (_, default, about) in SETTINGS.items()
)


# --- the same text stands in sanitise_nightly.py and analytics_on_release.py, so that each can be copied alone ---

KINDS = {str: "a text", float: "a number", int: "a whole number", dict: "an object", list: "a list of texts"}
# Exit codes that no repetition mends: configuration or command line, gate, key, an output that is there. Input and
# bundle (4) and the platform (7) are tried again, like Spark (8): storage, a catalogue or the place of Delta's jars may
# be out of reach for a while. No repetition draws or charges anything twice. docs/runbook.md has all codes.
FINAL = frozenset({2, 3, 5, 6})


def read_settings(context: Context | None = None) -> dict[str, Any]:
    """The defaults, what the Airflow Variable says instead, and what this run was triggered with instead of that."""
    given = Variable.get(VARIABLE, default=None, deserialize_json=True)
    if not isinstance(given, dict):
        raise AirflowFailException(
            f"Airflow Variable {VARIABLE}: {'is missing' if given is None else 'is no JSON object'}. Set it: airflow variables set "
            f"{VARIABLE} '{{{EXAMPLE}}}'"
        )
    problems = []
    for name, value in given.items():
        if name not in SETTINGS:
            near = "".join(f" Did you mean {match}?" for match in difflib.get_close_matches(name, SETTINGS, n=1))
            problems.append(f"{name}: there is no such setting.{near or ' There are: ' + ', '.join(SETTINGS) + '.'}")
            continue
        kind = SETTINGS[name][0]
        sound = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
        if value is not None and not sound:
            problems.append(f"{name} = {str(value)[:80]}: should be {KINDS[kind]}.")
        if kind is list and sound and not all(isinstance(one, str) for one in value):
            problems.append(f"{name} = {str(value)[:80]}: should be a list of texts.")
    if problems:
        raise AirflowFailException(f"Airflow Variable {VARIABLE}: {' '.join(problems)}")
    settings = {name: default for name, (_, default, _) in SETTINGS.items()} | {
        k: v for k, v in given.items() if v is not None
    }
    asked = dict(context["params"]) if context else {}
    settings |= {name: value for name, value in asked.items() if value is not None}
    for name in REQUIRED:
        if not settings[name]:
            raise AirflowFailException(f"Airflow Variable {VARIABLE}: {name} is missing: {SETTINGS[name][2]}")
    return settings


def spark_connection(settings: dict[str, Any]) -> Connection:
    """The Spark connection. Without this check Airflow would submit to YARN where there is none."""
    name = settings["spark_conn_id"]
    try:
        return BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"Spark connection {name}: is missing, and nothing was submitted. Make it: airflow connections add {name} --conn-type spark "
            f"--conn-host spark://MASTER:7077, or name another one by spark_conn_id in the Airflow Variable {VARIABLE}."
        ) from None


def deploy_mode(connection: Connection) -> str:
    """Where the driver runs: ``client``, beside this process, or ``cluster``."""
    return str(connection.extra_dejson.get("deploy-mode") or "client")


def run_name(context: Context) -> str:
    """A name for this DAG run that its retries share and no other DAG run has, of the letters that wordveil takes."""
    identity = f"{context['dag'].dag_id} {context['run_id']}"
    readable = re.sub(r"[^A-Za-z0-9._-]+", ".", f"{context['dag'].dag_id}-{context['run_id']}")[:150]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}".lstrip("._-")


def log_failure(context: Context) -> None:
    """What to do about a failed task, into its log. Put a notifier of your own in its place, or beside it."""
    task = context["ti"].task_id
    log.error("%s.%s failed in run %s. %s", context["dag"].dag_id, task, context["run_id"], ADVICE.get(task, ""))


def log_late(context: dict[str, Any]) -> None:
    """Called when the deadline has passed and the DAG run has not ended. Put a notifier of your own in its place, or
    beside it.
    """
    run = context.get("dag_run") or {}
    log.error(
        "%s: run %s has not ended by its deadline.", run.get("dag_id"), run.get("dag_run_id") or run.get("run_id")
    )


class WordveilSubmitOperator(SparkSubmitOperator):
    """One wordveil command by spark-submit.

    The command writes a report, a JSON file, which decides what becomes of the task: logs are for people, and in
    cluster mode neither log nor exit code come back. What :meth:`result` takes from the report goes to XCom.
    """

    job: ClassVar[str]
    """The application file."""
    final: ClassVar[frozenset[int]] = FINAL
    """Exit codes with which the task fails for good."""

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        """The command's arguments but for ``--report``."""
        raise NotImplementedError

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """What goes to XCom: only what may be public."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        return self.run_command(context)

    def run_command(self, context: Context) -> dict[str, Any]:
        """Submit, wait, read the report."""
        settings = read_settings(context)
        connection = spark_connection(settings)
        mode = deploy_mode(connection)
        on_yarn_cluster = "yarn" in str(connection.host) and mode == "cluster"
        self._conn_id = settings["spark_conn_id"]
        self._spark_binary = settings["spark_submit"]
        self._yarn_track_via_rm_api = (
            on_yarn_cluster and "yarn_resourcemanager_webapp_address" in connection.extra_dejson
        )
        self.durable = self._yarn_track_via_rm_api or not on_yarn_cluster
        self.conf = {"spark.log.level": "WARN", **settings["spark_conf"]}
        self.application = f"{settings['jobs'].rstrip('/')}/{self.job}"
        self.name = f"{self.task_id} {run_name(context)}"
        self._hook = None
        with tempfile.TemporaryDirectory(prefix="wordveil-") as own:
            home = settings["reports"].rstrip("/") or own
            place = f"{home}/{run_name(context)}/{self.task_id}-{context['ti'].try_number}.json"
            self.application_args = [*self.arguments(settings, context), "--report", without_connection(place)]
            failure: Exception | None = None
            try:
                with environment(settings):
                    super().execute(context)
            except AirflowFailException:
                raise
            except Exception as error:  # noqa: BLE001 - the report tells what it was
                failure = error
            report = read_report(place)
        return self.judge(report, failure, context)

    def judge(self, report: dict[str, Any] | None, failure: Exception | None, context: Context) -> dict[str, Any]:
        """The command's result for XCom. Raises what makes Airflow try again, or not."""
        if report is None:
            if failure is not None:
                raise failure
            raise AirflowException(
                "the command ended and its report is not where this task can read it. Set reports in the Airflow Variable "
                f"{VARIABLE} to a place that both Spark's driver and Airflow's workers reach."
            )
        code = report["exit_code"]
        if code == 0 and failure is None:
            return self.result(report["result"], context)
        error = report.get("error") or {"type": "", "message": str(failure)}
        told = f"{error['type']}: {error['message']} (exit code {code})"
        self.failed(report, context)
        if code in self.final:
            raise AirflowFailException(told)
        raise AirflowException(told)

    def failed(self, report: dict[str, Any], context: Context) -> None:
        """Called for a command that failed, before the task does."""


def without_connection(place: str) -> str:
    """A place as Spark knows it: ``s3://conn@bucket/path`` names the connection that Airflow reads it with."""
    scheme, slashes, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if slashes else place


def read_report(place: str) -> dict[str, Any] | None:
    """The report; None where there is none."""
    path = ObjectStoragePath(place if "://" in place else f"file://{place}")
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "exit_code" in found else None


@contextmanager
def environment(settings: dict[str, Any]) -> Iterator[None]:
    """The key of the connection ``key_conn_id`` in this task's process, for as long as spark-submit runs, which
    inherits it.

    It is nowhere else: ``env_vars`` and the other templated fields are shown in clear, and arguments by every list of
    processes.
    """
    name, conn_id = settings.get("key_env") or "", settings.get("key_conn_id") or ""
    if not conn_id:
        yield
        return
    key = read_key(conn_id)
    before = os.environ.get(name)
    os.environ[name] = key
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def read_key(conn_id: str) -> str:
    """The password of the key's connection, masked in logs."""
    try:
        key = BaseHook.get_connection(conn_id).password or ""
    except AirflowNotFoundException:
        key = ""
    if not key.strip():
        raise AirflowFailException(
            f"connection {conn_id}: is missing or has no password. Its password is what a key file of `wordveil key new` holds; keep it in "
            f"a secrets backend, or let the configuration name a key file and remove key_conn_id from the Airflow Variable {VARIABLE}."
        )
    for part in (key, *key.split()):
        mask_secret(part)
    return key


# `airflow dags test` of Airflow 3.3.2 breaks at the end of a good run of a DAG that has a deadline, and has nobody to
# tell anyway.
TRIED = sys.argv[1:3] == ["dags", "test"]

# --- up to here ---


class Wordveil(WordveilSubmitOperator):
    """A command on the release."""

    def configured(self, settings: dict[str, Any], context: Context, *, sliced: bool = False) -> list[str]:
        """``--config``, ``--set`` and, for commands that read the input, ``--param``."""
        part = slice_of(settings, context)
        sets = [one.replace("{slice}", part) for one in settings["overrides"]]
        params = ["--param", f"{settings['slice_param']}={part}"] if sliced and settings["slice_param"] else []
        return ["--config", settings["config"], *(word for one in sets for word in ("--set", one)), *params]


class PlanOperator(BaseSensorOperator, Wordveil):
    """Plans the run, and lets its slot go while the slice has no record.

    Only Spark can tell for certain whether a slice of any condition over a Parquet or Delta table has records: a
    directory can be there with an unfinished file, or with files that the table no longer has, and not every slice is a
    directory. So `wordveil plan` looks for one record, which it has to run for anyway. A ``marker`` is looked for
    first, without Spark, where whoever writes the slice leaves one.
    """

    job = "plan.py"

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        return [*self.configured(settings, context, sliced=True), "--has-records"]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        names = (
            "release",
            "input",
            "mechanism",
            "epsilon",
            "bundle",
            "metric",
            "composition",
            "relation",
            "exposes",
            "tokens",
        )
        return {
            name: report[name] for name in (*names, "epsilon_bound", "epsilon_pure", "output_format", "has_records")
        }

    def execute(self, context: Context) -> Any:
        settings = read_settings(context)
        self.timeout = settings["wait_hours"] * 3600
        self.poke_interval = settings["wait_minutes"] * 60
        part = slice_of(settings, context)
        try:
            return BaseSensorOperator.execute(self, context)
        except AirflowSensorTimeout:
            awaited = (
                settings["marker"].replace("{slice}", part)
                or f"a record of {settings['slice_param']}={part} in the input"
            )
            raise AirflowSensorTimeout(
                f"slice {part}: {awaited} of {settings['config']} did not come within {settings['wait_hours']:g} hours. Nothing was drawn. See "
                "to whoever writes the input and clear this task; if the slice is to stay empty, mark it as failed and leave it."
            ) from None

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Whether there is a record."""
        settings = read_settings(context)
        part = slice_of(settings, context)
        again = f"Looking again in {settings['wait_minutes']:g} minutes."
        marker = settings["marker"].replace("{slice}", part)
        if marker and not ObjectStoragePath(marker if "://" in marker else f"file://{marker}").exists():
            log.info("slice %s: %s is not there yet. %s", part, without_connection(marker), again)
            return False
        found = self.run_command(context)
        if not found["has_records"]:
            log.info("slice %s: %s has no record of it yet. %s", part, found["input"], again)
            return False
        return PokeReturnValue(is_done=True, xcom_value=found)


class SanitiseOperator(Wordveil):
    """Draws, and charges the ledger. A release that refuses (exit code 9), for a budget or for tables that are not
    there, refuses again.
    """

    job = "sanitise.py"
    final = FINAL | {9}

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        return [*self.configured(settings, context, sliced=True), "--run-id", run_name(context)]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        # No counts: tokens, words and quarantines are functions of private text, and the version may fail its gate.
        names = ("run_id", "release", "output", "changes", "input_version", "relation", "exposes", "key_fingerprint")
        return {name: report[name] for name in names}


class GateOperator(Wordveil):
    """Holds the draws to their rules; the table is in the log. A Parquet output has no gate, and what had none is
    published to nobody.
    """

    job = "release.py"

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if planned["output_format"] != "delta":
            raise AirflowSkipException(
                f"output.format is {planned['output_format']}: the run ends here. Only a release is gated and published."
            )
        return super().execute(context)

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        return ["gate", *self.configured(settings, context)]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        # What a private rule measured, and of a failed gate what any rule did, stays in the log.
        shown = [
            {"name": one["name"], "kind": one["kind"], "bound": one["bound"]}
            | ({"value": one["value"]} if report["passed"] and one["kind"] != "private" else {})
            for one in report["results"]
        ]
        return {
            "release": report["release"],
            "draws_version": report["draws_version"],
            "passed": report["passed"],
            "rules": shown,
        }

    def failed(self, report: dict[str, Any], context: Context) -> None:
        if report.get("result"):
            context["ti"].xcom_push(key="return_value", value=self.result(report["result"], context))


class PublishOperator(Wordveil):
    """Writes the public table and its manifest, and updates the asset."""

    job = "release.py"

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        return ["publish", *self.configured(settings, context)]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        manifest = report["manifest"]
        facts = {
            "release": manifest["release"],
            "table": report["table"],
            "manifest": report["manifest_path"],
            "manifest_sha256": report["manifest_sha256"],
            "created": manifest["created"],
            "public_version": manifest["public_version"],
            "draws_version": manifest["draws_version"],
            "records": manifest["records"],
            "exposes": manifest["exposes"],
            "public_key": report["public_key"],
            "run_id": run_name(context),
        }
        context["outlet_events"][RELEASE].extra = facts
        return facts

    def failed(self, report: dict[str, Any], context: Context) -> None:
        if report["error"]["type"] == "OutdatedGateError":
            raise AirflowSkipException(
                f"{report['error']['message']} A later run has moved the release on: its gate and publication cover this run's draws too."
            )


def slice_of(settings: dict[str, Any], context: Context) -> str:
    """The value of ``slice_param``: as this run was triggered with, else the start of its data interval."""
    if given := settings.get("slice"):
        return str(given)
    start = context.get("data_interval_start")
    if start is None:
        if not settings["slice_param"] and not any(
            "{slice}" in text for text in (*settings["overrides"], settings["marker"])
        ):
            return ""
        raise AirflowFailException(
            "slice: this run has no data interval and was triggered without a slice. Trigger it with a logical date, or with slice."
        )
    return str(start.astimezone(ZoneInfo(TIMEZONE)).strftime(settings["slice_format"]))


@task
def check() -> dict[str, str]:
    """Everything that can be missing, before Spark is started for it: settings, connections, files."""
    context = get_current_context()
    settings = read_settings(context)
    connection = spark_connection(settings)
    mode = deploy_mode(connection)
    if settings["key_conn_id"]:
        read_key(settings["key_conn_id"])
        if mode == "cluster":
            raise AirflowFailException(
                f"key_conn_id = {settings['key_conn_id']}: with deploy mode cluster the driver does not inherit the variable "
                f"{settings['key_env']} from this process. Mount the key file where the driver runs, name it by key: {{file: ...}} in the "
                f"configuration, and remove key_conn_id from the Airflow Variable {VARIABLE}."
            )
    if mode == "cluster" and not settings["reports"]:
        raise AirflowFailException(
            f"reports: is missing, and the driver runs on the cluster. Set it in the Airflow Variable {VARIABLE} to a place that both the "
            "driver and Airflow's workers reach, e.g. s3://conn@bucket/reports."
        )
    needed = {"jobs": [f"{settings['jobs'].rstrip('/')}/{name}" for name in ("plan.py", "sanitise.py", "release.py")]}
    if mode == "client":
        needed["config"] = [settings["config"]]
    for name, places in needed.items():
        for place in places:
            if "://" not in place and not Path(place).is_file():
                raise AirflowFailException(
                    f"{name} = {settings[name]}: there is no file {place} on this worker. {SETTINGS[name][2]}"
                )
    return {
        "run_id": run_name(context),
        "slice": slice_of(settings, context),
        "config": settings["config"],
        "deploy_mode": mode,
    }


with DAG(
    DAG_ID,
    description="Sanitise the night's records into a wordveil release, gate it and publish it.",
    doc_md=DOC,
    schedule=SCHEDULE,
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # Runs of one release wait for each other anyway, and a night's gate should see that night.
    max_active_runs=1,
    tags=["wordveil", "privacy"],
    params={
        "slice": Param(
            None,
            type=["null", "string"],
            pattern=r"^[^\x00-\x1f]{1,200}$",
            title="Slice",
            description="The value of the slice's parameter, e.g. 2026-11-20. Empty: the start of the run's data interval.",
        ),
        "wait_hours": Param(
            None,
            type=["null", "number"],
            minimum=0,
            title="Hours to wait",
            description="How long to wait for the slice's records. Empty: as the Airflow Variable says, or 6.",
        ),
    },
    default_args={
        "owner": "privacy-engineering",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(hours=1),
        "execution_timeout": timedelta(hours=12),
        "on_failure_callback": log_failure,
    },
    deadline=None
    if TRIED
    else DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=DEADLINE, callback=SyncCallback(log_late)
    ),
) as dag:
    checked = check.override(execution_timeout=timedelta(minutes=5))()
    planned = PlanOperator(task_id="plan", mode="reschedule", execution_timeout=timedelta(minutes=30))
    sanitised = SanitiseOperator(task_id="sanitise")
    gated = GateOperator(task_id="gate")
    published = PublishOperator(task_id="publish", outlets=[RELEASE])
    checked >> planned >> sanitised >> gated >> published
