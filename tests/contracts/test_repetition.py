"""Golden outputs of policies that draw a repeated word once, for a fixed key: a change here draws releases again.

``WORDVEIL_REGOLD=1`` writes them again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.toys import make_bundle, record_batch, record_sanitiser, sanitise
from wordveil.artifacts.bundle import Bundle
from wordveil.embeddings.embedding import load
from wordveil.text.policy import TextPolicy, with_profile

FILE = Path(os.environ.get("WORDVEIL_GOLDEN", Path(__file__).parents[1] / "golden")) / "repeat-same.json"
WORDS = {"stop_word_list": ("and", "for", "in", "is", "of", "the", "to"), "types": {}, "names": "words"}
POLICIES = {
    "as it is": TextPolicy(repeat="same"),
    "readable": with_profile("readable", controls="keep", repeat="same", **WORDS),
    "capitals replaced": with_profile("readable", stop_word_capitals="replace", repeat="same", **WORDS),
    "padded": TextPolicy(repeat="same", length="pad", n_max=12),
    "bag": TextPolicy(repeat="same", output="bag"),
}
TEXTS = [
    "The President said the city is ready for Winter, the President of the City said.",
    "M\u00fcller met Qwxzv; qwxzv thanked M\u00dcLLER. Don\u2019t don't 42 42",
    "",
    "a " * 20 + "b",
    "the same text",
    "the same same text",
    "The IS in Cambridge is for IS and I",
]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Bundle]:
    store, settings = tmp_path_factory.mktemp("store"), {"epsilon": 4.5, "gamma": 3.0, "neighbours": 16}
    demo = load("demo")
    return {
        padding: make_bundle(store, demo, settings, padding=padding, mechanism="exponential")
        for padding in (False, True)
    }


def golden(bundles: dict[bool, Bundle]) -> dict[str, Any]:
    found = {}
    for name, policy in POLICIES.items():
        rows = sanitise(record_sanitiser(bundles[policy.pads], policy), record_batch(TEXTS)).to_pylist()
        found[name] = {
            "policy": policy.fingerprint,
            "records": [
                {"text": row["text"], "tokens": row["privacy"]["tokens"], "content_tag": row["content_tag"].hex()}
                for row in rows
            ],
        }
    return found


def test_golden_outputs(bundles: dict[bool, Bundle]) -> None:
    found = golden(bundles)
    if os.environ.get("WORDVEIL_REGOLD") == "1":
        FILE.write_text(json.dumps(found, indent=1) + "\n", "ascii")
    expected = json.loads(FILE.read_text("ascii"))
    for name in POLICIES:
        assert found[name] == expected[name], name
    assert set(found) == set(expected)
