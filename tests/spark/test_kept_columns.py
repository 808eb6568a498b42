"""Kept columns follow the input: a night writes a record again with its new ones and the same draw, at no cost."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from typing import Any

import pytest

from support.releases import EXPONENTIAL, DiedError, Lake, States, corpus_with_authors
from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.run_report import RunReport
from wordveil.config.load import Config
from wordveil.crypto.keys import encode_public_key, load_key
from wordveil.release.lake_table import LakeTable
from wordveil.release.manifest import Manifest
from wordveil.release.verify import verify_table
from wordveil.spark.platform import delta_table
from wordveil.spark.platform.versions import VERSION
from wordveil.spark.release.changes import differ_in_kept
from wordveil.spark.release.night import run_night
from wordveil.spark.release.run import withdraw


def verified(lake: Lake) -> Manifest:
    """The manifest of the public table, which is as it was signed."""
    public_key = encode_public_key(load_key(str(lake.root / "key"), None).signing_key("support"))
    return verify_table(LakeTable(str(lake.public)), None, public_key).manifest


def days(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["id"]: row["day"] for row in rows}


# What differs.

TIME, LATER = (dt.datetime(2026, 11, 21, 10, 0, 0, of, dt.UTC) for of in (1, 2))
MADE = [
    ("string", ["a"], ["A", None, ""]),
    ("double", [0.0, float("nan")], [-0.0, 1.0, None]),
    ("timestamp", [TIME], [LATER]),
    ("array<int>", [[1, None]], [[None, 1], [1], None]),
    ("struct<k: string>", [{"k": None}], [{"k": "a"}, None]),
    ("map<string, timestamp>", [{"a": TIME}, {"a": LATER}, {"a": None}, {}, None], [{"b": None}]),
]


@pytest.mark.parametrize(("kind", "values", "others"), MADE, ids=[kind for kind, _, _ in MADE])
def test_kept_values_differ_if_readers_can_tell(spark: Any, kind: str, values: list[Any], others: list[Any]):
    pairs = [(one, other, place == index) for place, one in enumerate(values) for index, other in enumerate(values)]
    pairs += [(one, other, False) for one in values for other in others]
    rows = spark.createDataFrame(pairs, f"now {kind}, was {kind}, same boolean").coalesce(1)
    named = rows.selectExpr("struct(now AS `a.b`) AS now", "struct(was AS `a.b`) AS was", "same")
    differs = differ_in_kept(named["now"], named["was"], named.schema["now"].dataType)
    assert [row for row in named.withColumn("differs", differs).collect() if row.differs == row.same] == []


@pytest.mark.skipif(VERSION < (4, 0), reason="Spark 3.5 has no collations")
def test_kept_values_under_a_collation_differ_by_case(spark: Any):
    rows = spark.sql("SELECT struct('a' COLLATE UTF8_LCASE AS k) AS now, struct('A' COLLATE UTF8_LCASE AS k) AS was")
    differs = differ_in_kept(rows["now"], rows["was"], rows.schema["now"].dataType)
    assert rows.select(rows["now"] != rows["was"], differs).collect()[0] == (False, True)


# The whole way, on real Delta.


@pytest.fixture(scope="module")
def withdrawn(released: States) -> States:
    """Eight published records, of which one was then withdrawn (``withdrawn``)."""
    lake = released.restore("published")
    withdraw(lake.config(), lambda: lake.spark, ["r00007"])
    released.keep("withdrawn")
    return released


@pytest.mark.parametrize("changes", ["feed", "scan"])
def test_night_publishes_new_kept_values_and_draws_nothing(withdrawn: States, changes: str):
    """Changes back to the former value, or of a column that is not kept, count for none; withdrawn records stay out."""
    lake = withdrawn.restore("withdrawn")
    config = lake.config(input={"changes": changes})
    before, entries = lake.newest(), lake.entries()
    lake.update("id IN ('r00001', 'r00007')", day="mended")
    lake.update("id = 'r00002'", day="mended", body="other words stand here")
    lake.update("id IN ('r00003', 'r00004')", day="wrong")
    lake.update("id = 'r00003'", day=f"{before['r00003']['day']}")
    lake.update("id = 'r00004'", day="twice")
    lake.delete("id = 'r00005'")
    lake.update("id = 'r00006'", note="5")

    def night() -> RunReport:
        found = run_night(config, lambda: lake.spark, full_snapshot=changes == "scan")
        assert found.report is not None
        assert found.publication is not None
        return found.report

    report = night()
    assert (report.changes, report.records, report.withdrawn, report.kept_changed) == (changes, 1, 1, 2)
    after, copied = lake.newest(), {"__seq": lake.newest()["r00002"]["__seq"], "__reserved": None}
    expected = {"r00001": {"day": "mended", **copied}, "r00004": {"day": "twice", **copied}}
    for name in before.keys() - {"r00002", "r00005"}:
        assert after[name] == before[name] | expected.get(name, {}), name
    assert {row["record_id"] for row in lake.entries() if row not in entries} == {"r00002"}
    public, manifest = lake.rows(lake.public), verified(lake)
    assert days(public) == {name: row["day"] for name, row in after.items() if row["status"] == "released"}
    assert (days(public)["r00001"], days(public)["r00002"]) == ("mended", "mended")
    assert (manifest.kept_changed, manifest.snapshot.records) == (2, 6)
    assert "kept_changed" in manifest.exposes
    assert all("kept_changed" in row["privacy"]["exposes"] for row in public)
    if changes == "scan":  # a publication counts alike
        return

    draws = lake.draws()
    lake.update("id = 'r00006'", day="wrong")
    assert lake.run(config).kept_changed == 1
    lake.update("id = 'r00006'", day=before["r00006"]["day"], note="6")
    assert night().kept_changed == 1, "what no publication showed is not counted in the next one"
    assert (len(lake.draws()), verified(lake).kept_changed) == (len(draws) + 2, 0)
    assert days(lake.rows(lake.public)) == days(public)


def with_budget(lake: Lake) -> Config:
    """One version of each record, which keeps its last one; days are directories, and authors kept too."""
    sections = {
        "input": {"author": "author", "keep": ["day", "author"], "changes": "feed"},
        "mechanism": {**lake.workspace.settings()["mechanism"], **EXPONENTIAL},
        "output": {"partition_by": ["day"]},
    }
    limit = 1.5 * 24 * build_bundle(lake.config(**sections)).guarantee.pure
    budgets = {"unit": "pure", "relation": "any_text", "record": limit, "on_exceeded": "keep_last"}
    return lake.config(**sections, budgets=budgets)


@pytest.fixture(scope="module")
def states(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """Eight records, published; then kept columns, authors and texts change, alone and together (``changed``)."""
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("kept")))
    made = States(lake)
    lake.write(corpus_with_authors(8))
    run_night(with_budget(lake), lambda: spark, run_id="night-1")
    lake.update("id IN ('r00000', 'r00002', 'r00004')", day="moved")
    lake.update("id IN ('r00001', 'r00002')", author="a9")
    lake.update("id IN ('r00003', 'r00004')", body="other words stand here")
    made.keep("changed")
    return made


def test_kept_values_follow_corrected_authors_and_refused_edits(states: States):
    lake = states.restore("changed")
    config, texts = with_budget(lake), {name: row["text"] for name, row in lake.newest().items()}
    report = run_night(config, lambda: lake.spark).report
    assert report is not None
    assert (report.records, report.corrected, report.kept_changed, report.stale) == (0, 2, 4, 2)
    assert {name: row["text"] for name, row in lake.newest().items()} == texts
    assert {row["id"] for row in lake.rows(lake.public) if row["stale"]} == {"r00003", "r00004"}
    assert {name for name, day in days(lake.rows(lake.public)).items() if day == "moved"} == {
        "r00000",
        "r00002",
        "r00004",
    }
    assert {row["id"] for row in lake.rows(lake.public) if row["author"] == "a9"} == {"r00001", "r00002"}
    assert verified(lake).kept_changed == 4
    lake.update("id IN ('r00003', 'r00004')", day="later")
    report = lake.run(config)
    assert (report.records, report.corrected, report.kept_changed, report.stale) == (0, 0, 2, 0)
    assert {name for name, row in lake.newest().items() if row["day"] == "later"} == {"r00003", "r00004"}


@pytest.mark.long
def test_killed_night_with_kept_changes_ends_as_undisturbed(states: States, monkeypatch: pytest.MonkeyPatch):
    """It dies once after each of its commits; the counts are those of an undisturbed one."""
    lake = states.restore("changed")
    config = with_budget(lake)

    def results() -> tuple[Any, ...]:
        verified(lake)
        public = [{**row, "privacy": None} for row in lake.rows(lake.public)]
        # A night that died after its publication publishes again, without a change.
        manifests = [
            json.loads(file.read_text("utf-8"))["manifest"] for file in (lake.home / "manifests").glob("*.json")
        ]
        return lake.draws(), lake.entries(), public, sum(manifest["kept_changed"] for manifest in manifests)

    undisturbed = run_night(config, lambda: lake.spark, run_id="night-2").report
    expected = results()
    lake, died = states.restore("changed"), dict[str, None]()

    def committed(step: str) -> None:
        if step not in died:
            died[step] = None
            raise DiedError(step)

    report = None
    with monkeypatch.context() as patched:
        patched.setattr(delta_table, "after_commit", committed)
        while report is None:
            with contextlib.suppress(DiedError):
                report = run_night(config, lambda: lake.spark, run_id="night-2").report
            lake.forget()
    assert len(died) > 5
    assert list(died)[:5] == ["intent", "reserve", "draws", "settle", "finished"]
    assert undisturbed is not None
    assert report.to_dict() | {"seconds": 0, "tokens_per_second": 0} == undisturbed.to_dict() | {
        "seconds": 0,
        "tokens_per_second": 0,
    }
    assert results() == expected
