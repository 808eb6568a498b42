"""fastText's supervised classifier, by floret.

Joulin, Grave, Bojanowski, Mikolov 2017, "Bag of tricks for efficient text classification": a text is the mean of
vectors of its words, word n-grams and n-grams of characters inside words; a linear classifier with a softmax is trained
together with these vectors. floret (Explosion, MIT licence, last release in 2023) is fastText's own code with wheels.
fastText itself is archived and has none, and gensim has no supervised model. One thread and a fixed seed give the same
model each time.

floret reads texts from files only. Under Linux the file is in memory and has no name, so that nothing of it remains
when the process is killed. Elsewhere it lies in a directory that only its user may open, and is deleted after use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from wordveil.arrays import Int64
from wordveil.evaluation.classifiers import FittedModel, TextClassifier
from wordveil.evaluation.packages import load_package
from wordveil.evaluation.utility.words import join_words, take_known
from wordveil.scores.documents import Documents

_LABEL = "__label__"


@dataclass(frozen=True)
class FloretClassifier:
    """Settings of the classifier.

    Attributes
    ----------
    dim
        dimensions of the vectors.
    epochs
        how often the texts are read.
    lr
        the learning rate at the start; it falls to 0.
    word_ngrams
        the longest n-grams of words that have vectors.
    min_n, max_n
        the shortest and the longest n-grams of characters inside words; 0 for none.
    buckets
        how many buckets n-grams are hashed to.
    """

    dim: int = 10
    epochs: int = 25
    lr: float = 0.5
    word_ngrams: int = 1
    min_n: int = 0
    max_n: int = 0
    buckets: int = 2**18

    def train(self, lines: Sequence[str], labels: Int64, seed: int) -> FittedFloret:
        """Learn from lines.

        Parameters
        ----------
        lines
            texts as words separated by spaces. Line breaks count as spaces.
        labels
            int64 ``(lines,)``, 0 or more.
        seed
            the same seed gives the same model.

        Raises
        ------
        PlatformError
            where floret is not installed.
        ValueError
            where no line has a word.
        """
        clean = _clean(lines)
        if not any(clean):
            raise ValueError("Expected at least one text with a word to learn from.")
        floret = load_package("floret")
        with _open_lines(clean, labels) as path:
            model = floret.train_supervised(
                input=str(path),
                label=_LABEL,
                dim=self.dim,
                epoch=self.epochs,
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
        """The most probable label of each line: int64 ``(lines,)``."""
        clean = _clean(lines)
        # floret's answer for a single text fails under NumPy 2; that for a list does not.
        answers, _ = self.model.predict(clean, k=1) if clean else ([], [])
        labels = [
            int(answer[0].removeprefix(_LABEL)) if answer and line else self.fallback
            for answer, line in zip(answers, clean, strict=True)
        ]
        return np.array(labels, np.int64)


def _clean(lines: Sequence[str]) -> list[str]:
    """Words with single spaces between them, none of which floret would take for a label."""
    return [" ".join(line.split()).replace(_LABEL, "label") for line in lines]


@contextmanager
def _open_lines(lines: Sequence[str], labels: Int64) -> Iterator[str]:
    """A file of the lines that have words, each after its label. The path is valid inside the block."""
    rows = zip(labels.tolist(), lines, strict=True)
    content = "".join(f"{_LABEL}{label} {line}\n" for label, line in rows if line).encode()
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("lines"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with TemporaryDirectory(prefix="wordveil-floret-") as directory:  # mode 0700
        path = Path(directory) / "lines.txt"
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
        """See :class:`TextClassifier`. Also raises :class:`ValueError` where no text has a word, and
        :class:`PlatformError` where floret is not installed.
        """
        documents = take_known(known)
        model = self.settings.train(join_words(documents.texts), documents.labels, seed)
        return FittedModel(join_words, model)
