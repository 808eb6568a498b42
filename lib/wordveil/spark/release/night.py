"""Nightly run of a release in one Spark session: update it, gate it and publish it, by the steps of the three commands.

A nightly run has no state outside the release. One that was stopped is simply started again: it finishes the run, gates
the draws and publishes them if they passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from wordveil.assembly.audits import find_audits
from wordveil.assembly.bundles import find_facts
from wordveil.assembly.evaluations import load_attackers
from wordveil.assembly.jobs import load_release_job
from wordveil.assembly.run_report import RunReport
from wordveil.config.load import Config
from wordveil.input.parameters import NO_PARAMS, check_params
from wordveil.neighbours.blocks import BuildContext
from wordveil.spark.platform.progress import TaskProgress, ignore
from wordveil.spark.release.gate import GateDecision, gate_release
from wordveil.spark.release.publish import Publication, publish_release
from wordveil.spark.release.run import open_runner


@dataclass(frozen=True)
class Night:
    """Results of a nightly run's steps: None if a step has not ended or the gate did not pass."""

    report: RunReport | None = None
    decision: GateDecision | None = None
    publication: Publication | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: ``sanitise``, ``gate`` and ``publish``, as each command does, or None."""
        parts = {"sanitise": self.report, "gate": self.decision, "publish": self.publication}
        return {name: part.to_dict() if part else None for name, part in parts.items()}


def run_night(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    params: Mapping[str, str] = NO_PARAMS,
    run_id: str | None = None,
    full_snapshot: bool = False,
    skip_empty: bool = False,
    publish: bool = True,
    progress: Callable[[str], None] = ignore,
    tasks: TaskProgress = ignore,
    done: Callable[[Night], None] = ignore,
) -> Night:
    """Update a release from its input, gate it and, if it passes, publish it.

    Parameters are those of :func:`wordveil.spark.release.run.run_release`; without ``publish`` the gate is the last
    step. ``done`` is called after each step with the results so far. Raises a step's error: later steps are not begun,
    and earlier results stay. A gate that does not pass is no error: the nightly run then has no publication.
    """
    check_params(config.source.where, params)
    rules, audits, find = config.rules, partial(find_audits, config), partial(find_facts, config)
    job = load_release_job(config, BuildContext(progress, tasks))
    with open_runner(job, session, params, progress, tasks) as runner:
        night = Night(runner.run(run_id, full_snapshot=full_snapshot, skip_empty=skip_empty))
        done(night)
        attackers = load_attackers(config)
        decision = gate_release(runner.release, job.settings, rules, attackers, audits, find, progress)
        night = replace(night, decision=decision)
        done(night)
        if publish and decision.result.passed:
            key = job.materials.key
            publication = publish_release(runner.release, job.settings, rules, key, find, progress)
            night = replace(night, publication=publication)
            done(night)
    return night
