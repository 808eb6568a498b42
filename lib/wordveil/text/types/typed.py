"""Typed tokens of texts, and what is shown of them.

The recogniser finds all except names in one compiled pass over a text. It decides how a text looks, never what is
protected: a token that is missed, or taken for another, is cut into words, which are protected.

The pass reads each byte once and stops only at those that such a token can have: digits, ``. : @ # < & * / ( [``, their
likes and the beginnings of emoji. There it calls small automata (:mod:`wordveil.text.types.finders`), which read a
bounded distance back and forward, so that any text takes linear time. The rules:

- What begins first wins; of those, the longest; of those, the first in the order markup, url, email, ip, date, time,
  card, phone, account, amount, year, number, mention, hashtag, emoji.
- A class that was not requested is still recognised, then left out. So the spans of a class do not depend on the other
  requested ones.
- No span begins or ends inside a word (letters, marks, digits, ``_``), with three exceptions: a unit is cut from its
  number (``10km``: the number 10, then a word), a character entity may stand inside a word (``caf&eacute;``), and the
  time of ``2026-11-23T14:30`` begins with its T.
- Other words with digits (``abc123``, ``v1.2.3``, ``3D``) are words. But eight capitals and digits and more, five of
  them digits, are a reference number and so an account: ``AB12345678``.
- Dotted figures are one number (``1.2.3``), a range is two (``10-12``), ``1/2`` is one.
- ``555-1234`` is a telephone number; ten digits without separators are an account, but a 0 before ten or eleven is a
  telephone number's.
- Four digits from 1500 to 2099, without sign or separators, are a year.
- A month beside a year counts as a date (``2026-11``, ``11/2026``).
- A path of two parts and more (``/home/john``) is a url. A mail address may have a host without a dot, ``%40`` or
  ``[at]``.
- A text sign such as the copyright sign or an arrow is an emoji only before U+FE0F.

Normalisation form C changes no span of a text that has only characters below U+0590 and from U+2000 to U+2BFF that are
no combining marks nor become one (U+2ADC alone does): no rule distinguishes what the form makes equal.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Bool, Int8, Int64
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.choices import Case
from wordveil.text.offsets import keep_offsets
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Forms, Pattern
from wordveil.text.scanner import A_WORD, Scanned
from wordveil.text.tokeniser import fold_words
from wordveil.text.types.classes import (
    NAME_TYPES,
    SHOWN_ACTIONS,
    TYPES,
    TypeSpans,
    list_classes,
    newest_version,
)
from wordveil.text.types.finders.characters import load_tables
from wordveil.text.types.finders.numerals import GROUPS
from wordveil.text.types.finders.scan import scan_types
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.names import find_names
from wordveil.text.types.shapes import find_shapes


class Recogniser:
    """Recogniser of the tokens of the classes ``types``, except those of a later ``version`` (default: the newest).

    Raises :class:`ValueError` for a class of names, which lists of words identify.
    """

    def __init__(self, types: Collection[str], version: int | None = None) -> None:
        if listed := sorted({*NAME_TYPES}.intersection(types)):
            raise ValueError(f"types: {', '.join(listed)} are found in lists of words, not here.")
        self._wanted = np.array([kind in types for kind in TYPES], np.bool_)
        known = list_classes(version or newest_version())
        self._known = sum(1 << number for number, kind in enumerate(TYPES) if kind in known)

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """Find tokens in ``texts``, a string array without nulls, valid UTF-8, possibly a slice."""
        data, offsets = view_strings(texts)
        # No two spans that follow each other have a byte each. Memory that is not written to is not taken.
        most = (int(offsets[-1]) - int(offsets[0])) // 2 + len(texts) + 1
        starts, ends, kinds = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int8)
        bounds = np.zeros(len(texts) + 1, np.int64)
        groups = np.zeros((GROUPS, 3), np.int64)
        scan_types(data, offsets, *load_tables(), self._known, self._wanted, groups, starts, ends, kinds, bounds)
        count = bounds[-1]
        return TypeSpans(starts[:count].copy(), ends[:count].copy(), kinds[:count].copy(), bounds)


PLACEHOLDER = "\x02"
"""Mark of a typed token where words are compared; no word has it, and texts have a space instead."""


@dataclass(frozen=True)
class ShownTokens:
    """Typed tokens of texts whose class shows: the values written for them depend on nothing else.

    ``kinds``: int8 ``(shown,)``, indices in :data:`TYPES`. ``shapes``: string array ``(shown,)``, what shows besides
    the class. ``offsets``: int64 ``(records + 1,)``. ``pattern``: which tokens are the same, or None if each is drawn
    on its own. ``forms``: what makes them the same, or None without a pattern.
    """

    kinds: Int8
    shapes: pa.StringArray
    offsets: Int64
    pattern: Pattern | None = None
    forms: Forms | None = None


class TypeFinder:
    """Finder of the typed tokens of the classes that a policy distinguishes.

    ``lists``: the public lists of names, or None. ``words``: those of the index whose numbers :meth:`tell_apart` is
    given.
    """

    def __init__(self, policy: TextPolicy, lists: PublicLists | None, words: pa.StringArray) -> None:
        if policy.draws_types and lists is None:
            raise ValueError("the policy draws from public lists, and none are given.")
        self._policy, self._actions = policy, policy.type_actions
        self._recogniser = Recogniser(self._actions.keys() - NAME_TYPES, policy.types_version)
        self._lists = None if set(NAME_TYPES).isdisjoint(self._actions) else lists
        self._matches = None if self._lists is None else self._lists.names.match(words)
        # By the indices of classes; the last, -1, is a word.
        self._shown = np.array([*(self._actions.get(kind) in SHOWN_ACTIONS for kind in TYPES), False])

    @property
    def shows(self) -> bool:
        """True if the class of some tokens shows."""
        return bool(self._shown.any())

    @classmethod
    def of(cls, policy: TextPolicy, lists: PublicLists | None, words: pa.StringArray) -> Self | None:
        """Make the finder of a policy, or return None if it distinguishes no class."""
        return cls(policy, lists, words) if policy.type_actions else None

    def find(self, texts: pa.StringArray) -> TypeSpans:
        """Find the typed tokens that the characters of ``texts`` identify; texts hold no placeholder."""
        return self._recogniser.find(texts)

    def tell_apart(self, scanned: Scanned) -> Int8:
        """Find each token's class, int8 ``(tokens,)``: an index in :data:`TYPES`, or -1 for words.

        ``scanned``: texts cut with the spans of :meth:`find`.
        """
        if self._lists is None or self._matches is None:
            return scanned.kinds
        kinds = find_names(scanned, self._lists, self._matches)
        if unwanted := [TYPES.index(kind) for kind in NAME_TYPES if kind not in self._actions]:
            kinds[np.isin(kinds, unwanted)] = A_WORD
        return kinds

    def is_shown(self, kinds: Int8) -> Bool:
        """Find the tokens whose class shows: bool ``(tokens,)``. ``kinds``: the result of :meth:`tell_apart`."""
        return self._shown[kinds]

    def show(self, scanned: Scanned, kinds: Int8, shown: Bool) -> ShownTokens:
        """Collect the tokens that are ``shown``, bool ``(tokens,)``. ``kinds``: from :meth:`tell_apart`."""
        kinds, originals, bounds = kinds[shown], scanned.cut(shown), keep_offsets(shown, scanned.offsets)
        if self._policy.case == Case.LOWER:
            originals = pc.if_else(_are_names(kinds), pc.utf8_lower(originals), originals)  # their case does not show
        shapes = find_shapes(kinds, self._actions, originals)
        pattern = forms = None
        if self._policy.draws_once:
            forms = Forms.of(_identify(kinds, shapes, originals))
            pattern = Pattern.of_codes(forms.codes, bounds)
        return ShownTokens(kinds, shapes, bounds, pattern, forms)


def compile_finder(policy: TextPolicy) -> None:
    """Compile the finder of ``policy``'s typed tokens, so that the workers of the first job need not."""
    if kinds := [kind for kind in policy.type_actions if kind not in NAME_TYPES]:
        Recogniser(kinds).find(pa.array(["a 1"]))


def remove_placeholders(texts: pa.StringArray) -> pa.StringArray:
    """Replace each placeholder that ``texts`` hold by a space."""
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    return pc.replace_substring(texts, PLACEHOLDER, " ") if (data == ord(PLACEHOLDER)).any() else texts


def _identify(kinds: Int8, shapes: pa.StringArray, originals: pa.StringArray) -> pa.StringArray:
    """Make a string for each token, equal for equal tokens: ``ALICE's`` is the name ``Alice``."""
    are_names, encoded = _are_names(kinds), originals.dictionary_encode()
    folded = fold_words(encoded.dictionary)
    stems = pc.replace_substring_regex(folded, "'s$", "")
    forms = pc.if_else(are_names, stems.take(encoded.indices), folded.take(encoded.indices))
    ways = pc.if_else(are_names, "", fold_words(shapes))
    return pc.binary_join_element_wise(pa.array(kinds).cast(pa.string()), ways, forms, PLACEHOLDER)


def _are_names(kinds: Int8) -> pa.BooleanArray:
    return pa.array(np.isin(kinds, [TYPES.index(kind) for kind in NAME_TYPES]))
