"""Subject of a calibration: a mechanism with a free epsilon, and the same built at one epsilon."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wordveil.arrays import Float64
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.measures.search import Candidate, Matcher, make_candidate
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import WordGuarantee


@dataclass(frozen=True)
class Subject:
    """Mechanism over one public vocabulary, with a free epsilon. A search begins with that of ``settings``.

    Raises :class:`BundleError` if the mechanism has no epsilon, or draws a word by the words around it.
    """

    mechanism: str
    settings: MechanismSettings
    embedding: Embedding
    inputs: PublicInputs = NO_INPUTS
    padding: bool = False
    work: BuildContext = field(default_factory=BuildContext)

    def __post_init__(self) -> None:
        if self.kind.reads_context:
            raise BundleError(
                f"mechanism.name = {self.mechanism}: it draws each word by the words around it. What becomes of a "
                "single word says nothing about a text, so that no epsilon can be chosen by it. Sanitise a public text "
                "at several epsilons, and compare what wordveil evaluate measures."
            )
        if not self.settings.has_epsilon():
            raise BundleError(
                f"mechanism.name = {self.mechanism}: there is no epsilon to choose. Name another mechanism."
            )

    @property
    def kind(self) -> type[Mechanism[Any]]:
        """Class of the mechanism."""
        return MECHANISMS[self.mechanism]

    @property
    def least_epsilon(self) -> float:
        """Epsilon below which the mechanism does not exist; 0 if it exists at each."""
        return self.matcher.least_epsilon(self.candidate)

    @cached_property
    def frequencies(self) -> Float64:
        """Frequency of each word in public text: float64 ``(size,)``, adds up to 1."""
        return self.inputs.frequencies_of(self.embedding.size)

    @cached_property
    def matcher(self) -> Matcher:
        """Matcher that builds the mechanism."""
        return Matcher(self.embedding, self.inputs, self.work, padding=self.padding)

    @cached_property
    def candidate(self) -> Candidate:
        """Candidate that the matcher builds."""
        return make_candidate(self.mechanism, self.settings)

    def build(self, epsilon: float) -> BuiltSubject:
        """Build it at an epsilon. Raises :class:`BundleError` or :class:`ValueError` if there is none."""
        return BuiltSubject(self, epsilon, self.matcher.build(self.candidate, epsilon))


@dataclass(frozen=True)
class BuiltSubject:
    """Mechanism built at one epsilon, and its content of a bundle."""

    subject: Subject
    epsilon: float
    artifact: MechanismArtifact

    @property
    def guarantee(self) -> WordGuarantee:
        """Certified constants."""
        return self.artifact.guarantee

    def load(self) -> Mechanism[Any]:
        """Load one more copy, ready to draw: two threads must not search with the same one."""
        return self.subject.matcher.load(self.subject.candidate, self.artifact)

    @cached_property
    def mechanism(self) -> Mechanism[Any]:
        """Copy of the mechanism, ready to draw."""
        return self.load()
