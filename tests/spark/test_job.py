"""The main job on real Spark: every record comes out once, bad rows with their reason, the output whole or not at
all.
"""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.workspaces import WORDS, Workspace, corpus, random_texts, read_output
from wordveil.errors import ConfigError, OutputExistsError, SparkJobError
from wordveil.records.schema import RESERVED_COLUMNS
from wordveil.spark.platform.session import OPTIONS
from wordveil.spark.platform.versions import VERSION
from wordveil.spark.sanitise.job import run_sanitise


def run(spark, config, **options):
    return run_sanitise(config, lambda: spark, **options)


def test_job_gives_all_records_with_columns_and_accounting(spark, workspace: Workspace):
    table = corpus(30).append_column("who", pa.array(["x"] * 30))
    workspace.write_corpus(table, files=3)
    report = run(spark, workspace.config(input={"author": "who"}, output={"partition_by": ["day"]}))
    rows = read_output(workspace.root / "output")
    assert [row["id"] for row in rows] == table["id"].to_pylist()
    assert [row["day"] for row in rows] == table["day"].to_pylist()
    assert set(rows[0]) == {"id", "day", *RESERVED_COLUMNS} - {"run_id"}, "the author is dropped unless it is kept"
    assert {path.name for path in (workspace.root / "output").glob("day=*")} == {"day=d0", "day=d1", "day=d2"}
    assert all(row["status"] == "released" and row["reason"] is None for row in rows)
    assert (report.records, report.released, report.quarantined, report.tokens) == (30, 30, {}, 30 * 24)
    privacy = rows[0]["privacy"]
    assert privacy["tokens"] == 24
    assert privacy["epsilon"] == privacy["nominal_epsilon"] == 4.0
    assert privacy["relation"] == "any_text"
    assert privacy["composition"] == "sequence"
    assert privacy["epsilon_pure"] == privacy["epsilon_bound"] == pytest.approx(24 * 4.0 * diameter(workspace))
    assert privacy["exposes"] == ["presence", "column:day"]
    assert privacy["bundle"] == report.mechanism_fingerprint
    assert privacy["metric"].startswith("euclidean:")

    small = workspace.root / "small"
    run(spark, workspace.config(input={"author": "who"}, output={"path": str(small), "records_per_file": 9}))
    assert sorted(pq.read_metadata(path).num_rows for path in small.glob("*.parquet")) == [3, 9, 9, 9]
    assert read_output(small) == rows


def test_every_file_of_an_output_is_parquet(spark, workspace: Workspace):
    """Readers such as polars and DuckDB take all files of a directory, hidden ones too."""
    table = corpus(30)
    workspace.write_corpus(table)
    run(spark, workspace.config(output={"partition_by": ["day"]}))
    place = workspace.root / "output"
    files = [path for path in place.rglob("*") if path.is_file()]
    assert files
    assert {path.suffix for path in files} == {".parquet"}
    assert not [path.name for path in files if path.name.startswith((".", "_"))]
    read = ds.dataset(place, partitioning="hive", exclude_invalid_files=False, ignore_prefixes=[]).to_table()
    assert sorted(read["id"].to_pylist()) == table["id"].to_pylist()
    assert {day.as_py() for day in read["day"].unique()} == {"d0", "d1", "d2"}
    for path in files:  # the checksums of pages that Hadoop's own stood beside
        assert pq.ParquetFile(path, page_checksum_verification=True).read().num_rows > 0
        raw = bytearray(path.read_bytes())
        raw[200] ^= 1
        path.write_bytes(raw)
        with pytest.raises(OSError, match="CRC checksum"):
            pq.ParquetFile(path, page_checksum_verification=True).read()


def diameter(workspace: Workspace) -> float:
    from wordveil.assembly.bundles import find_bundle

    bundle = find_bundle(workspace.config())
    assert bundle is not None
    return bundle.guarantee.diameter


def test_bad_rows_are_quarantined_with_their_reason(spark, workspace: Workspace):
    bodies = [b"waaa", b"waab", b"waac", None, b"waad \xff\xfe", b"waae" * 100, b"waaf", "日本語".encode(), b""]
    ids = ["ok", "twice", "twice", "null", "latin", "long", None, "script", "empty"]
    table = pa.table({"id": ids, "body": pa.array(bodies, pa.binary()), "day": ["d"] * 9})
    workspace.write_corpus(table)
    report = run(spark, workspace.config(input={"max_bytes": 200}))
    rows = read_output(workspace.root / "output")
    reasons = {(row["id"], row["status"], row["reason"]) for row in rows}
    assert len(rows) == 9
    assert reasons == {
        ("ok", "released", None),
        ("empty", "released", None),
        ("twice", "quarantined", "duplicate_id"),
        ("null", "quarantined", "null_text"),
        ("latin", "quarantined", "undecodable"),
        ("long", "quarantined", "oversize"),
        (None, "quarantined", "null_id"),
        ("script", "quarantined", "script_without_word_spaces"),
    }
    for row in rows:
        held = row["text"] is not None and row["privacy"] is not None and row["content_tag"] is not None
        assert held == (row["status"] == "released")
    assert report.quarantined["duplicate_id"] == 2
    assert report.records == 9
    assert report.released == 2


def test_report_counts_poorly_covered_records(spark, workspace: Workspace):
    """Those of five words or more, a third of them unknown or more."""
    known = WORDS[:4]
    bodies = {
        "short": "zug wieder spät",
        "covered": f"zug {' '.join(known)}",
        "third": f"zug wieder {' '.join(known)}",
        "foreign": "der zug war wieder spät",
        "refused": "の列車 日本語 中国語 韓国語 英語",
    }
    workspace.write_corpus(pa.table({"id": [*bodies], "body": [*bodies.values()], "day": ["d"] * len(bodies)}))
    report = run(spark, workspace.config())
    assert (report.released, report.poorly_covered) == (4, 2)


def test_a_public_output_has_only_what_may_be_passed_on(spark, workspace: Workspace):
    """Released rows, as a whole output has them, in the same order and in files that end at the same ids."""
    texts = [None if number % 5 == 0 else text for number, text in enumerate(corpus(40)["body"].to_pylist())]
    table = corpus(40).set_column(1, "body", [texts])
    table = pa.concat_tables([table, table.slice(1, 1)])  # one id twice
    workspace.write_corpus(table, files=3)
    whole, public = (workspace.root / name for name in ("whole", "public"))
    reports = [
        run(spark, workspace.config(output={"path": str(path), **only}))
        for path, only in ((whole, {}), (public, {"public_only": True}))
    ]
    assert reports[0].quarantined == reports[1].quarantined == {"null_text": 8, "duplicate_id": 2}
    assert (reports[0].tokens, reports[0].exposes) == (reports[1].tokens, reports[1].exposes)
    assert [any("the output is internal" in note for note in report.notes) for report in reports] == [True, False]
    every, rows = (ds.dataset(path).to_table().to_pylist() for path in (whole, public))
    assert list(rows[0]) == ["id", "day", "text", "privacy"]
    released = [row for row in every if row["status"] == "released"]
    assert len(released) == 31
    assert rows == [{name: row[name] for name in rows[0]} for row in released]
    assert "presence" in rows[0]["privacy"]["exposes"], "that a record is missing may follow from its text"


def test_undecodable_strings_are_refused_before_python(spark, workspace: Workspace):
    """A string column can hold bytes that are no UTF-8; Arrow's kernels would raise on them."""
    body = pa.array([b"waaa", b"wa\xff\xfe", b"waab"], pa.binary())
    ids = pa.array([b"a", b"b", b"c\xff\xfe"], pa.binary())
    broken = [pa.StringArray.from_buffers(3, *array.buffers()[1:]) for array in (ids, body)]
    workspace.write_corpus(pa.table({"id": broken[0], "body": broken[1]}))
    report = run(spark, workspace.config(input={"keep": []}))
    assert (report.released, report.quarantined) == (1, {"undecodable": 1, "invalid_id": 1})
    read = ds.dataset(workspace.root / "output").to_table(columns=["id", "reason"])
    found = zip(read["id"].cast(pa.binary()).to_pylist(), read["reason"].to_pylist(), strict=True)
    assert sorted(found) == [(b"a", None), (b"b", "undecodable"), (b"c\xff\xfe", "invalid_id")]


def test_kept_columns_of_many_types_pass_unchanged(spark, workspace: Workspace):
    kept = {
        "a.b c": pa.array([1.5, None]),
        "when": pa.array([dt.datetime(2026, 11, 21, 10, 0, tzinfo=dt.UTC)] * 2, pa.timestamp("us", "UTC")),
        "date": pa.array([dt.date(2026, 11, 21), None]),
        "price": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)),
        "tags": pa.array([["x", None], None], pa.list_(pa.string())),
        "nested": pa.array([{"k": 1}, None], pa.struct([("k", pa.int64())])),
        "who": pa.array(["x", "y"]),
    }
    workspace.write_corpus(pa.table({"id": pa.array([7, 8]), "body": ["waaa", "waab"], **kept}))
    run(spark, workspace.config(input={"keep": list(kept), "author": "who"}))
    rows = read_output(workspace.root / "output")
    for name, array in kept.items():
        assert [row[name] for row in rows] == array.to_pylist()
        assert f"column:{name}" in rows[0]["privacy"]["exposes"]


def test_columns_become_pseudonyms_in_quarantined_rows_too(spark, workspace: Workspace):
    """The author's column under another name, and a number; null stays null. No file has a value."""
    table = pa.table({"id": ["a", "b", "c", "d"], "body": ["waaa", None, "waab", "waac"]})
    table = table.append_column("who", pa.array(["zqxann", "zqxann", "zqxbob", None]))
    workspace.write_corpus(table.append_column("shop", pa.array([7, 8, 7, 7], pa.int16())))
    kept = [{"column": "who", "as": "pseudonym", "name": "customer"}, {"column": "shop", "as": "pseudonym"}]
    report = run(spark, workspace.config(input={"keep": kept, "author": "who"}))
    rows = read_output(workspace.root / "output")
    assert list(rows[0])[:3] == ["id", "customer", "shop"]
    ann, again, bob, nobody = (row["customer"] for row in rows)
    assert (ann, nobody, rows[1]["status"]) == (again, None, "quarantined")
    assert len(ann) == len(bob) == 32
    assert ann != bob
    assert [row["shop"] == rows[0]["shop"] for row in rows] == [True, False, True, True]
    assert report.exposes == ("presence", "pseudonym:customer", "pseudonym:shop")
    files = [path.read_bytes() for path in (workspace.root / "output").rglob("*.parquet")]
    assert not [name for file in files for name in (b"zqxann", b"zqxbob", b"who") if name in file]


def test_an_existing_output_is_left_alone(spark, workspace: Workspace):
    workspace.write_corpus(corpus(3))
    (workspace.root / "output").mkdir()
    (workspace.root / "output" / "mine").write_text("x")
    with pytest.raises(OutputExistsError, match="--overwrite"):
        run(spark, workspace.config())
    assert [path.name for path in (workspace.root / "output").iterdir()] == ["mine"]


def test_an_output_is_replaced_whole_or_not_at_all(spark, workspace: Workspace):
    """And nothing is left beside it; what a killed run left there is reported."""
    workspace.write_corpus(corpus(3), "before")
    path = workspace.write_corpus(corpus(6, seed=1), files=2)
    run(spark, workspace.config(input={"path": str(workspace.root / "before")}))
    (workspace.root / ".output.wordveil-killed").mkdir()
    report = run(spark, workspace.config(), overwrite=True)
    assert any(".output.wordveil-killed" in note for note in report.notes)
    replaced = read_output(workspace.root / "output")
    assert len(replaced) == 6
    (path / "part-1.parquet").write_bytes(b"PAR1 not a table PAR1")
    with pytest.raises(SparkJobError, match="part-1" if VERSION >= (4, 0) else "log"):
        run(spark, workspace.config(), overwrite=True)
    assert read_output(workspace.root / "output") == replaced
    assert [left.name for left in workspace.root.glob(".output*")] == [".output.wordveil-killed"]


def test_an_output_that_appears_meanwhile_is_not_merged_into(spark, workspace: Workspace, monkeypatch):
    import wordveil.spark.sanitise.job as module

    workspace.write_corpus(corpus(3))
    write = module._write

    def slow_write(*arguments):
        counts = write(*arguments)
        (workspace.root / "output").mkdir()
        return counts

    monkeypatch.setattr(module, "_write", slow_write)
    with pytest.raises(OutputExistsError, match="another process created it while the job ran"):
        run(spark, workspace.config())
    assert list((workspace.root / "output").iterdir()) == []
    assert not list(workspace.root.glob(".output*"))


def test_columns_are_checked_before_any_row_is_read(spark, workspace: Workspace):
    """All faults at once. tests/unit/spark/test_columns.py has each fault there is."""
    workspace.write_corpus(corpus(3).append_column("ratio", pa.array([0.5] * 3)))
    with pytest.raises(ConfigError) as error:
        run(spark, workspace.config(input={"id": "idd", "text": "ratio", "keep": ["zzz"]}))
    assert "input.id = idd: the table has no such column. Did you mean id?" in str(error.value)
    assert "input.text = ratio: is of type double. A text must be a string" in str(error.value)
    assert "input.keep = zzz: the table has no such column. It has: id, body, day, note, ratio" in str(error.value)
    assert not (workspace.root / "output").exists()


def test_a_mixed_schema_fails_and_writes_nothing(spark, workspace: Workspace):
    path = workspace.write_corpus(corpus(3))
    pq.write_table(pa.table({"id": ["q"], "body": pa.array([5]), "day": ["d"]}), path / "zz.parquet")
    with pytest.raises((SparkJobError, ConfigError)):
        run(spark, workspace.config())
    assert not (workspace.root / "output").exists()


@pytest.mark.long
def test_large_records_pass_in_bounded_batches(spark, workspace: Workspace):
    """Texts of a few hundred kilobytes, of which a batch would be too large: they are cut to n_max."""
    text = " ".join(random_texts(400) * 5)
    workspace.write_corpus(pa.table({"id": list(range(20)), "body": [text] * 20, "day": ["d"] * 20}))
    report = run(spark, workspace.config())
    assert report.released == 20
    assert report.words > 20 * 25_000
    assert 20 * len(text) > int(OPTIONS["spark.sql.execution.arrow.maxBytesPerBatch"])
