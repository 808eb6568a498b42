"""Lists of words that decide which words clusters join, and which may be written for one.

The package has an English list of words of special categories (``data/word_lists/sensitive.tsv``), which
``mechanism.merge`` joins, and one of ordinary words (``ordinary.tsv``). `make word-lists` makes both from WordNet.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.assembly.word_tables import CASE, FittedWords, WordTable, read_word_table
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.mechanisms.inputs import ORDINARY, SENSITIVE, Groups
from wordveil.text.types.classes import LISTED_LANGUAGES
from wordveil.text.types.lists import PublicLists

_DATA = files("wordveil") / "data" / "word_lists"
_SENSITIVE, _ORDINARY = str(_DATA / "sensitive.tsv"), str(_DATA / "ordinary.tsv")
# An embedding counts as English if half of its first words, this many, are ordinary English words.
_FIRST = 1_000


def read_groups(source: str, setting: str) -> WordTable:
    """Read the table of ``mechanism.merge``. Raises :class:`wordveil.errors.PublicFileError` if it has a fault."""
    table = read_word_table(_SENSITIVE if source == SENSITIVE else source, setting, ("word", "group"))
    table.require_distinct(1)
    return WordTable(setting, source, table.columns)


def fit_groups(table: WordTable, to: FittedWords) -> Groups:
    """Fit groups to an embedding, numbered in the table's order.

    A word that names a group is in it, unless it is in another one.
    """
    ids = to.find(table.columns[0])
    if not (ids >= 0).any():
        raise table.error("has no word of the embedding.", f"Name another file. {CASE}")
    known = ids >= 0
    encoded = table.columns[1].filter(pa.array(known)).dictionary_encode()
    labels = np.full(len(to), -1, np.int32)
    labels[ids[known]] = np.asarray(encoded.indices)
    names = to.find(encoded.dictionary)
    named = np.flatnonzero(names >= 0)
    named = named[labels[names[named]] < 0]
    labels[names[named]] = named
    own = np.where(names >= 0, labels[names], -1) == np.arange(len(names))
    if to.source != SENSITIVE:
        to.note_unknown(ids)
    to.note(
        int((labels >= 0).sum()), f"words of {to.source} are in {len(names):,} groups, which nobody can tell apart."
    )
    return Groups(labels, np.where(own, names, -1).astype(np.int32))


def digest_sensitive() -> str:
    """Return the SHA-256 of the package's list of sensitive words, in hexadecimal."""
    return hashlib.sha256((_DATA / "sensitive.tsv").read_bytes()).hexdigest()


def read_writable(source: str, setting: str) -> WordTable:
    """Read the list of ``mechanism.written``. Raises :class:`wordveil.errors.PublicFileError` if it has a fault."""
    table = read_word_table(_ORDINARY if source == ORDINARY else source, setting, ("word",))
    table.require_distinct(1)
    return WordTable(setting, source, table.columns)


def fit_writable(table: WordTable, to: FittedWords) -> NDArray[np.bool_]:
    """Select the words of an embedding that may be written: bool ``(size,)``.

    They are those of a file or, for ``ordinary``, all except names and, if the embedding is English, words that the
    list lacks.
    """
    if to.source != ORDINARY:
        ids = to.find(table.columns[0])
        to.note_unknown(ids)
        chosen = np.zeros(len(to), np.bool_)
        chosen[ids[ids >= 0]] = True
        if not chosen.any():
            raise table.error("has no word of the embedding.", f"Name another file. {CASE}")
        return chosen
    words = pc.utf8_lower(to.words)
    listed = WordIndex(table.columns[0]).numbers(words) >= 0
    plain = ~find_names(words)
    if 2 * listed[:_FIRST].sum() < len(listed[:_FIRST]):
        listed = np.ones(len(to), np.bool_)
    chosen = np.asarray(listed & plain)
    to.note(int(chosen.sum()), f"of {len(to):,} words may be written: the others are names, or no ordinary words.")
    return chosen


def find_names(words: pa.StringArray) -> NDArray[np.bool_]:
    """Find names, places and nationalities of any language's list among lower-case words: bool ``(words,)``.

    A word with ``'s`` or a plural ending counts, too.
    """
    found = np.zeros(len(words), np.bool_)
    stems = pc.replace_substring_regex(words, "['\u2019]s?$", "")
    for forms in (words, stems, pc.replace_substring_regex(stems, "s$", "")):
        found |= _names().numbers(forms) >= 0
    return found


@cache
def _names() -> WordIndex:
    return WordIndex(pa.array(sorted(list_names()), pa.string()))


def list_names(*, world: bool = True) -> set[str]:
    """List names, places and nationalities of all lists, in lower case.

    ``world``: include names that are never drawn.
    """
    lists = [PublicLists.load(language) for language in LISTED_LANGUAGES]
    kinds = [names for one in lists for names in (one.first_names, one.surnames, one.places, one.nationalities)]
    kinds += [names for one in lists for names, _ in one.others.values() if world]
    return {name for names in kinds for name in pc.utf8_lower(names).to_pylist()}


@cache
def digest_ordinary() -> str:
    """Return the SHA-256 of all data that decide which words are ordinary, in hexadecimal."""
    digest = hashlib.sha256((_DATA / "ordinary.tsv").read_bytes())
    digest.update("".join(f"{name}\n" for name in sorted(list_names())).encode())
    return digest.hexdigest()
