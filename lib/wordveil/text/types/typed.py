"""Texts with their typed tokens identified: each is a word of its own, and what is known of it is kept beside.

A token that a text's characters identify is replaced by a character that no text has, the *placeholder*, before the
text is cut into words. The tokeniser does the rest, and the n-th placeholder of a text is its n-th such token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.text.choices import Case
from wordveil.text.offsets import keep_offsets
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.tokeniser import MARK, PLACEHOLDER, Pieces, fold_words, straighten_apostrophes
from wordveil.text.types.classes import NAME_TYPES, SHOWN_ACTIONS, TYPES, TokenType, TypeAction, TypeSpans
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.names import find_names
from wordveil.text.types.recogniser import Recogniser, cut_spans
from wordveil.text.types.shapes import find_shapes

_NONE = -1


@dataclass(frozen=True)
class TypedWords:
    """Which of all words of texts are typed tokens.

    Attributes
    ----------
    kinds
        int8 ``(tokens,)``, indices in :data:`TYPES`; -1 for words.
    originals
        string array ``(typed,)``, the typed tokens as the texts have them. They stay in this process's memory.
    """

    kinds: NDArray[np.int8]
    originals: pa.StringArray

    @property
    def is_typed(self) -> NDArray[np.bool_]:
        """Bool ``(tokens,)``."""
        is_typed: NDArray[np.bool_] = self.kinds != _NONE
        return is_typed

    def restore(self, words: pa.StringArray, prefix: str = PLACEHOLDER) -> pa.StringArray:
        """``words``, string array ``(tokens,)``, with each typed token as a text has it instead of what stands
        for it, behind ``prefix``: with a placeholder it equals no word.
        """
        marked = pc.binary_join_element_wise(prefix, self.originals, "")
        return pc.replace_with_mask(words, pa.array(self.is_typed), marked)


@dataclass(frozen=True)
class ShownTokens:
    """The typed tokens of texts whose class shows: what they are written as does not depend on anything else.

    Attributes
    ----------
    kinds
        int8 ``(shown,)``, indices in :data:`TYPES`.
    shapes
        string array ``(shown,)``, what shows besides the class.
    offsets
        int64 ``(records + 1,)``, those of each record.
    pattern
        which of them are the same, or None where each is drawn on its own.
    forms
        what makes them the same, in the order of the tokens; None where there is no pattern.
    """

    kinds: NDArray[np.int8]
    shapes: pa.StringArray
    offsets: NDArray[np.int64]
    pattern: Pattern | None = None
    forms: pa.DictionaryArray | None = None


@dataclass(frozen=True)
class TypeFinder:
    """Finds the typed tokens of the classes that a policy distinguishes.

    Attributes
    ----------
    policy
        what happens to each class.
    lists
        the public lists of names; None where the policy looks nothing up.
    """

    policy: TextPolicy
    lists: PublicLists | None
    _recogniser: Recogniser = field(init=False)

    def __post_init__(self) -> None:
        if self.policy.draws_types and self.lists is None:
            raise ValueError("the policy draws from public lists, and none are given.")
        kinds = [kind for kind in self.policy.type_actions if kind not in NAME_TYPES]
        object.__setattr__(self, "_recogniser", Recogniser(kinds))

    @property
    def shows(self) -> bool:
        """Whether the class of some tokens shows."""
        return not set(self.policy.type_actions.values()).isdisjoint(SHOWN_ACTIONS)

    @classmethod
    def of(cls, policy: TextPolicy, lists: PublicLists | None) -> Self | None:
        """The finder of a policy; None where it distinguishes no class."""
        return cls(policy, lists) if policy.type_actions else None

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """The typed tokens that the characters of ``texts`` identify. Texts hold no placeholder
        (:func:`remove_placeholders`).
        """
        return self._recogniser.find(texts)

    def tell_apart(self, texts: pa.StringArray, spans: TypeSpans, pieces: Pieces) -> TypedWords:
        """Which words of ``texts`` are typed tokens.

        ``spans``: what :meth:`find` returns for the texts; ``pieces``: the texts with placeholders for them, cut.
        """
        kinds = np.full(len(pieces.words), _NONE, np.int8)
        stands = np.asarray(pc.equal(pieces.words, PLACEHOLDER))
        kinds[stands] = spans.kinds
        written = pc.replace_with_mask(pieces.words, pa.array(stands), cut_spans(texts, spans))
        if self.lists is not None and not set(NAME_TYPES).isdisjoint(self.policy.type_actions):
            names = find_names(pieces, self.lists)
            names[~np.isin(names, self._numbers(*NAME_TYPES))] = _NONE
            kinds = np.where(stands, kinds, names).astype(np.int8)
        return TypedWords(kinds, written.filter(pa.array(kinds != _NONE)))

    def is_shown(self, kinds: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Of which tokens the class shows: bool ``(tokens,)``. ``kinds``: as in :class:`TypedWords`."""
        shown = [kind for kind, action in self.policy.type_actions.items() if action in SHOWN_ACTIONS]
        return np.isin(kinds, self._numbers(*shown))

    def show(self, typed: TypedWords, shown: NDArray[np.bool_], offsets: NDArray[np.int64]) -> ShownTokens:
        """The tokens of ``typed`` that are ``shown``, bool ``(tokens,)``, all with a class that shows. ``offsets``:
        int64 ``(records + 1,)``, the words of each record.
        """
        kinds = typed.kinds[shown]
        originals = typed.originals.filter(pa.array(shown[typed.is_typed]))
        bounds = keep_offsets(shown, offsets)
        if self.policy.case == Case.LOWER:
            originals = pc.if_else(_are_names(kinds), pc.utf8_lower(originals), originals)  # their case does not show
        shapes = find_shapes(kinds, self.policy.type_actions, originals)
        pattern = forms = None
        if self.policy.draws_once:
            forms = _identify(kinds, shapes, originals).dictionary_encode()
            pattern = Pattern.of(forms.indices.to_numpy(), bounds, len(forms.dictionary))
        return ShownTokens(kinds, shapes, bounds, pattern, forms)

    def _numbers(self, *kinds: TokenType) -> list[int]:
        return [
            TYPES.index(kind) for kind in kinds if self.policy.type_actions.get(kind) not in (None, TypeAction.WORDS)
        ]


def compile_finder(policy: TextPolicy) -> None:
    """Compile what finds the typed tokens of ``policy``, so that the workers of the first job need not. Instant where
    the machine has compiled it, and where the policy distinguishes no class.
    """
    if kinds := [kind for kind in policy.type_actions if kind not in NAME_TYPES]:
        Recogniser(kinds).find(pa.array(["a 1"]))


def remove_placeholders(texts: pa.StringArray) -> pa.StringArray:
    """``texts`` with a space instead of each placeholder and tokeniser's mark that they hold themselves."""
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    for sign in (MARK, PLACEHOLDER):
        if (data == ord(sign)).any():
            texts = pc.replace_substring(texts, sign, " ")
    return texts


def _identify(kinds: NDArray[np.int8], shapes: pa.StringArray, originals: pa.StringArray) -> pa.StringArray:
    """A string for each token, equal for those that are the same: ``ALICE's`` is the name ``Alice``."""
    stems = pc.replace_substring_regex(straighten_apostrophes(originals), r"'[sS]$", "")
    ways = pc.if_else(_are_names(kinds), "", shapes)
    forms = pc.if_else(_are_names(kinds), stems, originals)
    return fold_words(pc.binary_join_element_wise(pa.array(kinds).cast(pa.string()), ways, forms, PLACEHOLDER))


def _are_names(kinds: NDArray[np.int8]) -> pa.BooleanArray:
    return pa.array(np.isin(kinds, [TYPES.index(kind) for kind in NAME_TYPES]))
