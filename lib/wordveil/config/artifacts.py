"""From a configuration to its bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle
from wordveil.artifacts.ngram_model import open_model
from wordveil.config.load import Config
from wordveil.config.schema import HYPERNYMS
from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training.hypernyms import read_pairs
from wordveil.embeddings.training.poincare import ReadPairs, train_or_load
from wordveil.errors import BundleError
from wordveil.evaluation.comparison import Comparison, compare
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.slots import NgramModel
from wordveil.version import __version__

_PARTS = ".parts"
_TRAINED = ".trained"


def build_bundle(config: Config, work: BuildContext | None = None, read: ReadPairs = read_pairs) -> Bundle:
    """Build the configuration's bundle, or return the one that is there already.

    Parts of a build that take long are kept in the store until the bundle is written, so that a build that was
    interrupted goes on where it was. An embedding that is trained stays there, for bundles with other settings of the
    mechanism. ``read`` gives the pairs that it is trained from. Raises :class:`BundleError` and
    :class:`EmbeddingError`.
    """
    work = work or BuildContext()
    place = config.mechanism.embedding
    recipe = config.recipe(embeddings.digest_source(place))
    try:
        found = bundles.find(Path(config.bundle_store), recipe)
    except BundleError:
        found = None  # Others are there; this one joins them.
    if found is None:
        embedding = _embedding(config, work, read)
        mechanism = MECHANISMS[config.mechanism.name]
        work = replace(work, kept=work.kept or Path(config.bundle_store) / _PARTS)
        built = mechanism.build(embedding, config.mechanism.settings, padding=config.policy.pads, work=work)
        provenance = {
            "wordveil": __version__,
            "built": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "source": embedding.source,
        }
        found = bundles.write(Path(config.bundle_store), embedding, built, recipe, provenance)
        work.forget()
    return bundles.open_bundle(found)


def _embedding(config: Config, work: BuildContext, read: ReadPairs) -> Embedding:
    """The embedding, read or trained."""
    section = config.mechanism
    if section.embedding_format == HYPERNYMS:
        return train_or_load(
            Path(section.embedding), section.training.settings, Path(config.bundle_store) / _TRAINED, work, read
        )
    return embeddings.load(section.embedding, section.embedding_format, work.progress)


def compare_mechanisms(config: Config, text: str, progress: Callable[[str], None]) -> Comparison:
    """``text`` under the configured mechanism and under the others. Raises :class:`BundleError`."""
    embedding = _embedding(config, BuildContext(progress), read_pairs)
    return compare(
        embedding, config.policy, config.mechanism.name, config.mechanism.settings, text, progress, find_ngrams(config)
    )


def find_bundle(config: Config) -> Bundle | None:
    """The configuration's bundle; None where its store is empty. Raises :class:`BundleError` where none there
    matches.
    """
    place = config.mechanism.embedding
    digest = embeddings.digest_source(place) if embeddings.embedding_exists(place) else ""
    found = bundles.find(Path(config.bundle_store), config.recipe(digest))
    return bundles.open_bundle(found) if found else None


def find_ngrams(config: Config) -> NgramModel | None:
    """The n-gram model of the text policy, verified; None where it has none. Raises
    :class:`wordveil.errors.NgramError`.
    """
    path = config.text.model_path
    return open_model(path) if path else None


def ready_bundle(config: Config, work: BuildContext | None = None) -> Bundle:
    """The bundle of a run: found, or built where the configuration says so. Raises :class:`BundleError`."""
    bundle = build_bundle(config, work) if config.build_missing else find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: holds no bundle. Run `wordveil build` with this configuration, or set build_missing: true."
        )
    bundle.check_policy(config.policy)
    return bundle
