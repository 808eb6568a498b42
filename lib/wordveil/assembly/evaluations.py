"""Context of an evaluation: what an attacker has of a release, its key and its originals excepted."""

from __future__ import annotations

from dataclasses import dataclass

from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import find_bundle, find_embedding, find_ngrams
from wordveil.config.evaluation import EvaluationSection
from wordveil.config.load import Config
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.evaluation.classifiers import require_packages
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.input.source import Source
from wordveil.records.columns import TextColumns


@dataclass(frozen=True, kw_only=True)
class EvaluationContext:
    """Sections and materials of an evaluation.

    ``output``: the path that messages name. ``policy``: the fingerprint of the text policy and the text columns.
    ``author``: the column of authors, or None. ``sanitiser``: the bundle with the text policy. ``embedding``: that of
    the mechanism, or None if it is missing.
    """

    release: str
    output: str
    mechanism: str
    policy: str
    source: Source
    section: EvaluationSection
    author: str | None
    sanitiser: BundleSanitiser
    embedding: Embedding | None

    @property
    def bundle(self) -> Bundle:
        """Bundle of the release."""
        return self.sanitiser.bundle

    @property
    def columns(self) -> TextColumns:
        """Text columns of the output."""
        return self.sanitiser.columns


def load_evaluation(config: Config) -> EvaluationContext:
    """Load bundle, n-gram model and embedding, and check that the packages of evaluations are installed.

    Raises :class:`BundleError`, :class:`NgramError`, :class:`EmbeddingError` or :class:`PlatformError`.
    """
    require_packages(config.evaluation.encoder)
    bundle = find_bundle(config)
    if bundle is None:
        raise BundleError(
            f"bundle_store = {config.bundle_store}: the store has no bundle, and an adaptive attacker draws with that "
            "of the release. Name the store that the release was drawn from."
        )
    return EvaluationContext(
        release=config.release,
        output=config.output.path,
        mechanism=config.mechanism.name,
        policy=config.record_settings("").policy_fingerprint,
        source=config.source,
        section=config.evaluation,
        author=config.author,
        sanitiser=BundleSanitiser(bundle, config.policy, find_ngrams(config.text), config.text_columns),
        embedding=find_embedding(config),
    )


def load_attackers(config: Config) -> EvaluationContext | None:
    """Load the context for the gate's rules on attacks, which takes a second, or return None without such a rule."""
    rules = config.rules
    return None if rules.attack_to_chance is None and rules.linked is None else load_evaluation(config)
