"""Runs over the same ids and quite different texts, under a policy that covers any two texts and refuses none.

What is published is the same of all of them, but for the sanitised words: rows, their order, their files, the manifest.
So is what is internal and has no reason to follow the texts: reports but for the figures in :data:`INTERNAL`, draws,
ledger, journal, and which records a budget refuses. A record is edited in every corpus: in which runs a text changed
shows (``edited``).

The event log has no word of a text, and the same executions, jobs, stages and plans. It stays internal all the same
(docs/threat-model.md): how many tasks read the input, and how many bytes and microseconds they take, follow the sizes
of the texts. Of these the tests ask nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.hostile_texts import HOSTILE, MOST_BYTES, random_texts
from support.releases import EXPONENTIAL, Lake
from support.workspaces import WORDS, Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.assembly.run_report import RunReport
from wordveil.records.schema import STATISTICS
from wordveil.spark.sanitise.job import run_sanitise

RECORDS, AUTHORS, N_MAX = 150, 10, 4
STRICT = {"profile": "strict", "n_max": N_MAX, "refused": "empty"}
INTERNAL = ("words", "unknown", "unknown_rate", "poorly_covered")
"""Of a report, what follows the texts."""
TIMES = ("seconds", "tokens_per_second", "at", "created")
FREE = ("text", "content_tag", *STATISTICS)
"""Columns that follow the texts."""
PLANTED = "zqx"
"""In all texts but the empty ones, and nowhere else."""
Texts = list[bytes | None]


def hostile() -> Texts:
    return [*HOSTILE.values(), *random_texts(RECORDS - len(HOSTILE), 1, [f"{PLANTED}random{PLANTED}"])]


def empty() -> Texts:
    return [None if number % 3 else b"" for number in range(RECORDS)]


def long() -> Texts:
    """Of a few sizes, some beyond the longest text that is read."""
    rng = np.random.default_rng(4)
    sizes = rng.permutation(np.concatenate([[12_500, 12_500, 2000, 2000], np.arange(RECORDS - 4)]))
    return [" ".join([f"{PLANTED}long{PLANTED}", *rng.choice(WORDS, size)]).encode() for size in sizes]


CORPORA: dict[str, tuple[Callable[[], Texts], bytes]] = {
    "empty": (empty, b"cat"),
    "hostile": (hostile, f"{PLANTED}edit{PLANTED} \u00e9t\u00e9 4.2\0".encode()),
    "long": (long, b" ".join(word.encode() for word in WORDS) * 30),
}
"""Texts by name, and what one of them becomes."""
EDITED = "r0120"


def table(texts: Texts) -> pa.Table:
    """Records with these texts; a few ids are unsound."""
    numbers = range(RECORDS)
    ids: list[str | None] = [f"r{number:04d}" for number in numbers]
    ids[10], ids[20] = ids[11], None
    kept = {"day": [f"d{number % 3}" for number in numbers], "author": [f"a{number % AUTHORS}" for number in numbers]}
    return pa.table({"id": ids, "body": pa.array(texts, pa.binary()), **kept})


class EventLog:
    """The events that the session writes down from its making on."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._home = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:"))
        spark.sparkContext.setLocalProperty("spark.job.description", None)
        self._start = len(self._written())

    def content(self) -> bytes:
        return self._written()[self._start :]

    def _written(self) -> bytes:
        self._spark.range(1).collect()  # at the end of a job the log is written out
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        files = [file for file in self._home.rglob("*") if file.is_file() and file.name.startswith("events_")]
        return b"".join(file.read_bytes() for file in sorted(files, key=lambda file: int(file.name.split("_")[1])))


@dataclass(frozen=True)
class Seen:
    """What there is to see after all runs over one corpus."""

    reports: tuple[RunReport, ...]
    files: list[Any]
    tables: Mapping[str, Any]
    log: bytes


@pytest.fixture(scope="module")
def jobs(packed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """The job over each corpus, at the same places."""
    workspace = Workspace(tmp_path_factory.mktemp("jobs"))
    config = workspace.config(
        input={"max_bytes": MOST_BYTES, "keep": ["day", "author"]}, text=STRICT, mechanism=EXPONENTIAL
    )
    build_bundle(config)
    seen = {}
    for name, (texts, _) in CORPORA.items():
        workspace.write_corpus(table(texts()), files=5)
        log = EventLog(packed)
        report = run_sanitise(config, lambda: packed, run_id="run")
        seen[name] = Seen((report,), files_of(workspace.root / "output"), {}, log.content())
        put_aside(workspace.root, name, "corpus", "output")
    return seen


@pytest.fixture(scope="module")
def releases(packed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Two runs, a gate and a publication over two of the corpora, at the same places."""
    workspace = Workspace(tmp_path_factory.mktemp("releases"))
    lake = Lake(packed, workspace)
    sections = {
        "input": {"max_bytes": MOST_BYTES, "author": "author"},
        "text": STRICT,
        "mechanism": EXPONENTIAL,
        "output": {"partition_by": ["day"]},
        "gate": {
            "relation": "any_text",
            "exposes": ["column:day", "edited", "kept_changed", "withdrawn"],
            "min_records": 100,
        },
    }
    cost = N_MAX * build_bundle(lake.config(**sections)).guarantee.pure
    limits = {"unit": "pure", "relation": "any_text", "record": cost, "author": 14 * cost}
    config = lake.config(**sections, budgets=limits)
    seen = {}
    for name in ("hostile", "long"):
        texts, edit = CORPORA[name]
        whole = table(texts())
        for start in range(0, RECORDS, 50):
            lake.write(whole.slice(start, 50))
        log = EventLog(packed)
        first = lake.run(config, run_id="run-1")
        content = log.content()
        lake.sql(f"UPDATE {{input}} SET body = X'{edit.hex()}' WHERE id = '{EDITED}'")
        log = EventLog(packed)
        second = lake.run(config, run_id="run-2")
        lake.release(config)
        content += log.content()
        seen[name] = Seen((first, second), files_of(lake.public), tables_of(lake), content)
        put_aside(workspace.root, name, "input", "release", "ledger")
        lake.forget()
    return seen


def put_aside(root: Path, name: str, *places: str) -> None:
    """Make room for the next corpus."""
    for place in places:
        (root / place).rename(root / f"{place}-of-{name}")


def files_of(path: Path) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Directory, number and rows of each file, but for what follows the texts."""
    found = []
    for file in path.rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        number = re.sub(r"-[0-9a-f]{8}-[-0-9a-f]{27}", "", file.name)
        names = [name for name in rows.column_names if name not in FREE]
        found.append((str(file.parent.relative_to(path)), number, rows.select(names).to_pylist()))
    return sorted(found, key=lambda file: file[:2])


def tables_of(lake: Lake) -> dict[str, Any]:
    """A release's tables and its manifest, but for what follows the texts, times, and names that Delta generates."""
    draws = [{name: value for name, value in row.items() if name not in FREE} for row in lake.draws()]
    entries = [{**row, "content_tag": row["content_tag"] is None} for row in lake.entries()]
    events = [
        {**row, "body": without(json.loads(row["body"])), "at": None}
        for row in sorted(lake.rows(lake.home / "journal"), key=lambda row: row["seq"])
    ]
    manifest = without(json.loads((lake.public / "_manifest.json").read_text())["manifest"])
    manifest["files"] = Counter((str(Path(one["path"]).parent), one["statistics"]) for one in manifest["files"])
    return {
        "draws": sorted(draws, key=str),
        "ledger": sorted(entries, key=str),
        "journal": events,
        "manifest": manifest,
    }


def without(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is neither internal nor a time, nor Delta's name of the input."""
    return {name: value for name, value in values.items() if name not in (*INTERNAL, *TIMES, "source_id", "input")}


def same(seen: Mapping[str, Seen], part: Callable[[Seen], Any]) -> Any:
    """A part that is the same of all corpora."""
    first, *others = map(part, seen.values())
    for other in others:
        assert other == first
    return first


def test_files_and_rows_of_a_job_are_the_same(jobs):
    files = same(jobs, lambda seen: seen.files)
    assert len(files) == 3
    rows = [row for _, _, rows in files for row in rows]
    assert Counter(row["reason"] for row in rows) == {None: RECORDS - 3, "duplicate_id": 2, "null_id": 1}
    assert {row["privacy"]["tokens"] for row in rows if row["reason"] is None} == {N_MAX}


# The releases take a minute more.
KINDS = pytest.mark.parametrize("kind", ["jobs", pytest.param("releases", marks=pytest.mark.long)])


@KINDS
def test_reports_are_the_same_but_for_internal_figures(request: pytest.FixtureRequest, kind: str):
    seen = request.getfixturevalue(kind)
    same(seen, lambda one: [without(report.to_dict()) for report in one.reports])
    for name in INTERNAL:
        assert len({one.reports[0].to_dict()[name] for one in seen.values()}) > 1, name


@pytest.mark.long
def test_a_public_tables_files_and_rows_are_the_same(releases):
    """Whatever the sizes of the texts, and in whichever run a record was edited."""
    files = same(releases, lambda seen: seen.files)
    assert {directory for directory, _, _ in files} == {"day=d0", "day=d1", "day=d2"}
    assert len(files) > 3, "several files of a directory, so that their order could follow the texts"
    ids = [row["id"] for _, _, rows in files for row in rows]
    assert EDITED not in ids
    assert "r0119" in ids


@pytest.mark.long
@pytest.mark.parametrize("name", ["draws", "ledger", "journal", "manifest"])
def test_a_releases_tables_are_the_same(releases, name: str):
    assert same(releases, lambda seen: seen.tables[name])


@pytest.mark.long
def test_budgets_refuse_the_same_records(releases):
    """The last record of each author that has more than the limit allows, and the one that was edited."""
    first, second = same(releases, lambda seen: [report.quarantined for report in seen.reports])
    assert first == {"duplicate_id": 2, "null_id": 1, "over_author_budget": 8}
    assert second == {"over_record_budget": 1}
    draws = same(releases, lambda seen: seen.tables["draws"])
    assert [row["id"] for row in draws if row["reason"] == "over_record_budget"] == [EDITED]
    assert sum(entry["spent_tokens"] for entry in same(releases, lambda seen: seen.tables["ledger"])) == N_MAX * (
        RECORDS - 11
    )


_NAMES = (
    (r"#\d+L?", "#"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[-0-9a-f]{22}", "UUID"),
    (r"plan_id=\d+", "plan_id"),
    (r"_common_expr_\d+", "_common_expr"),
    (r"(?<=lambda [a-z])_\d+", ""),
    (r"RDD\[\d+\]", "RDD"),
    (r"\$\$Lambda[^@]*@[0-9a-f]+|(?<=[a-z])@[0-9a-f]+", "@"),
    (r"(?<=wordveil-run-)[0-9a-f]+", "DRAFT"),
    (r"(?m)(?<=(?:#|s)\]), \d+$", ""),
    (r"(?<=usermetadata=)\w+", "TOKEN"),
    # Java names the caller until it has compiled the call.
    (r"(NativeMethodAccessorImpl\.java|<unknown>):0", "caller"),
    # Which of the files comes first follows from the names that Delta generates; how many there are stays.
    (r"(?<=InMemoryFileIndex \[)\S+", "file,"),
    (r"Statistics\([^)]*\)", "Statistics"),
)


def plain(text: str) -> str:
    """A plan or a description without names and numbers that Spark generates, and without sizes."""
    for pattern, name in _NAMES:
        text = re.sub(pattern, name, text)
    return text


@cache
def structure(log: bytes) -> dict[str, list[Any]]:
    """Of each kind of event what does not follow sizes and times, executions and plans in order. Spark may begin two
    stages of one plan at once.
    """
    found: dict[str, list[Any]] = {"executions": [], "plans": [], "jobs": [], "stages": []}
    for event in map(json.loads, log.splitlines()):
        kind = event["Event"].rsplit(".", 1)[-1]
        if kind == "SparkListenerSQLExecutionStart":
            found["executions"].append(plain(event["description"]))
            found["plans"].append(plain(event["physicalPlanDescription"]))
        elif kind == "SparkListenerJobStart":
            found["jobs"].append((len(event["Stage Infos"]), str(event["Properties"].get("spark.job.description"))))
        elif kind == "SparkListenerStageSubmitted":
            stage = event["Stage Info"]
            reads = any("FileScanRDD" in layer["Name"] for layer in stage["RDD Info"])
            found["stages"].append((plain(stage["Stage Name"]), None if reads else stage["Number of Tasks"]))
    return {**found, "jobs": sorted(found["jobs"]), "stages": sorted(found["stages"], key=str)}


@pytest.mark.parametrize("part", ["executions", "plans", "jobs", "stages"])
@KINDS
def test_event_logs_have_the_same_structure(request: pytest.FixtureRequest, kind: str, part: str):
    assert same(request.getfixturevalue(kind), lambda seen: structure(seen.log)[part])


@KINDS
def test_event_logs_have_no_text(request: pytest.FixtureRequest, kind: str):
    for name, seen in request.getfixturevalue(kind).items():
        assert b"wordveil_sanitise" in seen.log
        lower = seen.log.lower()
        assert PLANTED.encode() not in lower
        assert [beginning for beginning in beginnings(CORPORA[name][0]()) if beginning.lower() in lower] == []


def beginnings(texts: Texts) -> set[bytes]:
    """How texts begin, as they are and as JSON has them, where that is too long to occur by chance."""
    readable = [text.decode(errors="replace") for text in texts if text is not None]
    forms = {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1][:40].encode()
        for text in readable
        for ascii_only in (True, False)
    }
    return {form for form in forms if len(form) >= 12}


def test_the_finder_finds():
    """In an event, whichever way it was written."""
    for ascii_only in (True, False):
        event = json.dumps({"plan": 'caf\u00e9 \u6f22\u5b57 said "the cat"\n'}, ensure_ascii=ascii_only).encode()
        assert any(form in event for form in beginnings(['caf\u00e9 \u6f22\u5b57 said "the cat"\n'.encode()]))
