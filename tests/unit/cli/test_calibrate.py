"""``wordveil calibrate``: what it refuses before anything is read, its figures without Java, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from support.configs import settings
from support.pages import read_text
from support.toys import toy_embedding
from support.workspaces import WORDS, Command, Workspace
from wordveil.assembly.calibration import Request
from wordveil.cli.app import app
from wordveil.cli.calibrate import FIGURES_NOTE
from wordveil.errors import ConfigError, OutputExistsError, PublicFileError, WordveilError

TREE_SECTION = {"name": "tree", "sizes": [20], "embedding": "demo", "public": True}


@pytest.fixture
def unread(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(settings(mechanism=TREE_SECTION)))
    return path


def refuse(*arguments: object) -> BaseException | None:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)]).exception


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"--epsilon: is required, or --target or --match: there is no default"),
        ({"epsilon": "1,two"}, r"--epsilon = two: is no number above 0\. Write e\.g\. --epsilon 1,2,5"),
        ({"epsilon": "nan"}, r"--epsilon = nan: is no number above 0"),
        ({"epsilon": ""}, r"--epsilon: is no number above 0"),
        ({"target": ["kept=0.3"]}, r"--target = kept=0\.3: should be NAME=VALUE.* of share_kept, pure_epsilon"),
        ({"target": ["share_kept=30"]}, r"share_kept=30 to be a share between 0 and 1"),
        ({"target": ["pure_epsilon=inf"]}, r"to be a positive loss in nats"),
        ({"epsilon": "1", "threshold": 1.0}, r"--threshold = 1: should be a probability from 0 to less than 1"),
        ({"epsilon": "1", "by": "average"}, r"--by = average: should be one of worst_n_w, bayes_recovery"),
    ],
)
def test_what_cannot_be_asked_for_is_said_at_once(given: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        Request(Path("no-such-file.yaml"), **given).check()


def test_whole_texts_have_a_table_of_their_own(tmp_path: Path):
    section = {"name": "passages", "clusters": 50, "passages": "wordnet", "embedding": "demo", "public": True}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(settings(mechanism=section, text={"profile": "passages"})))
    shown = CliRunner().invoke(app, ["calibrate", "--config", str(path), "--epsilon", "6", "--json"])
    rows = json.loads(shown.stdout)["meanings"]
    assert next(row["stays"] for row in rows if row["clusters"] == 50) == pytest.approx(0.8897, abs=1e-4)
    with pytest.raises(ConfigError, match="--target: is about words, and passages draws whole texts"):
        raise refuse("--config", path, "--epsilon", "6", "--target", "share_kept=0.3") or AssertionError


@pytest.fixture
def texts(workspace: Workspace) -> Path:
    """A configuration of whole texts with sixty passages on two subjects, whose corpus and key are not there."""
    lines = [" ".join(words[n % 15 : n % 15 + 5]) for words in (WORDS[:20], WORDS[20:40]) for n in range(60)]
    (workspace.root / "passages.txt").write_text("\n".join(dict.fromkeys(lines)), "utf-8")
    section = {"name": "passages", "clusters": 2, "encoder": "passages", "passages": "passages.txt"}
    return workspace.write_config(mechanism=section, text={"profile": "passages"})


def write_sample(path: Path, **columns: Any) -> Path:
    rows = {
        "text": [" ".join(words[n : n + 6]) for words in (WORDS[:20], WORDS[20:40]) for n in range(14)],
        "label": [0] * 14 + [1] * 14,
    } | columns
    pq.write_table(pa.table({name: values for name, values in rows.items() if values is not None}), path)
    return path


def test_build_of_passages_lists_its_subjects(texts: Path, run: Command):
    code, out, err = run("build", "-c", texts, "--set", "mechanism.epsilon=6", "--json")
    assert code == 0, err
    built = json.loads(out)
    first, second = built["topics"]
    assert built["subjects"] == 2
    assert first["share"] + second["share"] == pytest.approx(1)
    assert {first["symbol"], second["symbol"]} == {0, 1}
    for topic in (first, second):
        assert topic["passage"] in (texts.parent / "passages.txt").read_text("utf-8").splitlines()
        assert {*topic["keywords"].split()} <= {*WORDS[:40]}


def test_a_labelled_sample_has_its_accuracy(texts: Path, run: Command, tmp_path: Path):
    sample = write_sample(tmp_path / "sample.parquet")
    found = read(run, "-c", texts, "--epsilon", "0.01,12", "--labelled", sample)["meanings"]
    accuracy = {(row["epsilon"], row["clusters"]): row["accuracy"] for row in found}
    assert accuracy[12, 2]["value"] > 0.99
    assert accuracy[0.01, 2]["value"] < 0.75
    assert accuracy[12, 2]["count"] < 28
    twice = tmp_path / "twice.csv.gz"
    with pa.CompressedOutputStream(str(twice), "gzip") as file:
        pa.csv.write_csv(pa.concat_tables([pq.read_table(sample)] * 2), file)
    again = read(run, "-c", texts, "--epsilon", "0.01,12", "--labelled", twice)["meanings"]
    assert again == found  # a repeated text counts once
    assert accuracy[12, 400] is None
    code, out, err = run("calibrate", "-c", texts, "--epsilon", "12", "--labelled", sample)
    assert code == 0
    assert "none" in out
    assert "chance is" in err
    assert err.count("mechanism.clusters = 400: there are") == 1


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"label": None, "topic": ["a"] * 28}, r"has no column `label`, but text, topic\."),
        ({"label": [b"a"] * 28}, r"its column `label` is binary\. Write labels there"),
        ({"text": [*range(28)]}, r"its column `text` is int64\. Write texts there"),
        ({"label": [0.5] * 28}, r"28 texts have 1 different labels: too few"),
        ({"label": None, "secret patients": ["a"] * 28}, r"has no column `label`, but names that look like texts\."),
        ({"text": ["secret"] * 28}, r"too few to tell labels apart"),
    ],
)
def test_a_sample_that_cannot_serve_is_refused(
    columns: dict[str, Any], problem: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wordveil.assembly.calibration.open_parts", lambda *_: pytest.fail("something was built"))
    sample = write_sample(tmp_path / "sample.parquet", **columns)
    with pytest.raises(PublicFileError, match=f"--labelled = {sample}: .*{problem}") as caught:
        raise refuse("-c", texts, "--epsilon", "6", "--labelled", sample) or AssertionError
    assert "secret" not in str(caught.value)


def test_a_sample_is_public_and_for_whole_texts(texts: Path, workspace: Workspace, tmp_path: Path):
    (texts.parent / "corpus").mkdir()
    private = write_sample(texts.parent / "corpus" / "part.parquet")
    sample = write_sample(tmp_path / "sample.parquet")
    words = workspace.write_config("words.yaml", mechanism=TREE)
    whole = ("-c", texts, "--epsilon", "6")
    sentences = ("--set", "text.unit=sentence", "--set", "text.n_max=2")
    for arguments, problem in (
        ((*whole, "--labelled", private), "is input.path, inside it or above it, and must be public"),
        ((*whole, *sentences, "--labelled", sample), "is judged by one draw a text"),
        ((*whole, "--labelled", tmp_path / "none.csv"), "no such file"),
        (("-c", words, "--epsilon", "6", "--labelled", sample), "needs a mechanism that draws whole texts, and tree"),
    ):
        with pytest.raises(WordveilError, match=problem):
            raise refuse(*arguments) or AssertionError


def test_the_configuration_needs_no_epsilon_and_no_key(unread: Path):
    assert Request(unread, epsilon="6,8").load().mechanism.nominal_epsilon == 6.0
    assert Request(unread, target=["share_kept=0.3"]).load().mechanism.nominal_epsilon > 0
    with pytest.raises(ConfigError, match=r"mechanism\.epsilon = 2000"):
        Request(unread, epsilon="6,2000").load()


def test_a_vocabulary_that_is_not_public_is_refused(unread: Path):
    private = {**TREE_SECTION, "public": False, "frequencies": "counts.csv"}
    unread.write_text(yaml.safe_dump(settings(mechanism=private)))
    with pytest.raises(ConfigError, match="made from the private corpus break the guarantee"):
        Request(unread, epsilon="1").load()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--epsilon", "1", "--html", "{config}"], OutputExistsError),
        (["--epsilon", "1", "--match", "none.yaml"], ConfigError),
        (["--epsilon", "1", "--threshold", "1"], ConfigError),
    ],
)
def test_the_command_refuses_before_it_measures(
    unread: Path, arguments: list[str], kind: type[WordveilError], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wordveil.assembly.bundles.read_files", lambda *_: pytest.fail("public files were read"))
    assert isinstance(refuse("-c", unread, *(one.format(config=unread) for one in arguments)), kind)


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


def test_the_fit_to_public_texts_is_a_fact(workspace: Workspace, run: Command):
    texts = workspace.root / "texts.txt"
    texts.write_text("".join(f"{' '.join(WORDS[first : first + 30])}\n" for first in range(40)))
    config = workspace.write_config(mechanism={**TREE, "texts": str(texts)})
    assert (
        "frequent words of mechanism.texts" in read(run, "-c", config, "--epsilon", "4")["facts"]["fit to your field"]
    )
    config = workspace.write_config(mechanism=TREE)
    assert "fit to your field" not in read(run, "-c", config, "--epsilon", "4")["facts"]


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
    assert "At epsilon 6 a word stays in its cluster in" in read_text(page.read_text())
    assert read(run, "-c", config, "--epsilon", "6,2,4")["meanings"] == found["meanings"], "figures repeat"
    assert any(note.startswith("K_w needs a hierarchy") for note in found["notes"])
    code, out, err = run("calibrate", "-c", config, "--epsilon", "4")
    assert code == 0
    assert "What becomes of words" in out
    assert FIGURES_NOTE in err


def test_calibrate_by_pairs_of_hypernyms_has_k_w(config: Path, run: Command, tmp_path: Path):
    words = ["country", "england", "dog", "animal", "blue", "cat"]
    toy_embedding(words, np.random.default_rng(3).standard_normal((6, 2))).save(tmp_path / "few")
    few = ("--set", f"mechanism.embedding={tmp_path / 'few'}", "--set", "mechanism.sizes=[2]")
    found = read(run, "-c", config, *few, "--epsilon", "1", "--threshold", "0.05")
    (figure,) = [figure for figure in found["meanings"][0]["words"] if figure["name"] == "K_w"]
    assert 0 <= figure["worst"] <= figure["average"] <= 5
    assert "with a probability above 0.05" in figure["definition"]


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


def test_draws_are_counted_where_probabilities_are_not_known(workspace: Workspace, run: Command):
    found = read(run, "-c", workspace.write_config(), "--epsilon", "4", "--words", "40", "--runs", "50")
    assert not any(figure["is_exact"] for figure in found["meanings"][0]["words"])
    assert found["facts"]["words measured"] == "40 of 300"
    assert found["meanings"][0]["utility"]["points_95"] > found["meanings"][0]["utility"]["points_50"]
