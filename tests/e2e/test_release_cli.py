"""Every command as a user types it, over one release: from its first run until a withdrawn record is gone from the
disk. Its authors, a column and a directory have names that act on terminals, and commands show them as they are.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.commands import Commands, list_commands, wordveil_group
from support.hostile_texts import NAMES
from support.releases import Lake, read_delta
from support.workspaces import KEY, Workspace, clean_environment, corpus, delta_jars, write_delta
from wordveil.assembly import local_paths
from wordveil.assembly.local_state import read_local_state
from wordveil.cli import output
from wordveil.config.load import load_config
from wordveil.crypto.keys import encode_public_key, load_key

AUTHORS = ("\x1b]8;;http://evil\x07z", '=HYPERLINK("x")', "[/red]", "a\r\nwordveil: done")
DAY, SHOWN_DAY = "[conceal]\u202eday", r"[conceal]\u202eday"
HOME, SHOWN_HOME = "[batch]\x1b]8\u202ehome", r"[batch]\x1b]8\u202ehome"


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Lake:
    """A release that has not run, over 12 records of 4 authors."""
    (tmp_path / HOME).mkdir()
    found = Lake(spark, Workspace(tmp_path / HOME))
    # Without Java only plain paths are read.
    found.input, found.home, found.ledger = (tmp_path / name for name in ("input", "release", "ledger"))
    found.public = found.home / "public"
    table = corpus(12).rename_columns({"day": DAY})
    found.write(table.append_column("author", pa.array(AUTHORS * 3)))
    return found


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables go to a terminal on which no row is broken."""
    for name, value in (("_width", 400), ("_force_terminal", True)):
        monkeypatch.setattr(output.results, name, value)


def write_config(lake: Lake, **sections: Any) -> Path:
    """The release's configuration as a file."""
    base = {
        "release": "support",
        "input": {"path": str(lake.input), "format": "delta", "author": "author", "keep": [DAY]},
        "output": {"path": str(lake.home), "format": "delta"},
        "ledger": {"path": str(lake.ledger)},
        "budgets": {"unit": "pure", "relation": "any_text", "author": 1e6, "corpus": 2e6, "delta": 1e-6},
        # Others are tested by themselves.
        "evaluation": {"attackers": ["svm-words"]},
        "spark": {"delta_jars": str(delta_jars())},
    }
    return lake.workspace.write_config("release.yaml", **base, **sections)


def read_all_files(path: Path) -> str:
    """All that a directory's files hold, as text: Parquet by its values and its footer, others by their bytes."""
    found = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            found.append(file.read_bytes().decode("latin-1"))
            if file.suffix == ".parquet":
                found.append(str(pq.read_table(file, partitioning=None).to_pylist()))
    return "\n".join(found)


def run_without_java(*arguments: object) -> str:
    """Standard output of a command in a process for which there is no Java."""
    done = subprocess.run(
        [sys.executable, "-m", "wordveil", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**clean_environment(), "PATH": "/nowhere", "JAVA_HOME": "/nowhere"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_release_by_all_commands(lake: Lake, call: Commands):
    config = write_config(lake, gate={"min_records": 100, "quarantine_rate": 0.5})
    refuse_what_cannot_be_done(lake, call, config)
    prepare(lake, call, config)
    text = draw(lake, call, config)
    published = publish(lake, call, config)
    measure(lake, call, config)
    count_terms(lake, call)
    verify(lake, call, published)
    withdraw(lake, call, config, text)
    freeze(lake, call, config)
    assert call.read_as_json == set(list_commands(wordveil_group(), "--json"))


def refuse_what_cannot_be_done(lake: Lake, call: Commands, config: Path) -> None:
    """Before the first run."""
    call("evaluate", "-c", config, code=4)  # no bundle
    _, err = call("sanitise", "-c", config, "--overwrite", code=2)
    assert "never overwritten" in err
    plain = lake.workspace.write_config("plain.yaml")
    call("sanitise", "-c", plain, "--full-snapshot", code=2)
    call("release", "gate", "-c", plain, code=2)
    call("release", "withdraw", "-c", config, code=2)
    call("release", "withdraw", "-c", config, "--ids-from", lake.root / "none", code=2)
    call("release", "erase", "-c", config, "--author", "nobody", code=9)
    for command in ("gate", "publish", "purge", "compact"):
        call("release", command, "-c", config, code=9)
    call("release", "withdraw", "--id", "r00001", "-c", config, code=9)
    call("release", "reset", "--yes", "-c", config, code=9)
    call.read("release", "abandon", "night-1", "-c", config, code=9)
    assert call.read("release", "show", "-c", config)["runs"] == []
    call("ledger", "-c", config, "--ledger", lake.ledger, code=2)
    call("ledger", "--ledger", lake.root / "nothing", code=9)
    faults = call.read("plan", "-c", config, "--set", "releas=x", code=2)["faults"]
    assert [fault["where"] for fault in faults] == ["releas"]
    assert call.report()["error"]["faults"] == faults
    (lake.root / "quickstart").mkdir()
    with contextlib.chdir(lake.root):
        assert call.read("quickstart", code=6)["error"] == "OutputExistsError"  # test_cli.py has a whole one


def prepare(lake: Lake, call: Commands, config: Path) -> None:
    """What needs no draws."""
    file, chosen = lake.root / "other", ("--config", config)
    assert call.read("docs")
    made = call.read("key", "new", file)["fingerprint"]
    assert call.read("key", "fingerprint", "--file", file)["fingerprint"] == made
    assert call.read("key", "rotate", file)
    drafted = call.read("init", "--from", lake.input, "--output", lake.root / "drafted.yaml")
    assert (drafted["id"], drafted["text"]) == ("id", "body")
    assert call.read("build", *chosen)["words"] == 300
    assert call.read("calibrate", *chosen, "--epsilon", 4, "--words", 40, "--runs", 50)
    assert call.read("audit", "bundle", *chosen, "--draws", 100)
    assert call.read("audit", "release", *chosen, "--copies", 9, code=2)["faults"]  # test_release_audit.py has one
    deterministic = ("--metric", "operator:ne", "--words", "keyword:kwlist", "--epsilon", 1, "--draws", 100)
    assert call.read("audit", "callable", "string:capwords", *deterministic, code=3)
    ngrams = ("--text", "texts", "--output", lake.root / "ngrams", "--public")
    assert call.read("ngrams", "--input", lake.input, *ngrams, code=2)["faults"]  # test_ngrams.py has one
    assert call.read("train", "--config", lake.root / "none", code=2)["faults"]  # test_private_files.py has one
    out, _ = call("plan", *chosen)
    assert f"column:{SHOWN_DAY}" in out
    assert f"{SHOWN_HOME}/bundles" in call("build", *chosen)[0]


def draw(lake: Lake, call: Commands, config: Path) -> str:
    """Draw once; a second run has nothing to do. Returns a text of the draws."""
    out, _ = call("sanitise", "-c", config, "--run-id", "night-1")
    known = "all: no record of this input was known yet"
    for words in (known, "withdrawn", "input version", "night-1", "12", f"column:{SHOWN_DAY}"):
        assert words in out
    again = call.read("sanitise", "-c", config)
    assert (again["changes"], again["records"]) == ("none", 0)
    text = str(lake.newest()["r00003"]["text"])
    assert text in read_all_files(lake.home)
    return text


def publish(lake: Lake, call: Commands, config: Path) -> dict[str, Any]:
    """A gate that does not pass, and a night that finds its draws there. Returns what was published."""
    page = lake.root / "gate.html"
    gated = call.read("release", "gate", "-c", config, "--html", page, code=3)
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
    error = call.report()["error"]
    assert (error["type"], "did not pass: min_records" in error["message"]) == ("GateError", True)
    out, err = call("release", "publish", "-c", config, code=9)
    assert (out, "did not pass the gate" in err) == ("", True)

    write_config(lake, gate={"min_records": 5, "quarantine_rate": 0.5})
    night = call.read("release", "night", "-c", config, "--run-id", "night-1")
    assert (night["sanitise"]["run_id"], night["gate"]["passed"]) == ("night-1", True)
    events = lake.input.with_name("events")
    write_delta(pq.read_table(next(lake.input.glob("*.parquet"))).slice(0, 0), events)
    places = {"stream.path": events, "stream.checkpoint": lake.input.with_name("checkpoint")}
    followed = call.read("release", "stream", "-c", config, *(f"--set={name}={path}" for name, path in places.items()))
    assert followed == {"batches": 0, "last": None}
    assert sum(lake.spent().values()) == 12 * 24, "it was charged once"
    published: dict[str, Any] = night["publish"]
    manifest = published["manifest"]
    assert (published["table"], published["manifest_path"]) == (str(lake.public), f"{lake.public}/_manifest.json")
    assert manifest["run_ids"] == ["night-1"]
    assert manifest["gate"][1] == {"name": "quarantine_rate", "kind": "private", "bound": "0.5"}
    planned = call.read("plan", "--config", config)["recovery"]
    assert manifest["recovery"]["uniform"]["before"] == repr(planned["uniform"]["before"])
    key = encode_public_key(load_key(str(lake.root / "key"), None).signing_key("support"))
    assert published["public_key"] == key

    alone = json.loads(run_without_java("release", "show", "-c", config, "--json"))
    assert alone == call.read("release", "show", "-c", config)
    assert (alone["records"], alone["open_runs"]) == ({"released": 12}, [])
    return published


def measure(lake: Lake, call: Commands, config: Path) -> None:
    """What was charged, and what an attacker finds in the draws."""
    out, _ = call("ledger", "-c", config)
    for words in ("support", "any_text", "corpus", "left"):
        assert words in out
    authors = call.read("ledger", "-c", config, "--by", "author")
    assert [one["author"] for one in authors] == [*AUTHORS]
    by_author = ("ledger", "-c", config, "--by", "author")
    out, _ = call(*by_author)
    assert [name for name in AUTHORS if NAMES[name] not in out] == []
    cells = [row["author"] for row in csv.DictReader(io.StringIO(call(*by_author, "--csv")[0]))]
    assert cells == [f"'{NAMES[name]}" if name.startswith("=") else NAMES[name] for name in AUTHORS]
    assert all(one["contexts"] == 3 and one["left"] == 1e6 - one["spent"] for one in authors)
    assert {(one["unit"], one["for"], one["unbounded"]) for one in authors} == {("pure", "any_text", False)}
    spent = authors[0]["spent"]
    planned = call.read("plan", "-c", config, "--sample", 2)
    assert planned["sample"]["records"] == 2
    assert (planned["refusals"]["share"], planned["author_records"]["most"]) == (0, 3)
    assert planned["runs_left"] == {"author": (1e6 - spent) // spent, "corpus": (2e6 - spent) // spent}
    out, _ = call("ledger", "--ledger", lake.ledger, "--rows", "--csv", "--author", AUTHORS[1])
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["record_id"] for row in rows] == ["r00001", "r00005", "r00009"]
    assert {(row["state"], row["tokens"]) for row in rows} == {("spent", "24")}
    _, err = call("ledger", "-c", config, "--by", "record", "--limit", "2")
    assert "the first 2 rows" in err

    measured = lake.root / "measured"
    evaluation = call.read("evaluate", "-c", config, "--seed", 5, "--out", measured)
    assert (evaluation["facts"]["seed"], evaluation["is_private"]) == ("5", True)
    compared = call.read("evaluate", "compare", measured, measured)
    assert compared["pairs"]
    assert "better" not in {pair["change"] for pair in compared["pairs"]}


def count_terms(lake: Lake, call: Commands) -> None:
    """In a table whose terms are known."""
    texts = [
        *("The cat sat. A cat's cat!", "cat dog DOG", "river bank river", "bank river", None),
        *("of the and", "únique Ünder"),
    ]
    table, output = lake.input.with_name("table"), lake.root / "terms"
    write_delta(pa.table({"id": list(map(str, range(7))), "text": pa.array(texts, pa.string())}), table)
    write_delta(pa.table({"id": ["9"], "text": ["later later"]}), table)
    command = ("analytics", "--table", table, "--output", output)
    found = call.read(*command, "--version", 0)
    known = {"records": 7, "unit": None, "drawn": 3, "public_version": 0}
    assert {name: found[name] for name in known} == known
    rows = read_delta(output / "drawn")
    assert {row["public_version"] for row in rows} == {0}
    assert {row["term"]: (row["count"], row["documents"]) for row in rows} == {
        "cat": (3, 2),
        "river": (3, 2),
        "bank": (2, 2),
    }

    for arguments, code, words in (
        (("--text", "body"), 4, "--text = body: the table has no such column. It has: id, text."),
        (("--by", "id"), 4, "--by = id: the table has no symbols, from which counts of groups are estimated."),
        (("--version", 7), 4, "version 7"),
        (("--output", table / "out"), 2, "is the table, inside it or above it"),
    ):
        assert words in call(*command, *arguments, code=code)[1]


def verify(lake: Lake, call: Commands, published: dict[str, Any]) -> None:
    """With Spark, and after damage. tests/unit/cli/test_verify.py has the command without Java."""
    table = ("release", "verify", "--table", lake.public)
    facts = call.read(*table, "--public-key", published["public_key"])
    assert (facts["pinned"], facts["reader"]) == (True, "spark")
    assert facts["recovery"]["uniform"]["before"] == float(published["manifest"]["recovery"]["uniform"]["before"])
    assert facts["manifest_sha256"] == published["manifest_sha256"]
    assert facts["public_version"] == published["manifest"]["public_version"]
    assert call.read("verify", *table[2:]) == {**facts, "pinned": False, "public_key": "not pinned"}
    assert "words recovered" in call(*table)[0]
    file = next(lake.public.glob("**/*.parquet"))
    sound = file.read_bytes()
    file.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert f"changed: {file.relative_to(lake.public)}" in call(*table, code=9)[1]
    file.write_bytes(sound)


def withdraw(lake: Lake, call: Commands, config: Path, text: str) -> None:
    """Withdraw a record, and delete what is left of it, until ``text`` is gone."""
    refused = call.read("release", "withdraw", "-c", config, "--id", "r00003", "--id", "nobody", code=9)
    assert "1 of the ids" in refused["message"]
    wanted = lake.root / "ids"
    wanted.write_text("r00003\n\n")
    out, err = call("release", "withdraw", "-c", config, "--ids-from", wanted, "--run-id", "gone-1")
    assert "withdraw: records were withdrawn as asked" in out
    assert "release erase" in err
    out, _ = call("release", "show", "-c", config)
    assert "still exists: 1 records in the draws, 1 in the public table" in " ".join(out.replace("│", " ").split())
    assert call.read("release", "purge", "-c", config) == {"release": "support", "rows": 1}
    _, err = call("release", "publish", "-c", config, code=9)
    assert "and the gate has seen version" in err
    assert call.report()["error"]["type"] == "OutdatedGateError"
    assert "result" not in call.report()
    out, _ = call("release", "gate", "-c", config)
    for words in ("min_records", "output-only", "quarantine_rate", "private", "yes"):
        assert words in out
    published = call.read("release", "publish", "-c", config)
    assert published["manifest"]["records"] == 11
    assert not call.read("release", "show", "-c", config)["withdrawn"]["gone"]
    assert text in read_all_files(lake.home)
    call.read("release", "compact", "-c", config)
    erased = call.read("release", "erase", "-c", config, "--ids-from", wanted)
    assert (erased["records"], erased["withdrawn"], erased["publish"], erased["gone"]) == (1, 0, None, True)
    left = read_all_files(lake.home)
    assert [found for found in (text, "r00003") if found in left] == []


def freeze(lake: Lake, call: Commands, config: Path) -> None:
    """Destroy the key: nothing is drawn or published any more, and what was published can still be verified."""
    call.read("release", "reset", "-c", config, "--yes", code=9)
    _, err = call("key", "destroy", "-c", config, code=2)
    assert "Add --yes" in err
    destroyed = call.read("key", "destroy", "-c", config, "--yes")
    # What was withdrawn is gone, too. Without Java it is seen as with it.
    shown = call.read("release", "show", "-c", config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_paths, "is_plain", lambda _: True)
        settings = load_config(config)
        assert json.dumps(read_local_state(settings.home, settings.spark)) == json.dumps(shown)
    assert shown["withdrawn"] == {
        "records": 0,
        "in_draws": 0,
        "in_public_table": 0,
        "files_of_old_versions": {"draws": 0, "public table": 0},
        "gone": True,
    }
    assert [(one["run_id"], one["kind"], one["state"]) for one in shown["runs"]] == [
        ("night-1", "sanitise", "finished"),
        ("gone-1", "withdraw", "finished"),
    ]
    assert shown["frozen"] == destroyed["frozen"]
    assert KEY not in (lake.root / "key").read_text()
    call("sanitise", "-c", config, code=5)
    assert "has been frozen since" in call("release", "gate", "-c", config, code=9)[1]
    public_key = load_key(str(lake.workspace.write_key("key", KEY)), None).signing_key("support")
    assert "has been frozen since" in call("release", "publish", "-c", config, code=9)[1]
    call("release", "verify", "--table", lake.public, "--public-key", encode_public_key(public_key))
