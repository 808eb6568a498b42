"""Public passages: read from a file of texts, tidied, and marked if they name a person, a number or the like."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wordveil.arrays import Bool, Int32, Int64
from wordveil.assembly.word_tables import FittedWords
from wordveil.embeddings.embedding import digest_files
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import PublicFileError
from wordveil.mechanisms.inputs import WORDNET, PublicPassages
from wordveil.records.codec import cut_sentences
from wordveil.text.codec import Codec, Encoded
from wordveil.text.policy import TextPolicy
from wordveil.text.types.classes import CLASSES, LISTED_LANGUAGES
from wordveil.text.types.lists import PublicLists

_SHIPPED = str(files("wordveil") / "data" / "sentences" / "wordnet.parquet")
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_LINES = (".txt", ".text", ".txt.gz")
# Characters of a passage that is written, and words of one that are read.
_WRITTEN, _READ = 300, 1_000
# A passage has at least this many known words, and half of its words are known.
_FEWEST, _KNOWN = 3, 0.5


def digest_passages(source: str, setting: str) -> str:
    """Identify passages by their content: a SHA-256, hexadecimal. Raises :class:`PublicFileError`."""
    try:
        return digest_files(Path(_find(source)))
    except OSError as error:
        raise PublicFileError(
            f"{setting} = {source}: cannot be read ({error.strerror}). Name a file of texts."
        ) from None


def _find(source: str) -> str:
    return _SHIPPED if source == WORDNET else source


def read_passages(source: str, setting: str) -> pa.StringArray:
    """Read the texts of a file: lines of text, or a column of Parquet, JSON lines or CSV.

    The column is ``text``, or the only one of strings. Raises :class:`PublicFileError`.
    """
    where, path = f"{setting} = {source}", Path(_find(source))
    if not path.exists():
        raise PublicFileError(f"{where}: no such file. Name a file of public texts, or write {WORDNET}.")
    if path.name.endswith(_LINES):
        return _read_lines(path, where)
    (texts,) = read_strings(path, where, lambda schema: [_find_column(schema, where)], _LINES)
    return _require_texts(texts, where)


def read_strings(
    path: Path, where: str, choose: Callable[[pa.Schema], Sequence[str]], others: Sequence[str] = ()
) -> list[pa.StringArray]:
    """Read columns of Parquet, JSON lines or CSV as strings, without rows in which one of them is null.

    ``where``: the setting and the file, for messages. ``choose``: names the columns, given the schema. ``others``:
    endings of other formats that the caller reads. Raises :class:`PublicFileError`.
    """
    kind = "parquet" if path.is_dir() else _FORMATS.get(Path(path.name.removesuffix(".gz")).suffix)
    if kind is None:
        known = ", ".join([*_FORMATS, *others])
        raise PublicFileError(f"{where}: its name tells no format. Name a file that ends in {known}.")
    try:
        table = ds.dataset(path, format=kind)
        names = choose(table.schema)
        columns = [column.cast(pa.string()) for column in table.to_table(columns=names).columns]
        found = pa.table(columns, names=names).drop_null()
        found.validate(full=True)
    except (pa.ArrowException, OSError):
        raise PublicFileError(f"{where}: cannot be read as {kind}. Repair the file, or name another.") from None
    return [column.combine_chunks() for column in found.columns]


def _find_column(schema: pa.Schema, where: str) -> str:
    """Find the column of passages: ``text``, or the only one of strings."""
    strings = [field.name for field in schema if is_text(field.type)]
    if "text" in schema.names and "text" not in strings:
        raise PublicFileError(f"{where}: its column `text` is {schema.field('text').type}. Write texts there.")
    if "text" not in strings and len(strings) != 1:
        raise PublicFileError(
            f"{where}: has no column `text`, and {len(strings)} columns of strings ({list_names(strings)}). "
            "Name the column of passages `text`."
        )
    return "text" if "text" in strings else strings[0]


def list_names(names: Sequence[str]) -> str:
    """List names of columns for a message, unless they look like texts, as those of a file without a header do."""
    is_name = all(re.fullmatch(r"[\w.-]{1,40}", name) for name in names)
    return ", ".join(names) if names and is_name else "names that look like texts" if names else "none"


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type has strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _require_texts(texts: pa.StringArray, where: str) -> pa.StringArray:
    """Return ``texts``. Raise :class:`PublicFileError` if there are none."""
    if not len(texts):
        raise PublicFileError(f"{where}: has no text. Name a file of public texts, or write {WORDNET}.")
    return texts


def _read_lines(path: Path, where: str) -> pa.StringArray:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return _require_texts(pa.array(data.decode("utf-8-sig").splitlines(), pa.string()), where)
    except UnicodeDecodeError:
        raise PublicFileError(f"{where}: is no text in UTF-8. Write it in UTF-8, a passage a line.") from None
    except (OSError, EOFError, zlib.error):
        raise PublicFileError(f"{where}: cannot be read. Repair the file, or name another.") from None


def fit_passages(texts: pa.StringArray, to: FittedWords) -> PublicPassages:
    """Tidy passages and find their words in an embedding.

    Left out are repeated passages, and those with fewer than three known words or more unknown than known ones, as
    texts of other languages have. Names of persons and places, numbers, addresses and the like are not read. Written
    are the other passages, or of long ones each sentence, that have none of these: what a passage says of somebody, it
    says of nobody's record. Raises :class:`PublicFileError` if nothing is left.
    """
    given = len(texts)
    plain = pc.replace_substring_regex(texts, r"<[^<>]{1,200}>|(?m:^[\s>|]+)", " ")  # mark-up, and marks of quotations
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(plain, r"[\s\p{Cc}\p{Cf}]+", " "))
    plain = pc.unique(plain.filter(pc.greater(pc.binary_length(plain), 0)))
    to.note(given - len(plain), f"of {given:,} passages of {to.source} are repeated or empty: left out.")
    codec = _codec(to)
    read = _Read.of(codec.encode(plain), len(to))
    problem = f"have fewer than {_FEWEST} known words, or mostly unknown ones: left out."
    to.note(int((~read.is_known).sum()), f"of {len(plain):,} passages {problem}")
    if not read.is_known.any():
        raise PublicFileError(
            f"mechanism.{to.name} = {to.source}: no passage has {_FEWEST} words of the embedding. Name texts of its "
            "language, or another embedding."
        )
    is_long = np.asarray(pc.greater(pc.utf8_length(plain), _WRITTEN))
    sentences = cut_sentences(plain.filter(pa.array(read.is_known & is_long)))[0]
    sentences = pc.replace_substring_regex(pc.utf8_trim_whitespace(sentences), r"([\p{L}\p{N}])$", r"\1.")
    short = pc.less_equal(pc.utf8_length(sentences), _WRITTEN)
    whole = plain.filter(pa.array(read.is_known & ~is_long))
    texts_to_write = pc.unique(pa.concat_arrays([whole, sentences.filter(short)]))
    offered = _Read.of(codec.encode(texts_to_write), len(to))
    to.note(
        int(offered.is_named.sum()),
        f"of {len(texts_to_write):,} passages and sentences name someone, a number or the like: not written.",
    )
    if to.language not in LISTED_LANGUAGES:
        to.notes.append(
            f"{to.name}: no list has names of the language {to.language}: passages that name people may be written."
        )
    can_write = offered.is_known & ~offered.is_named
    return PublicPassages(
        *read.select(read.is_known),
        texts_to_write.filter(pa.array(can_write)),
        *offered.select(can_write),
        plain.filter(pa.array(read.is_known)),
    )


@dataclass(frozen=True)
class _Read:
    """Known words of texts.

    ``ids``: int32 ``(tokens,)``. ``owner``: int64 ``(tokens,)``, the text of each. ``is_known``, ``is_named``: bool
    ``(texts,)``, texts with enough known words, and with a name, a number or the like.
    """

    ids: Int32
    owner: Int64
    is_known: Bool
    is_named: Bool

    @classmethod
    def of(cls, encoded: Encoded, size: int) -> Self:
        """Make from encoded texts. ``size``: number of words of the embedding."""
        assert encoded.shown is not None
        counts = np.diff(encoded.offsets)
        owner = np.repeat(np.arange(len(counts)), counts)
        position = np.arange(len(owner)) - np.repeat(encoded.offsets[:-1], counts)
        kept = (encoded.ids < size) & (position < _READ)
        known = np.bincount(owner[kept], minlength=len(counts))
        is_known = (known >= _FEWEST) & (known >= _KNOWN * np.minimum(counts, _READ))
        return cls(encoded.ids[kept], owner[kept], is_known, np.diff(encoded.shown.offsets) > 0)

    def select(self, chosen: Bool) -> tuple[Int32, Int64]:
        """Return the words and offsets of some texts, bool ``(texts,)``."""
        kept = chosen[self.owner]
        counts = np.bincount(self.owner[kept], minlength=len(chosen))[chosen]
        return self.ids[kept], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _codec(to: FittedWords) -> Codec:
    """Make a codec that finds all typed tokens, and names where there are lists of them."""
    listed = to.language in LISTED_LANGUAGES
    types = {kind: "tag" for kind, entry in CLASSES.items() if listed or not entry.list}
    policy = TextPolicy(types=types, names="gazetteer" if listed else "words", language=to.language)  # type: ignore[arg-type]
    return Codec(policy, Vocabulary(to.words), lists=PublicLists.load(to.language) if listed else None)
