"""A change feed against the table that it leads to: whatever records went through, a night by feed draws what a scan
draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from support.releases import Lake
from support.workspaces import WORDS, Workspace
from wordveil.records.schema import ABSENT, DELETED, DUPLICATE_ID, QUARANTINED, RELEASED
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release import changes

ACTS = ("insert", "edit", "delete", "leave", "enter", "take", "give up")
"""What a record of a pair does: it leaves the slice and enters it, takes the other's id, and gives its own up."""


class Record(NamedTuple):
    """A row: its id, how often it was edited, and whether it is in the slice."""

    id: str
    edits: int = 0
    is_inside: bool = True


Pair = tuple[Record | None, Record | None]
OWN, SPARE = ("a", "b"), ("c", "d")


def act(pair: Pair, which: int, name: str) -> Pair | None:
    """What a pair is after an act of one of its records; None where nothing would change."""
    record = pair[which]
    if record is None:
        after = Record(OWN[which]) if name == "insert" else None
    else:
        after = {
            "edit": record._replace(edits=record.edits + 1),
            "leave": record._replace(is_inside=False),
            "enter": record._replace(is_inside=True),
            "take": record._replace(id=OWN[1 - which]),
            "give up": record._replace(id=SPARE[which]),
        }.get(name)
    if after == record or (after is None and name != "delete"):
        return None
    return (after, pair[1]) if which == 0 else (pair[0], after)


def steps_from(pair: Pair) -> Iterator[Pair]:
    """What a pair can become by one act."""
    found = (act(pair, which, name) for name in ACTS for which in (0, 1))
    return (after for after in found if after is not None)


def inside(pair: Pair) -> list[Record]:
    return [record for record in pair if record is not None and record.is_inside]


# The decision, by images that are made here.

Image = tuple[str, Record]
BEGINNINGS: list[Pair] = [
    *itertools.product(*([None, Record(name), Record(name, is_inside=False)] for name in OWN)),
    (Record("b"), Record("b")),
    (Record("b"), Record("b", is_inside=False)),
]


def images_of(before: Pair, after: Pair, *, is_restored: bool = False, is_whole: bool = False) -> list[Image]:
    """The feed's images of a version, as the condition of a slice lets them through. ``is_restored``: whether rows were
    put back, ``is_whole`` with files that hold the other rows too.
    """
    images = []
    for was, now in zip(before, after, strict=True):
        if was == now and not is_whole:
            continue
        is_update = was is not None and now is not None and not is_restored
        kinds = ("update_preimage", "update_postimage") if is_update else ("delete", "insert")
        images += [(kind, row) for kind, row in zip(kinds, (was, now), strict=True) if row and row.is_inside]
    return images


def continued(
    tables: list[Pair], versions: list[list[Image]], most: int
) -> Iterator[tuple[list[Pair], list[list[Image]]]]:
    """The ways that a pair can go on in up to so many acts, one of which may take it back to what it was before."""
    yield tables, versions
    if most == 0:
        return
    now = tables[-1]
    found = [(after, images_of(now, after)) for after in steps_from(now)]
    for before in {*tables} - {now}:
        found += [(before, images_of(now, before, is_restored=True, is_whole=whole)) for whole in (False, True)]
    for after, images in found:
        yield from continued([*tables, after], [*versions, images], most - 1)


@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.long)])
def test_what_a_feed_says_of_an_id_is_what_the_table_has(spark: Any, most: int):
    """Every history of up to so many acts. An id that the feed does not decide is looked up in the table, which is
    right by itself; one act alone is decided.
    """
    feed, state, truth, plain = [], [], {}, {}
    found = (history for begin in BEGINNINGS for history in continued([begin], [], most))
    for number, (tables, versions) in enumerate(found):
        feed += [
            (f"{number} {row.id}", str(row.edits), kind, version)
            for version, images in enumerate(versions)
            for kind, row in images
        ]
        for name in {row.id for images in versions for _, row in images}:
            key, copies = f"{number} {name}", [row.id for row in inside(tables[0])].count(name)
            truth[key] = [str(row.edits) for row in inside(tables[-1]) if row.id == name]
            # A record that a scan could not see leave still stands.
            if copies or number % 2:
                state.append((key, *((QUARANTINED, DUPLICATE_ID) if copies > 1 else (RELEASED, None))))
            if len(versions) == 1 and (copies or not number % 2) and copies + len(truth[key]) < 3:
                plain[key] = "single" if truth[key] else "gone"
    images = as_frame(spark, ("id", "body", "_change_type", "_commit_version"), feed)
    named = changes._count_images(images, "id")
    known = as_frame(spark, ("__id", "status", "reason"), state)
    single, gone, unclear = changes._sort_out(named, known, is_alone=True)
    fetched = changes._fetch_rows(images, single, "id", len(truth)).select("id", "body").collect()
    gone, unclear = ({row["__id"] for row in ids.collect()} for ids in (gone, unclear))
    assert len(truth) == len(fetched) + len(gone) + len(unclear)
    assert all(truth[row.id] == [row.body] for row in fetched)
    assert not any(truth[name] for name in gone)
    decided = {**{row.id: "single" for row in fetched}, **dict.fromkeys(gone, "gone")}
    assert {name: decided.get(name) for name in plain} == plain
    assert set(plain.values()) == {"single", "gone"}


def as_frame(spark: Any, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return from_arrow(spark, pa.table(columns)).repartition(2).cache()


# The whole way, on real Delta.

MERGE = """
MERGE INTO {input} AS t USING steps AS s ON t.row = s.row
WHEN MATCHED AND s.id IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET id = s.id, body = s.body, lang = s.lang
WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT *
"""


def as_rows(pairs: list[Pair]) -> pa.Table:
    """What pairs hold, each with ids of its own; an id that is null where a record is gone."""
    rows = []
    for number, which in itertools.product(range(len(pairs)), (0, 1)):
        row = pairs[number][which]
        body = f"{WORDS[which]} {WORDS[row.edits]}" if row else None
        name, language = (f"{number}{row.id}", "en" if row.is_inside else "de") if row else (None, None)
        rows.append({"id": name, "body": body, "day": "d", "lang": language, "row": 2 * number + which})
    return pa.Table.from_pylist(rows)


def results(lake: Lake) -> tuple[list[Any], ...]:
    """Draws, ledger and a public table, but for the runs' names and why a record is said to have left."""
    draws = [
        ("gone" if row["reason"] in (ABSENT, DELETED) else row["reason"], *(row[name] for name in COMPARED))
        for row in lake.draws()
    ]
    entries = [sorted((name, str(value)) for name, value in row.items() if name != "run_id") for row in lake.entries()]
    public = [(row["id"], row["text"]) for row in lake.rows(lake.public)] if lake.public.exists() else []
    return sorted(draws, key=str), sorted(entries), sorted(public)


COMPARED = ("id", "status", "text", "content_tag", "__seq")


@pytest.mark.long
@pytest.mark.parametrize("acts", [2, 4])
def test_nights_by_feed_and_by_scan_leave_the_same_release(spark: Any, tmp_path: Path, acts: int):
    """Pairs with all their histories side by side in one table; long ones end with the whole table as it was at first.
    The scan reads a table of what is in the slice.
    """
    ways: list[list[Pair]] = [[begin] for begin in BEGINNINGS]
    for _ in range(acts):
        ways = [[*way, after] for way in ways for after in steps_from(way[-1])]
    lakes = []
    for name in ("feed", "scan"):
        (tmp_path / name).mkdir()
        lakes.append(Lake(spark, Workspace(tmp_path / name)))
    feed, scan = lakes
    config = feed.config(input={"changes": "feed", "where": "lang = 'en'", "keep": ["lang"]})

    def run(pairs: list[Pair]) -> None:
        rows = [row for row in as_rows(pairs).to_pylist() if row["lang"] == "en"]
        scan.write(pa.Table.from_pylist(rows), mode="overwrite")
        found = feed.run(config), scan.run(full_snapshot=True)
        counts = [(report.records, report.released, report.quarantined, report.withdrawn) for report in found]
        assert counts[0] == counts[1]

    first = [way[0] for way in ways]
    feed.write(pa.Table.from_pylist([row for row in as_rows(first).to_pylist() if row["id"] is not None]))
    run(first)
    for step in range(1, acts + 1):
        from_arrow(spark, as_rows([way[step] for way in ways])).createOrReplaceTempView("steps")
        feed.sql(MERGE)
        if step % 2 == 0:
            run([way[step] for way in ways])
    if acts > 2:
        feed.sql("RESTORE TABLE {input} TO VERSION AS OF 0")
        run(first)
        # A publication follows its draws, whatever night has made them.
        feed.release(config)
        scan.release()
    assert results(feed) == results(scan)
    assert len(feed.draws()) > len(ways)


@pytest.mark.long
def test_a_record_that_moves_between_slices_stays_released(spark: Any, workspace: Workspace):
    """Whichever slice is read first, with the text that it has where it is now; one that no slice holds leaves."""
    lake = Lake(spark, workspace)
    config = lake.config(input={"where": "day = :day -- one day", "changes": "feed"})

    def run(day: str) -> tuple[int, int]:
        report = lake.run(config, params={"day": day})
        return report.records, report.withdrawn

    def texts() -> dict[str, str | None]:
        return {name: row["text"] for name, row in lake.newest().items()}

    days = {"early": "20", "gone": "20", "late": "21", "came": "19", "stays": "21"}
    lake.write(pa.table({"id": [*days], "body": [f"{WORDS[0]} {name}" for name in days], "day": [*days.values()]}))
    assert (run("20"), run("21")) == ((2, 0), (2, 0))
    before, spent = texts(), lake.spent()
    # One moves to the slice that is read first, another one leaves it.
    lake.update("id = 'early'", day="21", body=f"{WORDS[1]} {WORDS[2]}")
    lake.update("id = 'late'", day="20", body=f"{WORDS[1]} {WORDS[2]}")
    lake.update("id = 'came'", day="20")
    lake.delete("id = 'gone'")
    run("21")
    moved = {name: texts()[name] for name in ("early", "late")}
    assert all(moved[name] not in (None, before[name]) for name in moved)
    run("20")
    assert {name for name, text in texts().items() if text is None} == {"gone"}
    assert texts() == {**texts(), **moved, "stays": before["stays"]}
    inside = {"early": "21", "late": "20", "came": "20", "stays": "21"}
    assert {name: row["day"] for name, row in lake.newest().items() if name != "gone"} == inside
    once = spent["early"]
    assert lake.spent() == {**spent, "early": 2 * once, "late": 2 * once, "came": once}


@pytest.mark.long
def test_records_without_an_id_count_where_there_are_more(spark: Any, workspace: Workspace):
    """An id that is given up for none leaves, and its record is refused; an edit of such a record is nothing new."""
    lake = Lake(spark, workspace)
    config = lake.config(input={"changes": "feed"})
    lake.write(pa.table({"id": ["a", "b", None], "body": ["x", "y", "z"], "day": ["d"] * 3}))
    lake.run(config)
    lake.update("id IS NULL", body="other")
    lake.sql("UPDATE {input} SET id = NULL WHERE id = 'a'")
    report = lake.run(config)
    assert (report.quarantined, report.withdrawn) == ({"null_id": 1}, 1)
