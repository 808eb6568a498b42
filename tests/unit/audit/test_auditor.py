"""The auditor audited: it catches each broken mechanism by name, and refutes sound ones no more often than it says."""

from __future__ import annotations

import pytest
from scipy import stats

from support.audits import ALPHA, SHIPPED, audit_shipped, list_refuted
from support.broken_mechanisms import BROKEN, SOUND
from wordveil.mechanisms.registry import MECHANISMS

DRAWS = 300
# Sound mechanisms are refuted more often than this allows once in a million cases; seeds are fixed.
RARE = 1e-6


def most_alarms(repetitions: int) -> int:
    return int(stats.binom.isf(RARE, repetitions, ALPHA))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_mechanism_is_caught_by_name(name: str):
    case = BROKEN[name]
    assert case.caught_by <= list_refuted(case.audit(0, case.draws))


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_one_of_the_same_kind_is_not(name: str):
    assert sum(bool(list_refuted(SOUND[name](seed, 200))) for seed in range(4)) <= most_alarms(4)


@pytest.mark.long
@pytest.mark.parametrize("name", SOUND)
def test_false_alarms_of_sound_ones(name: str):
    assert sum(bool(list_refuted(SOUND[name](seed, 600))) for seed in range(100, 400)) <= most_alarms(300)


def alarms_of(name: str, seeds: range) -> int:
    return sum(bool(list_refuted(audit_shipped(name, seed, DRAWS))) for seed in seeds)


@pytest.mark.long
def test_shipped_mechanisms_are_not_refuted():
    """None is refuted in each of three audits, which a sound one is once in a million cases."""
    assert {name.split(" ")[0] for name in SHIPPED} == set(MECHANISMS)
    alarms = {name: alarms_of(name, range(3)) for name in SHIPPED}
    assert max(alarms.values()) < 3, alarms
    assert sum(alarms.values()) <= most_alarms(3 * len(SHIPPED)), alarms


@pytest.mark.long
@pytest.mark.parametrize("name", SHIPPED)
def test_false_alarms_of_each_shipped_mechanism(name: str):
    assert alarms_of(name, range(100, 160)) <= most_alarms(60)
