"""Sections of a configuration as pydantic models; ``mechanism`` is in :mod:`wordveil.config.mechanisms`.

Settings that change what is released (``mechanism``, ``text``) and settings that only change where and how fast
(``spark``) are separate models; only the first enter a fingerprint. No setting holds a secret: ``key`` names the key's
location.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    StringConstraints,
    Tag,
    create_model,
)
from pydantic_core import PydanticCustomError

from wordveil.config.paths import LocalPath, Location, WrittenLocation
from wordveil.errors import Fault
from wordveil.input.columns import DEFAULT_MAX_BYTES
from wordveil.input.source import Source
from wordveil.privacy.relations import Relation
from wordveil.records.pseudonyms import Pseudonym
from wordveil.release.budgets import Budget
from wordveil.release.rules import GateRules
from wordveil.text import choices
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import SLOT_START_THRESHOLD, SLOT_THRESHOLD, profile_settings
from wordveil.text.stop_words import load_stop_words
from wordveil.text.types.classes import CLASSES, TypeAction

FromValue = Strict(strict=False)
"""A choice is written as its value: YAML has no enums."""


def _check_class(name: str) -> str:
    if name not in CLASSES:
        *others, last = (f"'{known}'" for known in CLASSES)
        expected = f"{', '.join(others)} or {last}"
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return name


_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp")


def _check_type(name: str) -> str:
    if name not in _TYPES and not re.fullmatch(r"decimal\(\d{1,2},\d{1,2}\)", name, re.ASCII):
        raise PydanticCustomError(
            "enum", "Input should be {expected}", {"expected": f"{', '.join(_TYPES)}, decimal(P,S)"}
        )
    return name


TypeName = Annotated[str, AfterValidator(_check_class)]
ActionName = Annotated[TypeAction, FromValue]
Name = Annotated[str, StringConstraints(min_length=1)]
EpsilonLimit = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, le=1)]
TypeOfColumn = Annotated[str, AfterValidator(_check_type)]
"""A type of Spark SQL, as errors and ``wordveil plan`` show it."""
ReleaseName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class Section(BaseModel):
    """A part of the configuration: unknown keys are faults, values are not converted between types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def find_faults(self) -> Iterable[Fault]:
        """List contradictions inside the section, which a configuration is asked for once, when it is loaded."""
        return ()


def fields_of(*kinds: Any) -> dict[str, tuple[Any, Any]]:
    """List the fields of settings classes: types with their bounds, and defaults, ``...`` for none."""
    hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind, include_extras=True).items()}
    found = [field for kind in kinds for field in fields(kind) if field.default_factory is MISSING]
    return {field.name: (hints[field.name], ... if field.default is MISSING else field.default) for field in found}


def make_section(name: str, doc: str, *kinds: Any) -> Any:
    """Make a section of settings classes, except for fields that are sections of their own."""
    made: dict[str, Any] = {**fields_of(*kinds)}
    return create_model(name, __base__=Section, __doc__=doc, **made)


_SINGLE, _SEVERAL = "[one]", "[several]"


def _shape_of(value: Any) -> str:
    """Return which of two shapes a setting has, so that a fault names what is wrong with this one."""
    return _SEVERAL if isinstance(value, list | tuple | Mapping | Section) else _SINGLE


def one_or_several(single: Any, several: Any) -> Any:
    """Make the type of a setting that has one value, or several in a list or a mapping."""
    return Annotated[Annotated[single, Tag(_SINGLE)] | Annotated[several, Tag(_SEVERAL)], Discriminator(_shape_of)]


Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Tokens = Annotated[int, Field(ge=1, lt=2**24)]


class PseudonymSection(Section):
    """Column whose values are published as pseudonyms."""

    column: Name
    """The column of the input: strings or whole numbers."""
    form: Literal["pseudonym"] = Field(alias="as")
    """The form in which it is published."""
    name: Name | None = None
    """The column's name in the output; by default that in the input."""
    rotate: bool = False
    """``true``: each epoch of the key has other pseudonyms."""


class ColumnsSection(Section):
    """Columns of a table."""

    id: Name
    """The column with the ids: distinct, never null. They are published."""
    text: one_or_several(Name, Annotated[list[Name], Field(min_length=1)])  # type: ignore[valid-type]
    """The column with the texts to sanitise, or a list of such columns: their words are paid for together. A dot leads
    into a struct (``message.body``); a column whose own name has a dot stands in backticks.
    """
    author: Name | None = None
    """The column that says who wrote a record; ledgers add costs up by it. It is published only if ``keep`` names
    it.
    """
    keep: list[one_or_several(Name, PseudonymSection)] = []  # type: ignore[valid-type]
    """Columns that are published beside the text: unchanged if only named. A release follows their changes, at no cost.
    Written ``{column: customer_id, as: pseudonym}``, a column is published as pseudonyms, by which the release's
    records of one customer can be joined. ``name`` renames it in the output; with ``rotate: true`` each epoch of the
    key has other pseudonyms.
    """
    max_bytes: Annotated[int, Field(ge=1, le=2**30)] = DEFAULT_MAX_BYTES
    """Longer texts (UTF-8 bytes, all text columns of a record together) are refused before any of them is loaded into
    Python.
    """
    language: Name | None = None
    """The column with the language of each record, as a code such as ``de`` or ``en-GB``. Where it is null or empty,
    the text decides. ``text.other_language`` says what follows. It is published only if ``keep`` names it.
    """

    @property
    def settings(self) -> dict[str, Any]:
        """Settings as plain values, with pseudonyms apart from the columns that are published unchanged."""
        kept: list[str | PseudonymSection] = self.keep
        pseudonyms = tuple(
            Pseudonym(item.column, item.name or item.column, item.rotate)
            for item in kept
            if isinstance(item, PseudonymSection)
        )
        plain = [item for item in kept if isinstance(item, str)]
        return {**self.model_dump(), "keep": plain, "pseudonyms": pseudonyms}


class InputSection(ColumnsSection):
    """The corpus: a table by its path or, in the session's catalogue, by its name."""

    path: Location | None = None
    """The path of the table. Set exactly one of ``path`` and ``table``; a source of Spark that needs no path, such as
    ``jdbc``, has neither.
    """
    table: Name | None = None
    """The name of the table: ``database.table`` in the session's catalogue, or ``catalogue.database.table``."""
    format: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")] | None = None
    """The format of the table at ``path``: ``parquet`` (the default), ``delta``, ``iceberg``, ``orc``, ``json`` (a
    record a line), ``csv``, ``text`` (a record a file), or any source of Spark by its name or class, such as ``avro``
    or ``jdbc``. For ``table`` the catalogue knows the format.
    """
    options: dict[str, str] = {}
    """Options of Spark's reader for the format, such as ``header: "false"``, without secrets."""
    options_env: dict[str, Variable] = {}
    """More of them whose values are in environment variables, by the variables' names: for passwords."""
    columns: Name | None = None
    """The names and types of all columns in Spark SQL, such as ``id BIGINT, body STRING``. Without it JSON is read
    once to find them, and all columns of CSV are strings.
    """
    rename: dict[Name, Name] = {}
    """New names of columns of the table, by their names there, such as ``client_id: customer_id``: all other settings,
    and the release, know the new ones.
    """
    cast: dict[Name, TypeOfColumn] = {}
    """Types of columns, by their new names, such as ``id: int``: values are cast to them, and become null if they do
    not fit. Texts need none.
    """
    version: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """The version of a Delta table, or the id of an Iceberg table's snapshot; by default the latest one when the run
    begins.
    """
    timestamp: Name | None = None
    """Instead of ``version``: selects the version that was the latest at this time, in the session's time zone."""
    where: Name | None = None
    """A condition in Spark SQL on id, kept and partition columns, with ``:name`` parameters; records for which it is
    not true are not read.
    """
    changes: Literal["feed", "scan"] | None = None
    """The way in which a release finds changes since it read the input last: by the change data feed of a Delta table,
    or by default by comparing the contents of all records.
    """

    def source(self) -> Source:
        """Return the input as plain values."""
        return Source(**self.settings)


class StreamSection(Section):
    """Source of new records for `wordveil release stream`: a Delta table whose rows are only appended."""

    path: Location | None = None
    """The path of the table. Set exactly one of ``path`` and ``table``."""
    table: Name | None = None
    """The name of the table in the session's catalogue."""
    checkpoint: WrittenLocation
    """The directory in which Spark keeps how far it has read. Each release has its own."""
    max_files: Annotated[int, Field(ge=1)] | None = None
    """The most files of the table that one batch takes; by default Delta's own limit."""

    @property
    def name(self) -> str:
        """Source as the configuration names it."""
        return self.path or self.table or ""

    def find_faults(self) -> Iterable[Fault]:
        """List a missing source, and a second one."""
        if (self.path is None) == (self.table is None):
            yield Fault("stream", "", "set exactly one of stream.path and stream.table.")


class TextSection(Section):
    """The text policy: a profile and what to change in it (:class:`wordveil.text.policy.TextPolicy`)."""

    profile: Annotated[choices.Profile, FromValue] = choices.Profile.STRICT
    """The settings to start from; each of them can be changed."""
    tokeniser: Annotated[choices.TokeniserKind, FromValue] | None = None
    hyphens: Annotated[choices.Hyphens, FromValue] | None = None
    unknown: Annotated[choices.UnknownWords, FromValue] | None = None
    case: Annotated[choices.Case, FromValue] | None = None
    digits: Annotated[choices.Digits, FromValue] | None = None
    punctuation: Annotated[choices.Punctuation, FromValue] | None = None
    controls: Annotated[choices.Controls, FromValue] | None = None
    stop_words: Annotated[choices.StopWords, FromValue] | None = None
    stop_word_list: Literal["english"] | list[Name] | None = None
    """The stop-words: ``english``, or a list; by default those of ``language``. It is used only where stop-words are
    dropped or kept.
    """
    stop_word_capitals: Annotated[choices.StopWordCapitals, FromValue] | None = None
    articles: Annotated[choices.Articles, FromValue] | None = None
    unit: Annotated[choices.DrawnUnit, FromValue] | None = None
    length: Annotated[choices.Length, FromValue] | None = None
    n_max: one_or_several(Tokens, dict[Name, Tokens]) | None = None  # type: ignore[valid-type]
    """The public number of tokens under ``pad`` and ``sample``. Of several text columns each has this number, or its
    own: ``{subject: 8, body: 256}``; a record costs their sum.
    """
    output: Annotated[choices.Output, FromValue] | None = None
    refused: Annotated[choices.Refused, FromValue] | None = None
    repeat: Annotated[choices.Repeat, FromValue] | None = None
    slots: Annotated[choices.Slots, FromValue] | None = None
    ngrams: LocalPath | None = None
    """The n-gram model that ``wordveil ngrams`` built: its directory, or that of a store with no other."""
    slot_threshold: Probability | None = None
    slot_start_threshold: Probability | None = None
    types: one_or_several(Literal["none"], dict[TypeName, ActionName]) | None = None  # type: ignore[valid-type]
    """The treatment of addresses, numbers, dates and the like, by class (`wordveil docs types`). Classes that are not
    named stay as in the profile. ``none``: no class is told apart from words.
    """
    types_version: Annotated[int, Field(ge=1)] | None = None
    names: Annotated[choices.Names, FromValue] | None = None
    language: Name | None = None
    other_language: Annotated[choices.OtherLanguage, FromValue] | None = None
    max_unknown_share: Annotated[float, Field(ge=0, lt=1)] | None = None
    keep_only: LocalPath | None = None
    """A public list of words, one a line, to which the output is confined: the bundle's vocabulary has these alone, and
    all others are words outside it.
    """

    @property
    def _draws_texts(self) -> bool:
        """True if one symbol is drawn for a whole text, whose number of tokens is 1."""
        by_profile = self.profile == choices.Profile.PASSAGES and self.unit is None
        return by_profile or self.unit == choices.DrawnUnit.TEXT

    def widths(self, names: Sequence[str]) -> tuple[int, ...]:
        """List the public numbers of tokens of the text columns ``names``; empty if none is set."""
        if self._draws_texts:
            return (1,) * len(names)
        if self.n_max is None:
            return ()
        if isinstance(self.n_max, int):
            return (self.n_max,) * len(names)
        return tuple(self.n_max.get(name, 0) for name in names)

    def policy_settings(self, names: Sequence[str] = ("text",)) -> dict[str, Any]:
        """Collect the settings of the policy: the profile's, overridden by those set here.

        The n-gram model's digest replaces its path. ``names``: the text columns. The policy's ``n_max`` is that of the
        whole record.

        Raises :class:`wordveil.errors.NgramError` if the model is missing.
        """
        from wordveil.artifacts.ngram_model import find_model, read_model  # it loads Numba

        settings = self.chosen_settings(names)
        if self.ngrams:
            settings["ngrams"] = read_model(find_model(Path(self.ngrams)))["digest"]
        return settings

    def chosen_settings(self, names: Sequence[str] = ("text",)) -> dict[str, Any]:
        """Collect the settings of the policy with the n-gram model's path as configured. No file is read."""
        chosen = {
            name: value
            for name, value in self.model_dump(exclude={"profile", "stop_word_list", "keep_only"}).items()
            if value is not None
        }
        profile = profile_settings(self.profile, self.types_version or DraftPolicy.types_version)
        if isinstance(self.types, dict):
            chosen["types"] = {**cast("Mapping[str, str]", profile.get("types", {})), **self.types}
        elif self.types is not None:
            chosen["types"] = {}
        if isinstance(self.n_max, dict):
            chosen["n_max"] = sum(self.n_max.values())
        elif self.n_max is not None:
            chosen["n_max"] = self.n_max * len(names)
        elif self._draws_texts:
            chosen["n_max"] = len(names)
        elif self.profile == choices.Profile.PASSAGES:
            chosen["n_max"] = None
        settings: dict[str, Any] = {**profile, **chosen}
        if settings.get("stop_words", choices.StopWords.HIDE) != choices.StopWords.HIDE:
            language = settings.get("language", DraftPolicy.language)
            settings["stop_word_list"] = load_stop_words(self.stop_word_list, language)
        if settings.get("slots", choices.Slots.ALL) != choices.Slots.ALL:
            settings = {"slot_threshold": SLOT_THRESHOLD, "slot_start_threshold": SLOT_START_THRESHOLD, **settings}
        return settings


class KeySection(Section):
    """Location of the master key: exactly one of the two."""

    file: LocalPath | None = None
    """The path of the key file, which only its owner may be able to read."""
    env: Variable | None = None
    """The name of the environment variable that holds the key."""

    def find_faults(self) -> Iterable[Fault]:
        """List a missing place, and a second one."""
        if (self.file is None) == (self.env is None):
            yield Fault("key", "", "name exactly one of key.file and key.env. There is no default: no key, no run.")


class ShuffleSection(Section):
    """Rows without ids, in a secret random order: what everyone who sees the table learns of one record at most.

    Neither number has a default.
    """

    epsilon: Annotated[float, Field(ge=0.001, allow_inf_nan=False)]
    """The epsilon of the table for each record, in nats, less than the loss of its own draw. From it follows the least
    number of rows of a group of equal kept columns (``wordveil plan`` prints it).
    """
    delta: Annotated[float, Field(ge=1e-30, lt=1, allow_inf_nan=False)]
    """The delta of the table, far below one over its number of rows."""


class OutputSection(Section):
    """The table that the job writes."""

    path: WrittenLocation
    """A Parquet table, or the home of a release with Delta tables in it."""
    format: Literal["parquet", "delta"] = "parquet"
    """``parquet``: one job, one table. ``delta``: a release that is updated incrementally, with a journal, a
    ledger and a public table.
    """
    public: WrittenLocation | None = None
    """The path of a release's public table; by default in the release's home."""
    public_only: bool = False
    """``true``: a Parquet output has only what may be passed on: released records, without the columns ``status``,
    ``reason``, ``content_tag`` and ``run_id``. A release has a public table. Changes no row.
    """
    public_table: Annotated[str, StringConstraints(pattern=r"^[^`.'\s]+(\.[^`.'\s]+){0,2}$")] | None = None
    """The name of the public table, in a catalogue that takes Delta tables (``lake.public.tickets``)."""
    writers: Literal["one"] | None = None
    """``one`` states that one process at a time writes to the release and its ledger, of all releases that share the
    ledger. Only a release on an object store that does not refuse to create an object twice needs it: there two
    writers overwrite each other's entries without an error. The manifest and ``release show`` repeat it.
    """
    partition_by: list[Name] = []
    """Kept columns by which the output is partitioned into directories."""
    records_per_file: Annotated[int, Field(ge=1)] | None = None
    """The largest number of records in a file. By default a task writes one file, or one for each partition (of a
    million records at most in a release's draws). Changes no row.
    """
    order: Literal["hashed", "input"] = "hashed"
    """``hashed``: rows are in the order of keyed hashes of their ids, and files end after a number of rows.
    ``input``: rows are in the order in which Spark reads them, without a shuffle. That order shows the sizes of the
    texts, and ``exposes`` then says ``layout``. Changes no row.
    """
    symbols: bool = False
    """``true``: adds the column ``symbols``, the numbers of the clusters that the words of a record were drawn as, so
    that readers of the table can estimate counts. Only for mechanisms of clusters; passages always have it. It costs
    nothing, and changes no text.
    """
    shuffle: ShuffleSection | None = None
    """Publish rows without ids, in an order by a secret key that is thrown away. A job draws with such a key too. A
    release draws each record once and only adds rows: later edits are not drawn. Kept columns are public groups.
    """

    def find_faults(self) -> Iterable[Fault]:
        """List settings that contradict ``shuffle``."""
        if self.shuffle and self.order == "input":
            yield Fault("output.order", "input", "contradicts output.shuffle, whose order is secret. Remove it.")
        if self.shuffle and self.format == "parquet" and not self.public_only:
            problem = "must be true with output.shuffle: the other rows and columns have ids. Set it."
            yield Fault("output.public_only", "false", problem)


class LedgerSection(Section):
    """Ledger of releases that share records and authors; required with ``output.format: delta``."""

    path: WrittenLocation
    """The directory of the ledger's table. Several releases may share one."""


@dataclass(frozen=True)
class ReleaseHome:
    """Place of a release: its name, the column of its ids, its tables and its ledger."""

    name: str
    id: str
    output: OutputSection
    ledger: LedgerSection


class BudgetsSection(Section):
    """Limits of the costs of records (:class:`wordveil.release.budgets.Budget`). Unit and relation have no default."""

    unit: Name
    """``pure``, or the identifier of a metric as in the ``privacy`` column."""
    relation: Literal["any_text", "same_length", "same_skeleton"]
    """The pairs of texts for which the sums hold."""
    record: EpsilonLimit | None = None
    """The most that one record of the release may cost, all its versions together."""
    author: EpsilonLimit | None = None
    """The most that one author may cost, over all releases of the ledger."""
    corpus: EpsilonLimit | None = None
    """The limit for the author who costs most within the release; for the record, where there are no authors."""
    on_exceeded: Literal["quarantine", "keep_last", "fail"] = "quarantine"
    """``quarantine``: records that would exceed a limit are quarantined. ``fail``: the run fails before anything is
    drawn. ``keep_last``: new records are quarantined; of an edited one the version that was released last stays, marked
    in the public table's column ``stale``.
    """
    delta: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] | None = None
    """The largest sum of deltas in each scope with a limit; required with ``unit: pure`` where the mechanism has a
    delta.
    """

    @property
    def budget(self) -> Budget:
        """Budget of these limits."""
        return Budget(**{**self.model_dump(), "relation": Relation(self.relation)})


if TYPE_CHECKING:
    _GateRules = Section
else:
    _GateRules = make_section("_GateRules", "Bounds of a gate's rules.", GateRules)


class GateSection(_GateRules):
    """Rules that a release must pass to be published (:class:`wordveil.release.rules.GateRules`); none without this
    section. Numbers are finite.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    exposes: list[Name] | None = None
    audited: Annotated[list[Literal["bundle", "release"]], Field(min_length=1)] | None = None

    @property
    def rules(self) -> GateRules:
        """Rules of the gate."""
        bounds: dict[str, Any] = {name: tuple(bound) if isinstance(bound, list) else bound for name, bound in self}
        return GateRules(**bounds)


class SparkSection(Section):
    """Settings of the session. Nothing here changes what is released."""

    master: Name | None = None
    """As in ``spark-submit --master``; by default spark-submit's own, or else ``local[*]``."""
    app_name: Name = "wordveil"
    """The name of the application in Spark's pages."""
    bundle: Literal["auto", "path", "archive"] = "auto"
    """The way in which executors get the bundle: in place by its path, or as an archive sent once to each; ``auto``
    takes the path in local mode and the archive elsewhere.
    """
    delta_jars: LocalPath | None = None
    """A directory with Delta's jars, for machines that cannot fetch them."""
    s3: bool = False
    """``true``: a session that wordveil starts gets ``s3a``, Hadoop's file system for S3: 36 jars of 13 MB, fetched
    once.
    """
    allow_unencrypted: bool = False
    """``true``: a session outside local mode may lack authentication or encryption. It is refused all the same if texts
    would be written to its scratch.
    """
    options: dict[str, str] = {}
    """More options of Spark, by their full names; they replace those that wordveil sets."""

    def find_faults(self) -> Iterable[Fault]:
        """List options that lose records."""
        for name in self.options:
            if name.lower() in ("spark.sql.files.ignorecorruptfiles", "spark.sql.files.ignoremissingfiles"):
                problem = "would silently drop damaged or missing files, and their records with them. Remove it."
                yield Fault("spark.options", name, problem)
