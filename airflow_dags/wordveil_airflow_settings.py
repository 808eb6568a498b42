"""Settings of the DAGs: the Airflow Variable of a DAG's id, the connections, what both DAGs share, the callbacks.

``wordveil_airflow.py`` and the DAG files import this module; all belong in the root of the DAG bundle.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

from airflow.sdk import BaseHook, DeadlineAlert, DeadlineReference, ObjectStoragePath, Param, SyncCallback, Variable
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException
from airflow.sdk.log import mask_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

log = logging.getLogger(__name__)

# The Python types of a setting's JSON value, and their name for messages; by the annotation of the field.
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "float": ((int, float), "a number"),
    "int": ((int,), "a whole number"),
    "Mapping[str, Any]": ((dict,), "an object"),
    "Sequence[str]": ((list,), "a list of texts"),
}
_HERE = Path(__file__).parent
_JOBS = next((str(path) for path in (_HERE / "wordveil_jobs", _HERE.parent / "jobs") if path.is_dir()), "")


def setting(default: Any, meaning: str, *, required: bool = False) -> Any:
    """Declare a field of a settings class: its default, what it means, and whether it must be set."""
    return field(default_factory=lambda: default, metadata={"meaning": meaning, "required": required})


@dataclass(frozen=True)
class SubmitSettings:
    """Settings of each DAG: how commands are submitted. The Airflow Variable of the DAG's id holds them as JSON."""

    variable: str
    jobs: str = setting(
        _JOBS,
        "the directory of wordveil's application files, any path or URL that spark-submit accepts; "
        "`wordveil init --airflow` writes it",
    )
    spark_conn_id: str = setting("wordveil_spark", "the Spark connection: master, deploy mode, queue, namespace")
    spark_submit: str = setting("", "the path of spark-submit; by default the one of the connection, on the PATH")
    spark_conf: Mapping[str, Any] = setting({}, "Spark options for spark-submit")
    reports: str = setting(
        "",
        "a directory or URL for the commands' reports, by default a temporary directory; "
        "required with deploy mode `cluster`, e.g. `s3://conn@bucket/reports`",
    )

    @classmethod
    def list_fields(cls) -> list[Any]:
        """The fields that the Variable can set, required ones first."""
        found = [item for item in fields(cls) if "meaning" in item.metadata]
        return sorted(found, key=lambda item: not item.metadata["required"])

    @classmethod
    def to_markdown(cls) -> str:
        """The settings as a table for the documentation of a DAG."""
        rows = []
        for item in cls.list_fields():
            default = item.default_factory()
            shown = "none" if default in ("", [], {}) else f"`{default}`"
            if item.metadata["required"]:
                shown = "required"
            rows.append(f"| `{item.name}` | {KINDS[item.type][1]} | {shown} | {item.metadata['meaning']} |\n")
        return "| setting | type | default | meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)

    @classmethod
    def read(cls, context: Context | dict[str, Any]) -> Self:
        """Read the Airflow Variable of the DAG's id; the run's parameter ``wait_hours`` comes before it.

        Other parameters of a run change no setting: Airflow adds whatever a trigger's ``conf`` contains to them, and
        whoever may trigger a run must not choose paths, binaries or rules.
        """
        variable = str(context["dag"].dag_id)
        given = Variable.get(variable, default=None, deserialize_json=True)
        known = {item.name: item for item in cls.list_fields()}
        if not isinstance(given, dict):
            first = next(iter(known))
            raise AirflowFailException(
                f"Airflow Variable {variable}: {'is missing' if given is None else 'is not a JSON object'}. Set it: "
                f"airflow variables set {variable} '{{\"{first}\": ...}}'. {first}: {known[first].metadata['meaning']}."
            )
        problems = []
        for name, value in given.items():
            if name not in known:
                near = "".join(f" Did you mean {match}?" for match in difflib.get_close_matches(name, known, n=1))
                problems.append(f"{name}: there is no such setting.{near or ' Settings: ' + ', '.join(known) + '.'}")
            elif value is not None:
                types, kind = KINDS[known[name].type]
                listed = not isinstance(value, list) or all(isinstance(one, str) for one in value)
                if not isinstance(value, types) or isinstance(value, bool) or not listed:
                    problems.append(f"{name} = {str(value)[:80]}: should be {kind}.")
        if problems:
            raise AirflowFailException(f"Airflow Variable {variable}: {' '.join(problems)}")
        chosen = {name: value for name, value in given.items() if value is not None}
        if "wait_hours" in known and (hours := context["params"].get("wait_hours")) is not None:
            chosen["wait_hours"] = hours
        for name, item in known.items():
            if item.metadata["required"] and not chosen.get(name):
                raise AirflowFailException(
                    f"Airflow Variable {variable}: {name} is missing. Set it: {item.metadata['meaning']}."
                )
        return cls(variable, **chosen)

    def get_connection(self) -> Connection:
        """The Spark connection. Without this check Airflow would submit to YARN."""
        name = self.spark_conn_id
        try:
            return BaseHook.get_connection(name)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"Spark connection {name}: is missing, and nothing was submitted. Create it: airflow connections add "
                f"{name} --conn-type spark --conn-host spark://MASTER:7077. Or set spark_conn_id in the Airflow "
                f"Variable {self.variable} to the name of another connection."
            ) from None

    def require_files(self, *jobs: str, **files: str) -> str:
        """Check all that can be missing before Spark starts: the connection, a directory for reports, files.

        ``files`` are settings with the path of a file that Spark's driver reads. Returns the deploy mode.
        """
        mode = read_deploy_mode(self.get_connection())
        if mode == "cluster" and not self.reports:
            raise AirflowFailException(
                f"reports: is missing, and the driver runs on the cluster. Set reports in the Airflow Variable "
                f"{self.variable} to a directory or URL that both the driver and Airflow's workers reach, e.g. "
                "s3://conn@bucket/reports."
            )
        needed = [("jobs", self.jobs, self.job_path(job)) for job in jobs]
        needed += [(name, path, path) for name, path in files.items() if mode == "client"]
        for name, value, path in needed:
            if "://" not in path and not Path(path).is_file():
                raise AirflowFailException(
                    f"{name} = {value}: there is no file {path} on this worker. Put the file there, or correct {name} "
                    f"in the Airflow Variable {self.variable}."
                )
        return mode

    def job_path(self, job: str) -> str:
        """The path or URL of an application file."""
        return f"{self.jobs.rstrip('/')}/{job}"


@dataclass(frozen=True)
class NightlySettings(SubmitSettings):
    """Settings of ``sanitise_nightly``."""

    config: str = setting("", "the release's YAML configuration, where Spark's driver reads it", required=True)
    overrides: Sequence[str] = setting(
        [], "settings of the configuration to override, each `KEY=VALUE`; `{slice}` is replaced by the run's slice"
    )
    slice_param: str = setting(
        "ds", "the parameter of `input.where` that chooses a night's records; empty if `input.where` has none"
    )
    slice_format: str = setting(
        "%Y-%m-%d", "the format of the parameter's value (strftime), from the start of the data interval"
    )
    marker: str = setting(
        "",
        "a file that says that a slice is complete, e.g. `s3://conn@lake/raw/ds={slice}/_SUCCESS`; "
        "`plan` looks for it without Spark",
    )
    wait_hours: float = setting(6, "how long to wait for the slice's first record, in hours")
    wait_minutes: float = setting(10, "how long to wait between two looks for it, in minutes")
    key_conn_id: str = setting(
        "", "the connection whose password is the key, for a configuration with `key: {env: WORDVEIL_KEY}`"
    )
    key_env: str = setting("WORDVEIL_KEY", "the environment variable that the configuration names in `key.env`")


@dataclass(frozen=True)
class AnalyticsSettings(SubmitSettings):
    """Settings of ``analytics_on_release``."""

    output: str = setting("", "the directory of the tables terms and topics, where Spark writes", required=True)
    public_key: str = setting(
        "", "the release's public key, from its owner; without it only the manifest vouches for itself"
    )
    topics: int = setting(5, "how many topics to find")
    terms: int = setting(10, "how many terms describe a topic")
    min_documents: int = setting(2, "terms in fewer records are left out")
    delta_jars: str = setting(
        "", "a directory with Delta's jars, if Spark cannot fetch them and `spark_conf` does not name any"
    )


# What a run of `sanitise_nightly` can choose when it is triggered.
NIGHTLY_PARAMS = {
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
        description="How long to wait for the slice's records. Empty: the Airflow Variable's value, or 6.",
    ),
}


def read_deploy_mode(connection: Connection) -> str:
    """Where the driver runs: ``client``, beside this process, or ``cluster``."""
    return str(connection.extra_dejson.get("deploy-mode") or "client")


def build_run_id(context: Context | dict[str, Any]) -> str:
    """A run id for wordveil: the retries of a DAG run share it and no other DAG run has it."""
    identity = f"{context['dag'].dag_id} {context['run_id']}"
    readable = re.sub(r"[^A-Za-z0-9._-]+", ".", f"{context['dag'].dag_id}-{context['run_id']}")[:150]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}".lstrip("._-")


def format_slice(settings: NightlySettings, context: Context | dict[str, Any]) -> str:
    """The value of ``slice_param``: the run's parameter ``slice``, else the start of its data interval.

    The interval's start is written in the time zone of the DAG's timetable.
    """
    if given := context["params"].get("slice"):
        return str(given)
    start = context.get("data_interval_start")
    if start is None:
        uses_slice = any("{slice}" in text for text in (*settings.overrides, settings.marker))
        if not settings.slice_param and not uses_slice:
            return ""
        raise AirflowFailException(
            "slice: this run has no data interval and was triggered without a slice. Trigger it with a logical date, "
            "or with slice."
        )
    zone = getattr(context["dag"].timetable, "timezone", UTC)
    return str(start.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone).strftime(settings.slice_format))


def read_key(settings: NightlySettings) -> str:
    """Read the password of the key's connection, and mask it in logs."""
    conn_id = settings.key_conn_id
    try:
        key = BaseHook.get_connection(conn_id).password or ""
    except AirflowNotFoundException:
        key = ""
    if not key.strip():
        raise AirflowFailException(
            f"connection {conn_id}: is missing or has no password. Set its password to the contents of a key file of "
            "`wordveil key new`; keep it in a secrets backend. Or name a key file in the configuration and remove "
            f"key_conn_id from the Airflow Variable {settings.variable}."
        )
    for part in (key, *key.split()):
        mask_secret(part)
    return key


def strip_connection(path: str) -> str:
    """A URL as Spark knows it: in ``s3://conn@bucket/path``, ``conn`` is the connection that Airflow reads it with."""
    scheme, separator, rest = path.partition("://")
    host, slash, tail = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{tail}" if separator else path


def open_path(path: str) -> Any:
    """A path or URL as Airflow's storage sees it."""
    return ObjectStoragePath(path if "://" in path else f"file://{path}")


def read_report(path: str) -> dict[str, Any] | None:
    """Read a command's report; None if it is missing or incomplete."""
    try:
        found = json.loads(open_path(path).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "exit_code" in found else None


@contextmanager
def export_key(settings: NightlySettings) -> Iterator[None]:
    """Put the key of the connection ``key_conn_id`` into this process's environment, which spark-submit inherits.

    The key is nowhere else: Airflow shows ``env_vars`` and the other templated fields in clear, and every list of
    processes shows arguments.
    """
    if not settings.key_conn_id:
        yield
        return
    key, before = read_key(settings), os.environ.get(settings.key_env)
    os.environ[settings.key_env] = key
    try:
        yield
    finally:
        os.environ.pop(settings.key_env)
        if before is not None:
            os.environ[settings.key_env] = before


def log_failure(context: Context) -> None:
    """Log what to do about a failed task. Replace this by your notifier, or call it from here."""
    failed, dag_id = context["task"], context["dag"].dag_id
    advice = getattr(failed, "advice", "Fix what the error names, then clear the task.")
    log.error("%s.%s failed in run %s. %s", dag_id, failed.task_id, context["run_id"], advice)


def log_late(context: dict[str, Any]) -> None:
    """Log that a DAG run has not ended by its deadline. Replace this by your notifier, or call it from here."""
    run = context.get("dag_run") or {}
    run_id = run.get("dag_run_id") or run.get("run_id")
    log.error("%s: run %s has not ended by its deadline.", run.get("dag_id"), run_id)


def dag_defaults(*, owner: str, task_timeout: timedelta, deadline: timedelta) -> dict[str, Any]:
    """Arguments that both DAGs have in common: retries, callbacks, time limits, one run at a time."""
    # `airflow dags test` of Airflow 3.3.2 crashes at the end of a successful run of a DAG that has a deadline.
    is_dags_test = sys.argv[1:3] == ["dags", "test"]
    reference = DeadlineReference.DAGRUN_QUEUED_AT
    alert = DeadlineAlert(reference=reference, interval=deadline, callback=SyncCallback(log_late))
    return {
        "start_date": datetime(2024, 1, 1, tzinfo=UTC),
        "catchup": False,
        # Runs of a release wait for each other anyway, and a gate should see its own night. Analytics replaces tables.
        "max_active_runs": 1,
        "deadline": None if is_dags_test else alert,
        "default_args": {
            "owner": owner,
            "retries": 3,
            "retry_delay": timedelta(minutes=5),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(hours=1),
            "execution_timeout": task_timeout,
            "on_failure_callback": log_failure,
        },
    }
