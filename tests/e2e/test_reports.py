"""What a scheduler reads of a command: the file of --report, whatever becomes of the command; and the analytics of a
published table.
"""

from __future__ import annotations

import json
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from releasing import Lake, corpus_with_authors
from sparking import Workspace, delta_jars, write_delta
from wordveil.cli.app import main
from wordveil.cli.report_file import local_path, write_report
from wordveil.errors import ConfigError, InputError, OutdatedGateError, SparkJobError
from wordveil.spark.analytics import analyse
from wordveil.spark.platform.filesystem import replace_file
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import publish

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Iterator[Run]:
    """A command in the session that is there: its exit code and its report."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def command(*arguments: object) -> tuple[int, dict[str, Any]]:
        place = tmp_path / "reports" / "report.json"
        with pytest.raises(SystemExit) as left:
            main([*map(str, arguments), "--report", str(place)])
        assert [path.name for path in place.parent.iterdir()] == ["report.json"], "no draft is left"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        return int(left.value.code or 0), json.loads(place.read_text())

    yield command
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Lake:
    """A release that has not run, over 12 records."""
    found = Lake(spark, workspace)
    found.write(corpus_with_authors(12))
    return found


def write_config(lake: Lake, **sections: Any) -> Path:
    base: dict[str, Any] = {
        "release": "support",
        "input": {"path": str(lake.input), "format": "delta", "author": "author"},
        "output": {"path": str(lake.home), "format": "delta"},
        "ledger": {"path": str(lake.ledger)},
    }
    merged = {name: {**base.get(name, {}), **value} for name, value in sections.items()}
    settings = lake.workspace.settings(**{**base, **merged})
    path = lake.root / "release.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def test_each_command_of_a_night_reports(lake: Lake, run: Run):
    config = write_config(lake, input={"where": "day = :ds"}, gate={"min_records": 100})
    code, report = run("plan", "-c", config, "--param", "ds=none", "--has-records")
    assert (code, report["exit_code"], report["command"]) == (0, 0, "plan")
    assert report["result"]["has_records"] is False
    assert report["result"]["output_format"] == "delta"
    assert run("plan", "-c", config, "--param", "ds=d1", "--has-records")[1]["result"]["has_records"] is True
    assert run("plan", "-c", config, "--param", "ds=d1")[1]["result"]["has_records"] is None

    code, report = run("sanitise", "-c", config, "--param", "ds=d1", "--run-id", "night-1")
    assert (code, report["result"]["run_id"], report["result"]["records"]) == (0, "night-1", 4)
    code, report = run("release", "gate", "-c", config)
    assert (code, report["exit_code"], report["error"]["type"]) == (3, 3, "GateError")
    assert report["result"]["passed"] is False
    assert "did not pass: min_records" in report["error"]["message"]
    code, report = run("release", "publish", "-c", config)
    assert (code, report["error"]["type"]) == (9, "ReleaseError")
    assert "result" not in report

    config = write_config(lake, input={"where": "day = :ds"}, gate={"min_records": 1})
    assert run("release", "gate", "-c", config)[1]["result"]["passed"] is True
    code, report = run("release", "publish", "-c", config)
    made = report["result"]
    assert (code, made["table"], made["manifest_path"]) == (0, str(lake.public), f"{lake.public}/_manifest.json")
    code, report = run("release", "verify", "--table", lake.public, "--delta-jars", delta_jars())
    assert code == 0
    assert report["result"]["manifest_sha256"] == made["manifest_sha256"]
    assert report["result"]["public_version"] == made["manifest"]["public_version"]

    code, report = run("plan", "-c", config, "--set", "releas=x")
    assert (code, report["exit_code"]) == (2, 2)
    assert report["error"]["faults"][0]["where"] == "releas"


def test_a_publication_after_the_draws_have_moved_on_says_so(lake: Lake):
    lake.run()
    assert run_gate(lake.config(), lambda: lake.spark).result.passed
    lake.write(corpus_with_authors(14).slice(12))
    lake.run()
    with pytest.raises(OutdatedGateError, match="the gate has seen"):
        publish(lake.config(), lambda: lake.spark)


def test_a_report_that_cannot_be_written_is_told_before_anything_is_done(tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = []
    with (
        pytest.raises(ConfigError, match=r"--report = .*file/report\.json: cannot be written"),
        write_report("plan", f"{tmp_path}/file/report.json"),
    ):
        done.append(True)
    assert not done


def test_an_error_of_ours_is_reported_without_its_message(tmp_path: Path):
    place = tmp_path / "report.json"
    place.write_text("an old one")
    for error, code in ((ValueError("a secret text"), 1), (SystemExit(143), 143), (SparkJobError("it failed"), 8)):
        with pytest.raises(type(error)), write_report("sanitise", f"file://{place}"):
            assert not place.exists(), "a report of an earlier run is never taken for this one's"
            raise error
        report = json.loads(place.read_text())
        assert report["exit_code"] == code
        assert "secret" not in place.read_text()
    assert report["error"]["message"] == "it failed"
    assert local_path("s3a://bucket/report.json") is None
    assert local_path("file:///a%20b") == Path("/a b")


def test_a_report_elsewhere_is_written_through_spark(spark: Any, tmp_path: Path):
    place = tmp_path / "report.json"
    for text in ("one", "another"):
        replace_file(str(place), text)
        assert place.read_text() == text
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json" and not path.name.startswith(".")] == [
        "report.json"
    ]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "of").write_text("")
    with pytest.raises(ConfigError, match=r"--report = .*full/of/report: cannot be written"):
        replace_file(f"{tmp_path}/full/of/report", "x")


def test_terms_and_topics_of_a_table(spark: Any, tmp_path: Path):
    texts = [
        "The cat sat. A cat's cat!",
        "cat dog DOG",
        "river bank river",
        "bank river",
        None,
        "of the and",
        "únique Ünder",
    ]
    place, output = tmp_path / "table", str(tmp_path / "out")
    write_delta(spark, pa.table({"id": list(map(str, range(7))), "text": pa.array(texts, pa.string())}), place)
    write_delta(spark, pa.table({"id": ["9"], "text": ["later later"]}), place)
    found = analyse(spark, str(place), output, version=0, topics=2, shown=3, stop_words=("the", "a", "of", "and"))
    terms = {
        row.term: (row["count"], row.documents) for row in spark.read.format("delta").load(f"{output}/terms").collect()
    }
    assert terms == {"cat": (3, 2), "river": (3, 2), "bank": (2, 2)}
    assert (found.records, found.documents, found.terms, found.occurrences, found.public_version) == (7, 5, 3, 8, 0)
    rows = spark.read.format("delta").load(f"{output}/topics").collect()
    assert Counter(row.topic for row in rows) == {0: 3, 1: 3}
    assert {row.term for row in rows} == set(terms)
    assert len(found.topics) == 2

    again = analyse(spark, str(place), output, topics=2, min_documents=1)
    assert again.records == 8
    assert {row.public_version for row in spark.read.format("delta").load(f"{output}/terms").collect()} == {1}
    nothing = analyse(spark, str(place), output, min_documents=9)
    assert (nothing.terms, nothing.topics) == (0, ())
    assert spark.read.format("delta").load(f"{output}/topics").count() == 0

    with pytest.raises(InputError, match=r"--text = body: the table has no such column\. It has: id, text\."):
        analyse(spark, str(place), output, text="body")
    with pytest.raises(InputError, match="is no Delta table"):
        analyse(spark, str(tmp_path / "none"), output)
    with pytest.raises(InputError, match="version 7"):
        analyse(spark, str(place), output, version=7)
    with pytest.raises(ConfigError, match="is the table, inside it or above it"):
        analyse(spark, str(place), f"{place}/out")
