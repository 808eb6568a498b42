"""Samples of an output's records, each beside its original: one of all records, and one of some authors' records.

The choice of records depends on ids, authors and a seed alone. Spark joins only ids: the texts of the chosen records
are read from input and output separately, and come together in this process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from wordveil.assembly.evaluations import EvaluationContext
from wordveil.config.evaluation import EvaluationSection
from wordveil.errors import ConfigError, Fault, InputError
from wordveil.evaluation.pairs import AuthorCounts, Pairs
from wordveil.records.schema import REASON_COLUMN, RELEASED
from wordveil.spark.input.screening import screen_input
from wordveil.spark.platform.columns import column, field_column, find_field
from wordveil.spark.platform.versions import from_arrow, to_arrow

_ID, _AUTHOR, _LABEL = "__id", "__author", "__label"
_TEXT, _BUNDLE, _POLICY = "__released", "__bundle", "__policy"


_LEAST_AUTHORS = 50
"""Largest part of the records for attacks on authors that one author has, given enough authors."""


def read_pairs(source: DataFrame, output: DataFrame, context: EvaluationContext, seed: int) -> Pairs:
    """Read samples of the records that both tables have; ``seed`` selects them.

    ``output`` has at most one row for each record. Raises :class:`ConfigError` if the input lacks a column of
    ``evaluation``, and :class:`InputError` if ``output`` is no output of this configuration.
    """
    faults = [
        Fault(f"evaluation.{setting}", name, f"the table has no such column. It has: {', '.join(source.columns)}.")
        for setting, name in (("author", context.section.author), ("label", context.section.label))
        if name is not None and name not in source.columns
    ]
    if faults:
        raise ConfigError("configuration", faults)
    released = _released_rows(output, context)
    name = context.source.id
    described = source.withColumns({_AUTHOR: _as_text(context.author), _LABEL: _as_text(context.section.label)})
    both = described.select(column(name).alias(_ID), _AUTHOR).join(released.select(_ID), _ID, "left_semi")
    both.persist()
    try:
        total = both.count()
        sample = both.orderBy(F.xxhash64(F.lit(seed), _ID), _ID).limit(context.section.records)
        sampled = _read_ids(sample.select(_ID))
        attacks, counts = None, AuthorCounts()
        if context.author is not None:
            attacks, counts = _choose_authors(both, context.section, seed)
        attacked = _read_ids(attacks) if attacks is not None else sampled.slice(0, 0)
    finally:
        both.unpersist()
    ids = pa.table({_ID: pc.unique(pa.concat_arrays([sampled, attacked]))})
    chosen = F.broadcast(from_arrow(source.sparkSession, ids))
    before = described.join(chosen, column(name) == chosen[_ID], "left_semi")
    screened = screen_input(before, context.source, internal=[_AUTHOR, _LABEL])
    inputs = context.columns.inputs
    texts = to_arrow(screened.select(column(name).alias(_ID), *inputs, REASON_COLUMN, _AUTHOR, _LABEL))
    after = to_arrow(released.join(chosen, _ID, "left_semi"))
    pairs = _pair(texts, after, inputs, set(sampled.to_pylist()), set(attacked.to_pylist()))
    return replace(pairs, total=total, counts=counts)


def _read_ids(rows: DataFrame) -> pa.Array:
    return to_arrow(rows).column(_ID).combine_chunks()


def _as_text(name: str | None) -> Column:
    return (F.lit(None) if name is None else column(name)).cast("string")


def _released_rows(output: DataFrame, context: EvaluationContext) -> DataFrame:
    needed = [(context.source.id,), *context.columns.paths, ("privacy", "bundle"), ("privacy", "policy")]
    if missing := [".".join(path) for path in needed if find_field(output.schema, path) is None]:
        raise InputError(
            f"output.path = {context.output}: is not an output of this configuration, since it lacks "
            f"{', '.join(missing)}. Use the configuration of the run that wrote it."
        )
    texts = [F.coalesce(field_column(path), F.lit("")) for path in context.columns.paths]
    # A published table has no status: all its records were released.
    rows = output.where(F.col("status") == RELEASED) if "status" in output.columns else output
    return rows.select(
        column(context.source.id).alias(_ID),
        F.concat_ws("\n", *texts).alias(_TEXT),
        F.col("privacy.bundle").alias(_BUNDLE),
        F.col("privacy.policy").alias(_POLICY),
    )


def _choose_authors(both: DataFrame, section: EvaluationSection, seed: int) -> tuple[DataFrame | None, AuthorCounts]:
    """Choose the ids, column ``__id``, of records of some authors. Return None if fewer than two have enough.

    Authors are taken in a random order until their records are as many as ``section.records``. Each has at most a
    fiftieth of these, or an equal part if there are fewer authors: many authors with few records are read as few with
    many.
    """
    named = both.where(F.length(_AUTHOR) > 0)
    counts = named.groupBy(_AUTHOR).count()
    has_enough = F.col("count") >= section.min_texts
    totals = counts.select(F.count("*"), F.count_if(has_enough)).first()
    in_all, enough = totals or (0, 0)
    room = min(section.authors, section.records // section.min_texts, enough)
    if room < 2:
        return None, AuthorCounts(in_all, enough)
    found = to_arrow(counts.where(has_enough).orderBy(F.xxhash64(F.lit(seed), _AUTHOR), _AUTHOR).limit(room))
    most = max(section.records // min(room, _LEAST_AUTHORS), section.min_texts)
    sizes = np.minimum(found.column("count").to_numpy(), most)
    chosen = max(2, int(np.searchsorted(sizes.cumsum(), section.records, side="right")))
    candidates = F.broadcast(from_arrow(both.sparkSession, found.select([_AUTHOR]).slice(0, chosen)))
    rank = F.row_number().over(Window.partitionBy(_AUTHOR).orderBy(F.xxhash64(F.lit(seed), _ID), _ID))
    ranked = named.join(candidates, _AUTHOR, "left_semi").withColumn("__rank", rank)
    return ranked.where(F.col("__rank") <= most).select(_ID), AuthorCounts(in_all, enough, min(chosen, room))


def _pair(before: pa.Table, after: pa.Table, inputs: tuple[str, ...], sampled: set[Any], attacked: set[Any]) -> Pairs:
    """Pair the texts, without records whose original cannot be read. ``sampled``, ``attacked``: ids of both samples."""
    rows = {name: row for row, name in enumerate(after.column(_ID).to_pylist())}
    has_text = [
        any(texts) for texts in zip(*(before.column(name).is_valid().to_pylist() for name in inputs), strict=True)
    ]
    paired = sorted(
        (str(name), row, rows[name])
        for row, (name, valid) in enumerate(zip(before.column(_ID).to_pylist(), has_text, strict=True))
        if valid and name in rows
    )
    before = before.take(pa.array([row for _, row, _ in paired], pa.int64()))
    after = after.take(pa.array([row for _, _, row in paired], pa.int64()))
    records = before.select([*inputs, REASON_COLUMN])
    ids, authors, labels = (before.column(name).to_pylist() for name in (_ID, _AUTHOR, _LABEL))
    return Pairs(
        records=records.cast(pa.schema((name, pa.string()) for name in records.column_names)),
        released=tuple(after.column(_TEXT).to_pylist()),
        sample=np.flatnonzero([name in sampled for name in ids]),
        authors=tuple((name in attacked and author) or None for name, author in zip(ids, authors, strict=True)),
        labels=tuple((name in sampled and label) or None for name, label in zip(ids, labels, strict=True)),
        bundles=frozenset(after.column(_BUNDLE).to_pylist()),
        policies=frozenset(after.column(_POLICY).to_pylist()),
        total=len(ids),
    )
