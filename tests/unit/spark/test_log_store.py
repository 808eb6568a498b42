"""The log store for S3: its jar is what its source says, and sessions get it."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from support.repository import load_script
from wordveil.spark.platform.delta import CLASS, JAR, SOURCE, log_store_options

script = load_script("scripts/log_store.py")


def test_the_jar_holds_its_source():
    """Also where there is no compiler: whoever changes one without the other is told."""
    with zipfile.ZipFile(JAR) as archive:
        assert archive.read(SOURCE.name) == SOURCE.read_bytes(), "make log-store builds the jar"
        assert archive.namelist() == [f"{CLASS.replace('.', '/')}.class", SOURCE.name]


@pytest.mark.long
def test_the_jar_is_what_its_source_compiles_to(tmp_path: Path):
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("there is no javac")
    said = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    if not re.match(rf"javac {script.RELEASE}\b", said.stdout):
        pytest.skip(f"another compiler may write other bytes: {said.stdout.strip()}")
    try:
        script.build(tmp_path / "again.jar")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert (tmp_path / "again.jar").read_bytes() == JAR.read_bytes()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"spark.delta.logStore.s3a.impl": CLASS, "spark.delta.logStore.s3.impl": CLASS}),
        ({"spark.delta.logStore.s3a.impl": "theirs"}, {"spark.delta.logStore.s3.impl": CLASS}),
        ({"spark.delta.logStore.class": "theirs"}, {}),
    ],
)
def test_a_log_store_of_the_user_stays(given: dict[str, str], expected: dict[str, str]):
    assert log_store_options(given) == expected
