"""Settings that a generator cannot be drawn with, and private weights without what keeps their price true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support import configs, toys
from wordveil.config.load import parse_config
from wordveil.errors import BundleError
from wordveil.generators.initial import make_repeating_weights
from wordveil.mechanisms.er_ae.mechanism import ErAe, ErAeSettings
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.neighbours.blocks import BuildContext

EMBEDDING = toys.random_embedding(30, 4, seed=1)
PRIVATE = {"corpus": "private", "max_records": 100}
RELEASE = {"output": {"path": "out", "format": "delta"}, "ledger": {"path": "ledger"}}


def settings(mechanism: dict[str, Any], text: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    section = {"name": "er-ae", "epsilon": 8.0, "model": "g.npz", "embedding": "demo", "public": True, **mechanism}
    return configs.settings(
        source={"format": "delta"}, mechanism=section, text={"n_max": 8} if text is None else text, **sections
    )


def faults(*args: Any, **sections: Any) -> list[str]:
    return list(configs.find_faults(settings(*args, **sections)))


def test_a_configuration_that_can_be_drawn_with_has_no_fault() -> None:
    for form in ({}, {"output": "bag"}, {"length": "as_is", "profile": "readable", "n_max": None}):
        chosen = {name: value for name, value in {"n_max": 8, **form}.items() if value is not None}
        assert parse_config(settings({}, chosen), "job.yaml").record_settings("").max_records is None
    config = parse_config(settings(PRIVATE, **RELEASE), "job.yaml")
    assert config.record_settings("").max_records == 100
    # The number of records decides prices, and no bundle.
    more = parse_config(settings({**PRIVATE, "max_records": 200}, **RELEASE), "job.yaml")
    assert more.recipe("") == config.recipe("")
    assert parse_config(settings({}, **RELEASE), "job.yaml").recipe("") != config.recipe("")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ({"length": "sample", "n_max": 8}, "text.length"),
        ({"profile": "readable", "stop_words": "hide", "repeat": "same"}, "text.repeat"),
    ],
)
def test_what_is_no_text_any_more_is_refused(text: dict[str, Any], where: str) -> None:
    assert where in faults({}, text)
    exponential = {"name": "exponential", "epsilon": 8.0, "gamma": 4.0}
    words = settings({}, text)
    words["mechanism"] = {"embedding": "demo", "public": True, **exponential}
    parse_config(words, "job.yaml")


def test_private_weights_need_ledger_number_and_hidden_length() -> None:
    assert faults(PRIVATE) == ["mechanism.corpus"]
    assert faults({"corpus": "private"}, **RELEASE) == ["mechanism.max_records"]
    assert faults({"max_records": 5}) == ["mechanism.max_records"]
    assert faults(PRIVATE, {"profile": "readable"}, **RELEASE) == ["text.length"]
    assert faults({**PRIVATE, "max_records": 0}, **RELEASE) == ["mechanism.max_records"]
    assert faults({**PRIVATE, "model": "s3a://lake/g.npz"}, **RELEASE) == ["mechanism.model"]
    assert faults(PRIVATE, **RELEASE, bundle_store="s3a://lake/bundles") == ["bundle_store"]
    parse_config(settings({"model": "s3a://lake/g.npz"}, bundle_store="s3a://lake/bundles"), "job.yaml")


def build(corpus: str, of: str, limit: int | None = None) -> ErAe:
    weights = replace(make_repeating_weights(EMBEDDING), corpus=of)
    chosen = ErAeSettings(epsilon=8.0, model="g.npz", corpus=corpus, max_records=limit)
    inputs = PublicInputs(generator=weights)
    built = ErAe.build(EMBEDDING, chosen, padding=True, work=BuildContext(), inputs=inputs)
    assert built.parameters.get("private_weights", "") == (weights.identity if of == "private" else "")
    return ErAe.load(EMBEDDING.size, built.parameters, built.arrays)


def test_the_setting_and_the_weights_say_the_same_corpus(tmp_path: Path) -> None:
    assert build("public", "public").private_weights == ""
    private = build("private", "private", 5)
    assert len(private.private_weights) == 64
    assert private.at_epsilon(2.0).private_weights == private.private_weights
    for corpus, of, limit in (("public", "private", None), ("private", "public", 5)):
        with pytest.raises(BundleError, match=f"was trained on a {of} corpus"):
            build(corpus, of, limit)


def test_a_text_is_a_whole_number_of_sequences() -> None:
    mechanism = build("public", "public")
    mechanism.check_lengths((4, 8, 12))
    with pytest.raises(BundleError, match=r"text.n_max = 10: .* sequences of 4 tokens.*Set 8 or 12,"):
        mechanism.check_lengths((8, 10))
    with pytest.raises(BundleError, match="Set 4,"):
        mechanism.check_lengths((3,))
