"""SynTF's word replacement: the exponential mechanism over a rating of words for each other.

Weggenmann and Kerschbaum 2018, as Bo, Ding, Fung, Iqbal 2021 use it for their baseline: a word ``w`` becomes ``x`` with
probability proportional to ``exp(epsilon u(w, x) / 2)``. The rating is the cosine of the two words' vectors, scaled to
[0, 1]: ``u = (1 + cos) / 2``. A rating changes by at most 1 between any two words, so a token's loss is at most
epsilon, whatever the words: a pure bound that knows no distance. The table's actual loss is computed from its whole
numbers and charged.

With ``neighbours: k`` words beyond the ``k`` best rated have the rating of the best of them, and are drawn alike:
ratings are still in [0, 1]. The unknown word rates all outputs alike, and padding rates itself 1 and everything else 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import MechanismArtifact, pure_guarantee
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import Evidence, ShownEpsilon
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings, Neighbours, TableEpsilon
from wordveil.mechanisms.tables.exponential import show_odds
from wordveil.mechanisms.tables.mechanism import (
    TableMechanism,
    build_certified,
    check_epsilon,
    find_lists,
    largest_loss,
    points_of,
    symbol_rows,
)
from wordveil.neighbours.blocks import BuildContext

_ANGULAR = SPACES["angular"]


@dataclass(frozen=True, kw_only=True)
class SynTFSettings(MechanismSettings):
    """Words drawn with weights that rise with their similarity.

    Attributes
    ----------
    epsilon : float
        bounds the loss of a token between any two words, near or far, in nats. The loss that the build certifies is
        smaller, and is what a record pays: similarities of words differ by less than 1. It has no default.
    neighbours : int or None
        words beyond this many most similar ones count as the last of these. None: each word has an individual weight.
    """

    epsilon: TableEpsilon
    neighbours: Neighbours | None = None

    @property
    def terms(self) -> ComparisonTerms:
        return ComparisonTerms(neighbours=self.neighbours)


class SynTF(TableMechanism[SynTFSettings]):
    """See the module. Arrays: those of :class:`wordveil.mechanisms.tables.table.AliasTable`."""

    name = "syntf"
    sampler_version = 1
    settings_type = SynTFSettings
    is_pure = True

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        return {"": Example(SynTFSettings(epsilon=20.0), SynTFSettings(epsilon=20.0, neighbours=64))}

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[SynTFSettings]:
        return (SynTFSettings(epsilon=1.0, neighbours=terms.neighbours),)

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: SynTFSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,  # noqa: ARG003
    ) -> MechanismArtifact:
        epsilon = settings.epsilon
        check_epsilon(epsilon)
        points = points_of(_ANGULAR, embedding, "mechanism.name = syntf")
        angles = find_lists(_ANGULAR, points, settings.neighbours, None, work)
        # The rating falls with the angle, so that the nearest are the best rated.
        ratings = replace(
            angles, distances=_complement(angles.distances), cut=_complement(np.minimum(angles.cut, np.pi))
        )
        work.progress("arranging the table")
        table, _ = build_certified(symbol_rows(ratings, epsilon / 2, 1.0, padding=padding), 0.0)
        loss = largest_loss(table, embedding.size, padding=padding)
        guarantee = pure_guarantee(embedding, epsilon, loss, padding=padding)
        return MechanismArtifact({"epsilon": epsilon, "padding": padding}, table.arrays, guarantee)

    def shown_epsilon(self, evidence: Evidence) -> ShownEpsilon | None:
        if evidence.loss is None or evidence.embedding is None:
            return None
        points = _ANGULAR.points(evidence.embedding.vectors)

        def measure_angles(word: int) -> Float64:
            return _ANGULAR.distances(points[word], points)

        return show_odds(self, replace(evidence, distances=measure_angles), _complement)


def _complement(angle: Any) -> Any:
    """Return what a rating lacks to 1: ``1 - (1 + cos) / 2``, exact near 0."""
    return np.sin(angle / 2) ** 2
