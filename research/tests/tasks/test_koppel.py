"""Authors that Spark finds are exactly those that one machine finds, however they are spread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wordveil.errors import InputError
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.methods.koppel import Koppel, Weights
from wordveil_research.tasks.koppel import attribute

SETTINGS = Koppel(iterations=15, share=0.4, threshold=0.5, features=700)


def documents(count: int, texts: int, seed: int) -> Documents:
    """Return texts of authors who each prefer some words of a common list."""
    letters, rng = np.array(list("abcdefghijklmnoprstuwäß火🙂")), np.random.default_rng(7)
    words = ["".join(rng.choice(letters, rng.integers(1, 9))) for _ in range(300)]
    habits = rng.dirichlet(np.full(len(words), 0.3), count)
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(count), texts)
    made = [" ".join(rng.choice(words, 60, p=habits[label])) for label in labels]
    return Documents.of(made, [f"author {label:02d}" for label in labels.tolist()])


@pytest.mark.parametrize(("weights", "partitions"), [(Weights.FREQUENCY, 3), (Weights.TF_IDF, 1), (Weights.TF_IDF, 4)])
def test_answers_are_those_of_one_machine(spark, weights: Weights, partitions: int):
    settings = Koppel(SETTINGS.iterations, SETTINGS.share, SETTINGS.threshold, SETTINGS.features, weights)
    known, snippets = documents(12, 3, seed=1), documents(12, 2, seed=2)
    texts = [*snippets.texts, "", "zz zz"]  # two that share nothing with anyone
    rows = [*zip(known.texts, (known.names[label] for label in known.labels), strict=True), ("lost", None), (None, "x")]
    frame = spark.createDataFrame(pa.table({"the.text": [row[0] for row in rows], "who": [row[1] for row in rows]}))
    found = attribute(frame, "who", "the.text", texts, settings, seed=5, partitions=partitions)
    fitted = settings.fit(known, seed=5)
    scored = fitted.score(texts)
    assert found.names == known.names
    assert np.array_equal(found.scored.labels, scored.labels)
    assert np.array_equal(found.scored.shares, scored.shares)
    assert np.array_equal(found.labels, fitted.predict(texts))
    assert (scored.labels[:-2] == snippets.labels).mean() > 0.9
    assert scored.labels[-2:].tolist() == [UNKNOWN, UNKNOWN]


def test_one_author_is_refused(spark):
    frame = spark.createDataFrame(pa.table({"text": ["some words", "more words"], "author": ["a", "a"]}))
    with pytest.raises(InputError, match="author: has 1 authors with texts"):
        attribute(frame, "author", "text", ["words"], SETTINGS, seed=1)
