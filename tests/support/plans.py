"""Made plans: of words, and of whole texts."""

from __future__ import annotations

from dataclasses import replace

from wordveil.evaluation.linkage import LinkageForecast
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.spark.plan.plan import Plan

FINGERPRINT = "0123456789abcdef" * 4
RECOVERY = Recovery(
    PriorRecovery(5e-05, (Recovered(1, 0.04, 0.04), Recovered(20, 0.05, 0.06))),
    PriorRecovery(0.095, (Recovered(1, 0.223, 0.223), Recovered(20, 0.3, None))),
)
PLAN = Plan(
    release="support",
    input="/lake/raw/tickets",
    columns={"ticket_id": "string", "body": "string", "agent": "string", "product": "string"},
    kept=("product",),
    mechanism="tree",
    epsilon=8.0,
    bundle=FINGERPRINT,
    bundle_problem=None,
    metric="discrete:aa",
    diameter=1.0,
    composition="sequence",
    relation="any_text",
    exposes=("presence", "column:product"),
    tokens=64,
    epsilon_bound=512.0,
    epsilon_pure=512.0,
    delta=None,
    output_format="delta",
    recovery=RECOVERY.to_dict(),
)
WHOLE = replace(
    PLAN,
    mechanism="passages",
    epsilon=6.0,
    metric="texts:aa",
    tokens=1,
    epsilon_bound=6.0,
    epsilon_pure=6.0,
    recovery=replace(RECOVERY, of="subject").to_dict(),
    linkage=LinkageForecast(10_000, {1: 0.0081}, half=None),
    unit="text",
)
