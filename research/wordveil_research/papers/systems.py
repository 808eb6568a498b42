"""Ways to sanitise text that experiments compare: this package's mechanisms, each as a bundle with a text policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from wordveil.artifacts.bundle import Recipe, open_bundle, write
from wordveil.embeddings.embedding import Embedding
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.policy import TextPolicy
from wordveil_research.papers.policies import find_model


@runtime_checkable
class TextSanitiser(Protocol):
    """Sanitises texts as one system does: a bundle with its text policy, or another library's."""

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Return the sanitised texts, one for each, in the same order. A text that is refused becomes the empty text.

        ``seed``: of public texts, so that a result can be repeated. None draws with a fresh throwaway key, as private
        texts require.
        """


WORDS_ALONE = TextPolicy()
"""Words in lower case and nothing else: what the papers' mechanisms see and write."""


def build_system(
    embedding: Embedding,
    mechanism: str,
    settings: MechanismSettings,
    store: Path,
    *,
    work: BuildContext | None = None,
    inputs: PublicInputs = NO_INPUTS,
    policy: TextPolicy = WORDS_ALONE,
) -> BundleSanitiser:
    """Build a mechanism without padding into a store of bundles, and open it.

    Parameters
    ----------
    embedding
        a public one.
    mechanism, settings
        its name, and an instance of its class of settings.
    store
        the directory for the bundle.
    work
        where lists of neighbours are found and kept.
    inputs
        other public data.
    policy
        the text policy, one without padding and without lists.

    Raises
    ------
    BundleError
        where the mechanism cannot be built with these settings.
    """
    built = MECHANISMS[mechanism].build(embedding, settings, padding=False, work=work or BuildContext(), inputs=inputs)
    return open_built(embedding, mechanism, settings, built, store, policy)


def open_built(
    embedding: Embedding,
    mechanism: str,
    settings: MechanismSettings,
    built: MechanismArtifact,
    store: Path,
    policy: TextPolicy = WORDS_ALONE,
) -> BundleSanitiser:
    """Open what was built of a mechanism without padding, as a bundle in a store."""
    bundle = open_bundle(write_bundle(embedding, mechanism, settings, built, store))
    return BundleSanitiser(bundle, policy, find_model(policy))


def write_bundle(
    embedding: Embedding, mechanism: str, settings: MechanismSettings, built: MechanismArtifact, store: Path
) -> Path:
    """Write what was built of a mechanism without padding into a store, and return the bundle's directory."""
    recipe = Recipe(mechanism, settings.recipe(), padding=False, embedding=embedding.source, embedding_digest="")
    return write(store, embedding, built, recipe, {})
