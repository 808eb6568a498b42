"""The public table: the released rows of the version that passed the gate, and a signed manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from wordveil.config.artifacts import find_recovery
from wordveil.config.load import Config
from wordveil.config.schema import OutputSection
from wordveil.crypto.keys import MasterKey, load_key
from wordveil.errors import OutdatedGateError, ReleaseError
from wordveil.privacy.relations import Exposure, Relation, column_exposure, narrow_relation
from wordveil.records.schema import RELEASED
from wordveil.release.manifest import File, Manifest, gate_entries, sign, verify
from wordveil.release.rules import GateResult
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.gate import published_exposes
from wordveil.spark.release.journal import GATE, PUBLISHED, Event, Journal
from wordveil.spark.release.latest import latest_rows
from wordveil.spark.release.opening import open_release
from wordveil.spark.release.preconditions import check_key, require_live, require_no_open_runs
from wordveil.spark.release.tables import ReleaseTables, is_internal
from wordveil.spark.sanitise.layout import arrange_rows
from wordveil.text.policy import TextPolicy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANIFEST = "_manifest.json"
"""The manifest's name inside the public table. Readers of Delta and Parquet skip it."""
_SOFTWARE = ("wordveil", "pyspark", "delta-spark", "numpy", "pyarrow", "cryptography")


@dataclass(frozen=True)
class Publication:
    """What was published.

    Attributes
    ----------
    table
        the path of the public table.
    place
        the path of its manifest.
    manifest_sha256
        the digest of the manifest's file, in hexadecimal.
    document
        the signed manifest.
    """

    table: str
    place: str
    manifest_sha256: str
    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "table": self.table,
            "manifest_path": self.place,
            "manifest_sha256": self.manifest_sha256,
            **self.document,
        }


@dataclass(frozen=True)
class Verified:
    """A manifest that its table agrees with, and the digest of the manifest's file."""

    manifest: Manifest
    manifest_sha256: str


def publish(
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = ignore
) -> Publication:
    """Write the public table and its signed manifest, from the version of the draws that last passed the gate.

    To publish the same version a second time writes the same table and manifest again. Raises :class:`ReleaseError`
    where that version is not the current one, or was measured by other rules than those of ``config``.
    """
    key = load_key(config.key.file, config.key.env)
    name, output, rules = config.release, config.output, config.gate.rules
    with open_release(config, session, progress, outcome="what was published before is unchanged") as release:
        tables, journal = release.tables, release.journal
        require_no_open_runs(journal, name)
        require_live(journal, name)
        check_key(journal, key, name)
        gate = _find_passed_gate(tables, journal, rules.digest)
        progress("publishing")
        version = int(gate.body["draws_version"])
        shown = published_exposes(config.shown, journal)
        kept = Files(release.spark, f"{tables.path}/manifests/{version:020d}-{_label(shown)}.json")
        _check_published(tables, kept)
        if output.public_table:
            _check_name(tables, output.public_table)
        newest = latest_rows(tables.draws.read(version), config.input.id, len(journal.intents()))
        released = newest.where(f"status = '{RELEASED}'")
        _write_rows(tables, released, version, shown, output, config.input.id, key.for_release(name).layout_seed)
        if output.public_table:
            location = Files(release.spark, tables.public.path).path
            release.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {_quoted(output.public_table)} USING delta LOCATION '{location}'"
            )
        progress("signing")
        made = _make_manifest(tables, released, journal, gate, config.policy, rules.digest, key, shown)
        manifest = replace(made, recovery=find_recovery(config, made.mechanism))
        document = sign(manifest, key.signing_key(name))
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        place = f"{tables.public.path}/{MANIFEST}"
        kept.write(text)
        Files(release.spark, place).write(text)
        body = {
            "draws_version": version,
            "public_version": manifest.public_version,
            "records": manifest.records,
            "exposes": list(shown),
        }
        journal.add(PUBLISHED, "", lambda _: body)
    return Publication(tables.public.path, place, _digest(text), document)


def verify_table(spark: SparkSession, table: str, manifest: str | None, public_key: str | None) -> Verified:
    """Check a published table against its manifest. This needs neither key nor configuration.

    Parameters
    ----------
    spark
        a session that has Delta.
    table
        the path of the published table.
    manifest
        the path of the manifest; None: the one inside the table.
    public_key
        the release's public key, 64 hexadecimal digits, from another source than the table; None: any key will do.

    Raises
    ------
    ReleaseError
        If the table is not the one that was signed; the message says what differs.
    """
    published = DeltaTable(spark, table, "table")
    place = Files(spark, manifest or f"{published.path}/{MANIFEST}")
    if not place.exists():
        raise ReleaseError(f"manifest {place.path}: no such file. Name it with --manifest.")
    if not published.exists():
        raise ReleaseError(f"table {table}: is not a Delta table. Name the directory of a published table.")
    text = place.read()
    try:
        document = json.loads(text)
    except ValueError:
        raise ReleaseError(f"manifest {place.path}: is not JSON. Use the one that was published.") from None
    with job_errors("nothing was verified"), _without_checksums(place):
        return Verified(verify(document, _hash_files(published), public_key), _digest(text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@contextmanager
def _without_checksums(files: Files) -> Iterator[None]:
    """Switch off the checksums that Hadoop keeps beside local files: a changed file must be named, and not fail the
    job.
    """
    files.verify_checksums(on=False)
    try:
        yield
    finally:
        files.verify_checksums(on=True)


def _find_passed_gate(tables: ReleaseTables, journal: Journal, rules: str) -> Event:
    """The last decision of the gate. Raises :class:`ReleaseError` unless it passed the current draws by the ``rules``
    of that digest.
    """
    gate, version = journal.latest(GATE), tables.draws.version()
    where, hint = f"release {tables.release}:", "Run `wordveil release gate` with this configuration."
    if gate is None:
        raise ReleaseError(f"{where} no version has passed the gate. {hint}")
    if gate.body["draws_version"] != version:
        raise OutdatedGateError(
            f"{where} the draws are at version {version}, and the gate has seen version {gate.body['draws_version']}. "
            f"{hint}"
        )
    if gate.body["rules"] != rules:
        raise ReleaseError(f"{where} the gate's rules have changed since it measured version {version}. {hint}")
    if not gate.body["passed"]:
        raise ReleaseError(
            f"{where} version {version} of the draws did not pass the gate. What was published before stays published."
        )
    return gate


def _write_rows(
    tables: ReleaseTables,
    released: DataFrame,
    version: int,
    shown: tuple[str, ...],
    output: OutputSection,
    name: str,
    seed: int,
) -> None:
    """Replace the public table's rows by the ``released`` ones of a version of the draws; once for a version and what
    is ``shown`` besides.

    ``name``: the id column. ``seed``: of the order of rows.
    """
    from pyspark.sql.types import StructType

    columns = [column(field) for field in released.columns if not is_internal(field)]
    rows = _add_exposures(released.select(*columns), shown)
    if output.order == "hashed":
        rows = arrange_rows(rows, seed, rows.count(), name, partition_by=output.partition_by)
    public = tables.public
    public.create(StructType(rows.schema.fields), partition_by=output.partition_by, indexed=[name])
    public.replace(
        rows,
        idempotency_key=f"publish {tables.release} {_label(shown)}",
        number=version,
        records_per_file=output.records_per_file,
    )


def _label(shown: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(shown).encode()).hexdigest()[:16]


def _add_exposures(rows: DataFrame, shown: tuple[str, ...]) -> DataFrame:
    """Add ``shown`` to the ``exposes`` of ``rows``, in the order that the draws have, columns last. Their relation
    becomes what that leaves of it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    named = F.array_sort(F.array_union("privacy.exposes", F.array(*map(F.lit, shown)).cast("array<string>")))
    is_column = column_exposure("")
    parts = F.concat(
        F.filter(named, lambda name: ~name.startswith(is_column)),
        F.filter(named, lambda name: name.startswith(is_column)),
    )
    privacy = F.col("privacy").withField("exposes", parts)
    if Exposure.CONDITION in shown:
        relation = F.lit(str(Relation.SAME_SKELETON))
        privacy = privacy.withField("relation", relation).withField("epsilon_pure", F.lit(None).cast("double"))
    return rows.withColumn("privacy", privacy)


def _check_published(tables: ReleaseTables, kept: Files) -> None:
    """Raise :class:`ReleaseError` where this version was published before and its files have changed since: a new
    signature would confirm that change.
    """
    if not (kept.exists() and tables.public.exists()):
        return
    try:
        with _without_checksums(kept):
            verify(json.loads(kept.read()), _hash_files(tables.public), None)
    except ReleaseError as error:
        raise ReleaseError(
            f"public table {tables.public.path}: {error} A changed table is not signed again. Move its directory "
            "away and publish again: this writes the table again from the draws."
        ) from None


def _check_name(tables: ReleaseTables, name: str) -> None:
    """Raise :class:`ReleaseError` where the catalogue knows another table by the public table's name."""
    if not tables.spark.catalog.tableExists(_quoted(name)):
        return
    location = tables.spark.sql(f"DESCRIBE DETAIL {_quoted(name)}").first()
    here = str(Files(tables.spark, tables.public.path).path.toUri().getPath()).rstrip("/")
    if location is None or not str(location["location"]).rstrip("/").endswith(here):
        raise ReleaseError(
            f"output.public_table = {name}: the catalogue has another table with that name. Choose another name, or "
            "drop that table."
        )


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _make_manifest(
    tables: ReleaseTables,
    released: DataFrame,
    journal: Journal,
    gate: Event,
    policy: TextPolicy,
    rules: str,
    key: MasterKey,
    shown: tuple[str, ...],
) -> Manifest:
    """The manifest of the public table as it is now. ``released``: the draws that it holds; ``rules``: their digest."""
    from pyspark.sql import functions as F  # noqa: N812

    public_version = tables.public.version()
    schema = tables.public.read(public_version).schema
    facts = released.agg(
        F.count(F.lit(1)).alias("records"),
        F.sort_array(F.collect_set("run_id")).alias("runs"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_set("privacy.exposes")))).alias("exposes"),
        F.max("__epoch").alias("epoch"),
    ).first()
    assert facts is not None
    first = journal.intents()[0]
    read = [intent for intent in journal.intents() if intent.kind == "sanitise"][-1]
    exposes = tuple(sorted({*facts.exposes, *shown}))
    return Manifest(
        release=tables.release,
        draws_version=int(gate.body["draws_version"]),
        public_version=public_version,
        run_ids=tuple(facts.runs),
        mechanism=first.terms["mechanism_fingerprint"],
        policy=first.terms["policy_fingerprint"],
        key=key.fingerprint,
        epoch=facts.epoch or key.epoch,
        relation=narrow_relation(policy.relation, exposes),
        exposes=exposes,
        input=read.source,
        input_version=read.version,
        n_max=policy.n_max,
        records=facts.records,
        rules=rules,
        gate=gate_entries(GateResult.from_dict(gate.body)),
        software=software_versions(tables.spark.version),
        created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        schema=tuple((field.name, field.dataType.simpleString()) for field in schema.fields),
        files=tuple(_hash_files(tables.public)),
    )


def software_versions(spark_version: str) -> dict[str, str]:
    """The versions of the software that drew and wrote. A Spark that was unpacked, or belongs to a platform, is not an
    installed package: it says its version itself.
    """
    found = {"pyspark": spark_version}
    for name in _SOFTWARE:
        with suppress(PackageNotFoundError):
            found[name] = installed(name)
    return found


def _hash_files(table: DeltaTable) -> list[File]:
    """The files of the table's newest version. The executors hash them."""
    from pyspark.sql import functions as F  # noqa: N812

    spark = table.spark
    place = Files(spark, table.path)
    root = str(place.path.toUri().getPath()).rstrip("/") + "/"
    present = place.list_files()
    # A file that is gone is left out, and so found missing: Spark would fail for all files.
    names = [name for name in map(unquote, table.read().inputFiles()) if name.split(root, 1)[1] in present]
    if not names:
        return []
    contents = spark.read.format("binaryFile").load(names)
    hashed = contents.select("path", "length", F.sha2("content", 256).alias("digest")).collect()
    return [(unquote(str(row.path)).split(root, 1)[1], int(row.length), str(row.digest)) for row in hashed]
