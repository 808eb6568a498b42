"""Values of a configuration that a job runs with, loaded before Spark starts."""

from __future__ import annotations

from dataclasses import dataclass

from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import find_ngrams, ready_bundle
from wordveil.config.load import Config
from wordveil.config.schema import ReleaseHome, ShuffleSection
from wordveil.crypto.keys import MasterKey, load_key
from wordveil.errors import ConfigError
from wordveil.input.source import Source
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.events import price
from wordveil.privacy.table import TableTerms
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.release.budgets import Budget, find_budget_faults
from wordveil.text.slots import NgramModel


@dataclass(frozen=True)
class Materials:
    """Materials that a job draws with, and their way to the executors: ``auto``, ``path`` or ``archive``."""

    key: MasterKey
    bundle: Bundle
    ngrams: NgramModel | None
    how: str


@dataclass(frozen=True, kw_only=True)
class ReleaseJob:
    """Values with which a run of a release begins."""

    home: ReleaseHome
    settings: RecordSettings
    source: Source
    budget: Budget | None
    materials: Materials


def load_materials(config: Config, work: BuildContext) -> Materials:
    """Read the key and the n-gram model, and find or build the bundle.

    Raises :class:`KeyMaterialError`, :class:`BundleError`, :class:`NgramError` or :class:`EmbeddingError`.
    """
    key = load_key(config.key.file, config.key.env)
    bundle = ready_bundle(config, work)
    return Materials(key, bundle, find_ngrams(config.text), config.spark.bundle)


def find_table_terms(shuffle: ShuffleSection | None, settings: RecordSettings, bundle: Bundle) -> TableTerms | None:
    """Return the terms of a shuffled table, or None for another one."""
    if shuffle is None:
        return None
    local = price(release_terms(settings, bundle), 1).epsilon_pure
    assert local is not None  # the configuration is refused otherwise
    return make_table_terms(shuffle, local, settings, bundle.mechanism.responses)


def make_table_terms(
    shuffle: ShuffleSection, local: float, settings: RecordSettings, responses: int | None
) -> TableTerms:
    """Make the terms of a shuffled table.

    ``local``: the pure loss of a record. ``responses``: as of the mechanism, whose law a record of one draw has.
    """
    return TableTerms(local, responses if settings.policy.n_max == 1 else None, shuffle.epsilon, shuffle.delta)


def load_release_job(config: Config, work: BuildContext) -> ReleaseJob:
    """Load the job of a release's run.

    Raises as :func:`load_materials`, and :class:`ConfigError` for a budget that does not fit the bundle's guarantee.
    """
    settings, source, budget = config.record_settings(""), config.source, config.budget
    materials = load_materials(config, work)
    terms = release_terms(settings, materials.bundle)
    facts = terms.relation, terms.tokens, terms.guarantee
    if faults := find_budget_faults(budget, *facts, has_authors=source.author is not None):
        raise ConfigError("configuration", faults)
    return ReleaseJob(home=config.home, settings=settings, source=source, budget=budget, materials=materials)
