"""Conditions on the text on real Spark: what is said of them, those that Spark alone sees, and those that could fail on
a text.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest

from support.releases import States
from support.workspaces import WORDS, Workspace, corpus, read_input, read_output
from wordveil.errors import ConfigError
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.platform import delta_table
from wordveil.spark.platform.versions import VERSION, from_arrow
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import MANIFEST
from wordveil.spark.sanitise.job import run_sanitise

READABLE = {"profile": "readable"}
CANARY = "zqxconditionzqx"
BODIES = [
    f"{WORDS[0]} {CANARY}",
    f"{CANARY}\\",
    f"[({CANARY}",
    "",
    None,
    "12",
    "2020-01-01 00:00:00",
    "日本語",
    f"{CANARY} " * 300,
]
SAFE = [
    "body like '%x%' or body not ilike 'x' or body rlike 'x' or regexp_like(body, '[0-9]+')",
    "body like any ('a%', 'b%') or body not like all ('a%', 'b%') or body ilike any ('a%')",
    "body = 'x' or body <> day or body <=> 'x' or equal_null(body, 'x') or body is distinct from 'x'",
    "body < 'x' and body >= 'a' or body between 'a' and day or body in ('a', day)",
    "body is null or body is not null or isnull(body)",
    (
        "length(body) > 5 or length(body) > 5L or length(body) > 1.5 or length(body) > '5' "
        "or octet_length(body) > 3 or bit_length(body) > 3"
    ),
    (
        "lower(body) = 'x' or upper(body) = 'x' or trim(body) = '' or ltrim(body) = '' or rtrim(body) = '' "
        "or btrim(body, 'x') = ''"
    ),
    "substring(body, 1, 3) = 'x' or substr(body, note) = 'x' or left(body, 2) = 'x' or right(body, 2) = 'x'",
    "instr(body, 'x') > 0 or locate('x', body, 2) > 0 or position('x' in body) > 0",
    "contains(body, 'x') or startswith(body, 'x') or endswith(body, 'x')",
    "coalesce(body, '') = 'x' or nvl(body, '') = '' or nullif(body, '') is null or nvl2(body, 'a', 'b') = 'a'",
    "if(body = 'x', true, false) or case body when 'a' then true when 'b' then false end",
    (
        "try_cast(body as int) > 3L or try_cast(body as double) > 5 or try_cast(body as date) >= '2020-01-01' "
        "or try_cast(body as boolean)"
    ),
    "cast(body as string) = 'x'",
]
BODY = {"string": "body", "binary": "concat(cast(body as binary), X'FFC3') as body"}
FAILING = [
    ("cast(body as int) > 3", "cast to int"),
    ("body::date is null", "cast to date"),
    ("body = 5", "cast to bigint"),
    ("body = note", "cast to bigint"),
    ("body between 1 and 5", "cast to bigint"),
    ("body in (1, 2)", "cast to bigint"),
    ("day = 'd0' and (note > 1 or body is true)", "cast to boolean"),
    ("raise_error(body) is null", "raise_error"),
    ("assert_true(body = 'x') is null", "assert_true"),
    ("split(body, ' ')[9] = 'x'", "split"),
    ("'x' rlike body", "rlike"),
    ("'x' like body", "like"),
    ("length(body) / 0 > 1", "divide"),
    ("hash(*) = 1", "hash"),
    ("id in (select id from canaries where cast(body as int) > 3)", "cast to int"),
    ("exists (select 1 from canaries c where c.note = cast(input.body as int))", "cast to int"),
]


def canaries() -> pa.Table:
    count = len(BODIES)
    columns = {"id": [f"r{n}" for n in range(count)], "body": BODIES, "day": ["d0"] * count, "note": list(range(count))}
    return pa.table(
        columns, schema=pa.schema([("id", "string"), ("body", "string"), ("day", "string"), ("note", "int64")])
    )


@pytest.fixture
def asked(spark, workspace: Workspace):
    """Makes the configuration of a readable release with a condition on texts that most conditions fail on."""
    workspace.write_corpus(canaries())
    from_arrow(spark, canaries()).createOrReplaceTempView("canaries")
    yield lambda where, **sections: workspace.config(input={"where": where}, text=READABLE, **sections)
    spark.catalog.dropTempView("canaries")


def event_log(spark) -> bytes:
    place = Path(urlparse(spark.sparkContext.getConf().get("spark.eventLog.dir")).path)
    return b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())


def test_a_condition_that_could_fail_on_a_text_is_refused_and_shows_none(spark, asked, capfd):
    for where, function in FAILING:
        if VERSION < (4, 0) and ("::" in where or "*" in where):
            continue  # another syntax
        with pytest.raises(ConfigError) as error:
            read_input(spark, asked(where)).count()
        (fault,) = error.value.faults
        assert (fault.where, fault.value) == ("input.where", where[:80])
        assert function in fault.problem.split(" on what may be body, the text column")[0]
        assert "Use like, rlike, length, = or try_cast, which cannot fail" in fault.problem
        assert CANARY not in str(error.value)
    output = capfd.readouterr()
    assert CANARY not in output.out + output.err
    assert CANARY.encode() not in event_log(spark)


@pytest.mark.parametrize("kind", ["string", pytest.param("binary", marks=pytest.mark.long)])
def test_a_condition_that_cannot_fail_is_asked_of_any_text(spark, workspace: Workspace, kind, capfd):
    """All of them of all texts, whatever an earlier part of a condition lets through."""
    path = str(workspace.root / "corpus")
    from_arrow(spark, canaries()).selectExpr("id", BODY[kind], "day", "note").write.parquet(path)
    parts = [part for whole in SAFE for part in whole.split(" or ") if kind == "string" or "try_cast" not in part]
    # Each part of a condition is looked at, whether Spark would ask it or not.
    read_input(spark, workspace.config(input={"where": " or ".join(parts)}, text=READABLE))
    asked = spark.read.parquet(path).selectExpr(*(f"{part} as c{number}" for number, part in enumerate(parts)))
    assert len(asked.collect()) == len(BODIES)
    output = capfd.readouterr()
    assert CANARY not in output.out + output.err
    assert CANARY.encode() not in event_log(spark)


def test_rows_and_plan_say_that_the_condition_reads_the_text(spark, workspace: Workspace):
    workspace.write_corpus(corpus(30))
    config = workspace.config(
        input={"where": f"body like '%{WORDS[0]}%' or note < 3"}, text={"profile": "strict", "length": "as_is"}
    )
    report = run_sanitise(config, lambda: spark)
    rows = read_output(workspace.root / "output")
    assert 3 <= len(rows) < 30
    shown = ["condition", "length", "presence", "column:day"]
    assert {
        (row["privacy"]["relation"], row["privacy"]["epsilon_pure"], *row["privacy"]["exposes"]) for row in rows
    } == {("same_skeleton", None, *shown)}
    plan = make_plan(config, lambda: spark)
    assert (report.relation, plan.relation) == ("same_skeleton", "same_skeleton")
    assert [*report.exposes] == [*plan.exposes] == shown
    assert plan.epsilon_pure is None


def test_a_view_of_public_columns_filters_for_a_policy_of_any_two_texts(spark, workspace: Workspace):
    spark.read.parquet(str(workspace.write_corpus(corpus(30)))).createOrReplaceTempView("flagged")
    source = {"path": None, "table": "flagged"}
    with pytest.raises(ConfigError, match=r"input\.where = length\(body\) > 3: names body, the text column"):
        workspace.config(input={**source, "where": "length(body) > 3"})
    report = run_sanitise(workspace.config(input={**source, "where": "note < 3"}), lambda: spark)
    assert (report.records, report.relation) == (3, "any_text")


SEEN_BY_SPARK = [
    ("length(body) > 3", "reads body, the text column, in a way that only Spark sees, so"),
    ("id in (select id from canaries)", "reads body, the text column, in a way that only Spark sees"),
    ("starts(day)", "uses a function that Spark rewrites into a query, so that what it reads is unknown"),
    ("any_long()", "uses a function that Spark rewrites into a query, so that what it reads is unknown"),
]


@pytest.mark.usefixtures("newest_spark")
def test_a_reading_that_spark_alone_sees_is_refused_before_a_record_is_read(spark, asked, workspace, monkeypatch):
    monkeypatch.setattr("wordveil.input.conditions.find_reading", lambda *_: "")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION starts(x STRING) RETURNS BOOLEAN RETURN x LIKE 'd%'")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION any_long() RETURNS BOOLEAN "
        "RETURN EXISTS (SELECT 1 FROM canaries WHERE length(body) > 3)"
    )
    for where, problem in SEEN_BY_SPARK:
        for config in (asked(where), workspace.config(input={"where": where})):
            with pytest.raises(ConfigError) as error:
                read_input(spark, config)
            assert str(error.value.faults[0]).startswith(f"input.where = {where}: {problem}")


@pytest.mark.long
def test_a_release_remembers_a_condition_on_the_text(spark, released: States, monkeypatch: pytest.MonkeyPatch):
    """Its gate and manifest say so though the condition let nothing in and a later run has none; and a run that was
    interrupted is finished under what its own condition shows.
    """
    lake = released.restore("written")
    text = {"profile": "strict", "length": "as_is"}
    config = lake.config(text=text, input={"where": "body = 'nothing is this'"})
    later = lake.config(text=text, gate={"relation": "same_length"})

    def dies(step: str) -> None:
        if step == "intent":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(delta_table, "after_commit", dies)
        with pytest.raises(KeyboardInterrupt):
            lake.run(config)
    told: list[str] = []
    assert lake.run(later, progress=told.append).relation == "same_length"
    assert sum("with the settings that it started with" in line for line in told) == 1
    assert {row["privacy"]["relation"] for row in lake.draws()} == {"same_length"}
    assert not run_gate(later, lambda: spark).result.passed
    lake.release(lake.config(text=text))
    manifest = json.loads((lake.public / MANIFEST).read_text())["manifest"]
    assert (manifest["relation"], "condition" in manifest["exposes"]) == ("same_skeleton", True)
