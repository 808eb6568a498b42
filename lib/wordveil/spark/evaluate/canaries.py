"""Canaries through the whole pipeline: what a release shows of a text, against its claims.

No record of the corpus is read, and neither the release's key nor its tables are touched: canaries are drawn under a
public key and a separate name, and written to a temporary directory.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.artifacts.bundle import open_bundle
from wordveil.assembly.audits import identify_release
from wordveil.assembly.bundles import find_ngrams, ready_bundle
from wordveil.assembly.jobs import Materials
from wordveil.audit.canaries.audit import (
    COPIES,
    LEAST_COPIES,
    ReleaseClaim,
    judge_runs,
    make_inputs,
    write_blind_bundle,
)
from wordveil.audit.canaries.compare import CanaryRun
from wordveil.audit.canaries.documents import DocumentPlan
from wordveil.audit.canaries.tables import HIDDEN_COLUMN, CanaryOutput, Inputs
from wordveil.audit.findings import DRAWS_FACT, RELEASE, TESTS_FACT, TESTS_VERSION, Audit
from wordveil.config.load import Config
from wordveil.config.schema import OutputSection
from wordveil.crypto.keys import MasterKey
from wordveil.errors import InputError, usage_error
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.input.source import Source
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.relations import Exposure
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSettings
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files, load_path
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.session import is_local, require_classic
from wordveil.spark.platform.versions import from_arrow, repartition_by_number, to_arrow
from wordveil.spark.sanitise.distribution import distribute_job
from wordveil.spark.sanitise.job import write_sanitised
from wordveil.version import __version__

OUTCOME = "nothing was audited"
"""Outcome that an error of a Spark job states."""
_FILES = 4
# Spark packs files by their sizes: one file is much larger, a different one in each table.
_BALLAST = 2**17
_PART = "__part"
_NAME = "canaries"
_PARSED = "the canaries are in a Parquet table, of which every row can be parsed."


@dataclass(frozen=True)
class _Pipeline:
    """Pipeline of the canaries. ``given``: the configuration's input. ``directory``: for tables, as Spark names it."""

    spark: SparkSession
    settings: RecordSettings
    given: Source
    output: OutputSection
    inputs: Inputs
    directory: str

    @property
    def source(self) -> Source:
        """Columns of the input, in a Parquet table of canaries."""
        named = ("id", "text", "keep", "max_bytes", "language", "pseudonyms")
        columns = {name: getattr(self.given, name) for name in named}
        return Source(**columns, path=f"{self.directory}/none", format="parquet")

    def write_input(self, name: str, *, other: bool) -> str:
        """Write one of the tables as a few files, one of them large; return its path."""
        path = f"{self.directory}/{name}"
        table = _make_table(self.given, self.inputs, other=other)
        part = np.arange(table.num_rows) * _FILES // table.num_rows
        weighed = _weigh(table, int(np.searchsorted(part, _FILES - 1)) if other else 0)
        rows = from_arrow(self.spark, weighed.append_column(_PART, pa.array(part, pa.int32())))
        parts = repartition_by_number(rows, _FILES, _PART).drop(_PART)
        parts.write.option("compression", "none").parquet(path)
        return path

    def read_input(self, path: str) -> DataFrame:
        """Read the canaries as the pipeline does."""
        return open_input(self.spark, replace(self.source, path=path)).read()

    def release(self, table: DataFrame, path: str, materials: Materials) -> CanaryOutput:
        """Sanitise canaries as the job does, and read the output."""
        settings = replace(self.settings, release=_NAME)
        if materials.bundle.mechanism.private_weights == "":
            settings = replace(settings, max_records=None)
        if settings.policy.draws_words and materials.bundle.mechanism.symbols is None:  # a blind table has none
            settings = replace(settings, columns=replace(settings.columns, symbols=False))
        job = distribute_job(self.spark, materials, settings)
        # The public part of an output shows no more than the internal one.
        output = self.output.model_copy(update={"public_only": False})
        write_sanitised(table, path, job, self.source, output)
        return self.read_output(path, settings.columns)

    def read_output(self, path: str, columns: TextColumns) -> CanaryOutput:
        """Read the rows of an output in the order of its files, as a reader finds them."""
        rows = load_path(self.spark, self.spark.read.format("parquet"), path)
        file, row = (F.col(f"_metadata.{name}") for name in ("file_path", "row_index"))
        table = to_arrow(rows.select("*", file.alias("__file"), row.alias("__row")))
        root = str(Files(self.spark, path).path)
        files = [_split_path(name, root) for name in table["__file"].to_pylist()]
        positions = list(zip(files, table["__row"].to_pylist(), strict=True))
        order = sorted(range(len(positions)), key=positions.__getitem__)
        counts = Counter(files[index] for index in order)
        cut = tuple((directory, count) for (directory, _), count in counts.items())
        kept = table.drop_columns(["__file", "__row"]).take(pa.array(order, pa.int64()))
        return CanaryOutput(kept, columns, self.given.id, cut)


def audit_release(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    alpha: float = 0.01,
    copies: int = COPIES,
    seed: int = 0,
    progress: Callable[[str], None] = ignore,
) -> Audit:
    """Draw canaries as a release is drawn, and test its claims on them.

    Undeclared exposures are searched for, and declared ones that do not show. ``config``: the release's configuration,
    whose input and key are not used. ``alpha``: the family-wise false-alarm rate. ``copies``: the number of records
    with each canary. ``seed``: chooses canaries and key.

    Raises :class:`BundleError` if the store has no bundle of this configuration, :class:`ConfigError` for too few
    copies, and :class:`InputError` if the text policy hides no words of the vocabulary, so that no canary can be made.
    """
    bundle = ready_bundle(config, BuildContext(progress))
    model = find_ngrams(config.text)
    settings, source = config.record_settings(_NAME), config.source
    inputs = _make_inputs(source, BundleSanitiser(bundle, config.policy, model), copies, seed)
    key = MasterKey(sha256(b"wordveil: made documents, %d" % seed).digest())
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    untested = {str(Exposure.PRESENCE): _PARSED} if Exposure.PRESENCE in source.shown else {}
    with (
        _open_directory(spark, config.output.path) as directory,
        TemporaryDirectory(prefix="wordveil-canaries-") as store,
        job_errors(OUTCOME),
    ):
        blind = open_bundle(write_blind_bundle(bundle, Path(store)))
        pipeline = _Pipeline(spark, settings, source, config.output, inputs, directory)
        progress("writing documents")
        tables = [pipeline.read_input(pipeline.write_input(f"in-{side}", other=bool(side))) for side in (0, 1)]
        runs = []
        for drawn, how in ((blind, "auto"), (bundle, config.spark.bundle)):
            progress(f"sanitising documents with {drawn.mechanism.name}")
            name = "blind" if drawn is blind else "own"
            materials = Materials(key, drawn, model, how)
            sides = [
                pipeline.release(table, f"{directory}/{name}-{side}", materials) for side, table in enumerate(tables)
            ]
            runs.append(CanaryRun(sides[0], sides[1], drawn is blind, bundle.vocabulary.size))
    progress("comparing outputs")
    made = (field.name for field in settings.columns.output_fields)
    names = frozenset({source.id, *source.kept_names, *made})
    claim = ReleaseClaim(str(settings.relation), settings.exposes, names)
    findings = judge_runs(inputs, runs, claim, alpha, untested)
    return Audit(
        kind=RELEASE,
        subject=f"the release {config.release}",
        identity=identify_release(config, bundle.fingerprint),
        facts={
            "mechanism": f"{config.mechanism.name}, epsilon {bundle.guarantee.epsilon:g}",
            "bundle": bundle.fingerprint,
            "policy": settings.policy_fingerprint,
            "relation": claim.relation,
            "exposes": ", ".join(claim.exposes) or "nothing",
            "documents": f"{2 * len(inputs.pairs)} in {len(inputs.pairs)} pairs",
            DRAWS_FACT: f"{inputs.copies}",
            "seed": str(seed),
            TESTS_FACT: TESTS_VERSION,
            "wordveil": __version__,
        },
        alpha=alpha,
        findings=findings,
        notes=tuple(_list_notes(source, config.output)),
    )


def _make_inputs(source: Source, sanitiser: BundleSanitiser, copies: int, seed: int) -> Inputs:
    bundle, named = sanitiser.bundle, source.language is not None
    plan = DocumentPlan(sanitiser.policy, len(source.texts), source.max_bytes, names_language=named, lists=bundle.lists)
    if copies < LEAST_COPIES:
        problem = f"fewer than {LEAST_COPIES} copies tell no difference from chance. Use more."
        raise usage_error("--copies", str(copies), problem)
    try:
        return make_inputs(bundle, plan, sanitiser.ngrams, keep=source.keep, copies=copies, seed=seed)
    except ValueError as error:
        raise InputError(f"text: no documents can be made: {error}") from None


@contextmanager
def _open_directory(spark: SparkSession, output: str) -> Iterator[str]:
    """Open a temporary directory that all executors see: on this machine, or beside the output."""
    if is_local(str(spark.sparkContext.master)):
        with TemporaryDirectory(prefix="wordveil-canaries-") as local:
            yield f"file:{local}"
        return
    files = Files(spark, output)
    directory = files.sibling(f".wordveil-canaries-{secrets.token_hex(8)}")
    try:
        yield str(directory)
    finally:
        files.delete(directory)


def _make_table(given: Source, inputs: Inputs, *, other: bool) -> pa.Table:
    """Make one of the tables with the columns of the configuration's input, and :data:`HIDDEN_COLUMN`."""
    raw = [pa.array(texts, pa.binary()) for texts in inputs.texts(other=other)]
    columns: dict[str, Any] = {given.id: inputs.ids}
    columns |= {name: list(values) for name, values in inputs.kept.items()}
    if given.author is not None:
        columns.setdefault(given.author, list(inputs.secrets))
    if given.language is not None:
        columns.setdefault(given.language, inputs.languages(other=other))
    for pseudonym in given.pseudonyms:
        columns.setdefault(pseudonym.column, list(inputs.secrets))
    columns |= dict(TextColumns(given.texts).nest(raw))
    return pa.table({**columns, HIDDEN_COLUMN: list(inputs.secrets)})


def _weigh(table: pa.Table, row: int) -> pa.Table:
    """Add bytes to one row of the table, in a column that is not read."""
    values = table[HIDDEN_COLUMN].to_pylist()
    values[row] += " " * _BALLAST
    return table.set_column(table.column_names.index(HIDDEN_COLUMN), HIDDEN_COLUMN, [values])


def _split_path(file: str, root: str) -> tuple[str, str]:
    """Split a path below ``root`` into the file's directory and the part of its name that orders files."""
    directory, _, name = file.rpartition("/")
    return directory.partition(root.rpartition("/")[2])[2], name[:10] + name[-20:]


def _list_notes(source: Source, output: OutputSection) -> Iterator[str]:
    yield "what a draw of the mechanism loses was not audited here: `wordveil audit bundle` audits it."
    if output.format == "delta":
        yield "documents were drawn as one run; runs over time, budgets and the gate were not audited."
    if source.kind != "parquet" or source.table is not None:
        yield f"documents are in a Parquet table: how {source.name} is read was not audited."
