"""`wordveil init --airflow`, which writes the DAGs and jobs that the package carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.repository import ROOT
from support.workspaces import Command
from wordveil.cli.init import JOBS, write_dags
from wordveil.errors import ConfigError, OutputExistsError

DAGS = {path.name for path in (ROOT / "airflow_dags").glob("*.py")}
APPLICATIONS = {path.name for path in (ROOT / "jobs").glob("*.py")}


def test_dags_are_written_with_their_jobs_and_overwrite_nothing(tmp_path: Path):
    folder = tmp_path / "dags"
    written = write_dags(folder)
    assert {path.name for path in folder.glob("*.py")} == DAGS
    assert {"sanitise_nightly.py", "analytics_on_release.py", "wordveil_airflow.py"} == DAGS
    assert {path.name for path in (folder / JOBS).glob("*.py")} == APPLICATIONS
    assert sorted(written) == sorted(folder.rglob("*.py"))
    for path in folder.glob("*.py"):
        assert path.read_text("utf-8") == (ROOT / "airflow_dags" / path.name).read_text("utf-8")
    mine = folder / "sanitise_nightly.py"
    mine.write_text("mine")
    (folder / "analytics_on_release.py").unlink()
    with pytest.raises(OutputExistsError, match=r"already contains .*sanitise_nightly\.py.*; nothing was written"):
        write_dags(folder)
    assert mine.read_text() == "mine"
    assert not (folder / "analytics_on_release.py").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--airflow = .*file/dags: cannot be written"):
        write_dags(tmp_path / "file" / "dags")


def test_init_writes_a_configuration_or_dags_and_not_both(tmp_path: Path, run: Command):
    for arguments in ((), ("--from", "table", "--airflow", tmp_path)):
        code, _, err = run("init", *arguments)
        assert (code, "--airflow DIR" in err) == (2, True)
    code, out, _ = run("init", "--airflow", tmp_path / "dags")
    assert (code, "sanitise_nightly.py" in out) == (0, True)
