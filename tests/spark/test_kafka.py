"""A release that follows a topic of a real broker: each message lands and is paid for once, whatever happens."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import kafka
from support.releases import DiedError, Lake
from support.workspaces import Workspace, corpus
from wordveil.errors import SparkJobError
from wordveil.spark.platform import delta_table
from wordveil.spark.release.night import Night
from wordveil.spark.release.stream import run_stream

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(kafka.missing() is not None, reason=str(kafka.missing())),
]

SECRET = "zxq-secret"
BAD = "zxq unreadable"
MALFORMED = (BAD, None, json.dumps([{"id": "x", "body": BAD}]), json.dumps({"id": "y", "body": BAD, "note": BAD}))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka.serve(tmp_path_factory.mktemp("kafka") / "broker") as address:
        yield address


class Topic:
    """A lake whose input comes from a topic."""

    def __init__(self, lake: Lake, servers: str) -> None:
        self.lake, self.servers = lake, servers
        self.name = lake.root.name
        self.checkpoint = lake.root / "checkpoint"

    def config(self, **stream: Any) -> Any:
        given = {
            "topic": self.name,
            "servers": self.servers,
            "columns": "id STRING, body STRING, day STRING, note BIGINT",
            "checkpoint": str(self.checkpoint),
            # Kafka reads it by SASL alone: here only a place where it could be seen.
            "options_env": {"kafka.sasl.jaas.config": "WORDVEIL_JAAS"},
        }
        return self.lake.config(input={"changes": "feed"}, stream={**given, **stream})

    def send(self, count: int, seed: int, *others: str | None) -> None:
        """New records, with ids of their own, and other messages behind them."""
        rows = [{**row, "id": f"s{seed}-{row['id']}"} for row in corpus(count, seed).to_pylist()]
        kafka.send(self.lake.spark, self.servers, self.name, [*map(json.dumps, rows), *others])

    def follow(self, **stream: Any) -> list[Night]:
        nights: list[Night] = []
        run_stream(self.config(**stream), lambda: self.lake.spark, done=nights.append)
        return nights

    def die(self, moment: str, patch: pytest.MonkeyPatch) -> None:
        """Follow, and die after the commit of this name."""

        def die(step: str) -> None:
            if step == moment:
                raise DiedError

        with patch.context() as patched:
            patched.setattr(delta_table, "after_commit", die)
            with pytest.raises(DiedError):
                self.follow()
        self.lake.forget()


@pytest.fixture
def topic(spark: Any, workspace: Workspace, servers: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Topic]:
    monkeypatch.setenv("WORDVEIL_JAAS", f'x.Login required username="u" password="{SECRET}";')
    yield Topic(Lake(spark, workspace), servers)
    for query in spark.streams.active:
        query.stop()


def test_every_message_lands_and_is_paid_for_once(topic: Topic, monkeypatch: pytest.MonkeyPatch):
    lake = topic.lake
    topic.send(4, 1, *MALFORMED)
    # What was there before the first start is not lost.
    nights = topic.follow(max_rows=6)
    assert len(nights) == 2
    assert sum(night.report.released for night in nights) == 4
    assert sum((Counter(night.report.quarantined) for night in nights), Counter()) == {"malformed": 4}
    assert "presence" in nights[0].report.exposes
    assert topic.follow() == []

    topic.send(3, 2, json.dumps({"body": "no id"}), json.dumps({"id": "no-text"}))
    topic.die("draws", monkeypatch)
    assert lake.reserved() > 0
    (third,) = topic.follow()
    assert third.report.run_id == f"{nights[0].report.run_id.rsplit('-', 1)[0]}-2"
    assert dict(third.report.quarantined) == {"null_id": 1, "null_text": 1}
    topic.send(2, 3)
    topic.die("land", monkeypatch)
    (fourth,) = topic.follow()
    assert fourth.report.released == 2

    # A lost checkpoint brings all messages again. Only the new ones land, one like another malformed one among them.
    spent = lake.spent()
    shutil.rmtree(topic.checkpoint)
    topic.send(2, 4, BAD)
    (fifth,) = topic.follow()
    assert (fifth.report.released, fifth.report.quarantined) == (2, {"malformed": 1})
    assert {name: tokens for name, tokens in lake.spent().items() if not str(name).startswith("s4-")} == spent

    landed = lake.rows(lake.input)
    assert len(landed) == len(lake.draws()) == 11 + 5 + 2
    assert len({row["__message"] for row in landed}) == len(landed)
    assert all(row["body"] is None and row["id"] is None for row in landed if row["__malformed"])
    assert lake.reserved() == 0
    released = [row for row in lake.draws() if row["status"] == "released"]
    assert {row["id"]: row["privacy"]["tokens"] for row in released} == lake.spent()
    again = Lake(lake.spark, lake.workspace)
    again.home, again.ledger = lake.root / "once", lake.root / "once-ledger"
    again.run(again.config())
    assert {name: tokens for name, tokens in again.spent().items() if tokens} == lake.spent()
    assert {row["id"]: row["text"] for row in released} == {
        name: row["text"] for name, row in again.newest().items() if row["status"] == "released"
    }
    events = Path(lake.spark.conf.get("spark.eventLog.dir").removeprefix("file:"))
    log = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert topic.name in log
    assert SECRET not in log
    assert BAD not in log


def test_messages_that_are_gone_stop_the_stream(topic: Topic):
    topic.send(2, 1)
    topic.follow()
    admin = topic.lake.spark._jvm.org.apache.kafka.clients.admin.Admin
    client = admin.create(topic.lake.spark._jvm.java.util.HashMap({"bootstrap.servers": topic.servers}))
    client.deleteTopics([topic.name]).all().get()
    client.close()
    topic.send(1, 2)
    with pytest.raises(SparkJobError) as error:
        topic.follow()
    assert "STREAM_FAILED. Messages that no batch had taken are gone" in str(error.value)
    shutil.rmtree(topic.checkpoint)
    assert [night.report.released for night in topic.follow()] == [1]
    assert len(topic.lake.newest()) == 3


def test_a_broker_that_does_not_answer_is_an_error_of_one_line(topic: Topic):
    topic.send(1, 1)
    with pytest.raises(SparkJobError) as error:
        topic.follow(
            servers="127.0.0.1:9", options={"kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"}
        )
    assert str(error.value).endswith(
        "STREAM_FAILED. Kafka says TimeoutException. Check stream.servers, stream.topic and its options."
    )
