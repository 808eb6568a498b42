"""Every command with ``--json`` prints JSON alone on standard output, whatever Java and its libraries print."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from typer.core import TyperGroup

from releasing import corpus_with_authors
from sparking import SMALL, Workspace, clean_environment, delta_jars
from wordveil.cli import key
from wordveil.cli.app import app

# All in one process, whose Java process inherits what it inherits of any command. The input is written there too.
SCRIPT = """
import json, sys
from pathlib import Path
from wordveil.cli.app import main
from wordveil.config.load import load_config
from wordveil.spark.platform.session import build_session
config, source, calls = json.load(sys.stdin)
settings = load_config(Path(config))
spark = build_session(settings.spark, delta=True)
spark.read.parquet(source).write.format("delta").save(settings.input.path)
for arguments in calls:
    try:
        main([*arguments, "--json"])
    except SystemExit as left:
        print("\\nEND", left.code, flush=True)
"""


def commands_with_json(group: TyperGroup, *path: str) -> Iterator[str]:
    """The names of all commands that have the option, groups' names before them."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands_with_json(command, *path, name)
        elif any("--json" in parameter.opts for parameter in command.params):
            yield " ".join([*path, name])


@pytest.fixture
def config(workspace: Workspace) -> Path:
    """The configuration of a release, whose input is not there yet."""
    return workspace.write_config(
        release="support",
        input={"path": str(workspace.root / "input"), "format": "delta", "author": "author"},
        output={"path": str(workspace.root / "release"), "format": "delta"},
        ledger={"path": str(workspace.root / "ledger")},
        spark={"delta_jars": str(delta_jars()), "options": SMALL},
    )


def generator_config(root: Path) -> Path:
    """The configuration of a generator that one step trains."""
    pq.write_table(pa.table({"text": ["The old house was quiet."] * 8}), root / "texts.parquet")
    sizes = {"length": 2, "cells": 2, "latent": 1, "encoder_layers": 1, "generator_layers": 1}
    generator = {
        "output": "weights.npz",
        "embedding": "demo",
        "public": True,
        "corpus": "public",
        "texts": {"path": "texts.parquet", "validation": 0.0},
        "text": {"types": "none"},
        "shape": sizes,
        "reward": {"reward": 0.0},
        "training": {"steps": 1},
    }
    file = root / "generator.yaml"
    file.write_text(json.dumps({"format_version": 1, "generator": generator}), "utf-8")
    return file


@pytest.fixture
def steps(workspace: Workspace, config: Path) -> dict[str, tuple[list[str], int]]:
    """Arguments and exit code of a call of each command, in an order in which they work."""
    root = workspace.root
    table, public = str(root / "input"), str(root / "release" / "public")
    file, chosen = str(root / "other"), ["--config", str(config)]
    ngrams = ["--input", table, "--text", "body", "--output", str(root / "ngrams"), "--public"]
    deterministic = ["--metric", "operator:ne", "--words", "keyword:kwlist", "--epsilon", "1", "--draws", "100"]
    return {
        "docs": ([], 0),
        "key new": ([file], 0),
        "key fingerprint": (["--file", file], 0),
        "key rotate": ([file], 0),
        "init": (["--from", table, "--output", str(root / "drafted.yaml")], 0),
        "build": (chosen, 0),
        "calibrate": ([*chosen, "--epsilon", "4", "--words", "20", "--runs", "20"], 0),
        "audit bundle": ([*chosen, "--draws", "100"], 0),
        "audit release": ([*chosen, "--copies", "48"], 0),
        "audit callable": (["string:capwords", *deterministic], 3),
        "plan": ([*chosen, "--sample", "5"], 0),
        "ngrams": ([*ngrams, "--min-count", "1"], 0),
        "train": (["--config", str(generator_config(root))], 0 if importlib.util.find_spec("jax") else 7),
        "sanitise": (chosen, 0),
        "release gate": (chosen, 0),
        "release publish": (chosen, 0),
        "evaluate": (chosen, 0),
        "release night": (chosen, 0),
        "release verify": (["--table", public], 0),
        "analytics": (["--table", public, "--output", str(root / "terms"), "--topics", "2"], 0),
        "release withdraw": ([*chosen, "--id", "r00003"], 0),
        "release show": (chosen, 0),
        "release purge": (chosen, 0),
        "release compact": ([*chosen, "--retain-hours", "0"], 0),
        "ledger": (chosen, 0),
        "release abandon": (["nobody", *chosen], 9),
        "release reset": ([*chosen, "--yes"], 9),
        "key destroy": ([*chosen, "--yes"], 0),
    }


def test_standard_output_is_one_document(workspace: Workspace, config: Path, steps: dict[str, tuple[list[str], int]]):
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(commands_with_json(group)) == set(steps)
    source = workspace.write_corpus(corpus_with_authors(12))
    calls = [[*name.split(), *arguments] for name, (arguments, _) in steps.items()]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps([str(config), str(source), calls]),
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr[-6000:]
    rest = done.stdout
    for name, (_, expected) in steps.items():
        printed, _, rest = rest.partition("\nEND ")
        code, _, rest = rest.partition("\n")
        assert int(code) == expected, (name, printed, done.stderr[-6000:])
        json.loads(printed)
    assert rest == ""


def test_commands_are_found_by_their_option():
    new = typer.Typer()
    new.command("plain")(lambda: None)
    new.command("other")(key.fingerprint)
    outer = typer.Typer()
    outer.add_typer(new, name="group")
    outer.command("top")(lambda: None)
    group = typer.main.get_command(outer)
    assert isinstance(group, TyperGroup)
    assert list(commands_with_json(group)) == ["group other"]
