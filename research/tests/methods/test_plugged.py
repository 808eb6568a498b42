"""wordveil takes the laboratory's attackers and tasks as it takes its own, and measures with them."""

from __future__ import annotations

import numpy as np
import pytest

from support.made_texts import make_documents
from support.toys import toy_settings
from wordveil.config.load import parse_config
from wordveil.errors import ConfigError
from wordveil.evaluation.figures import Split, measure_attacks
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS

ATTACKERS = {"koppel", "continuous-ngrams", "nearest-author"}
TASKS = {"fasttext", "fasttext-pretrained", "neighbours-mean", "neighbours-emd", "sentence-vectors"}
MECHANISM = {"name": "staircase", "epsilon": 4.0, "embedding": "demo", "public": True}


def parse(**evaluation):
    return parse_config(
        toy_settings(MECHANISM, evaluation={"author": "who", "label": "topic", **evaluation}), "job.yaml"
    )


def test_all_are_installed_and_taken_by_a_configuration():
    assert {name for name in AUTHOR_ATTACKS if AUTHOR_ATTACKS.package_of(name)} == ATTACKERS
    assert {name for name in TEXT_TASKS if TEXT_TASKS.package_of(name)} == TASKS
    section = parse(attackers=["koppel", "svm-words"], tasks=sorted(TASKS)).evaluation
    assert (section.attackers, section.tasks) == (["koppel", "svm-words"], sorted(TASKS))
    for make in (*AUTHOR_ATTACKS.values(), *TEXT_TASKS.values()):
        assert make().definition.endswith(".")


def test_an_unknown_name_is_refused_with_what_is_installed():
    with pytest.raises(ConfigError, match=r"'nearest-author'.*Did you mean koppel\?"):
        parse(attackers=["kopel"])


def test_koppel_names_authors_in_an_evaluation():
    known, others = make_documents(8, 3, seed=1), make_documents(8, 4, seed=2)
    split = Split(known, others, known.texts, others.texts)
    found = measure_attacks(split, known.texts, ["koppel"], None, seed=1)
    figures = {score.figure: score for score in found.scores if score.variant == "adaptive"}
    assert set(figures) == {"accuracy", "answered", "precision"}
    assert figures["accuracy"].low > figures["accuracy"].chance
    assert np.sum(found.confusions[0].counts) == len(others)
