"""Texts sanitised again, and their tokens drawn again, under keys that no release has.

An evaluation never uses the release's key: an adaptive attacker draws its own copies of known texts.

Attacks on single words and on records need the pairs of words and outputs. So texts are encoded as a release encodes
them, and drawn again: outputs have the same law, and need not be parsed from a text. An attacker of these tokens sees
at least what an attacker of the text sees, so no bound is too low: it sees which words are hidden and which are copied,
padding if the order is kept, and the drawn word if a mechanism writes another one
(:meth:`wordveil.mechanisms.base.Mechanism.render`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import MasterKey, ReleaseKeys, make_throwaway_keys
from wordveil.crypto.streams import Payload, derive_contexts, frame_records, id_payload
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.measures.recovery import find_laws
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.mechanisms.laws import WordLaws
from wordveil.records.codec import ColumnsCodec, Texts, TokenLayout
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.choices import DROP, HIDE, SHOW, Length, Output, Refused, StopWordCapitals, StopWords
from wordveil.text.offsets import keep_offsets
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.tokeniser import fold_words

_BATCH = 512
_NAME = "evaluation"


class NotDrawnByWordError(ValueError):
    """Outputs that cannot be set beside the words that they were drawn for."""


@dataclass(frozen=True)
class BundleSanitiser:
    """Bundle with a text policy and its n-gram model. ``columns``: for :meth:`sanitise_records`."""

    bundle: Bundle
    policy: TextPolicy
    ngrams: NgramModel | None = None
    columns: TextColumns = ONE_TEXT

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Sanitise texts, one for each."""
        read = {TEXT_COLUMN: pa.array(texts, pa.string()), REASON_COLUMN: pa.nulls(len(texts), pa.string())}
        return replace(self, columns=ONE_TEXT).sanitise_records(pa.table(read), seed)

    def sanitise_records(self, records: pa.Table, seed: int | None = None) -> list[str]:
        """Sanitise the texts of records, one for each, with a line for each text column.

        ``records``: the columns :attr:`wordveil.records.columns.TextColumns.inputs`, then ``__reason``, all strings, as
        :class:`wordveil.records.sanitiser.RecordSanitiser` reads them.
        """
        limit = self.bundle.count_preview(records.num_rows)
        settings = RecordSettings(_NAME, _NAME, self.policy, (), columns=self.columns, max_records=limit)
        sanitiser = RecordSanitiser(settings, self.bundle, _make_keys(b"evaluation on public texts", seed), self.ngrams)
        ids = pa.array(np.arange(records.num_rows).astype(str), pa.string())
        written: list[str] = []
        for batch in records.add_column(0, "id", ids).to_batches(_BATCH):
            for result in sanitiser.sanitise(batch):
                written += _join_texts(result, self.columns)
        return written


def _join_texts(batch: pa.RecordBatch, columns: TextColumns) -> list[str]:
    texts = []
    for first, *inside in columns.paths:
        values = batch.column(first)
        for name in inside:
            values = pc.struct_field(values, name)
        texts.append(pc.fill_null(values, ""))
    joined: list[str] = pc.binary_join_element_wise(*texts, "\n").to_pylist()
    return joined


def _make_keys(purpose: bytes, seed: int | None) -> ReleaseKeys:
    if seed is None:
        return make_throwaway_keys()
    return MasterKey(sha256(b"wordveil: %s, %d" % (purpose, seed)).digest()).for_release(_NAME)


# A difference from the common law counts if it exceeds rounding.
_ROUNDING = 1e-12
# The share of stop-words that are in capitals: 112 of 25,609 in the news articles of the quickstart.
_IN_CAPITALS = 0.004


@dataclass(frozen=True)
class Ragged:
    """Records as ragged ids: ``ids``, int32 ``(tokens,)``, and ``offsets``, int64 ``(records + 1,)``."""

    ids: Int32
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        """Number of tokens of each record: int64 ``(records,)``."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class SymbolLaws:
    """Laws of all input symbols: words, then padding, then the unknown word, in rows ``0 .. size + 1``.

    ``is_exact``: they are the mechanism's own. Otherwise words' laws are estimated from draws
    (:func:`wordveil.measures.recovery.fit_laws`), and the other two symbols have the common law.
    """

    laws: WordLaws
    is_exact: bool

    @property
    def size(self) -> int:
        return len(self.laws.shares) - 2

    @property
    def of_words(self) -> WordLaws:
        """Laws of words alone."""
        offsets = self.laws.offsets[: self.size + 1]
        entries = slice(0, offsets[-1])
        shares = self.laws.shares[: self.size]
        return WordLaws(self.laws.common, shares, offsets, self.laws.ids[entries], self.laws.extras[entries])


@dataclass(frozen=True)
class Redrawn:
    """Tokens of texts, with their draws.

    ``size``: number of ``words`` of the vocabulary. ``rows``: int64 ``(records,)``, rising indices of the texts that
    are not refused. ``hidden``: ids of these texts for which outputs were drawn. ``drawn``: int32 ``(tokens,)``, their
    outputs. ``is_first``: bool ``(tokens,)``, False if the draw of an earlier occurrence in its record was used again.
    ``whole``: all ids of the texts, which differ from :attr:`hidden` if words are sampled from a text. ``shows``: int64
    ``(records,)``, equal numbers for records with equal exposures besides the draws, such as the length, the copied
    words, or which words are equal. ``sequence``: all words of the texts in their order: outputs, and the ids of copied
    words, ``size + 1`` for unknown ones. ``is_hidden``: bool, the outputs among these.
    """

    mechanism: Mechanism[Any]
    policy: TextPolicy
    size: int
    words: pa.StringArray
    rows: Int64
    hidden: Ragged
    drawn: Int32
    is_first: Bool
    whole: Ragged
    shows: Int64
    sequence: Ragged
    is_hidden: Bool

    @cached_property
    def laws(self) -> SymbolLaws | None:
        """Laws of all symbols: exact, or estimated from public draws; None for a generator."""
        if (found := find_laws(self.mechanism, rank_frequencies(self.size))) is None:
            return None
        laws, is_exact = found
        padding = self.mechanism.probabilities(self.size) if is_exact and self.policy.pads else None
        laws_of_others = [padding, self.mechanism.probabilities(self.size + 1) if is_exact else None]
        return SymbolLaws(_add_rows(laws, laws_of_others), is_exact)

    @property
    def hidden_share(self) -> Float64:
        return find_hidden_share(self.policy, self.words)

    @property
    def shows_order(self) -> bool:
        """True if the position of an output reveals the word that it was drawn for."""
        return self.policy.output == Output.SEQUENCE and not self.is_sampled

    @property
    def is_sampled(self) -> bool:
        """True if words are sampled from a text, so that its length does not show."""
        return self.policy.length == Length.SAMPLE


def find_hidden_share(policy: TextPolicy, words: pa.StringArray) -> Float64:
    """Compute the share of its places at which a policy hides each word, by public data: float64 ``(words,)``.

    For stop-words that it drops or copies it is the share of those in capitals, if these are replaced.
    """
    share = np.ones(len(words))
    if policy.stop_words != StopWords.HIDE:
        listed = pc.is_in(fold_words(words), pa.array(policy.stop_word_list, pa.string()))
        replaces = policy.stop_word_capitals == StopWordCapitals.REPLACE
        share[np.asarray(listed)] = _IN_CAPITALS if replaces else 0.0
    return share


def redraw(system: BundleSanitiser, texts: Sequence[str], seed: int | None = None) -> Redrawn:
    """Encode records of one text each and draw for them; otherwise like :func:`redraw_columns`."""
    return redraw_columns(replace(system, columns=ONE_TEXT), [pa.array(texts, pa.string())], seed)


def redraw_columns(system: BundleSanitiser, columns: Sequence[pa.StringArray], seed: int | None = None) -> Redrawn:
    """Encode the text columns of records and draw for them.

    ``columns``: as :meth:`wordveil.records.codec.ColumnsCodec.encode` reads them. ``seed``: for public texts, so that a
    result can be repeated; None draws with a fresh throwaway key, which private texts require. Raises
    :class:`NotDrawnByWordError` if the mechanism draws texts of other lengths, or if words are sampled from several
    columns.
    """
    bundle, policy = system.bundle, system.policy
    mechanism = bundle.mechanism
    if len(columns) > 1 and policy.length == Length.SAMPLE:
        raise NotDrawnByWordError("Expected one text column, or a policy that samples no words.")
    codec = ColumnsCodec(system.columns, policy, bundle, system.ngrams)
    encoded = codec.encode(columns)
    accepted = _find_accepted(encoded, policy, mechanism.max_tokens)
    if len(accepted) < len(encoded.offsets) - 1:
        encoded = codec.encode([column.take(pa.array(accepted)) for column in columns])
    pattern, keys = encoded.pattern, _make_keys(b"tokens of public texts", seed)
    whole = Ragged(encoded.layout.join([column.ids for column in encoded.columns]), encoded.offsets)
    names = [b"%d" % row for row in accepted.tolist()]
    context = derive_contexts(keys.context, b"", frame_records(names, [id_payload(whole.ids, whole.offsets)]))
    ids, layout = codec.fit(encoded, context, keys.sampling)
    if pattern is None:
        drawn = mechanism.draw(TokenBatch(ids, layout.offsets, context), keys).ids
        is_first = np.ones(len(ids), np.bool_)
    else:
        distinct = mechanism.draw(TokenBatch(pattern.choose(ids), pattern.distinct_offsets, context), keys)
        drawn = pattern.spread(distinct.ids)
        is_first = pattern.firsts == np.arange(len(ids)) - np.repeat(layout.offsets[:-1], np.diff(layout.offsets))
    if len(drawn) != len(ids):
        raise NotDrawnByWordError(f"Expected a mechanism that draws one output for each word, got {mechanism.name}.")
    sequence, is_hidden = _lay_out(encoded, bundle.vocabulary, layout.split(drawn), layout.column_offsets)
    return Redrawn(
        mechanism=mechanism,
        policy=policy,
        size=bundle.vocabulary.size,
        words=bundle.vocabulary.array,
        rows=accepted,
        hidden=Ragged(ids, layout.offsets),
        drawn=drawn,
        is_first=is_first,
        whole=whole,
        shows=_number_shown(encoded, layout),
        sequence=sequence,
        is_hidden=is_hidden,
    )


def _find_accepted(encoded: Texts, policy: TextPolicy, max_tokens: int) -> Int64:
    """Find the indices of the records that a release would keep."""
    is_refused = np.asarray(encoded.refused != None, np.bool_)  # noqa: E711 - elementwise
    if policy.refused == Refused.EMPTY:
        is_refused[:] = False
    if policy.n_max is None:
        is_refused |= np.diff(encoded.offsets) > max_tokens
    return np.flatnonzero(~is_refused)


def _number_shown(texts: Texts, layout: TokenLayout) -> Int64:
    """Assign equal numbers to records that show the same lengths, copied pieces and equal words."""
    lengths = np.diff(layout.bounds)
    width = lengths.itemsize * len(texts.columns)
    records = len(layout.offsets) - 1
    payloads: list[Payload] = [(lengths.tobytes(), np.arange(records + 1, dtype=np.int64) * width)]
    payloads += [column.skeleton.serialise() for column in texts.columns if column.skeleton is not None]
    if texts.pattern is not None:
        payloads.append(texts.pattern.payload)
    numbers: dict[tuple[bytes, ...], int] = {}
    return np.array(
        [
            numbers.setdefault(tuple(bytes(data[bounds[row] : bounds[row + 1]]) for data, bounds in payloads), row)
            for row in range(records)
        ],
        np.int64,
    )


def _lay_out(
    texts: Texts, vocabulary: Vocabulary, drawn: Sequence[Int32], drawn_offsets: Sequence[Int64]
) -> tuple[Ragged, Bool]:
    """Lay out all words of records in their order, with the mask of the drawn ones. ``drawn``: by column."""
    ids, masks, offsets = [], [], []
    for text, outputs, bounds in zip(texts.columns, drawn, drawn_offsets, strict=True):
        skeleton = text.skeleton
        if skeleton is None:
            ids.append(outputs)
            masks.append(np.ones(len(outputs), np.bool_))
            offsets.append(bounds)
            continue
        is_word, is_hidden = skeleton.action != DROP, skeleton.action == HIDE
        found = vocabulary.lookup(fold_words(skeleton.tokens.words))
        if skeleton.articles is not None:
            found[skeleton.articles.places] = vocabulary.unknown  # they tell nothing that the words after them do not
        found[is_hidden] = outputs
        found[skeleton.action == SHOW] = vocabulary.unknown
        ids.append(found[is_word])
        masks.append(is_hidden[is_word])
        offsets.append(keep_offsets(is_word, skeleton.tokens.offsets))
    layout = TokenLayout.of(offsets)
    return Ragged(layout.join(ids), layout.offsets), layout.join(masks)


def _add_rows(laws: WordLaws, rows: Sequence[Float64 | None]) -> WordLaws:
    """Add rows to laws, each given as the probability of every output; None: the common law."""
    is_common = laws.common > 0
    for row in rows:
        law = laws.common if row is None else row
        share = (law[is_common] / laws.common[is_common]).min()
        more = law - share * laws.common
        listed = np.flatnonzero(more > _ROUNDING * law)
        laws = WordLaws(
            laws.common,
            np.append(laws.shares, share),
            np.append(laws.offsets, laws.offsets[-1] + len(listed)),
            np.append(laws.ids, listed.astype(np.int32)),
            np.append(laws.extras, more[listed]),
        )
    return laws
