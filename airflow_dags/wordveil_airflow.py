"""wordveil for Airflow 3: settings, its commands as operators, and the tasks that check first.

The DAG files ``sanitise_nightly.py`` and ``analytics_on_release.py`` import this module. Airflow puts the root of a DAG
bundle (the DAG folder) on ``sys.path``, so all three belong in that root. They import Airflow, its Spark provider and
the standard library only: Airflow's environment does not need wordveil.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from zoneinfo import ZoneInfo

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    BaseHook,
    BaseSensorOperator,
    DeadlineAlert,
    DeadlineReference,
    ObjectStoragePath,
    Param,
    PokeReturnValue,
    SyncCallback,
    Variable,
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

# The Python types of a setting's JSON value, and their name for messages; by the annotation of the field.
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "float": ((int, float), "a number"),
    "int": ((int,), "a whole number"),
    "Mapping[str, Any]": ((dict,), "an object"),
    "Sequence[str]": ((list,), "a list of texts"),
}
# A slice is chosen by whoever may trigger a run. So it is one name, and only in these settings a directory.
_SLICE = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SLICE_PATHS = ("input.path", "output.path")
_SLICE_ELEMENT = re.compile(r"(?:\w+=)?\{slice\}", re.ASCII)
# The scheme and host of a URL, or a slash.
_PATH_START = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/{}]*/|/(?!/))")
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
        people who may trigger a run must not choose paths, binaries or rules.
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
                    # A list or an object may hold a password.
                    shown = "" if types in ((dict,), (list,)) else f" = {str(value)[:80]}"
                    problems.append(f"{name}{shown}: should be {kind}.")
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
        [],
        "settings of the configuration to override, each `KEY=VALUE`; in `input.path` and `output.path` the slice "
        "replaces `{slice}`, a whole directory such as `/lake/out/{slice}`",
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
        "`plan` looks for it without Spark; `{slice}` as in `overrides`",
    )
    wait_hours: float = setting(6, "how long to wait for the slice's first record, in hours")
    wait_minutes: float = setting(10, "how long to wait between two checks for it, in minutes")
    key_conn_id: str = setting(
        "", "the connection whose password is the key, for a configuration with `key: {env: WORDVEIL_KEY}`"
    )
    key_env: str = setting("WORDVEIL_KEY", "the environment variable that the configuration names in `key.env`")

    def __post_init__(self) -> None:
        """Refuse ``{slice}`` wherever it could choose more than one directory's name."""
        named = [("marker", "", self.marker), *(("overrides", *one.partition("=")[::2]) for one in self.overrides)]
        problems = [
            f"{name}: {hide_user_info(f'{key}={value}' if key else value)}: {problem}"
            for name, key, value in named
            if "{slice}" in key + value and (problem := find_slice_problem(name, key, value))
        ]
        if problems:
            raise AirflowFailException(f"Airflow Variable {self.variable}: {' '.join(problems)}")


@dataclass(frozen=True)
class AnalyticsSettings(SubmitSettings):
    """Settings of ``analytics_on_release``."""

    output: str = setting("", "the directory of the tables of estimates, where Spark writes", required=True)
    public_key: str = setting(
        "", "the release's public key, from its owner; without it the manifest is checked only with its own key"
    )
    by: str = setting("", "kept columns in whose groups counts are estimated, separated by commas")
    over: str = setting("", "a kept column, such as a week, between whose values counts are compared")
    min_documents: int = setting(2, "of a table without symbols: written words in fewer records are left out")
    delta_jars: str = setting(
        "", "a directory with Delta's jars, if Spark cannot fetch them and `spark_conf` does not name any"
    )


# What a run of `sanitise_nightly` can choose when it is triggered.
NIGHTLY_PARAMS = {
    "slice": Param(
        None,
        type=["null", "string"],
        pattern=f"^{_SLICE.pattern}$",
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


def find_slice_problem(name: str, key: str, value: str) -> str:
    """Why ``{slice}`` must not be in a setting, and what to write instead; empty where it may be."""
    if key == "input.where":
        return "SQL gets the slice by slice_param alone. Write its name after a colon, such as ds = :ds."
    if name != "marker" and key not in _SLICE_PATHS:
        return f"only {' and '.join(_SLICE_PATHS)} may have {{slice}}. Remove it."
    start = _PATH_START.match(value)
    elements = [part for part in value[start.end() :].split("/") if "{slice}" in part] if start else []
    if elements and all(map(_SLICE_ELEMENT.fullmatch, elements)):
        return ""
    return (
        "{slice} must be a whole directory below the root of an absolute path or URL. Write it as in "
        "/lake/out/{slice} or /lake/raw/ds={slice}."
    )


def require_slice(value: object, mend: str) -> str:
    """Check that a value is a slice: one name, which can be neither a path nor SQL. ``mend``: what to do otherwise.

    A run's parameters may have been set without regard to their patterns.
    """
    if isinstance(value, str) and _SLICE.fullmatch(value):
        return value
    raise AirflowFailException(
        f"slice = {str(value)[:120]!r}: must be 1 to 100 letters, digits, '.', '_' or '-', begin with a letter or "
        f"digit, and have no '..'. {mend}"
    )


def format_slice(settings: NightlySettings, context: Context | dict[str, Any]) -> str:
    """The value of ``slice_param``: the run's parameter ``slice``, else the start of its data interval.

    The interval's start is written in the time zone of the DAG's timetable.
    """
    if (given := context["params"].get("slice")) not in (None, ""):
        return require_slice(given, "Trigger the DAG with another slice.")
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
    found = start.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone).strftime(settings.slice_format)
    return require_slice(found, f"Correct slice_format in the Airflow Variable {settings.variable}.")


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


def hide_user_info(text: str) -> str:
    """A path or URL without what may be a password: what is before its last ``@``, and its query."""
    return re.sub(r"(:[/\\]*).*@", r"\1", text, flags=re.DOTALL).partition("?")[0]


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


# Exit codes that no retry can fix: configuration or command line, gate, key, an output that exists. Input and bundle
# (4), the platform (7) and Spark (8) are retried: storage, a catalogue or the source of Delta's jars may be out of
# reach for a while. No retry draws or charges anything twice. `wordveil docs runbook` has all codes.
FINAL_EXIT_CODES = frozenset({2, 3, 5, 6})
# What is public of a publication: `publish` writes it into the asset's event, the analytics read it there.
EVENT_KEYS = ("release", "table", "manifest", "manifest_sha256", "publication", "public_version")


class WordveilSubmitOperator(SparkSubmitOperator):
    """One wordveil command by spark-submit.

    The command writes a report, a JSON file. The report decides whether the task succeeds, is retried or fails: logs
    are for people, and in cluster mode neither log nor exit code comes back. :meth:`select_result` chooses what goes
    to XCom.
    """

    job: ClassVar[str]
    """The application file."""
    settings_type: ClassVar[type[SubmitSettings]] = SubmitSettings
    xcom_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the command's result that go to XCom: only what may be public."""
    advice: ClassVar[str] = ""
    """What a person does when the task has failed."""
    final_exit_codes: ClassVar[frozenset[int]] = FINAL_EXIT_CODES
    """Exit codes that fail the task without a retry."""

    def build_arguments(self, settings: Any, context: Context) -> list[str]:
        """The command's arguments except ``--report``."""
        raise NotImplementedError

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """Choose from the command's result what goes to XCom."""
        return {name: report[name] for name in self.xcom_keys}

    def command_environment(self, settings: Any) -> AbstractContextManager[None]:
        """Environment variables for spark-submit, set while it runs."""
        return nullcontext()

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        """Called when a command has failed, before the task fails."""

    def execute(self, context: Context) -> Any:
        return self.run_command(context)

    def run_command(self, context: Context) -> dict[str, Any]:
        """Submit the command, wait for it and read its report."""
        settings = self.settings_type.read(context)
        connection = settings.get_connection()
        on_yarn_cluster = "yarn" in str(connection.host) and read_deploy_mode(connection) == "cluster"
        has_resource_manager = "yarn_resourcemanager_webapp_address" in connection.extra_dejson
        self._conn_id = settings.spark_conn_id
        self._spark_binary = settings.spark_submit or None
        self._yarn_track_via_rm_api = on_yarn_cluster and has_resource_manager
        self.durable = self._yarn_track_via_rm_api or not on_yarn_cluster
        self.conf = {"spark.log.level": "WARN", **settings.spark_conf}
        self.application = settings.job_path(self.job)
        self.name = f"{self.task_id} {build_run_id(context)}"
        self._hook = None
        with tempfile.TemporaryDirectory(prefix="wordveil-") as temporary:
            folder = settings.reports.rstrip("/") or temporary
            path = f"{folder}/{build_run_id(context)}/{self.task_id}-{context['ti'].try_number}.json"
            arguments = self.build_arguments(settings, context)
            self.application_args = [*arguments, "--report", strip_connection(path)]
            failure: Exception | None = None
            try:
                with self.command_environment(settings):
                    super().execute(context)
            except AirflowFailException:
                raise
            except Exception as error:  # noqa: BLE001 - the report says what it was
                failure = error
            report = read_report(path)
        return self.judge(report, failure, settings, context)

    def judge(
        self, report: dict[str, Any] | None, failure: Exception | None, settings: SubmitSettings, context: Context
    ) -> dict[str, Any]:
        """Return the command's result for XCom, or raise what makes Airflow retry or fail the task."""
        if report is None:
            if failure is not None:
                raise failure
            raise AirflowException(
                "the command ended, and this task cannot read its report. Set reports in the Airflow Variable "
                f"{settings.variable} to a directory or URL that both Spark's driver and Airflow's workers reach."
            )
        code = report["exit_code"]
        if code == 0 and failure is None:
            return self.select_result(report["result"], context)
        error = report.get("error") or {"type": "", "message": str(failure)}
        message = f"{error['type']}: {error['message']} (exit code {code})"
        self.on_command_failure(report, context)
        raise (AirflowFailException if code in self.final_exit_codes else AirflowException)(message)


@task(task_id="check", execution_timeout=timedelta(minutes=5))
def check_night(**context: Any) -> dict[str, str]:
    """Check all that can be missing before Spark starts: settings, connections, files."""
    settings = NightlySettings.read(context)
    if settings.key_conn_id:
        read_key(settings)
    mode = settings.require_files("plan.py", "sanitise.py", "release.py", config=settings.config)
    if settings.key_conn_id and mode == "cluster":
        raise AirflowFailException(
            f"key_conn_id = {settings.key_conn_id}: with deploy mode cluster the driver does not inherit the variable "
            f"{settings.key_env} from this process. Mount the key file where the driver runs, name it by key: "
            "{file: ...} in the configuration, and remove key_conn_id from the Airflow Variable "
            f"{settings.variable}."
        )
    return {
        "run_id": build_run_id(context),
        "slice": format_slice(settings, context),
        "config": settings.config,
        "deploy_mode": mode,
    }


class ReleaseOperator(WordveilSubmitOperator):
    """A command with the release's configuration."""

    settings_type = NightlySettings

    def command_environment(self, settings: NightlySettings) -> AbstractContextManager[None]:
        return export_key(settings)

    def configure(self, settings: NightlySettings, context: Context, *, reads_input: bool = False) -> list[str]:
        """``--config``, ``--set`` and, for commands that read the input, ``--param``."""
        part = format_slice(settings, context)
        overrides = [word for one in settings.overrides for word in ("--set", one.replace("{slice}", part))]
        has_param = reads_input and settings.slice_param
        return [
            *("--config", settings.config, *overrides),
            *(["--param", f"{settings.slice_param}={part}"] if has_param else []),
        ]


class PlanOperator(BaseSensorOperator, ReleaseOperator):
    """Plans the run, and frees its worker slot while the slice has no record.

    Only Spark can say reliably whether a slice has records, whatever the condition over a Parquet or Delta table is: a
    directory can contain an unfinished file, or files that the table no longer has, and not every slice is a
    directory. So `wordveil plan`, which runs anyway, looks for one record. If ``marker`` is set, the task looks for
    that file first, without Spark.
    """

    job = "plan.py"
    xcom_keys = (
        *("release", "input", "mechanism", "epsilon", "bundle", "metric", "composition", "relation", "exposes"),
        *("tokens", "epsilon_bound", "epsilon_pure", "output_format", "has_records"),
    )
    advice = "If the slice's records are there now, clear the task. Otherwise first fix the error of its last try."

    def build_arguments(self, settings: NightlySettings, context: Context) -> list[str]:
        return [*self.configure(settings, context, reads_input=True), "--has-records"]

    def execute(self, context: Context) -> Any:
        settings = NightlySettings.read(context)
        self.timeout = settings.wait_hours * 3600
        self.poke_interval = settings.wait_minutes * 60
        part = format_slice(settings, context)
        try:
            return BaseSensorOperator.execute(self, context)
        except AirflowSensorTimeout:
            marker = settings.marker.replace("{slice}", part)
            of_slice = f" of {settings.slice_param}={part}" if settings.slice_param else ""
            awaited = marker or f"a record{of_slice} in the input"
            raise AirflowSensorTimeout(
                f"slice {part}: {awaited} of {settings.config} did not arrive within {settings.wait_hours:g} hours. "
                "Nothing was drawn. Make sure that the input is written, then clear this task. If the slice is meant "
                "to be empty, mark the task as failed."
            ) from None

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Whether there is a record."""
        settings = NightlySettings.read(context)
        part = format_slice(settings, context)
        marker, again = settings.marker.replace("{slice}", part), f"Next look in {settings.wait_minutes:g} minutes."
        if marker and not open_path(marker).exists():
            log.info("slice %s: %s does not exist yet. %s", part, strip_connection(marker), again)
            return False
        found = self.run_command(context)
        if not found["has_records"]:
            log.info("slice %s: %s has no record of it yet. %s", part, found["input"], again)
            return False
        return PokeReturnValue(is_done=True, xcom_value=found)


class SanitiseOperator(ReleaseOperator):
    """Draws, and charges the ledger.

    A release that refuses (exit code 9), because of a budget or of missing tables, would refuse again: no retry.
    """

    job = "sanitise.py"
    # No counts: tokens, words and quarantines are functions of private text, and the version may fail its gate.
    xcom_keys = ("run_id", "release", "output", "changes", "input_version", "relation", "exposes", "key_fingerprint")
    final_exit_codes = FINAL_EXIT_CODES | {9}
    advice = (
        "Nothing of this run is published. Clear the task to start the same run again: it spends nothing twice. After "
        "an exceeded budget (exit code 9), first raise the budget or leave records out. `wordveil release show` lists "
        "interrupted runs."
    )

    def build_arguments(self, settings: NightlySettings, context: Context) -> list[str]:
        return [*self.configure(settings, context, reads_input=True), "--run-id", build_run_id(context)]


class GateOperator(ReleaseOperator):
    """Checks the draws against the gate's rules; the log has the table of results.

    A Parquet output has no gate, and nothing is published without a gate: the task and those after it are skipped.
    """

    job = "release.py"
    advice = "The previous publication stays. The table above says which rule failed; a later night may pass."

    def execute(self, context: Context) -> Any:
        planned = context["ti"].xcom_pull(task_ids="plan")
        if planned["output_format"] != "delta":
            raise AirflowSkipException(
                f"output.format is {planned['output_format']}: the run ends here. Only a Delta release is gated and "
                "published."
            )
        return super().execute(context)

    def build_arguments(self, settings: NightlySettings, context: Context) -> list[str]:
        return ["gate", *self.configure(settings, context)]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        # Values that a private rule measured stay in the log, and all values of a gate that failed.
        rules = [
            {"name": one["name"], "kind": one["kind"], "bound": one["bound"]}
            | ({"value": one["value"]} if report["passed"] and one["kind"] != "private" else {})
            for one in report["results"]
        ]
        return {**{name: report[name] for name in ("release", "draws_version", "passed")}, "rules": rules}

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        if report.get("result"):
            context["ti"].xcom_push(key="return_value", value=self.select_result(report["result"], context))


class PublishOperator(ReleaseOperator):
    """Writes the public table and its manifest, and updates the assets in ``outlets``."""

    job = "release.py"
    advice = "Either the previous publication stays, or the new one is complete. Clear the task to publish again."

    def build_arguments(self, settings: NightlySettings, context: Context) -> list[str]:
        return ["publish", *self.configure(settings, context)]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        manifest = report["manifest"]
        names = ("release", "created", "publication", "public_version", "draws_version", "records", "exposes")
        facts = {
            **{name: manifest[name] for name in names},
            "table": report["table"],
            "manifest": report["manifest_path"],
            "manifest_sha256": report["manifest_sha256"],
            "public_key": report["public_key"],
            "run_id": build_run_id(context),
        }
        for asset in self.outlets:
            context["outlet_events"][asset].extra = facts
        return facts

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        if report["error"]["type"] == "OutdatedGateError":
            raise AirflowSkipException(
                f"{report['error']['message']} A later run has changed the release: its gate and publication include "
                "this run's draws."
            )


@task(task_id="release", execution_timeout=timedelta(minutes=5))
def read_event(asset: str, **context: Any) -> dict[str, Any]:
    """Read what the newest event of the asset says was published; check what must exist before Spark starts."""
    AnalyticsSettings.read(context).require_files("analytics.py", "release.py")
    events = [event for found in context["triggering_asset_events"].values() for event in found]
    if not events:
        raise AirflowFailException(
            f"this run was not started by the asset {asset}, so there is no version to read. Clear a run that the "
            "asset started, or publish the release."
        )
    newest = max(events, key=lambda event: event.timestamp).extra
    if missing := [name for name in EVENT_KEYS if name not in newest]:
        raise AirflowFailException(
            f"the event of the asset {asset} lacks {', '.join(missing)}: it was not written by PublishOperator. Update "
            "the asset by the DAG sanitise_nightly only."
        )
    return {name: newest[name] for name in EVENT_KEYS}


class PublicTableOperator(WordveilSubmitOperator):
    """A command on the public table that the task ``release`` found."""

    settings_type = AnalyticsSettings

    def pull_publication(self, context: Context) -> dict[str, Any]:
        """What the task ``release`` found."""
        found: dict[str, Any] = context["ti"].xcom_pull(task_ids="release")
        return found

    def delta_jars_option(self, settings: AnalyticsSettings) -> list[str]:
        """``--delta-jars``, if it is set."""
        return ["--delta-jars", settings.delta_jars] if settings.delta_jars else []


class VerifyOperator(PublicTableOperator):
    """Compares what readers of the public table see with its signed manifest, and the manifest with the asset's event.

    The Airflow Variable ``<DAG id>_seen`` keeps the number of each table's last publication: a smaller one is refused.
    """

    job = "release.py"
    xcom_keys = (
        *("verified", "release", "publication", "public_version", "records", "files", "relation", "exposes", "pinned"),
    )
    advice = (
        "The table is not the one that the asset's event names, or not the one that was signed, or older than one that "
        "was seen before: do not use it. Compare it with the owner's public key, publish again, or find out who has "
        "written to it."
    )

    def build_arguments(self, settings: AnalyticsSettings, context: Context) -> list[str]:
        pinned = ["--public-key", settings.public_key] if settings.public_key else []
        table = self.pull_publication(context)["table"]
        return [
            *("verify", "--table", table, "--at-least", str(self.read_seen(context).get(table, 0))),
            *pinned,
            *self.delta_jars_option(settings),
        ]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        event = self.pull_publication(context)
        number, seen = report["publication"], self.read_seen(context)
        if report["manifest_sha256"] != event["manifest_sha256"] and number <= event["publication"]:
            raise AirflowFailException(
                f"{event['manifest']} is not the manifest that the asset's event names: its SHA-256 is "
                f"{report['manifest_sha256']}, not {event['manifest_sha256']}. Do not use the table. Publish again, "
                "and find out who has written to it."
            )
        Variable.set(
            self.seen_variable(context),
            {**seen, event["table"]: max(number, seen.get(event["table"], 0))},
            serialize_json=True,
        )
        if number > event["publication"]:
            raise AirflowSkipException(
                f"{event['table']} was published again at {report['created']}: that publication's own event starts a "
                "run."
            )
        return super().select_result(report, context)

    @staticmethod
    def seen_variable(context: Context) -> str:
        """The name of the Airflow Variable with the numbers of publications."""
        return f"{context['dag'].dag_id}_seen"

    def read_seen(self, context: Context) -> dict[str, int]:
        """The number of each table's last publication, by the table's path."""
        found: dict[str, int] = Variable.get(self.seen_variable(context), default={}, deserialize_json=True)
        return found


class AnalyseOperator(PublicTableOperator):
    """Estimates counts from the version that was verified."""

    job = "analytics.py"
    xcom_keys = ("output", "public_version", "records", "unit", "drawn")
    advice = "The tables of the run before are unchanged. Clear the task."

    def build_arguments(self, settings: AnalyticsSettings, context: Context) -> list[str]:
        event = self.pull_publication(context)
        return [
            *("--table", event["table"], "--output", settings.output, "--version", str(event["public_version"])),
            *("--min-documents", str(settings.min_documents), *(("--by", settings.by) if settings.by else ())),
            *(("--over", settings.over) if settings.over else ()),
            *self.delta_jars_option(settings),
        ]
