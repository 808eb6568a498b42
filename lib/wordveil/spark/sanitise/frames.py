"""Sanitising in one's own session: a DataFrame, or a function for SQL.

Both are lazy: Spark draws when the result is used, and again whenever it is used again. Since noise is a keyed function
of release, record and content that gives the same rows each time, and spends nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from wordveil.artifacts.bundle import open_bundle
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.config.arguments import parse_arguments
from wordveil.config.schema import DEFAULT_MAX_BYTES, ColumnsSection
from wordveil.errors import ConfigError, Fault, InputError
from wordveil.privacy.relations import Exposure
from wordveil.records.sanitiser import RecordSettings
from wordveil.records.schema import STATISTICS, STRUCT_FIELDS
from wordveil.spark.input.screening import screen_input
from wordveil.spark.platform.columns import check_columns
from wordveil.spark.platform.session import check_session
from wordveil.spark.sanitise.distribution import distribute, distribute_model
from wordveil.spark.sanitise.job import sanitise_records
from wordveil.spark.sanitise.layout import arrange_rows
from wordveil.spark.sanitise.run_log import Run
from wordveil.spark.sanitise.worker import Sanitise, SanitiseColumns
from wordveil.text.policy import TextPolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FUNCTION = "sanitise"
_LAYOUTS: dict[str, tuple[str, ...]] = {"hashed": (), "input": (str(Exposure.LAYOUT),)}
"""What each order of rows shows."""


def sanitise(
    frame: DataFrame,
    *,
    bundle: str | Path,
    run: Run,
    id: str,  # noqa: A002 - the configuration's name
    text: str,
    keep: Sequence[str] = (),
    policy: Mapping[str, Any] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    how: str = "auto",
    order: Literal["hashed", "input"] = "hashed",
    allow_unencrypted: bool = False,
) -> DataFrame:
    """The records of ``frame``, sanitised: id, kept columns, text, status, reason, privacy, content_tag, run_id.

    The columns, and what is refused, are those of the job. ``bundle``: a bundle's directory, as ``wordveil build``
    prints it. ``run``: a recorded run, or one with a throwaway key. ``policy``: the settings of the configuration's
    ``text`` section, by default ``strict``, which needs ``n_max``. ``how``: as ``spark.bundle`` in the configuration.
    ``allow_unencrypted``: whether a session outside local mode may lack Spark's authentication or encryption.
    ``order``: ``hashed``, rows come in the order of keyed hashes of their ids, and what is written from the result as
    it is has that order and files cut by row counts; or ``input``, in the order of ``frame``, which shows the sizes of
    the texts, as ``exposes`` then says (``layout``).

    Counts the records and the ids at once, to find those that stand twice; texts are read when the result is. The
    session's options are checked, not set. Raises :class:`ConfigError` with every fault of the arguments,
    :class:`PlatformError` for a session that cannot be used, :class:`BundleError`, :class:`NgramError`, and
    :class:`InputError` for a stream.
    """
    columns, checked = parse_arguments(
        {"id": id, "text": text, "keep": list(keep), "max_bytes": max_bytes}, policy or {}
    )
    session = frame.sparkSession
    check_session(session, allow_unencrypted=allow_unencrypted)
    if frame.isStreaming:
        raise InputError(
            "the DataFrame is a stream: ids that stand twice cannot be found in it. Sanitise its batches in foreachBatch."
        )
    check_columns(frame.schema, columns, "the DataFrame")
    if order not in _LAYOUTS:
        raise ConfigError("arguments", [Fault("order", str(order)[:80], f"allowed: {', '.join(_LAYOUTS)}.")])
    job = _job(session, bundle, run, checked, policy or {}, columns, how, _LAYOUTS[order])
    result = sanitise_records(screen_input(frame, columns), job).drop(*STATISTICS)
    return (
        result if order == "input" else arrange_rows(result, run.keys.layout_seed, frame.count(), id, kept=columns.keep)
    )


def register(
    session: SparkSession,
    *,
    bundle: str | Path,
    run: Run,
    policy: Mapping[str, Any] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    how: str = "auto",
    name: str = FUNCTION,
    allow_unencrypted: bool = False,
) -> None:
    """Make ``sanitise(record_id, text)`` known to the session's SQL: a struct of text, status, reason, privacy.

    Arguments and errors are those of :func:`sanitise`. A function sees one row at a time: ids that stand twice are not
    found, and two records with one id and one text get the same noise. Rows stay where they are, so that ``exposes``
    says ``layout``.
    """
    columns, checked = parse_arguments({"id": "record_id", "text": "text", "max_bytes": max_bytes}, policy or {})
    check_session(session, allow_unencrypted=allow_unencrypted)
    body = SanitiseColumns(
        _job(session, bundle, run, checked, policy or {}, columns, how, _LAYOUTS["input"]), max_bytes
    )

    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_schema

    def wordveil_sanitise(record_id: pa.Array, text: pa.Array) -> pa.Array:
        return body(record_id, text)

    # PySpark's annotations leave out that the kind of function may be taken from its own annotations.
    function = arrow_udf(wordveil_sanitise, from_arrow_schema(pa.schema(STRUCT_FIELDS)))  # type: ignore[call-overload]
    session.udf.register(name, function)


def _job(
    session: SparkSession,
    bundle: str | Path,
    run: Run,
    policy: TextPolicy,
    text: Mapping[str, Any],
    columns: ColumnsSection,
    how: str,
    shown: tuple[str, ...],
) -> Sanitise:
    """What workers do in a run over ``bundle``, recorded before anything can be drawn. ``text``: the settings that made
    ``policy``.
    """
    opened = open_bundle(Path(bundle))
    opened.check_policy(policy)
    ngrams = open_model(find_model(Path(text["ngrams"])), policy.ngrams) if policy.ngrams else None
    run.record(session, opened, policy, columns)
    settings = RecordSettings(run.release, run.run_id, policy, tuple(columns.keep), shown)
    place, identity = distribute(session.sparkContext, opened, how)
    return Sanitise(settings, run.keys, place, identity, distribute_model(session.sparkContext, ngrams, how))
