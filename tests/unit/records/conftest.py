"""Bundles of records' tests."""

from __future__ import annotations

import numpy as np
import pytest

from support import toys
from wordveil.artifacts.bundle import Bundle


@pytest.fixture(scope="module")
def bundles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Bundle]:
    """Bundles by padding, of the module's ``WORDS``, so near each other that hardly any stays. ``LISTS``: the language
    of their public lists, if the module has one.
    """
    store, words = tmp_path_factory.mktemp("store"), request.module.WORDS
    embedding = toys.toy_embedding(words, np.random.default_rng(1).standard_normal((len(words), 3)))
    settings, lists = {"epsilon": 0.5, "gamma": 2.0}, getattr(request.module, "LISTS", "")
    return {
        padding: toys.make_bundle(store, embedding, settings, padding=padding, mechanism="exponential", lists=lists)
        for padding in (False, True)
    }
