"""Several text columns on real Spark: a job, nested fields, casts, a function for SQL, and a release over time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from support.releases import EXPONENTIAL, Lake
from support.workspaces import Workspace, corpus, random_texts, read_output
from wordveil import Run, register, sanitise
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import ConfigError, ReleaseError
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.plan.sample import check_preview, make_preview
from wordveil.spark.sanitise.job import run_sanitise

TEXTS = {"text": ["subject", "body"]}
STRICT = {"profile": "strict", "n_max": {"subject": 4, "body": 20}}


def mails(count: int, seed: int = 0) -> pa.Table:
    """A corpus with subjects, of which some are null."""
    subjects = [None if i % 7 == 3 else text for i, text in enumerate(random_texts(count, seed + 100, longest=6))]
    return corpus(count, seed).append_column("subject", pa.array(subjects, pa.string()))


def texts_of(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["id"], row["subject"], row["body"]) for row in rows]


def test_a_job_over_two_columns(spark, workspace: Workspace):
    table = mails(40)
    bodies = table["body"].to_pylist()
    bodies[3], bodies[4] = None, None  # r00003 has no subject either
    workspace.write_corpus(table.set_column(1, "body", pa.array(bodies)), files=3)
    config = workspace.config(input=TEXTS, text=STRICT)
    report = run_sanitise(config, lambda: spark)
    assert (report.released, report.quarantined) == (39, {"null_text": 1})
    rows = read_output(workspace.root / "output")
    assert [name for name in rows[0] if name in ("id", "subject", "body", "status")] == [
        *("id", "subject", "body", "status")
    ]
    priced = [row["privacy"] for row in rows if row["privacy"]]
    assert {cost["tokens"] for cost in priced} == {24}
    assert all(row["subject"] is not None and row["body"] is not None for row in rows if row["status"] == "released")
    assert report.epsilon_bound == (priced[0]["epsilon_bound"],) * 2
    plan = make_plan(config, lambda: spark)
    assert (plan.tokens, plan.epsilon_bound) == (24, priced[0]["epsilon_bound"])
    assert plan.columns == {"id": "string", "subject": "string", "body": "string", "day": "string"}
    preview = make_preview(check_preview(config, 10, None), lambda: spark)
    assert preview.sample is not None
    assert preview.sample.sample.tokens == preview.sample.sample.released * 24


def test_nested_fields_and_other_types(spark, workspace: Workspace):
    parts = pa.struct([("body", pa.binary())])
    message = pa.array(
        [{"subject": "waaa", "parts": {"body": b"waab waac"}, "size": 3}] * 3,
        pa.struct([("subject", pa.string()), ("parts", parts), ("size", pa.int32())]),
    )
    table = corpus(3).append_column("message", message).append_column("a.b", pa.array(["waad"] * 3))
    workspace.write_corpus(table)
    texts = ["message.subject", "message.parts.body", "message.size", "`a.b`"]
    run_sanitise(
        workspace.config(
            input={"text": texts}, text={"profile": "readable", "digits": "keep", "types": "none", "names": "words"}
        ),
        lambda: spark,
    )
    rows = read_output(workspace.root / "output")
    counts = [rows[0]["message"]["subject"], rows[0]["message"]["parts"]["body"], rows[0]["a.b"]]
    assert [len(text.split()) for text in counts] == [1, 2, 1]
    assert {row["message"]["size"] for row in rows} == {"3"}
    for text, fault in (
        ("message", "Name the fields that hold text, such as COLUMN.subject"),
        ("message.sbject", "the struct has no such field. Did you mean subject?"),
        ("body.x", "in backticks"),
    ):
        with pytest.raises(ConfigError) as error:
            make_plan(workspace.config(input={"text": text}), lambda: spark)
        assert fault in str(error.value)
    one = workspace.config(input={"text": "message.subject"}, output={"path": str(workspace.root / "one")})
    assert run_sanitise(one, lambda: spark).released == 3
    assert "text" in read_output(workspace.root / "one")[0]


@pytest.mark.usefixtures("newest_spark")
def test_a_frame_and_a_function_give_the_rows_of_the_job(spark, workspace: Workspace):
    workspace.write_corpus(mails(12))
    config = workspace.config(input=TEXTS, text=STRICT)
    run_sanitise(config, lambda: spark)
    expected = texts_of(read_output(workspace.root / "output"))
    frame = spark.read.parquet(str(workspace.root / "corpus"))
    bundle = build_bundle(config)
    run = Run.recorded(release="tests", run_log_dir=str(workspace.root / "runs"), key_file=str(workspace.root / "key"))
    made = sanitise(frame, bundle=bundle, run=run, id="id", text=("subject", "body"), keep=["day"], policy=STRICT)
    rows = [row.asDict() for row in made.collect()]
    assert sorted(texts_of([row for row in rows if row["status"] == "released"])) == sorted(
        row for row in expected if row[1] is not None
    )
    register(spark, bundle=bundle, run=run, text=["subject", "body"], policy=STRICT, name="sanitise_mails")
    query = "select id, inline(array(sanitise_mails(id, subject, body))) from parquet.`{}`"
    found = [row.asDict() for row in spark.sql(query.format(workspace.root / "corpus")).collect()]
    assert sorted(map(str, texts_of(found))) == sorted(map(str, expected))


@pytest.mark.long
def test_a_release_of_two_columns_follows_its_input(spark, workspace: Workspace):
    lake = Lake(spark, workspace)
    lake.write(mails(20))
    shown = ["presence", "edited", "withdrawn", "kept_changed", "column:day"]
    config = lake.config(
        input={**TEXTS, "changes": "feed"},
        text=STRICT,
        mechanism=EXPONENTIAL,
        budgets={"unit": "pure", "relation": "any_text", "record": 1e9},
        gate={"exposes": shown, "min_distinct_words": 2, "max_empty_rate": 0.5},
    )
    assert lake.run(config).released == 20
    assert lake.spent() == {f"r{number:05d}": 24 for number in range(20)}
    before = lake.newest()
    # One record's subject changes, in another subject and body change places, a third is deleted.
    lake.sql(
        "UPDATE {input} SET subject = CASE id WHEN 'r00001' THEN 'waaa waab' ELSE body END, "
        "body = CASE id WHEN 'r00001' THEN body ELSE subject END WHERE id IN ('r00001', 'r00002')"
    )
    lake.delete("id = 'r00004'")
    report = lake.run(config)
    assert (report.records, report.released, report.withdrawn) == (2, 2, 1)
    now = lake.newest()
    changed = {name for name, row in now.items() if row["content_tag"] != before[name]["content_tag"]}
    assert changed == {"r00001", "r00002", "r00004"}
    assert lake.spent()["r00001"] == 48
    lake.release(config)
    public = lake.rows(lake.public)
    assert len(public) == 19
    assert set(public[0]) == {"id", "day", "subject", "body", "privacy"}
    swapped = lake.config(
        input={"text": ["body", "subject"]}, text={"profile": "strict", "n_max": 12}, mechanism=EXPONENTIAL
    )
    with pytest.raises(ReleaseError, match=r"together\) is body, subject now and was subject, body"):
        lake.run(swapped)
