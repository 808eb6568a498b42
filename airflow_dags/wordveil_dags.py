"""The DAGs of each release that has a file in `wordveil_releases/`."""

from datetime import timedelta

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable

from wordveil_airflow import (
    ERASE_PARAMS,
    NIGHT_PARAMS,
    AnalyseOperator,
    CompactOperator,
    EraseOperator,
    NightOperator,
    PublishOperator,
    ReleaseSettings,
    VerifyOperator,
    dag_defaults,
    read_releases,
)

NIGHT = """### A night of a release

```
  no record yet: frees its worker slot
        +-----+
        v     |
      night --+=====================================> asset wordveil_RELEASE
      sanitises a slice, gates and publishes it,       |
      in one Spark session                             v
                                                    verify_RELEASE
  with publish: approved
      night ------------> approve ---> publish =====> the same asset
      sanitises, gates    a person     writes the
                          decides      public table
```

Nothing is published unless the gate passes, and only a publication updates the asset. A Parquet output
(`publish: never`) has neither gate nor publication: its run ends with the output, and no asset is updated.

**A run is one slice**: the start of its data interval, as `--param ds=2026-11-20`. Backfill: `airflow backfill create
--dag-id sanitise_RELEASE --from-date 2026-11-01 --to-date 2026-11-05 --max-active-runs 1`. To sanitise another slice,
e.g. after late data, trigger the DAG with `slice`.

**Retries and clearing** repeat the run of the same name, which spends nothing twice. A manual trigger makes a new run.

| what failed | what happens | what to do |
| --- | --- | --- |
| a connection, a file, the key | fails at once | fix what the error names, then clear the task |
| no record within `wait_hours` | fails, names slice and configuration | clear it once the records are there |
| the gate | fails at once, logs its table; no asset event | `wordveil docs releases`; the previous publication stays |
| a budget with `on_exceeded: fail` | fails, spends nothing | raise it or leave records out, then clear it |
| the release refuses (missing tables) | fails, spends nothing | see `wordveil docs runbook` |
| a later run or a compaction has changed the draws since the gate | skipped | nothing: the next night publishes |
| `approve`: refused, or no answer within 20 hours | `publish` is skipped | nothing, or trigger the DAG |
| configuration, an output that exists | fails at once | fix what the error names, then clear it |
| input, bundle, Java, Delta's jars | three retries, at growing intervals | fix what the error names, then clear it |
| Spark, a lost worker, storage | three retries, at growing intervals | read Spark's log; clear it |

"""

VERIFY = """### Verification and analytics of what was published

```
  asset wordveil_RELEASE ===> verify ----------------> analyse (if analytics is set)
  (a publication)             the table against its    estimated counts of the
                              manifest, this against   public table, as tables
                              the asset's event
```

It runs when a publication has updated the asset, never by time. It reads the version that the event names, even if
there is a later one. It needs no key and nothing but the public table.

| what failed | what happens | what to do |
| --- | --- | --- |
| a connection or file | fails at once | fix what the error names, then clear the task |
| `verify`: the table was published again meanwhile | skipped: that publication's own event starts a run | nothing |
| `verify`: the table is not the signed one | retried, then fails | do not use it; publish again, find who wrote to it |
| `analyse` | three retries; the previous tables stay | read Spark's log; clear it |

"""

COMPACT = """### Compaction of a release

`wordveil release compact`: merges small files, and deletes files that no version of the last week needs. It waits for a
run that is active. The next night gates and publishes again.

"""

ERASE = """### Erasure of records

Trigger it with `ids`, or with `author` for all records of an author. It runs `wordveil release erase`. `wordveil docs
runbook` has what remains to be done: the input, copies, backups. Airflow shows ids and authors to whoever sees the run.

"""


UNAPPROVED = "The publication without these records also has what nights have drawn since the last one, if it passes."


def ask(question: str, about: str) -> ApprovalOperator:
    """A task that waits for a person, and takes silence for a refusal."""
    return ApprovalOperator(
        task_id="approve", subject=question, body=about, defaults=["Reject"], response_timeout=timedelta(hours=20)
    )


def describe(about: str, release: str) -> str:
    """The documentation of a DAG."""
    return f"{about.replace('RELEASE', release)}{ReleaseSettings.to_markdown(release)}"


for name, settings in read_releases()[0].items():
    asset = Asset(f"wordveil_{name}")
    common = {"tags": ["wordveil", name]}
    with DAG(
        f"sanitise_{name}",
        description=f"Sanitise the night's records into the release {name}, gate it and publish it.",
        doc_md=describe(NIGHT, name),
        # Each run has a data interval, which is its slice, whatever a cron text means in Airflow's configuration.
        schedule=CronDataIntervalTimetable(settings.schedule, timezone="UTC"),
        params=NIGHT_PARAMS,
        **common,
        **dag_defaults(owner="privacy-engineering", task_timeout=timedelta(hours=12), deadline=timedelta(hours=24)),
    ):
        outlets = {"passed": [asset]}.get(settings.publish, [])
        night = NightOperator(task_id="night", settings=settings, mode="reschedule", outlets=outlets)
        if settings.publish == "approved":
            approve = ask(f"Publish {name}?", "The gate passed: {{ ti.xcom_pull(task_ids='night')['gate'] }}")
            night >> approve >> PublishOperator(task_id="publish", settings=settings, outlets=[asset])
    if settings.publish == "never":
        continue

    with DAG(
        f"verify_{name}",
        description=f"Verify what was published of {name}, and estimate counts of it.",
        doc_md=describe(VERIFY, name),
        schedule=[asset],
        **common,
        **dag_defaults(owner="analytics", task_timeout=timedelta(hours=6), deadline=timedelta(hours=12)),
    ):
        verify = VerifyOperator(task_id="verify", settings=settings)
        if settings.analytics:
            verify >> AnalyseOperator(task_id="analyse", settings=settings)

    maintenance = dag_defaults(
        owner="privacy-engineering", task_timeout=timedelta(hours=12), deadline=timedelta(hours=24)
    )
    with DAG(
        f"compact_{name}",
        description=f"Merge small files of the release {name}, and delete old ones.",
        doc_md=describe(COMPACT, name),
        schedule=CronDataIntervalTimetable(settings.compact_schedule, timezone="UTC"),
        **common,
        **maintenance,
    ):
        CompactOperator(task_id="compact", settings=settings)

    with DAG(
        f"erase_{name}",
        description=f"Erase records from the release {name}.",
        doc_md=describe(ERASE, name),
        schedule=None,
        params=ERASE_PARAMS,
        **common,
        **maintenance,
    ):
        erase = EraseOperator(task_id="erase", settings=settings, outlets=[asset])
        if settings.publish == "approved":
            ask(f"Erase records from {name}, and publish what waits?", UNAPPROVED) >> erase
