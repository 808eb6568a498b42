"""``wordveil calibrate`` from a configuration to a table, and a page; without Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.pages import read_text
from support.toys import toy_embedding
from support.workspaces import Command, Workspace

TREE = {"name": "tree", "epsilon": 3.0, "sizes": [10]}


@pytest.fixture
def config(workspace: Workspace) -> Path:
    """A configuration whose key and corpus are not there: neither is needed."""
    (workspace.root / "key").unlink()
    assert not (workspace.root / "corpus").exists()
    return workspace.write_config(mechanism=TREE)


def read(run: Command, *arguments: object) -> dict[str, Any]:
    code, out, err = run("calibrate", *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_figures_of_several_epsilons_and_a_page(config: Path, run: Command, tmp_path: Path):
    page = tmp_path / "page.html"
    found = read(run, "-c", config, "--epsilon", "6,2,4", "--html", page)
    assert [one["epsilon"] for one in found["meanings"]] == [2, 4, 6]
    assert [one["pure_epsilon"] for one in found["meanings"]] == pytest.approx([2, 4, 6], rel=1e-6)
    kept = [one["share_kept"] for one in found["meanings"]]
    assert 1 / 300 < kept[0] < kept[1] < kept[2] < 1 / 10
    assert [figure["name"] for figure in found["meanings"][0]["words"]][:3] == ["N_w", "S_w", "inputs"]
    assert all(figure["is_exact"] for one in found["meanings"] for figure in one["words"])
    assert found["facts"]["words measured"] == "300 of 300"
    assert "At epsilon 6 a word comes back" in read_text(page.read_text())
    assert read(run, "-c", config, "--epsilon", "6,2,4")["meanings"] == found["meanings"], "figures repeat"
    assert any(note.startswith("K_w needs a hierarchy") for note in found["notes"])
    code, out, _ = run("calibrate", "-c", config, "--epsilon", "4")
    assert code == 0
    assert "What becomes of words" in out


def test_words_of_a_hierarchy_have_k_w(config: Path, run: Command, tmp_path: Path):
    """By the package's pairs, or by those that the embedding is trained from."""
    words = ["country", "england", "dog", "animal", "blue", "cat"]
    toy_embedding(words, np.random.default_rng(3).standard_normal((6, 2))).save(tmp_path / "few")
    few = ("--set", f"mechanism.embedding={tmp_path / 'few'}", "--set", "mechanism.sizes=[2]")
    found = read(run, "-c", config, *few, "--epsilon", "1", "--threshold", "0.05")
    (figure,) = [figure for figure in found["meanings"][0]["words"] if figure["name"] == "K_w"]
    assert 0 <= figure["worst"] <= figure["average"] <= 5
    assert "with a probability above 0.05" in figure["definition"]
    assert any(note.startswith("K_w is that of Feyisetan") for note in found["notes"])
    names = [f"w{number}" for number in range(40)]
    pairs = [(low, high) for place, low in enumerate(names) for high in names[:place:7]]
    (tmp_path / "pairs.tsv").write_text("".join(f"{low}\t{high}\n" for low, high in pairs))
    own = ("--set", f"mechanism.embedding={tmp_path / 'pairs.tsv'}", "--set", "mechanism.embedding_format=hypernyms")
    training = "{dimension: 2, epochs: 1, burn_in: 1, negative: 2, min_links: 1}"
    own += ("--set", "mechanism.sizes=[4]", "--set", f"mechanism.training={training}")
    found = read(run, "-c", config, *own, "--epsilon", "1")
    assert "K_w" in [figure["name"] for figure in found["meanings"][0]["words"]]


def test_a_target_is_reached(config: Path, run: Command):
    found = read(run, "-c", config, "--target", "share_kept=0.04")
    reached = found["found"][0]
    assert reached["reached"] == pytest.approx(0.04, rel=0.02)
    assert reached["low"] <= reached["epsilon"] <= reached["high"]
    assert found["meanings"][0]["share_kept"] == pytest.approx(reached["reached"], rel=1e-4)


def test_another_mechanism_is_matched(config: Path, workspace: Workspace, run: Command):
    other = workspace.write_config("other.yaml", mechanism={**TREE, "sizes": [30], "epsilon": 5.0})
    found = read(run, "-c", config, "--match", other, "--by", "bayes_recovery")
    theirs = read(run, "-c", other, "--epsilon", "5")["meanings"][0]["recovery"]["frequency"]["after"][0]["at_least"]
    assert found["found"][0]["reached"] == pytest.approx(theirs, rel=0.02)


def test_what_no_epsilon_gives_is_refused(config: Path, run: Command):
    code, _, err = run("calibrate", "-c", config, "--target", "share_kept=0.9")
    assert code == 2
    assert "--target = share_kept=0.9" in err
    assert "no epsilon of mechanism tree gives it" in err


def test_draws_are_counted_where_probabilities_are_not_known(workspace: Workspace, run: Command):
    config = workspace.write_config()
    found = read(run, "-c", config, "--epsilon", "4", "--words", "40", "--runs", "50")
    assert not any(figure["is_exact"] for figure in found["meanings"][0]["words"])
    assert found["facts"]["words measured"] == "40 of 300"
    assert found["meanings"][0]["utility"]["points_95"] > found["meanings"][0]["utility"]["points_50"]
