"""What a wheel carries beside its modules, and `wordveil init --airflow`, which writes the DAGs and jobs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from wordveil.cli.app import main
from wordveil.cli.scaffold import JOBS, write_dags
from wordveil.errors import ConfigError, OutputExistsError

ROOT = Path(__file__).parents[3]
DAGS = {path.name for path in (ROOT / "airflow_dags").glob("*.py")}
APPLICATIONS = {path.name for path in (ROOT / "jobs").glob("*.py")}
PAGES = {
    path.relative_to(ROOT).as_posix()
    for path in (*(ROOT / "docs").rglob("*.md"), *(ROOT / "conf").rglob("*"))
    if path.is_file()
}


def test_the_dags_are_written_with_their_jobs_and_nothing_is_overwritten(tmp_path: Path):
    folder = tmp_path / "dags"
    written = write_dags(folder)
    assert {path.name for path in folder.glob("*.py")} == DAGS
    assert {
        "sanitise_nightly.py",
        "analytics_on_release.py",
        "wordveil_airflow.py",
    } == DAGS
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


def test_init_writes_a_configuration_or_dags_and_not_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for arguments in (["init"], ["init", "--from", "table", "--airflow", str(tmp_path)]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert "--airflow DIR" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["init", "--airflow", str(tmp_path / "dags")])
    assert left.value.code == 0
    assert "sanitise_nightly.py" in capsys.readouterr().out


def test_a_wheel_carries_what_users_copy_and_read(tmp_path: Path):
    source = tmp_path / "source"
    kept = shutil.ignore_patterns("__pycache__", "*.egg-info", "demo_embedding", "poincare_embedding", "hypernyms")
    shutil.copytree(ROOT / "lib", source / "lib", symlinks=True, ignore=kept)
    for folder in ("airflow_dags", "jobs", "docs", "conf"):
        shutil.copytree(ROOT / folder, source / folder, ignore=kept)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    code = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=source, check=True, capture_output=True)
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    assert {f"wordveil/data/airflow_dags/{name}" for name in DAGS} <= names
    assert {f"wordveil/data/jobs/{name}" for name in APPLICATIONS} <= names
    assert {f"wordveil/data/{page}" for page in PAGES} <= names
    assert {f"wordveil/data/sentences/{name}" for name in ("wordnet.parquet", "LICENSE.wordnet-3.0")} <= names
    assert not any("pictures" in name for name in names), "a megabyte that no terminal shows"
