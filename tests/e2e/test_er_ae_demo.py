"""The demo of er-ae: its configurations, its pieces over a generator that needs no training, and the whole of it."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from support.repository import ROOT, load_script
from support.workspaces import clean_environment
from wordveil.config.generators import load_generator_config
from wordveil.config.load import load_config


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """examples/er_ae_demo.py as a module, in a directory of its own."""
    module = load_script("examples/er_ae_demo.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "console", Console(width=120))
    return module


def test_the_configurations_fit_each_other_and_the_script(demo: ModuleType):
    training = load_generator_config(ROOT / demo.TRAINING)
    job = load_config(ROOT / demo.CONFIG)
    assert Path(training.output).resolve() == Path(job.mechanism.model).resolve() == ROOT / demo.HOME / "generator.npz"
    assert Path(training.embedding).resolve() == Path(job.mechanism.embedding).resolve()
    assert training.corpus == "public"
    assert training.schedule.minutes < 15
    assert job.text.n_max == demo.N_MAX
    assert demo.N_MAX % training.shape.length == 0


def run_demo(directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "er_ae_demo.py")],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**clean_environment(), "COLUMNS": "160"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_demo_trained_briefly_shows_what_it_promises(tmp_path: Path):
    pytest.importorskip("jax", reason="the extra er-ae is not installed: pip install 'wordveil[er-ae]'")
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    (tmp_path / "lib").symlink_to(ROOT / "lib")
    file = tmp_path / "conf" / "generators" / "demo.yaml"
    brief = file.read_text("utf-8").replace("minutes: 14 ", "steps: 60 ")
    assert "steps: 60" in brief
    file.write_text(brief.replace("reconstruction_epochs: 1", "reconstruction_epochs: 0"))
    shown = run_demo(tmp_path)
    for words in ("generator alone", "two-set, epsilon 20", "per token", "generator.svg"):
        assert words in shown
    assert (tmp_path / "er-ae-demo" / "generator.svg").exists()
    rows = pq.read_table(tmp_path / "er-ae-demo" / "sanitised" / "softmax-rr-6").to_pylist()
    assert len(rows) == 300
    assert {row["status"] for row in rows} == {"released"}
    assert rows[0]["privacy"]["epsilon_pure"] == pytest.approx(20 * (3 + math.log(8001)), rel=1e-3)
    assert "is there already" in run_demo(tmp_path)
