"""An n-gram model counted on real Spark is that of plain Python, and sanitises alike however the corpus is
partitioned.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from support import ngram_models
from support.workspaces import WORDS, Workspace, read_output, write_delta
from wordveil.cli import app
from wordveil.config.arguments import parse_arguments
from wordveil.errors import ConfigError, NgramError
from wordveil.spark.builds.ngrams import MAX_TEXT_BYTES, build_ngrams
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.plan.sample import check_preview, make_preview
from wordveil.spark.sanitise.frames import sanitise
from wordveil.spark.sanitise.job import run_sanitise
from wordveil.spark.sanitise.run_log import Run
from wordveil.text.slots import NgramSettings

SETTINGS = NgramSettings(max_n=3, min_count=3)
AS_WORDS = {"types": "none", "names": "words"}
THRESHOLDS = {"slot_threshold": 0.15, "slot_start_threshold": 0.05}


def phrases(count: int, seed: int) -> list[str]:
    """Texts of phrases that come often, with vocabulary words, unknown words and numbers between."""
    rng = np.random.default_rng(seed)
    frames = [
        "Please find {} in the list of {}.",
        "The list of {} is not here; {} said so.",
        "Don’t ask {} for 7{} or the list",
    ]
    fill = [*WORDS[:60], "Zorblax", "42"]
    return [frames[rng.integers(3)].format(*rng.choice(fill, 2)) for _ in range(count)]


PUBLIC = phrases(400, seed=1)
PRIVATE = phrases(120, seed=2)


def public_table(workspace: Workspace, texts: list[str | None] = PUBLIC, name: str = "public", files: int = 3):
    return workspace.write_corpus(pa.table({"body": pa.array(texts, pa.string())}), name, files)


def ngrams(monkeypatch, capsys, spark, *arguments: object) -> dict[str, object]:
    """The command, in the tests' session."""
    monkeypatch.setattr("wordveil.cli.ngrams.prepare_plain_session", lambda *_, **__: lambda: spark)
    with pytest.raises(SystemExit) as ended:
        app.main(["ngrams", *map(str, arguments), "--json"])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_counts_what_plain_python_counts(spark, workspace: Workspace, monkeypatch, capsys):
    """The digest covers every count; texts that cannot be read are left out; Delta gives the same model as Parquet."""
    spoilt = [*PUBLIC, None, "東京は雨", "x" * (MAX_TEXT_BYTES + 1)]
    place = public_table(workspace, spoilt)
    store = workspace.root / "models"
    arguments = ["--text", "body", "--output", store, "--public", "--max-n", 3, "--min-count", 3]
    facts = ngrams(monkeypatch, capsys, spark, "--input", place, *arguments)
    model = ngram_models.make_model(workspace.root / "expected", [text.replace("’", "'") for text in PUBLIC], SETTINGS)
    assert facts["digest"] == model.digest
    assert (facts["texts"], facts["left_out"], facts["words"]) == (len(PUBLIC), 3, model.total)
    assert facts["path"] == str(store / model.digest)
    write_delta(pa.table({"body": pa.array(spoilt)}), workspace.root / "delta")
    assert ngrams(monkeypatch, capsys, spark, "--input", workspace.root / "delta", *arguments) == facts


def test_ngram_model_is_built_of_public_text_alone_naming_faults(spark, workspace: Workspace):
    place = public_table(workspace)
    with pytest.raises(SystemExit) as ended:
        app.main(["ngrams", "--input", str(place), "--text", "body", "--output", str(workspace.root / "models")])
    assert ended.value.code == 2
    assert not (workspace.root / "models").exists()
    table = spark.read.parquet(str(place))
    with pytest.raises(ConfigError, match=r"--text = bdy: the table has no such column\. Did you mean body"):
        build_ngrams(table, "bdy", workspace.root / "models", SETTINGS, "here")
    with pytest.raises(ConfigError, match="--text = n: is of type bigint"):
        build_ngrams(spark.range(3).toDF("n"), "n", workspace.root / "models", SETTINGS, "here")
    with pytest.raises(NgramError, match="no word occurs at least 100000 times"):
        build_ngrams(table, "body", workspace.root / "models", NgramSettings(min_count=100_000), "here")


def job(workspace: Workspace, model, name: str, **sections):
    text = {"profile": "carrier_phrases", "ngrams": str(model.path), **THRESHOLDS, **AS_WORDS}
    return workspace.config(text=text, output={"path": str(workspace.root / name)}, input={"keep": []}, **sections)


def test_words_outside_slots_are_kept_whatever_the_partitions(spark, workspace: Workspace):
    """In place, as an archive, in one file or many, by the job and by the function for DataFrames; the sample
    agrees.
    """
    public = spark.read.parquet(str(public_table(workspace)))
    model, *_ = build_ngrams(public, "body", workspace.root / "models", SETTINGS, "here")
    table = pa.table({"id": [f"r{i:03d}" for i in range(len(PRIVATE))], "body": PRIVATE})
    workspace.write_corpus(table, files=1)
    report = run_sanitise(job(workspace, model, "one"), lambda: spark)
    rows = read_output(workspace.root / "one")
    counts = ngram_models.count_ngrams([text.replace("’", "'") for text in PUBLIC], SETTINGS.max_n)
    kept = hidden = 0
    for text, row in zip(PRIVATE, rows, strict=True):
        mask = ngram_models.select_slots(text.replace("’", "'"), counts, SETTINGS, *THRESHOLDS.values())
        before, after = (ngram_models.cut_words(item.replace("’", "'")) for item in (text, row["text"]))
        assert [one for one, keep in zip(before, mask, strict=True) if keep] == [
            one for one, keep in zip(after, mask, strict=True) if keep
        ]
        assert row["privacy"]["tokens"] == len(mask) - sum(mask)
        kept, hidden = kept + sum(mask), hidden + len(mask) - sum(mask)
    assert min(kept, hidden) > len(PRIVATE)
    assert report.relation == "same_skeleton"
    assert "carrier_phrases" in report.exposes
    (workspace.root / "corpus").rename(workspace.root / "before")
    workspace.write_corpus(table.take(list(reversed(range(table.num_rows)))), files=7)
    run_sanitise(job(workspace, model, "many", spark={"bundle": "archive"}), lambda: spark)
    assert read_output(workspace.root / "many") == rows
    config = job(workspace, model, "many")
    table = make_preview(check_preview(config, len(PRIVATE), None), lambda: spark).sample
    assert table is not None
    assert table.sample.tokens == hidden == report.tokens
    plan = make_plan(config, lambda: spark)
    assert (plan.relation, "carrier_phrases" in plan.exposes) == ("same_skeleton", True)


def next_bundle(config):
    from wordveil.assembly.bundles import find_bundle

    return find_bundle(config)


def test_dataframes_are_sanitised_alike_unless_model_is_altered(spark, workspace: Workspace):
    model = ngram_models.make_model(workspace.root / "models", [text.replace("’", "'") for text in PUBLIC], SETTINGS)
    workspace.write_corpus(pa.table({"id": ["a", "b"], "body": PRIVATE[:2]}))
    config = job(workspace, model, "output")
    run_sanitise(config, lambda: spark)
    policy = {"profile": "carrier_phrases", "ngrams": str(workspace.root / "models"), **THRESHOLDS, **AS_WORDS}
    assert parse_arguments({"id": "id", "text": "body"}, policy)[1] == config.policy
    frame = spark.read.parquet(str(workspace.root / "corpus"))
    options = {"bundle": next_bundle(config).path, "id": "id", "text": "body", "policy": policy}
    drawn = sorted(sanitise(frame, run=Run.throwaway(), **options).collect(), key=lambda row: row.id)
    assert [row.privacy.tokens for row in drawn] == [
        row["privacy"]["tokens"] for row in read_output(workspace.root / "output")
    ]
    first = model.path / "first.bin"
    first.write_bytes(first.read_bytes()[:-8])
    with pytest.raises(NgramError, match=r"first\.bin: .*truncated or altered. Move its directory out of the store"):
        sanitise(frame, run=Run.throwaway(), **options)
    with pytest.raises(NgramError, match=r"first\.bin"):
        run_sanitise(job(workspace, model, "again"), lambda: spark)
    assert not (workspace.root / "again").exists()
