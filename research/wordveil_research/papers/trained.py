"""Generators that experiments train, each once: the weights are kept, and an interrupted training goes on.

As in the paper, which holds a fifth of a corpus out, generators are judged on texts that did not train them. The part
of a corpus that trains counts as public.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from filelock import FileLock

from wordveil.assembly.generator_texts import encode_texts
from wordveil.embeddings.embedding import DEMO, Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.corpus import Corpus, Piece, find_corpus, write_corpus
from wordveil.generators.training.settings import INSTALL, RewardSettings, Schedule, TrainingSettings, require_packages
from wordveil.generators.weights import GeneratorWeights, digest_words, load_weights, save_weights
from wordveil.scores.score import Group, Measurement, Score
from wordveil.text.codec import Codec
from wordveil_research.papers.systems import WORDS_ALONE

if TYPE_CHECKING:
    from wordveil.generators.training.train import TrainingTask

PLAIN, REWARDED = "AE-DP", "ER-AE"
"""The paper's names of a generator that is trained without and with the embedding reward."""
MISSING = (
    f"{PLAIN} and {REWARDED} have no row: JAX, Flax or Optax is not installed, which train their generators. {INSTALL}"
)
_DIRECTORY = "generators"
_WEIGHTS, _TRAINING = "weights.npz", "training"
_FORM = 2
"""Raised when the same plan would train something else."""
_VALIDATION = 0.02
_TEXTS = 4096


@dataclass(frozen=True)
class GeneratorSizes:
    """The sizes of a generator and of its training. See :class:`wordveil.generators.shape.GeneratorShape`.

    Attributes
    ----------
    words
        of the vocabulary: the first ones of the embedding.
    length, cells, latent
        of the shape. Encoder and generator have one layer each.
    known_words
        words of the texts that train, about.
    epochs, plain_epochs
        passes over these texts, and how many of them come before the reward.
    batch, learning_rate, word_dropout
        of the training (:class:`wordveil.generators.training.settings.TrainingSettings`).
    vectors
        the public embedding whose words they are.
    """

    words: int = 8_000
    length: int = 10
    cells: int = 160
    latent: int = 128
    known_words: int = 600_000
    epochs: int = 6
    plain_epochs: int = 2
    batch: int = 64
    learning_rate: float = 0.003
    word_dropout: float = 0.3
    vectors: str = DEMO

    @property
    def embedding(self) -> str:
        """The name of the words' embedding (:func:`wordveil_research.papers.rows.load_embedding`)."""
        return f"{self.vectors}:{self.words}"

    def find_shape(self, embedding: Embedding) -> GeneratorShape:
        """Find the shape over the words of an embedding."""
        sizes = (self.cells, self.latent, self.length)
        return GeneratorShape(embedding.size, embedding.dimension, *sizes, encoder_layers=1, generator_layers=1)


QUICK_SIZES = GeneratorSizes(words=500, length=6, cells=16, latent=8, known_words=6_000, epochs=2, plain_epochs=1)


@dataclass(frozen=True)
class GeneratorPlan:
    """A generator that an experiment needs.

    Attributes
    ----------
    corpus
        the name of the texts that train it.
    kind
        :data:`PLAIN` or :data:`REWARDED`.
    sizes
        of it.
    """

    corpus: str
    kind: str
    sizes: GeneratorSizes

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.kind} of {self.corpus}"

    @property
    def settings(self) -> TrainingSettings:
        """What decides each step of the training."""
        reward = RewardSettings() if self.kind == REWARDED else RewardSettings(reward=0.0)
        sizes = self.sizes
        return TrainingSettings(
            batch=sizes.batch,
            learning_rate=sizes.learning_rate,
            word_dropout=sizes.word_dropout,
            chunk=128,
            reward=reward,
        )

    @property
    def schedule(self) -> Schedule:
        """When the training is measured, saved and ended: after its epochs, whatever the losses do."""
        sizes = self.sizes
        return Schedule(sizes.epochs, sizes.plain_epochs, validate_every=200, patience=10**6, checkpoint_every=100)


def describe_generators(sizes: GeneratorSizes) -> str:
    """Describe the sizes of generators and of their trainings, for people."""
    return (
        f"sequences of {sizes.length} words, {sizes.cells} cells, a latent vector of {sizes.latent}, one layer each; "
        f"{sizes.epochs} passes over about {sizes.known_words:,} words, of {REWARDED}'s {sizes.plain_epochs} without "
        f"the reward; {sizes.word_dropout:.0%} of the words before are hidden from the generator in training"
    )


def train_or_load(plan: GeneratorPlan, texts: Sequence[str], embedding: Embedding, work: Path) -> GeneratorWeights:
    """Train a generator, or load it where it is kept in ``work/generators``.

    A process that needs the same generator waits until it is trained. A training that was interrupted goes on.

    Parameters
    ----------
    plan : GeneratorPlan
        which.
    texts : sequence of str
        train it.
    embedding : Embedding
        has its words.
    work : pathlib.Path
        a directory that is kept.

    Raises
    ------
    PlatformError
        where it is to be trained, and JAX, Flax or Optax is not installed.
    """
    source = {"form": _FORM, "plan": asdict(plan), "texts": _digest(texts), "words": digest_words(embedding.words)}
    place = work / _DIRECTORY / hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()[:32]
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / "lock"):
        if not (place / _WEIGHTS).exists():
            save_weights(place / _WEIGHTS, _train(plan, texts, embedding, place / _TRAINING))
    return load_weights(place / _WEIGHTS)


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)} {text}".encode())
    return digest.hexdigest()


def _train(plan: GeneratorPlan, texts: Sequence[str], embedding: Embedding, directory: Path) -> GeneratorWeights:
    require_packages()
    from wordveil.generators.training.train import train

    directory.mkdir(exist_ok=True)
    return train(_make_task(plan, texts, embedding, directory), plan.schedule, directory).weights


def _make_task(plan: GeneratorPlan, texts: Sequence[str], embedding: Embedding, directory: Path) -> TrainingTask:
    from wordveil.generators.training.train import TrainingTask

    corpus = prepare_corpus(texts, embedding, plan.sizes.length, directory)
    shape, words = plan.sizes.find_shape(embedding), digest_words(embedding.words)
    return TrainingTask(shape, embedding.vectors, words, corpus, "public", plan.settings)


def prepare_corpus(texts: Sequence[str], embedding: Embedding, length: int, directory: Path) -> Corpus:
    """Return texts as sequences of exactly ``length`` words. Like ER-AE's, they go on over the end of a sentence.

    What is left at the end of a text is left out: sequences of one width are compiled once.
    """
    source: dict[str, Any] = {"texts": _digest(texts), "words": digest_words(embedding.words), "length": length}
    if (found := find_corpus(directory, source)) is not None:
        return found
    vocabulary = Vocabulary(embedding.words)
    codec = Codec(WORDS_ALONE, vocabulary)
    parts = (pa.array(texts[start : start + _TEXTS], pa.string()) for start in range(0, len(texts), _TEXTS))
    pieces = (_keep_whole(encode_texts(part, codec, "windows", vocabulary.unknown), length) for part in parts)
    return write_corpus(directory, pieces, length, _VALIDATION, source)


def _keep_whole(piece: Piece, length: int) -> Piece:
    """Return the first words of each text, a multiple of ``length``."""
    counts = np.diff(piece.offsets)
    whole = counts // length * length
    places = np.arange(len(piece.ids)) - np.repeat(piece.offsets[:-1], counts)
    kept = piece.ids[places < np.repeat(whole, counts)]
    return Piece(kept, np.concatenate([[0], np.cumsum(whole)]).astype(np.int64), piece.hashes)


def score_training(plan: GeneratorPlan, weights: GeneratorWeights) -> list[Score]:
    """Return how far the training of a generator went, and what it reached on texts that did not train it."""
    progress: dict[str, Any] = weights.about["progress"]
    last: dict[str, Any] = next(iter(weights.about["last"]), {})
    measured = Measurement(plan.name, "training", "er-ae", Group.TEXT)
    made = [
        measured.make_score(figure, last[f"validation_{figure}"], None, progress["step"], text, higher_is_better=better)
        for figure, (text, better) in _FIGURES.items()
        if f"validation_{figure}" in last
    ]
    cost = Measurement(plan.name, "training", "er-ae", Group.COST)
    text = "Seconds of the training, by the clock."
    return [*made, cost.make_score("seconds", progress["seconds"], None, progress["step"], text, higher_is_better=None)]


_ACCURACY = (
    "The share of the words of held-out sequences that are the generator's likeliest symbol, where it reads the "
    "original words before. The count is that of training steps."
)
_RECONSTRUCTION = "The mean of -ln p(original symbol) there, in nats. The count is that of training steps."
_FIGURES = {"accuracy": (_ACCURACY, True), "reconstruction": (_RECONSTRUCTION, False)}
