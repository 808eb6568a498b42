"""From a configuration to its bundle."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from wordveil import __version__
from wordveil import bundle as bundles
from wordveil import embedding as embeddings
from wordveil.bundle import Bundle
from wordveil.config import Config
from wordveil.errors import BundleError
from wordveil.mechanisms.base import Progress
from wordveil.mechanisms.registry import MECHANISMS


def _silent(_: str) -> None:
    """Report nothing."""


def build_bundle(config: Config, progress: Progress = _silent) -> Bundle:
    """Build the configuration's bundle, or return the one that is there already."""
    place = config.mechanism.embedding
    recipe = config.recipe(embeddings.source_digest(place))
    try:
        found = bundles.find(Path(config.bundle), recipe)
    except BundleError:
        found = None  # Others are there; this one joins them.
    if found is None:
        embedding = embeddings.load(place, config.mechanism.embedding_format, progress)
        mechanism = MECHANISMS[config.mechanism.name]
        built = mechanism.build(embedding, config.mechanism.settings, padding=config.policy.pads, progress=progress)
        provenance = {"wordveil": __version__, "built": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "source": embedding.source}
        found = bundles.write(Path(config.bundle), embedding, built, recipe, provenance)
    return bundles.open_bundle(found)


def find_bundle(config: Config) -> Bundle | None:
    """The configuration's bundle; None where its store is empty. Raises :class:`BundleError` where none there matches."""
    place = config.mechanism.embedding
    there = place == embeddings.DEMO or Path(place).exists()
    found = bundles.find(Path(config.bundle), config.recipe(embeddings.source_digest(place) if there else ""))
    return bundles.open_bundle(found) if found else None


def ready_bundle(config: Config, progress: Progress = _silent) -> Bundle:
    """The bundle of a run: found, or built where the configuration says so. Raises :class:`BundleError`."""
    bundle = build_bundle(config, progress) if config.build_missing else find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle = {config.bundle}: holds no bundle. Run `wordveil build` with this configuration, or set build_missing: true."
        )
    bundle.check_policy(config.policy)
    return bundle
