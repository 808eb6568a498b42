"""Encoding texts to canonical token ids and decoding drawn ids to text, a batch at a time.

The canonical ids of a record are what its mechanism sees and what its context covers: the ids of its hidden words after
the policy dropped, copied, cut and padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.embeddings.vocabulary import Vocabulary, WordIndex
from wordveil.text.choices import Case, Controls, Digits, Punctuation, StopWords, TokeniserKind, UnknownWords
from wordveil.text.controls import drop_controls, find_controls
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.scanner import Scanner, count_in_records, join_words
from wordveil.text.slots import NgramModel
from wordveil.text.tokeniser import Pieces, Tokeniser, fold_words, straighten_apostrophes

SCRIPT_REFUSED = "script_without_word_spaces"
UNKNOWN_REFUSED = "unknown_words"
CONTROLS_REFUSED = "control_characters"

_HIDE, _DROP, _KEEP = 0, 1, 2
# By the values of :class:`UnknownWords`, :class:`Digits` and :class:`StopWords`.
_ACTIONS = {"hide": _HIDE, "mask": _HIDE, "quarantine": _HIDE, "drop": _DROP, "keep": _KEEP}
_LOWER, _CAPITAL, _UPPER = 0, 1, 2


@dataclass(frozen=True)
class Skeleton:
    """What a policy copies: the pieces of each text, the places of hidden words among them, and what joins them."""

    pieces: pa.StringArray
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64]
    case: NDArray[np.int8] | None
    separator: str

    def serialise(self) -> tuple[memoryview, NDArray[np.int64]]:
        """Write what is copied as bytes, with a mark for each hidden word; and the records' byte offsets."""
        marks = pa.array(["\x010", "\x011", "\x012"])  # no text holds U+0001
        case = np.zeros(len(self.slots), np.int8) if self.case is None else self.case
        texts = _join(self._with(marks.take(pa.array(case))), self.offsets, self.separator)
        bounds = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        return memoryview(texts.buffers()[2] or b""), bounds.astype(np.int64)

    def fill(self, words: pa.StringArray) -> pa.StringArray:
        """Put ``words`` in the place of the hidden ones."""
        if self.case is not None:
            words = _apply_case(words, self.case)
        return _join(self._with(words), self.offsets, self.separator)

    def _with(self, words: pa.StringArray) -> pa.StringArray:
        order = np.arange(len(self.pieces))
        order[self.slots] = len(self.pieces) + np.arange(len(self.slots))
        return pa.concat_arrays([self.pieces, words]).take(pa.array(order))


@dataclass(frozen=True)
class Encoded:
    """Texts as canonical ids.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``.
    offsets
        int64 ``(records + 1,)``.
    words
        int64 ``(records,)``, words of the text before the policy.
    unknown
        int64 ``(records,)``, of those outside the vocabulary.
    refused
        reason code per record, or None: object ``(records,)``. A refused record has no ids.
    skeleton
        what is copied, or None where the policy copies nothing.
    pattern
        which tokens are the same word, or None where each is drawn on its own. A token of padding is the same as no
        other.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    unknown: NDArray[np.int64]
    refused: NDArray[np.object_]
    skeleton: Skeleton | None
    pattern: Pattern | None = None


@dataclass(frozen=True)
class _Forms:
    """Which words are the same: ``codes``, int32 ``(tokens,)``, from 0 to ``count - 1``, equal for words with one
    look-up form.
    """

    codes: NDArray[np.int32]
    count: int


@dataclass(frozen=True)
class _Words:
    """All words of texts: their ids, what happens to each, and why a text is refused; ``pieces`` where Arrow cut them.

    ``action`` is None where every word is hidden, ``forms`` where it does not matter which words are the same.
    """

    ids: NDArray[np.int32]
    action: NDArray[np.int8] | None
    offsets: NDArray[np.int64]
    refused: NDArray[np.object_]
    pieces: Pieces | None = None
    forms: _Forms | None = None


class Codec:
    """Encodes and decodes under one policy and vocabulary.

    Policies that copy nothing use a compiled scanner, and Arrow for texts with characters that the scanner does
    not know; with ``compiled=False`` they use Arrow alone. The ids are the same. The scanner does not tell unknown
    words apart, so policies that draw repeated words once use Arrow. ``model``: the n-gram model that the policy
    names, if it names one. Raises :class:`ValueError` for another.
    """

    def __init__(
        self, policy: TextPolicy, vocabulary: Vocabulary, model: NgramModel | None = None, *, compiled: bool = True
    ) -> None:
        if (model.digest if model else None) != policy.ngrams:
            raise ValueError("the n-gram model is not the one that the policy names.")
        self._policy = policy
        self._model = model
        self._vocabulary = vocabulary
        self._tokeniser = Tokeniser(policy.tokeniser, policy.hyphens)
        self._stop_words = pa.array(policy.stop_word_list, pa.string())
        # Stop-words are always matched in lower case.
        both_lower = policy.case != Case.EXACT or policy.stop_words == StopWords.HIDE
        kept_kinds = (policy.unknown, policy.digits, policy.stop_words)
        self._hides_all = (
            all(_ACTIONS[kind] == _HIDE for kind in kept_kinds) and policy.unknown != UnknownWords.QUARANTINE
        )
        alike = policy.tokeniser == TokeniserKind.WORDS and not policy.copies and not policy.draws_once
        self._compiled = compiled and alike and both_lower
        if self._compiled:
            outside = self._stop_words.filter(pc.invert(pc.is_in(self._stop_words, vocabulary.array)))
            known = pa.concat_arrays([vocabulary.array, outside])
            index = WordIndex(known) if len(outside) else vocabulary.index
            self._scanner = Scanner(self._tokeniser, index, lower=policy.case != Case.EXACT)
            # By the scanner's numbers, the last of which, -1, is any other word.
            stop = policy.stop_words != StopWords.HIDE
            stops = np.append(pc.is_in(known, self._stop_words).to_numpy(zero_copy_only=False) & stop, False)
            ids = np.arange(len(stops), dtype=np.int32)
            self._id_of = np.where(ids < vocabulary.size, ids, np.int32(vocabulary.unknown))
            self._action_of = self._actions(self._id_of == vocabulary.unknown, stops, np.zeros(len(stops), np.bool_))

    def encode(self, texts: pa.StringArray) -> Encoded:
        """``texts``: string array without nulls, valid UTF-8."""
        texts, barred = self._treat_controls(texts)
        found = self._scan(texts) if self._compiled else self._cut(texts)
        action, refused = found.action, found.refused
        refused[barred] = CONTROLS_REFUSED
        unknown = count_in_records(found.ids, self._vocabulary.unknown, found.offsets)
        if action is None:
            ids, offsets = self._fit(found.ids, found.offsets)
            pattern = self._find_pattern(found.forms, found.offsets)
            return Encoded(ids, offsets, np.diff(found.offsets), unknown, refused, None, pattern)
        if self._policy.unknown == UnknownWords.QUARANTINE:
            hidden_ids = np.where(action == _HIDE, found.ids, np.int32(-1))
            stops = count_in_records(hidden_ids, self._vocabulary.unknown, found.offsets) > 0
            refused[stops] = UNKNOWN_REFUSED
            action[np.repeat(stops, np.diff(found.offsets))] = _DROP
        hidden = action == _HIDE
        skeleton = self._skeleton(found.pieces, action) if found.pieces and self._policy.copies else None
        bounds = np.concatenate([[0], np.cumsum(hidden)])[found.offsets]
        ids, offsets = self._fit(found.ids[hidden], bounds)
        pattern = self._find_pattern(found.forms, bounds, hidden)
        return Encoded(ids, offsets, np.diff(found.offsets), unknown, refused, skeleton, pattern)

    def _treat_controls(self, texts: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.bool_]]:
        """The texts to cut into words, and which are refused for a character that shows nothing: those are empty."""
        if self._policy.controls == Controls.QUARANTINE:
            barred = find_controls(texts)
            return pc.if_else(pa.array(barred), "", texts), barred
        dropped = drop_controls(texts) if self._policy.controls == Controls.DROP else texts
        return dropped, np.zeros(len(texts), np.bool_)

    def _scan(self, texts: pa.StringArray) -> _Words:
        """By the compiled pass; texts that it leaves out by Arrow."""
        scanned = self._scanner.scan(texts)
        ids = self._id_of[scanned.ids]
        action = None if self._hides_all else self._action_of[scanned.ids]
        if action is not None and self._policy.digits != Digits.HIDE:
            action[scanned.digits] = _ACTIONS[self._policy.digits]
        refused = np.full(len(texts), None, object)
        hard = np.flatnonzero(scanned.hard)
        if not len(hard):
            return _Words(ids, action, scanned.offsets, refused)
        rest = self._cut(texts.take(pa.array(hard)))
        refused[hard] = rest.refused
        lengths = np.diff(scanned.offsets)
        lengths[hard] = np.diff(rest.offsets)
        # Where Arrow's words belong among the others: before the tokens of the record that follows.
        bounds = scanned.offsets[hard]
        ids = _splice(ids, bounds, rest.ids, rest.offsets)
        if action is not None and rest.action is not None:
            action = _splice(action, bounds, rest.action, rest.offsets)
        return _Words(ids, action, np.concatenate([[0], np.cumsum(lengths)]), refused)

    def _cut(self, texts: pa.StringArray) -> _Words:
        """By Arrow's regular expressions."""
        texts = self._tokeniser.normalise(texts)
        refused = np.full(len(texts), None, object)
        refused[self._tokeniser.find_refused(texts)] = SCRIPT_REFUSED
        texts = pc.if_else(pa.array(refused == None), texts, "")  # noqa: E711 - elementwise
        gaps_stay = self._policy.punctuation == Punctuation.KEEP
        pieces = self._tokeniser.cut_pieces(texts) if gaps_stay else self._tokeniser.cut_words(texts)
        looked_up = self._lookup_form(pieces.words)
        ids = self._vocabulary.lookup(looked_up)
        stops = digits = np.zeros(len(ids), np.bool_)
        if self._policy.stop_words != StopWords.HIDE:
            stops = pc.is_in(fold_words(pieces.words), self._stop_words).to_numpy(zero_copy_only=False)
        if self._policy.digits != Digits.HIDE:
            digits = pc.match_substring_regex(pieces.words, r"\p{N}").to_numpy(zero_copy_only=False)
        action = (
            None
            if self._hides_all and not self._policy.copies
            else self._actions(ids == self._vocabulary.unknown, stops, digits)
        )
        if action is not None and self._model is not None:
            action[self._find_carriers(pieces, self._model)] = _KEEP
        return _Words(ids, action, pieces.offsets, refused, pieces, self._number_forms(looked_up))

    def _find_carriers(self, pieces: Pieces, model: NgramModel) -> NDArray[np.bool_]:
        """Which words belong to carrier phrases."""
        threshold, start = self._policy.slot_threshold, self._policy.slot_start_threshold
        assert threshold is not None
        assert start is not None
        return model.mark_kept(fold_words(pieces.words), pieces.offsets, threshold, start)

    def decode(self, ids: NDArray[np.int32], offsets: NDArray[np.int64], skeleton: Skeleton | None) -> pa.StringArray:
        """The texts of drawn ids; padding leaves no trace in them."""
        if skeleton is not None:
            return skeleton.fill(self._vocabulary.words(ids))
        if (joined := join_words(self._vocabulary.array, ids, offsets)) is not None:
            return joined
        real = ids != self._vocabulary.pad
        kept = np.concatenate([[0], np.cumsum(real)])
        return _join(self._vocabulary.words(ids[real]), kept[offsets], " ")

    def _lookup_form(self, words: pa.StringArray) -> pa.StringArray:
        return straighten_apostrophes(words) if self._policy.case == Case.EXACT else fold_words(words)

    def _number_forms(self, looked_up: pa.StringArray) -> _Forms | None:
        if not self._policy.draws_once:
            return None
        numbered = looked_up.dictionary_encode()
        return _Forms(numbered.indices.to_numpy(), len(numbered.dictionary))

    def _find_pattern(
        self, forms: _Forms | None, offsets: NDArray[np.int64], hidden: NDArray[np.bool_] | slice = slice(None)
    ) -> Pattern | None:
        """Which of the ``hidden`` words are the same, cut and filled as :meth:`_fit` does."""
        if forms is None:
            return None
        pattern = Pattern.of(forms.codes[hidden], offsets, forms.count)
        return pattern.fit(self._policy.n_max) if self._policy.pads and self._policy.n_max else pattern

    def _actions(
        self, unknown: NDArray[np.bool_], stops: NDArray[np.bool_], digits: NDArray[np.bool_]
    ) -> NDArray[np.int8]:
        """Decide what happens to each word: by ``digits`` where it has a digit, else by ``stop_words`` where it is a
        stop-word, else by ``unknown`` where it is unknown.
        """
        action = np.where(unknown, _ACTIONS[self._policy.unknown], _HIDE).astype(np.int8)
        action[stops] = _ACTIONS[self._policy.stop_words]
        action[digits] = _ACTIONS[self._policy.digits]
        return action

    def _skeleton(self, pieces: Pieces, action: NDArray[np.int8]) -> Skeleton:
        case = _find_case(pieces.words.filter(pa.array(action == _HIDE))) if self._policy.case == Case.RESTORE else None
        if self._policy.punctuation == Punctuation.DROP:
            left = action != _DROP
            offsets = np.concatenate([[0], np.cumsum(left)])[pieces.offsets]
            return Skeleton(
                pieces.words.filter(pa.array(left)), offsets, np.flatnonzero(action[left] == _HIDE), case, " "
            )
        assert pieces.all is not None
        assert pieces.slots is not None
        assert pieces.all_offsets is not None
        erased = np.zeros(len(pieces.all), np.bool_)
        erased[pieces.slots[action == _DROP]] = True
        copied = pc.if_else(pa.array(erased), "", pieces.all)
        return Skeleton(copied, pieces.all_offsets, pieces.slots[action == _HIDE], case, "")

    def _fit(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Cut and fill each record to ``n_max`` where the policy pads."""
        if not self._policy.pads:
            return ids, offsets
        assert self._policy.n_max is not None
        width = self._policy.n_max
        lengths = np.diff(offsets)
        position = np.arange(len(ids)) - np.repeat(offsets[:-1], lengths)
        fitted = np.full((len(lengths), width), self._vocabulary.pad, np.int32)
        fitted[np.arange(width) < lengths[:, None]] = ids[position < width]
        return fitted.reshape(-1), np.arange(len(lengths) + 1, dtype=np.int64) * width


def _splice(
    values: NDArray[Any], places: NDArray[np.int64], inserted: NDArray[Any], offsets: NDArray[np.int64]
) -> NDArray[Any]:
    """Insert slice j of ``inserted`` into ``values`` before place ``places[j]``; places rise. One step a slice."""
    edges = [0, *places.tolist(), len(values)]
    parts = [values[: edges[1]]]
    for slice_number, (start, stop) in enumerate(pairwise(edges[1:])):
        parts += [inserted[offsets[slice_number] : offsets[slice_number + 1]], values[start:stop]]
    return np.concatenate(parts)


def _join(values: pa.StringArray, offsets: NDArray[np.int64], separator: str) -> pa.StringArray:
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pc.binary_join(lists, separator)


def _find_case(words: pa.StringArray) -> NDArray[np.int8]:
    first = pc.utf8_is_upper(pc.utf8_slice_codeunits(words, 0, 1)).to_numpy(zero_copy_only=False)
    whole = pc.utf8_is_upper(words).to_numpy(zero_copy_only=False)
    several = np.asarray(pc.utf8_length(words)) > 1
    return np.where(whole & several, _UPPER, np.where(first, _CAPITAL, _LOWER)).astype(np.int8)


def _apply_case(words: pa.StringArray, case: NDArray[np.int8]) -> pa.StringArray:
    forms = pc.if_else(pa.array(case == _CAPITAL), pc.utf8_capitalize(words), words)
    return pc.if_else(pa.array(case == _UPPER), pc.utf8_upper(words), forms)
