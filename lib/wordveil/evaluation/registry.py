"""The lists of statistics, attackers and utility tasks. Adding one is a file, and a line here."""

from __future__ import annotations

from wordveil.evaluation.attackers import MaximumPosterior, NearestWord
from wordveil.evaluation.protocols import Attacker, Statistic, UtilityTask
from wordveil.evaluation.statistics import KeepProbability, SupportSize
from wordveil.evaluation.text_classification import NaiveBayes

_STATISTICS: tuple[Statistic, ...] = (KeepProbability(), SupportSize())
_ATTACKERS: tuple[type[Attacker], ...] = (NearestWord, MaximumPosterior)
_UTILITY_TASKS: tuple[type[UtilityTask], ...] = (NaiveBayes,)

STATISTICS = {statistic.name: statistic for statistic in _STATISTICS}
ATTACKERS = {attacker.name: attacker for attacker in _ATTACKERS}
UTILITY_TASKS = {task.name: task for task in _UTILITY_TASKS}
