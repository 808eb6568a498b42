"""``erase`` on real Delta: what stays on the disk, budgets, resumption, and a source that still has the records."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.releases import Lake, States, corpus_with_authors, die_after
from support.workspaces import Workspace
from wordveil.errors import ConfigError, ReleaseError
from wordveil.records.schema import RELEASED
from wordveil.release.lake_table import LakeTable
from wordveil.release.verify import verify_table
from wordveil.spark.release import maintenance
from wordveil.spark.release.erase import Erasure, erase, find_records

ERASED = ("r00001", "r00006")
"""The records of the author a1, after corrections."""


@pytest.fixture(scope="module")
def states(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """A release of eight records of four authors (``published``); the authors of r00005 and r00006 were corrected."""
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("erased")))
    states = States(lake)
    lake.write(corpus_with_authors(8))
    lake.run(config_of(lake), run_id="night-1")
    lake.update("id = 'r00005'", author="a3")
    lake.update("id = 'r00006'", author="a1")
    assert lake.run(config_of(lake), run_id="night-2").corrected == 2
    lake.release(config_of(lake))
    states.keep("published")
    return states


@pytest.fixture(scope="module")
def made(states: States) -> Erasure:
    """The erasure of the author a1 from that release, which leaves the state ``erased``."""
    made = erase_from(states.restore("published"), authors=["a1"])
    states.keep("erased")
    return made


@pytest.fixture
def lake(states: States) -> Lake:
    return states.restore("published")


def config_of(lake: Lake, **sections: Any) -> Any:
    given = {"input": {"author": "author", "changes": "feed"}, "output": {"partition_by": ["day"]}, **sections}
    return lake.config(**{**given, "input": {**given["input"], "keep": ["day"]}})


def erase_from(lake: Lake, config: Any = None, **chosen: Any) -> Erasure:
    lake.forget()
    return erase(config or config_of(lake), lambda: lake.spark, **chosen)


def find_bytes(root: Path, sought: Collection[str]) -> set[tuple[str, str]]:
    """The files below a directory that hold one of the texts: Parquet by its values and footer, others by bytes."""
    found = set()
    for file in (path for path in root.rglob("*") if path.is_file()):
        content = file.read_bytes().decode("latin-1")
        if file.suffix == ".parquet":
            content += str(pq.read_table(file, partitioning=None).to_pylist())
        found |= {(file.relative_to(root).parts[0], text) for text in sought if text in content}
    return found


def places_of(made: Erasure) -> dict[str, tuple[int | None, int]]:
    return {place.place: (place.named, place.texts) for place in made.places}


def outcome(lake: Lake) -> tuple[Any, ...]:
    """The remains of an erasure, except for times, and how often and by which run a record was withdrawn."""
    entries = [{**row, "run_id": None if row["kind"] == "withdraw" else row["run_id"]} for row in lake.entries()]
    return lake.draws(), lake.rows(lake.public), {str(sorted(entry.items())) for entry in entries}


def test_erase_author_leaves_ids_in_the_ledger_alone(lake: Lake, states: States, made: Erasure):
    """And the release goes on: over a source that still has the records, and under the author's budget."""
    newest, price, spent = lake.newest(), lake.entries()[0]["price"], lake.spent()
    sought = {*ERASED, *(str(newest[name]["text"]) for name in ERASED)}
    assert {part for part, _ in find_bytes(lake.home, sought)} == {"draws", "public"}
    assert (made.records, made.withdrawn, made.unknown, made.is_gone) == (2, 2, (), True)
    lake = states.restore("erased")
    assert find_bytes(lake.home, sought) == set()
    assert {name for _, name in find_bytes(lake.ledger, sought)} == set(ERASED)
    assert places_of(made) == {
        "input": (2, 2),
        **dict.fromkeys(("draws", "public table", "old files", "journal", "logs and manifests"), (0, 0)),
        "ledger": (7, 0),  # reserved, settled and withdrawn, one also attributed
    }
    verify_table(LakeTable(str(lake.public)))
    assert maintenance.show(config_of(lake).home, lambda: lake.spark)["withdrawn"]["gone"]

    # Of 4 records a1 has spent 3, one that was another's since, and asks for 2 more.
    lake.update("id = 'r00001'", body="other words")
    lake.write(corpus_with_authors(14).take([8, 9, 13]))
    limits = {"unit": "pure", "relation": "any_text", "author": 4 * 24 * price, "delta": 1e-6}
    scanning = config_of(lake, input={"author": "author", "changes": "scan"}, budgets=limits)
    report = lake.run(scanning, full_snapshot=True)
    assert (report.changes, report.released, report.refused) == ("scan", 2, {"over_author_budget": 1})
    lake.release(config_of(lake))
    assert find_bytes(lake.home, sought) == set()
    assert lake.spent() == {**spent, "r00008": 24, "r00009": 24, "r00013": 0}
    assert {row["id"] for row in lake.rows(lake.public)} == {*newest, "r00008", "r00009"} - {*ERASED}


def test_erase_of_what_is_not_there_changes_nothing(lake: Lake):
    """An unknown id or author is refused, and an unknown id of a list is named beside those that are erased."""
    before = outcome(lake)
    with pytest.raises(ReleaseError, match=r"1 of the ids are not in release support.*'nobody'"):
        erase_from(lake, ids=["r00001", "nobody"])
    with pytest.raises(ConfigError, match="--author = a9: has no record in release support"):
        erase_from(lake, authors=["a1", "a9"])
    assert erase_from(lake, listed=["nobody"]).to_dict()["places"] == []
    assert outcome(lake) == before


STEPS = ("withdraw", "delete draws", "public table", "delete draws")
ALL_STEPS = (
    *("withdraw", "intent", "draws", "finished", "delete draws", "gate", "public table", "published"),
    *("delete draws", "compact draws", "compact public table", "vacuumed"),
)


@pytest.mark.parametrize("steps", [STEPS, pytest.param(ALL_STEPS, marks=pytest.mark.long)], ids=["some", "all"])
def test_erase_that_dies_or_fails_its_gate_goes_on(states: States, made: Erasure, steps: tuple[str, ...]):
    """Each start goes to the next of the commits, and dies. The gate does not pass before the draws are deleted."""
    undisturbed = outcome(states.restore("erased"))
    lake = states.restore("published")
    for number, step in enumerate(steps):
        with die_after(step):
            erase_from(lake, ids=ERASED)
        if number == steps.index("delete draws"):
            refused = erase_from(lake, config_of(lake, gate={"min_records": 8}), listed=[*ERASED, "nobody"])
            assert (refused.unknown, refused.publication, refused.is_gone) == (("nobody",), None, False)
            assert places_of(refused) == {
                "input": (2, 2),
                "draws": (2, 0),  # marks, so that the next publication writes the records' directories again
                "public table": (2, 2),
                **dict.fromkeys(("old files", "journal", "logs and manifests"), (0, 0)),
                "ledger": (9, 0),  # two starts have withdrawn them
            }
    kept, is_vacuumed = erase_from(lake, ids=ERASED, retain_hours=1), steps[-1] == "vacuumed"
    left = places_of(kept)
    assert (kept.withdrawn, left["draws"], left["public table"]) == (0, (0, 0), (0, 0))
    assert kept.is_gone == (left["old files"] == (0, 0)) == is_vacuumed
    last = erase_from(lake, ids=ERASED)
    assert (last.records, last.withdrawn, last.is_gone) == (2, 0, True)
    assert outcome(lake) == undisturbed


def test_author_of_an_anonymised_record_is_found(spark: Any):
    """The input has no author any more, and the newest draw none either."""
    draws = [("r1", "a1", 1), ("r1", None, 2), ("r2", "a1", 1), ("r2", "a2", 2)]
    schema = "id string, __author string, __seq int, status string"
    rows = spark.createDataFrame([(*row, RELEASED) for row in draws], schema)
    entries = spark.createDataFrame([], "release string, record_id string, author string")
    release: Any = SimpleNamespace(
        name="support",
        home=SimpleNamespace(id="id"),
        draws=SimpleNamespace(read=lambda: rows),
        ledger=SimpleNamespace(table=SimpleNamespace(read=lambda: entries)),
        id_type=rows.schema["id"].dataType,
    )
    before = rows.select(rows["id"].alias("__id")).limit(0)
    assert find_records(release, ["a1"], before) == {"r1"}
