"""What a release records is the truth: whoever resumes, rotates, corrects, publishes or loses it, nothing is drawn
without its charge.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from releasing import EXPONENTIAL, Lake, corpus_with_authors
from sparking import Workspace
from wordveil.config.artifacts import build_bundle
from wordveil.crypto.keys import rotate_key
from wordveil.errors import ConfigError, ReleaseError
from wordveil.spark.platform import delta_table
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.maintenance import purge, reset
from wordveil.spark.release.publish import publish, verify_table
from wordveil.spark.release.run import abandon, withdraw


class DiedError(Exception):
    """The process is gone."""


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Lake:
    """An input of twelve records of four authors, a mechanism without delta, and a release that has not run."""
    found = Lake(spark, workspace)
    found.write(corpus_with_authors(12))
    return found


def config_of(lake: Lake, **sections: Any) -> Any:
    """The release's configuration."""
    source = {"author": "author", **sections.pop("input", {})}
    return lake.config(input=source, mechanism={**lake.workspace.settings()["mechanism"], **EXPONENTIAL}, **sections)


def price(lake: Lake) -> float:
    """What a record costs."""
    return 24 * build_bundle(config_of(lake)).guarantee.pure


def budgets(**limits: Any) -> dict[str, Any]:
    return {"unit": "pure", "relation": "any_text", **limits}


def die_after(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    """The process dies after its commit of this step."""

    def committed(step: str) -> None:
        if step == wanted:
            raise DiedError(step)

    monkeypatch.setattr(delta_table, "after_commit", committed)


def interrupt(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str, config: Any) -> None:
    die_after(monkeypatch, step)
    with pytest.raises(DiedError):
        lake.run(config, run_id="night-1")
    monkeypatch.setattr(delta_table, "after_commit", lambda _: None)


def charged(lake: Lake) -> dict[str, int]:
    """Tokens that each released record's draws hold, by the draws; what the ledger must say too."""
    return {row["id"]: row["privacy"]["tokens"] for row in lake.draws() if row["status"] == "released"}


# Resumed under other settings.


@pytest.mark.parametrize("step", ["intent", "reserve"])
def test_a_run_that_is_resumed_keeps_to_the_budgets_it_began_with(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str
):
    """Without them all records would be drawn, and those that were refused when it was reserved would be charged to
    nobody.
    """
    cost = price(lake)
    interrupt(lake, monkeypatch, step, config_of(lake, budgets=budgets(author=2 * cost)))
    report = lake.run(config_of(lake), run_id="night-1")
    assert (report.released, report.quarantined) == (8, {"over_author_budget": 4})
    assert {record: spent for record, spent in lake.spent().items() if spent} == charged(lake)
    assert lake.reserved() == 0


def test_a_run_that_is_resumed_keeps_to_the_longest_text_it_began_with(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """By a policy whose tokens are counted: the long record was not reserved."""
    text = {"profile": "readable"}
    lake.sql("UPDATE {input} SET body = repeat('waab ', 200) WHERE id = 'r00003'")
    interrupt(lake, monkeypatch, "reserve", config_of(lake, text=text, input={"max_bytes": 400}))
    report = lake.run(config_of(lake, text=text), run_id="night-1")
    assert report.quarantined == {"oversize": 1}
    assert {record: spent for record, spent in lake.spent().items() if spent} == {
        record: tokens for record, tokens in charged(lake).items() if tokens
    }
    assert lake.reserved() == 0
    again = lake.run(config_of(lake, text=text))
    assert (again.records, again.released) == (1, 1), "the settings of today hold from the next run on"


def test_settling_takes_back_what_was_reserved_and_charges_what_was_not(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """Somebody has deleted a reservation, and added one of which nothing is drawn."""
    interrupt(lake, monkeypatch, "draws", config_of(lake))
    ledger = f"delta.`{lake.ledger}`"
    one = lake.spark.table(ledger).where("record_id = 'r00001'")
    ghost = one.selectExpr(*("'ghost' AS record_id" if name == "record_id" else name for name in one.columns))
    ghost.write.format("delta").mode("append").save(str(lake.ledger))
    lake.spark.sql(f"DELETE FROM {ledger} WHERE record_id = 'r00002'")
    lake.run(config_of(lake), run_id="night-1")
    assert lake.reserved() == 0
    assert {record: spent for record, spent in lake.spent().items() if spent} == charged(lake)
    by_record: dict[str, int] = {}
    for row in lake.entries():
        by_record[row["record_id"]] = by_record.get(row["record_id"], 0) + row["reserved_draws"]
    assert set(by_record.values()) == {0}


# Epochs of the key.


def test_an_epoch_is_known_by_its_key_and_not_by_its_number(lake: Lake):
    """Rotate, run, put the old file back, rotate again, begin again: other noise, and a charge for it."""
    old = (lake.root / "key").read_text()
    rotate_key(lake.root / "key")
    lake.run(config_of(lake))
    first = {row["id"]: row["text"] for row in lake.draws()}
    shutil.rmtree(lake.home)
    lake.forget()
    reset(config_of(lake), lambda: lake.spark)
    assert lake.run(config_of(lake)).released == 12
    assert lake.spent() == dict.fromkeys(first, 24), "the same contexts cost nothing more"

    lake.workspace.write_key("key", old)
    rotate_key(lake.root / "key")
    shutil.rmtree(lake.home)
    lake.forget()
    reset(config_of(lake), lambda: lake.spark)
    lake.run(config_of(lake))
    assert {row["__epoch"] for row in lake.draws()} == {2}
    assert {row["id"]: row["text"] for row in lake.draws()} != first
    assert lake.spent() == dict.fromkeys(first, 48)


# Authors that turn out to be others.


def spent_by_author(lake: Lake) -> dict[str, int]:
    """Tokens that each author is charged."""
    sums: dict[str, int] = {}
    for row in lake.entries():
        sums[row["author"]] = sums.get(row["author"], 0) + row["spent_tokens"]
    return {author: tokens for author, tokens in sums.items() if tokens}


def spent_by_record(lake: Lake) -> dict[str, int]:
    """Tokens that each record costs: what a further author is charged counts for that author alone."""
    sums: dict[str, int] = {}
    for row in lake.entries():
        if row["kind"] != "attribute":
            sums[row["record_id"]] = sums.get(row["record_id"], 0) + row["spent_tokens"]
    return sums


def correct_an_author(lake: Lake, config: Any) -> dict[str, int]:
    """Draw r00001 twice for a1, then correct its author to a2; what each author was charged before the correction."""
    lake.run(config)
    lake.sql("UPDATE {input} SET body = 'waab waac' WHERE id = 'r00001'")
    lake.run(config)
    texts = {row["id"]: row["text"] for row in lake.newest().values()}
    before = spent_by_author(lake)
    assert before == {"a0": 72, "a1": 96, "a2": 72, "a3": 72}

    lake.sql("UPDATE {input} SET author = 'a2' WHERE id = 'r00001'")
    report = lake.run(config)
    assert (report.records, report.corrected) == (0, 1)
    assert spent_by_author(lake) == {**before, "a2": 72 + 48}
    assert spent_by_record(lake)["r00001"] == 48
    assert {row["id"]: row["text"] for row in lake.newest().values()} == texts
    assert lake.newest()["r00001"]["__author"] == "a2"
    entries = lake.entries()
    lake.sql("UPDATE {input} SET note = 5")
    assert lake.run(config).corrected == 0, "once, however often the release runs"
    assert lake.entries() == entries
    return before


@pytest.mark.long
def test_a_corrected_author_is_charged_where_contents_are_compared(lake: Lake):
    """All versions of the record, and without drawing anything."""
    correct_an_author(lake, config_of(lake, input={"changes": "scan"}))


def test_a_corrected_author_is_charged_by_the_feed_and_the_old_charge_stays(lake: Lake):
    """However often the author changes."""
    config = config_of(lake, input={"changes": "feed"})
    before = correct_an_author(lake, config)
    lake.sql("UPDATE {input} SET author = 'a1' WHERE id = 'r00001'")
    assert lake.run(config).corrected == 1
    assert spent_by_author(lake) == {**before, "a2": 72 + 48}, "a1 was charged when it was drawn"
    lake.sql("UPDATE {input} SET author = 'a3', body = 'waad' WHERE id = 'r00001'")
    report = lake.run(config)
    assert (report.records, report.released, report.corrected) == (1, 1, 0)
    assert spent_by_author(lake) == {**before, "a2": 72 + 48, "a3": 72 + 48 + 24}, (
        "all that was drawn of it before, and the new draw"
    )
    assert spent_by_record(lake)["r00001"] == 72


def test_what_a_corrected_author_is_charged_counts_against_its_budget(lake: Lake):
    """A limit that the charge takes up admits nothing more; the old author has nothing back."""
    cost = price(lake)
    config = config_of(lake, budgets=budgets(author=4 * cost, record=10 * cost))
    assert lake.run(config).released == 12
    lake.sql("UPDATE {input} SET author = 'a2' WHERE id = 'r00001'")
    lake.write(corpus_with_authors(14).slice(13, 1).set_column(4, "author", [["a2"]]))
    report = lake.run(config)
    assert (report.corrected, report.quarantined) == (1, {"over_author_budget": 1})
    lake.write(corpus_with_authors(15).slice(14, 1).set_column(4, "author", [["a1"]]))
    assert lake.run(config).released == 1, "three of a1 were drawn, and a fourth has room"
    lake.write(corpus_with_authors(16).slice(15, 1).set_column(4, "author", [["a1"]]))
    assert lake.run(config).quarantined == {"over_author_budget": 1}


# Publications.


def exposed(lake: Lake) -> set[tuple[str, ...]]:
    """What the public rows say that they expose."""
    rows = lake.spark.read.format("delta").load(str(lake.public)).select("privacy.exposes").distinct().collect()
    return {tuple(row.exposes) for row in rows}


def test_published_rows_say_what_is_true_of_the_publication(lake: Lake):
    """A private rule that was added later, over the same draws; and what readers have seen stays said."""
    plain = config_of(lake)
    lake.run(plain)
    lake.release(plain)
    assert exposed(lake) == {("edited", "presence", "withdrawn", "column:day")}
    assert {tuple(row["privacy"]["exposes"]) for row in lake.draws()} == exposed(lake)

    private = config_of(lake, gate={"unknown_rate": 0.9})
    lake.release(private)
    with_gate = {("edited", "gate", "presence", "withdrawn", "column:day")}
    assert exposed(lake) == with_gate
    assert verify_table(lake.spark, str(lake.public), None, None).manifest.exposes == (
        "column:day",
        "edited",
        "gate",
        "presence",
        "withdrawn",
    )
    version = delta_table.DeltaTable(lake.spark, str(lake.public), "public").version()
    publish(private, lambda: lake.spark)
    assert delta_table.DeltaTable(lake.spark, str(lake.public), "public").version() == version, (
        "a second time it is the same table"
    )

    assert run_gate(plain, lambda: lake.spark).result.passed
    publish(plain, lambda: lake.spark)
    assert exposed(lake) == with_gate
    lake.release(config_of(lake, output={"order": "input"}))
    assert exposed(lake) == {("edited", "gate", "layout", "presence", "withdrawn", "column:day")}


# Tables that are gone.


def test_a_withdrawn_record_stays_out_whatever_becomes_of_the_tables(lake: Lake):
    """A release that its ledger knows is not begun again by accident; where it is on purpose, withdrawals hold."""
    config = config_of(lake)
    lake.run(config)
    withdraw(config, lambda: lake.spark, ["r00004"])
    assert purge(config, lambda: lake.spark) == 1
    with pytest.raises(ReleaseError, match="some or all of its tables are at"):
        reset(config, lambda: lake.spark)
    lake.home.rename(lake.root / "aside")
    lake.forget()
    for command in (
        lake.run,
        lambda one: run_gate(one, lambda: lake.spark),
        lambda one: publish(one, lambda: lake.spark),
    ):
        with pytest.raises(ReleaseError, match=r"release support: the ledger .* lists it, .*wordveil release reset"):
            command(config)
    assert not (lake.home / "draws").exists()

    assert len(reset(config, lambda: lake.spark)) == 1
    with pytest.raises(ReleaseError, match="lists no tables of it"):
        reset(config, lambda: lake.spark)
    report = lake.run(config)
    assert report.released == 11
    assert "r00004" not in lake.newest()
    assert set(lake.spent().values()) == {24}
    lake.sql("UPDATE {input} SET author = 'a3' WHERE id = 'r00000'")
    assert lake.run(config).corrected == 1

    shutil.rmtree(lake.home)
    lake.forget()
    with pytest.raises(ReleaseError, match="lists it"):
        lake.run(config)
    # Put back as they were they are those of before the reset, which the ledger has given up.
    other = config_of(lake, release="other", output={"path": str(lake.root / "other")})
    assert lake.run(other).released == 12, "a release that the ledger does not know"


def test_a_run_of_tables_that_were_given_up_is_not_taken_for_one_of_the_new_ones(lake: Lake):
    """The same run id under new tables reserves and settles for itself."""
    lake.run(config_of(lake), run_id="night")
    shutil.rmtree(lake.home)
    lake.forget()
    reset(config_of(lake), lambda: lake.spark)
    lake.sql("UPDATE {input} SET body = 'waab waac'")
    assert lake.run(config_of(lake), run_id="night").released == 12
    assert lake.spent() == {f"r{number:05d}": 48 for number in range(12)}
    assert lake.reserved() == 0


def test_a_withdrawal_that_dies_is_finished_and_known_to_the_ledger_once(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    config = config_of(lake)
    lake.run(config)
    for step in ("intent", "withdraw", "draws"):
        die_after(monkeypatch, step)
        with pytest.raises(DiedError):
            withdraw(config, lambda: lake.spark, ["r00002"], run_id="erasure")
    monkeypatch.setattr(delta_table, "after_commit", lambda _: None)
    withdraw(config, lambda: lake.spark, ["r00002"], run_id="erasure")
    assert [row["record_id"] for row in lake.entries() if row["kind"] == "withdraw"] == ["r00002"]
    assert lake.newest()["r00002"]["status"] == "withdrawn"


# Budgets of mechanisms whose arithmetic is not exact.


def test_a_pure_budget_takes_noise_that_was_rounded_only_with_a_limit_on_delta(lake: Lake):
    """Laplace's delta is in each row, in the ledger, and in the sum that a limit is held against."""
    author = {"author": "author"}
    guarantee = build_bundle(lake.config()).guarantee
    cost = 24 * guarantee.pure
    with pytest.raises(ConfigError, match=r"budgets\.delta.*is required"):
        lake.run(lake.config(input=author, budgets=budgets(author=10 * cost)))
    delta = 24 * guarantee.delta
    report = lake.run(lake.config(input=author, budgets=budgets(author=10 * cost, delta=2 * delta)))
    assert (report.released, report.quarantined) == (8, {"over_author_budget": 4})
    assert report.delta == delta
    assert 0 < delta <= 24e-12
    assert {row["privacy"]["delta"] for row in lake.draws() if row["privacy"]} == {delta}
    assert {row["delta"] for row in lake.entries()} == {guarantee.delta}


def test_an_abandoned_run_is_charged_to_a_corrected_author_too(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    config = config_of(lake)
    interrupt(lake, monkeypatch, "reserve", config)
    abandon(config, lambda: lake.spark, "night-1")
    lake.run(config)
    lake.sql("UPDATE {input} SET author = 'new' WHERE id = 'r00001'")
    lake.run(config)
    assert spent_by_author(lake)["new"] == 48


def test_corpora_without_authors_and_edits_are_as_before(lake: Lake):
    """Nothing is corrected where no column names authors."""
    lake.run(lake.config())
    lake.sql("UPDATE {input} SET author = 'new'")
    assert lake.run(lake.config()).corrected == 0
