"""wordveil for Airflow 3: its commands as operators, and the tasks that check first.

The DAG files ``sanitise_nightly.py`` and ``analytics_on_release.py`` import this module and
``wordveil_airflow_settings.py``. Airflow puts the root of a DAG bundle (the DAG folder) on ``sys.path``, so all of them
belong in that root. They import Airflow, its Spark provider and the standard library only: Airflow's environment does
not need wordveil.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseSensorOperator, PokeReturnValue, task
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

from wordveil_airflow_settings import (
    AnalyticsSettings,
    NightlySettings,
    SubmitSettings,
    build_run_id,
    export_key,
    format_slice,
    open_path,
    read_deploy_mode,
    read_key,
    read_report,
    strip_connection,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

# Exit codes that no retry can fix: configuration or command line, gate, key, an output that exists. Input and bundle
# (4), the platform (7) and Spark (8) are retried: storage, a catalogue or the source of Delta's jars may be out of
# reach for a while. No retry draws or charges anything twice. docs/runbook.md has all codes.
FINAL_EXIT_CODES = frozenset({2, 3, 5, 6})
# What is public of a publication: `publish` writes it into the asset's event, the analytics read it there.
EVENT_KEYS = ("release", "table", "manifest", "manifest_sha256", "created", "public_version")


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
            awaited = marker or f"a record of {settings.slice_param}={part} in the input"
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
        names = ("release", "created", "public_version", "draws_version", "records", "exposes")
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
    """Compares the public table with its signed manifest, file by file, and the manifest with the asset's event."""

    job = "release.py"
    xcom_keys = ("verified", "release", "public_version", "records", "files", "relation", "exposes", "pinned")
    advice = (
        "The table is not the one that the asset's event names, or not the one that was signed: do not use it. Compare "
        "it with the owner's public key, publish again, or find out who has written to it."
    )

    def build_arguments(self, settings: AnalyticsSettings, context: Context) -> list[str]:
        pinned = ["--public-key", settings.public_key] if settings.public_key else []
        return [
            "verify",
            "--table",
            self.pull_publication(context)["table"],
            *pinned,
            *self.delta_jars_option(settings),
        ]

    def select_result(self, report: dict[str, Any], context: Context) -> dict[str, Any]:
        event = self.pull_publication(context)
        if report["manifest_sha256"] != event["manifest_sha256"]:
            if report["release"] == event["release"] and report["created"] > event["created"]:
                raise AirflowSkipException(
                    f"{event['table']} was published again at {report['created']}: that publication's own event starts "
                    "a run."
                )
            raise AirflowFailException(
                f"{event['manifest']} is not the manifest that the asset's event names: its SHA-256 is "
                f"{report['manifest_sha256']}, not {event['manifest_sha256']}. Do not use the table. Publish again, "
                "and find out who has written to it."
            )
        return super().select_result(report, context)


class AnalyseOperator(PublicTableOperator):
    """Finds terms and topics of the version that was verified."""

    job = "analytics.py"
    xcom_keys = ("output", "public_version", "records", "documents", "terms", "topics")
    advice = "The tables of the run before are unchanged. Clear the task."

    def build_arguments(self, settings: AnalyticsSettings, context: Context) -> list[str]:
        event = self.pull_publication(context)
        return [
            *("--table", event["table"], "--output", settings.output, "--version", str(event["public_version"])),
            *("--topics", str(settings.topics), "--terms", str(settings.terms)),
            *("--min-documents", str(settings.min_documents), *self.delta_jars_option(settings)),
        ]
