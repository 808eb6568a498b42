"""A DataFrame and a SQL function give the job's rows, in a session that they leave as it was."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pytest

import wordveil
from support.releases import States
from support.repository import ROOT
from support.workspaces import KEY, Workspace, corpus, options_set, read_output
from wordveil import Run, register, sanitise
from wordveil.assembly.bundles import build_bundle
from wordveil.errors import BundleError, ConfigError, InputError, KeyMaterialError, PlatformError
from wordveil.spark.platform.versions import to_arrow
from wordveil.spark.sanitise.job import run_sanitise

POLICY = {"profile": "strict", "n_max": 24}
DOC = ROOT / "docs" / "in-code.md"
sanitise_own = partial(sanitise, own_rows=True, id="id", text="body", policy=POLICY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with a corpus and a bundle, which tests only read."""
    workspace = Workspace(tmp_path_factory.mktemp("made"))
    workspace.write_corpus(corpus(50))
    build_bundle(workspace.config())
    return workspace


@pytest.fixture(scope="module")
def bundle(made: Workspace) -> Path:
    return build_bundle(made.config()).path


@pytest.fixture(scope="module")
def job_rows(spark, made: Workspace) -> list[dict]:
    """What the job makes of the corpus."""
    run_sanitise(made.config(), lambda: spark)
    return read_output(made.root / "output")


def recorded(workspace: Workspace, **changes: str) -> Run:
    settings = {
        "release": "tests",
        "run_log_dir": str(workspace.root / "runs"),
        "key_file": str(workspace.root / "key"),
    }
    return Run.recorded(**{**settings, **changes})


def test_a_frame_gives_the_rows_of_the_job(spark, workspace: Workspace, made: Workspace, bundle: Path, job_rows):
    run = recorded(workspace)
    frame = sanitise(
        spark.read.parquet(str(made.root / "corpus")).repartition(5),
        bundle=bundle,
        run=run,
        id="id",
        text="body",
        keep=["day"],
        policy=POLICY,
    )
    assert frame.columns == ["id", "day", "text", "status", "reason", "privacy", "content_tag", "run_id"]
    for _ in range(2):  # computed twice, the same rows
        rows = to_arrow(frame)
        assert set(rows["run_id"].to_pylist()) == {run.run_id}
        assert sorted(rows.drop_columns(["run_id"]).to_pylist(), key=lambda row: row["id"]) == job_rows


def test_bad_rows_of_a_frame_are_quarantined(spark, workspace: Workspace, bundle: Path):
    """Their columns become pseudonyms, too."""
    rows = [("a", "x y", 1), ("a", "x", 1), ("b", None, 1), (None, "x", 1), ("c", "x" * 5000, 1), ("d", "x", 2)]
    frame = sanitise_own(
        spark.createDataFrame(rows, "id string, body string, who int"),
        bundle=bundle.parent,  # its store
        run=Run.throwaway(),
        keep=[{"column": "who", "as": "pseudonym"}],
        max_bytes=4000,
    )
    one, other = sorted({(row["who"], row["id"] == "d") for row in frame.collect()}, key=itemgetter(1))
    assert (len(one[0]), one[0] == other[0], other[1]) == (32, False, True)
    found = {(row["id"], row["reason"], row["text"] is None) for row in frame.collect()}
    expected = {("a", "duplicate_id", True), ("b", "null_text", True), (None, "null_id", True), ("c", "oversize", True)}
    assert found == {*expected, ("d", None, False)}


@pytest.mark.usefixtures("newest_spark")
def test_sql_gives_the_rows_of_the_job(spark, workspace: Workspace, made: Workspace, bundle: Path, job_rows):
    register(spark, bundle=bundle, run=recorded(workspace), policy=POLICY, name="sanitise_tests")
    spark.read.parquet(str(made.root / "corpus")).createOrReplaceTempView("tickets")
    table = spark.sql("select id, inline(array(sanitise_tests(id, body))) from tickets")
    assert table.columns == ["id", "text", "status", "reason", "privacy"]
    found = sorted(to_arrow(table).to_pylist(), key=lambda row: row["id"])
    # Beside the job's column the table keeps `day`, which the caller selects himself and accounts for himself.
    for row, other in zip(found, job_rows, strict=True):
        assert {name: row[name] for name in ("id", "text", "status", "reason")} == {
            name: other[name] for name in ("id", "text", "status", "reason")
        }
        # Nor can a function move rows: their order is the caller's.
        exposes = ["layout", *(name for name in other["privacy"]["exposes"] if "day" not in name)]
        assert row["privacy"] == {**other["privacy"], "exposes": exposes}


@pytest.mark.usefixtures("newest_spark")
def test_bad_rows_of_sql_are_quarantined(spark, bundle: Path):
    register(spark, bundle=bundle, run=Run.throwaway(), policy=POLICY, max_bytes=4000, name="sanitise_tests")
    rows = [("a", "x"), (None, "x"), ("b", None), ("c", "x" * 5000)]
    spark.createDataFrame(rows, "id string, body string").createOrReplaceTempView("rows")
    spark.sql("select id, body from rows union all select 'e', cast(x'ff61' as string)").createOrReplaceTempView(
        "rows_bad"
    )
    found = spark.sql(
        "select id, s.reason, s.text is null as hidden, s.status "
        "from (select id, sanitise_tests(id, body) s from rows_bad)"
    ).collect()
    assert {(row["id"], row["reason"], row["hidden"]) for row in found} == {
        ("a", None, False),
        (None, "null_id", True),
        ("b", "null_text", True),
        ("c", "oversize", True),
        ("e", "undecodable", True),
    }


def test_throwaway_keys_differ_and_leave_nothing(spark, workspace: Workspace, bundle: Path):
    texts = []
    for _ in range(2):
        run = Run.throwaway()
        assert run.release.startswith("throwaway-")
        frame = spark.createDataFrame([("a", "x " * 20)], "id string, body string")
        row = sanitise_own(frame, bundle=bundle, run=run).first()
        assert row["privacy"]["release_id"] == run.release
        texts.append(row["text"])
    assert texts[0] != texts[1]
    assert not (workspace.root / "runs").exists()


def test_a_run_is_recorded_before_it_draws(spark, workspace: Workspace, bundle: Path):
    run = recorded(workspace, run_id="night-1")
    frame = spark.createDataFrame([("a", "raw secret words")], "id string, body string")
    sanitise_own(frame, bundle=bundle, run=run)  # nothing is drawn yet
    file = workspace.root / "runs" / "tests" / "night-1.json"
    content = json.loads(file.read_text())
    assert content["run_id"] == "night-1"
    assert content["mechanism_fingerprint"] == bundle.name
    assert content["columns"]["text"] == "body"
    assert content["key_fingerprint"] == run.key_fingerprint
    assert KEY not in file.read_text()
    assert KEY not in repr(run)
    before = file.read_bytes()
    sanitise_own(frame, bundle=bundle, run=run)  # once more in the same terms
    assert file.read_bytes() == before


def test_a_release_keeps_bundle_policy_and_key(spark, workspace: Workspace, bundle: Path):
    frame = spark.createDataFrame([("a", "x")], "id string, body string")
    sanitise_own(frame, bundle=bundle, run=recorded(workspace))
    with pytest.raises(ConfigError, match="policy_fingerprint is"):
        sanitise_own(frame, bundle=bundle, run=recorded(workspace), policy={**POLICY, "n_max": 25})
    other = build_bundle(workspace.config(mechanism={"epsilon": 5.0})).path
    with pytest.raises(ConfigError, match="mechanism_fingerprint is"):
        sanitise_own(frame, bundle=other, run=recorded(workspace))
    workspace.write_key("other", "0123456789abcdef" * 4)
    with pytest.raises(ConfigError, match="key_fingerprint is"):
        sanitise_own(frame, bundle=bundle, run=recorded(workspace, key_file=str(workspace.root / "other")))
    assert len(list((workspace.root / "runs" / "tests").glob("*.json"))) == 1
    sanitise_own(frame, bundle=bundle, run=recorded(workspace, release="another"), policy={**POLICY, "n_max": 25})


def test_no_key_no_recorded_run(workspace: Workspace):
    with pytest.raises(KeyMaterialError):
        Run.recorded(release="tests", run_log_dir=str(workspace.root))
    with pytest.raises(ConfigError, match="release"):
        recorded(workspace, release="../up")


def test_all_faults_of_the_arguments_are_told_at_once(spark, bundle: Path):
    frame = spark.createDataFrame([("a", "x")], "id string, body string")
    with pytest.raises(ConfigError) as error:
        sanitise_own(
            frame, bundle=bundle, run=Run.throwaway(), text="id", policy={"profile": "strict", "lenght": "pad"}
        )
    assert "input.text = id: is also the id column" in str(error.value)
    assert "Did you mean length?" in str(error.value)
    with pytest.raises(ConfigError, match=r"no such column. Did you mean body\?"):
        sanitise_own(frame, bundle=bundle, run=Run.throwaway(), text="bodi")
    with pytest.raises(ConfigError, match="n_max"):
        sanitise(frame, bundle=bundle, run=Run.throwaway(), id="id", text="body", own_rows=True)
    with pytest.raises(BundleError, match=r"was built with padding, and text\.length is as_is"):
        sanitise_own(frame, bundle=bundle, run=Run.throwaway(), policy={"profile": "readable"})


def test_sessions_are_checked_and_not_set(spark, bundle: Path):
    frame = spark.createDataFrame([("a", "x")], "id string, body string")
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    options = {name: "0", "spark.sql.files.ignoreCorruptFiles": "true"}
    for option, value in options.items():
        with options_set(spark, {option: value}):
            with pytest.raises(PlatformError, match=re.escape(f"{option} = {value}")):
                sanitise_own(frame, bundle=bundle, run=Run.throwaway())
            assert spark.conf.get(option) == value
    assert spark.conf.get(name) == before


def test_streams_are_refused_by_name(spark, bundle: Path):
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) id", "'x' body")
    with pytest.raises(InputError, match="stream"):
        sanitise(stream, bundle=bundle, run=Run.throwaway(), id="id", text="body", policy=POLICY)


@pytest.mark.usefixtures("newest_spark")
def test_the_examples_of_the_documentation_run(spark, workspace: Workspace, bundle: Path, monkeypatch, capsys):
    path = workspace.write_corpus(
        pa.table({"ticket_id": ["1", "2"], "body": ["one two", "three"], "product": ["a", "b"]}), "raw-tickets"
    )
    (workspace.root / "conf").mkdir()
    workspace.write_config("conf/job.yaml", input={"path": str(path), "id": "ticket_id", "keep": ["product"]})
    monkeypatch.setenv("WORDVEIL_KEY", KEY)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names = {"spark": spark}
    places = {
        "/lake/bundles/FINGERPRINT": str(bundle),
        "/lake/raw/": f"{workspace.root}/raw-",
        "/lake": str(workspace.root),
    }
    for block in blocks:
        for written, real in places.items():
            block = block.replace(written, real)  # noqa: PLW2901
        exec(block, names)  # noqa: S102 - our own documentation
    assert "released" in capsys.readouterr().out
    assert names["report"].records == 2
    assert len(read_output(workspace.root / "output", "ticket_id")) == 2


def test_plan_job_and_ledger_of_a_release_in_code(spark, released: States):
    """The job has finished: it is reported again."""
    lake = released.restore("drawn")
    settings = lake.config()
    planned = wordveil.make_plan(settings, session=spark)
    assert planned.output_format == "delta"
    report = wordveil.run_job(settings, session=spark, run_id="night-1")
    assert report.released == report.records == 8
    (row,) = wordveil.read_ledger(settings, session=spark).collect()
    assert (row["release"], row["contexts"], row["reserved"]) == ("support", 8, 0.0)
    by_record = wordveil.read_ledger(path=str(lake.ledger), by="record", record="r00003", session=spark)
    assert [found["spent"] for found in by_record.collect()] == [pytest.approx(report.epsilon_pure[1])]
    assert wordveil.read_ledger(settings, by="context", session=spark).count() == 8
    with pytest.raises(ConfigError, match="never overwritten"):
        wordveil.run_job(settings, session=spark, overwrite=True)


def test_a_session_of_the_callers_builds_bundles_too(spark, workspace: Workspace):
    config = workspace.config(mechanism={"name": "exponential", "epsilon": 4.0, "neighbours": 5, "gamma": 2.0})
    built = wordveil.build_bundle(config, session=spark)
    assert wordveil.open_bundle(built.path).fingerprint == built.fingerprint
    assert wordveil.build_bundle(config).path == built.path
