"""Analytics of a wordveil release, whenever a version of it has been published: never by time.

Copy this file into your DAG folder; it imports Airflow, its Spark provider and the standard library alone. What differs
from place to place stands in the Airflow Variable ``analytics_on_release``, a JSON object; :data:`SETTINGS` lists what
it can say.
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

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    DAG,
    Asset,
    BaseHook,
    DeadlineAlert,
    DeadlineReference,
    ObjectStoragePath,
    SyncCallback,
    Variable,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)
from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

log = logging.getLogger(__name__)

DAG_ID = "analytics_on_release"
RELEASE = Asset("wordveil_release")
DEADLINE = timedelta(hours=12)

VARIABLE = DAG_ID
EXAMPLE = '"output": "/lake/analytics/support-mail"'
REQUIRED = ("output",)
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
    "output": (str, "", "the directory of the tables terms and topics, where Spark writes."),
    "public_key": (
        str,
        "",
        "the release's public key, from its owner; without it the manifest vouches for itself alone.",
    ),
    "topics": (int, 5, "how many topics to find."),
    "terms": (int, 10, "how many terms stand for a topic."),
    "min_documents": (int, 2, "terms that stand in fewer records are left out."),
    "delta_jars": (str, "", "a directory with Delta's jars, where Spark cannot fetch them and spark_conf names none."),
    "jobs": (
        str,
        str(_JOBS),
        "the directory of wordveil's application files, as spark-submit takes them; `wordveil init --airflow` writes it.",
    ),
    "spark_conn_id": (str, "wordveil_spark", "the Spark connection: master, deploy mode, queue, namespace."),
    "spark_submit": (str, None, "the path of spark-submit; by default the one that the connection names, on the PATH."),
    "spark_conf": (dict, {}, "Spark options for spark-submit."),
    "reports": (
        str,
        "",
        "a directory or URL for the commands' reports; required where the driver runs on the cluster.",
    ),
}
ADVICE = {
    "verify": (
        "The table is not the one that the asset's event names, or not the one that was signed: do not use it. Compare with the owner's "
        "public key, publish again, or look for who has written to it."
    ),
    "analyse": "The tables of before are as they were. Clear the task.",
}
DOC = """
### Analytics of a wordveil release

```
  asset wordveil_release ===> release -----> verify -----> analyse
  (updated by                 what the       the table     terms and topics
   sanitise_nightly,          asset's        against its   of the public
   after its gate)            event names    manifest      table, as tables
```

It runs when `publish` of `sanitise_nightly` has updated the asset, and reads the version that the event names, though later ones be there.
It needs no key, no configuration and nothing but the public table.

| what failed | what happens | what to do |
| --- | --- | --- |
| `verify`: the table was published again meanwhile | skipped: that publication's own event starts a run | nothing |
| `verify`: the table is not the one that was signed | tried again, then fails | do not use the table: publish again, look for who wrote to it |
| `analyse` | tried again, three times; the tables of before stay | look at Spark's log; clear it |

The Airflow Variable `analytics_on_release` is a JSON object with these settings:

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


@task
def release() -> dict[str, Any]:
    """What the newest event of the asset says was published; and what must be there before Spark is started."""
    context = get_current_context()
    settings = read_settings(context)
    mode = deploy_mode(spark_connection(settings))
    if mode == "cluster" and not settings["reports"]:
        raise AirflowFailException(
            f"reports: is missing, and the driver runs on the cluster. Set it in the Airflow Variable {VARIABLE} to a place that both the "
            "driver and Airflow's workers reach, e.g. s3://conn@bucket/reports."
        )
    for name in ("analytics.py", "release.py"):
        place = f"{settings['jobs'].rstrip('/')}/{name}"
        if "://" not in place and not Path(place).is_file():
            raise AirflowFailException(
                f"jobs = {settings['jobs']}: there is no file {place} on this worker. {SETTINGS['jobs'][2]}"
            )
    events = [event for found in context["triggering_asset_events"].values() for event in found]
    if not events:
        raise AirflowFailException(
            "this run was not started by the asset wordveil_release, so that it is not known which version to read. Clear a run that was, "
            "or publish."
        )
    newest = max(events, key=lambda event: event.timestamp).extra
    names = ("release", "table", "manifest", "manifest_sha256", "created", "public_version")
    if missing := [name for name in names if name not in newest]:
        raise AirflowFailException(
            f"the asset's event lacks {', '.join(missing)}: it is not one of the DAG sanitise_nightly."
        )
    return {name: newest[name] for name in names}


class VerifyOperator(WordveilSubmitOperator):
    """The public table against its signed manifest, file by file, and the manifest against the asset's event."""

    job = "release.py"

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        pinned = ["--public-key", settings["public_key"]] if settings["public_key"] else []
        return ["verify", "--table", published(context)["table"], *pinned, *jars(settings)]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        event = published(context)
        if report["manifest_sha256"] != event["manifest_sha256"]:
            if report["release"] == event["release"] and report["created"] > event["created"]:
                raise AirflowSkipException(
                    f"{event['table']} was published again at {report['created']}: that publication's own event starts a run."
                )
            raise AirflowFailException(
                f"{event['manifest']} is not the manifest that the asset's event names: SHA-256 {report['manifest_sha256']}, and not "
                f"{event['manifest_sha256']}. Do not use the table; publish again, and look for who has written to it."
            )
        names = ("verified", "release", "public_version", "records", "files", "relation", "exposes", "pinned")
        return {name: report[name] for name in names}


class AnalyseOperator(WordveilSubmitOperator):
    """Terms and topics of the version that was verified."""

    job = "analytics.py"

    def arguments(self, settings: dict[str, Any], context: Context) -> list[str]:
        event = published(context)
        numbers = {
            "version": event["public_version"],
            **{name: settings[name] for name in ("topics", "terms", "min_documents")},
        }
        options = [word for name, value in numbers.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return ["--table", event["table"], "--output", settings["output"], *options, *jars(settings)]

    def result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        return {name: report[name] for name in ("output", "public_version", "records", "documents", "terms", "topics")}


def published(context: Context) -> dict[str, Any]:
    """What the task ``release`` found."""
    found: dict[str, Any] = context["ti"].xcom_pull(task_ids="release")
    return found


def jars(settings: dict[str, Any]) -> list[str]:
    """``--delta-jars``, if it is set."""
    return ["--delta-jars", settings["delta_jars"]] if settings["delta_jars"] else []


with DAG(
    DAG_ID,
    description="Terms and topics of a wordveil release, whenever a version has been published.",
    doc_md=DOC,
    schedule=[RELEASE],
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    # The tables are replaced: one after the other.
    max_active_runs=1,
    tags=["wordveil", "analytics"],
    default_args={
        "owner": "analytics",
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(hours=1),
        "execution_timeout": timedelta(hours=6),
        "on_failure_callback": log_failure,
    },
    deadline=None
    if TRIED
    else DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=DEADLINE, callback=SyncCallback(log_late)
    ),
) as dag:
    found = release.override(execution_timeout=timedelta(minutes=5))()
    verified = VerifyOperator(task_id="verify")
    analysed = AnalyseOperator(task_id="analyse")
    found >> verified >> analysed
