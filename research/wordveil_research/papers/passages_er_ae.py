"""ER-AE beside passages: short texts rewritten by a generator that was trained on passages of the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from wordveil.arrays import Int32
from wordveil.assembly.generator_texts import encode_texts
from wordveil.crypto.keys import ReleaseKeys
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.generators.training.corpus import write_corpus
from wordveil.generators.training.settings import Schedule
from wordveil.generators.weights import GeneratorWeights, digest_words, load_weights, save_weights
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.er_ae.mechanism import ErAe, ErAeSettings
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.codec import Codec
from wordveil.text.policy import with_profile
from wordveil_research.papers.eraee import find_epsilon
from wordveil_research.papers.systems import WORDS_ALONE
from wordveil_research.papers.trained import QUICK_SIZES as SMALL
from wordveil_research.papers.trained import REWARDED, GeneratorPlan, GeneratorSizes

SIZES = GeneratorSizes(epochs=12, vectors="glove")
QUICK_SIZES = replace(SMALL, vectors="glove")
_WEIGHTS, _VALIDATION = "weights.npz", 0.02


def train_or_load(texts: Sequence[str], embedding: Embedding, sizes: GeneratorSizes, work: Path) -> GeneratorWeights:
    """Train a generator on texts of any length, or load a kept one. A training that was interrupted goes on."""
    from wordveil.generators.training.train import TrainingTask, train

    work.mkdir(parents=True, exist_ok=True)
    if not (work / _WEIGHTS).exists():
        vocabulary, words = Vocabulary(embedding.words), digest_words(embedding.words)
        piece = encode_texts(
            pa.array(texts, pa.string()), Codec(WORDS_ALONE, vocabulary), "windows", vocabulary.unknown
        )
        corpus = write_corpus(work, [piece], sizes.length, _VALIDATION, {"words": words})
        settings = GeneratorPlan("", REWARDED, sizes).settings
        task = TrainingTask(sizes.find_shape(embedding), embedding.vectors, words, corpus, "public", settings)
        schedule = Schedule(sizes.epochs, sizes.plain_epochs, validate_every=100, patience=5, checkpoint_every=1000)
        save_weights(work / _WEIGHTS, train(task, schedule, work / "training").weights)
    return load_weights(work / _WEIGHTS)


def encode_fixed(texts: Sequence[str], embedding: Embedding, length: int) -> Int32:
    """Encode texts, cut or filled to ``length`` symbols: int32 ``(texts, length)``."""
    codec = Codec(with_profile("strict", n_max=length), Vocabulary(embedding.words))
    return codec.encode(pa.array(texts, pa.string())).ids.reshape(-1, length)


def build_at(loss: float, embedding: Embedding, weights: GeneratorWeights) -> ErAe:
    """Build ER-AE at a true loss of a token; padding and the end are symbols too."""
    settings = ErAeSettings(epsilon=find_epsilon(loss, weights.shape.outputs), model=_WEIGHTS)
    inputs = PublicInputs(generator=weights)
    built = ErAe.build(embedding, settings, padding=True, work=BuildContext(), inputs=inputs)
    return ErAe.load(embedding.size, built.parameters, built.arrays)


def rewrite(mechanism: ErAe, ids: Int32, keys: ReleaseKeys) -> Int32:
    """Draw texts as records of their own: int32 ``(texts, length)``, as ``ids``."""
    count, length = ids.shape
    names = [b"%d" % text for text in range(count)]
    return mechanism.draw(as_records(ids.ravel(), np.arange(count + 1) * length, names, keys), keys).ids.reshape(
        ids.shape
    )
