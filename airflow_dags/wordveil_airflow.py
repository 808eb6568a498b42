"""wordveil for Airflow 3: the settings of releases, and wordveil's commands as operators.

``wordveil_dags.py`` makes the DAGs of each file in ``wordveil_releases/`` of them. Airflow puts the root of a DAG
bundle (the DAG folder) on ``sys.path``, so all of these belong in that root. They import Airflow, its Spark provider,
what these import, and the standard library: Airflow's environment does not need wordveil.
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
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

import yaml
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
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
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTimetableInvalid,
)
from airflow.sdk.log import mask_secret
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# A slice is chosen by whoever may trigger a run. So it is one name, and only in these settings a directory.
_SLICE = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SLICE_PATHS = ("input.path", "output.path")
_SLICE_ELEMENT = re.compile(r"(?:\w+=)?\{slice\}", re.ASCII)
# The scheme and host of a URL, or a slash.
_PATH_START = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/{}]*/|/(?!/))")
_HERE = Path(__file__).parent
RELEASES = _HERE / "wordveil_releases"
_JOBS = next((str(path) for path in (_HERE / "wordveil_jobs", _HERE.parent / "jobs") if path.is_dir()), "")


class ReleaseSettings(BaseModel):
    """Settings of the DAGs of one release, which a file of ``wordveil_releases/`` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    _file: str = PrivateAttr("")

    config: str = Field(min_length=1, description="the release's YAML configuration, where Spark's driver reads it")
    publish: Literal["passed", "approved", "never"] = Field(
        "passed",
        description="`passed`: what passes the gate, in one Spark session; `approved`: what has passed and a person "
        "approves; `never`: a Parquet output, which is no release",
    )
    schedule: str = Field("0 0 * * *", description="when nights begin, as cron writes it, in UTC")
    overrides: list[str] = Field(
        [],
        description="settings of the configuration to override, each `KEY=VALUE`; in `input.path` and `output.path` "
        "the slice replaces `{slice}`, a whole directory such as `/lake/out/{slice}`",
    )
    slice_param: str = Field(
        "ds", description="the parameter of `input.where` that chooses a night's records; empty if there is none"
    )
    slice_format: str = Field(
        "%Y-%m-%d", description="the format of the parameter's value (strftime), from the start of the data interval"
    )
    marker: str = Field(
        "",
        description="a file that says that a slice is complete, e.g. `s3://conn@lake/raw/ds={slice}/_SUCCESS`, which "
        "`night` awaits without Spark; `{slice}` as in `overrides`",
    )
    wait_hours: float = Field(6, ge=0, description="how long to wait for the slice's first record, in hours")
    wait_minutes: float = Field(10, ge=0, description="how long to wait between two checks for it, in minutes")
    key_conn_id: str = Field(
        "", description="the connection whose password is the key, for a configuration with `key: {env: WORDVEIL_KEY}`"
    )
    key_env: str = Field("WORDVEIL_KEY", description="the environment variable that the configuration names in `key`")
    public_key: str = Field(
        "", description="the release's public key, from its owner; without it `verify` does not find forgery"
    )
    analytics: str = Field("", description="a directory for tables of estimates; without it `verify` ends its DAG")
    by: str = Field("", description="kept columns in whose groups counts are estimated, separated by commas")
    over: str = Field("", description="a kept column, such as a week, between whose values counts are compared")
    every: Literal["", "week", "month", "quarter", "year"] = Field(
        "", description="`over` has dates, and these periods of them are compared"
    )
    min_documents: int = Field(2, description="of a table without symbols: written words in fewer records are left out")
    delta_jars: str = Field(
        "", description="for `verify` and `analyse`: a directory with Delta's jars, if `spark_conf` does not name any"
    )
    compact_schedule: str = Field("0 12 * * 0", description="when files are compacted, as cron writes it, in UTC")
    jobs: str = Field(
        _JOBS,
        description="the directory of wordveil's application files, any path or URL that spark-submit accepts; "
        "`wordveil init --airflow` writes it",
    )
    spark_conn_id: str = Field(
        "wordveil_spark", description="the Spark connection: master, deploy mode, queue, namespace"
    )
    spark_submit: str = Field(
        "", description="the path of spark-submit; by default the one of the connection, on the PATH"
    )
    spark_conf: dict[str, Any] = Field({}, description="Spark options for spark-submit")
    reports: str = Field(
        "",
        description="a directory or URL for the commands' reports, by default a temporary directory; required with "
        "deploy mode `cluster`, e.g. `s3://conn@bucket/reports`",
    )

    @field_validator("schedule", "compact_schedule")
    @classmethod
    def _check_schedule(cls, value: str) -> str:
        try:
            CronDataIntervalTimetable(value, timezone="UTC").validate()
        except AirflowTimetableInvalid as error:
            raise ValueError(str(error)) from None
        return value

    @model_validator(mode="after")
    def _check_slices(self) -> Self:
        """Refuse ``{slice}`` wherever it could choose more than one directory's name."""
        named = [("marker", "", self.marker), *(("overrides", *one.partition("=")[::2]) for one in self.overrides)]
        problems = [
            f"{name}: {hide_user_info(f'{key}={value}' if key else value)}: {problem}"
            for name, key, value in named
            if "{slice}" in key + value and (problem := find_slice_problem(name, key, value))
        ]
        if problems:
            raise ValueError(" ".join(problems))
        return self

    @model_validator(mode="after")
    def _check_periods(self) -> Self:
        if self.every and not self.over:
            raise ValueError(f"every = {self.every}: needs over, a kept column of dates.")
        return self

    def model_post_init(self, context: Any) -> None:
        self._file = str(context)

    @property
    def file(self) -> str:
        """The file that has these settings."""
        return self._file

    @classmethod
    def to_markdown(cls, name: str) -> str:
        """The settings as a table for the documentation of a DAG."""
        rows = []
        for key, item in cls.model_fields.items():
            default = "required" if item.is_required() else f"`{item.default}`" if item.default else "none"
            rows.append(f"| `{key}` | {default} | {item.description} |\n")
        head = f"The file `wordveil_releases/{name}.yaml` beside the DAGs has these settings:\n\n"
        return f"{head}| setting | default | meaning |\n| --- | --- | --- |\n{''.join(rows)}"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the settings of a file. Raises :class:`ValueError` that lists all its faults, and no value that may be
        a password.
        """
        if not _NAME.fullmatch(path.stem) or path.suffix != ".yaml":
            raise ValueError(
                "is not named RELEASE.yaml. Use 1 to 128 letters, digits, '.', '_' or '-', a letter or digit first."
            )
        try:
            document = yaml.safe_load(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot be read ({type(error).__name__}). Write a UTF-8 text file.") from None
        except yaml.YAMLError as error:  # as text it quotes the line
            line = f", line {mark.line + 1}" if (mark := getattr(error, "problem_mark", None)) else ""
            raise ValueError(f"is not YAML ({getattr(error, 'problem', None)}{line}).") from None
        try:
            return cls.model_validate(document, context=str(path))
        except ValidationError as error:
            raise ValueError(" ".join(map(cls._describe, error.errors(include_url=False)))) from None

    @classmethod
    def _describe(cls, error: Any) -> str:
        name, kind = ".".join(map(str, error["loc"])), error["type"]
        problem = error["msg"].removeprefix("Value error, ").rstrip(".")
        if kind == "extra_forbidden":
            near = difflib.get_close_matches(name, cls.model_fields, n=1)
            settings = f"Did you mean {near[0]}?" if near else f"Settings: {', '.join(cls.model_fields)}."
            return f"{name}: there is no such setting. {settings}"
        if kind == "missing":
            return f"{name} is missing. Set it: {cls.model_fields[name].description}."
        if kind == "model_type":
            return "has no settings. Write at least: config: /path/of/release.yaml"
        if not name:
            return f"{problem}."
        # A list or an object may hold a password.
        is_plain = name in cls.model_fields and name not in ("overrides", "spark_conf")
        shown = f" = {str(error['input'])[:80]}" if is_plain and not isinstance(error["input"], dict | list) else ""
        return f"{name}{shown}: {problem}."

    def get_connection(self) -> Connection:
        """The Spark connection. Without this check Airflow would submit to YARN."""
        name = self.spark_conn_id
        try:
            return BaseHook.get_connection(name)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"Spark connection {name}: is missing, and nothing was submitted. Create it: airflow connections add "
                f"{name} --conn-type spark --conn-host spark://MASTER:7077. Or set spark_conn_id in {self._file} to "
                "the name of another connection."
            ) from None

    def require_files(self, job: str, **files: str) -> str:
        """Check all that can be missing before Spark starts: the connection, a directory for reports, files.

        ``files`` are settings with the path of a file that Spark's driver reads. Returns the deploy mode.
        """
        mode = read_deploy_mode(self.get_connection())
        if mode == "cluster" and not self.reports:
            raise AirflowFailException(
                f"reports: is missing, and the driver runs on the cluster. Set reports in {self._file} to a directory "
                "or URL that both the driver and Airflow's workers reach, e.g. s3://conn@bucket/reports."
            )
        needed = [("jobs", self.jobs, self.job_path(job))]
        needed += [(name, path, path) for name, path in files.items() if mode == "client"]
        for name, value, path in needed:
            if "://" not in path and not Path(path).is_file():
                raise AirflowFailException(
                    f"{name} = {value}: there is no file {path} on this worker. Put the file there, or correct {name} "
                    f"in {self._file}."
                )
        return mode

    def job_path(self, job: str) -> str:
        """The path or URL of an application file."""
        return f"{self.jobs.rstrip('/')}/{job}"

    def read_key(self) -> str:
        """Read the password of the key's connection, and mask it in logs."""
        try:
            key = BaseHook.get_connection(self.key_conn_id).password or ""
        except AirflowNotFoundException:
            key = ""
        if not key.strip():
            raise AirflowFailException(
                f"connection {self.key_conn_id}: is missing or has no password. Set its password to the contents of a "
                "key file of `wordveil key new`; keep it in a secrets backend. Or name a key file in the configuration "
                f"and remove key_conn_id from {self._file}."
            )
        for part in (key, *key.split()):
            mask_secret(part)
        return key

    def require_key(self, mode: str) -> None:
        """Check that the command can have the key, if a connection has it. ``mode``: the deploy mode."""
        if not self.key_conn_id:
            return
        self.read_key()
        if mode == "cluster":
            raise AirflowFailException(
                f"key_conn_id = {self.key_conn_id}: with deploy mode cluster the driver does not inherit the variable "
                f"{self.key_env} from this process. Mount the key file where the driver runs, name it by key: "
                f"{{file: ...}} in the configuration, and remove key_conn_id from {self._file}."
            )

    @contextmanager
    def export_key(self) -> Iterator[None]:
        """Put the key of the connection ``key_conn_id`` into this process's environment, which spark-submit inherits.

        The key is nowhere else: Airflow shows ``env_vars`` and the other templated fields in clear, and every list of
        processes shows arguments.
        """
        if not self.key_conn_id:
            yield
            return
        key, before = self.read_key(), os.environ.get(self.key_env)
        os.environ[self.key_env] = key
        try:
            yield
        finally:
            os.environ.pop(self.key_env)
            if before is not None:
                os.environ[self.key_env] = before


def read_releases(folder: Path = RELEASES) -> tuple[dict[str, ReleaseSettings], list[str]]:
    """Read the files of a folder: the settings of each release by its name, and the faults of files that are left out.

    Starts nothing and asks no service: Airflow's DAG processor and each task call it.
    """
    releases, faults = {}, []
    for path in sorted(folder.glob("*.y*ml")):
        try:
            releases[path.stem] = ReleaseSettings.read(path)
        except ValueError as error:
            faults.append(f"{path}: {error}")
    return releases, faults


# What a run of the nightly DAG can choose when it is triggered. Other parameters change no setting: Airflow adds
# whatever a trigger's ``conf`` contains to them, and people who may trigger a run must not choose paths or rules.
NIGHT_PARAMS = {
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
        description="How long to wait for the slice's records. Empty: what the release's settings say, or 6.",
    ),
}
ERASE_PARAMS = {
    "ids": Param([], type="array", items={"type": "string"}, title="Ids", description="Records to erase, one a line."),
    "author": Param(None, type=["null", "string"], title="Author", description="Erase all records of this author."),
    "retain_hours": Param(
        0,
        type="integer",
        minimum=0,
        title="Hours to retain",
        description="Keep files of old versions of the last hours: 168 on object stores with several writers.",
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


def format_slice(settings: ReleaseSettings, context: Context | dict[str, Any]) -> str:
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
    return require_slice(found, "Correct slice_format in the release's settings.")


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
    """Arguments that the DAGs have in common: retries, callbacks, time limits, one run at a time."""
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
# What is public of a publication: the asset's event has it.
EVENT_KEYS = ("release", "table", "manifest", "manifest_sha256", "publication", "public_version")


class WordveilSubmitOperator(SparkSubmitOperator):
    """One wordveil command by spark-submit.

    The command writes a report, a JSON file. The report decides whether the task succeeds, is retried or fails: logs
    are for people, and in cluster mode neither log nor exit code comes back. :meth:`select_result` chooses what goes
    to XCom.
    """

    job: str = "release.py"
    """The application file."""
    xcom_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the command's result that go to XCom: only what may be public."""
    advice: ClassVar[str] = ""
    """What a person does when the task has failed."""
    final_exit_codes: ClassVar[frozenset[int]] = FINAL_EXIT_CODES
    """Exit codes that fail the task without a retry."""
    needs_config: ClassVar[bool] = True
    """True if the command reads the release's configuration, and may need its key."""

    def __init__(self, *, settings: ReleaseSettings, **options: Any) -> None:
        super().__init__(**options)
        self.settings = settings

    def build_arguments(self, context: Context) -> list[str]:
        """The command's arguments except ``--report``."""
        raise NotImplementedError

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        """Choose from the command's result what goes to XCom."""
        return {name: report[name] for name in self.xcom_keys}

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        """Called when a command has failed, before the task fails."""

    def check(self) -> None:
        """Check all that can be missing before Spark starts: connections, files, the key."""
        if self.needs_config:
            self.settings.require_key(self.settings.require_files(self.job, config=self.settings.config))
        else:
            self.settings.require_files(self.job)

    def execute(self, context: Context) -> Any:
        return self.run_command(context)

    def run_command(self, context: Context) -> dict[str, Any]:
        """Submit the command, wait for it and read its report."""
        self.check()
        settings = self.settings
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
            if folder != temporary:  # one of this try's, before it waited again
                open_path(path).unlink(missing_ok=True)
            self.application_args = [*self.build_arguments(context), "--report", strip_connection(path)]
            failure: Exception | None = None
            try:
                with settings.export_key() if self.needs_config else nullcontext():
                    super().execute(context)
            except AirflowFailException:
                raise
            except Exception as error:  # noqa: BLE001 - the report says what it was
                failure = error
            report = read_report(path)
        return self.judge(report, failure, context)

    def judge(self, report: dict[str, Any] | None, failure: Exception | None, context: Context) -> dict[str, Any]:
        """Return the command's result for XCom, or raise what makes Airflow retry or fail the task."""
        if report is None:
            if failure is not None:
                raise failure
            raise AirflowException(
                f"the command ended, and this task cannot read its report. Set reports in {self.settings.file} to a "
                "directory or URL that both Spark's driver and Airflow's workers reach."
            )
        code = report["exit_code"]
        if code == 0 and failure is None:
            return self.select_result(report["result"], context)
        error = report.get("error") or {"type": "", "message": str(failure)}
        message = f"{error['type']}: {error['message']} (exit code {code})"
        self.on_command_failure(report, context)
        raise (AirflowFailException if code in self.final_exit_codes else AirflowException)(message)


class ReleaseOperator(WordveilSubmitOperator):
    """A command with the release's configuration."""

    def configure(self, part: str | None = None) -> list[str]:
        """``--config`` and ``--set``. ``part``: the run's slice; without one its paths are left as they are."""
        overrides = [one for one in self.settings.overrides if part is not None or "{slice}" not in one]
        words = [word for one in overrides for word in ("--set", one.replace("{slice}", part or ""))]
        return ["--config", self.settings.config, *words]

    def record_publication(self, published: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return what is public of a publication, which the events of the assets in ``outlets`` get too."""
        manifest = published["manifest"]
        names = ("release", "created", "publication", "public_version", "draws_version", "records", "exposes")
        facts = {
            **{name: manifest[name] for name in names},
            "table": published["table"],
            "manifest": published["manifest_path"],
            "manifest_sha256": published["manifest_sha256"],
            "public_key": published["public_key"],
            "run_id": build_run_id(context),
        }
        for asset in self.outlets:
            context["outlet_events"][asset].extra = facts
        return facts

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        if (report.get("error") or {}).get("type") == "OutdatedGateError":
            raise AirflowSkipException(
                f"{report['error']['message']} The next gate and publication include this run's draws."
            )


class NightOperator(BaseSensorOperator, ReleaseOperator):
    """Sanitises a slice, gates and publishes it in one Spark session; frees its worker slot while there is no record.

    Only Spark can say reliably whether a slice has records, whatever the condition over a Parquet or Delta table is: a
    directory can contain an unfinished file, or files that the table no longer has, and not every slice is a
    directory. So the command looks for one record, and does nothing if there is none. If ``marker`` is set, the task
    looks for that file first, without Spark.

    A release that refuses (exit code 9), because of a budget or of missing tables, would refuse again: no retry.
    """

    # No counts: tokens, words and quarantines are functions of private text, and the version may fail its gate.
    xcom_keys = (
        *("run_id", "release", "output", "changes", "input_version", "relation", "exposes"),
        *("metric", "nominal_epsilon", "epsilon", "mechanism_fingerprint", "policy_fingerprint", "key_fingerprint"),
    )
    final_exit_codes = FINAL_EXIT_CODES | {9}
    advice = (
        "What was published before stays. Clear the task to start the same run again: it spends nothing twice. After "
        "an exceeded budget (exit code 9), first raise the budget or leave records out. After a failed gate (exit code "
        "3) its table says which rule failed; a later night may pass. `wordveil release show` lists interrupted runs."
    )

    def __init__(self, *, settings: ReleaseSettings, **options: Any) -> None:
        super().__init__(settings=settings, **options)
        self.job = "sanitise.py" if settings.publish == "never" else "release.py"

    def build_arguments(self, context: Context) -> list[str]:
        part, settings = format_slice(self.settings, context), self.settings
        command = {"never": [], "approved": ["night", "--no-publish"], "passed": ["night"]}[settings.publish]
        param = ["--param", f"{settings.slice_param}={part}"] if settings.slice_param else []
        return [*command, *self.configure(part), *param, "--skip-empty", "--run-id", build_run_id(context)]

    def execute(self, context: Context) -> Any:
        self.check()
        part, marker = self.find_slice(context)
        hours = context["params"].get("wait_hours")
        hours = self.settings.wait_hours if hours is None else hours
        self.timeout, self.poke_interval = hours * 3600, self.settings.wait_minutes * 60
        try:
            return BaseSensorOperator.execute(self, context)
        except AirflowSensorTimeout:
            of_slice = f" of {self.settings.slice_param}={part}" if self.settings.slice_param else ""
            awaited = marker or f"a record{of_slice} in the input"
            raise AirflowSensorTimeout(
                f"slice {part}: {awaited} of {self.settings.config} did not arrive within {hours:g} hours. Nothing was "
                "drawn. Make sure that the input is written, then clear this task. If the slice is meant to be empty, "
                "mark the task as failed."
            ) from None

    def find_slice(self, context: Context) -> tuple[str, str]:
        """The run's slice, and the path of its marker, empty without one."""
        part = format_slice(self.settings, context)
        return part, self.settings.marker.replace("{slice}", part)

    def poke(self, context: Context) -> bool | PokeReturnValue:
        """Run the night if there is a record."""
        (part, marker), again = self.find_slice(context), f"Next look in {self.settings.wait_minutes:g} minutes."
        if marker and not open_path(marker).exists():
            log.info("slice %s: %s does not exist yet. %s", part, strip_connection(marker), again)
            return False
        if not (found := self.run_command(context)):
            log.info("slice %s: the input has no record of it yet. %s", part, again)
            return False
        return PokeReturnValue(is_done=True, xcom_value=found)

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        if report.get("has_records") is False:
            return {}
        steps = report if "sanitise" in report else {"sanitise": report}
        found: dict[str, Any] = {"sanitise": super().select_result(steps["sanitise"], context)}
        if gate := steps.get("gate"):
            # Values that a private rule measured stay in the log, and all values of a gate that failed.
            rules = [
                {"name": one["name"], "kind": one["kind"], "bound": one["bound"]}
                | ({"value": one["value"]} if gate["passed"] and one["kind"] != "private" else {})
                for one in gate["results"]
            ]
            found["gate"] = {**{name: gate[name] for name in ("draws_version", "passed")}, "rules": rules}
        if published := steps.get("publish"):
            found["publish"] = self.record_publication(published, context)
        return found

    def on_command_failure(self, report: dict[str, Any], context: Context) -> None:
        if (report.get("result") or {}).get("gate"):
            context["ti"].xcom_push(key="return_value", value=self.select_result(report["result"], context))
        super().on_command_failure(report, context)


class PublishOperator(ReleaseOperator):
    """Publishes draws that passed the gate and were approved."""

    advice = "Either the previous publication stays, or the new one is complete. Clear the task to publish again."

    def build_arguments(self, context: Context) -> list[str]:
        gate = context["ti"].xcom_pull(task_ids="night")["gate"]  # what was approved, and nothing that came after it
        approved = ["--draws-version", str(gate["draws_version"])]
        return ["publish", *self.configure(format_slice(self.settings, context)), *approved]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        return self.record_publication(report, context)


class CompactOperator(ReleaseOperator):
    """Merges small files of a release, and deletes old ones."""

    advice = "No row has changed. Clear the task."

    def build_arguments(self, context: Context) -> list[str]:
        return ["compact", *self.configure()]


class EraseOperator(ReleaseOperator):
    """Erases the records that a run's parameters name, and updates the assets in ``outlets`` by the publication."""

    final_exit_codes = FINAL_EXIT_CODES | {9}  # it does not know an id
    advice = "Texts may still be there. Clear the task to go on; `wordveil release show` lists where they are."

    def build_arguments(self, context: Context) -> list[str]:
        ids, author = context["params"].get("ids") or [], context["params"].get("author") or ""
        # Of a text in place of the list each character would be an id.
        is_sound = isinstance(ids, list) and all(isinstance(one, str) for one in (*ids, author))
        if not (ids or author) or not is_sound:
            raise AirflowFailException("ids, author: name no record. Trigger the DAG with a list of ids, or an author.")
        named = [*(f"--id={one}" for one in ids), *([f"--author={author}"] if author else [])]
        return ["erase", *self.configure(), *named, "--retain-hours", str(context["params"].get("retain_hours") or 0)]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        published = self.record_publication(report["publish"], context) if report["publish"] else None
        return {"gone": report["gone"], "publish": published}


class PublicTableOperator(WordveilSubmitOperator):
    """A command on the public table."""

    needs_config = False

    def delta_jars_option(self) -> list[str]:
        """``--delta-jars``, if it is set."""
        return ["--delta-jars", self.settings.delta_jars] if self.settings.delta_jars else []


class VerifyOperator(PublicTableOperator):
    """Compares what readers of the public table see with its signed manifest, and the manifest with the asset's event.

    The Airflow Variable ``<DAG id>_seen`` keeps the number of each table's last publication: a smaller one is refused.
    """

    xcom_keys = (
        *("verified", "release", "publication", "public_version", "records", "files", "relation", "exposes", "pinned"),
        "table",
    )
    advice = (
        "The table is not the one that the asset's event names, or not the one that was signed, or older than one that "
        "was seen before: do not use it. Compare it with the owner's public key, publish again, or find out who has "
        "written to it."
    )

    def build_arguments(self, context: Context) -> list[str]:
        pinned = ["--public-key", self.settings.public_key] if self.settings.public_key else []
        table = self.read_event(context)["table"]
        return [
            *("verify", "--table", table, "--at-least", str(self.read_seen(context).get(table, 0))),
            *pinned,
            *self.delta_jars_option(),
        ]

    @staticmethod
    def read_event(context: Context) -> dict[str, Any]:
        """Read what the newest event of the asset says was published."""
        events = [event for found in context["triggering_asset_events"].values() for event in found]
        if not events:
            raise AirflowFailException(
                "this run was not started by the release's asset, so there is no version to read. Clear a run that the "
                "asset started, or publish the release."
            )
        if not (named := [event for event in events if event.extra]):
            raise AirflowSkipException("an erasure has published nothing: there was nothing of its records to remove.")
        newest: dict[str, Any] = max(named, key=lambda event: event.timestamp).extra
        if missing := [name for name in EVENT_KEYS if name not in newest]:
            raise AirflowFailException(
                f"the event of the release's asset lacks {', '.join(missing)}: no publication of the nightly DAG wrote "
                "it. Update the asset by that DAG only."
            )
        return newest

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        event = self.read_event(context)
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

    def build_arguments(self, context: Context) -> list[str]:
        verified, settings = context["ti"].xcom_pull(task_ids="verify"), self.settings
        return [
            *("--table", verified["table"], "--output", settings.analytics),
            *("--version", str(verified["public_version"]), "--min-documents", str(settings.min_documents)),
            *(("--by", settings.by) if settings.by else ()),
            *(("--over", settings.over) if settings.over else ()),
            *(("--every", settings.every) if settings.every else ()),
            *self.delta_jars_option(),
        ]
