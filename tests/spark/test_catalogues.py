"""Session catalogues that are not Delta's: those that pass on to it are used, others are refused by name."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from support.repository import ROOT
from support.workspaces import corpus, delta_jars
from wordveil.errors import PlatformError
from wordveil.input.source import Source
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.delta import require_delta
from wordveil.spark.platform.jvm import java_class
from wordveil.spark.platform.versions import from_arrow

SETTING = "spark.sql.catalog.spark_catalog"


@pytest.fixture
def other(spark: Any) -> Iterator[Any]:
    """A second session, whose catalogue is not loaded yet."""
    active = java_class(spark, "org.apache.spark.sql.SparkSession")
    session = spark.newSession()
    active.setActiveSession(session._jsparkSession)
    yield session
    active.setActiveSession(spark._jsparkSession)


@pytest.mark.parametrize("name", ["builtin", "no.such.Catalogue", None])
def test_a_catalogue_without_delta_is_refused_by_name(other: Any, name: str | None):
    other.conf.unset(SETTING) if name is None else other.conf.set(SETTING, name)
    shown = name or "Spark's own"
    with pytest.raises(PlatformError) as refused:
        require_delta(other)
    assert f"its catalogue ({shown}) is neither Delta's nor one that passes on to it" in str(refused.value)


@pytest.mark.usefixtures("newest_spark")
def test_a_catalogue_that_passes_on_to_delta_is_used(spark: Any, other: Any, tmp_path: Path):
    """Each reading is of one version, although the catalogue passes no version on."""
    if (javac := shutil.which("javac")) is None:
        pytest.skip("there is no javac to compile a catalogue")
    path = f"{Path(pyspark.__file__).parent / 'jars'}/*:{delta_jars()}/*"
    source = ROOT / "tests" / "support" / "PassingCatalog.java"
    subprocess.run([javac, "-nowarn", "-cp", path, "-d", tmp_path, source], check=True, capture_output=True)
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    loader.addURL(java_class(spark, "java.io.File")(f"{tmp_path}/").toURI().toURL())
    other.conf.set(SETTING, "PassingCatalog")
    require_delta(other)
    name = "spark_catalog.passing.tickets"
    other.sql("CREATE DATABASE passing")
    try:
        from_arrow(other, corpus(3)).coalesce(1).writeTo(name).using("delta").create()
        opened = open_input(other, Source(id="id", text="body", table=name))
        assert (opened.latest_version, opened.is_delta, opened.source.table) == (1, True, name)
        frame = opened.read()
        from_arrow(other, corpus(5)).coalesce(1).writeTo(name).append()
        assert frame.count() == opened.read().count() == opened.read_with_files().count() == 3
        assert open_input(other, Source(id="id", text="body", table=name)).read().count() == 8
        assert open_input(other, Source(id="id", text="body", table=name, version=1)).read().count() == 3
    finally:
        other.sql("DROP DATABASE passing CASCADE")
