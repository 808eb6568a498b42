"""Shuffled tables: rows without ids in a secret order, each record drawn once, and a promise that the rows keep."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.intervals import least_chance, most_chance
from support.releases import Lake, die_after, read_delta
from support.workspaces import WORDS, Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.jobs import find_table_terms
from wordveil.errors import InputError, ReleaseError
from wordveil.measures.estimates import Estimator
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.release.lake_table import LakeTable
from wordveil.release.verify import MANIFEST, verify_table
from wordveil.spark.analytics import analyse
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release.erase import erase
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.ledger_report import list_tables
from wordveil.spark.release.maintenance import show
from wordveil.spark.release.night import Night, run_night
from wordveil.spark.release.run import withdraw
from wordveil.spark.sanitise import layout
from wordveil.spark.sanitise.job import count_groups, require_rows, run_sanitise

EPSILON, DELTA, LOSS, GROUP = 1.9, 0.01, 2.0, 20
FIRST, SECOND = WORDS[:20], WORDS[20:40]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with sixty passages on two subjects."""
    made = Workspace(tmp_path_factory.mktemp("shuffled"))
    lines = [" ".join(words[start % 15 : start % 15 + 5]) for words in (FIRST, SECOND) for start in range(30)]
    (made.root / "passages.txt").write_text("\n".join(lines), "utf-8")
    return made


def sections(workspace: Workspace, loss: float = LOSS, **output: Any) -> dict[str, Any]:
    mechanism = {
        "name": "passages",
        "epsilon": loss,
        "clusters": 2,
        "passages": str(workspace.root / "passages.txt"),
        "encoder": "passages",
    }
    shuffle = {"epsilon": EPSILON, "delta": DELTA, **output.pop("shuffle", {})}
    return {
        "mechanism": mechanism,
        "text": {"profile": "passages", "refused": "empty"},
        "output": {"shuffle": shuffle, **output},
    }


def corpus(start: int, count: int, day: str = "d0") -> pa.Table:
    ids = [f"r{number:04d}" for number in range(start, start + count)]
    texts = [" ".join((FIRST, SECOND)[number % 2][:6]) for number in range(start, start + count)]
    return pa.table({"id": ids, "body": texts, "day": [day] * count, "who": ["ann"] * count})


def write_job(workspace: Workspace, rows: pa.Table, output: Path, **changes: Any) -> Any:
    path = workspace.write_corpus(rows, f"{output.parent.name}-{output.name}")
    made = sections(workspace, path=str(output), public_only=True, **changes)
    source = {"path": str(path), "keep": ["day"]}
    return workspace.config(input=source, **made)


def read_job(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(output).to_pylist()
    return rows


def test_a_shuffled_job_writes_rows_without_ids(spark: Any, workspace: Workspace, tmp_path: Path):
    rows = pa.concat_tables([corpus(0, 30), corpus(30, 25, "d1")])
    report = run_sanitise(write_job(workspace, rows, tmp_path / "out"), lambda: spark)
    found = read_job(tmp_path / "out")
    assert (len(found), found[0].keys()) == (55, {"day", "text", "symbols", "privacy"})
    assert report.table is not None
    assert (report.table["records"], report.table["groups"], report.table["rows"]) == (55, 2, 25)
    assert report.table["epsilon"] <= EPSILON
    assert report.epsilon_pure == pytest.approx((LOSS, LOSS))
    promised = {(row["privacy"]["table_epsilon"], row["privacy"]["table_delta"]) for row in found}
    assert promised == {(EPSILON, DELTA)}


def test_directories_with_like_names_are_groups_of_their_own(spark: Any, workspace: Workspace, tmp_path: Path):
    """Spark would read "01" and "1" as one number, and 0.0 and -0.0 are equal to it."""
    rows = pa.concat_tables([corpus(0, 30, "01"), corpus(30, 25, "1")])
    report = run_sanitise(write_job(workspace, rows, tmp_path / "out", partition_by=["day"]), lambda: spark)
    assert report.table is not None
    assert (report.table["groups"], report.table["rows"]) == (2, 25)
    zeros = from_arrow(spark, pa.table({"day": [0.0] * 3 + [-0.0] * 2}))
    assert count_groups(zeros, ["day"]) == (2, 2, 5)


def test_the_secret_order_is_in_no_plan(spark: Any, monkeypatch: pytest.MonkeyPatch):
    drawn: list[bytes] = []

    def draw(size: int) -> bytes:
        drawn.append(bytes(range(65, 65 + size)))
        return drawn[-1]

    monkeypatch.setattr(layout.secrets, "token_bytes", draw)
    rows = from_arrow(spark, pa.table({"id": [f"r{number}" for number in range(50)]}))
    arranged = layout.arrange_rows(rows, None, "id", number=50)
    order = [row["id"] for row in arranged.collect()]
    expected = sorted(order, key=lambda name: hashlib.sha256(drawn[0] + name.encode()).hexdigest()[:15])
    assert order == expected != sorted(order)
    told = arranged._jdf.queryExecution().toString()
    assert len(drawn) == 1
    assert not any(text in told for text in (drawn[0].decode(), drawn[0].hex(), drawn[0].hex().upper()))


@pytest.mark.long
def test_two_hundred_jobs_show_no_more_than_the_bound(spark: Any, workspace: Workspace, tmp_path: Path):
    """Corpora that differ in one record; the attacker sees ends and counts of symbols. In input order it sees more."""
    loss, count, delta, epsilon = 4.0, 800, 0.001, 1.7
    seen: dict[int, list[list[int]]] = {0: [], 1: []}
    for turn in range(200):
        first = corpus(turn % 2, 1).set_column(0, "id", pa.array(["r0000"]))
        rows = pa.concat_tables([first, corpus(2, count - 1)])
        output = tmp_path / f"out-{turn}"
        config = write_job(workspace, rows, output, loss=loss, shuffle={"epsilon": epsilon, "delta": delta})
        run_sanitise(config, lambda: spark)
        assert len(list(output.glob("*.parquet"))) == 1
        seen[turn % 2].append([row["symbols"][0] for row in read_job(output)])
    symbols = [np.array(seen[own]) for own in (0, 1)]
    scores = [drawn[:, 0] for drawn in symbols], [drawn[:, -1] for drawn in symbols]
    middle = np.median([(drawn == 0).sum(axis=1) for drawn in symbols])
    counts = [((drawn == 0).sum(axis=1) > middle).astype(int) for drawn in symbols]
    assert all(show_loss(*score, delta) <= epsilon for score in (*scores, counts))
    # The law of a row whose place is known: what the first row would show in the order of the input.
    rng, stays = np.random.default_rng(0), math.exp(loss) / (math.exp(loss) + 2)
    known = [np.where(rng.random(100) < stays, own, 1 - own) for own in (0, 1)]
    assert show_loss(*known, delta) > epsilon


def show_loss(one: Any, other: Any, delta: float) -> float:
    """Find the loss that 100 hits and misses of two corpora show at delta, with an error of 1% for each test."""
    losses = [0.0]
    for left, right in ((one, other), (other, one)):
        for symbol in (0, 1):
            low = least_chance(int((left == symbol).sum()), 100, 0.005) - delta
            high = most_chance(int((right == symbol).sum()), 100, 0.005)
            losses.append(math.log(low / high) if low > 0 else 0.0)
    return max(losses)


def test_a_second_job_draws_anew_in_another_order(spark: Any, workspace: Workspace, tmp_path: Path):
    made = []
    for name in ("one", "two", "three"):
        run_sanitise(write_job(workspace, corpus(0, 80), tmp_path / name), lambda: spark)
        made.append([row["symbols"][0] for row in read_job(tmp_path / name)])
    assert made[0] != made[1]
    # Two jobs have equal counts of all symbols once in a hundred times.
    assert len({tuple(sorted(drawn)) for drawn in made}) > 1, "rows of an equal key would be told apart by what changed"


def test_a_shuffled_job_with_a_small_group_writes_nothing(spark: Any, workspace: Workspace, tmp_path: Path):
    rows = pa.concat_tables([corpus(0, 40), corpus(40, 3, "d1")])
    with pytest.raises(InputError, match="smallest of 2 groups of equal kept columns has 3 rows"):
        run_sanitise(write_job(workspace, rows, tmp_path / "out"), lambda: spark)
    assert not list(tmp_path.glob(".*")) + list(tmp_path.glob("out/*.parquet"))


def test_a_shuffled_job_refuses_a_delta_of_one_row(workspace: Workspace):
    config = workspace.config(**sections(workspace, public_only=True, shuffle={"delta": 0.005}))
    terms = find_table_terms(config.output.shuffle, config.record_settings("run"), build_bundle(config))
    assert terms is not None
    with pytest.raises(InputError, match=r"output.shuffle.delta = 0.005: is not below 1 over 200 rows"):
        require_rows((200, 1, 200), terms)


class Nights:
    """A shuffled release over a lake."""

    def __init__(self, spark: Any, place: Workspace, workspace: Workspace) -> None:
        self.lake = Lake(spark, place)
        self.config = self.lake.config(input={"author": "who"}, **sections(workspace))

    def spend(self, name: str) -> Night:
        self.lake.forget()
        return run_night(self.config, lambda: self.lake.spark, run_id=name)

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.lake.public / MANIFEST).read_text("utf-8"))["manifest"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        return list(self.lake.rows(self.lake.public))


def test_nights_add_rows_once_and_never_change_one(spark: Any, tmp_path: Path, workspace: Workspace):
    nights = Nights(spark, Workspace(tmp_path), workspace)
    nights.lake.write(corpus(0, 30))
    assert nights.spend("night-1").publication is not None
    first = nights.rows()
    assert "id" not in first[0]
    # Edits, deletions, another author and other kept columns reach no row, and three new records wait.
    nights.lake.update("id = 'r0001'", who="bob", day="d1")
    nights.lake.update("id = 'r0003'", day="d1")
    nights.lake.delete("id = 'r0002'")
    nights.lake.update("id = 'r0000'", body=" ".join(SECOND[:7]))
    nights.lake.write(corpus(100, 3, "d1"))
    second = nights.spend("night-2")
    assert second.publication is None
    assert second.report is not None
    assert second.decision is not None
    assert [rule.name for rule in second.decision.result.failures] == ["table_epsilon"]
    assert nights.rows() == first
    assert (second.report.corrected, second.report.kept_changed) == (1, 0)
    assert "kept_changed" not in second.report.exposes
    nights.lake.write(corpus(200, 30, "d1"))
    assert nights.spend("night-3").publication is not None
    assert len(nights.rows()) == 63
    tables = nights.manifest()["tables"]
    assert [(table["records"], table["rows"]) for table in tables] == [(30, 30), (33, 33)]
    assert set(nights.lake.spent().values()) == {1, 2}
    assert [name for name, spent in nights.lake.spent().items() if spent == 2] == ["r0001"], (
        "for two authors, once each"
    )
    table = LakeTable(str(nights.lake.public))
    assert len(verify_table(table, table_epsilon=EPSILON).manifest.tables) == 2
    recorded = list_tables(spark, nights.config.home.ledger.path, None)
    assert [row["publication"] for row in recorded] == [1, 2]
    assert recorded[1]["epsilon_sum"] == recorded[0]["epsilon"] + recorded[1]["epsilon"]
    public, output = str(nights.lake.public), tmp_path / "analytics"
    with pytest.raises(InputError, match="--by = who: the table has no such kept column"):
        analyse(spark, public, str(output), by=["who"])
    analysis = analyse(spark, public, str(output), over="day")
    assert (analysis.unit, analysis.pairs) == ("texts", ())
    drawn = Counter(row["symbols"][0] for row in nights.rows())
    law = SymbolLaw.of_response(LOSS, 3)
    estimates = Estimator(law).estimate(np.array([[drawn[symbol] for symbol in range(3)]]))
    by_symbol = {row["symbol"]: row["estimate"] for row in analysis.totals}
    assert [by_symbol[symbol] for symbol in range(3)] == pytest.approx(estimates.counts[0].tolist())
    found = read_delta(output / "subjects")
    assert {(row["day"], row["draws"]) for row in found} == {("d0", 30), ("d1", 33)}
    sums = [sum(row["estimate"] for row in found if row["symbol"] == symbol) for symbol in range(3)]
    assert sums == pytest.approx(estimates.counts[0].tolist())
    shares = {(row["day"], row["symbol"]): row["share"] for row in found}
    trends = {row["symbol"]: row for row in read_delta(output / "trends")}
    for symbol, row in trends.items():
        assert (row["day_before"], row["day"]) == ("d0", "d1")
        assert row["difference"] == pytest.approx(shares["d1", symbol] - shares["d0", symbol])
    assert len(trends) == 3
    assert all(row["low_of_all"] <= row["low"] <= row["high"] <= row["high_of_all"] for row in found)


def test_a_killed_and_a_moved_table_show_no_few_rows_alone(spark: Any, tmp_path: Path, workspace: Workspace):
    nights = Nights(spark, Workspace(tmp_path), workspace)
    nights.lake.write(corpus(0, 30))
    with die_after("public table"):
        nights.spend("night-0")
    made = erase(nights.config, lambda: spark, ids=["r0003"])
    kept = next(place for place in made.places if place.place == "public table")
    assert (made.publication, made.is_gone, kept.texts) == (None, False, 1)
    assert "move the table away" in kept.note
    nights.lake.write(corpus(100, 3))
    # What the killed publication has written is signed by itself, and not once more with what came since.
    assert nights.spend("night-1").publication is not None
    assert [(table["records"], table["rows"]) for table in nights.manifest()["tables"]] == [(30, 30)]
    assert len(nights.rows()) == 30, "to remove one row would show which one it was"
    shown = show(nights.config.home, lambda: spark)["withdrawn"]
    assert (shown["in_draws"], shown["in_public_table"], shown["gone"]) == (0, 1, False)
    first = nights.manifest()["tables"][0]["epsilon"]
    nights.lake.public.rename(tmp_path / "former")
    assert nights.spend("night-2").publication is not None
    # Whoever has the former table would see the three rows that wait alone.
    (table,) = nights.manifest()["tables"]
    assert (len(nights.rows()), table["records"]) == (29, 29)
    assert table["epsilon"] >= first
    verify_table(LakeTable(str(nights.lake.public)))
    plain = nights.lake.config(input={"author": "who"}, **{**sections(workspace), "output": {}})
    with pytest.raises(ReleaseError, match=r"is without output\.shuffle, and its first run was with it"):
        run_gate(plain, lambda: spark)


def test_a_moved_table_promises_what_withdrawals_leave(spark: Any, tmp_path: Path, workspace: Workspace):
    """Whoever has the former table knows the withdrawn rows, and which publication has each of the others."""
    nights = Nights(spark, Workspace(tmp_path), workspace)
    for night, rows in enumerate((corpus(0, 20), pa.concat_tables([corpus(100, 20), corpus(200, 50, "d1")]))):
        nights.lake.write(rows)
        assert nights.spend(f"night-{night}").publication is not None
    former = max(table["epsilon"] for table in nights.manifest()["tables"])
    withdraw(nights.config, lambda: spark, [f"r{number:04d}" for number in range(100, 108)])
    nights.lake.public.rename(tmp_path / "former")
    assert nights.spend("night-2").publication is not None
    (table,) = nights.manifest()["tables"]
    assert (table["records"], table["groups"], table["rows"]) == (82, 3, 12)
    assert table["epsilon"] > former
    (measured,) = (rule["value"] for rule in nights.manifest()["gate"] if rule["name"] == "table_epsilon")
    assert measured == table["epsilon"]
    verify_table(LakeTable(str(nights.lake.public)))
    withdraw(nights.config, lambda: spark, [f"r{number:04d}" for number in range(108, 113)])
    nights.lake.public.rename(tmp_path / "again")
    decision = nights.spend("night-3").decision
    assert decision is not None
    assert [rule.name for rule in decision.result.failures] == ["table_epsilon"]


@pytest.mark.long
@pytest.mark.parametrize("step", ["adding", "table", "create public table", "public table"])
def test_a_publication_that_dies_adds_its_rows_once(spark: Any, tmp_path: Path, workspace: Workspace, step: str):
    """Rows that it has written are signed. If it has written none, a record may still be withdrawn."""
    nights = Nights(spark, Workspace(tmp_path), workspace)
    nights.lake.write(corpus(0, 30))
    with die_after(step):
        nights.spend("night-0")
    withdraw(nights.config, lambda: spark, ["r0003"])
    nights.lake.write(corpus(100, 25))
    assert nights.spend("night-2").publication is not None
    assert nights.spend("night-3").publication is not None
    tables = [(table["records"], table["rows"]) for table in nights.manifest()["tables"]]
    assert tables == ([(30, 30), (25, 25)] if step == "public table" else [(54, 54)])
    assert len(nights.rows()) == sum(records for records, _ in tables)
    verify_table(LakeTable(str(nights.lake.public)))
