"""A bundle reaches the executors once each, is mapped and not copied, and a damaged one is refused by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pyspark
import pytest

from support import ngram_models, toys
from support.workspaces import SMALL, Workspace, clean_environment, corpus, read_output
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import BundleError
from wordveil.records.sanitiser import RecordSettings
from wordveil.spark.platform.session import SHORT_JAVA
from wordveil.spark.sanitise.distribution import distribute
from wordveil.spark.sanitise.job import run_sanitise
from wordveil.spark.sanitise.worker import Sanitise
from wordveil.text.language import find_version
from wordveil.text.slots import NgramSettings

SEARCH = {"search": "annoy", "n_trees": 3, "search_k": 40} if find_version("annoy") else {}


@pytest.mark.long
@pytest.mark.xdist_group("cluster")
def test_separate_executors_get_an_archive_and_give_equal_rows(spark, workspace: Workspace):
    """Two executor processes, each with its own scratch; the paths of the bundle and of the n-gram model are gone
    before they look.
    """
    workspace.write_corpus(corpus(120), files=4)
    text = carrier_phrases(workspace)
    run_sanitise(workspace.config(mechanism=SEARCH, text=text), lambda: spark)
    reference = read_output(workspace.root / "output")
    config = workspace.write_config(
        mechanism=SEARCH,
        text=text,
        output={"path": str(workspace.root / "clustered")},
        spark={
            "master": "local-cluster[2,1,1024]",
            "options": {**SMALL, "spark.executor.extraJavaOptions": SHORT_JAVA},
        },
    )
    script = workspace.root / "cluster.py"
    script.write_text(CLUSTER_SCRIPT)
    work = Path(pyspark.__file__).parent / "work"
    try:
        command = [sys.executable, str(script), str(config)]
        done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
        assert done.returncode == 0, done.stderr[:6000]  # the failure comes before the noise of Spark's end
    finally:
        shutil.rmtree(work, ignore_errors=True)
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["records"] == 120
    assert facts["payload_copies"] == 2, "one copy an executor"
    assert read_output(workspace.root / "clustered") == reference


def carrier_phrases(workspace: Workspace) -> dict[str, object]:
    """A text section with a model of its own."""
    public = corpus(120)["body"].to_pylist()
    model = ngram_models.make_model(workspace.root / "models", public, NgramSettings(max_n=2, min_count=2))
    return {"profile": "carrier_phrases", "ngrams": str(model.path), "slot_start_threshold": 0.004}


CLUSTER_SCRIPT = """
import json, sys
from pathlib import Path
import pyspark
from wordveil.config.load import load_config
from wordveil.spark.sanitise import distribution, job
from wordveil.spark.sanitise.distribution import distribute
from wordveil.spark.platform.session import build_session

config = load_config(Path(sys.argv[1]))
spark = build_session(config.spark)

def hidden(spark, bundle, how):
    sent = distribute(spark, bundle, how)
    assert sent.archive
    bundle.path.rename(bundle.path.with_name("hidden"))  # executors cannot read the driver's path
    return sent

plain = distribution.distribute_model

def hidden_model(spark, model, how):
    sent = plain(spark, model, how)
    if model is not None:
        assert sent.archive
        model.path.joinpath("counts.bin").unlink()  # the manifest alone is looked at after this
    return sent

distribution.distribute, distribution.distribute_model = hidden, hidden_model
report = job.run_sanitise(config, lambda: spark)
work = Path(pyspark.__file__).parent / "work"
copies = [path for path in work.rglob("index.bin") if path.is_file()]
print(json.dumps({"records": report.records, "payload_copies": len({path.stat().st_ino for path in copies})}))
"""


def test_workers_map_the_payload_and_do_not_copy_it(spark, workspace: Workspace):
    """In every worker process the index is in shared, file-backed, read-only pages."""
    bundle = build_bundle(workspace.config())
    place = distribute(spark, bundle, "auto")
    keys = toys.KEYS
    job = Sanitise(RecordSettings("tests", "run", workspace.config().policy, ()), keys, place, bundle.identity)

    def mapping(_):
        import wordveil.spark.sanitise.worker as worker

        sanitiser = worker._sanitiser(job.settings, job.keys, job.location, job.identity)
        index = sanitiser._bundle.mechanism._index
        maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("index.bin")]
        yield os.getpid(), index.flags.writeable, [line.split()[1] for line in maps]

    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(mapping).collect()
    for _, writeable, permissions in found:
        assert not writeable
        assert permissions
        assert all(flags.startswith("r--") for flags in permissions)


def test_worker_given_another_bundle_than_its_run_refuses_it(spark, workspace: Workspace):
    bundle = build_bundle(workspace.config())
    other = build_bundle(workspace.config(mechanism={"epsilon": 5.0}))
    place = distribute(spark, bundle, "path")
    job = Sanitise(RecordSettings("tests", "run", workspace.config().policy, ()), toys.KEYS, place, other.identity)
    with pytest.raises(BundleError, match="not the bundle"):
        list(job(iter(())))


def test_a_damaged_bundle_stops_the_run_by_name(spark, workspace: Workspace):
    workspace.write_corpus(corpus(3))
    bundle = build_bundle(workspace.config())
    index = bundle.path / "index.bin"
    index.write_bytes(index.read_bytes()[:-4])
    with pytest.raises(BundleError, match=r"index\.bin.*truncated"):
        run_sanitise(workspace.config(), lambda: spark)


def test_the_archive_is_sent_once_a_session(spark, workspace: Workspace):
    bundle = build_bundle(workspace.config())
    before = len(spark.sparkContext.listArchives)
    places = {distribute(spark, bundle, "archive") for _ in range(2)}
    assert len(places) == 1
    assert len(spark.sparkContext.listArchives) == before + 1
    path = next(archive for archive in spark.sparkContext.listArchives if bundle.fingerprint in archive)
    assert bundle.fingerprint in path
    assert not tarfile.is_tarfile(str(bundle.path / "index.bin"))


def test_bundle_that_mismatches_is_refused_before_spark_starts(workspace: Workspace):
    workspace.write_corpus(corpus(3))
    build_bundle(workspace.config())

    def no_session():
        raise AssertionError("Spark must not start")

    with pytest.raises(BundleError, match=r"mechanism\.epsilon is 4\.0 in the bundle, 9\.0 in the configuration"):
        run_sanitise(workspace.config(mechanism={"epsilon": 9.0}, build_missing=False), no_session)
