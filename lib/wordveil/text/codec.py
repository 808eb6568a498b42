"""Codec: texts to canonical token ids, and drawn ids to text, a batch at a time.

Canonical ids are those of a record's hidden words after the policy dropped, copied, cut and padded: the input of its
mechanism and the content of its context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Bool, Int8, Int32, Int64, UInt32
from wordveil.crypto.streams import Payload
from wordveil.embeddings.vocabulary import Vocabulary, WordIndex, view_strings
from wordveil.text.articles import ARTICLES, PlacedArticles, find_vowels
from wordveil.text.characters import CONTROL, FORMAT, count_unsegmented, read_bits
from wordveil.text.choices import (
    DROP,
    HIDE,
    KEEP,
    SHOW,
    Articles,
    Case,
    Controls,
    Digits,
    OtherLanguage,
    Punctuation,
    StopWordCapitals,
    StopWords,
    TokeniserKind,
    UnknownWords,
)
from wordveil.text.language import OTHER_REFUSED, UNKNOWN_SHARE_REFUSED, find_other, require_packages
from wordveil.text.offsets import count_kept, fit_records
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Forms, Pattern
from wordveil.text.scanner import A_WORD, UPPER, Scanned, write_cases
from wordveil.text.skeleton import Skeleton, join_words
from wordveil.text.slots import NgramModel
from wordveil.text.tokeniser import Tokeniser, fold_words, straighten_apostrophes
from wordveil.text.types.classes import TYPES
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.typed import PLACEHOLDER, ShownTokens, TypeFinder, remove_placeholders


@dataclass(frozen=True)
class Encoded:
    """Texts as canonical ids.

    ``ids``: int32 ``(tokens,)``. ``offsets``: int64 ``(records + 1,)``. ``words``, ``unknown``: int64 ``(records,)``,
    words of the text before the policy, and those outside the vocabulary. ``refused``: object ``(records,)``, reason
    code or None; a refused record has no ids. ``skeleton``: what is copied, or None. ``pattern``: which tokens are the
    same word, or None if each is drawn on its own; padding is the same as no other. ``forms``: the form in which each
    token is looked up, or None without ``pattern``. ``read``: the words of which ``ids`` are a function, if these are
    symbols of whole texts.
    """

    ids: Int32
    offsets: Int64
    words: Int64
    unknown: Int64
    refused: NDArray[np.object_]
    skeleton: Skeleton | None
    pattern: Pattern | None = None
    forms: Forms | None = None
    read: Payload | None = None

    @property
    def read_lengths(self) -> Int64:
        """Number of words of each record that ``ids`` stand for: int64 ``(records,)``."""
        return np.diff(self.offsets if self.read is None else self.read[1] // 4)

    @property
    def shown(self) -> ShownTokens | None:
        """Typed tokens whose class shows; None if the policy shows no class."""
        return self.skeleton.shown if self.skeleton else None

    @property
    def shown_content(self) -> list[Payload]:
        """Inputs of the output besides hidden words' ids: copied parts, shown classes, patterns of repetition."""
        content = [part for part in (self.read,) if part is not None]
        content += [] if self.skeleton is None else [self.skeleton.serialise()]
        patterns = (self.pattern, self.shown.pattern if self.shown else None)
        return content + [pattern.payload for pattern in patterns if pattern is not None]


@dataclass(frozen=True)
class CutWords:
    """Words of texts: their ids, int32 ``(tokens,)``, and the action on each.

    ``action``: int8 ``(tokens,)``, None if every word is hidden. ``kinds``: int8 ``(tokens,)``, the classes of typed
    tokens, -1 for words. ``barred``: bool ``(records,)``, texts refused for an invisible character.
    """

    tokens: Scanned
    ids: Int32
    action: Int8 | None
    kinds: Int8
    refused: NDArray[np.object_]
    barred: Bool

    @property
    def unlisted(self) -> Int32:
        """Ids, with -1 for typed tokens: these are not words that the vocabulary lacks."""
        return np.where(self.kinds == A_WORD, self.ids, np.int32(-1))


class TokenReading(NamedTuple):
    """Explanation of a token: the token, its class (or ``word``, ``unknown word``), and the action on it."""

    token: str
    taken_for: str
    treatment: str


def find_unsegmented(tokens: Scanned, kind: TokeniserKind) -> Bool:
    """Find the texts with over half of their words' characters in unsegmented scripts, bool ``(records,)``."""
    records = np.repeat(np.arange(len(tokens.refused)), np.diff(tokens.offsets))
    words = np.flatnonzero(tokens.refused[records] & (tokens.kinds == A_WORD))
    strings = tokens.cut(words)
    unsegmented = count_unsegmented(strings, kind)
    majority = 2 * unsegmented - np.asarray(pc.utf8_length(strings))
    return np.bincount(records[words], majority, len(tokens.refused)) > 0


def find_controls(bits: UInt32) -> Bool:
    """Find the texts with an invisible character, bool ``(records,)``, by their bits (:func:`read_bits`).

    These are control characters (category Cc) except tab and line breaks, and format characters (Cf), such as marks of
    direction, zero-width spaces and joiners, soft hyphens and tags. Copied, they may carry a mark of the original, or
    break software that reads the output.
    """
    return np.asarray(bits & np.uint32(CONTROL | FORMAT), np.bool_)


def drop_controls(texts: pa.StringArray, bits: UInt32) -> pa.StringArray:
    """Replace each control character of ``texts`` by a space, which ends a word, and remove format characters."""
    if not (barred := find_controls(bits)).any():
        return texts
    spaced = pc.replace_substring_regex(texts.filter(pa.array(barred)), r"[^\P{Cc}\t\n\r]", " ")
    return pc.replace_with_mask(texts, pa.array(barred), pc.replace_substring_regex(spaced, r"\p{Cf}+", ""))


SCRIPT_REFUSED = "script_without_word_spaces"
UNKNOWN_REFUSED = "unknown_words"
CONTROLS_REFUSED = "control_characters"

WORD, UNKNOWN_WORD = "word", "unknown word"
TREATMENTS = ("replaced", "dropped", "kept", "shown")
"""Treatment of a token, by its action. For a class that shows, the policy has more."""
# By the values of :class:`UnknownWords`, :class:`Digits` and :class:`StopWords`.
_ACTIONS = {"hide": HIDE, "mask": HIDE, "quarantine": HIDE, "drop": DROP, "keep": KEEP}


class Codec:
    """Codec of one policy and vocabulary.

    ``model``: the policy's n-gram model. ``lists``: the public lists, if the policy draws from them. Raises
    :class:`ValueError` for another model and for missing lists, and :class:`wordveil.errors.PlatformError` if the
    packages that the policy needs are not installed in its versions.
    """

    def __init__(
        self,
        policy: TextPolicy,
        vocabulary: Vocabulary,
        model: NgramModel | None = None,
        lists: PublicLists | None = None,
    ) -> None:
        if (model.digest if model else None) != policy.ngrams:
            raise ValueError("the n-gram model is not the one that the policy names.")
        self._policy = policy
        require_packages(policy)
        self._model = model
        self._vocabulary = vocabulary
        copied = policy.punctuation == Punctuation.KEEP
        self._tokeniser = Tokeniser(policy.tokeniser, policy.hyphens, copied=copied)
        self._lower = policy.case != Case.EXACT
        hides = all(_ACTIONS[kind] == HIDE for kind in (policy.unknown, policy.digits, policy.stop_words))
        self._hides_all = hides and policy.unknown != UnknownWords.QUARANTINE and not policy.copies
        stop_words = pa.array(policy.stop_word_list if policy.stop_words != StopWords.HIDE else (), pa.string())
        self._stop_index = WordIndex(stop_words)
        known, self._index = vocabulary.array, vocabulary.index
        # Stop-words are looked up in lower case: if other words are too, both are looked up at once.
        if self._lower and len(outside := stop_words.filter(pc.invert(pc.is_in(stop_words, vocabulary.array)))):
            known = pa.concat_arrays([vocabulary.array, outside])
            self._index = WordIndex(known)
        self._types = TypeFinder.of(policy, lists, known)
        # Indexed by the numbers of words; the last, -1, is any other word.
        numbers = np.arange(len(known) + 1, dtype=np.int32)
        self._id_of = np.where(numbers < vocabulary.size, numbers, np.int32(vocabulary.unknown))
        self._is_stop = np.append(np.asarray(pc.is_in(known, stop_words)), False)
        written = write_cases(vocabulary.array) if policy.case == Case.RESTORE else None
        index = vocabulary.index
        self._takes_an, self._articles = None, np.empty(0, np.int32)
        if policy.articles == Articles.AGREE:
            # The unknown word and padding are written as words, and as none.
            self._takes_an = np.append(find_vowels(vocabulary.array), [False, False])
            self._articles = self._index.numbers(pa.array(ARTICLES[:2], pa.string()))
            written = pa.concat_arrays(
                [vocabulary.array if written is None else written, pa.array(ARTICLES, pa.string())]
            )
        self._written = (index.data, index.offsets) if written is None else view_strings(written)

    def find_other(self, texts: pa.StringArray, named: Sequence[str | None] | None = None) -> Bool:
        """Find the texts of another language (:func:`wordveil.text.language.find_other`), bool ``(records,)``.

        None are, unless the policy asks for it. ``named``: the languages that records name.
        """
        if self._policy.other_language == OtherLanguage.RELEASE:
            return np.zeros(len(texts), np.bool_)
        return find_other(texts, self._policy.language, named)

    def encode(self, texts: pa.StringArray, other: Bool | None = None) -> Encoded:
        """Encode ``texts``, a string array without nulls, valid UTF-8. ``other``: default :meth:`find_other`."""
        other = self.find_other(texts) if other is None else other
        quarantines = self._policy.other_language == OtherLanguage.QUARANTINE
        cut = self._cut(pc.if_else(pa.array(other), "", texts) if quarantines else texts)
        tokens, action, refused = cut.tokens, cut.action, cut.refused
        if self._policy.other_language == OtherLanguage.MASK and other.any():
            masked = np.repeat(other, np.diff(tokens.offsets))
            cut.ids[masked] = self._vocabulary.unknown
            if action is not None:
                action[masked] = HIDE
        is_unknown = cut.unlisted == self._vocabulary.unknown
        unknown = count_kept(is_unknown, tokens.offsets)
        if quarantines:
            refused[other] = OTHER_REFUSED
        share = 1.0 if self._policy.max_unknown_share is None else self._policy.max_unknown_share
        # Texts of another language, if they are masked, may have any number of unknown words.
        if (over := ~other & (unknown > share * np.diff(tokens.offsets))).any():
            refused[over] = UNKNOWN_SHARE_REFUSED
            action = np.zeros(len(cut.ids), np.int8) if action is None else action
            action[np.repeat(over, np.diff(tokens.offsets))] = DROP
        refused[cut.barred] = CONTROLS_REFUSED
        if action is not None and self._policy.unknown == UnknownWords.QUARANTINE:
            stops = count_kept((action == HIDE) & is_unknown, tokens.offsets) > 0
            refused[stops] = UNKNOWN_REFUSED
            action[np.repeat(stops, np.diff(tokens.offsets))] = DROP
        hidden: NDArray[np.intp] | slice = slice(None)
        skeleton: Skeleton | None = None
        bounds = tokens.offsets
        if action is not None:
            # Policies that copy hide about half of the words. NumPy takes them by index ten times faster than by mask.
            hidden = np.flatnonzero(action == HIDE)
            bounds = np.searchsorted(hidden, tokens.offsets)
            if self._policy.copies:
                skeleton = self._skeleton(cut, action, hidden)
        ids, offsets = self._fit(cut.ids[hidden], bounds)
        pattern, forms = self._find_repeats(cut, bounds, hidden) if self._policy.draws_once else (None, None)
        return Encoded(ids, offsets, np.diff(tokens.offsets), unknown, refused, skeleton, pattern, forms)

    def _cut(self, texts: pa.StringArray) -> CutWords:
        """Cut texts into tokens, and decide the action on each."""
        bits = read_bits(texts)
        barred = np.zeros(len(texts), np.bool_)
        if self._policy.controls == Controls.DROP:
            texts = drop_controls(texts, bits)
        elif self._policy.controls == Controls.QUARANTINE:
            barred = find_controls(bits)
            texts = pc.if_else(pa.array(barred), "", texts)
        texts = self._tokeniser.normalise(texts, bits)
        tokens = self._find_tokens(texts)
        refused = np.full(len(texts), None, object)
        if tokens.refused.any() and (unsegmented := find_unsegmented(tokens, self._policy.tokeniser)).any():
            refused[unsegmented] = SCRIPT_REFUSED
            tokens = self._find_tokens(pc.if_else(pa.array(unsegmented), "", texts))
        kinds = tokens.kinds if self._types is None else self._types.tell_apart(tokens)
        ids = self._id_of[tokens.numbers]
        action = None if self._hides_all else self._decide(tokens, kinds, ids)
        if self._types is not None:
            typed = np.flatnonzero(kinds != A_WORD)
            ids[typed] = self._vocabulary.unknown
            if action is not None:
                action[typed] = np.where(self._types.is_shown(kinds[typed]), SHOW, HIDE)
        return CutWords(tokens, ids, action, kinds, refused, barred)

    def _find_tokens(self, texts: pa.StringArray) -> Scanned:
        spans = None
        if self._types is not None:
            texts = remove_placeholders(texts)
            spans = self._types.find(texts)
        return self._tokeniser.cut_words(texts, self._index, spans, lower=self._lower)

    def _decide(self, tokens: Scanned, kinds: Int8, ids: Int32) -> Int8:
        """Decide the action on each word: by ``digits`` if it has one, else by ``stop_words``, else by ``unknown``.

        Words of carrier phrases are kept.
        """
        policy, unknown = self._policy, _ACTIONS[self._policy.unknown]
        action = np.zeros(len(ids), np.int8)
        if unknown != HIDE:
            action[ids == self._vocabulary.unknown] = unknown
        if policy.stop_words != StopWords.HIDE:
            stops = self._is_stop[tokens.numbers]
            if not self._lower:
                stops = self._stop_index.numbers(fold_words(tokens.words)) >= 0
            if policy.stop_word_capitals == StopWordCapitals.REPLACE:
                # "AN" stays as "A" does: one that is replaced would show which of the two it was.
                stops &= (tokens.cases != UPPER) | self._find_articles(tokens)
            action[np.flatnonzero(stops)] = _ACTIONS[policy.stop_words]
        if policy.digits != Digits.HIDE:
            action[tokens.has_digit] = _ACTIONS[policy.digits]
        if self._model is not None:
            action[self._find_carriers(tokens, kinds, self._model)] = KEEP
        return action

    def _find_articles(self, tokens: Scanned) -> Bool:
        """Find the articles that are to agree with the drawn words after them."""
        return np.isin(tokens.numbers, self._articles)

    def _find_carriers(self, tokens: Scanned, kinds: Int8, model: NgramModel) -> Bool:
        """Find the words of carrier phrases. Typed tokens belong to none."""
        words = pc.if_else(pa.array(kinds == A_WORD), fold_words(tokens.words), PLACEHOLDER)
        threshold, start = self._policy.slot_threshold, self._policy.slot_start_threshold
        assert threshold is not None
        assert start is not None
        return model.mark_kept(words, tokens.offsets, threshold, start)

    def explain(self, text: str) -> list[TokenReading]:
        """Explain the class of each token of ``text``, and the action on it; empty if the text is refused."""
        cut = self._cut(pa.array([text], pa.string()))
        if cut.barred[0] or cut.refused[0] is not None:
            return []
        action = np.zeros(len(cut.ids), np.int8) if cut.action is None else cut.action
        rows = zip(cut.tokens.words.to_pylist(), cut.ids, cut.kinds, action, strict=True)
        return [
            TokenReading(token, UNKNOWN_WORD if word == self._vocabulary.unknown else WORD, TREATMENTS[what])
            if kind == A_WORD
            else TokenReading(token, str(TYPES[kind]), str(self._policy.type_actions[TYPES[kind]]))
            for token, word, kind, what in rows
        ]

    def decode(
        self, ids: Int32, offsets: Int64, skeleton: Skeleton | None, values: pa.StringArray | None = None
    ) -> pa.StringArray:
        """Decode drawn ids into texts; padding leaves no trace. ``values``: texts of the skeleton's shown tokens."""
        if skeleton is not None:
            return skeleton.fill(ids, self._written, values)
        return join_words(self._written, ids, offsets)

    def _find_repeats(self, cut: CutWords, offsets: Int64, hidden: NDArray[np.intp] | slice) -> tuple[Pattern, Forms]:
        """Find which ``hidden`` words are equal, and their forms, cut and filled like :meth:`_fit` does."""
        numbers = np.where(cut.kinds == A_WORD, cut.tokens.numbers, np.int32(-1))[hidden]
        others = np.arange(len(cut.kinds))[hidden][numbers < 0]
        strings = cut.tokens.cut(others)
        marked = pc.binary_join_element_wise(PLACEHOLDER, strings, "")  # two tokens may be the same, but are no word
        strings = pc.if_else(pa.array(cut.kinds[others] != A_WORD), marked, strings)
        forms = Forms.of(fold_words(strings) if self._lower else straighten_apostrophes(strings), numbers)
        pattern = Pattern.of_codes(forms.codes, offsets)
        if self._policy.pads and self._policy.n_max:
            pattern = pattern.fit(self._policy.n_max)
            forms = replace(forms, codes=fit_records(forms.codes, offsets, self._policy.n_max, -1)[0])
        return pattern, forms

    def _skeleton(self, cut: CutWords, action: Int8, hidden: NDArray[np.intp]) -> Skeleton:
        gaps = self._policy.punctuation == Punctuation.KEEP
        case = cut.tokens.cases[hidden] if self._policy.case == Case.RESTORE else None
        shown = None
        if self._types is not None and self._types.shows:
            shown = self._types.show(cut.tokens, cut.kinds, action == SHOW)
        articles = None
        if self._takes_an is not None:
            is_article = (action == KEEP) & self._find_articles(cut.tokens)
            drops = DROP in (_ACTIONS[self._policy.unknown], _ACTIONS[self._policy.digits])
            articles = PlacedArticles.find(
                cut.tokens, is_article, action, cut.kinds, self._takes_an, gaps=gaps, drops=drops
            )
        return Skeleton(cut.tokens, action, gaps, case, shown, articles)

    def _fit(self, ids: Int32, offsets: Int64) -> tuple[Int32, Int64]:
        """Cut and fill each record to ``n_max`` if the policy pads words."""
        if not (self._policy.pads and self._policy.draws_words):
            return ids, offsets
        assert self._policy.n_max is not None
        return fit_records(ids, offsets, self._policy.n_max, self._vocabulary.pad)
