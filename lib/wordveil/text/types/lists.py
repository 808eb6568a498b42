"""Public lists of names, places, nationalities, words and emoji, which identify names and from which values are drawn.

They come with the package (``data/lists``, made by `make lists` from public sources). A bundle has the bytes of
:meth:`PublicLists.serialise`, so that a release keeps its lists when the package changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Int32, Int64, UInt8
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.types.classes import LISTED_LANGUAGES as LANGUAGES

FIRST, SUR, PLACE = 1, 2, 4
"""Bits of :attr:`NameTable.roles`: a first name, a surname, a place."""
TITLE, LOCATIVE = 8, 16
"""More bits: a form of address that a surname follows ("Mrs"); a word that a place follows ("in")."""
NATION = 32
"""One more bit: a nationality ("Austrian", "Austrians")."""
COMMON, LABEL, PARTICLE, VERB = 64, 128, 256, 512
"""More bits: an ordinary word in no list of names; a word that a name follows after a sign ("Patient:"); a part of
surnames ("van"); a verb of what persons do ("said").
"""

CERTAIN, RARE, ORDINARY, CAPITALISED, MOSTLY = 0, 1, 2, 3, 4
"""Levels of a name, as in :attr:`NameTable.levels`: no ordinary word; a rare one ("john"); an ordinary word ("young");
one with a capital as well ("May", German nouns); one with a capital mostly as a name ("Smith").
"""
_BY_STRENGTH = (CERTAIN, RARE, MOSTLY, ORDINARY, CAPITALISED)

NO_NAME, LOOK_UP = -1, -2
"""Results of :meth:`NameTable.match` for a word that is no name, and for one whose tokens must be looked at."""

_HEADER = "wordveil-lists\t1"
_NAMES = {"first_name": FIRST, "surname": SUR, "place": PLACE}
_OTHER = ("word", "emoji", "title", "locative")
# Lists of most languages have no nationalities.
_NATIONALITY = "nationality"
_OTHER_NAMES = {"other_first_name": FIRST, "other_surname": SUR}
_CONTEXT = {"label": LABEL, "verb": VERB, "particle": PARTICLE, "ordinary": COMMON}
_RANKED = (*_NAMES, _NATIONALITY, *_OTHER_NAMES)
_ALL = (*_NAMES, *_OTHER, _NATIONALITY, *_OTHER_NAMES, *_CONTEXT)


@dataclass(frozen=True)
class NameTable:
    """Names of all lists, folded like :func:`wordveil.text.tokeniser.fold_words`, each once.

    ``index``: finds a folded word's number. ``roles``: uint16 ``(names,)``, bits of its lists. ``levels``: uint8
    ``(names,)``, as a name or place. ``nation_levels``: uint8 ``(names,)``, as a nationality: "French" may have a
    capital without being a surname.
    """

    index: WordIndex
    roles: NDArray[np.uint16]
    levels: UInt8
    nation_levels: UInt8

    def match(self, words: pa.StringArray) -> Int32:
        """Return each word's number as a name, in any case and with ``'s``, or :data:`NO_NAME`: int32 ``(words + 1,)``.

        Single letters, words with letters beyond ASCII, and the last entry, for other tokens, have :data:`LOOK_UP`.
        """
        stems = pc.replace_substring_regex(pc.ascii_lower(words), r"(?s)(..)'s$", r"\1")
        is_matched = pc.and_(pc.string_is_ascii(words), pc.not_equal(pc.binary_length(words), 1))
        return np.append(np.where(is_matched, self.index.numbers(stems), LOOK_UP), LOOK_UP).astype(np.int32)


@dataclass(frozen=True)
class PublicLists:
    """Lists of one language, sorted by bytes, in normalisation form C, without duplicates.

    ``language``: ISO 639-1 code. ``first_names``, ``surnames``, ``places``, ``nationalities``: string arrays of single
    words in their usual case; most languages have no nationalities. ``name_levels``, ``nation_levels``: int64 of their
    lengths (:data:`CERTAIN` and the like). ``words``: lower-case words of ASCII letters, for addresses, mentions and
    hashtags. ``emoji``: single characters. ``titles``, ``locatives``: in lower case, forms of address and words that a
    place follows. ``others``: names of the world, found and never drawn, with their levels. ``context``: in lower case,
    words beside names (``label``, ``verb``, ``particle``), and ``ordinary`` words that no other list has.
    """

    language: str
    first_names: pa.StringArray
    surnames: pa.StringArray
    places: pa.StringArray
    name_levels: tuple[Int64, Int64, Int64]
    words: pa.StringArray
    emoji: pa.StringArray
    titles: pa.StringArray
    locatives: pa.StringArray
    nationalities: pa.StringArray
    nation_levels: Int64
    others: Mapping[str, tuple[pa.StringArray, Int64]]
    context: Mapping[str, pa.StringArray]

    @classmethod
    def load(cls, language: str) -> PublicLists:
        """Load the lists of the package. Raises :class:`ValueError` for a language outside :data:`LANGUAGES`."""
        if language not in LANGUAGES:
            raise ValueError(f"There are no public lists for {language!r}. There are lists for {', '.join(LANGUAGES)}.")
        return _load(language)

    @classmethod
    def from_bytes(cls, content: bytes) -> PublicLists:
        """Parse the lists that :meth:`serialise` wrote. Raises :class:`ValueError` for other bytes."""
        language, values, levels = _parse(content)
        if empty := [kind for kind in (*_NAMES, *_OTHER) if not len(values[kind])]:
            raise ValueError(f"The public lists have no {' and no '.join(empty)}.")
        return cls._of(language, values, levels)

    @classmethod
    def _of(cls, language: str, values: Mapping[str, pa.StringArray], levels: Mapping[str, Int64]) -> PublicLists:
        first, sur, place = (values[kind] for kind in _NAMES)
        of_first, of_sur, of_place = (levels[kind] for kind in _NAMES)
        words, emoji, titles, locatives = (values[kind] for kind in _OTHER)
        return cls(
            *(language, first, sur, place, (of_first, of_sur, of_place)),
            *(words, emoji, titles, locatives),
            *(values[_NATIONALITY], levels[_NATIONALITY]),
            others={kind: (values[kind], levels[kind]) for kind in _OTHER_NAMES},
            context={kind: values[kind] for kind in _CONTEXT},
        )

    def serialise(self) -> bytes:
        """Serialise the lists as UTF-8, one entry a line; equal lists have equal bytes."""
        lines = [_HEADER, f"language\t{self.language}"]
        plain = dict(zip(_OTHER, (self.words, self.emoji, self.titles, self.locatives), strict=True))
        ranked, plain = {**self.ranked, **self.others}, {**plain, **self.context}
        for kind in _ALL:
            if kind in ranked:
                array, levels = ranked[kind]
                lines += [f"{kind}\t{name}\t{level}" for name, level in zip(array.to_pylist(), levels, strict=True)]
            else:
                lines += [f"{kind}\t{value}" for value in plain[kind].to_pylist()]
        return ("\n".join(lines) + "\n").encode()

    @property
    def ranked(self) -> dict[str, tuple[pa.StringArray, Int64]]:
        """Names of the classes of :data:`wordveil.text.types.classes.NAME_TYPES` by their list, with their levels."""
        names = zip((self.first_names, self.surnames, self.places), self.name_levels, strict=True)
        return {**dict(zip(_NAMES, names, strict=True)), _NATIONALITY: (self.nationalities, self.nation_levels)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of :meth:`serialise`, in hex."""
        return hashlib.sha256(self.serialise()).hexdigest()

    @cached_property
    def written_nationalities(self) -> pa.StringArray:
        """Nationalities to draw, without plurals: "an Austrian" never becomes "an Estonians"."""
        plurals = pc.is_in(self.nationalities, pc.binary_join_element_wise(self.nationalities, "s", ""))
        return self.nationalities.filter(pc.invert(plurals))

    @cached_property
    def names(self) -> NameTable:
        """Table in which :func:`wordveil.text.types.names.find_names` looks words up."""
        kinds = zip((FIRST, SUR, PLACE), (self.first_names, self.surnames, self.places), self.name_levels, strict=True)
        ranked = [*kinds, *((bit, *self.others[kind]) for kind, bit in _OTHER_NAMES.items())]
        plain = [(TITLE, self.titles), (LOCATIVE, self.locatives)]
        plain += [(bit, self.context[kind]) for kind, bit in _CONTEXT.items()]
        ranked += [(bit, array, np.zeros(len(array), np.int64)) for bit, array in plain]
        arrays = [*(array for _, array, _ in ranked), self.nationalities]
        folded = pc.utf8_lower(pa.concat_arrays(arrays)).dictionary_encode()
        numbers = folded.indices.to_numpy()
        bits = np.repeat(np.array([*(bit for bit, _, _ in ranked), NATION], np.uint16), [*map(len, arrays)])
        own, nations = np.split(numbers, [len(numbers) - len(self.nationalities)])
        roles = np.zeros(len(folded.dictionary), np.uint16)
        np.bitwise_or.at(roles, numbers, bits)
        strengths = np.zeros(len(roles), np.int64)
        np.maximum.at(strengths, own, np.argsort(_BY_STRENGTH)[np.concatenate([ranks for _, _, ranks in ranked])])
        nation_levels = np.zeros(len(roles), np.uint8)
        nation_levels[nations] = self.nation_levels
        levels = np.array(_BY_STRENGTH, np.uint8)[strengths]
        return NameTable(WordIndex(folded.dictionary), roles, levels, nation_levels)

    @cached_property
    def plain_first_names(self) -> pa.StringArray:
        """First names in lower-case ASCII letters, for addresses; sorted, without duplicates."""
        return _plain(self.first_names)

    @cached_property
    def plain_surnames(self) -> pa.StringArray:
        """Surnames in lower-case ASCII letters, for addresses; sorted, without duplicates."""
        return _plain(self.surnames)


@cache
def _load(language: str) -> PublicLists:
    if language == "en":
        return PublicLists.from_bytes(_read(language))
    # All other languages share one list of the world's names, without the names that they have themselves.
    _, values, levels = _parse(_read(language))
    known = pc.utf8_lower(pa.concat_arrays([*values.values(), pa.array([language])]))
    _, others, ranks = _parse(_read("world"))
    for kind, names in others.items():
        is_new = pc.invert(pc.is_in(pc.utf8_lower(names), known))
        values[kind] = pa.concat_arrays([values[kind], names.filter(is_new)])
        levels[kind] = np.append(levels[kind], ranks[kind][is_new.to_numpy(zero_copy_only=False)])
    return PublicLists._of(language, values, levels)  # noqa: SLF001 - its other constructor


def _read(name: str) -> bytes:
    return (files("wordveil") / "data" / "lists" / f"{name}.tsv").read_bytes()


def _parse(content: bytes) -> tuple[str, dict[str, pa.StringArray], dict[str, Int64]]:
    """Parse the lists' language, and for each kind its values and their levels, 0 if it has none.

    Raises :class:`ValueError` as :meth:`PublicLists.from_bytes` does.
    """
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise ValueError("These are not the bytes of public lists: they are not UTF-8.") from None
    if lines[0] != _HEADER or lines[-1] or len(lines) < 3 or not lines[1].startswith("language\t"):
        raise ValueError(f"These are not the bytes of public lists: the first line must be {_HEADER!r}.")
    fields = pc.split_pattern(pa.array(lines[2:-1], pa.string()), "\t")
    counts, kinds = pc.list_value_length(fields).to_numpy(), pc.list_element(fields, 0)
    wanted = 2 + pc.is_in(kinds, pa.array(_RANKED)).to_numpy(zero_copy_only=False)
    wrong = (counts != wanted) | ~pc.is_in(kinds, pa.array(_ALL)).to_numpy(zero_copy_only=False)
    if np.any(wrong):
        raise ValueError(f"Line {np.argmax(wrong) + 3} of the public lists cannot be read.")
    cells, starts = fields.flatten(), np.cumsum(counts) - counts
    values, levels = dict[str, pa.StringArray](), dict[str, Int64]()
    for kind in _ALL:
        own = starts[pc.equal(kinds, kind).to_numpy(zero_copy_only=False)]
        values[kind] = cells.take(pa.array(own + 1))
        levels[kind] = np.zeros(len(own), np.int64)
        if kind in _RANKED:
            ranks = cells.take(pa.array(own + 2))
            if not pc.all(pc.is_in(ranks, pa.array(["0", "1", "2", "3", "4"])), min_count=0).as_py():
                raise ValueError("The public lists have a name whose level is not 0, 1, 2, 3 or 4.")
            levels[kind] = ranks.cast(pa.int64()).to_numpy()
    return lines[1].split("\t")[1], values, levels


def _plain(names: pa.StringArray) -> pa.StringArray:
    """Convert names to lower case without marks, and keep those of letters from a to z."""
    bare = pc.utf8_lower(pc.replace_substring_regex(pc.utf8_normalize(names, form="NFKD"), r"\p{M}", ""))
    kept = bare.filter(pc.match_substring_regex(bare, "^[a-z]+$"))
    return pa.array(sorted(set(kept.to_pylist())), pa.string())
