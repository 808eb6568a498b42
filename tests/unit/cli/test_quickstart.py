"""The files of `wordveil quickstart` and `wordveil init`: whose are replaced, and what the suggested commands find."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from support.repository import ROOT
from support.workspaces import Command
from wordveil.cli import quickstart
from wordveil.cli.init import JOBS, write_dags
from wordveil.cli.quickstart import HOME, JOB, KEY, MARK, PAGE, STRICT, prepare_home, suggest_commands
from wordveil.config.load import load_config
from wordveil.errors import ConfigError, OutputExistsError

TEMPLATE = (ROOT / "conf" / "quickstart.yaml").read_text("utf-8")
WHOLE_JOB = "passages.yaml"


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["job and key", "file", "link"])
def test_what_others_made_is_refused_and_stays(kind: str, tmp_path: Path):
    """A user may have drafted a job and made a key there, under the same names."""
    if kind == "file":
        HOME.write_text("mine")
    elif kind == "link":
        HOME.symlink_to("nowhere")
    else:
        HOME.mkdir()
        for name in (JOB, KEY):
            (HOME / name).write_text("mine")
    with pytest.raises(OutputExistsError, match="quickstart exists already, and `wordveil quickstart` did not make it"):
        prepare_home()
    assert [path.name for path in tmp_path.iterdir()] == ["quickstart"]
    if kind == "job and key":
        assert {path.name: path.read_text() for path in HOME.iterdir()} == {JOB: "mine", KEY: "mine"}


def test_what_an_earlier_quickstart_made_is_replaced(capsys: pytest.CaptureFixture[str]):
    """But for its bundle, an edited job, and what it did not make."""
    prepare_home()
    first = (HOME / KEY).read_text()
    assert (HOME / KEY).stat().st_mode & 0o077 == 0
    (HOME / JOB).write_text(f"{TEMPLATE}# edited")
    (HOME / "mine").write_text("mine")
    (HOME / PAGE).touch()
    for name in ("bundles", "passages", "sanitised", STRICT):
        (HOME / name).mkdir()
        (HOME / name / "old").touch()
    prepare_home()
    jobs = {JOB, f"{JOB}.bak", WHOLE_JOB}
    assert {path.name for path in HOME.iterdir()} == {MARK, *jobs, KEY, "corpus", "bundles", "mine"}
    assert (HOME / "bundles" / "old").exists()
    assert (HOME / JOB).read_text() == TEMPLATE
    assert (HOME / f"{JOB}.bak").read_text() == f"{TEMPLATE}# edited"
    assert "quickstart/job.yaml was edited" in capsys.readouterr().err
    assert (HOME / KEY).read_text() != first
    prepare_home()
    assert "was edited" not in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch):
    Path("file").touch()
    monkeypatch.setattr(quickstart, "HOME", Path("file/quickstart"))
    with pytest.raises(ConfigError, match="file/quickstart: cannot be written"):
        prepare_home()


def test_the_suggested_commands_stay_in_the_directory(tmp_path: Path):
    prepare_home()
    plain, strict, *_ = (shlex.split(line, comments=True) for line in suggest_commands())
    assert "--overwrite" in plain
    overrides = [word for option, word in pairwise(strict) if option == "--set"]
    config = load_config(Path(strict[strict.index("--config") + 1]), overrides)
    assert config.output.path == str(tmp_path / HOME / STRICT)
    assert config.input.path == str(tmp_path / HOME / "corpus")
    assert (config.text.profile, config.text.n_max) == ("strict", 64)


def test_both_ways_read_the_same_articles_with_one_key():
    prepare_home()
    words, whole = (load_config(HOME / job) for job in (JOB, WHOLE_JOB))
    assert (words.input, words.key, words.bundle_store) == (whole.input, whole.key, whole.bundle_store)
    assert words.output.path != whole.output.path
    assert (whole.mechanism.name, whole.mechanism.nominal_epsilon) == ("passages", 6)


DAGS = {path.name for path in (ROOT / "airflow_dags").glob("*.py")}
APPLICATIONS = {path.name for path in (ROOT / "jobs").glob("*.py")}


def test_dags_are_written_with_their_jobs_and_overwrite_nothing(tmp_path: Path):
    folder = tmp_path / "dags"
    written = write_dags(folder)
    assert {path.name for path in folder.glob("*.py")} == DAGS
    assert {"wordveil_dags.py", "wordveil_faults.py", "wordveil_airflow.py"} == DAGS
    assert {path.name for path in (folder / JOBS).glob("*.py")} == APPLICATIONS
    assert sorted(written) == sorted(folder.rglob("*.py"))
    for path in folder.glob("*.py"):
        assert path.read_text("utf-8") == (ROOT / "airflow_dags" / path.name).read_text("utf-8")
    mine = folder / "wordveil_dags.py"
    mine.write_text("mine")
    (folder / "wordveil_faults.py").unlink()
    with pytest.raises(OutputExistsError, match=r"already contains .*wordveil_dags\.py.*; nothing was written"):
        write_dags(folder)
    assert mine.read_text() == "mine"
    assert not (folder / "wordveil_faults.py").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--airflow = .*file/dags: cannot be written"):
        write_dags(tmp_path / "file" / "dags")


def test_init_writes_a_configuration_or_dags_and_not_both(tmp_path: Path, run: Command):
    for arguments in ((), ("--from", "table", "--airflow", tmp_path)):
        code, _, err = run("init", *arguments)
        assert (code, "--airflow DIR" in err) == (2, True)
    code, out, _ = run("init", "--airflow", tmp_path / "dags")
    assert (code, "wordveil_dags.py" in out) == (0, True)
