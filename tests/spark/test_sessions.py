"""Sessions: Delta with jars by path or fetched, encryption by default, and a refusal that names the fix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from support.workspaces import clean_environment, delta_jars
from wordveil.config.schema import SparkSection
from wordveil.errors import PlatformError
from wordveil.spark.platform import delta
from wordveil.spark.platform.delta import JAR, log_store_options
from wordveil.spark.platform.session import (
    ENCRYPTION,
    JARS,
    build_session,
    check_session,
    fetched_s3_jars,
    require_encryption,
    s3_options,
)
from wordveil.spark.platform.versions import VERSION
from wordveil.spark.release import latest
from wordveil.spark.release.latest import filter_by_ids


def in_a_process(code: str, *arguments: object) -> dict:
    """What the code prints as JSON in its last line."""
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr[:6000]
    return json.loads(done.stdout.splitlines()[-1])


PREAMBLE = """
import json, sys
from wordveil.errors import PlatformError
from wordveil.config.schema import SparkSection
from wordveil.spark.platform.session import ENCRYPTION, build_session
def refusal(section, **options):
    try:
        build_session(section, **options)
    except PlatformError as error:
        return str(error)
"""


@pytest.mark.long
def test_jars_that_are_not_there_are_fetched_by_the_helper(tmp_path: Path):
    """Ivy with all it has fetched, but without the directory of jars where they are looked for first."""
    ivy = tmp_path / "ivy"
    ivy.mkdir()
    (ivy / "cache").symlink_to(delta.ivy_home() / "cache")
    assert delta.fetched_jars(str(ivy)) == []
    code = """
spark = build_session(SparkSection(master="local[1]", options={"spark.jars.ivy": sys.argv[1]}), delta=True)
path = sys.argv[1] + "/table"
spark.range(3).write.format("delta").save(path)
options = {name: spark.sparkContext.getConf().get(name) for name in ENCRYPTION}
value = spark.sparkContext.broadcast(b"bytes")
sent = spark.sparkContext.parallelize([0], 1).map(lambda _: value.value.decode()).collect()
print(json.dumps({"rows": spark.read.format("delta").load(path).count(), "options": options, "sent": sent}))
"""
    found = in_a_process(code, ivy)
    assert found == {"rows": 3, "options": ENCRYPTION, "sent": ["bytes"]}
    assert len(delta.fetched_jars(str(ivy))) == 2


@pytest.mark.long
def test_jars_that_cannot_be_fetched_are_a_clear_error(tmp_path: Path):
    code = """
options = {"spark.jars.ivy": sys.argv[1], "spark.jars.ivySettings": sys.argv[1] + "/none.xml"}
print(json.dumps([refusal(SparkSection(master="local[1]", options=options), delta=True)]))
"""
    (message,) = in_a_process(code, tmp_path)
    assert (
        "could not fetch Delta's jars, or others of spark.jars.packages. Set spark.delta_jars to a directory" in message
    )


def test_a_failed_start_and_a_failed_job_name_spark_s_log(tmp_path: Path):
    """Java prints to a log of its own, which holds no value of a record."""
    code = """
import os
from wordveil.errors import SparkJobError
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.jvm import java_class
os.environ["JAVA_HOME"] = "/nowhere"
refused = [refusal(SparkSection(master="local[1]"))]
del os.environ["JAVA_HOME"]
refused.append(refusal(SparkSection(master="local[1]", options={"spark.driver.memory": "12q"})))
refused.append(refusal(SparkSection(master="local[1]", options={"spark.serializer": "no.Such"})))
# Java keeps the options that it was started with.
options = {"spark.serializer": "org.apache.spark.serializer.JavaSerializer"}
spark = build_session(SparkSection(master="local[1]", options=options), is_short=True)
java_class(spark, "scala.Predef").println("Deleted 3 files")  # as Delta's VACUUM does
java_class(spark, "java.lang.System").out.println("a library's word")
try:
    with job_errors():
        spark.range(3).selectExpr("raise_error(concat('zqxcanary', id))").collect()
except SparkJobError as error:
    failed = str(error)
lacking = refusal(SparkSection(), delta=True)
spark.stop()
without_jars = refusal(SparkSection(delta_jars=sys.argv[1], options=options), delta=True)
print(json.dumps([*refused, failed, lacking, without_jars]))
"""
    command = [sys.executable, "-c", PREAMBLE + code, str(delta_jars())]
    environment = {name: value for name, value in clean_environment().items() if name != "JAVA_HOME"}
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    no_java, no_memory, no_class, failed, lacking, without_jars = json.loads(done.stdout)
    assert no_java.startswith("Java at /nowhere/bin/java cannot be run. Install Java 17 to 22")
    assert "Spark did not start: " in no_memory
    assert "Invalid maximum heap size: -Xmx12q" in no_memory
    assert "Spark did not start: java.lang.ClassNotFoundException: no.Such. Its log is " in no_class
    kind = "USER_RAISED_EXCEPTION" if VERSION >= (4, 0) else "Py4JJavaError"
    assert f"{kind}. Spark's log, without values of records, is " in failed
    text = Path(failed.rsplit(" is ", 1)[1].rstrip(".")).read_text("utf-8")
    assert "\n  at org.apache.spark." in text
    assert "Deleted 3 files" in text
    assert "zqxcanary" not in text
    # And a session that runs without Delta is not used.
    assert "but the Spark session has no Delta extension. Start it with spark.sql.extensions=io.delta.sql" in lacking
    assert "its Java process started without Delta's jars" in without_jars


@pytest.mark.long
def test_under_spark_submit_java_prints_to_the_log_alone(tmp_path: Path):
    import pyspark

    script = tmp_path / "job.py"
    script.write_text(
        PREAMBLE
        + "from wordveil.spark.platform.jvm import java_class\n"
        + "spark = build_session(SparkSection(), is_short=True)\n"
        + 'java_class(spark, "scala.Predef").println("Deleted 3 files")\n'
        + "print('the result')\n"
    )
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**clean_environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [submit, "--master", "local[1]", script], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "the result\n"), done.stderr[-3000:]
    assert "Deleted 3 files" in done.stderr


# local-cluster writes beside pyspark, where test_distribution.py counts files: the two never run at once.
@pytest.mark.long
@pytest.mark.xdist_group("cluster")
def test_multiprocess_session_is_encrypted_or_allowed_not_to_be(tmp_path: Path):
    code = """
section = {"master": "local-cluster[1,1,512]", "options": {name: "false" for name in ENCRYPTION}}
section["options"]["spark.executor.memory"] = "512m"
refused = refusal(SparkSection(**section))
print(json.dumps([refused, refusal(SparkSection(**section, allow_unencrypted=True))]))
"""
    refused, allowed = in_a_process(code)
    assert (
        "lacks spark.io.encryption.enabled=true, spark.network.crypto.enabled=true, spark.authenticate=true" in refused
    )
    assert "spark.allow_unencrypted: true" in refused
    assert allowed is None


def session(master: str, **options: str) -> SimpleNamespace:
    """What the checks ask a session for."""
    given = {"spark_master": master, **options}
    conf = SimpleNamespace(get=lambda name, default=None: given.get(name.replace(".", "_"), default))
    context = SimpleNamespace(master=master, getConf=lambda: conf)
    return SimpleNamespace(sparkContext=context, conf=conf, _jsparkSession=None, version="4.1")


def test_sessions_of_ones_own_are_checked_too():
    safe = {name.replace(".", "_"): "true" for name in ENCRYPTION}
    for master in ("local", "local[4]", "local[*]"):
        check_session(session(master))
    for master in ("spark://x:7077", "yarn", "local-cluster[2,1,1024]", "k8s://x"):
        check_session(session(master, **safe))
        check_session(session(master), allow_unencrypted=True)
        for name in safe:
            with pytest.raises(PlatformError, match="spark session lacks".replace("spark", "Spark")) as error:
                check_session(session(master, **{**safe, name: "false"}))
            assert str(error.value).count("=true") == 1
    with pytest.raises(PlatformError, match="allow_unencrypted=True in code"):
        require_encryption(session("yarn"), allow_unencrypted=False)


def test_texts_of_many_records_are_not_shuffled_in_the_open(monkeypatch: pytest.MonkeyPatch):
    """Whatever the configuration allows, and in local mode; ids are, and the texts of a few are not shuffled."""
    monkeypatch.setattr(latest, "_FEW", 2)
    rows = SimpleNamespace(sparkSession=session("local[2]"), join=lambda *joined: joined[-1])
    with pytest.raises(PlatformError, match=r"more than 2 records .* spark\.io\.encryption\.enabled=true"):
        filter_by_ids(rows, "id", None, "inner", 3, texts=True)
    monkeypatch.setattr(latest, "column", lambda _: None)
    monkeypatch.setattr(latest, "F", MagicMock())
    assert filter_by_ids(rows, "id", None, "inner", 3) == "inner"
    assert filter_by_ids(rows, "id", None, "inner", 2, texts=True) == "inner"
    rows.sparkSession = session("yarn", spark_io_encryption_enabled="true")
    assert filter_by_ids(rows, "id", None, "inner", 3, texts=True) == "inner"


@pytest.mark.parametrize("is_running", [False, True])
def test_multiprocess_session_without_encryption_is_refused(monkeypatch: pytest.MonkeyPatch, is_running: bool):
    """Whether it was started for this or runs already; and taken where the configuration allows it."""
    from pyspark.sql import SparkSession

    section = SparkSection(master="local-cluster[1,1,512]", options=dict.fromkeys(ENCRYPTION, "false"))

    def start(options: dict[str, str]) -> SimpleNamespace:
        return session(options["spark.master"], **{name.replace(".", "_"): options[name] for name in ENCRYPTION})

    running = session("local-cluster[1,1,512]") if is_running else None
    if running is not None:
        running.conf.isModifiable = lambda _: False
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: running)
    monkeypatch.setattr("wordveil.spark.platform.session._start", start)
    with pytest.raises(PlatformError, match=r"spark\.allow_unencrypted: true") as error:
        build_session(section)
    assert all(f"{name}=true" in str(error.value) for name in ENCRYPTION)
    build_session(section.model_copy(update={"allow_unencrypted": True}))
    if not is_running:
        build_session(SparkSection(master="local-cluster[1,1,512]"))


def test_a_standalone_cluster_needs_a_secret(monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(
        PlatformError, match=r"needs spark\.authenticate\.secret, with the same value on master, workers and driver"
    ):
        build_session(SparkSection(master="spark://127.0.0.1:1"))


def test_the_shared_session_is_encrypted(spark):
    assert {name: spark.sparkContext.getConf().get(name) for name in ENCRYPTION} == ENCRYPTION


def test_jars_come_from_the_directory_that_is_named(tmp_path: Path):
    (tmp_path / "io.delta_delta-spark_4.1_2.13-4.4.0.jar").touch()
    with pytest.raises(PlatformError, match=r"spark\.delta_jars = .*: the directory has no jar of delta-storage\."):
        delta.delta_options({}, str(tmp_path), submitted=False)
    (tmp_path / "delta-storage.jar").touch()
    given = {
        "spark.jars": "mine.jar",
        "spark.sql.extensions": "my.Extension",
        "spark.databricks.delta.snapshotPartitions": "9",
    }
    options = delta.delta_options(given, str(tmp_path), submitted=False)
    assert options == {
        "spark.sql.catalog.spark_catalog": delta.CATALOG,
        "spark.databricks.delta.allFilesInCrc.enabled": "false",
        "spark.sql.extensions": f"my.Extension,{delta.EXTENSION}",
        "spark.jars": f"mine.jar,{tmp_path}/delta-storage.jar,{tmp_path}/io.delta_delta-spark_4.1_2.13-4.4.0.jar,{JAR}",
        **log_store_options(given),
    }


def test_what_spark_submit_began_keeps_its_jars_and_extensions():
    submitted = {"spark.sql.extensions": f"a.B,{delta.EXTENSION}", "spark.sql.catalog.spark_catalog": delta.CATALOG}
    options = delta.delta_options(submitted, None, submitted=True)
    assert options["spark.sql.extensions"] == submitted["spark.sql.extensions"]
    assert not {"spark.jars", "spark.jars.packages", "spark.sql.catalog.spark_catalog"} & set(options)
    assert not log_store_options(submitted).keys() & options.keys(), "it may have no jar of the log store"
    assert s3_options(submitted, submitted=True) == {}


@pytest.mark.skipif(VERSION < (4, 1), reason="needs Spark 4.1")
def test_s3a_comes_by_path_where_ivy_has_fetched_it(tmp_path: Path):
    given = {"spark.jars.ivy": str(tmp_path), "spark.jars": "mine.jar", "spark.jars.packages": "a:b:1"}
    packages = s3_options(given, submitted=False)
    assert packages["spark.jars.packages"].startswith("a:b:1,org.apache.hadoop:hadoop-aws:3.4.2,")
    assert "software.amazon.awssdk:bundle" in packages["spark.jars.excludes"].split(",")
    assert delta.delta_options({**given, **packages}, None, submitted=False)["spark.jars.packages"] == ",".join(
        [packages["spark.jars.packages"], delta.artifact()]
    )
    (tmp_path / "jars").mkdir()
    for fetched in delta.list_jars(JARS, tmp_path):
        assert fetched_s3_jars(str(tmp_path)) == []
        fetched.touch()
    jars = s3_options(given, submitted=False)["spark.jars"].split(",")
    assert jars == ["mine.jar", *map(str, delta.list_jars(JARS, tmp_path))]
    assert len(jars) == 37


def test_without_delta_spark_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "delta", None)
    with pytest.raises(PlatformError, match=r"delta-spark is not installed.*pip install 'wordveil\[spark\]'"):
        delta.delta_options({}, None, submitted=False)
