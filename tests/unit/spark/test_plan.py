"""Plans of plain local tables start neither Java nor Spark; a report says how much padding becomes words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.published import RELEASE
from support.workspaces import WORDS, Workspace, corpus, write_delta
from wordveil.assembly.bundles import build_bundle, find_once
from wordveil.assembly.run_report import NOTHING, RunReport, make_report
from wordveil.cli.plan_tables import plan_facts, print_clusters
from wordveil.config.guess import Column
from wordveil.config.load import parse_config
from wordveil.config.schema import SparkSection
from wordveil.errors import PublicFileError
from wordveil.measures.preview import inspect
from wordveil.records.sanitiser import release_terms
from wordveil.spark.input.inspect import read_columns, reads_changes
from wordveil.spark.input.local_schema import read_local_schema
from wordveil.spark.plan.plan import add_sampled_costs, add_typical, find_trials_once, make_plan
from wordveil.spark.plan.sample import TableSample, check_preview, make_preview
from wordveil.text.choices import Length


class SparkStartedError(Exception):
    """Java would have been started."""


def refuse() -> Any:
    raise SparkStartedError


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch):
    """Another test may have left a session in this process."""
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)


def test_a_plain_table_is_planned_without_spark(workspace: Workspace):
    workspace.write_corpus(corpus(3))
    assert make_plan(workspace.config(), refuse).columns == {"id": "string", "body": "string", "day": "string"}
    with pytest.raises(SparkStartedError):
        make_plan(workspace.config(input={"where": "note > 1"}), refuse)


@pytest.mark.parametrize(
    "mechanism", [{"name": "tree", "clusters": [4], "least": 2, "epsilon": 6.0}, {"name": "laplace", "epsilon": 5.0}]
)
def test_linkage_forecast_of_a_sample_includes_its_median_record(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, mechanism: Any
):
    """By the words that are drawn for it: at most the public length. Laws that are not known are estimated."""
    monkeypatch.setattr("wordveil.evaluation.linkage.CANDIDATES", 500)
    workspace.write_corpus(corpus(3))
    config = workspace.config(mechanism=mechanism)
    build_bundle(config)
    find = find_once(config)
    find_trials = find_trials_once(config.policy, find)
    plan = make_plan(config, refuse, find=find, find_trials=find_trials)
    bundle, policy = find(), config.policy
    assert plan.linkage is not None
    assert bundle is not None
    assert plan.linkage.typical is None
    for words, most in ((2, None), (9, 3)):
        texts = [" ".join(WORDS[: words + extra]) for extra in (-1, 0, 1)]
        batch = pa.record_batch({"__text": texts, "__reason": pa.nulls(3, pa.string())})
        chosen = replace(policy, length=Length.PAD if most else Length.AS_IS, n_max=most)
        table = TableSample(inspect([batch], chosen, bundle), 3, 1.0)
        linkage = add_typical(plan, table, find_trials, chosen).linkage
        assert linkage is not None
        assert linkage.typical == (most or words)
        assert [*linkage.linked] == sorted({5, 20, most or words})
        assert linkage.linked[most or words] < linkage.linked[5]
    linked = plan_facts(replace(plan, linkage=linkage))["linked"]
    assert "of 3 words (the sample's median)" in linked
    assert ("estimates the mechanism's laws" in linked) == (mechanism["name"] == "laplace") != linkage.is_exact


def test_budgets_of_visible_lengths_need_a_sample(workspace: Workspace):
    """A limit admits records of a length that 95% of the sample do not exceed; the longest costs more."""
    workspace.write_corpus(corpus(3))
    budgets = {"unit": "pure", "relation": "same_length", "author": 1e6, "delta": 1e-6}
    output = {"path": str(workspace.root / "release"), "format": "delta"}
    source = {"format": "delta", "author": "note"}
    places = {"output": output, "ledger": {"path": str(workspace.root / "ledger")}, "input": source}
    config = workspace.config(**places, budgets=budgets, text={"profile": "strict", "length": "as_is"})
    bundle = build_bundle(config)
    terms = release_terms(config.record_settings(""), bundle)
    plan = make_plan(workspace.config(text={"profile": "strict", "length": "as_is"}), refuse)
    assert (plan.fitting, plan.fitting_tokens, plan.longest_cost) == ({}, None, None)
    texts = [" ".join(WORDS[:words]) for words in [3] * 19 + [8]]
    sample = inspect([pa.record_batch({"__text": texts, "__reason": pa.nulls(20, pa.string())})], config.policy, bundle)
    assert "draws" not in sample.to_dict()
    found = add_sampled_costs(plan, sample, config.budget, terms)
    price = bundle.guarantee.pure
    assert (found.fitting, found.fitting_tokens) == ({"author": int(1e6 / (3 * price))}, 3)
    assert found.longest_cost == 8 * price
    by_metric = replace(config.budget, unit=bundle.guarantee.metric.identifier)
    assert add_sampled_costs(plan, sample, by_metric, terms).longest_cost == bundle.guarantee.epsilon
    assert add_sampled_costs(plan, sample, config.budget, replace(terms, n_max=24)) == plan


def test_linkage_with_hidden_order_of_words_is_not_forecast(workspace: Workspace):
    workspace.write_corpus(corpus(3))
    config = workspace.config(text={"profile": "strict", "n_max": 24, "output": "bag"})
    build_bundle(config)
    plan = make_plan(config, refuse)
    assert (plan.bundle is None, plan.linkage) == (False, None)


def test_a_first_configuration_needs_no_spark(workspace: Workspace):
    path = workspace.write_corpus(corpus(3))
    assert read_columns(refuse, str(path))[0] == Column("id", "string")
    with pytest.raises(SparkStartedError):
        read_columns(refuse, str(path / "none"))


def test_a_first_release_knows_the_change_feed_without_spark(workspace: Workspace, monkeypatch):
    """A table of tests/releases has it, and this one not."""
    assert reads_changes(refuse, str(RELEASE / "input"))
    write_delta(corpus(3), workspace.root / "plain", feed=False)
    assert not reads_changes(refuse, str(workspace.root / "plain"))
    monkeypatch.setattr("wordveil.release.lake_table.find_spec", lambda _: None)
    with pytest.raises(SparkStartedError):  # without deltalake
        reads_changes(refuse, str(workspace.root / "plain"))
    with pytest.raises(SparkStartedError):
        reads_changes(refuse, str(workspace.root / "none"))


def test_words_of_a_sample_come_from_the_counts_of_public_text(workspace: Workspace):
    counts = workspace.root / "counts.tsv"
    counts.write_text("".join(f"{word}\t{10_000 if number in (70, 90) else 1}\n" for number, word in enumerate(WORDS)))
    config = workspace.config(mechanism={"frequencies": str(counts)})
    build_bundle(config)
    request = check_preview(config, 5, None)
    assert request is not None
    assert {*request.words[:2]} == {WORDS[70], WORDS[90]}
    counts.unlink()  # the bundle is then found by the file's name
    request = check_preview(config, 5, None)
    assert request is not None
    assert WORDS[70] not in request.words


def test_public_texts_tell_the_fit_and_the_words_of_a_sample(workspace: Workspace):
    workspace.write_corpus(corpus(3))
    texts = workspace.root / "texts.txt"
    rng = np.random.default_rng(6)
    lines = [" ".join(WORDS[index] for index in rng.integers(200, 240, 12)) for _ in range(60)]
    texts.write_text("\n".join(f"{line} {WORDS[299]} the" for line in lines))
    plain = workspace.config()
    config = workspace.config(mechanism={"texts": str(texts)})
    bundle = build_bundle(config)
    assert find_once(plain)().fingerprint == bundle.fingerprint, "they change nothing that is drawn"
    fit = make_plan(config, refuse).field_fit
    assert fit is not None
    assert fit.words == 41
    assert make_plan(config, refuse).to_dict()["field_fit"]["share"] == fit.share
    assert plan_facts(make_plan(config, refuse))["fit to your field"] == fit.describe()
    assert "fit to your field" not in plan_facts(make_plan(plain, refuse))
    request = check_preview(config, 5, None)
    assert request is not None
    assert request.words[0] == WORDS[299]
    texts.unlink()
    with pytest.raises(PublicFileError, match=r"mechanism\.texts = .*: no such file"):
        make_plan(config, refuse)


@pytest.mark.parametrize(("output", "by_cluster"), [("representative", True), ("member", False)])
def test_a_preview_says_whether_words_stand_for_clusters(
    workspace: Workspace, output: str, by_cluster: bool, capsys: pytest.CaptureFixture[str]
):
    mechanism = {"name": "tree", "epsilon": 4.0, "clusters": [5], "least": 1, "output": output}
    config = workspace.config(mechanism=mechanism)
    build_bundle(config)
    preview = make_preview(check_preview(config, None, WORDS[0]), refuse)
    assert preview.by_cluster == by_cluster
    # Its cluster is told, with what is written for it.
    (cluster,) = preview.to_dict()["clusters"]
    assert WORDS[0] in cluster["members"]
    assert len(cluster["members"]) < len(WORDS)
    assert cluster["written"][0]["word"] in cluster["members"]
    assert cluster["written"][0]["probability"] >= cluster["written"][-1]["probability"] > 0
    print_clusters(preview.clusters)
    assert WORDS[0] in capsys.readouterr().out


def test_spark_is_asked_where_it_may_read_otherwise(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    path = str(workspace.write_corpus(corpus(3)))
    assert read_local_schema(path, SparkSection(), delta=False)
    for section in (SparkSection(master="yarn"), SparkSection(options={"spark.sql.caseSensitive": "true"})):
        assert read_local_schema(path, section, delta=False) is None
    for name in ("HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "/etc/hadoop")
            assert read_local_schema(path, SparkSection(), delta=False) is None, name
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", object())
    assert read_local_schema(path, SparkSection(), delta=False) is None


@pytest.mark.parametrize(("text", "pads"), [({"n_max": 8}, True), ({"length": "as_is"}, False)])
def test_a_run_under_strict_says_how_much_padding_becomes_words(workspace: Workspace, text: dict[str, Any], pads: bool):
    settings = workspace.settings(mechanism={"name": "exponential", "epsilon": 3.0}, text=text)
    config = parse_config(settings, "tests")
    bundle = build_bundle(config)
    report = make_report(config.record_settings("run"), bundle, "key", NOTHING, output="out", seconds=1.0)
    padding = bundle.vocabulary.size
    stays = bundle.mechanism.probabilities(padding)[padding] if pads else 0.0
    assert report.padding_as_words == (pytest.approx(1 - stays) if pads else None)
    assert stays < 1
    assert RunReport.from_dict(report.to_dict()) == report
