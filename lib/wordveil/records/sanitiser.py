"""Sanitising of records without Spark: RecordBatch in, RecordBatch out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Int32
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import (
    TAG_BYTES,
    Payload,
    compute_macs,
    derive_contexts,
    frame_parts,
    frame_records,
    id_payload,
)
from wordveil.errors import BundleError
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.privacy.events import Composition, ReleaseTerms, price
from wordveil.privacy.guarantees import charge_corpus
from wordveil.privacy.relations import Relation, column_exposure, pseudonym_exposure
from wordveil.records.codec import ColumnsCodec, Texts, draw_shown, write_words
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.pseudonyms import Pseudonym, encode_values, list_lasting, make_pseudonyms
from wordveil.records.schema import (
    INSPECTED_FIELDS,
    INVALID_ID,
    NULL_ID,
    NULL_TEXT,
    OVERSIZE,
    PRIVACY_TYPE,
    QUARANTINED,
    REASON_COLUMN,
    RELEASED,
    STATISTIC_FIELDS,
    TEXT_REASONS,
    TOO_MANY_TOKENS,
    UNDECODABLE,
    split_reasons,
)
from wordveil.text.offsets import count_kept
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

_SLICE_TOKENS = 2**20
_Symbols = tuple[NDArray[np.int32], NDArray[np.int64]]
_PUBLIC = "it is made from public data alone, so mechanism.max_records has no meaning. Remove it."
_PRIVATE = (
    "the private corpus trained its weights, so every draw costs every record. Draw with it only in a release with a "
    "ledger, with mechanism.max_records and text.length: pad; or train the weights on public text."
)


@dataclass(frozen=True)
class RecordSettings:
    """Settings of a release, beyond its bundle and keys.

    ``kept``: the columns that are published unchanged, and ``pseudonyms``: those that are published as pseudonyms, both
    of which ``exposes`` lists. ``shown``: the configuration's other
    exposures, such as ``gate``. ``internal``: the number of columns that pass unchanged and are never published.
    ``columns``: the text columns, over which the policy's ``n_max`` is the sum. ``max_records``: the most records that
    are ever drawn from weights that the private corpus trained; None for a mechanism made from public data alone.
    """

    release: str
    run_id: str
    policy: TextPolicy
    kept: tuple[str, ...]
    shown: tuple[str, ...] = ()
    internal: int = 0
    columns: TextColumns = ONE_TEXT
    max_records: int | None = None
    pseudonyms: tuple[Pseudonym, ...] = ()

    @property
    def policy_fingerprint(self) -> str:
        """Fingerprint of the policy and, if there are several, of the text columns."""
        return self.columns.fingerprint(self.policy)

    @property
    def exposes(self) -> tuple[str, ...]:
        """Exposures besides the sanitised words: by policy and configuration, then columns, each sorted."""
        columns = sorted(column_exposure(name) for name in self.kept)
        linking = sorted(pseudonym_exposure(pseudonym.name) for pseudonym in self.pseudonyms)
        return (*sorted({*self.policy.exposes, *self.shown}), *columns, *linking)

    @property
    def followed(self) -> tuple[str, ...]:
        """Columns beside the text whose changes a release follows."""
        return (*self.kept, *(pseudonym.name for pseudonym in list_lasting(self.pseudonyms)))

    @property
    def pseudonym_places(self) -> range:
        """Positions of the columns of pseudonyms in a batch, after the id and the kept columns."""
        first = 1 + len(self.kept)
        return range(first, first + len(self.pseudonyms))

    @property
    def relation(self) -> Relation:
        """Pairs of texts for which the bound holds."""
        return self.policy.relation


def release_terms(settings: RecordSettings, bundle: Bundle) -> ReleaseTerms:
    """Make the constant part of the ``privacy`` column.

    Raises :class:`BundleError` if the private corpus trained the bundle's weights and the settings do not limit the
    records that are drawn from them, or do not hide lengths.
    """
    policy, limit = settings.policy, settings.max_records
    weights, guarantee = bundle.mechanism.private_weights, bundle.guarantee
    if bool(weights) != (limit is not None):
        raise BundleError(f"bundle {bundle.path}: {_PRIVATE if weights else _PUBLIC}")
    if limit is not None:
        if policy.n_max is None:
            raise BundleError(f"bundle {bundle.path}: {_PRIVATE}")
        guarantee = charge_corpus(guarantee, weights, policy.n_max, limit)
    return ReleaseTerms(
        release=settings.release,
        mechanism=bundle.mechanism.name,
        bundle=bundle.fingerprint,
        guarantee=guarantee,
        composition=compose(type(bundle.mechanism), policy, limit),
        relation=settings.relation,
        exposes=settings.exposes,
        n_max=policy.n_max,
        search=bundle.mechanism.search,
        search_recall=bundle.mechanism.search_recall,
        max_records=limit,
    )


def compose(mechanism: type[Mechanism[Any]], policy: TextPolicy, max_records: int | None = None) -> Composition:
    """Choose the composition of tokens' losses. ``max_records``: as in :class:`RecordSettings`."""
    if max_records is not None:
        return Composition.CORPUS
    return Composition.TEXT if mechanism.reads_context else policy.composition


def find_numbers(settings: RecordSettings, bundle: Bundle) -> Int32 | None:
    """Find the symbol of each written word, int32 ``(outputs,)``; None without a column of words' symbols.

    Raises :class:`BundleError` for such a column under a mechanism without symbols.
    """
    if not (settings.columns.symbols and settings.policy.draws_words):
        return None
    if (symbols := bundle.mechanism.symbols) is None:
        raise BundleError(f"output.symbols = true: the mechanism {bundle.mechanism.name} draws no numbered symbols.")
    return symbols.written


class RecordSanitiser:
    """Sanitiser of Arrow batches.

    Batches have the columns id, kept columns, those that become pseudonyms, internal columns,
    :attr:`TextColumns.inputs` (string) and ``__reason`` (string), in this order. A record with a ``__reason`` was
    refused earlier; its texts are null. A ``__reason`` may also be the language that a record names
    (:data:`wordveil.records.schema.LANGUAGE_MARK`). A null among several texts is an empty text. Each batch becomes one
    or more output batches with the same records in the same order and the columns id, kept columns, pseudonyms,
    internal columns, :attr:`TextColumns.output_fields` and :data:`STATISTIC_FIELDS`. ``model``: the policy's n-gram
    model, if it has one.
    """

    def __init__(
        self, settings: RecordSettings, bundle: Bundle, keys: ReleaseKeys, model: NgramModel | None = None
    ) -> None:
        self._settings = settings
        self._policy = settings.policy
        self._bundle = bundle
        self._keys = keys
        bundle.check_unit(settings.policy)
        self._terms = release_terms(settings, bundle)
        self._columns = settings.columns
        self._codec = ColumnsCodec(settings.columns, settings.policy, bundle, model)
        self._numbers = find_numbers(settings, bundle)
        self._fingerprint = settings.policy_fingerprint
        self._scope = frame_parts(settings.release.encode(), bundle.fingerprint.encode(), self._fingerprint.encode())
        self._unpassed = len(settings.columns.names) + 1
        self._slice_rows = max(1, _SLICE_TOKENS // (settings.policy.n_max or 1))

    def sanitise(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the sanitised records of ``batch``, in slices that bound memory.

        Raises :class:`ValueError` if the number of columns differs from the settings' columns.
        """
        expected = self._settings.pseudonym_places.stop + self._settings.internal + self._unpassed
        if batch.num_columns != expected:
            raise ValueError(f"Expected {expected} columns, got {batch.num_columns}.")
        for start in range(0, batch.num_rows, self._slice_rows):
            part = batch.slice(start, self._slice_rows)
            yield self._assemble(self._hide_values(part), *self._encode(part))

    def inspect(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Compute reason, or content tag and tokens to be paid (:data:`INSPECTED_FIELDS`), in slices, and draw nothing.

        ``batch`` has the id first, then the kept columns and those that become pseudonyms, and the texts and
        ``__reason`` last.
        """
        for start in range(0, batch.num_rows, self._slice_rows):
            part = self._hide_values(batch.slice(start, self._slice_rows))
            reason, accepted, encoded = self._encode(part)
            spread = _spread(accepted, part.num_rows)
            paid = self._terms.tokens
            tokens = np.diff(encoded.drawn_offsets) if paid is None else np.full(len(accepted), paid)
            columns = [
                pa.array(reason, pa.string()),
                self._tags(_read_messages(part, accepted, encoded)).take(spread),
                pa.array(tokens, pa.int64()).take(spread),
            ]
            yield self._extend(part, columns, INSPECTED_FIELDS)

    def _hide_values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace the values of columns by pseudonyms."""
        settings = self._settings
        for place, pseudonym in zip(settings.pseudonym_places, settings.pseudonyms, strict=True):
            hashes = make_pseudonyms(batch.column(place), pseudonym, self._keys, settings.release)
            batch = batch.set_column(place, batch.schema.names[place], hashes)
        return batch

    def _encode(self, batch: pa.RecordBatch) -> tuple[NDArray[np.object_], NDArray[np.intp], Texts]:
        """Find why each record is refused (None if it is not), the rows of the accepted ones, and their tokens."""
        reason = np.array(batch.column(REASON_COLUMN).to_pylist(), object)
        if self._policy.refused == "empty":
            reason[np.isin(reason.astype(str), TEXT_REASONS)] = None
        texts = [pc.fill_null(batch.column(name), "") for name in self._columns.inputs]
        reason, named = split_reasons(reason)
        other = self._codec.find_other(texts, named)
        while True:
            accepted = np.flatnonzero(reason == None)  # noqa: E711 - elementwise
            encoded = self._codec.encode([column.take(pa.array(accepted)) for column in texts], other[accepted])
            late = encoded.refused
            if self._policy.n_max is None:
                late[np.diff(encoded.offsets) > self._bundle.mechanism.max_tokens] = TOO_MANY_TOKENS
            if self._policy.refused == "empty" or not (late != None).any():  # noqa: E711 - elementwise
                return reason, accepted, encoded
            reason[accepted] = late

    def _assemble(
        self, batch: pa.RecordBatch, reason: NDArray[np.object_], accepted: NDArray[np.intp], encoded: Texts
    ) -> pa.RecordBatch:
        messages = _read_messages(batch, accepted, encoded)
        texts, drawn, unchanged, symbols = self._draw(encoded, messages)
        spread = _spread(accepted, batch.num_rows)
        columns = [
            *(values for _, values in self._columns.nest([column.take(spread) for column in texts])),
            *([_list_symbols(*symbols).take(spread)] if self._columns.symbols else []),
            pc.if_else(spread.is_null(), QUARANTINED, RELEASED),
            pa.array(reason, pa.string()),
            self._privacy(drawn, spread),
            self._tags(messages).take(spread),
            pa.repeat(self._settings.run_id, batch.num_rows),
            pa.array(encoded.words, pa.int64()).take(spread),
            pa.array(encoded.unknown, pa.int64()).take(spread),
            pa.array(unchanged, pa.int64()).take(spread),
        ]
        return self._extend(batch, columns, (*self._columns.output_fields, *STATISTIC_FIELDS))

    def _extend(self, batch: pa.RecordBatch, columns: list[pa.Array], fields: Sequence[pa.Field]) -> pa.RecordBatch:
        passed = batch.num_columns - self._unpassed
        schema = pa.schema([*list(batch.schema)[:passed], *fields])
        return pa.RecordBatch.from_arrays([*batch.columns[:passed], *columns], schema=schema)

    def _draw(
        self, encoded: Texts, messages: list[bytes]
    ) -> tuple[list[pa.StringArray], NDArray[np.int64], NDArray[np.int64], _Symbols]:
        """Draw for accepted records.

        Returns sanitised texts by column, numbers of tokens drawn and of unchanged words, and the drawn symbols.
        """
        context = derive_contexts(self._keys.context, self._scope, messages)
        ids, layout = self._codec.fit(encoded, context, self._keys.sampling)
        batch, bag = TokenBatch(ids, layout.offsets, context), self._policy.output == "bag"
        bounds = layout.bounds if len(encoded.columns) > 1 else None
        written = write_words(self._bundle.mechanism, batch, self._keys, encoded.pattern, bag=bag, bounds=bounds)
        ids = written.batch.ids
        kept = np.zeros(len(layout.offsets) - 1, np.int64)  # of texts that are drawn whole, no word stays
        symbols: _Symbols = ids, layout.offsets
        if self._policy.draws_words:
            is_kept = (ids == written.replaced) & (ids < self._bundle.vocabulary.size)
            kept = count_kept(is_kept, layout.offsets)
        shown = encoded.shown.tokens if encoded.shown else None
        values = draw_shown(shown, context, self._keys, self._policy, self._bundle.lists)
        texts = self._codec.decode(ids, layout, encoded, values)
        if self._numbers is not None:
            symbols = _find_symbols(written.draws, self._numbers)
        return texts, np.diff(written.draws.offsets), kept, symbols

    def _tags(self, messages: list[bytes]) -> pa.BinaryArray:
        """Compute content tags: equal in one release for equal content of one record. They reveal nothing else."""
        tags = compute_macs(self._keys.tag, self._scope, messages, TAG_BYTES)
        return pa.array([bytes(tag) for tag in tags], pa.binary())

    def _privacy(self, drawn: NDArray[np.int64], spread: pa.Array) -> pa.StructArray:
        """Build the column ``privacy``: a price for each number of tokens drawn, spread over the records."""
        counts, which = np.unique(drawn, return_inverse=True)
        prices = [price(self._terms, int(count)) for count in counts]
        price_of = pa.array(which, pa.int64()).take(spread)
        terms = self._terms
        constants = {
            "release_id": terms.release,
            "mechanism": terms.mechanism,
            "bundle": terms.bundle,
            "search": terms.search,
            "search_recall": terms.search_recall,
            "policy": self._fingerprint,
            "metric": terms.guarantee.metric.identifier,
            "nominal_epsilon": terms.guarantee.nominal_epsilon,
            "epsilon": terms.guarantee.epsilon,
            "slack": terms.guarantee.slack,
            "composition": str(terms.composition),
            "relation": str(terms.relation),
            "exposes": list(terms.exposes),
        }
        varying = {
            name: [getattr(item, name) for item in prices]
            for name in ("tokens", "epsilon_bound", "epsilon_pure", "delta")
        }
        arrays = [
            pa.array(varying[field.name], field.type).take(price_of)
            if field.name in varying
            else pa.repeat(pa.scalar(constants[field.name], field.type), len(spread))
            for field in PRIVACY_TYPE
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(PRIVACY_TYPE), mask=spread.is_null())


def _find_symbols(draws: TokenBatch, numbers: Int32) -> _Symbols:
    """Find the symbols of each record's draws, rising: the order of the text would show where padding stood."""
    symbols = numbers[draws.ids]
    record = np.repeat(np.arange(len(draws)), np.diff(draws.offsets))
    return symbols[np.lexsort((symbols, record))], draws.offsets


def _list_symbols(symbols: NDArray[np.int32], offsets: NDArray[np.int64]) -> pa.ListArray:
    """Make a list of the symbols of each record."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(symbols, pa.int32()))


def _spread(accepted: NDArray[np.intp], rows: int) -> pa.Array:
    """Map each row of a batch to its accepted record, int64 ``(rows,)``; null if the row is refused."""
    spread = np.full(rows, -1)
    spread[accepted] = np.arange(len(accepted))
    return pa.array(spread, mask=spread < 0)


def _read_messages(batch: pa.RecordBatch, accepted: NDArray[np.intp], texts: Texts) -> list[bytes]:
    """Collect what the context and the tag of each accepted record cover: its id, and all that its output depends on.

    These are by column the hidden words' ids, what the policy copies with the classes that it shows, and the positions
    of equal words or tokens; and of several columns the words that they share. If two versions of a record that differ
    in a comma shared their noise, equal hidden words in both outputs would prove that no hidden word had changed.
    Unknown words share an id, so versions of which only one repeats an unknown word have the same ids.
    """
    content: list[Payload] = []
    for column in texts.columns:
        content += [id_payload(column.ids, column.offsets), *column.shown_content]
    if len(texts.columns) > 1 and texts.pattern is not None:
        content.append(texts.pattern.payload)
    if len(texts.columns) > 1 and texts.shown is not None and texts.shown.tokens.pattern is not None:
        content.append(texts.shown.tokens.pattern.payload)
    return frame_records(encode_values(batch.column(0).take(pa.array(accepted))), content)


def find_refusals(ids: pa.Array, texts: Sequence[pa.Array], max_bytes: int) -> pa.StringArray:
    """Find why each record is refused before its texts are encoded, or null, if no Spark query has checked it.

    ``ids`` are strings or whole numbers. ``max_bytes``: of all texts of a record together. Duplicate ids are not found.
    """
    reason = pa.nulls(len(ids), pa.string())
    sizes = [pc.cast(pc.fill_null(pc.binary_length(column), 0), pa.int64()) for column in texts]
    for name, applies in (
        (UNDECODABLE, reduce(pc.or_, map(_undecodable, texts))),
        (OVERSIZE, pc.greater(reduce(pc.add, sizes), max_bytes)),
        (NULL_TEXT, reduce(pc.and_, [column.is_null() for column in texts])),
        (INVALID_ID, _undecodable(ids)),
        (NULL_ID, ids.is_null()),
    ):
        reason = pc.if_else(pc.fill_null(applies, False), name, reason)
    return reason


def _undecodable(values: pa.Array) -> pa.BooleanArray:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return pa.repeat(False, len(values))
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        items = values.cast(pa.large_binary()).to_pylist()
        return pa.array([item is not None and not _is_utf8(item) for item in items])
    return pa.repeat(False, len(values))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
