"""What is demanded of a session of Spark Connect, and how the text of its plan is read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from wordveil.errors import PlatformError
from wordveil.spark.input.scans import _inspect_lines
from wordveil.spark.platform import connect
from wordveil.spark.platform.connect import list_plan_lines
from wordveil.spark.platform.session import ENCRYPTION
from wordveil.spark.platform.session import check_session as check_any
from wordveil.spark.platform.versions import VERSION

SECRET = "HIV positive"


def check_session(session: SparkSession, **options: bool) -> None:
    check_any(session, may_connect=True, **options)


class Options(dict):
    def get(self, name: str, default: str | None = None) -> str | None:
        return super().get(name, default)


def make_session(url: str, *, version: str = "4.1.4", **options: str) -> SparkSession:
    if VERSION < (4, 1):
        pytest.skip("needs Spark 4.1")
    client = pytest.importorskip("pyspark.sql.connect.client", reason="the extra connect is not installed")
    builder = client.DefaultChannelBuilder(url) if url else SimpleNamespace(host="localhost", secure=True)
    conf = Options({"spark.master": "local[2]", **options})
    return SimpleNamespace(client=SimpleNamespace(_builder=builder), version=version, conf=conf)


@pytest.fixture(autouse=True)
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "is_remote", lambda: True)
    monkeypatch.setattr(connect, "VERSION", (4, 1))


def test_a_server_elsewhere_needs_encryption():
    for url in ("sc://localhost:15002", "sc://127.0.0.1", "sc://[::1]:7", "sc://db/;use_ssl=true", "sc://db/;token=x"):
        check_session(make_session(url))
    for url in ("sc://db:15002", "sc://localhost.example.org", "sc://10.0.0.1", ""):
        with pytest.raises(PlatformError, match=r"may be unencrypted.*use_ssl=true.*allow_unencrypted=True"):
            check_session(make_session(url))
        check_session(make_session(url), allow_unencrypted=True)


def test_the_options_of_the_server_are_checked():
    cluster = {"spark.master": "yarn"}
    with pytest.raises(PlatformError, match=r"spark\.io\.encryption\.enabled=true.*or the server of Spark Connect"):
        check_session(make_session("sc://localhost", **cluster))
    check_session(make_session("sc://localhost", **cluster, **dict.fromkeys(ENCRYPTION, "true")))
    with pytest.raises(PlatformError, match="ignoreCorruptFiles = true"):
        check_session(make_session("sc://localhost", **{"spark.sql.files.ignoreCorruptFiles": "true"}))


def test_jobs_take_no_session_of_connect():
    with pytest.raises(PlatformError, match=r"serve wordveil\.sanitise and wordveil\.register alone"):
        check_any(make_session("sc://localhost"))


def test_session_of_other_version_or_beside_classic_is_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(PlatformError, match=r"needs Spark 4\.1 on both sides.*the server runs Spark 4\.0\.1"):
        check_session(make_session("sc://localhost", version="4.0.1"))
    monkeypatch.setattr(connect, "is_remote", lambda: False)
    with pytest.raises(PlatformError, match=r"SparkSession\.builder\.remote"):
        check_session(make_session("sc://localhost"))


PLAN = """== Parsed Logical Plan ==
'Filter
== Analyzed Logical Plan ==
id: string, body: string
{plan}

== Optimized Logical Plan ==
{plan}

== Physical Plan ==
Project
"""


def inspect(plan: str, rows: str = "", **changes: str) -> str:
    text = PLAN.replace("{plan}", plan)
    for old, new in changes.items():
        text = text.replace(old, new)
    said = _inspect_lines(list_plan_lines(SimpleNamespace(_explain_string=lambda extended: text)), rows)
    assert SECRET not in said
    return said


READ = "+- Relation [id#1,body#2] {}"


def test_known_nodes_are_taken_and_rows_of_no_table_declared():
    known, local = READ.format("parquet"), "LocalRelation [id#1, body#2]"
    for plan, has_rows in (
        (local, True),
        ("CachedLocalRelation abc", True),
        (f"Union false, false\n:- Project [id#1]\n{known}\n+- OneRowRelation", True),
        (f"Project [id#1, variablereference(system.session.found=x)[0] AS body#2]\n{known}", True),
        (f"Project [id#1]\n{known}", False),
        ("Relation spark_catalog.db.t[id#1,body#2L] parquet", False),
        ("Join LeftAnti, (id#1 = id#2)\n:- Relation [id#1] orc\n+- SubqueryAlias x\n   +- Range (0, 3, step=1)", None),
        ("Filter id#1 IN (list#3 [])\n:  +- Project [id#4]\n:     +- Relation [id#4] parquet\n+- OneRowRelation", None),
    ):
        assert inspect(plan) == "", plan
        if has_rows is not None:
            assert inspect(plan, "no table") == ("no table" if has_rows else ""), plan


def test_nothing_in_a_plan_hides_a_leaf():
    csv = READ.format("csv")
    for plan in (
        f"Project [id#1, {SECRET} AS body#2]\n{csv}",
        f"Project [a\n\n== Optimized Logical Plan ==\nb]\n{csv}",  # a heading in a literal
        f"Project [a\n\n== Analyzed Logical Plan ==\nb]\n{csv}",
        f"Project [a\nProject [b]\n{csv}",
        "Relation [id#1] parquet\n+- Project [x#1] csv",  # the name of a column
        "RelationV2[id#1] csv file:/x",
        "Relation [id#1] JDBCRelation(t) [numPartitions=1]",
        "Relation [id#1] excel",
        "LogicalRDD [id#1], false",
        "HiveTableRelation [`db`.`t`, org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe]",
        f"Project [{SECRET}\n{SECRET} AS body#2]\n{READ.format('parquet')}",
    ):
        assert inspect(plan), plan
    whole = "LocalRelation [id#1]"
    assert "in part" in inspect(whole, **{"Project\n": "... 12 more characters"})
    assert "in part" in inspect(whole, Optimized="Other")
