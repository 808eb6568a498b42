"""Samples of corpora for experiments: so many texts of so many words of each label, the same ones in every run."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordveil.arrays import Int64
from wordveil.errors import InputError
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.evaluation import replace_file
from wordveil_research.tasks.datasets import load_documents

NOVELS = "english_novels_100.tar.xz"
_BOOKS = 3
# What stands before the first chapter of a book, and what follows its last, is not by its author.
_MARGIN = 0.1


@dataclass(frozen=True)
class Split:
    """Texts to learn from, and texts to judge. Both have the same names of labels."""

    train: Documents
    test: Documents

    def cut(self, train: int, test: int) -> Split:
        """Cut out the texts of at least so many words, cut to that many (:func:`cut_to_words`)."""
        return Split(cut_to_words(self.train, train), cut_to_words(self.test, test))

    def shorten(self, words: int) -> Split:
        """Return the texts, those of more words cut to that many (:func:`shorten_to_words`)."""
        return Split(shorten_to_words(self.train, words), shorten_to_words(self.test, words))

    def take_each(self, train: int, test: int, seed: int = 0) -> Split:
        """So many texts of each label of the two parts (:func:`take_each`)."""
        return Split(take_each(self.train, train, seed), take_each(self.test, test, seed + 1))


def cut_to_words(documents: Documents, words: int) -> Documents:
    """Cut out the texts that have at least ``words`` words, cut behind the last of these. A word is a run of letters
    and digits.
    """
    pattern = re.compile(rf"(?:[\W_]*+[^\W_]++){{{words}}}+")
    found = [pattern.match(text) for text in documents.texts]
    kept = [row for row, match in enumerate(found) if match]
    return documents.take(kept).with_texts([match[0] for match in found if match])


def shorten_to_words(documents: Documents, words: int) -> Documents:
    """Return the texts, those of more than ``words`` words cut behind the last of these."""
    pattern = re.compile(rf"(?:[\W_]*+[^\W_]++){{{words}}}+")
    return documents.with_texts([match[0] if (match := pattern.match(text)) else text for text in documents.texts])


def take_each(documents: Documents, count: int, seed: int) -> Documents:
    """At most ``count`` texts of each label, chosen at random by ``seed``, in the order of labels."""
    return documents.take(_choose_each(documents, count, seed))


def _choose_each(documents: Documents, count: int, seed: int) -> Int64:
    """Choose the places of at most ``count`` texts of each label."""
    order = np.random.default_rng(seed).permutation(len(documents))
    order = order[np.argsort(documents.labels[order], kind="stable")]
    labels = documents.labels[order]
    place = np.arange(len(order)) - np.searchsorted(labels, labels)
    return np.asarray(order[(place < count) & (labels != UNKNOWN)], np.int64)


def keep_first(documents: Documents, count: int) -> Documents:
    """Return the texts of the first ``count`` labels, by number, and these labels' names alone."""
    kept = documents.take(np.flatnonzero((documents.labels >= 0) & (documents.labels < count)))
    return Documents(kept.texts, kept.labels, kept.names[:count])


def halve_each(documents: Documents, seed: int) -> Split:
    """Half of the texts of each label, chosen at random by ``seed``, to learn from, and the others to judge."""
    half = int(np.bincount(documents.labels).max() + 1) // 2
    chosen = _choose_each(documents, half, seed)
    return Split(documents.take(chosen), documents.take(np.setdiff1d(np.arange(len(documents)), chosen)))


def read_authors(data: Path, corpus: str) -> Split:
    """Read the texts of known authors of a corpus: ``c50_reuters``, ``pan11_small`` or ``enron_jstylo50``.

    The first two come split; of PAN 2011's, both parts that are not to learn from are judged, without the texts of
    authors who have none to learn from. Enron's mails are halved at random for each author.

    Raises
    ------
    InputError
        where the file is missing or has other columns.
    """
    path = data / f"{corpus}.jsonl.xz"
    if corpus == "enron_jstylo50":
        return halve_each(load_documents(path, "author"), seed=0)
    train = load_documents(path, "author", where={"split": "train"})
    parts = ("test",) if corpus == "c50_reuters" else ("test+", "valid+")
    judged = [load_documents(path, "author", where={"split": part}, names=train.names) for part in parts]
    labels = np.concatenate([part.labels for part in judged])
    test = Documents([text for part in judged for text in part.texts], labels, train.names)
    return Split(train, test.take(np.flatnonzero(labels != UNKNOWN)))


def read_labels(data: Path, corpus: str, share: float = 0.8) -> Split:
    """Read the texts of a classification task by its ``label`` column.

    Texts come split into ``train`` and ``test``; where they do not, ``share`` of them, chosen at random by a fixed
    seed, are to learn from. A part ``dev`` is left out.

    Raises
    ------
    InputError
        where the file is missing or has other columns.
    """
    path = data / f"{corpus}.jsonl.xz"
    train = load_documents(path, "label", where={"split": "train"})
    if len(train):
        return Split(train, load_documents(path, "label", where={"split": "test"}, names=train.names))
    every = load_documents(path, "label")
    order = np.random.default_rng(0).permutation(len(every))
    cut = int(share * len(order))
    return Split(every.take(np.sort(order[:cut])), every.take(np.sort(order[cut:])))


def read_novels(data: Path, work: Path, known_words: int, snippet_words: int, snippets: int) -> Split:
    """Novels of authors who have three: the first two by year to learn from, snippets of the third to judge.

    The archive has a text file ``Author_Title_Year.txt`` for each book. The first and the last tenth of a book are left
    out. Unpacking takes seconds, so that the sample is kept.

    Parameters
    ----------
    data
        the directory of the archive :data:`NOVELS`.
    work
        the directory in which the sample is kept.
    known_words
        words of each of the two known books.
    snippet_words, snippets
        words of a snippet, and how many of them follow one another at equal distances in the third book.

    Raises
    ------
    InputError
        where the archive is missing, or a book has too few words.
    """
    path = data / NOVELS
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    kept = work / f"novels-{path.stat().st_size}-{known_words}-{snippet_words}-{snippets}.json"
    if not kept.exists():
        work.mkdir(parents=True, exist_ok=True)
        replace_file(kept, json.dumps(_sample_novels(path, known_words, snippet_words, snippets)))
    known, judged = json.loads(kept.read_text("utf-8"))
    train = Documents.of(known[0], known[1])
    return Split(train, Documents.of(judged[0], judged[1], train.names))


def _sample_novels(
    path: Path, known_words: int, snippet_words: int, snippets: int
) -> tuple[tuple[list[str], list[str]], tuple[list[str], list[str]]]:
    """Sample texts and their authors, first of those to learn from and then of those to judge."""
    books: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, text in _open_books(path):
        author, _, year = name.removesuffix(".txt").split("_")
        books[author].append((year, text))
    known: list[tuple[str, str]] = []
    judged: list[tuple[str, str]] = []
    for author, written in sorted(books.items()):
        if len(written) < _BOOKS:
            continue
        *first, last = [text for _, text in sorted(written)[:_BOOKS]]
        known += [(piece, author) for text in first for piece in _pieces(text, known_words, 1, author)]
        judged += [(piece, author) for piece in _pieces(last, snippet_words, snippets, author)]
    return _unzip(known), _unzip(judged)


def _unzip(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [text for text, _ in pairs], [author for _, author in pairs]


def _open_books(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if stream is not None and member.name.endswith(".txt"):
                yield Path(member.name).name, stream.read().decode("utf-8", "replace")


def _pieces(text: str, words: int, count: int, author: str) -> list[str]:
    """``count`` pieces of ``words`` words, at equal distances."""
    every = text.split()
    start, end = int(_MARGIN * len(every)), int((1 - _MARGIN) * len(every))
    if end - start < words * count:
        raise InputError(f"{NOVELS}: expected {words * count} words of each book, one of {author} has {end - start}.")
    starts = np.linspace(start, end - words, count).astype(int)
    return [" ".join(every[at : at + words]) for at in starts.tolist()]
