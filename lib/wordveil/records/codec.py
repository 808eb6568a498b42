"""Codec of records: their text columns to token ids, and drawn words to written ones.

Token positions continue across columns. The written words are a function of the drawn ones, of public data and of an
order that does not depend on the words. If a word is drawn once for all its occurrences, they also depend on which
positions hold the same word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import ReleaseKeys, Secret
from wordveil.crypto.streams import Contexts, KeyedStream, id_payload, scale_words
from wordveil.embeddings.vocabulary import view_strings
from wordveil.mechanisms.base import Mechanism, TextEncoder, TokenBatch
from wordveil.records.columns import TextColumns
from wordveil.text.choices import DrawnUnit, OtherLanguage
from wordveil.text.codec import Codec, Encoded
from wordveil.text.language import UNKNOWN_SHARE_REFUSED
from wordveil.text.offsets import fit_records
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Forms, Pattern
from wordveil.text.skeleton import join_words
from wordveil.text.slots import NgramModel
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.surrogates import WORDS, draw_values
from wordveil.text.types.typed import ShownTokens


def _draw_stream(
    key: Secret, contexts: Contexts, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    record = np.repeat(np.arange(len(contexts)), np.diff(offsets))
    return record, KeyedStream(key, 1).record_words(contexts, offsets)[:, 0]


def sample(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    contexts: Contexts,
    key: Secret,
    count: int,
    unknown: int,
    *,
    first: int = 0,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw ``count`` ids of each record i.i.d. with replacement (Fernandes, Dras, McIver 2018, section 5.2).

    A record without ids becomes ``unknown``, ``count`` times. Returns ids and offsets of the same number of records.
    ``first``: the number of positions of each record's stream that other texts of the record use.
    """
    drawn_offsets = np.arange(len(offsets), dtype=np.int64) * count
    record, word = _draw_stream(key, contexts, np.arange(len(offsets), dtype=np.int64) * (first + count))
    if first:
        own = np.tile(np.arange(first + count) >= first, len(contexts))
        record, word = record[own], word[own]
    length = np.diff(offsets)
    pick = offsets[record] + scale_words(word, np.maximum(length, 1)[record].astype(np.uint64))
    symbols = np.append(ids, np.int32(unknown))
    return symbols[np.where(length[record] > 0, pick, len(ids))], drawn_offsets


def draw_order(
    offsets: NDArray[np.int64], contexts: Contexts, key: Secret, bounds: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Draw a uniformly random order of each record's tokens, independent of their values: int64 ``(tokens,)``.

    Entry ``i`` is the index in the batch of the token that comes ``i``-th. ``bounds``, int64 ``(texts + 1,)``, if
    records have several texts: the tokens of each text, which stay in their text.
    """
    record, word = _draw_stream(key, contexts, offsets)
    text = record if bounds is None else np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.lexsort((word, text))


@dataclass(frozen=True)
class TokenLayout:
    """Layout of the tokens of several columns among those of their records.

    ``offsets``: int64 ``(records + 1,)``, of each record's tokens. ``bounds``: int64 ``(records * columns + 1,)``, of
    those of each of its columns. ``rows``: for each column int64, the index of each of its tokens among all.
    """

    offsets: NDArray[np.int64]
    bounds: NDArray[np.int64]
    rows: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, offsets: Sequence[NDArray[np.int64]]) -> TokenLayout:
        """Make from the offsets of columns, each int64 ``(records + 1,)``."""
        lengths = np.stack([np.diff(column) for column in offsets], axis=1)
        bounds = np.concatenate([[0], np.cumsum(lengths.ravel())]).astype(np.int64)
        rows = []
        for number, column in enumerate(offsets):
            starts = bounds[:-1].reshape(lengths.shape)[:, number]
            rows.append(np.arange(column[-1], dtype=np.int64) + np.repeat(starts - column[:-1], lengths[:, number]))
        return cls(bounds[:: len(offsets)], bounds, tuple(rows))

    @property
    def column_offsets(self) -> list[NDArray[np.int64]]:
        """Offsets of each column's tokens among its own: int64 ``(records + 1,)`` each."""
        lengths = np.diff(self.bounds).reshape(-1, len(self.rows)).T
        return [np.concatenate([[0], np.cumsum(column)]) for column in lengths]

    def join(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Join the values of each column to those of all tokens."""
        joined = np.empty(int(self.bounds[-1]), values[0].dtype)
        for rows, column in zip(self.rows, values, strict=True):
            joined[rows] = column
        return joined

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Split the values of all tokens by column."""
        return [values[rows] for rows in self.rows]


@dataclass(frozen=True)
class Texts:
    """Encoded texts of records, by column.

    ``pattern``: the tokens of a record that are the same word, in any column; None if each token is drawn separately.
    """

    columns: tuple[Encoded, ...]
    layout: TokenLayout
    pattern: Pattern | None

    @classmethod
    def of(cls, columns: Sequence[Encoded]) -> Texts:
        """Make from the records' columns."""
        layout = TokenLayout.of([column.offsets for column in columns])
        if len(columns) == 1:
            return cls(tuple(columns), layout, columns[0].pattern)
        return cls(tuple(columns), layout, _join_patterns([column.forms for column in columns], layout))

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Bounds of the tokens of each record: int64 ``(records + 1,)``."""
        return self.layout.offsets

    @cached_property
    def shown(self) -> ShownTexts | None:
        """Typed tokens whose class shows, or None if the policy shows no class."""
        return ShownTexts.of([column.shown for column in self.columns])

    @property
    def drawn_offsets(self) -> NDArray[np.int64]:
        """Bounds of the drawn tokens of each record: int64 ``(records + 1,)``."""
        return self.offsets if self.pattern is None else self.pattern.distinct_offsets

    @property
    def words(self) -> NDArray[np.int64]:
        """Number of words of each record before the policy: int64 ``(records,)``."""
        return np.asarray(sum(column.words for column in self.columns))

    @property
    def unknown(self) -> NDArray[np.int64]:
        """Number of words of each record outside the vocabulary: int64 ``(records,)``."""
        return np.asarray(sum(column.unknown for column in self.columns))

    @property
    def refused(self) -> NDArray[np.object_]:
        """Reason of each record's first refused column, or None."""
        refused = self.columns[0].refused.copy()
        for column in self.columns[1:]:
            refused = np.where(refused == None, column.refused, refused)  # noqa: E711 - elementwise
        return refused


@dataclass(frozen=True)
class ShownTexts:
    """Typed tokens of records whose class shows, from all columns. ``layout``: the places of each column's tokens."""

    tokens: ShownTokens
    layout: TokenLayout

    @classmethod
    def of(cls, columns: Sequence[ShownTokens | None]) -> ShownTexts | None:
        """Make from the tokens of each column. Return None if the policy shows no class."""
        present = [column for column in columns if column is not None]
        if not present:
            return None
        layout = TokenLayout.of([column.offsets for column in present])
        if len(present) == 1:
            return cls(present[0], layout)
        kinds = layout.join([column.kinds for column in present])
        order = np.argsort(np.concatenate(layout.rows), kind="stable")
        shapes = pa.concat_arrays([column.shapes for column in present]).take(pa.array(order))
        pattern = _join_patterns([column.forms for column in present], layout)
        return cls(ShownTokens(kinds, shapes, layout.offsets, pattern), layout)

    def split(self, values: pa.StringArray) -> list[pa.StringArray]:
        """Split ``values``, string array ``(shown,)``, by column."""
        return [values.take(pa.array(rows)) for rows in self.layout.rows]


def _join_patterns(columns: Sequence[Forms | None], layout: TokenLayout) -> Pattern | None:
    """Find equal tokens of a record by the forms of all columns. Padding equals nothing else."""
    forms = [column for column in columns if column is not None]
    if not forms:
        return None
    return Pattern.of_codes(layout.join([column.codes for column in Forms.unify(forms)]), layout.offsets)


def cut_sentences(texts: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.int64]]:
    """Cut texts into sentences: a sentence ends at full stops, question or exclamation marks before a space, and at a
    line's end.

    Returns the sentences that are not blank, and their offsets, int64 ``(texts + 1,)``.
    """
    pieces = pc.split_pattern_regex(texts, r"[.!?\x{2026}\x{3002}]+\s+|[\r\n]+")
    strings, owners = pieces.flatten(), np.repeat(np.arange(len(texts)), np.diff(np.asarray(pieces.offsets)))
    is_blank = np.asarray(pc.equal(pc.utf8_trim_whitespace(strings), ""))
    counts = np.bincount(owners[~is_blank], minlength=len(texts))
    return strings.filter(pa.array(~is_blank)), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class ColumnsCodec:
    """Codec of records' text columns under one policy, for the symbols of one bundle.

    ``model``: the n-gram model, if the policy names one. Raises :class:`ValueError` for another model, for public lists
    that the bundle lacks, for widths that do not add up to the policy's ``n_max``, and for a policy that draws one
    symbol for a text if the bundle has no such symbols.
    """

    def __init__(
        self, columns: TextColumns, policy: TextPolicy, bundle: Bundle, model: NgramModel | None = None
    ) -> None:
        self._encoder: TextEncoder | None = None
        if not policy.draws_words:
            self._encoder = bundle.mechanism.encoder
            if self._encoder is None:
                raise ValueError(f"mechanism {bundle.mechanism.name} has no symbols for whole texts.")
            self._written = view_strings(bundle.vocabulary.array)
            self._empty = bundle.vocabulary.pad
        vocabulary, lists = bundle.lexicon, bundle.lists
        self._policy = policy
        self._policies = columns.split_policy(policy)
        if len(self._policies) > 1:  # the share is that of the whole record
            self._policies = tuple(replace(part, max_unknown_share=None) for part in self._policies)
        made = {part: Codec(part, vocabulary, model, lists) for part in dict.fromkeys(self._policies)}
        self._codecs = [made[part] for part in self._policies]
        self._unknown = vocabulary.unknown

    def find_other(
        self, columns: Sequence[pa.StringArray], named: Sequence[str | None] | None = None
    ) -> NDArray[np.bool_]:
        """Find the records in another language, by all their texts together: bool ``(records,)``.

        ``columns``: as in :meth:`encode`. ``named``: the languages that records name.
        """
        if len(columns) == 1 or self._policy.other_language == OtherLanguage.RELEASE:
            return self._codecs[0].find_other(columns[0], named)
        return self._codecs[0].find_other(pc.binary_join_element_wise(*columns, "\n"), named)

    def encode(self, columns: Sequence[pa.StringArray], other: NDArray[np.bool_] | None = None) -> Texts:
        """Encode the texts of each column, string arrays without nulls, valid UTF-8.

        ``other``: by default from :meth:`find_other`. Under ``refused: empty`` a record with a refused column is
        encoded as one without any text.
        """
        other = self.find_other(columns) if other is None else other
        texts = self._encode(columns, other)
        refused = texts.refused != None  # noqa: E711 - elementwise
        if self._policy.refused != "empty" or len(columns) == 1 or not refused.any():
            return texts
        return self._encode([pc.if_else(pa.array(refused), "", column) for column in columns], other & ~refused)

    def _encode(self, columns: Sequence[pa.StringArray], other: NDArray[np.bool_]) -> Texts:
        encoded = [codec.encode(column, other) for codec, column in zip(self._codecs, columns, strict=True)]
        if self._encoder is not None:
            parts = zip(self._codecs, self._policies, columns, encoded, strict=True)
            encoded = [self._find_symbols(*part, other, self._encoder) for part in parts]
        texts = Texts.of(encoded)
        if len(columns) > 1 and (share := self._policy.max_unknown_share) is not None:
            over = ~other & (texts.unknown > share * texts.words)
            texts.columns[0].refused[over] = UNKNOWN_SHARE_REFUSED
        return texts

    def _find_symbols(
        self,
        codec: Codec,
        policy: TextPolicy,
        column: pa.StringArray,
        encoded: Encoded,
        other: NDArray[np.bool_],
        encoder: TextEncoder,
    ) -> Encoded:
        """Replace the words of texts by the symbols of texts or of sentences.

        Sentences are cut and filled to the policy's number. A refused text, and one of another language, has none.
        """
        is_whole = policy.unit == DrawnUnit.TEXT
        if encoder.reads_text or not is_whole:
            unread = other | (encoded.refused != None)  # noqa: E711 - elementwise
            column = pc.if_else(pa.array(unread, pa.bool_()), "", column)
        read = id_payload(encoded.ids, encoded.offsets)
        if encoder.reads_text:
            data, bounds = view_strings(column)
            read = data.data, bounds
        if is_whole:
            symbols = encoder.encode(encoded.ids, encoded.offsets, column)
            return replace(encoded, ids=symbols, offsets=np.arange(len(symbols) + 1, dtype=np.int64), read=read)
        sentences, offsets = cut_sentences(column)
        pieces = codec.encode(sentences, np.zeros(len(sentences), np.bool_))
        symbols = encoder.encode(pieces.ids, pieces.offsets, sentences)
        if policy.pads:
            assert policy.n_max is not None
            symbols, offsets = fit_records(symbols, offsets, policy.n_max, self._empty)
        return replace(encoded, ids=symbols, offsets=offsets, read=read)

    def fit(self, texts: Texts, contexts: Contexts, key: Secret) -> tuple[NDArray[np.int32], TokenLayout]:
        """Choose the ids to draw, int32 ``(tokens,)``, and their layout.

        They are those of ``texts``, or under ``length: sample`` each column's number of them, drawn by ``key``.
        """
        ids = [column.ids for column in texts.columns]
        if self._policy.length != "sample":
            return texts.layout.join(ids), texts.layout
        chosen, first = [], 0
        for column, part in zip(texts.columns, self._policies, strict=True):
            assert part.n_max is not None
            chosen.append(sample(column.ids, column.offsets, contexts, key, part.n_max, self._unknown, first=first))
            first += part.n_max
        layout = TokenLayout.of([offsets for _, offsets in chosen])
        return layout.join([values for values, _ in chosen]), layout

    def decode(
        self, ids: NDArray[np.int32], layout: TokenLayout, texts: Texts, values: pa.StringArray | None
    ) -> list[pa.StringArray]:
        """Decode drawn ids into the texts of each column, with ``values`` for :attr:`Texts.shown`, without padding."""
        shown: Sequence[pa.StringArray | None] = [None] * len(texts.columns)
        if texts.shown is not None and values is not None:
            shown = texts.shown.split(values)
        offsets = layout.column_offsets
        if self._encoder is not None:
            parts = zip(layout.split(ids), offsets, strict=True)
            return [join_words(self._written, part, bounds) for part, bounds in parts]
        rows = zip(self._codecs, layout.split(ids), offsets, texts.columns, shown, strict=True)
        return [codec.decode(part, bounds, column.skeleton, drawn) for codec, part, bounds, column, drawn in rows]


@dataclass(frozen=True)
class Written:
    """Tokens written for those of records, with their offsets.

    ``replaced``: int32 ``(tokens,)``, the id that each replaces. ``draws``: the ids that were written, one a draw.
    """

    batch: TokenBatch
    replaced: NDArray[np.int32]
    draws: TokenBatch


def write_words(
    mechanism: Mechanism[Any],
    batch: TokenBatch,
    keys: ReleaseKeys,
    pattern: Pattern | None = None,
    *,
    bag: bool = False,
    bounds: NDArray[np.int64] | None = None,
) -> Written:
    """Draw the words of records and choose the words to write for them.

    ``keys``: those of noise and order. ``pattern``: the tokens that are the same word. Each word is drawn once, and its
    position is the number of distinct words before it; what is rendered for its first occurrence is written for all.
    None: every token is drawn. ``bag``: each text's tokens are written in a random order. ``bounds``: int64
    ``(texts + 1,)``, the tokens of each text, if each record has several, the same number. None: one.
    """
    if pattern is None:
        drawn = mechanism.draw(batch, keys)
    else:
        distinct = TokenBatch(pattern.choose(batch.ids), pattern.distinct_offsets, batch.contexts)
        drawn = replace(batch, ids=pattern.spread(mechanism.draw(distinct, keys).ids))
    replaced = batch.ids
    if bag:
        order = draw_order(batch.offsets, batch.contexts, keys.shuffle, bounds)
        replaced, drawn = replaced[order], replace(drawn, ids=drawn.ids[order])
        pattern = pattern and pattern.reorder(order)
    by_text = drawn
    if bounds is not None:  # so that the output of one column does not depend on another
        texts = (len(bounds) - 1) // max(len(drawn), 1)
        by_text = TokenBatch(drawn.ids, bounds, np.repeat(drawn.contexts, texts, axis=0))
    rendered = mechanism.render(by_text)
    written = draws = replace(rendered, offsets=batch.offsets, contexts=batch.contexts)
    if pattern is not None:
        draws = replace(written, ids=pattern.choose(written.ids), offsets=pattern.distinct_offsets)
        written = replace(written, ids=pattern.unify(written.ids))
    return Written(written, replaced, draws)


def draw_shown(
    shown: ShownTokens | None, contexts: Contexts, keys: ReleaseKeys, policy: TextPolicy, lists: PublicLists | None
) -> pa.StringArray | None:
    """Draw the texts to write for tokens whose class shows, by class and shape alone: strings ``(shown,)``.

    Draws are uniform and cost nothing, because the original token does not enter them. Equal tokens are drawn once if
    the policy draws words once. Of ``keys`` only ``types`` is used. ``lists``: the public lists, if the policy draws
    from them. Returns None if the policy shows no class.
    """
    if shown is None:
        return None
    offsets = shown.offsets if shown.pattern is None else shown.pattern.distinct_offsets
    blocks = WORDS // 2  # a position of a stream has two words
    words = KeyedStream(keys.types, 1).record_words(contexts, offsets * blocks).reshape(-1, WORDS)
    if shown.pattern is not None:
        words = words[shown.pattern.spread(np.arange(len(words), dtype=np.int32))]
    return draw_values(shown.kinds, policy.type_actions, shown.shapes, words, lists)
