"""wordveil knows the laboratory's mechanisms as it knows its own, one without an epsilon among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from support.toys import KEYS, build, build_mechanism, counted_contexts, random_embedding, token_batch, toy_settings
from wordveil.config.load import parse_config
from wordveil.errors import BundleError, ConfigError
from wordveil.measures.calibration.meaning import Subject
from wordveil.measures.comparison import compare
from wordveil.measures.suitability import measure_suitability
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil.text.policy import with_profile
from wordveil_research.mechanisms.random import RandomSettings

CONF = Path(__file__).parents[2] / "conf" / "mechanisms"
SIZE = 240
TOY = random_embedding(SIZE, 4)
READABLE = with_profile("readable", stop_word_list=("and", "the"))


@pytest.mark.parametrize("name", ["syntf", "random"])
def test_shipped_section_is_a_configuration(name):
    section = yaml.safe_load((CONF / f"{name}.yaml").read_text())["mechanism"]
    assert parse_config(toy_settings(section), "job.yaml").mechanism.name == name
    assert MECHANISMS.package_of(name).startswith("wordveil-research ")


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ({"name": "syntf", "epsilon": 4.0, "gamma": 2.0}, "mechanism.gamma: unknown key"),
        ({"name": "random", "epsilon": 4.0}, "mechanism.epsilon: unknown key. Allowed here:"),
        ({"name": "sintf", "epsilon": 4.0}, "Did you mean syntf?"),
    ],
)
def test_faulty_section_is_refused(mechanism, message):
    with pytest.raises(ConfigError) as error:
        parse_config(toy_settings({**mechanism, "embedding": "demo", "public": True}), "job.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize("symbol", [0, SIZE, SIZE + 1])
def test_random_draws_every_word_alike_and_no_padding(symbol):
    mechanism = build_mechanism(TOY, {}, padding=True, mechanism="random")
    drawn = mechanism.draw(token_batch([[symbol] * 60_000], counted_contexts(1, series=symbol)), KEYS).ids
    counts = np.bincount(drawn, minlength=SIZE)
    assert len(counts) == SIZE
    assert stats.chisquare(counts).pvalue > 1e-4


def test_random_has_no_epsilon_to_choose():
    with pytest.raises(BundleError, match="no epsilon to choose"):
        Subject("random", RandomSettings(), TOY)
    built = build(TOY, {}, padding=False, mechanism="random")
    mechanism = MECHANISMS["random"].load(SIZE, built.parameters, built.arrays)
    found = measure_suitability(mechanism, TOY, RandomSettings(), built.guarantee, rank_frequencies(SIZE))
    assert found.epsilons == ()


def test_comparison_shows_both_after_the_product():
    settings = ExponentialSettings(epsilon=4.0, gamma=3.0, neighbours=20)
    comparison = compare(TOY, READABLE, "exponential", settings, "Waab waac, waad waae zzz.")
    assert [line.mechanism for line in comparison.equal_kept][-2:] == ["random", "syntf, neighbours 20"]
    free = compare(TOY, READABLE, "random", RandomSettings(), "Waab waac, waad waae zzz.")
    assert (free.configured.pure, free.configured.epsilon) == (0.0, None)
    # Nothing but random costs nothing.
    assert {line.mechanism for line in free.equal_pure} <= {"random"}
