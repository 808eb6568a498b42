"""A mechanism of an installed package goes the whole way: configuration, bundle, plan, job, audit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.plugins import environment_with, install_plugin
from support.workspaces import Workspace, clean_environment, corpus, read_output
from wordveil.artifacts.bundle import find_one, open_bundle
from wordveil.errors import BundleError

# Commands of one process, so that Python and Java start once: each is a line of arguments.
_COMMANDS = """
import json, sys
from wordveil.cli.app import main
for line in sys.stdin.read().splitlines():
    try:
        main(json.loads(line))
    except SystemExit as left:
        print(json.dumps({"code": left.code}), flush=True)
"""

pytestmark = [pytest.mark.spark, pytest.mark.long]


def call(site: Path, *commands: list[object]) -> list[dict[str, Any]]:
    """What the commands print and how each ends, in a process where the package is installed."""
    lines = "\n".join(json.dumps([*map(str, command), "--json"]) for command in commands)
    environment = {**clean_environment(), **environment_with(site), "PYSPARK_PYTHON": sys.executable}
    environment["SPARK_SUBMIT_OPTS"] = clean_environment()["SPARK_SUBMIT_OPTS"]
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS], input=lines, env=environment, capture_output=True, text=True, check=True
    )
    found, decoder, rest = [], json.JSONDecoder(), done.stdout.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        found.append(document)
        rest = rest[end:].strip()
    return found


def test_a_mechanism_of_an_installed_package_and_its_broken_twin(tmp_path: Path):
    site, workspace = install_plugin(tmp_path), Workspace(tmp_path)
    workspace.write_corpus(corpus(40), files=2)
    sound = workspace.write_config(mechanism={"name": "randomised-response", "epsilon": 5.0})
    elsewhere = {"bundle_store": str(tmp_path / "others")}
    broken = workspace.write_config("broken.yaml", mechanism={"name": "too-little-noise", "epsilon": 5.0}, **elsewhere)
    few = ["--draws", 2000]
    found = call(
        site,
        ["build", "-c", sound],
        ["plan", "-c", sound],
        ["sanitise", "-c", sound],
        ["audit", "bundle", "-c", sound, *few],
        ["build", "-c", broken],
        ["audit", "bundle", "-c", broken, *few],
    )
    codes = [document["code"] for document in found if set(document) == {"code"}]
    assert codes == [0, 0, 0, 0, 0, 3], found
    audits = [document["findings"] for document in found if "findings" in document]
    verdicts = [{finding["test"]: finding["verdict"] for finding in findings} for findings in audits]
    assert "refuted" not in verdicts[0].values()
    assert verdicts[0]["supremum"] == "holds"
    assert {test for test, verdict in verdicts[1].items() if verdict == "refuted"} >= {"supremum", "plumbing"}
    rows = read_output(workspace.root / "output")
    assert {row["privacy"]["mechanism"] for row in rows} == {"randomised-response"}
    assert len(rows) == 40
    # Here the package is not installed.
    with pytest.raises(BundleError, match=r"Install wordveil-toys 1\.0 here and on every executor"):
        open_bundle(find_one(workspace.root / "bundles"))
