"""Roles of a table's columns, and contradictions between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wordveil.errors import Fault
from wordveil.records.paths import parse_path, read_path
from wordveil.records.pseudonyms import Pseudonym, list_lasting
from wordveil.records.schema import OUTPUT_FIELDS, RESERVED_COLUMNS

DEFAULT_MAX_BYTES = 16 * 2**20
_RESERVED = "is a name that the output reserves, in any case. Rename the column in a view of the input."


@dataclass(frozen=True)
class Columns:
    """Roles of a table's columns: settings of a configuration's section ``input``, which explains them."""

    id: str
    text: str | Sequence[str]
    author: str | None = None
    keep: Sequence[str] = ()
    max_bytes: int = DEFAULT_MAX_BYTES
    language: str | None = None
    pseudonyms: Sequence[Pseudonym] = ()

    @property
    def kept_names(self) -> tuple[str, ...]:
        """Names in an output of the columns that are published unchanged, then of those with pseudonyms."""
        return (*self.keep, *(pseudonym.name for pseudonym in self.pseudonyms))

    @property
    def followed(self) -> tuple[str, ...]:
        """Names in an output of the columns beside the text whose changes a release follows."""
        return (*self.keep, *(pseudonym.name for pseudonym in list_lasting(self.pseudonyms)))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Names in the input of all columns but the texts."""
        hidden = (pseudonym.column for pseudonym in self.pseudonyms)
        return (self.id, *filter(None, (self.author, self.language)), *self.keep, *hidden)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the text columns."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    @property
    def text_paths(self) -> tuple[tuple[str, ...], ...]:
        """Parts of each of these names (:func:`wordveil.records.paths.read_path`)."""
        return tuple(map(read_path, self.texts))

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the text columns in an output."""
        return (OUTPUT_FIELDS[0].name,) if len(self.texts) == 1 else self.texts


def fold_name(name: str) -> str:
    """Fold a name: equal for all names that Java equates regardless of case, and for a few more."""
    return "".join(letter.upper()[0].lower()[0] for letter in name)


def is_reserved(name: str) -> bool:
    """Return whether a name is a column of the output. For Spark names that differ only in case are the same."""
    return fold_name(name) in RESERVED_COLUMNS or name.startswith("__")


def find_column_faults(source: Columns) -> Iterable[Fault]:
    """List columns that contradict each other, or that the output cannot have."""
    for text in source.texts:
        yield from _text_column_faults(source, text)
    yield from _pseudonym_faults(source)
    kept = [fold_name(name) for name in source.keep]
    for index, name in enumerate(source.keep):
        if kept[index] == fold_name(source.id):
            yield Fault("input.keep", name, "is the id column, which is always in the output. Remove it.")
        if kept[index] in kept[:index]:
            yield Fault("input.keep", name, "is listed more than once. Keep one of them.")
    for where, name in (("input.id", source.id), *(("input.keep", name) for name in source.keep)):
        if is_reserved(name):
            yield Fault(where, name, _RESERVED)


def _pseudonym_faults(source: Columns) -> Iterable[Fault]:
    """List pseudonyms of columns that are published or hold texts, and names that the output has or reserves."""
    texts = {fold_name(part) for name in source.texts for part in (name, read_path(name)[0])}
    seen = {fold_name(source.id): "the id column", **{fold_name(name): "kept unchanged" for name in source.keep}}
    names = {*seen, *texts}
    for pseudonym in source.pseudonyms:
        folded, name = fold_name(pseudonym.column), fold_name(pseudonym.name)
        if folded in texts:
            problem = "is the text column; its pseudonyms would show which texts are equal. Remove it."
            yield Fault("input.keep", pseudonym.column, problem)
        elif folded in seen:
            problem = f"is {seen[folded]}, so that a pseudonym of it hides nothing. Remove one of them."
            yield Fault("input.keep", pseudonym.column, problem)
        elif "`" in pseudonym.name:
            yield Fault("input.keep", pseudonym.name, "has a backtick, which Spark cannot quote. Set another name.")
        elif name in names or is_reserved(name):
            problem = "is the name of another column of the output, in any case. Set another name."
            yield Fault("input.keep", pseudonym.name, problem)
        seen[folded] = "a pseudonym already"
        names.add(name)


def _text_column_faults(source: Columns, text: str) -> Iterable[Fault]:
    """List text columns with another role, too. For Spark names that differ only in case are the same."""
    roots = {fold_name(text), fold_name(read_path(text)[0])}
    if fold_name(source.id) in roots:
        problem = "is also the id column. An id is published unchanged, so it must not be the text."
        yield Fault("input.text", text, problem)
    for name in source.keep:
        if fold_name(name) in roots:
            what = "is the text column" if name == text else f"is the column with the text {text}"
            yield Fault("input.keep", name, f"{what}; keeping it would publish the original. Remove it.")
    if source.author is not None and fold_name(source.author) in roots:
        yield Fault("input.author", text, "is the text column. Name the author's column, or remove it.")
    if source.language is not None and fold_name(source.language) in roots:
        yield Fault("input.language", text, "is the text column. Name the column of languages, or remove it.")
    if len(source.texts) > 1:
        yield from _several_faults(source, text)


def _several_faults(source: Columns, text: str) -> Iterable[Fault]:
    """List text columns that contradict another one, or that an output of several cannot have."""
    if sum(fold_name(other) == fold_name(text) for other in source.texts) > 1:
        yield Fault("input.text", text, "is listed more than once. Keep one of them.")
    try:
        path = parse_path(text)
    except ValueError as error:
        yield Fault("input.text", text, f"is not a column name: {str(error).partition(': ')[2]}")
        return
    others = [read_path(other) for other in source.texts if other != text]
    if any(other[: len(path)] == path for other in others):
        yield Fault("input.text", text, "holds another text column. Name the fields that hold text, not their struct.")
    if is_reserved(path[0]) and fold_name(path[0]) != "text":
        yield Fault("input.text", text, _RESERVED)
