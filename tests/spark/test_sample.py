"""A sample of the corpus: read like the job reads it, counts alone come out, and the key is never touched."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.workspaces import WORDS, Workspace, corpus
from wordveil.assembly.bundles import build_bundle
from wordveil.cli import app
from wordveil.errors import BundleError, ConfigError, SparkJobError
from wordveil.spark.plan import sample
from wordveil.spark.plan.sample import MAX_RECORDS, MAX_SEED, check_preview, make_preview, spread_records
from wordveil.spark.platform.versions import from_arrow

CANARY = "zqxcanaryzqx"


def awkward() -> pa.Table:
    """Released: four records, 9 words, 3 of them unknown; refused: one of each kind."""
    bodies = [
        f"{WORDS[0]} {CANARY} {WORDS[1]}",
        f"{WORDS[2]}!",
        f"{CANARY}b, {CANARY}c {WORDS[3]} {WORDS[4]} {WORDS[5]}",
        "",
        b"\xff\xfe " + CANARY.encode(),
        f"{CANARY} " * 400,
        f"{CANARY} {'日本語' * 9}",
        f"{CANARY} twin",
        f"{CANARY} twin",
        f"{CANARY} without an id",
        None,
    ]
    raw = [body.encode() if isinstance(body, str) else body for body in bodies]
    ids = ["a", "b", "c", "d", "e", "f", "g", "twin", "twin", None, "h"]
    return pa.table({"id": ids, "body": pa.array(raw, pa.binary()), "day": ["d"] * len(ids)})


def preview_of(
    spark, workspace: Workspace, rows: int | None, words: str | None = None, seed: int | None = None, **sections
):
    config = workspace.config(**sections)
    build_bundle(config)
    return make_preview(check_preview(config, rows, words, seed=seed), lambda: spark)


@pytest.fixture
def keyless(workspace: Workspace) -> Workspace:
    """A workspace whose key is gone: whatever loads it fails."""
    (workspace.root / "key").unlink()
    return workspace


def test_a_sample_counts_exactly_and_needs_no_key(spark, keyless: Workspace):
    keyless.write_corpus(awkward())
    found = preview_of(spark, keyless, 1000, input={"max_bytes": 2000}, text={"profile": "strict", "n_max": 2}).sample
    assert (found.rows, found.sample.records, found.sample.released) == (11, 11, 4)
    assert found.sample.quarantined == {
        "undecodable": 1,
        "oversize": 1,
        "script_without_word_spaces": 1,
        "duplicate_id": 2,
        "null_id": 1,
        "null_text": 1,
    }
    assert (found.sample.words, found.sample.unknown, found.sample.unknown_rate) == (9, 3, pytest.approx(1 / 3))
    assert (found.sample.lengths.min, found.sample.lengths.median, found.sample.lengths.max) == (0, 1, 5)
    assert (found.sample.cut, found.sample.padded, found.sample.tokens) == (2, 2, 8)
    values = found.to_dict()
    assert values["core_hours"] > 0
    assert values["suggested"] == {"n_max": 8, "cut": 0, "epsilon_bound": pytest.approx(8 * found.token_price)}
    assert values["core_hours_a_million"] == pytest.approx(values["core_hours"] / 11 * 1_000_000)


def damage(file: Path) -> None:
    """Leave the footer alone, and overwrite what it describes."""
    raw = bytearray(file.read_bytes())
    raw[4:2000] = b"\0" * 1996
    file.write_bytes(raw)


@pytest.mark.parametrize("kind", ["delta", pytest.param("parquet", marks=pytest.mark.long)])
def test_only_the_files_that_were_chosen_are_read(spark, workspace: Workspace, monkeypatch, kind: str):
    """All others hold a footer and damaged data: reading one of them fails."""
    monkeypatch.setattr(sample, "MAX_WINDOWS", 2)
    path = workspace.root / "corpus"
    if kind == "parquet":
        workspace.write_corpus(corpus(4000), files=8)
    else:
        from_arrow(spark, corpus(4000)).repartition(8).write.format("delta").save(str(path))
    files = {f"file:{file}": pq.read_metadata(file).num_rows for file in path.glob("*.parquet")}
    chosen = [set(spread_records(files, 100, seed)) for seed in range(50)]
    seed = next(number for number, names in enumerate(chosen) if len(names) == 2)
    other = next(number for number, names in enumerate(chosen) if not names & chosen[seed])
    for name in files.keys() - chosen[seed]:
        damage(Path(name.removeprefix("file:")))
        Path(name.removeprefix("file:")).with_name(f".{Path(name).name}.crc").unlink(missing_ok=True)
    found = preview_of(spark, workspace, 100, seed=seed, input={"format": kind}).sample
    assert (found.rows, found.sample.records, found.sample.released) == (4000, 100, 100)
    assert (found.files, found.files_read, found.seed) == (8, 2, seed)
    with pytest.raises(SparkJobError, match="no sample was read"):
        preview_of(spark, workspace, 100, seed=other, input={"format": kind})


def test_no_text_of_the_corpus_gets_out(spark, keyless: Workspace, capfd, monkeypatch):
    """Neither into what the command prints, in words or JSON, nor into Spark's event log or scratch."""
    monkeypatch.setattr(app.signal, "signal", lambda *_: None)  # the tests keep their own handlers
    keyless.write_corpus(awkward(), files=3)
    build_bundle(keyless.config())
    file = keyless.write_config(input={"max_bytes": 2000})
    app.app(args=["plan", "--config", str(file), "--sample", "100"], standalone_mode=False)
    shown = capfd.readouterr()
    page = keyless.root / "plan.html"
    signed = keyless.root / "sign-off.html"
    more = ["--json", "--html", str(page), "--sign-off", str(signed)]
    app.app(args=["plan", "--config", str(file), "--sample", "100", *more], standalone_mode=False)
    as_json = capfd.readouterr()
    result = json.loads(as_json.out)
    assert result["sample"]["unknown"] == 3
    assert sum(item["count"] for item in result["sample"]["histogram"]) == result["sample"]["released"]
    assert {word["epsilon"] for word in result["words"]} == {2.0, 4.0, 8.0}
    assert "33.33% of 9" in shown.out
    assert "internal" in shown.err
    pages = page.read_text("utf-8") + signed.read_text("utf-8")
    assert CANARY not in (shown.out + shown.err + as_json.out + as_json.err + pages).lower()
    assert "released" in page.read_text("utf-8")
    events = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:"))
    logs = [path for path in events.rglob("*") if path.is_file()]
    scratch = [path for path in Path(spark.conf.get("spark.local.dir")).rglob("*") if path.is_file()]
    assert logs
    assert (
        scratch
    )  # the ids, shuffled to find those that stand twice; compression leaves a word's first occurrence as it is
    assert [path for path in (*logs, *scratch) if CANARY.encode() in path.read_bytes()] == []


def test_an_empty_table_is_sampled(spark, workspace: Workspace):
    workspace.write_corpus(corpus(1).slice(0, 0))
    values = preview_of(spark, workspace, 10).sample.to_dict()
    assert (values["records"], values["core_hours"], values["unknown_rate"]) == (0, None, None)


def test_what_cannot_be_shown_is_refused_before_spark(workspace: Workspace):
    config = workspace.config()
    assert check_preview(config, None, None) is None
    with pytest.raises(BundleError, match="wordveil build"):
        check_preview(config, 10, None)
    build_bundle(config)
    for rows in (0, -1, MAX_RECORDS + 1):
        with pytest.raises(ConfigError, match="--sample"):
            check_preview(config, rows, None)
    with pytest.raises(ConfigError, match=r"--seed = 3: chooses a sample. Add --sample N"):
        check_preview(config, None, "word", seed=3)
    for seed in (-1, MAX_SEED + 1):
        with pytest.raises(ConfigError, match="--seed"):
            check_preview(config, 10, None, seed=seed)
    with pytest.raises(ConfigError, match="at least one word"):
        check_preview(config, None, " , ")
    assert [item.word for item in check_preview(config, None, f"zorblax,{WORDS[3]}").unknown] == ["zorblax"]
