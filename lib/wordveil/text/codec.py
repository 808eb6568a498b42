"""Encoding texts to canonical token ids and decoding drawn ids to text, a batch at a time.

The canonical ids of a record are what its mechanism sees and what its context covers: the ids of its hidden words after
the policy dropped, copied, cut and padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.embeddings.vocabulary import Vocabulary, WordIndex
from wordveil.text.cases import UPPER, find_case
from wordveil.text.choices import (
    Case,
    Controls,
    Digits,
    Names,
    Punctuation,
    StopWordCapitals,
    StopWords,
    TokeniserKind,
    UnknownWords,
)
from wordveil.text.controls import drop_controls, find_controls
from wordveil.text.encoded import CutWords, Encoded, TokenReading
from wordveil.text.foreign import ForeignTexts
from wordveil.text.offsets import count_kept, fit_records, keep_offsets
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.scanner import Scanner, join_words
from wordveil.text.skeleton import Skeleton, join_texts
from wordveil.text.slots import NgramModel
from wordveil.text.tokeniser import PLACEHOLDER, Pieces, Tokeniser, fold_words, straighten_apostrophes
from wordveil.text.types.classes import TYPES, TokenType, TypeSpans
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.recogniser import cut_spans, replace_spans
from wordveil.text.types.typed import TypedWords, TypeFinder, remove_placeholders

SCRIPT_REFUSED = "script_without_word_spaces"
UNKNOWN_REFUSED = "unknown_words"
CONTROLS_REFUSED = "control_characters"

_HIDE, _DROP, _KEEP, _SHOW = 0, 1, 2, 3
WORD, UNKNOWN_WORD = "word", "unknown word"
TREATMENTS = ("replaced", "dropped", "kept", "shown")
"""What happens to a token, by its action. Of a class that shows, the policy says more."""
_EMOJI = TYPES.index(TokenType.EMOJI)
_HARD_TEXT = "\u0301"
"""A text that the scanner leaves to Arrow."""
# By the values of :class:`UnknownWords`, :class:`Digits` and :class:`StopWords`.
_ACTIONS = {"hide": _HIDE, "mask": _HIDE, "quarantine": _HIDE, "drop": _DROP, "keep": _KEEP}


class Codec:
    """Encodes and decodes under one policy and vocabulary.

    Policies that copy nothing use a compiled scanner, and Arrow for texts with characters that the scanner does not
    know; with ``compiled=False`` they use Arrow alone. The ids are the same. The scanner does not distinguish unknown
    words, so policies that draw repeated words once use Arrow. ``model``: the n-gram model that the policy names, if
    any. ``lists``: the public lists, where the policy draws from them. Raises :class:`ValueError` for another model and
    for missing lists, and :class:`wordveil.errors.PlatformError` where the packages that the policy needs are not
    installed in its versions.
    """

    def __init__(
        self,
        policy: TextPolicy,
        vocabulary: Vocabulary,
        model: NgramModel | None = None,
        lists: PublicLists | None = None,
        *,
        compiled: bool = True,
    ) -> None:
        if (model.digest if model else None) != policy.ngrams:
            raise ValueError("the n-gram model is not the one that the policy names.")
        self._policy = policy
        self._foreign = ForeignTexts(policy, vocabulary.unknown)
        self._model = model
        self._vocabulary = vocabulary
        self._types = TypeFinder.of(policy, lists)
        self._tokeniser = Tokeniser(policy.tokeniser, policy.hyphens, placeholders=self._types is not None)
        self._stop_words = pa.array(policy.stop_word_list, pa.string())
        hides = all(_ACTIONS[kind] == _HIDE for kind in (policy.unknown, policy.digits, policy.stop_words))
        self._hides_all = hides and policy.unknown != UnknownWords.QUARANTINE
        plain = policy.tokeniser == TokeniserKind.WORDS and policy.names == Names.WORDS
        # Stop-words are matched in lower case or by the written form. The scanner knows words in one case.
        one_case = policy.case != Case.EXACT and policy.stop_word_capitals == StopWordCapitals.MATCH
        one_case |= policy.stop_words == StopWords.HIDE
        self._compiled = compiled and plain and one_case and not policy.copies and not policy.draws_once
        if self._compiled:
            outside = self._stop_words.filter(pc.invert(pc.is_in(self._stop_words, vocabulary.array)))
            placeholder = pa.array([PLACEHOLDER] if self._types else [], pa.string())
            known = pa.concat_arrays([vocabulary.array, outside, placeholder])
            index = WordIndex(known) if len(known) > vocabulary.size else vocabulary.index
            self._scanner = Scanner(self._tokeniser, index, lower=policy.case != Case.EXACT)
            # Indexed by the scanner's numbers; the last, -1, is any other word.
            stop = policy.stop_words != StopWords.HIDE
            stops = np.append(np.asarray(pc.is_in(known, self._stop_words)) & stop, False)
            ids = np.arange(len(stops), dtype=np.int32)
            self._id_of = np.where(ids < vocabulary.size, ids, np.int32(vocabulary.unknown))
            self._action_of = self._actions(self._id_of == vocabulary.unknown, stops, np.zeros(len(stops), np.bool_))
            self._typed = np.int32(len(known) - 1 if self._types else len(stops))
            if self._types:
                self._action_of[self._typed] = _HIDE

    def find_other(self, texts: pa.StringArray, named: Sequence[str | None] | None = None) -> NDArray[np.bool_]:
        """Which texts, as :meth:`encode` takes them, are of another language: bool ``(records,)``. ``named``: the
        languages that records name.
        """
        return self._foreign.find(texts, named)

    def encode(self, texts: pa.StringArray, other: NDArray[np.bool_] | None = None) -> Encoded:
        """``texts``: string array without nulls, valid UTF-8. ``other``: what :meth:`find_other` says; None: ask it."""
        other = self.find_other(texts) if other is None else other
        texts, barred = self._treat_controls(self._foreign.blank(texts, other))
        tokens = self._scan(texts) if self._compiled else self._cut(texts)
        action, refused = tokens.action, tokens.refused
        masked = self._foreign.mask(tokens.ids, tokens.offsets, other)
        unknown = count_kept(tokens.unlisted == self._vocabulary.unknown, tokens.offsets)
        over = self._foreign.refuse(refused, unknown, tokens.offsets, other)
        refused[barred] = CONTROLS_REFUSED
        if action is not None and masked is not None:
            action[masked] = _HIDE
        if over.any():
            action = np.zeros(len(tokens.ids), np.int8) if action is None else action
            action[np.repeat(over, np.diff(tokens.offsets))] = _DROP
        if action is not None and self._policy.unknown == UnknownWords.QUARANTINE:
            is_unknown = (action == _HIDE) & (tokens.unlisted == self._vocabulary.unknown)
            stops = count_kept(is_unknown, tokens.offsets) > 0
            refused[stops] = UNKNOWN_REFUSED
            action[np.repeat(stops, np.diff(tokens.offsets))] = _DROP
        hidden: NDArray[np.bool_] | slice = slice(None)
        skeleton: Skeleton | None = None
        bounds = tokens.offsets
        if action is not None:
            hidden, bounds = action == _HIDE, keep_offsets(action == _HIDE, tokens.offsets)
            if tokens.pieces and self._policy.copies:
                skeleton = self._skeleton(tokens.pieces, action, tokens.typed)
        ids, offsets = self._fit(tokens.ids[hidden], bounds)
        pattern, forms = self._find_repeats(tokens.forms, bounds, hidden)
        return Encoded(ids, offsets, np.diff(tokens.offsets), unknown, refused, skeleton, pattern, forms)

    def _treat_controls(self, texts: pa.StringArray) -> tuple[pa.StringArray, NDArray[np.bool_]]:
        """The texts to cut into words, and which are refused for an invisible character: those are empty."""
        if self._policy.controls == Controls.QUARANTINE:
            barred = find_controls(texts)
            return pc.if_else(pa.array(barred), "", texts), barred
        dropped = drop_controls(texts) if self._policy.controls == Controls.DROP else texts
        return dropped, np.zeros(len(texts), np.bool_)

    def _scan(self, texts: pa.StringArray) -> CutWords:
        """Cut texts by the compiled pass, and those that it leaves out by Arrow."""
        marked = texts
        if self._types is not None:
            texts = remove_placeholders(texts)
            spans = self._types.find(texts)
            marked = replace_spans(texts, spans, b" \x02 ")
            if (left := self._find_hard(texts, spans)).any():
                marked = pc.if_else(pa.array(left), _HARD_TEXT, marked)
        scanned = self._scanner.scan(marked)
        ids = self._id_of[scanned.ids]
        is_typed = None if self._types is None else scanned.ids == self._typed
        action = None if self._hides_all else self._action_of[scanned.ids]
        if action is not None and self._policy.digits != Digits.HIDE:
            action[scanned.digits] = _ACTIONS[self._policy.digits]
        refused = np.full(len(texts), None, object)
        hard = np.flatnonzero(scanned.hard)
        if not len(hard):
            return CutWords(ids, action, scanned.offsets, refused, is_typed=is_typed)
        rest = self._cut(texts.take(pa.array(hard)))
        refused[hard] = rest.refused
        lengths = np.diff(scanned.offsets)
        lengths[hard] = np.diff(rest.offsets)
        # Where Arrow's words belong among the others: before the tokens of the record that follows.
        bounds = scanned.offsets[hard]
        ids = _splice(ids, bounds, rest.ids, rest.offsets)
        if is_typed is not None and rest.is_typed is not None:
            is_typed = _splice(is_typed, bounds, rest.is_typed, rest.offsets)
        if action is not None and rest.action is not None:
            action = _splice(action, bounds, rest.action, rest.offsets)
        return CutWords(ids, action, np.concatenate([[0], np.cumsum(lengths)]), refused, is_typed=is_typed)

    def _find_hard(self, texts: pa.StringArray, spans: TypeSpans) -> NDArray[np.bool_]:
        """Which texts have a typed token with a character that the scanner does not know, bool ``(records,)``: in
        normalisation form C it may be another token. Emoji are in that form.
        """
        is_long = np.zeros(len(texts), np.bool_)
        tokens = cut_spans(texts, spans)
        asked = ~np.asarray(pc.string_is_ascii(tokens)) & (spans.kinds != _EMOJI)
        if asked.any():
            records = np.repeat(np.arange(len(texts)), np.diff(spans.offsets))[asked]
            is_long[records[self._scanner.scan(tokens.filter(pa.array(asked))).hard]] = True
        return is_long

    def _cut(self, texts: pa.StringArray) -> CutWords:
        """Cut texts by Arrow's regular expressions."""
        texts = self._tokeniser.normalise(texts)
        refused = np.full(len(texts), None, object)
        texts, marked, spans = self._mark_types(texts)
        # Letters of other scripts inside a typed token are not words: they need no cutting.
        barred = self._tokeniser.find_refused(marked)
        if barred.any():
            refused[barred] = SCRIPT_REFUSED
            texts, marked, spans = self._mark_types(pc.if_else(pa.array(barred), "", texts))
        gaps_stay = self._policy.punctuation == Punctuation.KEEP or self._policy.names != Names.WORDS
        pieces = self._tokeniser.cut_pieces(marked) if gaps_stay else self._tokeniser.cut_words(marked)
        typed = None if self._types is None or spans is None else self._types.tell_apart(texts, spans, pieces)
        words = pieces.words
        if typed is not None and self._policy.draws_once:
            words = typed.restore(words)  # two tokens of a class may be the same, or not
        looked_up = straighten_apostrophes(words) if self._policy.case == Case.EXACT else fold_words(words)
        ids = self._vocabulary.lookup(looked_up)
        stops = digits = np.zeros(len(ids), np.bool_)
        if self._policy.stop_words != StopWords.HIDE:
            stops = np.asarray(pc.is_in(fold_words(pieces.words), self._stop_words))
            if self._policy.stop_word_capitals == StopWordCapitals.REPLACE:
                stops = stops & (find_case(pieces.words) != UPPER)
        if self._policy.digits != Digits.HIDE:
            digits = np.asarray(pc.match_substring_regex(pieces.words, r"\p{N}"))
        action = None
        if not self._hides_all or self._policy.copies:
            action = self._actions(ids == self._vocabulary.unknown, stops, digits)
        if action is not None and self._model is not None:
            action[self._find_carriers(pieces.words, pieces.offsets, self._model, typed)] = _KEEP
        if typed is not None and self._types is not None:
            ids[typed.is_typed] = self._vocabulary.unknown
            if action is not None:
                action[typed.is_typed] = _HIDE
                action[self._types.is_shown(typed.kinds)] = _SHOW
        forms = looked_up.dictionary_encode() if self._policy.draws_once else None
        return CutWords(ids, action, pieces.offsets, refused, pieces, forms, typed.is_typed if typed else None, typed)

    def _mark_types(self, texts: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray, TypeSpans | None]:
        """Texts in normalisation form C, the same with a placeholder for each typed token of characters, and where
        these are.
        """
        if self._types is None:
            return texts, texts, None
        texts = remove_placeholders(texts)
        spans = self._types.find(texts)
        return texts, replace_spans(texts, spans, b"\x02"), spans

    def _find_carriers(
        self, words: pa.StringArray, offsets: NDArray[np.int64], model: NgramModel, typed: TypedWords | None
    ) -> NDArray[np.bool_]:
        """Which words belong to carrier phrases. Typed tokens belong to none: which ones they are decides nothing."""
        if typed is not None:
            words = pc.if_else(pa.array(typed.is_typed), PLACEHOLDER, words)
        threshold, start = self._policy.slot_threshold, self._policy.slot_start_threshold
        assert threshold is not None
        assert start is not None
        return model.mark_kept(fold_words(words), offsets, threshold, start)

    def explain(self, text: str) -> list[TokenReading]:
        """Say what each token of ``text`` is taken for, and what happens to it. Empty where the text is refused."""
        texts, barred = self._treat_controls(pa.array([text], pa.string()))
        tokens = self._cut(texts)
        if barred.any() or tokens.refused[0] is not None or tokens.pieces is None:
            return []
        words, labels = tokens.pieces.words, np.where(tokens.ids == self._vocabulary.unknown, UNKNOWN_WORD, WORD)
        action = np.zeros(len(words), np.int8) if tokens.action is None else tokens.action
        done = np.array(TREATMENTS)[action]
        if tokens.typed is not None:
            words = tokens.typed.restore(words, "")
            kinds = tokens.typed.kinds[tokens.typed.is_typed]
            labels = labels.astype(object)
            labels[tokens.typed.is_typed] = [str(TYPES[kind]) for kind in kinds]
            done = done.astype(object)
            done[tokens.typed.is_typed] = [str(self._policy.type_actions[TYPES[kind]]) for kind in kinds]
        return [TokenReading(*row) for row in zip(words.to_pylist(), labels.tolist(), done.tolist(), strict=True)]

    def decode(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        skeleton: Skeleton | None,
        values: pa.StringArray | None = None,
    ) -> pa.StringArray:
        """The texts of drawn ids; padding leaves no trace in them. ``values``: what the skeleton's shown tokens are
        written as.
        """
        if skeleton is not None:
            return skeleton.fill(self._vocabulary.words(ids), values)
        if (joined := join_words(self._vocabulary.index, ids, offsets)) is not None:
            return joined
        real = ids != self._vocabulary.pad
        return join_texts(self._vocabulary.words(ids[real]), keep_offsets(real, offsets), " ")

    def _find_repeats(
        self, forms: pa.DictionaryArray | None, offsets: NDArray[np.int64], hidden: NDArray[np.bool_] | slice
    ) -> tuple[Pattern | None, pa.DictionaryArray | None]:
        """Which of the ``hidden`` words are the same, and their forms, cut and filled as :meth:`_fit` does."""
        if forms is None:
            return None, None
        codes = forms.indices.to_numpy()[hidden]
        pattern = Pattern.of(codes, offsets, len(forms.dictionary))
        if self._policy.pads and self._policy.n_max:
            pattern = pattern.fit(self._policy.n_max)
            codes, _ = fit_records(codes, offsets, self._policy.n_max, -1)
        return pattern, pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), forms.dictionary)

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

    def _skeleton(self, pieces: Pieces, action: NDArray[np.int8], typed: TypedWords | None) -> Skeleton:
        words, offsets, slots, separator = pieces.words, pieces.all_offsets, pieces.slots, ""
        if self._policy.punctuation == Punctuation.DROP:
            left = action != _DROP
            offsets = keep_offsets(left, pieces.offsets)
            slots, separator = np.cumsum(left) - 1, " "
            copied = words.filter(pa.array(left))
        else:
            assert pieces.all is not None
            assert slots is not None
            erased = np.zeros(len(pieces.all), np.bool_)
            erased[slots[action == _DROP]] = True
            copied = pc.if_else(pa.array(erased), "", pieces.all)
        assert offsets is not None
        assert slots is not None
        hidden, is_shown = action == _HIDE, action == _SHOW
        restores = self._policy.case == Case.RESTORE
        case = find_case(words.filter(pa.array(hidden))) if restores else None
        if self._types is None or typed is None or not self._types.shows:
            return Skeleton(copied, offsets, slots[hidden], case, separator)
        shown = self._types.show(typed, is_shown, pieces.offsets)
        return Skeleton(copied, offsets, slots[hidden], case, separator, shown, slots[is_shown])

    def _fit(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Cut and fill each record to ``n_max`` where the policy pads."""
        if not self._policy.pads:
            return ids, offsets
        assert self._policy.n_max is not None
        return fit_records(ids, offsets, self._policy.n_max, self._vocabulary.pad)


def _splice(
    values: NDArray[Any], rows: NDArray[np.int64], inserted: NDArray[Any], offsets: NDArray[np.int64]
) -> NDArray[Any]:
    """Insert slice j of ``inserted`` into ``values`` before row ``rows[j]``; rows rise."""
    edges = [0, *rows.tolist(), len(values)]
    parts = [values[: edges[1]]]
    for slice_number, (start, stop) in enumerate(pairwise(edges[1:])):
        parts += [inserted[offsets[slice_number] : offsets[slice_number + 1]], values[start:stop]]
    return np.concatenate(parts)
