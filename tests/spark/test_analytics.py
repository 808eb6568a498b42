"""Analytics of a job's output: counts in groups, trends and pairs are the estimator's over all rows."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.releases import read_delta
from support.workspaces import EMBEDDING, Workspace, read_output
from wordveil.errors import ConfigError, InputError
from wordveil.measures.estimates import Estimator, PairEstimator
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.records.schema import SYMBOLS_FILE
from wordveil.release.verify import MANIFEST
from wordveil.spark.analytics import SymbolCounts, analyse
from wordveil.spark.sanitise.job import run_sanitise

WORDS = EMBEDDING.words.to_pylist()
TREE = {"name": "tree", "epsilon": 5.0, "clusters": [6], "least": 2}


def corpus(count: int) -> pa.Table:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 12))) for _ in range(count)]
    day = [f"2026-11-{number % 2 + 1:02}" if number % 7 else None for number in range(count)]
    return pa.table({"id": [str(number) for number in range(count)], "body": texts, "day": pa.array(day)})


def test_analyse_words_of_a_job_gives_the_estimators_figures(spark: Any, workspace: Workspace, tmp_path: Path):
    path, out = workspace.write_corpus(corpus(400), "words", files=2), tmp_path / "out"
    config = workspace.config(
        input={"path": str(path)}, mechanism=TREE, output={"path": str(out), "symbols": True, "partition_by": ["day"]}
    )
    run_sanitise(config, lambda: spark)
    described = json.loads((out / SYMBOLS_FILE).read_text("utf-8"))
    signed = {"manifest": {"symbols": described, "refused": {"over_author_budget": 57, "<b>": 1}}}
    (out / MANIFEST).write_text(json.dumps(signed))
    analysis = analyse(spark, str(out), str(tmp_path / "found"), over="day", pairs=4)
    assert analysis.to_dict()["refused"] == {"over_author_budget": 57}
    assert (analysis.unit, analysis.records, analysis.public_version) == ("words", 400, None)
    rows = read_output(str(out))
    law = SymbolLaw.from_dict(described["law"])
    estimator = Estimator(law)
    drawn = [row["symbols"] for row in rows]
    assert {len(symbols) for symbols in drawn} == {24}
    counts = np.bincount(np.concatenate(drawn), minlength=law.size)[None, :]
    estimates = estimator.estimate(counts).counts[0]
    assert {row["symbol"]: row["estimate"] for row in analysis.totals} == pytest.approx(dict(enumerate(estimates)))
    assert [row["rank"] for row in analysis.totals] == [1, 2, 3, 4, 5, 6, 7]
    found = read_delta(tmp_path / "found" / "terms")
    days = {row["day"] for row in found}
    assert days == {date(2026, 11, 1), date(2026, 11, 2), None}
    for day in days:
        part = [symbols for row, symbols in zip(rows, drawn, strict=True) if str(row["day"]) == str(day)]
        own = np.bincount(np.concatenate(part), minlength=law.size)[None, :]
        expected = estimator.estimate(own)
        group = sorted((row for row in found if row["day"] == day), key=lambda row: row["symbol"])
        assert [row["low"] for row in group] == pytest.approx(expected.low[0].tolist())
        assert [row["share"] for row in group] == pytest.approx((expected.counts[0] / own.sum()).tolist())
    least = min(row["draws"] for row in found)
    assert (analysis.least_draws, analysis.least_count) == (least, estimator.find_least_count(least))
    trends = read_delta(tmp_path / "found" / "trends")
    assert {(row["day_before"], row["day"]) for row in trends} == {(date(2026, 11, 1), date(2026, 11, 2))}
    assert len(trends) == 7
    offsets = np.arange(401) * 24
    pads = np.array([symbols.count(6) for symbols in drawn])
    sums = [400 * 24**2, 24 * pads.sum(), pads @ pads, 400 * 24, pads.sum()]
    chosen = sorted(np.argsort(-estimates[:6], kind="stable")[:4].tolist())
    direct = PairEstimator.of(estimator, chosen, estimates, sums)
    together, _, changes = direct.compare(direct.sum_up(np.concatenate(drawn), offsets))
    pairs = read_delta(tmp_path / "found" / "pairs")
    assert sorted(row["together"] for row in pairs) == pytest.approx(sorted(together.tolist()))
    assert sorted(row["low"] for row in pairs) == pytest.approx(sorted(changes.low.tolist()))

    weekly = analyse(spark, str(out), str(tmp_path / "found"), over="day", every="week", pairs=0)
    assert sorted(row["draws"] for row in weekly.estimates) == sorted(row["draws"] for row in analysis.estimates)
    steps = {(row["day_before"], row["day"]) for row in read_delta(tmp_path / "found" / "trends")}
    assert steps == {(date(2026, 10, 26), date(2026, 11, 2))}, "each named by its Monday"
    assert read_delta(tmp_path / "found" / "pairs") == [], "it has none of the earlier analysis"
    monthly = analyse(spark, str(out), str(tmp_path / "found"), over="day", every="month", pairs=0)
    assert {row["day"] for row in monthly.estimates} == {date(2026, 11, 1), None}
    with pytest.raises(InputError, match=r"--every = week: the column id has values that are no dates"):
        analyse(spark, str(out), str(tmp_path / "found"), over="id", every="week")
    with pytest.raises(InputError, match=r"--version = 3: .* is no Delta table"):
        analyse(spark, str(out), str(tmp_path / "found"), version=3)
    (out / MANIFEST).unlink()
    for change, problem in (({"law": {}}, "got values without it"), ({"meanings": []}, "describes 0 symbols")):
        (out / SYMBOLS_FILE).write_text(json.dumps(described | change))
        with pytest.raises(InputError, match=rf"_symbols\.json: .*{problem}.*Verify the table"):
            analyse(spark, str(out), str(tmp_path / "found"))


def test_a_time_that_clocks_repeat_is_two_groups(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    meanings = [{"written": "", "keywords": ""}] * 3
    described = {"law": SymbolLaw.of_response(2.0, 3).to_dict(), "meanings": meanings}
    times = [datetime(2025, 11, 2, hour, 30, tzinfo=UTC) for hour in (5, 6, 6, 8)]
    weeks = [202601, 202602, 202602, 202603]
    (tmp_path / "out").mkdir()
    table = pa.table({"at": times, "week": weeks, "tags": [["a"]] * 4, "symbols": [[0], [1], [2], [1]]})
    pq.write_table(table, tmp_path / "out" / "a.parquet")
    (tmp_path / "out" / SYMBOLS_FILE).write_text(json.dumps(described))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        found = analyse(spark, str(tmp_path / "out"), str(tmp_path / "found"), over="at", pairs=0)
    finally:
        monkeypatch.undo()
        time.tzset()
    draws = {times[0]: 1, times[1]: 2, times[3]: 1}
    assert {row["at"]: row["draws"] for row in found.estimates} == draws
    assert {row["at"]: row["draws"] for row in read_delta(tmp_path / "found" / "subjects")} == draws
    with pytest.raises(InputError, match=r"--every = week: the column week has values that are no dates"):
        analyse(spark, str(tmp_path / "out"), str(tmp_path / "found"), over="week", every="week")
    with pytest.raises(InputError, match="--by = tags: has lists or maps, which make no groups"):
        analyse(spark, str(tmp_path / "out"), str(tmp_path / "found"), by=["tags"])


@pytest.mark.parametrize(("by", "over"), [(["Share"], None), (["week_before"], "week"), (["public_version"], None)])
def test_columns_with_names_of_estimates_are_refused(by: list[str], over: str | None):
    assert SymbolCounts.find_clashes([*by, "day"], over) == by


def test_symbols_of_other_mechanisms_are_refused(workspace: Workspace):
    with pytest.raises(ConfigError, match=r"output\.symbols = true: needs clusters, and mechanism\.name: laplace"):
        workspace.config(output={"symbols": True})
    with pytest.raises(ConfigError, match=r"input\.keep = symbols: is the name of the column of drawn symbols"):
        workspace.config(mechanism=TREE, input={"keep": ["symbols"]}, output={"symbols": True})
