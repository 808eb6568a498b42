"""Data on the meaning of an epsilon for a vocabulary, for the terminal, the HTML page and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wordveil.scores.counts import Bin

FORMAT_VERSION = 2


@dataclass(frozen=True)
class WordFigure:
    """Statistic of words: one number for each of them.

    ``name``: such as ``N_w``, ``S_w``, ``K_w``, ``inputs``, ``H0``, ``H_inf``, ``moved`` or ``cosine``. ``definition``:
    what it is, with its unit, in a sentence. ``average``: the mean over the words that were measured. ``worst``: that
    of the least protected word: the largest ``N_w``, the least ``S_w``. ``worst_word``: which word that is; public, as
    all words of a vocabulary are. Of ``inputs`` it is an output that some word reaches. ``quantiles``: 5%, 25%, 50%,
    75% and 95% over the words. ``is_exact``: whether it was computed from the mechanism's probabilities; else it was
    counted from draws. ``histogram``: how many words have which value, for a picture; empty where values are no whole
    numbers. Of ``N_w`` in draws out of all that were planned for a word; an exact ``S_w`` is rounded to whole outputs.
    ``scale``: what a value is multiplied by in the histogram: the draws of a word for ``N_w``, else 1.
    """

    name: str
    definition: str
    average: float
    worst: float
    worst_word: str
    quantiles: tuple[float, float, float, float, float]
    is_exact: bool
    histogram: tuple[Bin, ...] = ()
    scale: int = 1


@dataclass(frozen=True)
class LikelyOutputs:
    """Public word and its likeliest outputs: words with probabilities, falling."""

    word: str
    outputs: tuple[tuple[str, float], ...]
    is_exact: bool


@dataclass(frozen=True)
class EpsilonMeaning:
    """Meaning of one epsilon.

    ``epsilon``: as configured (``mechanism.epsilon``), per unit of the mechanism's metric, or a loss of a pure
    mechanism. ``pure_epsilon``: the certified loss of one token between any two words, in nats. ``delta``: the
    probability, per token, by which that may be exceeded. ``nearest_loss``: the median loss between a word and its
    nearest neighbour, in nats: exact or a bound; None where not known. ``share_kept``: the share of words that come
    back as themselves; each word counts once. ``words``: the statistics of words. ``recovery``: what the best attacker
    recovers, as :meth:`wordveil.privacy.recovery.Recovery.to_dict` gives it, with its multiplicative leakage; None
    where single words say nothing. ``utility``: the bound of Fernandes, Dras and McIver 2019, theorem 3, with the Gamma
    law that holds: plain values with their names (:func:`wordveil.measures.calibration.meaning.bound_utility`); empty
    where the mechanism is no additive noise in a Euclidean space. ``examples``: words and their likeliest outputs.
    """

    epsilon: float
    pure_epsilon: float
    delta: float
    nearest_loss: float | None
    share_kept: float
    words: tuple[WordFigure, ...]
    recovery: Mapping[str, Any] | None
    utility: Mapping[str, float]
    examples: tuple[LikelyOutputs, ...]


@dataclass(frozen=True)
class FoundEpsilon:
    """Epsilon that meets a target.

    ``target``: what was asked for, such as ``share_kept=0.3``, or the mechanism that it was matched with. ``epsilon``:
    the epsilon, of few digits, that can be written into a configuration. ``low``, ``high``: the interval: below ``low``
    the target is missed on the one side, above ``high`` on the other, but for a probability of 5% where draws decided.
    ``reached``: the figure at ``epsilon``. ``is_exact``: whether the figure was computed and not drawn.
    """

    target: str
    epsilon: float
    low: float
    high: float
    reached: float
    is_exact: bool


@dataclass(frozen=True)
class Calibration:
    """Meanings of some epsilons of one mechanism over one vocabulary.

    ``mechanism``: its name. ``facts``: what was measured on, in the order to show: embedding, words, draws, threshold
    of ``K_w`` and ``inputs``, versions. ``meanings``: one for each epsilon, rising. ``found``: the epsilons that meet
    targets. ``notes``: what a reader should know, in sentences.
    """

    mechanism: str
    facts: Mapping[str, str]
    meanings: tuple[EpsilonMeaning, ...]
    found: tuple[FoundEpsilon, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"format_version": FORMAT_VERSION, **asdict(self)}
