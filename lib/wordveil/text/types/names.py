"""First names, surnames, places and nationalities among a text's words, by public lists and the words beside them.

Names change how the output looks, never what is protected: this is no detector of personal data. docs/types.md says
what is found and missed.

A word of the lists is a name

- if it is no ordinary word of the language: in any case (``alice``);
- if it is a rare ordinary word: with a capital (``John``);
- if it has three letters or fewer, in both of these: with a capital, not all in capitals (``Jim``, not ``ISA``);
- if it is an ordinary word that has a capital mostly as a name: with a capital, not all in capitals unless both
  neighbours are words in small letters (``Smith called``);
- if it is another ordinary word: with a capital, not all in capitals, and inside a sentence (``with Young``): not first
  in the text, nor after a line break, a quotation mark or one of ``. ! ? :``; or first, and with ``'s``, alone in its
  line, cell, quotation marks or brackets, or before a verb of persons (``Young said``);
- if it is written with a capital anyway (``May``; German nouns): only beside a name by the rules below, alone in its
  line or cell, or before a verb of persons.

With a capital, any surname of the lists counts right after a first name, also with initials or a line break between
(``Will Smith``, ``John F. Kennedy``), after a form of address (``Mrs. May``) or initials (``J. May``), and before
initials (``May, J.``). A surname also counts before a first name, a comma between or not (``Smith, John``), or at the
head of a list of surnames. Any first name with a capital counts right before a surname that counts. A word that is both
a first name and a surname is a surname in these positions, else a first name. A word that is both a name and a place is
a place after a word such as "in"; else a first name if it is in that list, else a place.

In any case a name counts after a label and a sign (``From: smith``), beside ``_ @ = %`` and a backslash, between
slashes, beside a name or an initial with nothing but a sign between (``john.smith``), and after Mr, Mrs or Ms, which
any word with a capital follows as a surname (``Ms. An``). A word that no list has is a surname, with a capital and
small letters, after a first name, a form of address, an initial, a label, a part of surnames (``van der Berg``) or a
hyphen after a name, and where it begins like ``McAdam``, ``O'Hara`` or ``D'Angelo``; it is a first name right before a
surname.

A nationality follows the first rules too, by its own level: ``French`` needs only a capital. A word that is a
nationality and a surname is a surname if a rule of surnames applies (``Mrs. French``), else a nationality. One that is
a first name or a place as well is a nationality only if it is neither in the text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Int8, Int32, Int64, UInt8
from wordveil.compiled import compiled, compiled_part, inlined
from wordveil.embeddings.vocabulary import find, hash_bytes, view_strings
from wordveil.text.scanner import A_WORD, CAPITAL, HAS_DIGIT, LOWER, Scanned
from wordveil.text.types.classes import TYPES
from wordveil.text.types.contexts import (
    BLANK,
    BRIEF,
    CELL,
    COMMA,
    END,
    HYPHEN,
    INITIAL,
    LABELLED,
    LINE,
    NO_GAP,
    OWNING,
    PERSON,
    POINT,
    SMALL,
    TIGHT,
    TITLED,
    UNLISTED,
    WITH_CAPITAL,
    follows_initial,
    is_alone,
    is_branded,
    is_certain,
    is_this_word,
    is_written_small,
    read_gap,
)
from wordveil.text.types.finders.characters import Whole
from wordveil.text.types.lists import (
    CAPITALISED,
    COMMON,
    FIRST,
    LABEL,
    LOCATIVE,
    LOOK_UP,
    MOSTLY,
    NATION,
    NO_NAME,
    ORDINARY,
    PARTICLE,
    PLACE,
    RARE,
    SUR,
    TITLE,
    VERB,
    PublicLists,
)  # fmt: skip

_FIRST_KIND, _SUR_KIND, _PLACE_KIND, _NATION_KIND, _MARKUP_KIND = (
    np.int64(TYPES.index(kind)) for kind in ("first_name", "surname", "place", "nationality", "markup")
)
_NAMES = FIRST | SUR | PLACE
# In bytes; all words of the lists are shorter.
_ROOM = 64
# Shorter words in capitals are mostly abbreviations.
_SHORT = 3
_CASES = 3
_NO_MATCHES = np.array([LOOK_UP], np.int32)


def find_names(scanned: Scanned, lists: PublicLists, matches: Int32 = _NO_MATCHES) -> Int8:
    """Classify each token: int8 ``(tokens,)``, in time linear in the bytes.

    A name has the index of its class in :data:`wordveil.text.types.classes.TYPES`, other tokens their class in
    ``scanned``. ``matches``: from :meth:`NameTable.match`, for the words of ``scanned.numbers``.
    """
    kinds = scanned.kinds.copy()
    table = lists.names
    index = (table.index.data, table.index.offsets, table.index.slots)
    text = view_strings(scanned.texts)
    tokens = (text[0], text[1], scanned.starts, scanned.ends, scanned.offsets, scanned.numbers, scanned.forms)
    knows_words = len(lists.context["ordinary"]) > 0
    _find(*tokens, matches, *index, table.roles, table.levels, table.nation_levels, knows_words, kinds)
    return kinds


@compiled_part
def _fold(text: UInt8, start: Whole, stop: Whole, room: UInt8) -> Whole:
    """Write a word to ``room`` with letters below U+0180 in lower case, and return its length there."""
    length = 0
    offset = start
    while offset < stop:
        byte = text[offset]
        if byte < 0x80:
            up: Whole = 0x41 <= byte <= 0x5A
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
            room[length] = np.uint8(0xC0 | (lowered >> 6))
            room[length + 1] = np.uint8(0x80 | (lowered & 0x3F))
            length += 2
            width = 2
        else:  # other scripts, marks, U+2019: compared as they are
            room[length] = byte
            length += 1
            width = 1
        offset += width
    return length


@compiled_part
def _stem(room: UInt8, length: Whole) -> Whole:
    """Return the length of a folded word without ``'s``."""
    if length > 3 and room[length - 1] == 0x73:
        if room[length - 2] == 0x27:
            return length - 2
        if length > 5 and room[length - 2] == 0x99 and room[length - 3] == 0x80 and room[length - 4] == 0xE2:
            return length - 4
    return length


@inlined
def _look_up(match: Whole, room: UInt8, length: Whole, data: UInt8, offsets: Int64, slots: Int32) -> Whole:
    """Return the number of the folded word in the lists, or :data:`NO_NAME`."""
    if match == LOOK_UP:
        return find(hash_bytes(room, 0, length), room, length, data, offsets, slots)
    # A letter that differs from the vocabulary's word, such as U+0130 for "i", takes another number of bytes.
    return match if offsets[match + 1] - offsets[match] == length else NO_NAME


@compiled
def _find(
    text: UInt8,
    edges: Int64,
    starts: Int32,
    ends: Int32,
    offsets: Int64,
    numbers: Int32,
    forms: UInt8,
    matches: Int32,
    data: UInt8,
    name_offsets: Int64,
    name_slots: Int32,
    all_roles: NDArray[np.uint16],
    all_levels: UInt8,
    nation_levels: UInt8,
    knows_words: bool,  # noqa: FBT001
    kinds: Int8,
) -> None:
    """Fill ``kinds`` from left to right, with the arrays of :class:`wordveil.text.types.lists.NameTable`."""
    room = np.zeros(_ROOM + 8, np.uint8)
    letters = np.full(0x80, LOOK_UP, np.int32)  # the numbers of single letters, once looked up
    # The entry after a record's last token is empty: the next record's tokens overwrite it later.
    size = len(starts) + 1
    roles, levels, nations = np.empty(size, np.uint16), np.empty(size, np.uint8), np.empty(size, np.uint8)
    flags, gaps = np.empty(size, np.uint16), np.empty(size, np.int32)
    for record in range(len(offsets) - 1):
        first, last = offsets[record], offsets[record + 1]
        some: Whole = False
        for word in range(first, last):
            start, stop = np.int64(starts[word]), np.int64(ends[word])
            roles[word], levels[word], nations[word] = 0, 0, 0
            form = forms[word] & _CASES
            flag = np.int64(0)
            if kinds[word] == A_WORD:
                length: Whole = stop - start
                match = matches[numbers[word]] if length <= _ROOM else np.int32(NO_NAME)
                if length == 1:
                    match = letters[text[start]]
                listing: Whole = np.int64(match)
                bare: Whole = name_offsets[match + 1] - name_offsets[match] if match >= 0 else np.int64(-_ROOM)
                # A word of as many bytes as the name, with or without 's, has only ASCII letters. Most words do.
                if length == bare or (length == bare + 2 and text[stop - 2] == 0x27 and text[stop - 1] | 0x20 == 0x73):
                    length = bare
                elif match != NO_NAME:
                    length = _stem(room, _fold(text, start, stop, room))
                    listing = np.int64(_look_up(match, room, length, data, name_offsets, name_slots))
                    if stop - start == 1:
                        letters[text[start]] = listing
                if listing >= 0:
                    roles[word] = np.int64(all_roles[listing])
                    levels[word], nations[word] = all_levels[listing], nation_levels[listing]
                if form == LOWER:
                    flag |= SMALL
                else:
                    flag |= WITH_CAPITAL
                    if form == CAPITAL:
                        flag |= INITIAL if stop - start == 1 else TITLED
                    unlisted = knows_words and form == CAPITAL and length > 1 and not forms[word] & HAS_DIGIT
                    shouted = knows_words and form != CAPITAL and is_branded(text, start, stop)
                    if (unlisted or shouted) and not roles[word]:
                        flag |= UNLISTED
                if length < stop - start and length > 1:
                    flag |= OWNING
                if length <= _SHORT:
                    flag |= BRIEF
                some |= roles[word] & (_NAMES | NATION | TITLE | LABEL | PARTICLE) != 0 or flag & INITIAL != 0
                some |= flag & UNLISTED != 0
            flags[word] = flag
        if not some:
            continue
        outer = NO_GAP | END | CELL
        gaps[first] = outer | read_gap(text, edges[record], np.int64(starts[first])) & (CELL | LABELLED)
        gaps[last], roles[last], flags[last] = outer | LINE | COMMA, 0, 0
        _find_in_record(text, starts, ends, first, last, roles, levels, nations, flags, gaps, kinds)


@compiled
def _find_in_record(
    text: UInt8,
    starts: Int32,
    ends: Int32,
    first: Whole,
    last: Whole,
    roles: NDArray[np.uint16],
    levels: UInt8,
    nations: UInt8,
    flags: NDArray[np.uint16],
    gaps: Int32,
    kinds: Int8,
) -> None:
    """Fill ``kinds`` of a record's tokens by the arrays of their neighbours."""
    is_open = False  # whether the word before is a first name, or an initial or a part of surnames after one
    left_roles, left_flags = np.int64(0), np.int64(0)
    unread = first + 1  # the gaps from here on, but the last
    for word in range(first, last):
        role: Whole = np.int64(roles[word])
        flag: Whole = np.int64(flags[word])
        kind: Whole = np.int64(kinds[word])
        if kind != A_WORD:
            is_open, left_roles, left_flags = False, np.int64(0), np.int64(0)
            continue
        # The rules only apply to names, possible names, and words after a first name or a title.
        may_be_dot = ends[word] - starts[word] == 3 and text[starts[word]] | 0x20 == 0x64
        if not (is_open or left_roles & TITLE or role & (_NAMES | NATION) or flag & UNLISTED or may_be_dot):
            left_roles, left_flags = role, flag
            continue
        for other in range(max(unread, word - 1), min(word + 3, last)):
            start, stop = np.int64(ends[other - 1]), np.int64(starts[other])
            is_blank = stop - start == 1 and text[start] == 0x20
            gaps[other] = BLANK if is_blank else read_gap(text, start, stop)
            if kinds[other - 1] == _MARKUP_KIND or kinds[other] == _MARKUP_KIND:
                gaps[other] |= CELL
        unread = word + 3
        gap: Whole = np.int64(gaps[word])
        following: Whole = np.int64(gaps[word + 1])
        right_roles: Whole = np.int64(roles[word + 1])
        right_flags: Whole = np.int64(flags[word + 1])
        if word + 1 < last and kinds[word + 1] != A_WORD:
            right_roles, right_flags = np.int64(0), np.int64(0)
        level = np.int64(levels[word])
        large_right = right_flags & WITH_CAPITAL
        capital, titled = flag & WITH_CAPITAL != 0, flag & TITLED != 0
        initial_before = left_flags & INITIAL != 0
        after_first = is_open and (gap & (BLANK | LINE) != 0 or (initial_before and gap & POINT != 0))
        after_title = left_roles & TITLE and gap & (BLANK | POINT)
        labelled = left_roles & LABEL and gap & LABELLED
        # After a part of surnames that follows a first name ("bin Laden") an ordinary word may be the rest.
        rest = is_open and left_roles & PARTICLE and not left_roles & PERSON and role & COMMON and titled
        rest = rest and gap & (BLANK | HYPHEN) != 0
        # Mr, Mrs, Ms: "Mr. So", whatever the word is.
        mister = after_title and left_flags & BRIEF and text[starts[word - 1]] | 0x20 == 0x6D
        rest = rest or (mister and role & COMMON and titled and not (right_roles & TITLE and following & BLANK))
        if role & (_NAMES | NATION) or flag & UNLISTED or rest:
            letter = np.int64(text[starts[word - 1]]) if initial_before else np.int64(0)
            vague = letter in (0x41, 0x49) or (gap & BLANK and level == ORDINARY)  # "I Will", "A Rose"
            chained = word - 1 > first and flags[word - 2] & INITIAL and gaps[word - 1] & TIGHT
            state = chained and text[starts[word - 2]] == 0x55  # U.S., U.N.
            after_initial = initial_before and capital and follows_initial(gap, letter, vague, state)
            dotted = right_flags & INITIAL and following & COMMA and text[starts[word + 1]] != 0x49
            before_initial = capital and dotted and gaps[min(word + 2, last)] & (POINT | END | TIGHT)
            hyphenated = gap & HYPHEN and left_flags & WITH_CAPITAL and word > first
            after_name = hyphenated and (kinds[word - 1] == _FIRST_KIND or kinds[word - 1] == _SUR_KIND)
            certain = False
            if role & (_NAMES | NATION):
                # Words that have a capital anyway: May, August, King.
                usual = level == CAPITALISED and role & PERSON
                certain = role & _NAMES and is_certain(np.uint8(level), flag, gap, following, left_flags, right_flags)
                acts = titled and right_roles & VERB and following & BLANK
                alone = usual and titled and is_alone(gap, following)
                certain = certain or alone or (acts and (usual or (role & PERSON and level == ORDINARY)))
                named = certain or (capital and role & FIRST and after_title)
                national = role & NATION and is_certain(nations[word], flag, gap, following, left_flags, right_flags)
                letter_before = word > first and ends[word - 1] - starts[word - 1] == 1
                letter_after = word + 1 < last and ends[word + 1] - starts[word + 1] == 1
                left_person = left_roles | (FIRST if letter_before else 0)
                right_person = right_roles | (FIRST if letter_after else 0)
                right_first = right_roles & FIRST and large_right and levels[word + 1] <= RARE
                right_sur = right_roles & SUR and large_right and levels[word + 1] in (0, RARE, MOSTLY)
                reversed_name = right_first and (
                    following & COMMA or (following & BLANK and not role & FIRST and (level != ORDINARY or not titled))
                )
                listed = right_sur and following & COMMA
                if right_flags & SMALL and right_flags & BRIEF and following & BLANK and word + 2 < last:
                    joined = is_this_word(text, np.int64(starts[word + 1]), np.int64(ends[word + 1]), 0x61, 0x6E, 0x64)
                    listed = listed or (
                        joined
                        and gaps[word + 2] & BLANK
                        and roles[word + 2] & SUR
                        and flags[word + 2] & WITH_CAPITAL
                        and levels[word + 2] in (0, RARE, MOSTLY)
                    )
                # Words that have a capital anyway only at the head of a line or cell: "May, Anna".
                heads = level != CAPITALISED or (following & COMMA and gap & (NO_GAP | LINE | CELL))
                ahead = capital and heads and not role & (PLACE | NATION) and (reversed_name or listed)
                ahead = ahead and (reversed_name or (level != CAPITALISED and not role & FIRST))
                beside = after_first or after_title or (capital and (after_initial or before_initial or after_name))
                greeted = after_title and (level <= RARE or level == MOSTLY or mister)
                small = labelled or greeted or is_written_small(level, gap, following, left_person, right_person)
                if role & SUR and (((capital or level == 0) and (beside or ahead)) or (small and not role & FIRST)):
                    kind = _SUR_KIND
                elif named or national:
                    located = capital and gap & BLANK and left_roles & LOCATIVE
                    fit = (role & _NAMES if named else 0) | (NATION if national else 0)
                    kind = _choose(np.uint8(fit), np.uint8(left_roles & 0xFF) if located else np.uint8(0))
                elif role & PERSON and (small or (after_name and capital)):
                    kind = _FIRST_KIND if role & FIRST else _SUR_KIND
                first_before = (
                    left_roles & FIRST and not left_roles & TITLE and left_flags & WITH_CAPITAL and gap & BLANK
                )
                if certain and capital and role & SUR and first_before and kinds[word - 1] == A_WORD:
                    kinds[word - 1] = _FIRST_KIND
                    kind = _SUR_KIND
            elif titled:
                near = (after_first and gap & LINE == 0) or after_title or labelled or after_name
                parted = left_roles & PARTICLE and gap & (BLANK | HYPHEN)
                sure = right_roles & SUR and large_right and levels[word + 1] <= RARE and following & BLANK
                if near or parted or (after_initial and letter != 0x41 and not vague) or before_initial:
                    kind = _SUR_KIND
                elif sure and gap & (NO_GAP | END) == 0:
                    kind = _FIRST_KIND
            if kind == A_WORD and capital and is_branded(text, np.int64(starts[word]), np.int64(ends[word])):
                kind = _SUR_KIND
        kinds[word] = kind
        if ends[word] - starts[word] == 3 and word - 3 >= first and kind == A_WORD:
            _name_before_dot(text, starts, ends, first, word, kinds, roles)
        is_initial = flag & INITIAL != 0
        particle = is_open and role & PARTICLE and gap & (BLANK | HYPHEN)
        is_open = kind == _FIRST_KIND or (is_initial and after_first) or (particle and kind == A_WORD)
        # Martin Luther King, Dr. Martin King.
        if kind == _SUR_KIND and role & FIRST and (after_first or after_title):
            is_open = True
        left_roles, left_flags = role, flag


@compiled_part
def _name_before_dot(
    text: UInt8, starts: Int32, ends: Int32, first: Whole, word: Whole, kinds: Int8, roles: NDArray[np.uint16]
) -> None:
    """Make the words of "john dot smith at mail dot org" names, unless they are ordinary words; ``word`` is "dot"."""
    dot = is_this_word(text, np.int64(starts[word]), np.int64(ends[word]), 0x64, 0x6F, 0x74)
    at = is_this_word(text, np.int64(starts[word - 2]), np.int64(ends[word - 2]), 0x61, 0x74, 0)
    if not dot or not at:
        return
    name = word - 3
    while name >= first and kinds[name] == A_WORD and not roles[name] & COMMON:
        kinds[name] = _FIRST_KIND if roles[name] & FIRST else _SUR_KIND
        start, stop = np.int64(starts[name - 1]), np.int64(ends[name - 1])
        if name < first + 2 or not is_this_word(text, start, stop, 0x64, 0x6F, 0x74):
            return
        name -= 2


@compiled
def _choose(roles: np.uint8, before: np.uint8) -> Whole:
    """Return the class of a name that no first name precedes.

    ``roles``: its roles in which it is no ordinary word here. ``before``: the roles of the word before it, if any.
    """
    if roles & PLACE and (before & LOCATIVE or not roles & FIRST):
        return _PLACE_KIND
    if roles & FIRST:
        return _FIRST_KIND
    if roles & NATION:
        return _NATION_KIND
    return _SUR_KIND
