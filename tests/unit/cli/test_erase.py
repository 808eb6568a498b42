"""``wordveil release erase``: which records its options name, and what it prints of an erasure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.workspaces import Command, Workspace
from wordveil.cli.release import read_ids
from wordveil.errors import ConfigError
from wordveil.release.rules import GateRules, Measured, evaluate
from wordveil.spark.release import erase
from wordveil.spark.release.erase import Erasure, Place
from wordveil.spark.release.gate import GateDecision

LEFT = (
    Place("input", "/lake/in", 1, 1, "delete the records there"),
    Place("public table", "/lake/public", 0, 0),
    Place("ledger", "/lake/ledger", 6, 0, "costs stay"),
    Place("generator", "/bundles/b", None, 0, "train it again"),
)
RESULT = evaluate(GateRules(min_records=100), Measured(released=12))
FAILED = GateDecision("support", draws_version=2, ledger_version=3, result=RESULT, rules="r", runs=[], fingerprints={})
ERASED = Erasure("support", 2, 1, ("nobody",), 0, places=LEFT)


class Erasing:
    """An erasure that only records what it was asked for."""

    def __init__(self) -> None:
        self.made = ERASED
        self.given: dict[str, Any] = {}

    def __call__(self, _config: Any, _session: Any, **given: Any) -> Erasure:
        self.given = {name: value for name, value in given.items() if name not in ("progress", "tasks")}
        return self.made


@pytest.fixture
def erasing(monkeypatch: pytest.MonkeyPatch) -> Erasing:
    made = Erasing()
    monkeypatch.setattr(erase, "erase", made)
    return made


def write_config(workspace: Workspace, **chosen: Any) -> Path:
    return workspace.write_config(
        input={"path": "/lake/in", "format": "delta", **chosen},
        output={"path": str(workspace.root / "release"), "format": "delta"},
        ledger={"path": str(workspace.root / "ledger")},
    )


def test_erase_hands_over_records_and_shows_places(workspace: Workspace, erasing: Erasing, run: Command):
    config, listed = write_config(workspace, author="who"), workspace.root / "ids"
    listed.write_text("r2\nnobody\n")
    chosen = ("--author", "C11135", "--id", "r1", "--ids-from", listed, "--retain-hours", 24)
    code, out, _ = run("release", "erase", "-c", config, *chosen, "--json")
    assert code == 0
    assert erasing.given == {"ids": ["r1"], "listed": ["r2", "nobody"], "authors": ["C11135"], "retain_hours": 24}
    found = json.loads(out)
    assert (found["records"], found["withdrawn"], found["unknown"], found["gone"]) == (2, 1, ["nobody"], True)
    assert [(place["place"], place["named"], place["texts"]) for place in found["places"]] == [
        *(("input", 1, 1), ("public table", 0, 0), ("ledger", 6, 0), ("generator", None, 0))
    ]
    code, out, _ = run("release", "erase", "-c", config, "--id", "r1")
    for words in ("2, 1 of them withdrawn now", "nobody", "not needed", "gone from", "costs stay", "not seen"):
        assert words in " ".join(out.split())


def test_erase_with_a_failing_gate_exits_with_three(workspace: Workspace, erasing: Erasing, run: Command):
    table = Place("public table", "/lake/public", 1, 1, "the gate did not pass")
    erasing.made = Erasure("support", 1, 1, (), 0, decision=FAILED, places=(table,))
    code, out, err = run("release", "erase", "-c", write_config(workspace), "--id", "r1", "--json")
    assert (code, json.loads(out)["gone"]) == (3, False)
    assert "did not pass: min_records" in err
    _, out, _ = run("release", "erase", "-c", write_config(workspace), "--id", "r1")
    assert "still exist" in out
    assert "min_records" in out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "names no record. Add --id ID, or --ids-from FILE"),
        (("--author", "C11135"), "--author = C11135: needs input.author"),
        (("--ids-from", "/none.csv"), "--ids-from = /none.csv: cannot be read (FileNotFoundError)"),
    ],
)
def test_erase_with_unusable_options_ends_before_spark(
    workspace: Workspace, erasing: Erasing, run: Command, given: tuple[str, ...], message: str
):
    code, _, err = run("release", "erase", "-c", write_config(workspace), *given)
    assert code == 2
    assert message in " ".join(err.split())
    assert erasing.given == {}


def test_read_ids_of_tables_takes_the_id_column_as_text(tmp_path: Path):
    file = tmp_path / "ids.csv"
    file.write_text("who,id\na,007\nb,\n")
    assert read_ids(str(file), "id") == ["007"]
    file.write_text("C11135\n007\n")
    with pytest.raises(ConfigError, match="has no column id, but C11135"):
        read_ids(str(file), "id")  # its first line may be an id
    table = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"id": [7, None], "n": [1, 2]}), table)
    assert read_ids(str(table), "id") == ["7"]
    pq.write_table(pa.table({"ticket": ["007"]}), only := tmp_path / "only.parquet")
    assert read_ids(str(only), "id") == ["007"], "the only column"
    with pytest.raises(ConfigError, match="has no column ticket, but id, n"):
        read_ids(str(table), "ticket")
    table.write_bytes(b"no Parquet")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_ids(str(table), "id")
