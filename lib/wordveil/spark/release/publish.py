"""The public table: released rows of the version that passed the gate, and the signed manifest beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from wordveil.config.load import Config
from wordveil.crypto.keys import MasterKey, key_faults, load_key
from wordveil.errors import OutdatedGateError, ReleaseError
from wordveil.privacy.relations import Exposure, Relation, column_exposure, narrow_relation
from wordveil.records.schema import RELEASED
from wordveil.release.manifest import File, Manifest, gate_entries, sign, verify
from wordveil.release.rules import GateResult
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.gate import published_exposes, require_live, require_no_open_runs
from wordveil.spark.release.journal import GATE, PUBLISHED, Event, Journal
from wordveil.spark.release.latest import latest_rows
from wordveil.spark.release.tables import ReleaseTables, is_internal
from wordveil.spark.sanitise.layout import arranged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANIFEST = "_manifest.json"
"""Its name inside the public table, where Delta and Parquet readers pass over it."""
_SOFTWARE = ("wordveil", "pyspark", "delta-spark", "numpy", "pyarrow", "cryptography")
# Hashed by the executors, whole; the public table's files are a fraction of this.
_HASHED_BYTES = 2**30


@dataclass(frozen=True)
class Publication:
    """What was published; ``manifest_sha256`` is the digest of the manifest's file."""

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
    config: Config, session: Callable[[], SparkSession], *, progress: Callable[[str], None] = lambda _: None
) -> Publication:
    """Write the public table and its signed manifest, from the version of the draws that passed the gate last.

    Raises :class:`ReleaseError` where that is not the version that is there now, in the rules of ``config``; a second
    time it writes the same table and manifest again.
    """
    key = load_key(config.key.file, config.key.env)
    progress("starting Spark")
    spark = session()
    require_classic(spark)
    home = ReleaseTables(spark, config)
    with (
        home.held(lambda: progress("waiting for a run of this release")),
        job_errors("what was published before is as it was"),
    ):
        journal = require_no_open_runs(home)
        require_live(journal, config.release)
        check_key(journal, key, config.release)
        gate = _passed(config, home, journal)
        progress("publishing")
        version = int(gate.body["draws_version"])
        shown = published_exposes(config, journal)
        kept = Files(spark, f"{home.path}/manifests/{version:020d}-{_label(shown)}.json")
        _check_published(home, kept)
        if config.output.public_table:
            _check_name(home, config.output.public_table)
        _write(home, config, journal, version, shown, key.for_release(config.release).layout_seed)
        if config.output.public_table:
            quoted = _quoted(config.output.public_table)
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {quoted} USING delta LOCATION '{Files(spark, home.public.path).path}'"
            )
        progress("signing")
        document = sign(_manifest(home, config, journal, gate, key, shown), key.signing_key(config.release))
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        place = f"{home.public.path}/{MANIFEST}"
        kept.write(text)
        Files(spark, place).write(text)
        body = {
            "draws_version": version,
            "public_version": document["manifest"]["public_version"],
            "records": document["manifest"]["records"],
            "exposes": list(shown),
        }
        journal.add(PUBLISHED, "", lambda _: body)
    return Publication(home.public.path, place, _digest(text), document)


def verify_table(spark: SparkSession, table: str, manifest: str | None, public_key: str | None) -> Verified:
    """The manifest of a published table, if it is sound and the table is as it says; needs neither key nor
    configuration.

    Raises :class:`ReleaseError` with what differs.
    """
    store = DeltaTable(spark, table, "table")
    place = Files(spark, manifest or f"{store.path}/{MANIFEST}")
    if not place.exists():
        raise ReleaseError(f"manifest {place.path}: no such file. Name it with --manifest.")
    if not store.exists():
        raise ReleaseError(f"table {table}: is no Delta table.")
    text = place.read()
    try:
        document = json.loads(text)
    except ValueError:
        raise ReleaseError(f"manifest {place.path}: is not JSON. Take the one that was published.") from None
    with job_errors("nothing could be verified"), _unchecked(place):
        return Verified(verify(document, _files(store), public_key), _digest(text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@contextmanager
def _unchecked(files: Files) -> Iterator[None]:
    """Hadoop's own checksums off, which it keeps beside local files: a changed file is to be named, and not to fail the
    job.
    """
    files.check_sums(on=False)
    try:
        yield
    finally:
        files.check_sums(on=True)


def _passed(config: Config, home: ReleaseTables, journal: Journal) -> Event:
    gate = journal.latest(GATE)
    hint = "Run `wordveil release gate` with this configuration."
    if gate is None:
        raise ReleaseError(f"release {config.release}: no version has passed the gate. {hint}")
    if gate.body["draws_version"] != (now := home.draws.version()):
        raise OutdatedGateError(
            f"release {config.release}: the draws are at version {now}, the gate has seen {gate.body['draws_version']}. {hint}"
        )
    if gate.body["rules"] != config.gate.rules.digest:
        raise ReleaseError(
            f"release {config.release}: the gate's rules have changed since version {now} went through it. {hint}"
        )
    if not gate.body["passed"]:
        raise ReleaseError(
            f"release {config.release}: version {now} of the draws did not pass the gate. What passed before stays published."
        )
    return gate


def check_key(journal: Journal, key: MasterKey, release: str) -> None:
    """Raise :class:`ReleaseError` unless ``key`` is the one that a release with runs was drawn with."""
    intents = journal.intents()
    if problem := key_faults(intents[0].terms["key_fingerprint"], intents[-1].epochs, key):
        raise ReleaseError(f"release {release}: {problem}")


def _write(
    home: ReleaseTables, config: Config, journal: Journal, version: int, shown: tuple[str, ...], seed: int
) -> None:
    """Replace the public table's rows by those of a version of the draws; once for a version and what is shown
    besides.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    rows = _newest(home, config, journal, version).where(F.col("status") == RELEASED)
    names = [name for name in rows.columns if not is_internal(name)]
    rows = _with_exposures(rows.select(*(column(name) for name in names)), shown)
    if config.output.order == "hashed":
        rows = arranged(rows, seed, rows.count(), config.input.id, partition_by=config.output.partition_by)
    public = home.public
    schema = StructType(rows.schema.fields)
    public.create(schema, partition_by=config.output.partition_by, indexed=[config.input.id])
    public.replace(
        rows,
        idempotency_key=f"publish {config.release} {_label(shown)}",
        number=version,
        records_per_file=config.output.records_per_file,
    )


def _label(shown: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(shown).encode()).hexdigest()[:16]


def _with_exposures(rows: DataFrame, shown: tuple[str, ...]) -> DataFrame:
    """``rows`` whose ``exposes`` names ``shown`` too, in the order that the draws have: columns last. Their relation is
    what that leaves.
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


def _newest(home: ReleaseTables, config: Config, journal: Journal, version: int) -> DataFrame:
    return latest_rows(home.draws.read(version), config.input.id, len(journal.intents()))


def _check_published(home: ReleaseTables, kept: Files) -> None:
    """Raise :class:`ReleaseError` where this version was published before and its files have changed since: to sign
    them again would vouch for that.
    """
    if not (kept.exists() and home.public.exists()):
        return
    try:
        with _unchecked(kept):
            verify(json.loads(kept.read()), _files(home.public), None)
    except ReleaseError as error:
        raise ReleaseError(
            f"public table {home.public.path}: {error} It is not signed again as it is. Move its directory away and publish again: the "
            "table is then written anew from the draws."
        ) from None


def _check_name(home: ReleaseTables, name: str) -> None:
    """Raise :class:`ReleaseError` where the catalogue knows another table by the public table's name."""
    if not home.spark.catalog.tableExists(_quoted(name)):
        return
    location = home.spark.sql(f"DESCRIBE DETAIL {_quoted(name)}").first()
    here = str(Files(home.spark, home.public.path).path.toUri().getPath()).rstrip("/")
    if location is None or not str(location["location"]).rstrip("/").endswith(here):
        raise ReleaseError(
            f"output.public_table = {name}: the catalogue knows another table by that name. Choose another name, or drop it."
        )


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _manifest(
    home: ReleaseTables, config: Config, journal: Journal, gate: Event, key: MasterKey, shown: tuple[str, ...]
) -> Manifest:
    from pyspark.sql import functions as F  # noqa: N812

    public = home.public
    version = public.version()
    table = public.read(version)
    draws = _newest(home, config, journal, int(gate.body["draws_version"])).where(F.col("status") == RELEASED)
    facts = draws.agg(
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
        release=config.release,
        draws_version=int(gate.body["draws_version"]),
        public_version=version,
        run_ids=tuple(facts.runs),
        mechanism=first.terms["mechanism_fingerprint"],
        policy=first.terms["policy_fingerprint"],
        key=key.fingerprint,
        epoch=facts.epoch or key.epoch,
        relation=narrow_relation(config.policy.relation, exposes),
        exposes=exposes,
        input=read.source,
        input_version=read.version,
        n_max=config.policy.n_max,
        records=facts.records,
        rules=config.gate.rules.digest,
        gate=gate_entries(GateResult.from_dict(gate.body)),
        software=software(home.spark.version),
        created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        schema=tuple((field.name, field.dataType.simpleString()) for field in table.schema.fields),
        files=tuple(_files(public)),
    )


def software(spark_version: str) -> dict[str, str]:
    """Versions of what drew and wrote. A Spark that was unpacked, or is a platform's own, is no installed package: it
    says its version itself.
    """
    found = {"pyspark": spark_version}
    for name in _SOFTWARE:
        with suppress(PackageNotFoundError):
            found[name] = installed(name)
    return found


def _files(store: DeltaTable) -> list[File]:
    """The files of the table's newest version, hashed by the executors."""
    from pyspark.sql import functions as F  # noqa: N812

    spark = store.spark
    place = Files(spark, store.path)
    root = str(place.path.toUri().getPath()).rstrip("/") + "/"
    there = place.tree()
    # A file that is gone is told by its absence: Spark would fail for all of them.
    names = [name for name in map(unquote, store.read().inputFiles()) if name.split(root, 1)[1] in there]
    if not names:
        return []
    contents = spark.read.format("binaryFile").load(names)
    hashed = contents.select("path", "length", F.sha2("content", 256).alias("digest")).collect()
    return [(unquote(str(row.path)).split(root, 1)[1], int(row.length), str(row.digest)) for row in hashed]
