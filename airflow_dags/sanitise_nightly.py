"""### A night of a wordveil release

```
                no record yet: frees its worker slot
                      +-----+
                      v     |
  check ----------> plan ---+--> sanitise ------> gate ------> publish ===> asset wordveil_release
  settings,         prices a     draws what is    checks the   writes the      |
  connections       record,      new, charges     draws by     public table    |  starts
  and files         waits for    the ledger       its rules    and its         v
  exist             the slice                                  manifest     analytics_on_release
```

Nothing after `gate` runs unless the gate passes, and only `publish` updates the asset. A Parquet output has neither a
gate nor a publication: its run ends with `sanitise`, and no asset is updated.

**A run is one slice**: the start of its data interval, as `--param ds=2026-11-20`. Backfill: `airflow backfill create
--dag-id sanitise_nightly --from-date 2026-11-01 --to-date 2026-11-05 --max-active-runs 1`. To sanitise another slice,
e.g. after late data, trigger the DAG with `slice`.

**Retries and clearing** repeat the run of the same name, which spends nothing twice. A manual trigger makes a new run.

| what failed | what happens | what to do |
| --- | --- | --- |
| `check` | fails at once | fix the Variable, connection or file that it names, then clear it |
| `plan`: no record within `wait_hours` | fails, names slice and configuration | clear it once the records are there |
| `sanitise`: a budget with `on_exceeded: fail` | fails, spends nothing | raise it or leave records out, then clear it |
| `sanitise`: the release refuses (missing tables) | fails, spends nothing | see `wordveil docs runbook` |
| `gate` | fails at once, logs its table; no asset event | `wordveil docs releases`; the previous publication stays |
| `publish`: a later run has changed the release | skipped: that run's publication has these records | nothing |
| configuration, key, an output that exists | fails at once | fix what the error names, then clear it |
| input, bundle, Java, Delta's jars | three retries, at growing intervals | fix what the error names, then clear it |
| Spark, a lost worker, storage | three retries, at growing intervals | read Spark's log; clear it |

The Airflow Variable of this DAG's id is a JSON object with these settings:

"""

from datetime import timedelta

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable

from wordveil_airflow import (
    NIGHTLY_PARAMS,
    GateOperator,
    NightlySettings,
    PlanOperator,
    PublishOperator,
    SanitiseOperator,
    check_night,
    dag_defaults,
)

# A second release is a copy of this file with another DAG id and another asset.
with DAG(
    "sanitise_nightly",
    description="Sanitise the night's records into a wordveil release, gate it and publish it.",
    doc_md=f"{__doc__}{NightlySettings.to_markdown()}",
    # Each run has a data interval of one day, which is its slice, whatever "@daily" means in Airflow's configuration.
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    tags=["wordveil", "privacy"],
    params=NIGHTLY_PARAMS,
    **dag_defaults(owner="privacy-engineering", task_timeout=timedelta(hours=12), deadline=timedelta(hours=24)),
):
    (
        check_night()
        >> PlanOperator(task_id="plan", mode="reschedule", execution_timeout=timedelta(minutes=30))
        >> SanitiseOperator(task_id="sanitise")
        >> GateOperator(task_id="gate")
        >> PublishOperator(task_id="publish", outlets=[Asset("wordveil_release")])
    )
