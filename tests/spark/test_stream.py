"""A release that follows a stream: each batch is a night, and is paid for once, whatever happens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.releases import Lake, die_after
from support.workspaces import Workspace, corpus, write_delta
from wordveil.errors import ConfigError, ReleaseError, SparkJobError
from wordveil.spark.release import stream as stream_of_releases
from wordveil.spark.release.night import Night
from wordveil.spark.release.stream import run_stream


class Stream:
    """A lake whose input comes from a stream, where the text has another name, and a number another type."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.source, self.checkpoint = lake.root / "source", lake.root / "checkpoint"

    def config(self, **stream: Any) -> Any:
        places = {"path": str(self.source), "checkpoint": str(self.checkpoint)}
        source = {"changes": "feed", "rename": {"content": "body"}, "keep": ["note"], "cast": {"note": "bigint"}}
        return self.lake.config(input=source, stream={**places, **stream})

    def arrive(self, count: int, seed: int) -> None:
        """New records in the source, with ids of their own."""
        table = corpus(count, seed).set_column(3, "note", [[str(number) for number in range(count)]])
        ids = [f"s{seed}-{number}" for number in range(count)]
        write_delta(table.set_column(0, "id", [ids]).rename_columns({"body": "content"}), self.source)

    def follow(self, **stream: Any) -> list[Night]:
        nights: list[Night] = []
        run_stream(self.config(**stream), lambda: self.lake.spark, done=nights.append)
        return nights


@pytest.fixture
def stream(spark, workspace: Workspace) -> Iterator[Stream]:
    made = Stream(Lake(spark, workspace))
    made.arrive(4, seed=1)
    yield made
    for query in spark.streams.active:
        query.stop()


def test_stream_batch_is_a_night_and_when_it_dies_is_paid_once(stream: Stream):
    lake = stream.lake
    (first,) = stream.follow()
    assert first.report.released == 4
    assert first.publication is not None
    shutil.copytree(stream.checkpoint, lake.root / "older")
    stream.arrive(3, seed=2)
    # Once its rows have landed and its run is drawn, but not settled.
    with die_after("draws"):
        stream.follow()
    assert lake.reserved() > 0
    (second,) = stream.follow()
    assert second.report.run_id == f"{first.report.run_id.rsplit('-', 1)[0]}-1"
    assert second.publication is not None
    assert len(lake.rows(lake.input)) == len(lake.newest()) == 7
    assert {row["note"] for row in lake.rows(lake.input)} == {0, 1, 2, 3}, "they land as they are read"
    assert lake.reserved() == 0
    assert len(lake.draws()) == 7

    # An older checkpoint, and a source that loses rows, are named.
    newest = stream.checkpoint.rename(lake.root / "newest")
    shutil.copytree(lake.root / "older", stream.checkpoint)
    with pytest.raises(ReleaseError, match=rf"stream\.checkpoint = {stream.checkpoint}: .* Delete the checkpoint"):
        stream.follow()
    shutil.rmtree(stream.checkpoint)
    newest.rename(stream.checkpoint)
    lake.spark.sql(f"DELETE FROM delta.`{stream.source}` WHERE id = 's1-0'")
    with pytest.raises(SparkJobError, match="only appended") as error:
        stream.follow()
    assert "the batch begins again" in str(error.value)
    assert len(lake.draws()) == 7


def test_columns_that_a_source_lacks_are_named(stream: Stream):
    lacking = stream.lake.root / "lacking"
    write_delta(corpus(2).drop_columns(["body"]), lacking)
    with pytest.raises(ConfigError, match=r"input\.rename\.content = body: the table has neither column\."):
        stream.follow(path=str(lacking))


@pytest.mark.long
def test_stream_with_lost_checkpoint_repeats_no_row_and_no_name(stream: Stream, monkeypatch: pytest.MonkeyPatch):
    """Nor do old files of a journal that was compacted stand in the way."""
    lake = stream.lake
    with monkeypatch.context() as patch:
        patch.setattr(stream_of_releases, "_COMPACT_AFTER", 1)
        (first,) = stream.follow()
    detail = lake.spark.sql(f"DESCRIBE DETAIL delta.`{lake.home}/journal`").first()
    assert detail.numFiles == 2, "those of the batch are merged, and compaction adds an event"
    spent = lake.spent()
    shutil.rmtree(stream.checkpoint)
    stream.arrive(2, seed=2)
    (second,) = stream.follow()
    assert second.report.run_id.rsplit("-", 1)[0] != first.report.run_id.rsplit("-", 1)[0]
    assert second.report.released == 2
    assert len(lake.rows(lake.input)) == len(lake.newest()) == 6
    assert {name: tokens for name, tokens in lake.spent().items() if name.startswith("s1-")} == spent


@pytest.mark.long
def test_what_is_put_back_from_a_copy_is_refused(stream: Stream):
    """A checkpoint, source or landing table of another time, with or without new rows, whatever a batch takes. Without
    the checkpoint every row lands once, and no second row of the ledger is paid for.
    """
    lake = stream.lake
    places = {"checkpoint": stream.checkpoint, "source": stream.source, "input": lake.input}
    stream.follow()
    for name, place in places.items():
        shutil.copytree(place, lake.root / "first" / name)
    stream.arrive(2, seed=2)
    stream.arrive(1, seed=3)
    stream.follow()
    spent, landed = lake.spent(), lake.rows(lake.input)
    assert len(landed) == 7

    def put_back(name: str) -> None:
        shutil.rmtree(places[name])
        shutil.copytree(lake.root / "first" / name, places[name])
        lake.forget()

    def refuse(**settings: Any) -> None:
        with pytest.raises(ReleaseError, match=rf"stream\.checkpoint = {stream.checkpoint}: .* Delete the checkpoint"):
            stream.follow(**settings)

    for name, place in places.items():
        shutil.copytree(place, lake.root / "second" / name)
        put_back(name)
        refuse()
        if name == "source":  # with as many commits as have been read, and one more
            stream.arrive(1, seed=7)
            stream.arrive(1, seed=8)
            stream.arrive(1, seed=9)
            refuse()
        shutil.rmtree(place)
        shutil.copytree(lake.root / "second" / name, place)
        lake.forget()
    assert stream.follow() == []

    put_back("checkpoint")
    stream.arrive(2, seed=4)
    refuse()
    refuse(max_files=1)
    assert lake.rows(lake.input) == landed
    shutil.rmtree(stream.checkpoint)
    (last,) = stream.follow()
    assert last.report.released == 2
    assert len(lake.rows(lake.input)) == len({row["id"] for row in lake.rows(lake.input)}) == len(lake.newest()) == 9
    assert {name: tokens for name, tokens in lake.spent().items() if not name.startswith("s4-")} == spent


@pytest.mark.long
def test_a_landing_table_that_was_restored_is_refused(stream: Stream):
    """Delta keeps the number of the last batch, but not its rows. Without the checkpoint they land again."""
    lake = stream.lake
    stream.follow()
    stream.arrive(2, seed=2)
    stream.follow()
    landed = lake.rows(lake.input)
    lake.sql("RESTORE TABLE {input} TO VERSION AS OF 1")
    stream.arrive(1, seed=3)
    for _ in range(2):
        with pytest.raises(ReleaseError, match=r"stream\.checkpoint = .* Delete the checkpoint"):
            stream.follow()
    shutil.rmtree(stream.checkpoint)
    stream.follow()
    stream.arrive(1, seed=4)
    stream.follow()
    names = [row["id"] for row in lake.rows(lake.input)]
    assert len(names) == len({*names}) == len(landed) + 2
    assert {name for name, row in lake.newest().items() if row["status"] == "released"} == {*names}
