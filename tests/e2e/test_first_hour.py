"""From a table to a configuration to a plan, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sparking import EMBEDDING, Workspace, clean_environment, corpus


def wordveil(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wordveil", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=clean_environment())


def test_a_table_becomes_a_configuration_that_plans(workspace: Workspace):
    workspace.write_corpus(corpus(50))
    here = workspace.root
    done = wordveil("init", "--from", "corpus", "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    guessed = json.loads(done.stdout)
    assert (guessed["id"], guessed["text"], guessed["keep"], guessed["not_kept"]) == ("id", "body", [], ["day", "note"])
    file = here / "job.yaml"
    written = file.read_text("utf-8")
    again = wordveil("init", "--from", "corpus", cwd=here)
    assert again.returncode == 6
    assert "job.yaml" in again.stderr
    assert file.read_text("utf-8") == written

    unfilled = json.loads(wordveil("plan", "--config", file, "--json", cwd=here).stdout)
    assert [fault["where"] for fault in unfilled["faults"]] == guessed["to_fill"]
    values = ["mechanism.epsilon=4.0", "mechanism.public=true", "mechanism.embedding=embedding", "key.file=none.key"]
    filled = [part for value in values for part in ("--set", value)]
    assert wordveil("plan", "--config", file, *filled, "--sample", 10, cwd=here).returncode == 4  # no bundle yet
    assert wordveil("build", "--config", file, *filled, cwd=here).returncode == 0
    done = wordveil("plan", "--config", file, *filled, "--sample", 20, "--words", EMBEDDING.words[3].as_py(), "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert (plan["sample"]["records"], plan["sample"]["table_rows"], plan["tokens"]) == (20, 50, 256)
    assert [word["epsilon"] for word in plan["words"]] == [2.0, 4.0, 8.0]
    assert wordveil("plan", "--config", file, *filled, "--words", "zorblax", cwd=here).returncode == 2


def test_a_table_that_is_not_there_is_named(workspace: Workspace):
    done = wordveil("init", "--from", "none", cwd=workspace.root)
    assert done.returncode == 4
    assert "--from = none" in done.stderr
    assert not (workspace.root / "job.yaml").exists()


def test_a_sentence_is_compared_without_key_or_bundle(workspace: Workspace):
    workspace.write_corpus(corpus(5))
    mechanism = {"name": "exponential", "epsilon": 4.0, "gamma": 2.0, "neighbours": 5}
    file = workspace.root / "job.yaml"
    settings = workspace.settings(mechanism=mechanism)
    settings["key"] = {"env": "NO_SUCH_KEY"}
    file.write_text(json.dumps(settings))
    sentence = " ".join(EMBEDDING.words[:6].to_pylist())
    done = wordveil("plan", "--config", file, "--text", sentence, "--compare", "--json", cwd=workspace.root)
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)["comparison"]
    assert comparison["configured"]["mechanism"] == "exponential, gamma 2, neighbours 5"
    assert {line["mechanism"].split(",")[0] for line in comparison["equal_pure"]} == {"exponential", "laplace", "syntf", "random"}
    assert all(len(line["text"].split()) == 6 for line in comparison["equal_kept"])
    for arguments in (["--text", sentence], ["--compare"]):
        refused = wordveil("plan", "--config", file, *arguments, "--json", cwd=workspace.root)
        assert refused.returncode == 2
        assert json.loads(refused.stdout)["faults"][0]["where"] == arguments[0]
