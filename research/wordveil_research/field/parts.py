"""The parts of the corpora that the table measures on: the same for every seed, so that intervals are of the draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from wordveil.arrays import Int64
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.tasks.datasets import load_documents

FILES = tuple(
    f"{name}.jsonl.xz"
    for name in ("sst2", "trec6", "news20_bydate", "aclImdb", "c50_reuters", "enron_jstylo50", "pan11_small")
)


@dataclass(frozen=True)
class TaskPart:
    """How much of a labelled corpus is used: texts to train and to test on, and the first words of each."""

    file: str
    train: int
    test: int
    words: int


@dataclass(frozen=True)
class AuthorPart:
    """How much of an author corpus is used: authors, and of each the texts that are known and the snippets.

    ``known``, ``snippets``: the values of ``split``; empty where the corpus has none, and each author's texts are
    divided.
    """

    file: str
    authors: int
    each_known: int
    each_snippets: int
    words: int
    known: str = ""
    snippets: str = ""


@dataclass(frozen=True)
class Size:
    """One size of all corpora, by name."""

    tasks: dict[str, TaskPart]
    authors: dict[str, AuthorPart]

    def describe(self) -> str:
        """For a reader: what is measured on what."""
        tasks = [
            f"{name} {part.train:,} + {part.test:,} texts of at most {part.words} words"
            for name, part in self.tasks.items()
        ]
        authors = [
            f"{name} at most {part.authors} authors with {part.each_known} known texts and {part.each_snippets} "
            f"snippets of at most {part.words} words"
            for name, part in self.authors.items()
        ]
        return "; ".join([*tasks, *authors])


def _make_size(tasks: dict[str, tuple[int, int, int]], authors: dict[str, tuple[int, int, int, int]]) -> Size:
    splits = {"c50": ("train", "test"), "enron": ("", ""), "pan11": ("train", "valid+")}
    files = dict(zip(("sst2", "trec6", "news20", "imdb", "c50", "enron", "pan11"), FILES, strict=True))
    return Size(
        {name: TaskPart(files[name], *counts) for name, counts in tasks.items()},
        {name: AuthorPart(files[name], *counts, *splits[name]) for name, counts in authors.items()},
    )


LARGE = _make_size(
    {
        "sst2": (6_920, 1_821, 60),
        "trec6": (5_452, 500, 40),
        "news20": (3_000, 1_500, 100),
        "imdb": (2_000, 1_000, 120),
    },
    {"c50": (50, 15, 10, 200), "enron": (50, 9, 4, 200), "pan11": (26, 40, 20, 100)},
)
SMALL = _make_size(
    {"sst2": (500, 300, 30), "trec6": (700, 300, 20), "news20": (200, 150, 40), "imdb": (200, 150, 40)},
    {"c50": (10, 6, 5, 50), "enron": (10, 8, 5, 50), "pan11": (10, 8, 6, 40)},
)
QUICK = _make_size(
    {"sst2": (200, 100, 30), "trec6": (300, 100, 20), "news20": (120, 60, 20), "imdb": (80, 60, 30)},
    {"c50": (4, 5, 4, 30), "enron": (4, 5, 4, 30), "pan11": (4, 5, 4, 30)},
)


@dataclass(frozen=True)
class TaskTexts:
    """A labelled corpus, cut to size."""

    train: Documents
    test: Documents


@dataclass(frozen=True)
class AuthorTexts:
    """An author corpus, cut to size: what the attacker knows, and what is attacked."""

    known: Documents
    snippets: Documents


@cache
def load_task(part: TaskPart, data: Path) -> TaskTexts:
    """Load the texts of a part. Raises :class:`wordveil.errors.InputError`."""
    train = load_documents(data / part.file, "label", where={"split": "train"})
    test = load_documents(data / part.file, "label", where={"split": "test"}, names=train.names)
    return TaskTexts(_cut(_sample(train, part.train), part.words), _cut(_sample(test, part.test), part.words))


@cache
def load_authors(part: AuthorPart, data: Path) -> AuthorTexts:
    """Load the texts of a part, of the first authors who have enough. Raises :class:`wordveil.errors.InputError`."""
    path = data / part.file
    if part.known:
        known = load_documents(path, "author", where={"split": part.known})
        snippets = load_documents(path, "author", where={"split": part.snippets}, names=known.names)
    else:
        known = snippets = load_documents(path, "author")
    mine: list[Int64] = []
    theirs: list[Int64] = []
    names: list[str] = []
    for label, name in enumerate(known.names):
        if len(names) == part.authors:
            break
        own = _shuffle(np.flatnonzero(known.labels == label))
        if part.known:
            others = _shuffle(np.flatnonzero(snippets.labels == label))
        else:
            own, others = own[: part.each_known], own[part.each_known :]
        if len(own) and len(others):
            names.append(name)
            mine.append(own[: part.each_known])
            theirs.append(others[: part.each_snippets])
    return AuthorTexts(
        _cut(_rename(known.take(np.concatenate(mine)), names), part.words),
        _cut(_rename(snippets.take(np.concatenate(theirs)), names), part.words),
    )


def _rename(documents: Documents, names: list[str]) -> Documents:
    labels = [documents.names[label] if label != UNKNOWN else "" for label in documents.labels.tolist()]
    return Documents.of(documents.texts, labels, names)


def _shuffle(rows: Int64) -> Int64:
    """Shuffle int64 into an order that has nothing to do with theirs: by a multiplicative hash (Knuth 1973, section
    6.4).
    """
    return rows[np.argsort((rows.astype(np.uint64) + np.uint64(1)) * np.uint64(2654435761) % np.uint64(2**32))]


def _sample(documents: Documents, count: int) -> Documents:
    return documents.take(_shuffle(np.arange(len(documents)))[:count])


def _cut(documents: Documents, words: int) -> Documents:
    """Cut out the first words of each text, with what stands between them."""
    cut = [" ".join(text.split(maxsplit=words)[:words]) for text in documents.texts]
    return documents.with_texts(cut)
