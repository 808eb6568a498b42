"""From a table to a configuration to a plan, as a user types it."""

from __future__ import annotations

import json

import pytest

from support.workspaces import EMBEDDING, Command, Workspace, corpus

# The embedding is small.
FILLED = (
    *("mechanism.epsilon=4.0", "mechanism.public=true", "mechanism.embedding=embedding", "key.file=none.key"),
    *("mechanism.clusters=[8]", "mechanism.least=2", "mechanism.classes=null", "mechanism.merge=null"),
)


def test_a_table_becomes_a_configuration_that_plans(
    spark, workspace: Workspace, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(workspace.root)
    table = workspace.write_corpus(corpus(50))
    code, out, err = run("init", "--from", table, "--json")
    assert code == 0, err
    guessed = json.loads(out)
    assert (guessed["id"], guessed["text"], guessed["keep"], guessed["not_kept"]) == ("id", "body", [], ["day", "note"])
    file = workspace.root / "job.yaml"
    written = file.read_text("utf-8")
    code, _, err = run("init", "--from", table)
    assert code == 6
    assert "job.yaml" in err
    assert file.read_text("utf-8") == written

    unfilled = json.loads(run("plan", "--config", file, "--json")[1])
    assert [fault["where"] for fault in unfilled["faults"]] == guessed["to_fill"]
    values = [*FILLED]
    filled = [part for value in values for part in ("--set", value)]
    assert run("plan", "--config", file, *filled, "--sample", 10)[0] == 4  # no bundle yet
    assert run("build", "--config", file, *filled)[0] == 0
    code, out, err = run(
        "plan", "--config", file, *filled, "--sample", 20, "--words", EMBEDDING.words[3].as_py(), "--json"
    )
    assert code == 0, err
    plan = json.loads(out)
    assert (plan["sample"]["records"], plan["sample"]["table_rows"], plan["tokens"]) == (20, 50, None)
    assert [word["epsilon"] for word in plan["words"]] == [2.0, 4.0, 8.0]
    assert [line["words"] for line in plan["output_words"]] == [0, 10, 100]
    code, out, err = run("plan", "--config", file, *filled, "--words", "zorblax", "--json")
    assert code == 0, err
    assert [(word["word"], word["rule"]) for word in json.loads(out)["unknown_words"]] == [("zorblax", "mask")]


def test_release_made_from_delta_table_is_planned(
    spark, workspace: Workspace, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(workspace.root)
    table = workspace.root / "tickets"
    spark.createDataFrame(corpus(20)).withColumnRenamed("day", "ds").write.format("delta").partitionBy("ds").save(
        str(table)
    )
    code, _, err = run("init", "--from", table)
    assert code == 0
    assert "--release drafts a release" in err
    code, out, err = run("init", "--from", table, "--release", "--output", "release.yaml", "--json")
    assert code == 0, err
    guessed = json.loads(out)
    assert (guessed["release"], guessed["slice_candidates"], guessed["keep"]) == (True, ["ds"], ["ds"])
    unfilled = json.loads(run("plan", "--config", "release.yaml", "--json")[1])
    assert {fault["where"] for fault in unfilled["faults"]} == {*guessed["to_fill"]}

    values = [*FILLED]
    values += ["budgets.record=2000.0", "input.where=ds = :ds"]
    filled = [part for value in values for part in ("--set", value)]
    assert run("build", "--config", "release.yaml", *filled)[0] == 0
    day = corpus(20)["day"][0].as_py()
    code, out, err = run("plan", "--config", "release.yaml", *filled, "--json", "--param", f"ds={day}")
    assert code == 0, err
    assert json.loads(out)["output_format"] == "delta"

    workspace.write_corpus(corpus(3), name="plain")
    code, _, err = run("init", "--from", "plain", "--release", "--output", "other.yaml")
    assert code == 4
    assert f"--from = {workspace.root / 'plain'}: is a Parquet table, and a release reads a Delta table" in err
    assert not (workspace.root / "other.yaml").exists()
