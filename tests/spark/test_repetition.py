"""Under ``repeat: same`` a job, a DataFrame, the SQL function and a release write one word for each distinct word, and
charge for it.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import wordveil
from support.releases import Lake
from support.workspaces import Workspace, read_output
from wordveil import Run, register, sanitise
from wordveil.assembly.bundles import find_bundle
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.plan.sample import check_preview, make_preview
from wordveil.spark.platform.versions import to_arrow
from wordveil.spark.sanitise.job import run_sanitise
from wordveil.text.tokeniser import Tokeniser, fold_words

POLICY = {"profile": "readable", "repeat": "same", "stop_words": "hide", "types": "none", "names": "words"}
BODIES = [
    "Waaa met Zorblax, and Zorblax met waaa; waab waab!",
    "zzq zzr zzq. Zzr ZZQ zzs",
    "",
    "waab " * 30 + "waac",
    "WAAC waac waad",
]
EXPOSES = ["case", "length", "presence", "punctuation", "repetition"]


def words(text: str) -> list[str]:
    return fold_words(Tokeniser().cut_words(pa.array([text])).words).to_pylist()


def corpus() -> pa.Table:
    return pa.table({"id": [f"r{number}" for number in range(5)], "body": BODIES, "day": ["d"] * 5})


def check(rows: list[dict], per_token: float) -> None:
    for body, row in zip(BODIES, rows, strict=True):
        before, after = words(body), words(row["text"])
        assert len(before) == len(after)
        assert len(set(zip(before, after, strict=True))) == len(set(before))
        privacy = row["privacy"]
        assert privacy["tokens"] == len(set(before))
        assert privacy["epsilon_bound"] == privacy["tokens"] * per_token
        assert (privacy["composition"], privacy["relation"]) == ("distinct", "same_skeleton")
        assert privacy["epsilon_pure"] is None
    assert any(len(set(words(row["text"]))) > 2 for row in rows)


@pytest.mark.usefixtures("newest_spark")
def test_a_job_a_frame_and_the_function_draw_each_word_once(spark, workspace: Workspace) -> None:
    path = workspace.write_corpus(corpus(), files=2)
    config = workspace.config(text=POLICY)
    report = run_sanitise(config, lambda: spark)
    bundle = find_bundle(config)
    assert bundle is not None
    rows = read_output(workspace.root / "output")
    check(rows, bundle.guarantee.pure)
    assert all(row["privacy"]["exposes"] == [*EXPOSES, "column:day"] for row in rows)
    assert report.tokens == sum(len(set(words(body))) for body in BODIES)
    assert "repetition" in report.exposes
    plan = make_plan(config, lambda: spark)
    assert (plan.composition, plan.epsilon_bound) == ("distinct", bundle.guarantee.pure)
    table = make_preview(check_preview(config, 5, None), lambda: spark).sample
    assert table is not None
    sample = table.sample
    assert (sample.tokens, sample.distinct.max, sample.lengths.max) == (report.tokens, 5, 31)

    run = Run.recorded(release="tests", run_log_dir=str(workspace.root / "runs"), key_file=str(workspace.root / "key"))
    options = {"bundle": bundle, "run": run, "policy": POLICY}
    frame = sanitise(spark.read.parquet(str(path)), id="id", text="body", keep=["day"], **options)
    drawn = sorted(to_arrow(frame.drop("run_id")).to_pylist(), key=lambda row: row["id"])
    assert drawn == rows
    register(spark, name="sanitise_repeated", **options)
    spark.read.parquet(str(path)).createOrReplaceTempView("repeated")
    found = spark.sql("select id, inline(array(sanitise_repeated(id, body))) from repeated order by id")
    written = to_arrow(found).to_pylist()
    assert [row["text"] for row in written] == [row["text"] for row in rows]
    assert all("repetition" in row["privacy"]["exposes"] for row in written)


@pytest.mark.long
def test_a_release_reserves_and_charges_distinct_words(spark, workspace: Workspace) -> None:
    """A budget that admits a record by its distinct words, and refuses it by one more."""
    lake = Lake(spark, workspace)
    table = corpus().append_column("author", pa.array(["a"] * 5))
    lake.write(table)
    price = wordveil.build_bundle(lake.config(text=POLICY)).guarantee.pure
    budget = {"unit": "pure", "relation": "same_skeleton", "record": 4 * price, "delta": 1e-6}
    config = lake.config(text=POLICY, budgets=budget)
    report = lake.run(config)
    assert report.quarantined == {"over_record_budget": 1}
    counts = [len(set(words(body))) for body in BODIES]
    assert sorted(counts) == [0, 2, 2, 3, 5]
    by_record = wordveil.read_ledger(config, by="record", session=spark).collect()
    charged = {row.record_id: (row.tokens, row.spent, row.reserved) for row in by_record}
    expected = {f"r{number}": (count, count * price, 0.0) for number, count in enumerate(counts) if count < 5}
    assert {name: charged[name] for name in expected} == expected
