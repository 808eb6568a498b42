"""The audit of a release on arrays: what Spark does with the tables, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.artifacts.bundle import Bundle, open_bundle
from wordveil.audit.canaries.audit import ReleaseClaim, judge_runs, make_inputs, write_blind_bundle
from wordveil.audit.canaries.compare import CanaryRun
from wordveil.audit.canaries.documents import DocumentPlan
from wordveil.audit.canaries.tables import CanaryOutput, Inputs
from wordveil.audit.findings import Finding
from wordveil.crypto.keys import MasterKey
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings, find_refusals
from wordveil.records.schema import REASON_COLUMN, STATISTICS
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

MOST_BYTES = 5_000


def sanitise_side(inputs: Inputs, sanitiser: RecordSanitiser, columns: TextColumns, *, other: bool) -> CanaryOutput:
    """One of the tables, refused and sanitised as the job does it."""
    ids = pa.array(inputs.ids)
    raw = [pa.array(texts, pa.binary()) for texts in inputs.texts(other=other)]
    strings = [pa.Array.from_buffers(pa.string(), len(ids), values.buffers(), values.null_count) for values in raw]
    reason = find_refusals(ids, strings, MOST_BYTES)
    readable = [pc.if_else(reason.is_null(), values, pa.scalar(None, pa.string())) for values in strings]
    kept = [pa.array(values) for values in inputs.kept.values()]
    names = ["id", *inputs.kept, *columns.inputs, REASON_COLUMN]
    batch = pa.RecordBatch.from_arrays([ids, *kept, *readable, reason], names=names)
    table = pa.Table.from_batches(list(sanitiser.sanitise(batch))).drop_columns(list(STATISTICS))
    return CanaryOutput(table, columns)


def audit_policy(
    bundle: Bundle,
    policy: TextPolicy,
    store: Path,
    *,
    seed: int = 0,
    model: NgramModel | None = None,
    columns: TextColumns = ONE_TEXT,
    alpha: float = 0.01,
    copies: int = 64,
    kinds: tuple[bool, ...] = (True, False),
    features: tuple[str, ...] = (),
) -> list[Finding]:
    """Audit a policy; ``kinds``: whether each run is blind; ``features``: beginnings of those looked at, or all."""
    key = MasterKey(bytes([seed % 256, *range(31)]))
    lists = bundle.lists
    plan = DocumentPlan(policy, len(columns.names), MOST_BYTES, lists=lists)
    inputs = make_inputs(bundle, plan, model, keep=("day",), copies=copies, seed=seed)
    if features:
        chosen = [pair for pair in inputs.pairs if pair.feature.startswith(features)]
        inputs = Inputs.make(chosen, copies, ("day",), np.random.default_rng(seed))
    settings = RecordSettings("canaries", "run", policy, ("day",), columns=columns)
    blind = open_bundle(write_blind_bundle(bundle, store))
    runs = []
    for is_blind in kinds:
        sanitiser = RecordSanitiser(settings, blind if is_blind else bundle, key.for_release("canaries"), model)
        sides = [sanitise_side(inputs, sanitiser, columns, other=other) for other in (False, True)]
        runs.append(CanaryRun(*sides, is_blind, bundle.vocabulary.size))
    fields = frozenset({"id", "day", *(field.name for field in columns.output_fields)})
    claim = ReleaseClaim(str(settings.relation), settings.exposes, fields)
    return list(judge_runs(inputs, runs, claim, alpha))
