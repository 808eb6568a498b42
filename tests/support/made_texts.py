"""Texts for tests of attackers: made ones of authors and topics, public ones, and random words."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from support.repository import LIB
from support.workspaces import WORDS
from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.evaluation.classifiers import Words, cut_words
from wordveil.scores.documents import Documents

CANARY = "zqxcanaryzqx"
AUTHORS, TEXTS = 5, 16
WEAK = {"name": "exponential", "epsilon": 60.0, "gamma": 4.0}
"""A mechanism that keeps nearly every word."""
TINY = {"name": "exponential", "epsilon": 0.01, "gamma": 4.0}
"""One that hardly looks at a word."""


def make_habits(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(AUTHORS * TEXTS):
        author, topic = number % AUTHORS, number // AUTHORS % 2
        liked = [WORDS[20 * author + index] for index in rng.integers(0, 20, 10)]
        about = [WORDS[120 + 20 * topic + index] for index in rng.integers(0, 20, 8)]
        rows.append(" ".join([*liked, CANARY, *about]))
    return pa.table(
        {
            "id": [f"r{number:03d}" for number in range(len(rows))],
            "body": rows,
            "day": ["d"] * len(rows),
            "author": [f"a{number % AUTHORS}" for number in range(len(rows))],
            "topic": [f"t{number // AUTHORS % 2}" for number in range(len(rows))],
        }
    )


def make_documents(
    authors: int, texts: int, seed: int, words: int = 80, alphabet: str = "abcdefghiklmnoprstuw"
) -> Documents:
    """Texts of authors who prefer some words of a common list. ``seed``: of the texts; habits are always the same."""
    habits_of = np.random.default_rng(7)
    letters = np.array(list(alphabet))
    lexicon = ["".join(habits_of.choice(letters, habits_of.integers(1, 9))) for _ in range(300)]
    habits = habits_of.dirichlet(np.full(len(lexicon), 0.3), authors)
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(authors), texts)
    made = [" ".join(rng.choice(lexicon, words, p=habits[label])) for label in labels]
    return Documents.of(made, [f"author {label:02d}" for label in labels.tolist()])


def shuffle_labels(documents: Documents, seed: int) -> Documents:
    return Documents(documents.texts, np.random.default_rng(seed).permutation(documents.labels), documents.names)


TOPICS = ("animals", "music", "weather")
_TOPIC_WORDS, _SHARED_WORDS, _LENGTH = 20, 30, 12


def _spell(number: int) -> str:
    return "".join(chr(ord("a") + digit) for digit in (number // 26, number % 26, 7))


@cache
def topic_embedding() -> Embedding:
    """Words of three topics, each around a centre of its own, and words of none."""
    rng = np.random.default_rng(3)
    centres = np.vstack([4 * np.eye(3, 8), np.zeros((1, 8))])
    sizes = [_TOPIC_WORDS] * len(TOPICS) + [_SHARED_WORDS]
    vectors = np.repeat(centres, sizes, axis=0) + rng.normal(size=(sum(sizes), 8))
    return check_embedding([_spell(number) for number in range(sum(sizes))], vectors.astype(np.float32), "topics")


def make_topic_texts(count: int, seed: int, share: float = 0.4) -> Documents:
    """Texts of three topics, which each have ``share`` of their words from their topic, and the others from none."""
    rng = np.random.default_rng(seed)
    words = np.array(topic_embedding().words.to_pylist())
    labels = rng.integers(0, len(TOPICS), count)
    own = rng.integers(0, _TOPIC_WORDS, (count, _LENGTH)) + _TOPIC_WORDS * labels[:, None]
    common = rng.integers(0, _SHARED_WORDS, (count, _LENGTH)) + _TOPIC_WORDS * len(TOPICS)
    chosen = np.where(rng.random((count, _LENGTH)) < share, own, common)
    return Documents([" ".join(row) for row in words[chosen].tolist()], labels.astype(np.int64), TOPICS)


def load_news() -> list[str]:
    """300 English news articles, which come with gensim."""
    gensim = importlib.util.find_spec("gensim")
    assert gensim is not None
    assert gensim.origin is not None
    return (Path(gensim.origin).parent / "test" / "test_data" / "lee_background.cor").read_text("utf-8").splitlines()


def load_examples(count: int) -> list[str]:
    """Examples of WordNet, which come with the package: ``count`` from the whole alphabet."""
    examples = pq.read_table(LIB / "data" / "sentences" / "wordnet.parquet").column("text").to_pylist()
    return examples[:: len(examples) // count][:count]


def load_sentences(count: int) -> Documents:
    """First sentences of news and examples of WordNet, ``count`` of each, cut to ten words."""
    chosen = [*load_news()[:count], *load_examples(count)]
    return Documents.of([" ".join(text.split()[:10]) for text in chosen], ["news"] * count + ["examples"] * count)


@dataclass(frozen=True)
class RandomWords:
    """Replaces every word by one drawn uniformly from a vocabulary: the lower bound of every task."""

    words: pa.StringArray

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Put random words in place of those of the texts."""
        cut = cut_words(texts)
        chosen = np.random.default_rng(seed).integers(0, len(self.words), len(cut.words))
        return Words(self.words.take(pa.array(chosen)), cut.offsets).join()
