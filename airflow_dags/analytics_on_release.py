"""### Analytics of a wordveil release

```
  asset wordveil_release ===> release -----> verify -----> analyse
  (updated by                 what the       the table     estimated counts
   sanitise_nightly,          asset's        against its   of the public
   after its gate)            event names    manifest      table, as tables
```

It runs when `publish` of `sanitise_nightly` has updated the asset, never by time. It reads the version that the event
names, even if there is a later one. It needs no key, no configuration and nothing but the public table.

| what failed | what happens | what to do |
| --- | --- | --- |
| `release` | fails at once | fix the Variable, connection or file that it names, then clear it |
| `verify`: the table was published again meanwhile | skipped: that publication's own event starts a run | nothing |
| `verify`: the table is not the signed one | retried, then fails | do not use it; publish again, find who wrote to it |
| `analyse` | three retries; the previous tables stay | read Spark's log; clear it |

The Airflow Variable of this DAG's id is a JSON object with these settings:

"""

from datetime import timedelta

from airflow.sdk import DAG, Asset

from wordveil_airflow import AnalyseOperator, AnalyticsSettings, VerifyOperator, dag_defaults, read_event

RELEASE = Asset("wordveil_release")

# Analytics of a second release is a copy of this file with another DAG id and another asset.
with DAG(
    "analytics_on_release",
    description="Estimated counts of a wordveil release, whenever a version has been published.",
    doc_md=f"{__doc__}{AnalyticsSettings.to_markdown()}",
    schedule=[RELEASE],
    tags=["wordveil", "analytics"],
    **dag_defaults(owner="analytics", task_timeout=timedelta(hours=6), deadline=timedelta(hours=12)),
):
    read_event(RELEASE.name) >> VerifyOperator(task_id="verify") >> AnalyseOperator(task_id="analyse")
