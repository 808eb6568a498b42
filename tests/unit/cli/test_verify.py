"""``wordveil verify`` without Java, and what decides which reader reads the table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaProtocolError

from support.published import copy_signed
from support.workspaces import Command
from wordveil.assembly.local_paths import _SPARK_VARIABLES
from wordveil.cli import verify as verifying
from wordveil.errors import ReleaseError
from wordveil.release import lake_table


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published table."""
    return copy_signed(tmp_path_factory.mktemp("published"))


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing configures Spark, Java is out of reach, and no session of another test runs."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for name in _SPARK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of packages that seem not to be installed."""
    names: list[str] = []
    for module in (verifying, lake_table):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name in names else object())
    return names


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that Spark was asked for."""
    tables: list[str] = []

    def stop(_: object, table: str, *__: Any) -> None:
        tables.append(table)
        raise ReleaseError("stopped")

    monkeypatch.setattr("wordveil.spark.release.verify.verify_by_spark", stop)
    monkeypatch.setattr(verifying, "prepare_plain_session", lambda *_, **__: lambda: None)
    return tables


def test_a_table_verifies_by_both_names_of_the_command(run: Command, no_packages: list[str], public: Path):
    no_packages.append("pyspark")
    code, out, err = run("verify", "--table", public, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["verified"], facts["records"], facts["publication"], facts["pinned"]) == (True, 4, 2, False)
    assert facts["reader"] == "deltalake"
    assert json.loads(run("release", "verify", "--table", public, "--json")[1]) == facts
    code, out, err = run("verify", "--table", public)
    assert "Verified" in out
    assert "no public key was pinned" in err
    code, _, err = run("verify", "--table", public, "--at-least", 3)
    assert (code, "is older than 3, which you have seen" in err) == (9, True)
    code, _, err = run("verify", "--table", public.parent)
    assert (code, "no such file" in err) == (9, True)


def test_verify_needs_no_package_that_draws(public: Path):
    """docs/releases.md names the packages of an environment that only verifies."""
    absent = ["scipy", "numba", "llvmlite", "gensim", "smart_open", "jinja2", "yaml", "threadpoolctl", "pyspark"]
    arguments = ["verify", "--table", str(public), "--json"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent})); from wordveil.cli.app import main; main({arguments})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["reader"] == "deltalake", done.stderr


@pytest.mark.parametrize("option", ["--on-spark", "--delta-jars=jars", *_SPARK_VARIABLES, "hdfs:", "no deltalake"])
def test_spark_reads_what_is_its_own(
    option: str, run: Command, asked: list[str], no_packages: list[str], public: Path, monkeypatch: pytest.MonkeyPatch
):
    table = "hdfs://host/public" if option == "hdfs:" else str(public)
    if option.isupper():
        monkeypatch.setenv(option, "some")
    if option == "no deltalake":
        no_packages.append("deltalake")
    code, _, err = run("verify", "--table", table, *([option] if option.startswith("--") else []))
    assert (code, "stopped" in err, asked) == (9, True, [table])


def test_spark_reads_what_deltalake_does_not(
    run: Command, asked: list[str], no_packages: list[str], public: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: Any, **__: Any) -> None:
        raise DeltaProtocolError("a feature")

    monkeypatch.setattr("deltalake.DeltaTable", refuse)
    run("verify", "--table", public)
    assert asked == [str(public)]
    no_packages.append("pyspark")
    code, _, err = run("verify", "--table", public)
    assert (code, asked) == (7, [str(public)])
    assert "deltalake does not show all that readers of this table see (a feature)" in err
    assert "pip install 'wordveil[spark]'" in err


def test_a_reader_that_is_not_installed_is_named(
    run: Command, no_packages: list[str], public: Path, monkeypatch: pytest.MonkeyPatch
):
    no_packages += ["pyspark", "deltalake"]
    code, _, err = run("verify", "--table", public)
    assert code == 7
    assert "deltalake is not installed. Install it with: pip install 'wordveil[verify]'" in err
    no_packages.remove("deltalake")
    code, _, err = run("verify", "--table", "hdfs://host/public")
    assert (code, "deltalake does not read hdfs: here. Install Spark with: pip install" in err) == (7, True)
    code, _, err = run("verify", "--table", public, "--on-spark")
    assert (code, "you asked for Spark. Install Spark with: pip install" in err) == (7, True)
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert run("verify", "--table", public)[0] == 0, "there is none to ask"
