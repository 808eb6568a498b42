"""Publication: the released rows of the version that passed the gate, and a signed manifest.

It writes everything, some of the table's directories, or new records alone.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial, reduce
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from operator import and_
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.assembly.bundles import PublishedFacts, find_facts
from wordveil.assembly.jobs import make_table_terms
from wordveil.config.load import Config
from wordveil.config.schema import ReleaseHome
from wordveil.crypto.keys import MasterKey, encode_public_key, load_key
from wordveil.errors import OutdatedGateError, ReleaseError
from wordveil.privacy.relations import Exposure, column_exposure, pseudonym_exposure
from wordveil.privacy.table import TablePrivacy, TableTerms
from wordveil.records.sanitiser import RecordSettings
from wordveil.records.schema import RELEASED, SYMBOLS, is_internal
from wordveil.release.budgets import BUDGET_REASONS, STALE
from wordveil.release.events import ADDING, GATE, PUBLISHED, Event
from wordveil.release.layout import SEQ_COLUMN
from wordveil.release.manifest import Manifest, Snapshot, gate_entries, open_document, sign
from wordveil.release.published_log import PROPERTIES
from wordveil.release.rules import GateResult, GateRules
from wordveil.release.verify import MANIFEST, compare_with, find_leftovers, hash_text
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import describe_cause, job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.changes import KEPT_COLUMN, differ_in_kept
from wordveil.spark.release.gate import published_exposes
from wordveil.spark.release.increments import find_increment, is_as_signed
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import WAS_KEPT_COLUMN, filter_by_ids, latest_state
from wordveil.spark.release.ledger import Terms
from wordveil.spark.release.shuffled import (
    Addition,
    find_former,
    find_unfinished,
    find_waiting,
    hide_ids,
    measure_addition,
    plan_addition,
    require_kind,
    sum_up,
)
from wordveil.spark.release.tables import Release, open_release
from wordveil.spark.release.verify import SparkTable
from wordveil.spark.sanitise.layout import arrange_rows

_LOGGER = logging.getLogger(__name__)
_SOFTWARE = ("wordveil", "pyspark", "delta-spark", "numpy", "pyarrow", "cryptography")
_OUTCOME = "what was published before is unchanged"
_MOVE = "Move its directory away and publish again: this writes the table again from the draws."
# Spark's names of data files, in any directory of partitions.
_DATA_FILE = re.compile(r"([^_./][^/]*/)*part-\d{5}-[\w.-]+\.parquet")


@dataclass(frozen=True)
class Publication:
    """Publication of a release: paths of table and manifest, the SHA-256 of the manifest's file, and the manifest."""

    table: str
    manifest_path: str
    manifest_sha256: str
    document: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        files = {"table": self.table, "manifest_path": self.manifest_path, "manifest_sha256": self.manifest_sha256}
        return {**files, **self.document}


def publish(
    config: Config,
    session: Callable[[], SparkSession],
    *,
    draws_version: int | None = None,
    progress: Callable[[str], None] = ignore,
) -> Publication:
    """Write the public table and its signed manifest, from the version of the draws that last passed the gate.

    Publishing the same version a second time signs the same table again. ``draws_version``: the only version that may
    be published, such as one that a person approved. Raises :class:`ReleaseError` if the version is not the current
    one, or was measured by other rules than those of ``config``.
    """
    key = load_key(config.key.file, config.key.env)
    settings, rules, find = config.record_settings(""), config.rules, partial(find_facts, config)
    with open_release(config.home, session, progress, outcome=_OUTCOME) as release:
        with job_errors(_OUTCOME):
            _require_version(release, draws_version)
        return publish_release(release, settings, rules, key, find, progress)


def publish_release(
    release: Release,
    settings: RecordSettings,
    rules: GateRules,
    key: MasterKey,
    find: Callable[[str], PublishedFacts],
    progress: Callable[[str], None],
) -> Publication:
    """Publish a release that is open, as :func:`publish` does; ``find`` finds public facts by fingerprint."""
    name, output = settings.release, release.home.output
    with job_errors(_OUTCOME):
        journal = release.journal
        journal.require_no_open_runs()
        journal.require_live()
        journal.check_key(key)
        require_kind(release)
        _require_plain(release.public)
        unfinished = find_unfinished(release) if output.shuffle else None
        gate = journal.events[unfinished[0].gate - 1] if unfinished else _find_passed_gate(release, rules.digest)
        progress("publishing")
        # Draws of a publication that was killed may have been purged since.
        version = release.draws.version() if unfinished else int(gate.body["draws_version"])
        shown = published_exposes(settings.shown, journal)
        signing_key = key.signing_key(name)
        public_key = encode_public_key(signing_key)
        last = journal.latest(PUBLISHED)
        signed = _find_signed(release, last, None if output.shuffle else shown, public_key)
        if output.public_table:
            _check_name(release, output.public_table)
        facts = release.count_rows(version, settings.columns)
        facts_of = find(journal.intents()[0].terms.fixed["mechanism_fingerprint"])
        publication = unfinished[0].publication if unfinished else _next_publication(release, public_key)
        if output.shuffle:
            terms = make_table_terms(output.shuffle, facts.pure, settings, facts_of.responses)
            if unfinished is None:
                addition = plan_addition(release, publication, gate, facts.seq or 0)
                unfinished = _add_to_table(release, addition, signed, shown, terms, settings.kept)
            made = _sign_addition(release, *unfinished, signed, last)
        elif signed and signed.draws_version == version:
            _require_unchanged(release.public, signed)
            _register(release.public, output.public_table)
            made = _Written(signed.public_version, signed.snapshot, facts.released, facts.seq or 0)
        else:
            seed, until = key.for_release(name).layout_seed, last.body.get("seq") if last else None
            written = _write_table(release, version, facts.released, shown, seed, signed, until)
            made = _Written(*written, facts.released, facts.seq or 0)
        progress("signing")
        if made.snapshot.records != made.expected:
            raise ReleaseError(
                f"public table {release.public.path}: version {made.version} lacks files, or has other rows than the "
                f"draws. {_MOVE}"
            )
        columns = [field["name"] for field in made.snapshot.schema["fields"]]
        manifest = Manifest(
            **_describe_release(release, facts, gate, last, settings, key, shown, columns),
            release=name,
            publication=publication,
            public_version=made.version,
            rules=gate.body["rules"],
            software=_list_software(release.spark.version),
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            snapshot=made.snapshot,
            recovery=facts_of.recovery,
            writers=output.writers,
            symbols=facts_of.symbols if SYMBOLS in columns else None,
            tables=made.tables,
        )
        document = sign(manifest, signing_key)
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        manifest_path = f"{release.public.path}/{MANIFEST}"
        _kept_manifest(release, publication).write(text)
        Files(release.spark, manifest_path).write(text)
        body = {
            "publication": publication,
            "draws_version": version,
            "public_version": made.version,
            "records": made.snapshot.records,
            "exposes": list(shown),
            "refused": manifest.refused,
            "seq": made.seq,
            **({"table": asdict(made.total)} if made.total else {}),
            **({} if manifest.kept_changed is None else {"kept_changed": manifest.kept_changed}),
        }
        journal.add(PUBLISHED, "", lambda _: body)
        _LOGGER.debug("published %d records as publication %d, version %d", made.expected, publication, made.version)
    return Publication(release.public.path, manifest_path, hash_text(text), document)


def _count_kept_changed(release: Release, version: int, last: Event | None, kept: Sequence[str]) -> int:
    """Count the released rows at a ``version`` of the draws whose kept columns alone differ from the ``last`` ones."""
    seq, name = last.body.get("seq") if last else None, release.home.id
    if seq is None or not kept:
        return 0
    runs, number = release.journal.runs_after(seq)
    if not number:
        return 0
    is_copied = (F.col("status") == RELEASED) & (F.col(SEQ_COLUMN) > seq) & ~F.col("run_id").isin(runs)
    named = column(name).alias("__id"), F.struct(*map(column, kept)).alias(KEPT_COLUMN)
    rows = release.newest_rows(version).where(is_copied).select(*named)
    drawn = filter_by_ids(release.draws.read(version), name, rows.select("__id"))
    before = latest_state(drawn, name, seq + 1, kept).select("__id", WAS_KEPT_COLUMN)
    fields = StructType([drawn.schema[field] for field in kept])
    is_other = differ_in_kept(F.col(KEPT_COLUMN), F.col(WAS_KEPT_COLUMN), fields)
    return rows.join(before, "__id").where(is_other).count()


def _require_version(release: Release, wanted: int | None) -> None:
    """Raise :class:`OutdatedGateError` if the draws are at another version than the ``wanted`` one, if there is one."""
    version = release.draws.version()
    if wanted is not None and version != wanted:
        raise OutdatedGateError(
            f"release {release.name}: the draws are at version {version}, and version {wanted} was to be published. "
            "Look at the gate's last decision, and publish what that is about."
        )


def _find_passed_gate(release: Release, rules: str) -> Event:
    """Find the gate's last decision; raise :class:`ReleaseError` unless it passed these draws by these ``rules``."""
    gate, version = release.journal.latest(GATE), release.draws.version()
    where, hint = f"release {release.name}:", "Run `wordveil release gate` with this configuration."
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


def _write_table(
    release: Release,
    version: int,
    number: int,
    shown: tuple[str, ...],
    seed: int,
    signed: Manifest | None,
    seq: int | None,
) -> tuple[int, Snapshot]:
    """Write the ``number`` released rows of the draws; files that were ``signed`` and are unchanged stay."""
    home, journal, public = release.home, release.journal, release.public
    before = public.version()
    released = release.newest_rows(version).where(f"status = '{RELEASED}'")
    rows, where = _make_public(released, journal, shown), None
    is_since = F.col(SEQ_COLUMN) > F.lit(seq)
    if signed and seq is not None:
        drawn = release.draws.read(version).where(is_since)
        where = find_increment(drawn, home.id, rows, public, signed, home.output)
    fields = StructType(rows.schema.fields)
    # Anyone who verifies the table would refuse another property, such as a change feed. Log and manifests name no ids.
    public.create(fields, partition_by=home.output.partition_by, indexed=[], defaults=PROPERTIES)
    _register(public, home.output.public_table)  # a catalogue may refuse, so it is asked before there is a row
    if signed is None or where is None:
        written = _write_rows(public, rows, home, seed, number)
        _delete_leftovers(public, written)
        return written, SparkTable(public).describe(written)
    written = before
    if where:
        written = _write_rows(public, rows, home, seed, None, where)
    elif added := number - signed.snapshot.records:
        rows = _make_public(released.where(is_since), journal, shown)
        written = _write_rows(public, rows, home, seed, added, where)
    if written > before + 1:
        raise ReleaseError(
            f"public table {public.path}: another program has written to it since version {before}. Stop that program "
            "and publish again: this writes the whole table again from the draws."
        )
    _delete_leftovers(public, written)
    return written, SparkTable(public).describe(written, signed.snapshot.files)


@dataclass(frozen=True)
class _Written:
    """Public table as it was written.

    ``expected``: the number of its rows by the draws. ``seq``: the last run whose rows it has. ``tables``: of a
    shuffled release, as in the manifest; ``total``: what all publications are for a record.
    """

    version: int
    snapshot: Snapshot
    expected: int
    seq: int
    tables: tuple[TablePrivacy, ...] = ()
    total: TablePrivacy | None = None


def _add_to_table(
    release: Release,
    addition: Addition,
    signed: Manifest | None,
    shown: tuple[str, ...],
    terms: TableTerms,
    kept: Sequence[str],
) -> tuple[Addition, int]:
    """Add rows to a shuffled table, if there are any; return what they are for their records, and its version.

    Raises :class:`ReleaseError` if rows would be added to a table that is not the one that was ``signed``, and
    :class:`InputError` for groups that are too small; nothing is written then.
    """
    public, output = release.public, release.home.output
    if addition.since and (signed is None or not is_as_signed(public, signed, output)):
        raise ReleaseError(
            f"public table {public.path}: is not as it was signed, or output.partition_by has changed. No rows are "
            f"added to it. {_MOVE}"
        )
    waiting = find_waiting(release, addition.draws_version, addition.since, addition.until)
    if waiting.isEmpty():
        if signed is None:
            raise ReleaseError(f"release {release.name}: no record was released, so there is nothing to publish.")
        _register(public, output.public_table)
        return addition, signed.public_version
    privacy = measure_addition(release, addition, waiting, kept, terms)
    addition = replace(addition, privacy=privacy)
    release.journal.add(ADDING, "", lambda _: asdict(addition))
    naming = Terms.naming(release.name, release.draws.identifier(), f"publication-{addition.publication}")
    release.ledger.record_table(naming, privacy)
    rows, name = _make_public(waiting, release.journal, shown), release.home.id
    assert output.shuffle is not None
    fields = StructType(hide_ids(rows, name, output.shuffle).schema.fields)
    public.create(fields, partition_by=output.partition_by, indexed=[], defaults=PROPERTIES)
    _register(public, output.public_table)
    arranged = arrange_rows(rows, None, name, number=privacy.records, partition_by=output.partition_by)
    without_ids = hide_ids(arranged, name, output.shuffle)
    return addition, public.add(without_ids, records_per_file=output.records_per_file, token=addition.token)


def _sign_addition(
    release: Release, addition: Addition, written: int, signed: Manifest | None, last: Event | None
) -> _Written:
    """Describe a shuffled table at the version that was ``written``, and what it is for its records."""
    before = signed if addition.since else None
    tables, former = (before.tables, find_former(last)) if before else ((), None)
    if addition.privacy is None:
        assert before is not None
        return _Written(written, before.snapshot, before.snapshot.records, addition.since, tables, former)
    _delete_leftovers(release.public, written)
    snapshot = SparkTable(release.public).describe(written, before.snapshot.files if before else ())
    tables = (*tables, addition.privacy)
    expected = sum(added.records for added in tables)
    return _Written(written, snapshot, expected, addition.until, tables, sum_up(former, addition.privacy))


def _require_plain(public: DeltaTable) -> None:
    """Raise :class:`ReleaseError` if the log has content that no manifest covers: a signature would confirm it."""
    table = SparkTable(public)
    try:
        if table.version() >= 0:
            table.read_log()
    except ReleaseError as error:
        raise ReleaseError(f"public {error} {_MOVE}") from None


def _delete_leftovers(public: DeltaTable, version: int) -> None:
    """Delete data files that no version names, as a killed writer leaves them: readers of the directory see them."""
    table, files = SparkTable(public), Files(public.spark, public.path)
    for name in find_leftovers(table.list_files(), table.read_log(version)):
        if _DATA_FILE.fullmatch(name):
            files.delete(files.below(name))


def _write_rows(
    public: DeltaTable,
    rows: DataFrame,
    home: ReleaseHome,
    seed: int,
    number: int | None,
    where: str | None = None,
) -> int:
    """Replace the public table's rows by ``rows``, ordered by ``seed``, and return its version.

    ``number``: the number of rows, if known. ``where``: as :func:`find_increment` returns it.
    """
    output = home.output
    if where:
        rows = rows.where(where)
    if output.order == "hashed":
        rows = arrange_rows(rows, seed, home.id, number=number, partition_by=output.partition_by)
    if where == "":
        return public.add(rows, records_per_file=output.records_per_file)
    return public.replace(rows, where=where, records_per_file=output.records_per_file)


def _make_public(released: DataFrame, journal: Journal, shown: tuple[str, ...]) -> DataFrame:
    # The later edit of such a row was refused by a budget.
    budgets = (intent.budget for intent in journal.intents())
    if any(budget is not None and budget.on_exceeded == "keep_last" for budget in budgets):
        released = released.withColumn(STALE, F.col("reason").isNotNull())
    rows = _add_exposures(released, shown)
    return rows.select(*(column(field) for field in rows.columns if not is_internal(field)))


def _is_column(exposure: Column) -> Column:
    return exposure.startswith(column_exposure("")) | exposure.startswith(pseudonym_exposure(""))


def _add_exposures(rows: DataFrame, shown: tuple[str, ...]) -> DataFrame:
    """Add ``shown`` to the ``exposes`` of ``rows``, columns last as in the draws."""
    named = F.array_sort(F.array_union("privacy.exposes", F.array(*map(F.lit, shown)).cast("array<string>")))
    parts = F.concat(F.filter(named, lambda name: ~_is_column(name)), F.filter(named, _is_column))
    privacy = F.col("privacy").withField("exposes", parts)
    # Most rows were drawn with it. Spark does not compile the functions above: they took a sixth of a publication.
    has_all = reduce(and_, (F.array_contains("privacy.exposes", name) for name in shown), F.lit(True))
    return rows.withColumn("privacy", F.when(has_all, F.col("privacy")).otherwise(privacy))


def _kept_manifest(release: Release, publication: int) -> Files:
    return Files(release.spark, f"{release.path}/manifests/{publication:020d}.json")


def _find_signed(
    release: Release, last: Event | None, shown: tuple[str, ...] | None, public_key: str
) -> Manifest | None:
    """Find the manifest of the ``last`` publication, if its table still exists.

    ``shown``: None is returned for a manifest with other exposures; None allows any.
    """
    if last is None or (shown is not None and last.body["exposes"] != list(shown)):
        return None
    if not release.public.exists():
        return None
    kept = _kept_manifest(release, last.body.get("publication", 0))
    return _open_manifest(kept, public_key)  # None if it is damaged: the table is written again from the draws


def _open_manifest(file: Files, public_key: str) -> Manifest | None:
    """Open a manifest of the release; None for another release's, a damaged one, or none."""
    with suppress(ReleaseError, ValueError):
        if file.exists():
            return open_document(json.loads(file.read()), public_key)
    return None


def _require_unchanged(public: DeltaTable, signed: Manifest) -> None:
    """Raise :class:`ReleaseError` if the table differs from the ``signed`` one: signing would confirm that."""
    try:
        compare_with(SparkTable(public), signed)
    except ReleaseError as error:
        raise ReleaseError(
            f"public table {public.path}: {error} A changed table is not signed again. {_MOVE}"
        ) from None


def _next_publication(release: Release, public_key: str) -> int:
    """Compute the number after the last publication's, from the journal and, after a reset, the public table."""
    published = (event.body for event in release.journal.events if event.event == PUBLISHED)
    numbers: list[int] = [body.get("publication", 0) for body in published]
    manifest = _open_manifest(Files(release.spark, f"{release.public.path}/{MANIFEST}"), public_key)
    return max([*numbers, manifest.publication if manifest else 0]) + 1


def _check_name(release: Release, name: str) -> None:
    """Raise :class:`ReleaseError` if the catalogue has another table under the public table's name."""
    with _catalogue_errors(name):
        if not release.spark.catalog.tableExists(_quoted(name)):
            return
    location = None
    with suppress(AnalysisException):  # it is not Delta's
        location = release.spark.sql(f"DESCRIBE DETAIL {_quoted(name)}").first()
    here = str(Files(release.spark, release.public.path).path.toUri().getPath()).rstrip("/")
    if location is None or not str(location["location"]).rstrip("/").endswith(here):
        raise ReleaseError(
            f"output.public_table = {name}: the catalogue has another table with that name. Choose another name, or "
            "drop that table."
        )


def _register(public: DeltaTable, name: str | None) -> None:
    if name:
        location = Files(public.spark, public.path).path
        with _catalogue_errors(name):
            public.spark.sql(f"CREATE TABLE IF NOT EXISTS {_quoted(name)} USING delta LOCATION '{location}'")


@contextmanager
def _catalogue_errors(name: str) -> Iterator[None]:
    """Turn a catalogue's refusal of the public table's ``name`` into an error of that setting."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ReleaseError(
            f"output.public_table = {name}: the catalogue refuses it, and {_OUTCOME}: {describe_cause(error)} Name a "
            "catalogue that takes Delta tables by their path, as one of Iceberg does not, or remove the setting: "
            "readers can use the path."
        ) from None


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _describe_release(
    release: Release,
    facts: Row,
    gate: Event,
    last: Event | None,
    settings: RecordSettings,
    key: MasterKey,
    shown: tuple[str, ...],
    columns: Collection[str],
) -> dict[str, Any]:
    """Describe the released draws, from ``facts``, and how they were made, for the manifest."""
    journal, version = release.journal, int(gate.body["draws_version"])
    first = journal.intents()[0]
    reads = [intent for intent in journal.intents() if intent.kind == "sanitise"]
    # A refused run has read nothing.
    read = ([intent for intent in reads if journal.finished(intent.run_id) is not None] or reads)[-1]
    exposes = tuple(sorted({*facts.exposes, *shown}))
    refreshes = Exposure.KEPT_CHANGED in exposes
    refused = {name: facts[name] for name in BUDGET_REASONS if facts[name]}
    return {
        "draws_version": version,
        "run_ids": tuple(facts.runs),
        "mechanism": first.terms.fixed["mechanism_fingerprint"],
        "policy": first.terms.fixed["policy_fingerprint"],
        "key": key.fingerprint,
        "epoch": facts.epoch or key.epoch,
        "relation": settings.policy.relation,
        "exposes": exposes,
        "input": read.source_id,
        "input_version": read.version,
        "renamed": {old: new for old, new in read.renamed.items() if new in columns} or None,
        "n_max": settings.policy.n_max,
        "kept_changed": _count_kept_changed(release, version, last, settings.followed) if refreshes else None,
        "gate": gate_entries(GateResult.from_dict(gate.body)),
        "refused": refused if any(intent.budget for intent in journal.intents()) else None,
    }


def _list_software(spark_version: str) -> dict[str, str]:
    """List the versions of what drew and wrote; Spark may be no installed package, but unpacked or a platform's."""
    versions = {"pyspark": spark_version}
    for name in _SOFTWARE:
        with suppress(PackageNotFoundError):
            versions[name] = installed(name)
    return versions
