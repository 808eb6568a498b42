"""fastText's supervised classifier, by floret.

Joulin, Grave, Bojanowski, Mikolov 2017, "Bag of tricks for efficient text classification": a text is the mean of
vectors of its words, word n-grams and n-grams of characters inside words; a linear classifier with a softmax is trained
together with these vectors. floret (Explosion, MIT licence, last release in 2023) is fastText's own code with wheels.
fastText itself is archived and has none, and gensim has no supervised model. One thread and a fixed seed give the same
model each time.

floret reads texts and vectors from files only. Under Linux a file is in memory and has no name, so that nothing of it
remains when the process is killed. Elsewhere it lies in a directory that only its user may open, and is deleted after
use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from wordveil.arrays import Int64
from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import FittedModel, TextClassifier, join_words, take_known
from wordveil.scores.documents import Documents

_LABEL = "__label__"


@dataclass(frozen=True)
class FloretClassifier:
    """Settings of the classifier.

    ``dim``: dimensions of the vectors. ``epochs``: how often the texts are read. ``lr``: the learning rate at the
    start; it falls to 0. ``word_ngrams``: the longest n-grams of words that have vectors. ``min_n``, ``max_n``: the
    shortest and the longest n-grams of characters inside words; 0 for none. ``buckets``: how many buckets n-grams are
    hashed to. ``embedding``: a public one, whose vectors its words begin with; ``dim`` is then the embedding's. Words
    that no text has to learn from keep these vectors, and count when labels are guessed. None begins with random
    vectors.
    """

    dim: int = 10
    epochs: int = 25
    lr: float = 0.5
    word_ngrams: int = 1
    min_n: int = 0
    max_n: int = 0
    buckets: int = 2**18
    embedding: Embedding | None = None

    def train(self, lines: Sequence[str], labels: Int64, seed: int) -> FittedFloret:
        """Learn from lines.

        ``lines``: texts as words separated by spaces. Line breaks count as spaces. ``labels``: int64 ``(lines,)``, 0 or
        more. ``seed``: the same seed gives the same model.

        Raises
        ------
        ValueError
            where no line has a word.
        """
        clean = _clean(lines)
        if not any(clean):
            raise ValueError("Expected at least one text with a word to learn from.")
        import floret

        dim, epochs = self.dim, self.epochs
        with ExitStack() as files:
            path, vectors = files.enter_context(_open_file(_write_lines(clean, labels))), ""
            if self.embedding is not None:
                words = _find_readable(self.embedding)
                dim, epochs = self.embedding.dimension, _count_epochs(epochs, clean, len(words))
                vectors = files.enter_context(_open_file(_write_vectors(self.embedding, words)))
            model = floret.train_supervised(
                input=path,
                pretrainedVectors=vectors,
                label=_LABEL,
                dim=dim,
                epoch=epochs,
                lr=self.lr,
                wordNgrams=self.word_ngrams,
                minn=self.min_n,
                maxn=self.max_n,
                bucket=self.buckets,
                thread=1,
                seed=seed % 2**31,
                verbose=0,
            )
        return FittedFloret(model, int(np.argmax(np.bincount(labels))))


@dataclass(frozen=True)
class FittedFloret:
    """A trained :class:`FloretClassifier`. ``fallback``: the most frequent label, for lines without words."""

    model: Any
    fallback: int

    def predict(self, lines: Sequence[str]) -> Int64:
        """Predict the most probable label of each line: int64 ``(lines,)``."""
        clean = _clean(lines)
        # floret's answer for a single text fails under NumPy 2; that for a list does not.
        answers, _ = self.model.predict(clean, k=1) if clean else ([], [])
        labels = [
            int(answer[0].removeprefix(_LABEL)) if answer and line else self.fallback
            for answer, line in zip(answers, clean, strict=True)
        ]
        return np.array(labels, np.int64)


def _clean(lines: Sequence[str]) -> list[str]:
    """Return words with single spaces between them, none of which floret would take for a label."""
    return [" ".join(line.split()).replace(_LABEL, "label") for line in lines]


def _write_lines(lines: Sequence[str], labels: Int64) -> bytes:
    """Write the lines that have words, each after its label."""
    rows = zip(labels.tolist(), lines, strict=True)
    return "".join(f"{_LABEL}{label} {line}\n" for label, line in rows if line).encode()


def _find_readable(embedding: Embedding) -> Int64:
    """Find the rows of the words that floret reads as one word. No text has a word with a quotation mark."""
    words = embedding.words.to_pylist()
    pairs = enumerate(zip(words, _clean(words), strict=True))
    return np.array([row for row, (word, read) in pairs if word == read and not {" ", '"'} & set(word)], np.int64)


def _write_vectors(embedding: Embedding, rows: Int64) -> bytes:
    """Some rows of an embedding as text: the number of words and the dimension, then a line for each word."""
    content = BytesIO(f"{len(rows)} {embedding.dimension}\n".encode())
    content.seek(0, os.SEEK_END)
    columns = [embedding.words.take(pa.array(rows)), *np.ascontiguousarray(embedding.vectors[rows].T)]
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    csv.write_csv(pa.table(columns, [str(column) for column in range(len(columns))]), content, options)
    return content.getvalue()


def _count_epochs(epochs: int, lines: Sequence[str], vectors: int) -> int:
    """Return how many epochs to ask for, so that the lines are read ``epochs`` times. floret counts each vector as a
    token of an epoch, but reads lines alone: where vectors are many and lines few, even one epoch reads these more
    often.
    """
    # Each line also has a label and an end.
    tokens = sum(len(line.split()) + 2 for line in lines if line)
    return max(1, round(epochs * tokens / (tokens + vectors)))


@contextmanager
def _open_file(content: bytes) -> Iterator[str]:
    """Open a private file. The path is valid inside the block."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("wordveil"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with TemporaryDirectory(prefix="wordveil-floret-") as directory:  # mode 0700
        path = Path(directory) / "file.txt"
        path.write_bytes(content)
        yield str(path)


@dataclass(frozen=True)
class FastText(TextClassifier):
    """The method of the module.

    ``settings``: of floret. The paper takes 10 dimensions, bigrams, 5 epochs and rates of 0.05 to 0.5 for topics and
    sentiments. Data sets with a hundredth of its texts need more epochs.
    """

    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    name: ClassVar[str] = "fasttext"

    settings: FloretClassifier = FloretClassifier(word_ngrams=2)

    @property
    def definition(self) -> str:
        runs = "words" if self.settings.word_ngrams == 1 else f"runs of 1 to {self.settings.word_ngrams} words"
        return (
            f"A linear softmax classifier over the mean of learned vectors of {runs} (Joulin et al. 2017), by floret."
        )

    def fit(self, known: Documents, seed: int) -> FittedModel:
        """See :class:`TextClassifier`. Also raises :class:`ValueError` where no text has a word."""
        documents = take_known(known)
        model = self.settings.train(join_words(documents.texts), documents.labels, seed)
        return FittedModel(join_words, model)


@dataclass(frozen=True)
class PretrainedFastText(FastText):
    """The same with vectors to begin with. ``embedding``: a public one; None for the demo embedding."""

    needs_embedding: ClassVar[bool] = True
    name: ClassVar[str] = "fasttext-pretrained"

    embedding: Embedding | None = None

    @property
    def definition(self) -> str:
        return f"{super().definition.removesuffix('.')}; words begin with public vectors."

    def fit(self, known: Documents, seed: int) -> FittedModel:
        """See :class:`FastText`."""
        return FastText(replace(self.settings, embedding=self.embedding or load(DEMO))).fit(known, seed)
