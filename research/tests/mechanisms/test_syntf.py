"""SynTF has the weights of its paper, and what is recorded of its loss is the loss of its table."""

from __future__ import annotations

import numpy as np
import pytest

from support.toys import build, build_mechanism, random_embedding
from wordveil.mechanisms.tables.mechanism import TableMechanism

SIZE = 120
TOY = random_embedding(SIZE, 3)
PADDED = pytest.mark.parametrize("padding", [True, False])


def log_laws(settings, *, padding):
    """Return the log probabilities of all outputs, of each word and symbol."""
    mechanism = build_mechanism(TOY, settings, padding=padding, mechanism="syntf")
    assert isinstance(mechanism, TableMechanism)
    symbols = [symbol for symbol in range(SIZE + 2) if padding or symbol != SIZE]
    return np.log(np.stack([mechanism.probabilities(symbol) for symbol in symbols]))


@PADDED
@pytest.mark.parametrize("neighbours", [None, 15])
def test_syntf_built_records_the_loss_of_its_table(neighbours, padding):
    settings = {"epsilon": 5.0, "neighbours": neighbours}
    guarantee = build(TOY, settings, padding=padding, mechanism="syntf").guarantee
    logs = log_laws(settings, padding=padding)
    found = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert found <= guarantee.epsilon <= min(found * (1 + 1e-6), 5.0 + 1e-6)
    assert (guarantee.pure, guarantee.nominal_epsilon) == (guarantee.epsilon, 5.0)


def test_syntf_whole_has_the_weights_of_the_paper():
    vectors = TOY.vectors.astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = np.exp(5.0 * (1 + unit @ unit.T) / 2 / 2)
    law = np.exp(log_laws({"epsilon": 5.0}, padding=False))[:SIZE]
    assert np.allclose(law, weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)


def test_syntf_with_a_forgotten_half_exceeds_its_epsilon():
    logs = log_laws({"epsilon": 10.0}, padding=True)
    assert (logs.max(axis=0) - logs.min(axis=0)).max() > 5.0
    assert build(TOY, {"epsilon": 10.0}, padding=True, mechanism="syntf").guarantee.epsilon > 5.0
