"""How deniable words are: counts, and the epsilon of an equal worst case."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from wordveil.crypto.keys import MasterKey
from wordveil.embeddings.embedding import check_embedding
from wordveil.measures.recovery import load_built
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.mechanisms.random import Random
from wordveil_research.papers import fdd_deniability
from wordveil_research.papers.fdd_deniability import CONTENDERS, DRAWS, FDDTable4, count_outputs
from wordveil_research.papers.repeats import find_score
from wordveil_research.runner.base import Surroundings

KEYS = MasterKey(sha256(b"a test").digest()).for_release("test")


@pytest.fixture
def laplace():
    vectors = np.random.default_rng(5).standard_normal((60, 3))
    embedding = check_embedding([f"w{row}" for row in range(60)], vectors, "made")
    built = Laplace.build(embedding, LaplaceSettings(epsilon=100.0), padding=False, work=BuildContext())
    with load_built(Laplace, built, 60) as mechanism:
        yield mechanism


def test_counts_are_those_of_a_known_law():
    words = np.repeat(np.arange(5, dtype=np.int32), 20)
    counts = count_outputs(Random(5), words, KEYS)
    assert abs(counts.stays.mean() - DRAWS / 5) < 6  # its standard deviation is 1.3; of 6 words it would be 33 less
    assert (counts.outputs == 5).all()
    assert (counts.came.sum(axis=1) == DRAWS).all()
    assert (counts.came[np.arange(len(words)), words] == counts.stays).all()


def test_a_word_that_never_moves_has_one_output(laplace):
    counts = count_outputs(laplace.at_epsilon(10_000.0), np.arange(5, dtype=np.int32), KEYS)
    assert (counts.stays == DRAWS).all()
    assert (counts.outputs == 1).all()


@pytest.mark.parametrize("target", [200, 700])
def test_the_worst_word_stays_as_often_as_it_should(laplace, target):
    words = np.arange(10, dtype=np.int32)
    epsilon = fdd_deniability._find_epsilon(laplace, words, target, 1e-2)
    worst = count_outputs(laplace.at_epsilon(epsilon), words, KEYS).stays.max()
    assert abs(worst - target) < 60  # four standard deviations of fresh draws
    twice = count_outputs(laplace.at_epsilon(2 * epsilon), words, KEYS).stays.max()
    assert abs(twice - target) > 60


def test_a_target_that_no_epsilon_reaches_gives_the_least(laplace):
    assert fdd_deniability._find_epsilon(laplace, np.arange(10, dtype=np.int32), 1, 1e-2) == 1e-2


def test_equal_loss_to_nearest_word_met_or_least_taken(tmp_path):
    experiment, around = FDDTable4(), Surroundings(Path("nowhere"), tmp_path, is_quick=True)
    cells = {cell.name: cell for cell in experiment.plan(around)}
    flat = replace(cells["laplace, loss to the nearest 10"], settings={**_settings(cells, "laplace"), "words": 3})
    curved = cells["hyperbolic-fdd, 10-D, loss to the nearest 10"]
    results = {flat.name: experiment.measure(flat, around), curved.name: experiment.measure(curved, around)}
    scores = experiment.report(around, results).scores
    assert find_score(scores, "laplace", figure="nearest-loss").value == pytest.approx(10)
    assert find_score(scores, "hyperbolic-fdd, 10-D", figure="nearest-loss").value > 60  # n alone costs as much
    assert find_score(scores, "hyperbolic-fdd, 10-D", figure="mean N_w").value > 900
    mean, least = (find_score(scores, "laplace", figure=figure).value for figure in ("mean K_w", "least K_w"))
    assert 0 <= least < mean < find_score(scores, "laplace", figure="mean S_w").value
    assert all(score.definition for score in scores)
    assert set(CONTENDERS) >= {score.subject for score in scores}


def _settings(cells, name):
    return dict(cells[f"{name}, loss to the nearest 10"].settings)
