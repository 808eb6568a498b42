"""First names, surnames, places and nationalities among a text's words, by public lists and the words beside them.

This decides how a text looks, never what is protected: it is no detector of personal data. Names of several words,
names that the lists lack and names with another ending than ``'s`` are missed.

A word of the lists is a name

- if it is no ordinary word of the language: in any case (``alice``);
- if it is a rare ordinary word: with a capital (``John``);
- if it has three letters or fewer, in both of these: with a capital, not all in capitals (``Jim``, not ``ISA``);
- if it is an ordinary word: with a capital, not all in capitals, and inside a sentence (``with Rose``): not first in
  the text, nor after a line break, a quotation mark or one of ``. ! ? :``;
- if it is written with a capital anyway (``May``; German nouns): only beside a name, as the next rules say.

With a capital, any surname of the lists counts right after a first name, also with initials between (``Will Smith``,
``John F. Kennedy``), and after a form of address (``Mrs. May``). Any first name with a capital counts right before a
surname that counts. A word that is both a first name and a surname is a surname in these positions, else a first name.
A word that is both a name and a place is a place after a word such as "in"; else a first name if it is in that list,
else a place.

A nationality follows the first rules too, by its own level: ``French`` needs a capital and nothing beside it. A word
that is a nationality and a surname is a surname where the rules of surnames say so (``Mrs. French``), else a
nationality. One that is a first name or a place as well is a nationality only where it is neither.

``Alice's`` counts as ``Alice`` does: the ending is a part of the token.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int8, Int32, Int64, UInt8
from wordveil.compiled import compiled, compiled_part, inlined
from wordveil.embeddings.vocabulary import find, hash_bytes, view_strings
from wordveil.text.scanner import A_WORD, Scanned
from wordveil.text.types.classes import TYPES, TokenType
from wordveil.text.types.finders.characters import Whole
from wordveil.text.types.lists import FIRST, LOCATIVE, LOOK_UP, NATION, NO_NAME, PLACE, SUR, TITLE, PublicLists

_FIRST_KIND = TYPES.index(TokenType.FIRST_NAME)
_SUR_KIND = TYPES.index(TokenType.SURNAME)
_PLACE_KIND = TYPES.index(TokenType.PLACE)
_NATION_KIND = TYPES.index(TokenType.NATIONALITY)
_NAMES = FIRST | SUR | PLACE
# The longest word of the lists is shorter.
_ROOM = 64
# Shorter words in capitals are mostly abbreviations.
_SHORT = 3
# Gaps between words.
_NONE, _SPACE, _POINT, _END, _OTHER = 0, 1, 2, 3, 4
_NO_MATCHES = np.array([LOOK_UP], np.int32)


def find_names(scanned: Scanned, lists: PublicLists, matches: Int32 = _NO_MATCHES) -> Int8:
    """The class of each token: int8 ``(tokens,)``. Where it is a word that is a name, it is the index of a class of
    NAME_TYPES in :data:`wordveil.text.types.classes.TYPES`; otherwise what ``scanned`` says. The work is linear in the
    bytes. ``matches``: by :meth:`NameTable.match`, of the words of the index that ``scanned`` has numbers of.
    """
    kinds = scanned.kinds.copy()
    table = lists.names
    index = (table.index.data, table.index.offsets, table.index.slots)
    tokens = (view_strings(scanned.texts)[0], scanned.starts, scanned.ends, scanned.offsets, scanned.numbers)
    _find(*tokens, matches, *index, table.roles, table.levels, table.nation_levels, kinds)
    return kinds


@inlined
def _kind_of_gap(text: UInt8, start: int, stop: int) -> int:
    """What stands between two words: one space, one point and a space, the end of a sentence, or something else."""
    length = stop - start
    if length == 1 and text[start] == 0x20:
        return _SPACE
    if length == 2 and text[start] == 0x2E and text[start + 1] == 0x20:
        return _POINT
    for offset in range(start, stop):
        byte = text[offset]
        # . ! ? : " newline and return, and U+201C to U+201F
        if byte in (0x2E, 0x21, 0x3F, 0x3A, 0x22, 0x0A, 0x0D):
            return _END
        if byte == 0xE2 and offset + 2 < stop and text[offset + 1] == 0x80 and 0x9C <= text[offset + 2] <= 0x9F:
            return _END
    return _OTHER


@compiled_part
def _fold(text: UInt8, start: int, stop: int, room: UInt8) -> tuple[int, bool, bool]:
    """Put a word into ``room`` in lower case, for letters below U+0180. Its length there, whether its first letter is a
    capital, and whether it has a letter in lower case.
    """
    length = 0
    capital = False
    lower = False
    offset = start
    while offset < stop:
        byte = text[offset]
        if byte < 0x80:
            up = 0x41 <= byte <= 0x5A
            lower |= 0x61 <= byte <= 0x7A
            room[length] = byte + 0x20 if up else byte
            length += 1
            width = 1
        elif 0xC3 <= byte <= 0xC5 and offset + 1 < stop:
            point = (np.int64(byte & 0x1F) << 6) | np.int64(text[offset + 1] & 0x3F)
            up = False
            if point < 0x100:
                up = point <= 0xDE and point != 0xD7
                lowered = point + 0x20 if up else point
            elif point in (0x130, 0x131, 0x138, 0x149, 0x178, 0x17F):
                lowered = point
            else:
                odd = 0x139 <= point <= 0x148 or point >= 0x179
                up = (point & 1) == (1 if odd else 0)
                lowered = point + 1 if up else point
            lower |= not up
            room[length] = np.uint8(0xC0 | (lowered >> 6))
            room[length + 1] = np.uint8(0x80 | (lowered & 0x3F))
            length += 2
            width = 2
        else:  # other scripts, marks, U+2019: compared as they are
            up = False
            room[length] = byte
            length += 1
            width = 1
        if offset == start:
            capital = up
        offset += width
    return length, capital, lower


@compiled_part
def _stem(room: UInt8, length: int) -> int:
    """The length of a folded word without ``'s``."""
    if length > 3 and room[length - 1] == 0x73:
        if room[length - 2] == 0x27:
            return length - 2
        if length > 5 and room[length - 2] == 0x99 and room[length - 3] == 0x80 and room[length - 4] == 0xE2:
            return length - 4
    return length


@inlined
def _look_up(match: Whole, room: UInt8, length: int, data: UInt8, offsets: Int64, slots: Int32) -> int:
    """The number of the folded word in the lists, or :data:`NO_NAME`."""
    if match == LOOK_UP:
        return find(hash_bytes(room, 0, length), room, length, data, offsets, slots)
    # Another letter than the word of the vocabulary has, such as U+0130 for "i", takes another number of bytes.
    return match if offsets[match + 1] - offsets[match] == length else NO_NAME


@compiled_part
def _is_certain(level: np.uint8, short: bool, capital: bool, titled: bool, inside: bool) -> bool:  # noqa: FBT001
    """Whether a word of the lists is a name without another name beside it. ``titled``: a capital and small letters;
    ``inside``: not first in a sentence.
    """
    if level == 2:
        return titled and inside
    if level == 1:
        return titled or (capital and not short)
    return level == 0 and (titled or not short)


@compiled
def _find(
    text: UInt8,
    starts: Int32,
    ends: Int32,
    offsets: Int64,
    numbers: Int32,
    matches: Int32,
    data: UInt8,
    name_offsets: Int64,
    name_slots: Int32,
    all_roles: UInt8,
    all_levels: UInt8,
    nation_levels: UInt8,
    kinds: Int8,
) -> None:
    """Fill ``kinds``, from left to right. The last arrays but that are those of
    :class:`wordveil.text.types.lists.NameTable`.
    """
    room = np.zeros(_ROOM + 8, np.uint8)
    for record in range(len(offsets) - 1):
        before_roles = np.uint8(0)  # of the word before
        before_capital = False
        is_open = False  # whether the word before is a first name, or an initial after one
        initial = False  # whether the word before is a single capital
        for word in range(offsets[record], offsets[record + 1]):
            start, stop = starts[word], ends[word]
            roles, level, nation_level = np.uint8(0), np.uint8(0), np.uint8(0)
            capital, lower, length = False, False, 0
            kind: Whole = np.int64(kinds[word])  # a token that was found already says nothing about its neighbours
            match = matches[numbers[word]] if kind == A_WORD and stop - start <= _ROOM else np.int32(NO_NAME)
            if match != NO_NAME:
                length, capital, lower = _fold(text, start, stop, room)
                length = _stem(room, length)
                listing = _look_up(match, room, length, data, name_offsets, name_slots)
                if listing >= 0:
                    roles, level, nation_level = all_roles[listing], all_levels[listing], nation_levels[listing]
            gap = _NONE
            if word > offsets[record] and (is_open or roles & (_NAMES | NATION)):
                gap = _kind_of_gap(text, ends[word - 1], start)
            after_first = is_open and (gap == _SPACE or (initial and gap == _POINT))
            if roles & (_NAMES | NATION):
                after_title = before_roles & TITLE and gap in (_SPACE, _POINT)
                inside = gap in (_SPACE, _OTHER)
                short, titled = length <= _SHORT, capital and lower
                certain = roles & _NAMES and _is_certain(level, short, capital, titled, inside)
                named = certain or (capital and roles & FIRST and after_title)
                national = roles & NATION and _is_certain(nation_level, short, capital, titled, inside)
                if roles & SUR and (capital or level == 0) and (after_first or after_title):
                    kind = _SUR_KIND
                elif named or national:
                    located = capital and gap == _SPACE and before_roles & LOCATIVE
                    fit = (roles & _NAMES if named else 0) | (NATION if national else 0)
                    kind = _choose(np.uint8(fit), before_roles if located else np.uint8(0))
                first_before = before_roles & FIRST and not before_roles & TITLE and before_capital and gap == _SPACE
                if certain and capital and roles & SUR and first_before and kinds[word - 1] == A_WORD:
                    kinds[word - 1] = _FIRST_KIND
                    kind = _SUR_KIND
            kinds[word] = kind
            initial = length == 1 and capital
            is_open = kind == _FIRST_KIND or (initial and after_first)
            before_roles, before_capital = roles, capital


@compiled
def _choose(roles: np.uint8, before: np.uint8) -> int:
    """The class of a name that no first name precedes, by its roles in which it is no ordinary word here, and by those
    of the word right before it, if any.
    """
    if roles & PLACE and (before & LOCATIVE or not roles & FIRST):
        return _PLACE_KIND
    if roles & FIRST:
        return _FIRST_KIND
    if roles & NATION:
        return _NATION_KIND
    return _SUR_KIND
