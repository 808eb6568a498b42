"""The rows of an experiment's table: ways to write the same texts, from the originals to a mechanism's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.scores.score import Group, Measurement, Score
from wordveil.text.choices import UnknownWords
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil_research.field.matching import Candidate, Matched, Matcher, make_settings
from wordveil_research.papers.policies import HIDDEN, choose_words, find_model
from wordveil_research.papers.systems import WORDS_ALONE, TextSanitiser, build_system, open_built

POINCARE_2, POINCARE_100 = "poincare-2", "poincare-100"
_TRAINED = {POINCARE_2: 2, POINCARE_100: 100}
"""The dimension of each embedding that is trained on first use."""
_BUNDLES, _LISTS = "bundles", "lists"
_SAMPLE = 100
# Seeds of what an attacker draws are apart from those of what is released.
_ATTACKER = 1_000_003


@dataclass(frozen=True)
class Row:
    """A row.

    Attributes
    ----------
    name
        as the table has it.
    mechanism
        a name of :data:`wordveil.mechanisms.registry.MECHANISMS`; empty for the texts without noise.
    settings
        of the mechanism.
    words_alone
        without a mechanism, whether the texts are reduced to the words of the vocabulary in lower case.
    embedding
        a name that :func:`load_embedding` knows.
    loss
        the largest loss of a token, for which an epsilon is looked for. 0: ``settings`` has the epsilon.
    words
        which words are hidden, a name of :mod:`wordveil_research.papers.policies`.
    """

    name: str
    mechanism: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    words_alone: bool = False
    embedding: str = DEMO
    loss: float = 0.0
    words: str = HIDDEN

    @property
    def draws(self) -> bool:
        """Whether it is random, so that it is repeated."""
        return bool(self.mechanism)

    def plain(self) -> dict[str, Any]:
        """Plain values that decide what is written, for the settings of a cell."""
        return {
            "mechanism": self.mechanism,
            "settings": dict(self.settings),
            "words_alone": self.words_alone,
            "embedding": self.embedding,
            **({"loss": self.loss} if self.loss else {}),
            **({"hidden": self.words} if self.words else {}),
        }

    def hiding(self, words: str) -> Row:
        """Return the same row under another choice of the words that are hidden."""
        return replace(self, name=f"{self.name}, {words}", words=words) if words else self


ORIGINAL = Row("original")
"""The texts as they are."""
NO_NOISE = Row("no noise", words_alone=True)
"""What a mechanism sees, written as it is."""


def load_embedding(name: str, work: Path) -> Embedding:
    """Load a public embedding: a path or a name, its first words alone as in ``demo:8000``, or one that is trained on
    first use and kept in ``work/trained``: :data:`POINCARE_2` or :data:`POINCARE_100`.

    These are of the package's pairs of hypernyms, as ``demo-poincare`` is. In its ten dimensions most words lie so far
    from all others that additive noise of any strength leaves them.
    """
    whole, _, words = name.rpartition(":")
    if whole and words.isdecimal():
        return _take_first(load(whole), int(words))
    if name not in _TRAINED:
        return load(name)
    from wordveil.embeddings.training.hypernyms import PoincareSettings
    from wordveil.embeddings.training.poincare import train_or_load

    settings = PoincareSettings(trainer="compiled", dimension=_TRAINED[name], epochs=50, burn_in=20)
    with resources.as_file(resources.files("wordveil") / "data" / "hypernyms" / "pairs.tsv") as pairs:
        return train_or_load(pairs, settings, work / "trained", BuildContext())


def _take_first(whole: Embedding, words: int) -> Embedding:
    return Embedding(whole.words.slice(0, words), whole.vectors[:words], f"the first {words:,} words of {whole.source}")


def seeds_of(draw: int) -> tuple[int, int]:
    """Return the seeds of a release and of what its attacker draws, for the number of a repetition."""
    return draw, _ATTACKER + draw


@dataclass(frozen=True)
class Untouched:
    """Writes the texts as they are (:class:`wordveil_research.papers.systems.TextSanitiser`)."""

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:  # noqa: ARG002 - nothing is drawn
        """Return the same texts."""
        return list(texts)


@dataclass(frozen=True)
class VocabularyWords:
    """Writes the words of a vocabulary in lower case, what the policy copies, and nothing else
    (:class:`wordveil_research.papers.systems.TextSanitiser`). It is what a mechanism without noise writes, but for
    unknown words, which are left out.
    """

    embedding: Embedding
    policy: TextPolicy = WORDS_ALONE

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:  # noqa: ARG002 - nothing is drawn
        """Return the known words of each text, separated by a space."""
        policy = replace(self.policy, unknown=UnknownWords.DROP)
        codec = Codec(policy, Vocabulary(self.embedding.words), find_model(policy))
        encoded = codec.encode(pa.array(texts, pa.string()))
        written: list[str] = codec.decode(encoded.ids, encoded.offsets, encoded.skeleton).to_pylist()
        return written


def open_row(
    row: Row,
    embedding: Embedding,
    work: Path,
    policy: TextPolicy = WORDS_ALONE,
    build: BuildContext | None = None,
    inputs: PublicInputs = NO_INPUTS,
) -> TextSanitiser:
    """Return what writes the texts of a row. A mechanism's bundle is built in ``work/bundles`` unless it is there.
    ``inputs``: other public data that the mechanism reads.

    Raises
    ------
    BundleError
        where the mechanism cannot be built with these settings, or no epsilon has so small a loss.
    """
    policy = choose_words(policy, row.words)
    if not row.mechanism:
        return VocabularyWords(embedding, policy) if row.words_alone else Untouched()
    store, kind = work / _BUNDLES, MECHANISMS[row.mechanism].settings_type
    if row.loss:
        found = match_loss(row, work)
        settings = kind(**{**row.settings, "epsilon": found.epsilon})
        return open_built(embedding, row.mechanism, settings, found.built, store, policy)
    return build_system(embedding, row.mechanism, kind(**row.settings), store, policy=policy, work=build, inputs=inputs)


def match_loss(row: Row, work: Path) -> Matched:
    """Match the mechanism where the largest loss of a token is that of the row or at most 0.5% less, or the largest
    that it has. Each is looked for once a process. Raises :class:`BundleError` where no epsilon has so small a loss.
    """
    return _match_loss(row.mechanism, tuple(row.settings.items()), row.embedding, row.loss, work)


@cache
def _match_loss(
    mechanism: str, settings: tuple[tuple[str, Any], ...], embedding: str, loss: float, work: Path
) -> Matched:
    candidate = Candidate(mechanism, mechanism, make_settings(mechanism, **dict(settings)), by_loss=False)
    matcher = Matcher(load_embedding(embedding, work), work=BuildContext(kept=work / _LISTS))
    found = matcher.at_loss(candidate, loss)
    if found is None:
        raise BundleError(f"{mechanism}: no epsilon has a loss of {loss:g} or less a token. Name a larger loss.")
    return found


def score_losses(row: Row, system: TextSanitiser, embedding: Embedding) -> list[Score]:
    """Return what a token of a row may lose at most: exact figures, from the mechanism's certified constants."""
    if not isinstance(system, BundleSanitiser):
        return [
            _loss(row, "worst-loss", float("inf"), "without noise: two texts that differ are distinguished for certain")
        ]
    guarantee = system.bundle.guarantee
    scores = [_loss(row, "worst-loss", guarantee.epsilon * guarantee.diameter)]
    if guarantee.metric.name in SPACES:
        note = f"configured epsilon {guarantee.nominal_epsilon:g}, true constant {guarantee.epsilon:g} a unit"
        near = find_near(embedding, guarantee.metric.name)
        scores.append(_loss(row, "nearest-loss", guarantee.epsilon * near, note))
    return scores


_DEFINITIONS = {
    "worst-loss": "The largest log probability ratio of a token's outputs between any two words of the vocabulary: the "
    "certified constant times the largest distance.",
    "nearest-loss": "The same between a word and its nearest neighbour: the certified constant times the median "
    f"distance of {_SAMPLE} words from their nearest ones.",
}


def _loss(row: Row, figure: str, value: float, note: str = "") -> Score:
    return Measurement(row.name, "words", "certified", Group.PRIVACY).make_score(
        figure, value, None, 1, _DEFINITIONS[figure], higher_is_better=False, note=note
    )


def find_near(embedding: Embedding, metric: str) -> float:
    """Find the median distance of 100 words, evenly spread over the vocabulary, from their nearest ones, in a metric of
    :data:`wordveil.geometry.spaces.SPACES`.
    """
    points = embedding.vectors.astype(np.float64)
    chosen = np.arange(min(_SAMPLE, len(points))) * len(points) // min(_SAMPLE, len(points))
    distances = SPACES[metric].distances
    return float(np.median([np.partition(distances(points[word], points), 1)[1] for word in chosen]))
