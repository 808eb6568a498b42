"""Ways to sanitise text that experiments compare: this package's mechanisms, each as a bundle with a text policy."""

from __future__ import annotations

from pathlib import Path

from wordveil.artifacts.bundle import Recipe, open_bundle, write
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.redraw import BundleSanitiser
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.policy import TextPolicy

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
    return BundleSanitiser(open_bundle(write_bundle(embedding, mechanism, settings, built, store)), policy)


def write_bundle(
    embedding: Embedding, mechanism: str, settings: MechanismSettings, built: MechanismArtifact, store: Path
) -> Path:
    """Write what was built of a mechanism without padding into a store, and return the bundle's directory."""
    recipe = Recipe(mechanism, settings.recipe(), padding=False, embedding=embedding.source, embedding_digest="")
    return write(store, embedding, built, recipe, {})
