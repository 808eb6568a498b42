"""Slots of orders to an assistant: which words of a sanitised text name the city, the date, the song?

A linear classifier gives each word a tag from the words around it (scikit-learn). It is trained on sanitised texts with
the tags of the originals, and measured on others by micro-F1 of exact spans, as Coucke et al. 2018 ("Snips voice
platform") and CoNLL do.

A mechanism that writes one word for each word leaves tags in their places. A text that has other words afterwards is
not learned from, and all spans of such a test text count as missed; the score's note says how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.evaluation.packages import load_package
from wordveil.scores.documents import Documents
from wordveil.scores.intervals import find_ratio_interval
from wordveil.scores.measurement import Measurement
from wordveil.scores.score import Score
from wordveil.text.tokeniser import fold_words
from wordveil_research.tasks.datasets import load_documents
from wordveil_research.tasks.tagged import OUTSIDE, SpanCounts, TaggedTexts, count_spans

METHOD = "window-tagger"
INTENTS = "snips7"
_WINDOW = 2
_ENDING = 3
_PENALTY = 1e-5
_EPOCHS = 20


def load_intents(data: Path) -> tuple[Documents, Documents]:
    """The training and the test part of the intents in ``snips7.jsonl.xz`` of the directory of data sets. The file has
    no slots. Raises :class:`InputError`.
    """
    path = data / f"{INTENTS}.jsonl.xz"
    train = load_documents(path, "label", where={"split": "train"})
    return train, load_documents(path, "label", where={"split": "valid"}, names=train.names)


@dataclass(frozen=True)
class SlotTagger:
    """A tagger that was trained.

    Attributes
    ----------
    encoder, model
        scikit-learn's one-hot encoder of features, and its linear model.
    """

    encoder: Any
    model: Any

    @classmethod
    def fit(cls, texts: TaggedTexts, seed: int) -> SlotTagger:
        """Learn tags from texts; those that are lost are left out. The same seed gives the same tagger.

        Raises
        ------
        PlatformError
            where scikit-learn is not installed.
        ValueError
            where fewer than two tags are left to learn.
        """
        kept = texts.take(np.flatnonzero(~texts.is_lost))
        tags = np.asarray(kept.tags.to_pylist(), np.object_)
        if len(set(tags.tolist())) < 2:
            raise ValueError("Expected words with at least two different tags to learn from.")
        encoder = load_package("sklearn.preprocessing").OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
        model = load_package("sklearn.linear_model").SGDClassifier(
            loss="log_loss", alpha=_PENALTY, max_iter=_EPOCHS, tol=None, random_state=seed % 2**32
        )
        return cls(encoder, model.fit(encoder.fit_transform(_make_features(kept)), tags.astype(str)))

    def predict(self, texts: TaggedTexts) -> pa.StringArray:
        """The tag of each word: string array ``(tokens,)``; ``O`` in texts that are lost."""
        if not len(texts.tokens):
            return pa.array([], pa.string())
        found = self.model.predict(self.encoder.transform(_make_features(texts)))
        return pa.array(np.where(texts.is_lost[texts.text_of], OUTSIDE, found).tolist(), pa.string())


def measure_slots(train: TaggedTexts, test: TaggedTexts, subject: str, task: str, seed: int) -> list[Score]:
    """Train a tagger on one part of a data set and measure it on the other.

    Parameters
    ----------
    train, test
        tagged texts; sanitised ones (:meth:`TaggedTexts.with_texts`), unless ``subject`` is the original.
    subject, task
        as in :class:`Score`.
    seed
        of the tagger and of the bootstrap.

    Returns
    -------
    list of Score
        ``f1`` with its interval over texts, ``precision`` and ``recall``. A tagger that never looks finds no span, so
        that chance is 0.

    Raises
    ------
    ValueError
        where there are fewer than two tags to learn, or no spans to find.
    """
    found = SlotTagger.fit(train, seed).predict(test)
    counts = count_spans(test.tags, found, test.offsets)
    if not counts.true.sum():
        raise ValueError("Expected at least one span among the test texts.")
    return _make_scores(Measurement(subject, task, METHOD), counts, _describe_lost(train, test), seed)


def _make_scores(measurement: Measurement, counts: SpanCounts, note: str, seed: int) -> list[Score]:
    wholes = {
        "f1": (2 * counts.right, counts.true + counts.found, counts.f1),
        "precision": (counts.right, counts.found, counts.precision),
        "recall": (counts.right, counts.true, counts.recall),
    }
    definitions = {
        "f1": "The harmonic mean of precision and recall of exact spans over all texts together",
        "precision": "The share of found spans whose first word, last word and kind are right",
        "recall": "The share of true spans of which first word, last word and kind are found",
    }
    by = "by logistic regression over the words around each word."
    return [
        measurement.make_score(
            figure,
            value,
            find_ratio_interval(part, whole, seed),
            int(counts.true.sum()),
            f"{definitions[figure]}, {by}",
            chance=0.0,
            note=note,
        )
        for figure, (part, whole, value) in wholes.items()
    ]


def _describe_lost(train: TaggedTexts, test: TaggedTexts) -> str:
    lost = int(train.is_lost.sum()), int(test.is_lost.sum())
    if not any(lost):
        return ""
    return (
        f"{lost[0]} of {len(train)} training texts and {lost[1]} of {len(test)} test texts have other words than tags: "
        "the first are not learned from, the spans of the second count as missed."
    )


def _make_features(texts: TaggedTexts) -> NDArray[np.object_]:
    """For each word: itself, the two words on either side, the pairs with its neighbours, and its ending. Object
    ``(tokens, features)``.
    """
    words = fold_words(texts.tokens)
    around = {step: _shift(words, texts.text_of, step) for step in range(-_WINDOW, _WINDOW + 1)}
    pairs = [pc.binary_join_element_wise(around[step], around[step + 1], " ") for step in (-1, 0)]
    columns = [*around.values(), *pairs, pc.utf8_slice_codeunits(words, -_ENDING)]
    return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)


def _shift(words: pa.StringArray, text_of: NDArray[np.int64], step: int) -> pa.StringArray:
    """The word ``step`` places on from each word; an empty one outside its text."""
    places = np.arange(len(words)) + step
    inside = (places >= 0) & (places < len(words))
    inside[inside] = text_of[places[inside]] == text_of[inside]
    return pc.fill_null(words.take(pa.array(np.where(inside, places, 0), mask=~inside)), "")
