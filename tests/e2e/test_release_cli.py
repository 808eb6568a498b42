"""The commands of a release as a user types them, from the first run until a withdrawn record is gone from the disk."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from releasing import Lake, corpus_with_authors
from sparking import KEY, Command, Workspace, clean_environment, delta_jars
from wordveil.crypto.keys import encode_public_key, load_key


def run_process(*arguments: object) -> tuple[int, str, str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "wordveil", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Lake:
    """A release that has not run, over 12 records of 4 authors."""
    found = Lake(spark, workspace)
    found.write(corpus_with_authors(12))
    return found


def write_config(lake: Lake, **sections: Any) -> Path:
    """The release's configuration as a file."""
    base = {
        "release": "support",
        "input": {"path": str(lake.input), "format": "delta", "author": "author"},
        "output": {"path": str(lake.home), "format": "delta"},
        "ledger": {"path": str(lake.ledger)},
        "spark": {"delta_jars": str(delta_jars())},
    }
    for name, value in sections.items():
        base[name] = {**base.get(name, {}), **value}
    return lake.workspace.write_config("release.yaml", **base)


def read_all_files(path: Path) -> str:
    """All that a directory's files hold, as text: Parquet by its values and its footer, others by their bytes."""
    found = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            found.append(file.read_bytes().decode("latin-1"))
            if file.suffix == ".parquet":
                found.append(str(pq.read_table(file, partitioning=None).to_pylist()))
    return "\n".join(found)


def test_a_release_from_its_first_run_until_a_withdrawn_record_is_gone(lake: Lake, run: Command):
    config = write_config(lake, gate={"min_records": 100, "quarantine_rate": 0.5})

    code, out, _ = run("sanitise", "--config", config, "--run-id", "night-1")
    assert code == 0
    for words in ("all: no record of this input was known yet", "withdrawn", "input version", "night-1", "12"):
        assert words in out
    code, out, _ = run("sanitise", "--config", config)
    assert code == 0
    assert "none: the input has not changed; nothing was read" in out
    text = lake.newest()["r00003"]["text"]
    assert text in read_all_files(lake.home)

    page = lake.root / "gate.html"
    code, out, err = run("release", "gate", "--config", config, "--json", "--html", page)
    assert code == 3
    gated = json.loads(out)
    shown = page.read_text("utf-8")
    for value in ("did not pass", "night-1", gated["rules"], *gated["fingerprints"].values()):
        assert value in shown
    assert set(gated["fingerprints"]) == {"mechanism_fingerprint", "policy_fingerprint", "key_fingerprint"}
    assert [(one["run_id"], one["state"]) for one in gated["runs"]] == [("night-1", "finished")], (
        "the other had no work"
    )
    assert not gated["passed"]
    assert [(one["name"], one["passed"]) for one in gated["results"]] == [
        ("min_records", False),
        ("quarantine_rate", True),
    ]
    assert "did not pass: min_records" in err
    code, out, err = run("release", "publish", "--config", config)
    assert (code, out) == (9, "")
    assert "did not pass the gate" in err

    config = write_config(lake, gate={"min_records": 5, "quarantine_rate": 0.5})
    code, out, _ = run("release", "gate", "-c", config)
    assert code == 0
    for words in ("min_records", "output-only", "quarantine_rate", "private", "yes"):
        assert words in out
    code, out, _ = run("release", "publish", "-c", config, "--json")
    assert code == 0
    published = json.loads(out)
    assert published["manifest"]["gate"][1] == {"name": "quarantine_rate", "kind": "private", "bound": "0.5"}
    planned = json.loads(run("plan", "--config", config, "--json")[1])["recovery"]
    assert published["manifest"]["recovery"]["uniform"]["before"] == repr(planned["uniform"]["before"])

    key = encode_public_key(load_key(str(lake.root / "key"), None).signing_key("support"))
    assert published["public_key"] == key
    code, out, err = run_process(
        "release", "verify", "--table", lake.public, "--public-key", key, "--delta-jars", delta_jars(), "--json"
    )
    assert code == 0, err
    assert json.loads(out)["pinned"] is True
    assert json.loads(out)["recovery"] == planned
    code, out, err = run("release", "verify", "--table", lake.public)
    assert code == 0
    assert "Verified" in out
    assert "words recovered" in out
    assert "no public key was pinned" in err
    file = next(lake.public.glob("**/*.parquet"))
    sound = file.read_bytes()
    file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    code, _, err = run("release", "verify", "--table", lake.public)
    assert code == 9
    assert f"changed: {file.relative_to(lake.public)}" in err
    file.unlink()
    code, _, err = run("release", "verify", "--table", lake.public)
    assert code == 9
    assert f"missing: {file.relative_to(lake.public)}" in err
    file.write_bytes(sound)

    code, _, err = run("release", "withdraw", "-c", config, "--id", "r00003", "--id", "nobody")
    assert code == 9
    assert "1 of the ids" in err
    wanted = lake.root / "ids"
    wanted.write_text("r00003\n\n")
    code, out, err = run("release", "withdraw", "-c", config, "--ids", wanted, "--run-id", "gone-1")
    assert code == 0
    assert "withdraw: records were withdrawn as asked" in out
    assert "release purge" in err
    code, out, _ = run("release", "show", "-c", config)
    assert "still exists: 1 records in the draws, 1 in the public table" in " ".join(out.replace("│", " ").split())
    assert json.loads(run("release", "purge", "-c", config, "--json")[1]) == {"release": "support", "rows": 1}
    assert run("release", "gate", "-c", config)[0] == 0
    assert run("release", "publish", "-c", config)[0] == 0
    shown = json.loads(run("release", "show", "-c", config, "--json")[1])
    assert not shown["withdrawn"]["gone"]
    assert text in read_all_files(lake.home)
    code, out, _ = run("release", "compact", "-c", config, "--retain-hours", 0)
    assert code == 0
    assert "public table" in out
    shown = json.loads(run("release", "show", "-c", config, "--json")[1])
    assert shown["withdrawn"] == {
        "records": 1,
        "in_draws": 0,
        "in_public_table": 0,
        "files_of_old_versions": {"draws": 0, "public table": 0},
        "gone": True,
    }
    assert [(one["run_id"], one["kind"], one["state"]) for one in shown["runs"]] == [
        ("night-1", "sanitise", "finished"),
        ("gone-1", "withdraw", "finished"),
    ]
    assert text not in read_all_files(lake.home)
    assert run("release", "verify", "--table", lake.public, "--public-key", key)[0] == 0

    code, out, err = run("key", "destroy", "-c", config)
    assert code == 2
    assert "Add --yes" in err
    code, out, _ = run("key", "destroy", "-c", config, "--yes", "--json")
    assert code == 0
    assert json.loads(out)["frozen"] == json.loads(run("release", "show", "-c", config, "--json")[1])["frozen"]
    assert KEY not in (lake.root / "key").read_text()
    assert run("sanitise", "-c", config)[0] == 5
    code, _, err = run("release", "gate", "-c", config)
    assert code == 9
    assert "has been frozen since" in err
    lake.workspace.write_key("key", KEY)
    code, _, err = run("release", "publish", "-c", config)
    assert code == 9
    assert "has been frozen since" in err
    assert run("release", "verify", "--table", lake.public, "--public-key", key)[0] == 0


def test_a_night_by_one_command(lake: Lake, run: Command):
    """As a user types it, in words and in JSON; the state is then told without Java, in a process of its own."""
    config = write_config(lake, gate={"min_records": 5})
    code, out, err = run("release", "night", "-c", config, "--run-id", "night-1")
    assert code == 0, err
    for words in ("all: no record of this input was known yet", "night-1", "min_records", "Published support"):
        assert words in out
    code, out, _ = run("release", "night", "-c", config, "--run-id", "night-1", "--json")
    assert code == 0
    again = json.loads(out)
    assert (again["sanitise"]["run_id"], again["gate"]["passed"]) == ("night-1", True)
    assert again["publish"]["manifest"]["run_ids"] == ["night-1"]
    assert sum(lake.spent().values()) == 12 * 24, "it was charged once"
    command = [sys.executable, "-m", "wordveil", "release", "show", "-c", str(config), "--json"]
    without_java = {**clean_environment(), "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=without_java)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown == json.loads(run("release", "show", "-c", config, "--json")[1])
    assert (shown["records"], shown["open_runs"]) == ({"released": 12}, [])


def test_the_ledger_as_table_json_and_csv(lake: Lake, run: Command):
    config = write_config(
        lake, budgets={"unit": "pure", "relation": "any_text", "author": 1e6, "corpus": 2e6, "delta": 1e-6}
    )
    assert run("sanitise", "-c", config)[0] == 0
    code, out, _ = run("ledger", "-c", config)
    assert code == 0
    for words in ("support", "any_text", "corpus", "left"):
        assert words in out
    authors = json.loads(run("ledger", "-c", config, "--by", "author", "--json")[1])
    assert [one["author"] for one in authors] == ["a0", "a1", "a2", "a3"]
    assert all(one["contexts"] == 3 and one["left"] == 1e6 - one["spent"] for one in authors)
    assert {(one["unit"], one["for"], one["unbounded"]) for one in authors} == {("pure", "any_text", False)}
    code, out, _ = run("ledger", "--ledger", lake.ledger, "--rows", "--csv", "--author", "a1")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["record_id"] for row in rows] == ["r00001", "r00005", "r00009"]
    assert {(row["state"], row["tokens"]) for row in rows} == {("spent", "24")}
    code, out, err = run("ledger", "-c", config, "--by", "record", "--limit", "2")
    assert "the first 2 rows" in err
    assert run("ledger", "-c", config, "--ledger", lake.ledger)[0] == 2
    assert run("ledger", "--ledger", lake.root / "nothing")[0] == 9


def test_commands_refuse_what_they_cannot_do(lake: Lake, run: Command):
    config = write_config(lake)
    code, _, err = run("sanitise", "-c", config, "--overwrite")
    assert code == 2
    assert "never overwritten" in err
    plain = lake.workspace.write_config("plain.yaml")
    assert run("sanitise", "-c", plain, "--full-snapshot")[0] == 2
    assert run("release", "gate", "-c", plain)[0] == 2
    assert run("release", "withdraw", "-c", config)[0] == 2
    assert run("release", "withdraw", "-c", config, "--ids", lake.root / "none")[0] == 2
    for command in (
        ("gate",),
        ("publish",),
        ("purge",),
        ("compact",),
        ("withdraw", "--id", "r00001"),
        ("abandon", "night-1"),
    ):
        assert run("release", *command, "-c", config)[0] == 9, command
    assert json.loads(run("release", "show", "-c", config, "--json")[1])["runs"] == []
