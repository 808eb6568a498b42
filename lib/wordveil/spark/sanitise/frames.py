"""Sanitising in the caller's own session: a DataFrame, or a function for SQL.

Both are lazy: Spark draws when the result is used, and again whenever it is used again. Noise is a keyed function of
release, record and content. So each time gives the same rows and spends nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from wordveil.artifacts.bundle import Bundle
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.assembly.bundles import open_bundle
from wordveil.config.arguments import parse_arguments
from wordveil.config.schema import TextSection
from wordveil.errors import ConfigError, Fault, InputError
from wordveil.input.columns import DEFAULT_MAX_BYTES, Columns
from wordveil.privacy.relations import ORDER_EXPOSES
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.records.schema import STATISTICS
from wordveil.spark.input.scans import check_scans
from wordveil.spark.input.screening import screen_input
from wordveil.spark.platform.columns import check_columns
from wordveil.spark.platform.session import check_session
from wordveil.spark.platform.versions import find_arrow_udf
from wordveil.spark.platform.workers import require_workers
from wordveil.spark.sanitise.distribution import distribute, distribute_model
from wordveil.spark.sanitise.job import sanitise_records
from wordveil.spark.sanitise.layout import arrange_rows
from wordveil.spark.sanitise.run_log import Run
from wordveil.spark.sanitise.worker import Sanitise, SanitiseColumns
from wordveil.text.policy import TextPolicy

FUNCTION = "sanitise"


def sanitise(
    frame: DataFrame,
    *,
    bundle: Bundle | str | Path,
    run: Run,
    id: str,  # noqa: A002 - the configuration's name
    text: str | Sequence[str],
    keep: Sequence[str | Mapping[str, Any]] = (),
    policy: Mapping[str, Any] | TextSection | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    how: Literal["auto", "path", "archive"] = "auto",
    order: Literal["hashed", "input"] = "hashed",
    allow_unencrypted: bool = False,
    own_rows: bool = False,
) -> DataFrame:
    """Sanitise the records of a DataFrame.

    The result is lazy: Spark draws when it is used. The call itself checks the arguments, the session and its workers,
    records the run, and counts the records and the ids to find those that are listed more than once. It checks the
    session's options and sets none.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The records, one a row. Not a stream, and not read from CSV, JSON, XML or lines of text: Spark may take a piece
        of a text for another column there. The job reads such files.
    bundle : Bundle or str or pathlib.Path
        The bundle to draw with, its directory as ``wordveil build`` prints it, or a store with no other bundle.
    run : Run
        The release and the key to draw under: :meth:`Run.recorded` or :meth:`Run.throwaway`.
    id : str
        The column of record ids: strings or whole numbers.
    text : str or sequence of str
        The column of texts: strings, or binary values that are read as UTF-8. Or several columns, of which a record
        pays for all together. A dotted name is a field of a struct.
    keep : sequence of str or mapping, default ()
        Public columns that the result keeps as they are, or as pseudonyms:
        ``{"column": "customer_id", "as": "pseudonym"}``.
    policy : mapping or TextSection, optional
        The configuration's ``text`` section (``config.text``) or its settings. Left out, the profile ``strict``, which
        needs ``n_max``.
    max_bytes : int, default 16777216
        Texts of more UTF-8 bytes are quarantined.
    how : {"auto", "path", "archive"}, default "auto"
        How the bundle reaches the executors, as ``spark.bundle`` in the configuration.
    order : {"hashed", "input"}, default "hashed"
        ``hashed`` returns rows in the order of keyed hashes of their ids; what is written from the result has that
        order, and files cut by row counts. ``input`` keeps the order of ``frame`` and takes no shuffle. That order
        shows the sizes of the texts, and ``exposes`` then has ``layout``.
    allow_unencrypted : bool, default False
        Whether a session outside local mode may lack Spark's authentication or encryption.
    own_rows : bool, default False
        Whether rows that come from no table are your own, each text in one piece: of ``createDataFrame``, of an RDD
        that Python filled, of ``VALUES``. Rows that were collected from CSV, JSON or XML look the same in Spark's plan,
        and so does the result of a SQL script.

    Returns
    -------
    pyspark.sql.DataFrame
        One row a record: the id, the kept columns, ``text``, with passages ``symbols``, ``status``, ``reason``,
        ``privacy``, ``content_tag`` and ``run_id``, as the job writes them. Several text columns keep their own names.
        A quarantined record has a reason and no text.

    Raises
    ------
    wordveil.errors.ConfigError
        If arguments are wrong, with every fault, or the DataFrame reads parsed text or holds rows of no table, or the
        release has another bundle, policy or key.
    wordveil.errors.InputError
        If the DataFrame is a stream.
    wordveil.errors.BundleError
        If the bundle is missing or damaged, or does not fit the policy.
    wordveil.errors.NgramError
        If the policy's n-gram model is missing or damaged.
    wordveil.errors.PlatformError
        If the session or its Python workers cannot be used.
    wordveil.errors.SparkJobError
        If the run's record cannot be read or written.

    Examples
    --------
    >>> run = wordveil.Run.throwaway()
    >>> look = wordveil.sanitise(
    ...     tickets, bundle=bundle, run=run, id="ticket_id", text="body", policy={"n_max": 24}
    ... )
    """
    settings, columns, checked, texts = _parse(policy, text, id=id, keep=list(keep), max_bytes=max_bytes)
    session = frame.sparkSession
    check_session(session, allow_unencrypted=allow_unencrypted, may_connect=True)
    if frame.isStreaming:
        raise InputError(
            "the DataFrame is a stream, in which repeated ids cannot be found. Sanitise its batches in foreachBatch."
        )
    check_columns(frame.schema, columns, "the DataFrame")
    check_scans(frame, "frame", own_rows=own_rows)
    if order not in ORDER_EXPOSES:
        raise ConfigError("arguments", [Fault("order", str(order)[:80], f"allowed: {', '.join(ORDER_EXPOSES)}.")])
    job = _make_job(session, bundle, run, checked, settings, columns, texts, how, ORDER_EXPOSES[order])
    result = sanitise_records(screen_input(frame, columns), job).drop(*STATISTICS)
    if order == "input":
        return result
    return arrange_rows(result, run.keys.layout_seed, id, kept=columns.kept_names, counted=frame)


def register(
    session: SparkSession,
    *,
    bundle: Bundle | str | Path,
    run: Run,
    policy: Mapping[str, Any] | TextSection | None = None,
    text: str | Sequence[str] = "text",
    max_bytes: int = DEFAULT_MAX_BYTES,
    how: Literal["auto", "path", "archive"] = "auto",
    name: str = FUNCTION,
    allow_unencrypted: bool = False,
) -> None:
    """Register ``sanitise(record_id, text)`` as a function of the session's SQL.

    The function returns a struct of ``text``, ``status``, ``reason`` and ``privacy``. With ``text=["subject", "body"]``
    it is ``sanitise(record_id, subject, body)``, and the struct has these fields instead of ``text``.

    The function sees one row at a time: it cannot find ids that are listed more than once, and two records with one id
    and one text get the same noise. Rows stay where they are, so ``exposes`` has ``layout``. Do not apply it to CSV,
    JSON, XML or lines of text, of which :func:`sanitise` refuses a DataFrame: it cannot check how Spark reads the rows.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        The session whose SQL gets the function.
    bundle : Bundle or str or pathlib.Path
        The bundle to draw with, its directory as ``wordveil build`` prints it, or a store with no other bundle.
    run : Run
        The release and the key to draw under: :meth:`Run.recorded` or :meth:`Run.throwaway`.
    policy : mapping or TextSection, optional
        The configuration's ``text`` section (``config.text``) or its settings. Left out, the profile ``strict``, which
        needs ``n_max``.
    text : str or sequence of str, default "text"
        The name of the text, or of the texts of a record, which are paid for together.
    max_bytes : int, default 16777216
        Texts of more UTF-8 bytes are quarantined.
    how : {"auto", "path", "archive"}, default "auto"
        How the bundle reaches the executors, as ``spark.bundle`` in the configuration.
    name : str, default "sanitise"
        The name of the function in SQL.
    allow_unencrypted : bool, default False
        Whether a session outside local mode may lack Spark's authentication or encryption.

    Raises
    ------
    wordveil.errors.ConfigError
        If arguments are wrong, with every fault, or the release has another bundle, policy or key.
    wordveil.errors.BundleError
        If the bundle is missing or damaged, or does not fit the policy.
    wordveil.errors.NgramError
        If the policy's n-gram model is missing or damaged.
    wordveil.errors.PlatformError
        If the session or its Python workers cannot be used.
    wordveil.errors.SparkJobError
        If the run's record cannot be read or written.

    Examples
    --------
    >>> wordveil.register(spark, bundle=bundle, run=run, policy={"n_max": 24})
    >>> spark.sql("select id, inline(array(sanitise(id, body))) from tickets")
    """
    settings, columns, checked, texts = _parse(policy, text, id="record_id", max_bytes=max_bytes)
    check_session(session, allow_unencrypted=allow_unencrypted, may_connect=True)
    arrow_udf = find_arrow_udf()
    job = _make_job(session, bundle, run, checked, settings, columns, texts, how, ORDER_EXPOSES["input"])
    body = SanitiseColumns(job, max_bytes)

    def wordveil_sanitise(record_id: pa.Array, *text: pa.Array) -> pa.Array:
        return body(record_id, *text)

    schema = from_arrow_schema(pa.schema(texts.struct_fields))
    session.udf.register(name, arrow_udf(wordveil_sanitise, schema))


def _parse(
    policy: Mapping[str, Any] | TextSection | None, text: str | Sequence[str], **columns: Any
) -> tuple[Mapping[str, Any], Columns, TextPolicy, TextColumns]:
    settings = policy.model_dump(exclude_none=True) if isinstance(policy, TextSection) else policy or {}
    names = text if isinstance(text, str) else list(text)
    return settings, *parse_arguments({"text": names, **columns}, settings)


def _make_job(
    session: SparkSession,
    bundle: Bundle | str | Path,
    run: Run,
    policy: TextPolicy,
    text: Mapping[str, Any],
    columns: Columns,
    texts: TextColumns,
    how: str,
    shown: tuple[str, ...],
) -> Sanitise:
    """Make the workers' job over ``bundle``, and record the run before anything can be drawn."""
    opened = bundle if isinstance(bundle, Bundle) else open_bundle(bundle)
    opened.check_policy(policy, texts.widths)
    ngrams = open_model(find_model(Path(text["ngrams"])), policy.ngrams) if policy.ngrams else None
    require_workers(session)
    kept, pseudonyms = tuple(columns.keep), tuple(columns.pseudonyms)
    settings = RecordSettings(run.release, run.run_id, policy, kept, shown, columns=texts, pseudonyms=pseudonyms)
    release_terms(settings, opened)  # refuses what only a ledger can count, before the run is recorded
    run.record(session, opened, policy, columns, texts)
    location, model = distribute(session, opened, how), distribute_model(session, ngrams, how)
    return Sanitise(settings, run.keys, location, opened.identity, model)
