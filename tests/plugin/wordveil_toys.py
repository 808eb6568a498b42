"""A mechanism as another package brings it: k-ary randomised response over the vocabulary (Warner 1965; Kairouz,
Bonawitz, Ramage 2016), in one file. It is no part of wordveil.

A symbol stays itself with probability ``e^epsilon / (e^epsilon + N - 1)``, and becomes each other output alike. Any two
symbols cost epsilon, whatever their distance. The unknown word, and padding where it is no output, draw every output
alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions, scale_words
from wordveil.embeddings.embedding import Embedding
from wordveil.mechanisms.base import NO_FILES, Mechanism, MechanismArtifact, TokenBatch
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import Metric, WordGuarantee


@dataclass(frozen=True, kw_only=True)
class RandomisedResponseSettings(MechanismSettings):
    """``epsilon``: the loss of a token between any two words, in nats."""

    epsilon: Annotated[float, Ge(0.01), Le(50.0)]


def check_epsilon(epsilon: float) -> None:
    if not 0.01 <= epsilon <= 50:
        raise ValueError(f"Expected epsilon={epsilon} in [0.01, 50].")


class RandomisedResponse(Mechanism[RandomisedResponseSettings]):
    """See the module. It has no arrays."""

    name = "randomised-response"
    sampler_version = 1
    settings_type = RandomisedResponseSettings
    is_pure = True

    def __init__(self, size: int, epsilon: float, *, padding: bool) -> None:
        self._outputs = size + padding
        self._epsilon = epsilon
        self._padding = padding
        self._size = size
        # With this probability an output is drawn from all alike, the word itself among them.
        outputs = self._outputs
        self._spread = outputs / (math.exp(epsilon) + outputs - 1)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        small = RandomisedResponseSettings(epsilon=5.0)
        return {"": Example(small, small.at_epsilon(9.0))}

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[RandomisedResponseSettings]:
        return (RandomisedResponseSettings(epsilon=1.0),)

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: RandomisedResponseSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        check_epsilon(settings.epsilon)
        digest = sha256(f"{embedding.size} {padding}".encode() + embedding.digest.encode()).hexdigest()
        guarantee = WordGuarantee(Metric("discrete", digest), settings.epsilon, settings.epsilon, 1.0, slack=1e-9)
        return MechanismArtifact({"epsilon": settings.epsilon, "padding": padding}, {}, guarantee)

    @classmethod
    def load(
        cls,
        size: int,
        parameters: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        files: Mapping[str, Path] = NO_FILES,
    ) -> Self:
        return cls(size, parameters["epsilon"], padding=parameters["padding"])

    @property
    def max_tokens(self) -> int:
        return max_positions(1)

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        words = self.random_words(batch, keys)
        spread = words[:, 0] < np.uint64(min(self._spread, 1 - 2**-53) * 2.0**64)
        spread |= batch.ids >= self._outputs
        alike = scale_words(words[:, 1], np.array(self._outputs, np.uint64)).astype(np.int32)
        return TokenBatch(np.where(spread, alike, batch.ids), batch.offsets, batch.contexts)

    def random_words(self, batch: TokenBatch, keys: ReleaseKeys) -> NDArray[np.uint64]:
        """Two words of 64 random bits a token."""
        return KeyedStream(keys.noise, 1).record_words(batch.contexts, batch.offsets)

    def probabilities(self, symbol: int) -> NDArray[np.float64]:
        law = np.full(self._outputs, 1 / self._outputs)
        if symbol < self._outputs:
            law *= self._spread
            law[symbol] += 1 - self._spread
        return law

    def at_epsilon(self, epsilon: float) -> Self:
        check_epsilon(epsilon)
        return type(self)(self._size, epsilon, padding=self._padding)


class NoiseOfTheBatch(RandomisedResponse):
    """Broken on purpose: noise follows the place in the batch and not the record."""

    name = "noise-of-the-batch"

    def random_words(self, batch: TokenBatch, keys: ReleaseKeys) -> NDArray[np.uint64]:
        offsets = np.array([0, len(batch.ids)])
        return KeyedStream(keys.noise, 1).record_words(np.zeros((1, 12), np.uint8), offsets)


class NoKey(RandomisedResponse):
    """Broken on purpose: noise does not follow the key."""

    name = "no-key"

    def random_words(self, batch: TokenBatch, keys: ReleaseKeys) -> NDArray[np.uint64]:
        return super().random_words(batch, MasterKey(bytes(range(32))).for_release("none"))


class TooLittleNoise(RandomisedResponse):
    """Broken on purpose: the guarantee claims half of what a token loses."""

    name = "too-little-noise"

    @classmethod
    def build(cls, embedding: Embedding, settings: RandomisedResponseSettings, **more: Any) -> MechanismArtifact:
        built = super().build(embedding, settings, **more)
        return MechanismArtifact({**built.parameters, "epsilon": 2 * settings.epsilon}, {}, built.guarantee)


@dataclass(frozen=True, kw_only=True)
class WellReadSettings(RandomisedResponseSettings):
    """Lists of numbers, and every kind of public file."""

    input_files = ("similarity", "pairs", "classes", "ngrams")

    sizes: tuple[Annotated[int, Ge(2)], ...] = (20,)
    losses: tuple[Annotated[float, Ge(0.0)], ...] = ()
    similarity: str | None = None
    pairs: str | None = None
    classes: str | None = None
    ngrams: str | None = None

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        losses = written.get("losses", ())
        if isinstance(losses, tuple) and losses and losses[0] != 0:
            yield "losses", "the first must be 0."


class WellRead(RandomisedResponse):
    """The same, and its parameters say what public files it was built from."""

    name = "well-read"
    settings_type = WellReadSettings

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        small = WellReadSettings(epsilon=5.0, sizes=(10, 80), losses=(0.0, 2.5))
        return {"": Example(small, small.at_epsilon(9.0))}

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[RandomisedResponseSettings]:
        return (WellReadSettings(epsilon=1.0),)

    @classmethod
    def build(cls, embedding: Embedding, settings: RandomisedResponseSettings, **more: Any) -> MechanismArtifact:
        built = super().build(embedding, settings, **more)
        used = sorted(name for name, value in vars(more["inputs"]).items() if value is not None)
        return MechanismArtifact({**built.parameters, "used": used}, {}, built.guarantee, ("built from files.",))
