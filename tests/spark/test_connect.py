"""A session of Spark Connect gives the rows of a classic one, reads its records, and serves nothing else. Another
machine's server is reached by TLS alone.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support import connect
from support.workspaces import Workspace, clean_environment, corpus
from wordveil import Run, sanitise
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import ConfigError
from wordveil.spark.platform.versions import to_arrow

pytest.importorskip("grpc", reason="the extra connect is not installed")
POLICY = {"profile": "strict", "n_max": 24}
SECRET = "HIV positive"


CLIENT = """
import json, secrets, shutil, sys
from pathlib import Path
from pyspark.sql import SparkSession
import wordveil
from wordveil import Run, register, sanitise
from wordveil.crypto.keys import Secret
from wordveil.errors import WordveilError
from wordveil.spark.platform.connect import _archives
from wordveil.spark.platform.errors import describe_cause
from wordveil.spark.sanitise import distribution, frames

beside, unencrypted, encrypted, *places, policy = sys.argv[1:]
root, bundle, policy = *map(Path, places), json.loads(policy)
run = Run.recorded(
    release="tests", run_log_dir=f"{root}/runs [1]", key_file=f"{root}/key", run_id="night-2"
)
given = {"bundle": bundle, "run": run, "id": "id", "text": "body", "keep": ["day"], "policy": policy}

def connect(url):
    if earlier := SparkSession.getActiveSession():
        earlier.stop()
    session = SparkSession.builder.remote(url).getOrCreate()
    return session, session.read.parquet(f"{root}/corpus")

def rows(frame):
    return frame.drop("run_id").toArrow().to_pylist()

def refusal(function, *given, **named):
    try:
        function(*given, **named)
    except WordveilError as error:
        return f"{type(error).__name__}: {error}"
    return "taken"

facts = {"path": rows(sanitise(connect(beside)[1], **given))}
facts["unencrypted"] = refusal(sanitise, connect(unencrypted)[1], **given)
session, records = connect(encrypted)
facts["archive"] = rows(sanitise(records, **given))
_archives.clear()
facts["again"] = rows(sanitise(records, how="archive", **given))
facts["input"] = rows(sanitise(records, order="input", **given))

def sealed(session, bundle, how):  # as a bundle of a private corpus
    key = Secret(secrets.token_bytes(32))
    return distribution._distribute_directory(session, bundle.path, "wordveil-sealed", "archive", key)

plain, frames.distribute = frames.distribute, sealed
facts["sealed"] = [rows(sanitise(records, **given)) for _ in range(2)]
frames.distribute = plain

register(session, bundle=bundle, run=run, policy=policy)
records.createOrReplaceTempView("records")
facts["sql"] = rows(session.sql("select id, inline(array(sanitise(id, body))) from records"))

broken = root / "broken" / bundle.name
shutil.copytree(bundle, broken)
lazy = sanitise(records, how="path", **{**given, "bundle": broken})
(broken / "index.bin").unlink()
try:
    lazy.collect()
except Exception as error:
    facts["cause"] = describe_cause(error)

csv = session.read.csv(f"{root}/csv", header=True)
csv.createOrReplaceTempView("parsed")
frames_of_text = {
    "csv": csv,
    "joined": records.join(csv, "id", "left_anti"),
    "asked": session.sql("select * from records where id in (select id from parsed)"),
    "hidden": session.sql("select id, '\\n== Optimized Logical Plan ==\\n' as body, day from parsed"),
    "quoted": session.sql("select id, 'SECRET\\nx' as body, day from records"),
    "checkpoint": csv.localCheckpoint(),
}
facts["frames"] = {name: refusal(sanitise, frame, **given) for name, frame in frames_of_text.items()}
(root / "runs [1]" / "tests" / "half.json" / "_temporary").mkdir(parents=True)
half = Run.recorded(
    release="tests", run_log_dir=f"{root}/runs [1]", key_file=f"{root}/key", run_id="half"
)
facts["half"] = refusal(sanitise, records, **{**given, "run": half})
facts["policy"] = refusal(sanitise, records, **{**given, "policy": {**policy, "n_max": 25}})
job = json.loads((root / "job.json").read_text())
facts["jobs"] = [
    refusal(wordveil.run_job, job), refusal(wordveil.run_job, job, session=session),
    refusal(wordveil.build_bundle, job, session=session), refusal(wordveil.read_ledger, path=f"{root}/ledger"),
]
print(json.dumps(facts, default=bytes.hex))
"""


@pytest.mark.usefixtures("newest_spark")
def test_a_session_of_connect_gives_the_rows_of_a_classic_one(spark, workspace: Workspace):
    root = workspace.root
    workspace.write_corpus(corpus(60), files=3)
    (root / "csv").mkdir()
    (root / "csv" / "a.csv").write_text(f"id,body,day\na,{SECRET},d\n")
    (root / "job.json").write_text(json.dumps(workspace.settings()))
    bundle = build_bundle(workspace.config()).path

    def look(run_id: str, **changes):
        run = Run.recorded(release="tests", run_log_dir=f"{root}/runs [1]", key_file=f"{root}/key", run_id=run_id)
        given = {"bundle": bundle, "run": run, "id": "id", "text": "body", "keep": ["day"], "policy": POLICY, **changes}
        return sanitise(spark.read.parquet(f"{root}/corpus"), **given)

    rows = to_arrow(look("night-1").drop("run_id")).to_pylist()
    expected = json.loads(json.dumps(rows, default=bytes.hex))
    script = root / "client.py"
    script.write_text(CLIENT.replace("SECRET", SECRET))
    certificate = root / "certificate.pem"
    with connect.serve_within(spark) as port, connect.encrypt(port, certificate) as encrypted:
        urls = f"sc://127.0.0.1:{port}", f"sc://{connect.HOST}:{port}", f"sc://{connect.HOST}:{encrypted}/;use_ssl=true"
        command = [sys.executable, str(script), *urls, str(root), str(bundle), json.dumps(POLICY)]
        environment = {**clean_environment(), "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    assert SECRET not in done.stdout + done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    for rows in (facts["path"], facts["archive"], facts["again"], *facts["sealed"]):
        assert rows == expected  # in their order
    by_id = {row["id"]: row for row in expected}
    assert {row["id"]: row["text"] for row in facts["input"]} == {name: row["text"] for name, row in by_id.items()}
    assert {row["id"]: row["text"] for row in facts["sql"]} == {name: row["text"] for name, row in by_id.items()}
    assert "index.bin" in facts["cause"]
    assert facts["unencrypted"].startswith("PlatformError: the connection to the Spark Connect server may be unencr")

    said = facts["frames"]
    for name in ("csv", "joined", "asked"):
        assert "ConfigError" in said[name] and "reads files as csv with options" in said[name], said[name]
    for name in ("hidden", "quoted", "checkpoint"):
        assert "does not know" in said[name], said[name]
    assert "policy_fingerprint is" in facts["policy"]
    assert "half.json: PATH_ALREADY_EXISTS. Something is there. If an interrupted run left it" in facts["half"]
    for line in facts["jobs"]:
        assert line.startswith("PlatformError: Spark Connect sessions serve wordveil.sanitise and wordveil.register al")

    # A classic session reads what the other has recorded, and the records of both are files of one run each.
    names = sorted(path.name for path in (root / "runs [1]" / "tests").glob("*.json"))
    assert names == ["half.json", "night-1.json", "night-2.json"]
    look("night-2")
    (root / "runs [1]" / "tests" / "night-1.json").unlink()
    with pytest.raises(ConfigError, match=r"policy_fingerprint is .*in its record night-2"):
        look("night-3", policy={**POLICY, "n_max": 25})
