"""An evaluation measures what was released: authors are found where words are kept and not where they are not, in a
Parquet output, in a release's draws and in what was published of them; and no text gets out.
"""

from __future__ import annotations

import json
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.made_texts import AUTHORS, CANARY, TEXTS, TINY, WEAK, make_habits
from support.releases import Lake, States
from support.workspaces import Command, Workspace, read_input
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.evaluations import load_evaluation
from wordveil.errors import BundleError, ConfigError, InputError, ReleaseError
from wordveil.evaluation.pairs import AuthorCounts
from wordveil.scores.evaluation import Evaluation
from wordveil.spark.evaluate.job import evaluate_output
from wordveil.spark.evaluate.pairs import read_pairs
from wordveil.spark.release.evaluate import evaluate_release
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import publish
from wordveil.spark.sanitise.job import run_sanitise

SECTION = {"label": "topic", "attackers": ["svm-words", "svm-characters"], "tasks": ["linear-words"]}
POLICY = {"profile": "strict", "n_max": 24}


def config_of(workspace: Workspace, mechanism: dict[str, Any], **sections: Any) -> Any:
    evaluation = {**SECTION, **sections.pop("evaluation", {})}
    return workspace.config(
        mechanism=mechanism,
        input={"author": "author", **sections.pop("input", {})},
        text=POLICY,
        evaluation=evaluation,
        **sections,
    )


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with a corpus and what the weak mechanism made of it, which tests only read."""
    workspace = Workspace(tmp_path_factory.mktemp("written"))
    workspace.write_corpus(make_habits(), files=3)
    run_sanitise(config_of(workspace, WEAK), lambda: spark)
    return workspace


def values(found: Evaluation, **wanted: str) -> list[float]:
    return [
        score.value
        for score in found.scores
        if score.figure == "accuracy" and all(getattr(score, name) == value for name, value in wanted.items())
    ]


def scores_of(found: Evaluation, task: str) -> list[float]:
    return [score.value for score in found.scores if score.task == task]


def linked_by_laws(found: Evaluation) -> float:
    (value,) = [score.value for score in found.scores if (score.method, score.figure) == ("bayes", "linked")]
    return value


@pytest.mark.long
def test_attack_finds_authors_only_where_words_are_kept(spark, written: Workspace):
    tiny = config_of(written, TINY, output={"path": str(written.root / "tiny")})
    run_sanitise(tiny, lambda: spark)
    key, hidden = written.root / "key", written.root / "hidden"
    key.rename(hidden)  # the evaluation needs no key
    configs = {"weak": config_of(written, WEAK), "tiny": tiny}
    found = {name: evaluate_output(config, lambda: spark) for name, config in configs.items()}
    hidden.rename(key)
    for each in found.values():
        assert min(values(each, subject="original", group="attack")) > 0.9
        assert values(each, subject="original", group="utility")[0] > 0.9
    chance = 1 / AUTHORS
    assert min(values(found["weak"], subject="release", variant="adaptive")) > 0.8
    assert values(found["weak"], subject="release", group="utility")[0] > 0.8
    # 40 texts of 5 authors: four deviations of 0.063 above chance.
    assert max(values(found["tiny"], subject="release", variant="adaptive")) < chance + 0.25
    assert values(found["tiny"], subject="release", group="utility")[0] < 0.74
    assert found["weak"].facts["records measured"] == "80 of 80"
    assert found["weak"].is_private
    assert found["weak"].examples == ()
    assert [str(score.group) for score in found["weak"].scores].count("privacy") == 8
    linked = {name: linked_by_laws(each) for name, each in found.items()}
    assert linked["weak"] > 0.8 > 0.1 > linked["tiny"]  # of 80 records
    cosine = {name: scores_of(each, "similarity") for name, each in found.items()}
    assert cosine["weak"] > cosine["tiny"]


@pytest.mark.long
def test_records_are_sampled_first_and_authors_apart(spark, written: Workspace):
    sizes = {"records": 24, "authors": 3, "min_texts": 4}
    config = config_of(written, WEAK, evaluation=sizes)
    output = spark.read.parquet(str(written.root / "output"))
    context = load_evaluation(config)
    samples = [read_pairs(read_input(spark, config), output, context, seed) for seed in (1, 1, 2)]
    habits = dict(zip(make_habits()["body"].to_pylist(), make_habits()["author"].to_pylist(), strict=True))
    for sample in samples:
        assert (len(sample.sample), sample.total) == (24, AUTHORS * TEXTS)
        counts = Counter(sample.authors)
        del counts[None]
        assert sorted(counts.values()) == [8, 8, 8]
        assert sample.counts == AuthorCounts(AUTHORS, AUTHORS, 3)
        # The sample has records of every author, and only it has labels.
        originals, released = sample.sampled
        assert len({habits[text] for text in originals}) == AUTHORS
        assert len(originals) == len(released) == len(sample.labels) - sample.labels.count(None) == 24
    assert samples[0].released == samples[1].released
    assert samples[0].originals == samples[1].originals
    assert samples[0].sampled != samples[2].sampled
    # Each original stands beside its own sanitised text: at this epsilon words are kept.
    for original, released in zip(samples[0].originals, samples[0].released, strict=True):
        kept = set(original.split()) & set(released.split())
        assert len(kept) > 0.6 * len(set(original.split()))


def test_what_cannot_be_measured_is_refused(spark, workspace: Workspace):
    workspace.write_corpus(make_habits().slice(0, AUTHORS))
    config = config_of(workspace, WEAK)
    with pytest.raises(BundleError, match="the store has no bundle"):
        evaluate_output(config, lambda: spark)
    build_bundle(config)
    with pytest.raises(InputError, match=r"output.path = .*: there is no output to measure. Run `wordveil sanitise`"):
        evaluate_output(config, lambda: spark)
    run_sanitise(config, lambda: spark)
    missing = config_of(workspace, WEAK, evaluation={"author": "writer", "label": "theme"})
    with pytest.raises(ConfigError) as error:
        evaluate_output(missing, lambda: spark)
    assert {fault.where for fault in error.value.faults} == {"evaluation.author", "evaluation.label"}
    other = config_of(workspace, TINY)
    build_bundle(other)
    with pytest.raises(BundleError, match="was drawn with the bundle"):
        evaluate_output(other, lambda: spark)
    policy = workspace.config(mechanism=WEAK, input={"author": "author"}, text={**POLICY, "n_max": 23})
    with pytest.raises(BundleError, match="another text policy"):
        evaluate_output(policy, lambda: spark)
    foreign = config_of(workspace, WEAK, output={"path": str(workspace.root / "corpus2")})
    workspace.write_corpus(make_habits().slice(0, AUTHORS), "corpus2")
    with pytest.raises(
        InputError, match=r"is not an output of this configuration, since it lacks text, privacy.bundle"
    ):
        evaluate_output(foreign, lambda: spark)


def test_no_text_gets_out(spark, written: Workspace, run: Command):
    """Neither into what the command prints and writes, nor into Spark's event log, plans or scratch; and the files are
    their owner's alone.
    """
    file = written.write_config(mechanism=WEAK, input={"author": "author"}, text=POLICY, evaluation=SECTION)
    page, report, out = (written.root / name for name in ("page.html", "report.json", "out"))
    code, shown, noted = run("evaluate", "--config", file, "--html", page, "--report", report, "--out", out)
    assert code == 0, noted
    assert "svm-words" in shown
    assert "internal" in noted
    assert Evaluation.from_dict(json.loads(report.read_text())["result"]).scores
    files = [page, report, *(path for path in out.rglob("*") if path.is_file())]
    assert len(files) > 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    events = [
        path for path in Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:")).rglob("*") if path.is_file()
    ]
    scratch = [path for path in Path(spark.conf.get("spark.local.dir")).rglob("*") if path.is_file()]
    assert events
    contents = b"".join(path.read_bytes() for path in (*events, *scratch, *files))
    assert CANARY.encode() not in (contents + (shown + noted).encode()).lower()
    assert make_habits()["body"][0].as_py().split()[0].encode() not in b"".join(path.read_bytes() for path in files)


def test_examples_are_shown_on_request_alone(spark, written: Workspace):
    section = {"examples": 2, "attackers": [], "tasks": [], "topics": 0}
    found = evaluate_output(config_of(written, WEAK, evaluation=section), lambda: spark)
    assert len(found.examples) == 2
    assert found.examples[0].original == make_habits()["body"][0].as_py()
    assert found.examples[0].sanitised != found.examples[0].original


def release_of(lake: Lake, mechanism: dict[str, Any] = WEAK, **sections: Any) -> Any:
    evaluation = {**SECTION, **sections.pop("evaluation", {})}
    return lake.config(mechanism=mechanism, input={"author": "author"}, text=POLICY, evaluation=evaluation, **sections)


def bounded_by(bound: float) -> dict[str, float]:
    return {"attack_to_chance": bound}


@pytest.fixture(scope="module")
def states(spark, tmp_path_factory: pytest.TempPathFactory) -> States:
    """A release that has a bundle (``written``), and that has run (``drawn``)."""
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("release")))
    states, config = States(lake), release_of(lake)
    lake.write(make_habits())
    build_bundle(config)
    states.keep("written")
    lake.run(config, run_id="first")
    states.keep("drawn")
    return states


@pytest.mark.long
def test_a_release_is_measured_against_the_version_that_was_read(spark, states: States):
    lake = states.restore("written")
    config = release_of(lake)
    with pytest.raises(ReleaseError, match="nothing was drawn yet"):
        evaluate_release(config, lambda: spark)
    states.restore("drawn")
    with pytest.raises(ReleaseError, match="nothing was published yet"):
        evaluate_release(config, lambda: spark, published=True)
    lake.release(release_of(lake, gate={"linked": 1.0}))
    # What the input says now is of nobody: against it no author could be told from another.
    lake.update(None, body="nothing")
    for published in (False, True):
        found = evaluate_release(config, lambda: spark, published=published)
        assert found.facts["input version"].startswith("0, which run first read")
        assert min(values(found, subject="original", group="attack")) > 0.9
        assert min(values(found, subject="release", variant="adaptive")) > 0.8


def test_the_gate_refuses_a_release_whose_authors_are_found(spark, states: States):
    """And draws nothing, and publishes no figure."""
    lake = states.restore("drawn")
    config = release_of(lake, gate={**bounded_by(2.0), "linked": 0.5})
    assert "gate" in config.shown
    first = run_gate(config, lambda: spark)
    assert not first.result.passed
    result, linked = first.result.failures
    assert (result.name, str(result.kind)) == ("attack_to_chance", "private")
    assert 3.0 < result.value <= AUTHORS
    assert (linked.name, str(linked.kind)) == ("linked", "private")
    assert 0.8 < linked.value <= 1
    assert len(lake.draws()) == AUTHORS * TEXTS
    passing = release_of(lake, gate={"linked": 1.0})
    assert run_gate(passing, lambda: spark).result.passed
    publish(passing, lambda: spark)
    manifest = json.loads((lake.public / "_manifest.json").read_text())["manifest"]
    (entry,) = [one for one in manifest["gate"] if one["name"] == "linked"]
    assert "value" not in entry
    assert "gate" in manifest["exposes"]
    assert config.gate.rules.private


@pytest.mark.long
def test_gate_where_authors_are_not_found_lets_the_release_pass(spark, states: States):
    lake = states.restore("written")
    config = release_of(lake, TINY, gate={**bounded_by(3.0), "linked": 0.5})
    lake.run(config)
    result, linked = run_gate(config, lambda: spark).result.results
    assert result.passed
    assert 1 < result.value < 3
    assert linked.passed
