"""ER-AE on Spark: texts do not depend on how they are spread, are paid for as wholes, and weights that a private corpus
trained are drawn from no more often than their records have paid for, over all releases of a ledger.
"""

from __future__ import annotations

import mmap
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wordveil
from support import toys
from support.releases import Lake, corpus_with_authors
from support.workspaces import EMBEDDING, Workspace, corpus, options_set, read_output
from wordveil.assembly.bundles import find_bundle
from wordveil.config.load import Config
from wordveil.crypto.keys import load_key
from wordveil.errors import BundleError, ConfigError, ReleaseError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import GeneratorWeights, save_weights
from wordveil.records.sanitiser import RecordSanitiser, release_terms
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.plan.sample import check_preview, make_preview
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.release.ledger import Terms, check_record_limit
from wordveil.spark.sanitise.distribution import distribute
from wordveil.spark.sanitise.job import run_sanitise
from wordveil.spark.sanitise.worker import load_bundle

TEXT = {"profile": "strict", "n_max": 12}
LENGTH = 4  # of the generator's sequences


@pytest.fixture(scope="module")
def weights() -> GeneratorWeights:
    return make_repeating_weights(EMBEDDING, LENGTH)


def mechanism(place: Path, weights: GeneratorWeights, **settings: Any) -> dict[str, Any]:
    """The section of the configuration, with weights at their place."""
    path = place / f"{weights.corpus}-{weights.identity[:8]}.npz"
    save_weights(path, weights)
    return {"name": "er-ae", "epsilon": 12.0, "model": str(path), **settings}


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Lake:
    lake = Lake(spark, workspace)
    lake.write(corpus_with_authors(12, authors=3))
    return lake


def test_a_job_writes_the_texts_of_its_sanitiser_however_spread(spark, workspace: Workspace, weights) -> None:
    table = corpus(60)
    workspace.write_corpus(table, files=5)
    config = workspace.config(mechanism=mechanism(workspace.root, weights), text=TEXT)
    with options_set(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}):
        run_sanitise(config, lambda: spark, run_id="run")
    rows, bundle = read_output(workspace.root / "output"), find_bundle(config)
    assert bundle is not None
    columns = [table["id"], table["day"], table["body"], pa.nulls(len(table), pa.string())]
    batch = pa.table(columns, ["id", "day", TEXT_COLUMN, REASON_COLUMN]).combine_chunks().to_batches()[0]
    keys = load_key(config.key.file, None).for_release(config.release)
    drawn = toys.sanitise(RecordSanitiser(config.record_settings("run"), bundle, keys), batch)
    assert [row["text"] for row in rows] == drawn["text"].to_pylist()
    price = bundle.guarantee.pure
    assert price == pytest.approx(12 / 2 + np.log(EMBEDDING.size + 1), rel=1e-6)  # words, padding and the end
    shown = {(row["privacy"]["composition"], row["privacy"]["tokens"], row["privacy"]["relation"]) for row in rows}
    assert shown == {("text", 12, "any_text")}
    assert {row["privacy"]["epsilon_pure"] for row in rows} == {12 * price}
    assert len({row["text"] for row in rows}) > 40
    check_that_weights_are_mapped(bundle)
    check_a_plan(spark, config, bundle)


def check_that_weights_are_mapped(bundle: Any) -> None:
    """What the generator holds is views of mapped files, and no copies."""
    for name, array in bundle.mechanism._generator._arrays.items():
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert isinstance(base, mmap.mmap), name


def check_a_plan(spark: Any, config: Any, bundle: Any) -> None:
    """A plan says what a whole text costs, and a preview draws whole texts."""
    plan = make_plan(config, lambda: spark)
    assert (plan.composition, plan.tokens, plan.epsilon_pure) == ("text", 12, 12 * bundle.guarantee.pure)
    assert (plan.recovery, plan.linkage) == (None, None)
    with pytest.raises(ConfigError, match="reads a text as a whole"):
        check_preview(config, None, "waaa")
    wanted = check_preview(config, 20, None)
    assert wanted is not None
    assert wanted.words == []
    table = make_preview(replace(wanted, seed=1), lambda: spark).sample
    assert table is not None
    sample = table.sample
    assert sample.tokens == 20 * 12
    assert 0 < sample.keep_draws <= sample.words


@pytest.mark.long
def test_a_release_pays_for_whole_texts_once(lake: Lake, workspace: Workspace, weights) -> None:
    config = lake.config(mechanism=mechanism(workspace.root, weights), text=TEXT, gate={"min_records": 12})
    price = wordveil.build_bundle(config).guarantee.pure
    limit = {"unit": "pure", "relation": "any_text", "record": 12 * price}
    config = lake.config(
        mechanism=mechanism(workspace.root, weights), text=TEXT, gate={"min_records": 12}, budgets=limit
    )
    lake.run(config)
    lake.release(config)
    charged = wordveil.read_ledger(config, by="record", session=lake.spark).collect()
    assert {(row.tokens, row.spent, row.reserved, row.left) for row in charged} == {(12, 12 * price, 0.0, 0.0)}
    before = lake.draws()
    assert lake.run(config).records == 0
    assert (lake.draws(), set(lake.spent().values())) == (before, {12})


def test_private_corpus_weights_are_drawn_as_often_as_is_paid(lake: Lake, workspace: Workspace, weights) -> None:
    private = replace(weights, corpus="private")
    section = mechanism(workspace.root, private, corpus="private", max_records=12)
    config = lake.config(mechanism=section, text=TEXT)
    price = wordveil.build_bundle(config).guarantee.pure
    lake.run(config)
    rows = lake.newest().values()
    assert {(row["privacy"]["composition"], row["privacy"]["tokens"]) for row in rows} == {("corpus", 12 * 12)}
    assert {row["privacy"]["epsilon_pure"] for row in rows} == {12 * 12 * price}
    assert set(lake.spent().values()) == {12 * 12}
    assert lake.run(config).records == 0  # the same contexts are drawn once

    # One more is too many, in this release or in any other of the ledger.
    lake.write(corpus_with_authors(13).slice(12))
    entries = lake.entries()
    with pytest.raises(ReleaseError, match=r"max_records = 12: 12 records .* 1 more, 1 too many"):
        lake.run(config)
    assert lake.entries() == entries
    again = {"release": "again", "output": {"path": str(lake.root / "again")}}
    with pytest.raises(ReleaseError, match=r"12 records have been drawn .* 13 more, 13 too many"):
        lake.run(lake.config(mechanism=section, text=TEXT, **again))
    assert lake.reserved() == 0

    for changes in ({"epsilon": 14.0}, {"max_records": 1000}):
        check_that_another_price_is_refused(lake, lake.config(mechanism={**section, **changes}, text=TEXT))
    with pytest.raises(ReleaseError, match="max_records is 1000 now and was 12"):
        lake.run(lake.config(mechanism={**section, "max_records": 1000}, text=TEXT))
    check_what_is_refused_without_a_ledger(lake, section)


def test_executors_with_private_corpus_weights_show_no_one_else(lake: Lake, workspace: Workspace, weights) -> None:
    """Spark unpacks archives with the modes of the umask, and keeps the archive too."""
    section = mechanism(workspace.root, replace(weights, corpus="private"), corpus="private", max_records=15)
    bundle = wordveil.build_bundle(lake.config(mechanism=section, text=TEXT))
    place = distribute(lake.spark, bundle, "archive")

    def open_in_worker(_: Any) -> Any:
        yield str(load_bundle(place, bundle.identity).path)

    (opened,) = set(lake.spark.sparkContext.parallelize([0, 1], 2).mapPartitions(open_in_worker).collect())
    opened = Path(opened)
    assert stat.S_IMODE(opened.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in opened.iterdir()} == {0o600}
    secret = (bundle.path / "output.bin").read_bytes()
    sent = [file for file in opened.parent.rglob("*") if file.is_file() and file.parent != opened]
    assert any(bundle.fingerprint in str(file) for file in sent)
    assert not any(secret in file.read_bytes() for file in sent)


def check_that_another_price_is_refused(lake: Lake, config: Config) -> None:
    """Records that have been charged would not have paid for it."""
    priced = release_terms(config.record_settings(""), wordveil.build_bundle(config))
    terms = Terms.of(priced, tables="another", run_id="run", epoch=1, epoch_key="key")
    asked = pa.table({"record_id": ["r"], "reason": pa.nulls(1, pa.string()), "is_charged": [False]})
    ledger = lake.spark.read.format("delta").load(str(lake.ledger))
    assert priced.max_records is not None
    with pytest.raises(ReleaseError, match="at another price"):
        check_record_limit(from_arrow(lake.spark, asked), ledger, terms, priced.max_records)


def check_what_is_refused_without_a_ledger(lake: Lake, section: dict[str, Any]) -> None:
    bundle = find_bundle(lake.config(mechanism=section, text=TEXT))
    frame = lake.spark.read.format("delta").load(str(lake.input))
    run = wordveil.Run.throwaway()
    with pytest.raises(BundleError, match="Draw with it only in a release with a ledger"):
        wordveil.sanitise(frame, bundle=bundle, run=run, id="id", text="body", policy=TEXT)
    with pytest.raises(BundleError, match="was trained on a private corpus"):
        wordveil.build_bundle(
            lake.config(
                mechanism={"corpus": "public", "name": "er-ae", "epsilon": 9.0, "model": section["model"]}, text=TEXT
            )
        )
