"""How many authors an attacker names: static, adaptive, and on clean text.

A *static* attacker learns from clean text. An *adaptive* one learns from the same text after the same mechanism with
the same text policy drew for it under a throwaway key, as anyone can do. What a static attacker fails at says little:
only the adaptive one says something about protection. Neither bounds what a better attacker can do; that is for the
mechanism's guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Bool, Int64
from wordveil.evaluation.attacks.koppel import FittedKoppel
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.evaluation import Confusion
from wordveil.scores.measurement import Measurement
from wordveil.scores.score import Group, Score, find_mean_interval, measure_accuracy

TASK = "authors"
ORIGINAL = "original"
"""The subject of what is measured on clean text."""
STATIC, ADAPTIVE = "static", "adaptive"
ACCURACY, PRECISION, ANSWERED = "accuracy", "precision", "answered"
_LEARNT = {STATIC: "clean text", ADAPTIVE: "text that was sanitised in the same way under a throwaway key"}


def measure_authorship(
    attack: TextClassifier,
    known: Documents,
    snippets: Documents,
    released: Sequence[str],
    redrawn: Sequence[str],
    subject: str,
    seed: int,
    *,
    with_original: bool = True,
) -> tuple[list[Score], list[Confusion]]:
    """Run an attack on sanitised snippets, static and adaptive, and on clean ones.

    Parameters
    ----------
    attack
        the attacker.
    known
        clean texts whose authors the attacker knows.
    snippets
        clean texts by authors of the same names; none of them is in ``known``.
    released
        the snippets after sanitising, one for each.
    redrawn
        the known texts after sanitising in the same way under a throwaway key, one for each.
    subject
        whose texts ``released`` are, such as ``release``.
    seed
        of the attacker and of the intervals.
    with_original
        whether clean snippets are attacked too, under the subject :data:`ORIGINAL`. Who measures several mechanisms on
        the same snippets needs that once.

    Returns
    -------
    tuple
        The accuracy of each attacker, with its interval and the chance level: an attacker that can refuse to answer is
        made to answer. Of one that can refuse (:class:`wordveil.evaluation.attacks.koppel.Koppel`) also the share of
        snippets that it answers for, and the precision of these answers. And the confusions of each; refusals to
        answer stand in the last column.

    Raises
    ------
    ValueError
        where lengths or names differ, fewer than two authors have known text, or no snippet has a known author.
    """
    if known.names != snippets.names:
        raise ValueError("Expected known texts and snippets with the same names.")
    if len(released) != len(snippets) or len(redrawn) != len(known):
        raise ValueError(
            f"Expected {len(snippets)} released snippets and {len(known)} redrawn known texts, got {len(released)} "
            f"and {len(redrawn)}."
        )
    clean, adapted = attack.fit(known, seed), attack.fit(known.with_texts(redrawn), seed)
    runs = [(clean, released, subject, STATIC), (adapted, released, subject, ADAPTIVE)]
    if with_original:
        runs.append((clean, snippets.texts, ORIGINAL, STATIC))
    scores: list[Score] = []
    confusions: list[Confusion] = []
    for fitted, texts, whose, variant in runs:
        if isinstance(fitted, FittedKoppel):
            votes = fitted.score(texts)
            answers = np.where(votes.shares > fitted.threshold, votes.labels, UNKNOWN)
            guesses = _Guesses(attack, whose, variant, votes.labels, snippets, seed)
            scores += [guesses.score_accuracy(), *guesses.score_answers(answers, fitted.threshold)]
        else:
            answers = fitted.predict(texts)
            scores.append(_Guesses(attack, whose, variant, answers, snippets, seed).score_accuracy())
        confusions.append(
            Confusion(
                whose,
                attack.name,
                variant,
                snippets.names,
                count_confusions(answers, snippets.labels, len(snippets.names)),
            )
        )
    return scores, confusions


@dataclass(frozen=True)
class _Guesses:
    """The author that one attacker names for each snippet."""

    attack: TextClassifier
    subject: str
    variant: str
    labels: Int64
    snippets: Documents
    seed: int

    def score_accuracy(self) -> Score:
        accuracy = measure_accuracy(self.labels, self.snippets.labels, self.seed)
        definition = "The share of snippets whose author is named."
        return self._make(
            ACCURACY, (accuracy.value, accuracy.low, accuracy.high), accuracy.chance, accuracy.count, definition
        )

    def score_answers(self, answers: Int64, threshold: float) -> list[Score]:
        """How often the attacker answers, and how often it is right then."""
        is_known = self.snippets.labels != UNKNOWN
        is_answered = (answers != UNKNOWN) & is_known
        definition = f"The share of snippets for which an author wins more than {threshold:.0%} of the rounds."
        answered = self._make(
            ANSWERED, _average(is_answered[is_known], self.seed), None, int(is_known.sum()), definition
        )
        definition = (
            f"The share of right answers among the snippets for which an author wins more than {threshold:.0%} "
        )
        hits = (answers == self.snippets.labels)[is_answered]
        labels = self.snippets.labels[is_answered]
        chance = float(np.bincount(labels).max() / len(labels)) if len(labels) else None
        note = "" if len(hits) else "The attacker answers for no snippet."
        values = _average(hits, self.seed) if len(hits) else (None, None, None)
        return [answered, self._make(PRECISION, values, chance, len(hits), f"{definition}of the rounds.", note)]

    def _make(
        self,
        figure: str,
        values: tuple[float | None, float | None, float | None],
        chance: float | None,
        count: int,
        definition: str,
        note: str = "",
    ) -> Score:
        value, low, high = values
        return Measurement(self.subject, TASK, self.attack.name, Group.ATTACK, self.variant).make_score(
            figure,
            value,
            None if low is None or high is None else (low, high),
            count,
            f"{definition} {self.attack.definition} It learns from {_LEARNT[self.variant]}.",
            chance=chance,
            higher_is_better=False,
            note=note,
        )


def _average(values: Bool, seed: int) -> tuple[float, float, float]:
    return float(values.mean()), *find_mean_interval(values, seed)


def count_confusions(answers: Int64, labels: Int64, names: int) -> tuple[tuple[int, ...], ...]:
    """How many texts of each label were given each label; the last column counts refusals.

    ``answers``, ``labels``: int64 ``(texts,)``. Texts whose own label is unknown are left out. ``names``: how many
    labels there are.
    """
    known = labels != UNKNOWN
    columns = np.where(answers[known] == UNKNOWN, names, answers[known])
    flat = np.bincount(labels[known] * (names + 1) + columns, minlength=names * (names + 1))
    return tuple(tuple(row) for row in flat.reshape(names, names + 1).tolist())
