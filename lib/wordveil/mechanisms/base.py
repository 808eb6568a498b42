"""The protocol of a mechanism: ragged batches of token ids in, ragged batches out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import Contexts
from wordveil.embeddings.embedding import Embedding
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import WordGuarantee

NO_FILES: Mapping[str, Path] = MappingProxyType({})


@dataclass(frozen=True)
class TokenBatch:
    """Records as ragged token ids.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``; words ``0 .. size - 1``, then ``size`` for padding and ``size + 1`` for the unknown word.
    offsets
        int64 ``(records + 1,)``, rising from 0 to ``tokens``.
    contexts
        uint8 ``(records, 12)``, one a record (:func:`wordveil.crypto.streams.derive_contexts`).
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    contexts: Contexts

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def record_of_token(self) -> NDArray[np.int64]:
        """The record that each token belongs to: int64 ``(tokens,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def parts(self, most: int) -> Iterator[tuple[slice, Contexts, NDArray[np.int64]]]:
        """Consecutive tokens, at most ``most`` at a time: which they are, the context of each, and its position in its
        record.
        """
        record = self.record_of_token()
        position = np.arange(len(self.ids)) - self.offsets[record]
        for start in range(0, len(self.ids), most):
            part = slice(start, start + most)
            yield part, self.contexts[record[part]], position[part]


@dataclass(frozen=True)
class MechanismArtifact:
    """A mechanism as it enters a bundle.

    Attributes
    ----------
    parameters
        all that, with the arrays, decides the distribution of outputs; plain values.
    arrays
        named arrays that workers map into memory.
    guarantee
        the certified constants.
    notes
        what a user should know, in sentences.
    files
        other files that workers read in place, by name: each a function that writes it to the path it is given.
    """

    parameters: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    guarantee: WordGuarantee
    notes: tuple[str, ...] = ()
    files: dict[str, Callable[[Path], None]] = field(default_factory=dict)


class Mechanism(ABC):
    """A metric differentially private replacement of words.

    A word mechanism keeps the offsets of its batch; a generator may return others. The output of a record depends on
    its ids, its context and the keys, and on nothing else: not on the batch it came in.
    """

    name: ClassVar[str]
    sampler_version: ClassVar[int]
    """Raised when the same parameters, arrays, context and key would draw something else; part of the fingerprint."""

    search: str = "exact"
    """How the nearest word is found."""
    search_recall: float = 1.0
    """The share of noisy points for which the search finds the word that is truly nearest, as measured by the build."""

    @classmethod
    @abstractmethod
    def build(
        cls, embedding: Embedding, settings: Mapping[str, Any], *, padding: bool, work: BuildContext
    ) -> MechanismArtifact:
        """Build from a public embedding. ``padding``: whether texts are padded, so that padding needs a point.

        Raises :class:`ValueError` for an epsilon out of range, :class:`BundleError` for what cannot be built from this
        embedding.
        """

    @classmethod
    def least_epsilon(cls, dimension: int) -> float:  # noqa: ARG003 - for those that have one
        """An epsilon below which there is no such mechanism in ``dimension`` dimensions."""
        return 0.0

    @classmethod
    @abstractmethod
    def load(
        cls,
        size: int,
        parameters: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        files: Mapping[str, Path] = NO_FILES,
    ) -> Self:
        """The mechanism over a vocabulary of ``size`` words, from what :meth:`build` returned; ``files``: where its
        files lie.
        """

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """The most tokens that one record may have: beyond it noise would repeat."""

    @abstractmethod
    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        """Replace every token. Input ids may be any symbol; output ids are words, or padding where it is a symbol."""

    def at_epsilon(self, epsilon: float) -> Mechanism | None:  # noqa: ARG002 - for those that can
        """The mechanism at another epsilon, near enough for a look and without building anything; None where that is
        not possible.

        Previews compare epsilons with it. Raises :class:`ValueError` where ``epsilon`` is out of range.
        """
        return None
