"""What must not get out does not: raw text and key bytes in outputs, logs, event logs, plans, scratch and error
messages.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from support.open_nights import WORD
from support.workspaces import WORDS, Workspace, clean_environment
from wordveil.crypto.keys import load_key
from wordveil.spark.sanitise.job import run_sanitise

CANARIES = [f"zqxcanary{letter}zqx" for letter in "abcdefgh"]
TESTS = Path(__file__).parents[1]
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
    return pa.table({"id": ids, "body": pa.array(raw, pa.binary()), "day": ["d"] * len(ids)})


def secret_forms(release: str, workspace: Workspace) -> list[bytes]:
    """The master key and the release's subkeys, raw and as people write them down."""
    master = load_key(str(workspace.root / "key"), None)
    keys = master.for_release(release)
    raw = [
        bytes.fromhex(KEY),
        *(getattr(keys, name).reveal() for name in ("context", "noise", "sampling", "shuffle", "tag")),
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
    return [canary.encode() for canary in (*CANARIES, UNICODE_CANARY)]


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.write_key("key", KEY)
    workspace.write_corpus(canary_corpus())
    return workspace


TEXTS = {"strict": {"profile": "strict", "n_max": 12}, "readable": {"profile": "readable"}}


@pytest.mark.parametrize(
    "kinds", [("jobs", "feed", "refused"), pytest.param(("slice", "scan", "full", "stream"), marks=pytest.mark.long)]
)
def test_jobs_and_nights_in_the_open_leak_nothing(filled: Workspace, kinds: tuple[str, ...]):
    """In a session of their own without encryption: jobs with all that can be printed, at debug level, and nights of
    each kind, first and later. Ids are in scratch, so that a word would be found there.
    """
    output = filled.root / "output"
    for name, text in TEXTS.items():
        filled.write_config(f"{name}.yaml", text=text, output={"path": str(output / name)}, input={"max_bytes": 2000})
    environment = {**clean_environment(), "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "support.open_nights", str(filled.root), *kinds]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    needles = [*text_needles(), WORD.encode(), *secret_forms("tests", filled)]
    assert found_in(done.stdout + done.stderr, needles) == []
    found = json.loads(done.stdout.splitlines()[-1])
    refusal = found.pop("message", None)
    assert {kind: left["words"] for kind, left in found.items()} == {kind: [] for kind in kinds}
    assert all(found[kind]["ids"] for kind in kinds if kind not in ("jobs", "refused"))
    if "jobs" not in kinds:
        return
    assert done.stderr.count(b"\nDEBUG ") > 1000  # the log is really on
    assert b" wordveil.spark.input.source: opened input " in done.stderr
    places = [filled.root / "events", *(output / name for name in TEXTS)]
    assert all(map(files_below, places))
    for path in [file for place in (*places, filled.root / "bundles") for file in files_below(place)]:
        assert found_in(path.read_bytes(), needles) == [], path
    place = f"input.path = {filled.root / 'refused' / 'input'}"
    assert refusal.startswith(f"{place}: the table's log has the least and greatest texts of its files")
    assert "'delta.dataSkippingStatsColumns'" in refusal


def test_the_plan_names_columns_only(spark, filled: Workspace, capfd):
    from wordveil.assembly.bundles import ready_bundle
    from wordveil.records.sanitiser import RecordSettings
    from wordveil.spark.input.screening import screen_input
    from wordveil.spark.input.source import open_input
    from wordveil.spark.sanitise.distribution import distribute
    from wordveil.spark.sanitise.job import sanitise_records
    from wordveil.spark.sanitise.worker import Sanitise

    config = filled.config()
    bundle = ready_bundle(config)
    place = distribute(spark, bundle, "auto")
    keys = load_key(config.key.file, None).for_release("tests")
    job = Sanitise(RecordSettings("tests", "run", config.policy, ("day",)), keys, place, bundle.identity)
    frame = sanitise_records(screen_input(open_input(spark, config.source).read(), config.source), job)
    frame.explain(mode="extended")
    plan = capfd.readouterr().out + frame._jdf.queryExecution().toString()
    assert "wordveil_sanitise" in plan
    assert found_in(plan.encode(), [*text_needles(), *secret_forms("tests", filled)]) == []
    configuration = str(spark.sparkContext.getConf().getAll()).encode()
    assert found_in(configuration, secret_forms("tests", filled)) == []


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
    assert found_in(everything, [*text_needles(), *secret_forms("tests", filled)]) == []
    assert not (filled.root / "output").exists()


def test_the_finder_finds():
    """The canary search itself can fail."""
    assert found_in(b"... " + CANARIES[0].upper().encode(), text_needles()) == [CANARIES[0].encode()]
    assert found_in(bytes.fromhex(KEY), [bytes.fromhex(KEY)])
