"""What must not get out does not: raw text and key bytes in outputs, logs, event logs, plans, scratch and error
messages.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
import pytest

from support.open_nights import WORD
from support.workspaces import WORDS, Workspace, clean_environment, random_texts
from wordveil.crypto.keys import load_key
from wordveil.spark.sanitise.job import run_sanitise

CANARIES = [f"zqxcanary{letter}zqx" for letter in "abcdefgh"]
TESTS = Path(__file__).parents[1]
CUSTOMER = "zqxcustomerzqx"
PSEUDONYM = {"column": "who", "as": "pseudonym"}
UNICODE_CANARY = "zqxкоманданte"
KEY = os.urandom(32).hex()


def canary_corpus() -> pa.Table:
    """Unknown words in records that are released, and in records of each kind of refusal."""
    a, b, c, d, e, f, g, h = CANARIES
    bodies = [
        f"{WORDS[0]} {a} {WORDS[1]} {UNICODE_CANARY}",
        f"{b} first copy",
        f"{c} second copy",
        f"{d} ".encode() + b"\xff\xfe",
        f"{e} " * 400,
        f"{f} without an id",
        f"{g} {'日本語' * 9}",
        f"{h.upper()}, said {WORDS[2]}!",
    ]
    ids = ["r0", "twin", "twin", "r3", "r4", None, "r6", "r7"]
    raw = [body if isinstance(body, bytes) else body.encode() for body in bodies]
    columns = {"body": pa.array(raw, pa.binary()), "day": ["d"] * len(ids), "who": [CUSTOMER] * len(ids)}
    return pa.table({"id": ids, **columns})


def secret_forms(release: str, root: Path) -> list[bytes]:
    """The master key and the release's subkeys, raw and as people write them down."""
    master = load_key(str(root / "key"), None)
    keys = master.for_release(release)
    raw = [
        bytes.fromhex(KEY),
        *(getattr(keys, field.name).reveal() for field in fields(keys) if field.name != "layout"),
    ]
    return [
        form
        for key in raw
        for form in (key, key.hex().encode(), base64.b64encode(key).rstrip(b"="), repr(key)[2:-1].encode())
    ]


def found_in(content: bytes, needles: list[bytes]) -> list[bytes]:
    lower = content.lower()
    return [needle for needle in needles if needle in content or needle.lower() in lower]


def text_needles() -> list[bytes]:
    return [canary.encode() for canary in (*CANARIES, UNICODE_CANARY, CUSTOMER)]


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def fill(workspace: Workspace) -> Workspace:
    workspace.write_key("key", KEY)
    workspace.write_corpus(canary_corpus())
    return workspace


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    return fill(workspace)


TEXTS = {"strict": {"profile": "strict", "n_max": 12}, "readable": {"profile": "readable"}}


@dataclass(frozen=True)
class Opened:
    """What jobs and nights left that ran in a session of their own without encryption."""

    root: Path
    code: int
    out: bytes
    err: bytes


def run_openly(workspace: Workspace, *kinds: str) -> Opened:
    """Run them. A job that was begun last is terminated once its draft is being written."""
    root = workspace.root
    environment = {**clean_environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "support.open_nights", str(root), *kinds]
    with (root / "out").open("wb") as out, (root / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        while process.poll() is None and not list(root.glob(".killed.wordveil-*/_temporary")):
            time.sleep(0.1)
        process.terminate()
        code = process.wait(60)
        deadline = time.monotonic() + 60
        while list(root.rglob("events/*/*.inprogress")) and time.monotonic() < deadline:
            time.sleep(0.1)  # Java ends later
        return Opened(root, code, (root / "out").read_bytes(), (root / "err").read_bytes())


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Jobs with all that can be printed, at debug level; nights; and a job with work for many seconds."""
    workspace = fill(Workspace(tmp_path_factory.mktemp("opened")))
    root = workspace.root
    for name, text in TEXTS.items():
        output = {"path": str(root / "output" / name)}
        columns = {"max_bytes": 2000, "keep": ["day", PSEUDONYM]}
        workspace.write_config(f"job-{name}.yaml", text=text, output=output, input=columns)
    texts = [" ".join(random_texts(100))] * 1000
    long = workspace.write_corpus(pa.table({"id": list(range(1000)), "body": texts, "day": ["d"] * 1000}), "long", 8)
    text = {"profile": "strict", "n_max": 2000}
    output = {"path": str(root / "killed")}
    workspace.write_config("killed.yaml", input={"path": str(long)}, text=text, output=output)
    return run_openly(workspace, "jobs", "feed", "refused", "killed")


def test_a_killed_job_leaves_no_output_and_no_draft(opened: Opened):
    assert opened.code == 128 + signal.SIGTERM, opened.err[-2000:]
    assert not (opened.root / "killed").exists()
    assert not list(opened.root.glob(".killed*"))


def check_scratch(opened: Opened, kinds: list[str]) -> str:
    """No word is in scratch, where ids are, so that a word would be found. Returns what else was said."""
    found = json.loads(opened.out.splitlines()[-1])
    message = found.pop("message", "")
    assert {kind: left["words"] for kind, left in found.items()} == {kind: [] for kind in kinds}
    assert all(found[kind]["ids"] for kind in kinds if kind not in ("jobs", "refused"))
    return message


def test_jobs_and_nights_in_the_open_leak_nothing(opened: Opened):
    refusal = check_scratch(opened, ["jobs", "feed", "refused"])
    place = f"input.path = {opened.root / 'refused' / 'input'}"
    assert refusal.startswith(f"{place}: the table's log has the least and greatest texts of its files")
    assert "'delta.dataSkippingStatsColumns'" in refusal
    assert opened.err.count(b"\nDEBUG ") > 1000  # the log is really on
    assert b" wordveil.spark.input.source: opened input " in opened.err
    needles = [*text_needles(), WORD.encode(), *secret_forms("tests", opened.root)]
    assert found_in(opened.out + opened.err, needles) == []
    places = [opened.root / "events", *(opened.root / "output" / name for name in TEXTS)]
    assert all(map(files_below, places))
    for path in [file for place in (*places, opened.root / "bundles") for file in files_below(place)]:
        assert found_in(path.read_bytes(), needles) == [], path


@pytest.mark.long
def test_nights_of_other_kinds_leave_no_text_in_scratch(workspace: Workspace):
    kinds = ["slice", "scan", "full", "stream"]
    opened = run_openly(workspace, *kinds)
    assert opened.code == 0, opened.err[-2000:]
    check_scratch(opened, kinds)


def test_the_plan_names_columns_only(spark, filled: Workspace, capfd):
    from wordveil.assembly.bundles import ready_bundle
    from wordveil.spark.input.screening import screen_input
    from wordveil.spark.input.source import open_input
    from wordveil.spark.sanitise.distribution import distribute
    from wordveil.spark.sanitise.job import sanitise_records
    from wordveil.spark.sanitise.worker import Sanitise

    config = filled.config(input={"keep": ["day", PSEUDONYM]})
    bundle = ready_bundle(config)
    place = distribute(spark, bundle, "auto")
    keys = load_key(config.key.file, None).for_release("tests")
    job = Sanitise(config.record_settings("run"), keys, place, bundle.identity)
    frame = sanitise_records(screen_input(open_input(spark, config.source).read(), config.source), job)
    frame.explain(mode="extended")
    plan = capfd.readouterr().out + frame._jdf.queryExecution().toString()
    assert "wordveil_sanitise" in plan
    assert found_in(plan.encode(), [*text_needles(), *secret_forms("tests", filled.root)]) == []
    configuration = str(spark.sparkContext.getConf().getAll()).encode()
    assert found_in(configuration, secret_forms("tests", filled.root)) == []


def test_an_error_inside_a_worker_tells_its_place_and_no_text(spark, filled: Workspace, capfd, monkeypatch):
    """The failure is made where a library could quote the record: in the tokeniser, by an environment of the worker."""
    import wordveil.spark.sanitise.job as module
    from wordveil.errors import SparkJobError

    real = module.sanitise_records

    def poisoned(records, job):
        from pyspark.sql import functions as F

        broken = records.withColumn("__text", F.expr("cast(concat(cast(__text as binary), X'FFFE') as string)"))
        return real(broken, job)

    monkeypatch.setattr(module, "sanitise_records", poisoned)
    with pytest.raises(SparkJobError) as error:
        run_sanitise(filled.config(), lambda: spark)
    assert "tokeniser.py" in str(error.value)
    output = capfd.readouterr()
    everything = (str(error.value) + output.out + output.err).encode()
    assert found_in(everything, [*text_needles(), *secret_forms("tests", filled.root)]) == []
    assert not (filled.root / "output").exists()


def test_the_finder_finds():
    """The canary search itself can fail."""
    assert found_in(b"... " + CANARIES[0].upper().encode(), text_needles()) == [CANARIES[0].encode()]
    assert found_in(bytes.fromhex(KEY), [bytes.fromhex(KEY)])
