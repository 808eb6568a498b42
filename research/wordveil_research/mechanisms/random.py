"""Random-R: each word is replaced by one drawn uniformly from the vocabulary (Bo, Ding, Fung, Iqbal 2021, baseline).

The output does not depend on the word, so that a token's loss is 0. What remains of a text is its length, where that is
shown. It is the lower bound of utility with which the others are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float64
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions, scale_words
from wordveil.embeddings.embedding import Embedding
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, MechanismArtifact, TokenBatch, pure_guarantee
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.neighbours.blocks import BuildContext


@dataclass(frozen=True, kw_only=True)
class RandomSettings(MechanismSettings):
    """Words drawn uniformly from the vocabulary. There is nothing to set."""


class Random(Mechanism[RandomSettings]):
    """See the module. It has no arrays."""

    name = "random"
    sampler_version = 1
    settings_type = RandomSettings
    is_pure = True

    def __init__(self, size: int, *, padding: bool = False) -> None:
        self._size = size
        self._padding = padding

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: RandomSettings,  # noqa: ARG003
        *,
        padding: bool,
        work: BuildContext,  # noqa: ARG003
        inputs: PublicInputs = NO_INPUTS,  # noqa: ARG003
    ) -> MechanismArtifact:
        return MechanismArtifact({"padding": padding}, {}, pure_guarantee(embedding, 0.0, 0.0, padding=padding))

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        return {"": Example(RandomSettings(), RandomSettings())}

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[RandomSettings]:  # noqa: ARG003 - beside any
        return (RandomSettings(),)

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        return cls(size, padding=parameters["padding"])

    @property
    def max_tokens(self) -> int:
        return max_positions(1)

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        words = KeyedStream(keys.noise, 1).record_words(batch.contexts, batch.offsets)
        drawn = scale_words(words[:, 0], np.array(self._size, np.uint64)).astype(np.int32)
        return TokenBatch(drawn, batch.offsets, batch.contexts)

    def probabilities(self, symbol: int) -> Float64:  # noqa: ARG002 - the same for every one
        law = np.zeros(self._size + self._padding)
        law[: self._size] = 1 / self._size
        return law

    def word_laws(self) -> WordLaws:
        nothing = np.zeros(self._size + 1, np.int64)
        return WordLaws(self.probabilities(0), np.ones(self._size), nothing, np.empty(0, np.int32), np.empty(0))
