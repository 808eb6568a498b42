"""What a release records is the truth: whoever resumes, rotates, corrects, publishes or loses it, nothing is drawn
without its charge.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from support.releases import EXPONENTIAL, Lake, States, corpus_with_authors, die_after
from support.workspaces import Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.crypto.keys import rotate_key
from wordveil.errors import ReleaseError
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.maintenance import reset
from wordveil.spark.release.publish import publish
from wordveil.spark.release.run import abandon, withdraw
from wordveil.spark.release.verify import verify_by_spark


@pytest.fixture(scope="module")
def states(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """An input of twelve records of four authors, a mechanism without delta, and a release that has not run
    (``written``), or has run as ``night-1`` in the second epoch of its key (``drawn``). ``key.1`` is the key before.
    """
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("truth")))
    states = States(lake)
    lake.write(corpus_with_authors(12))
    states.keep("written")
    lake.workspace.write_key("key.1", (lake.root / "key").read_text())
    rotate_key(lake.root / "key")
    assert lake.run(config_of(lake), run_id="night-1").released == 12
    states.keep("drawn")
    return states


def config_of(lake: Lake, **sections: Any) -> Any:
    """The release's configuration."""
    source = {"author": "author", **sections.pop("input", {})}
    return lake.config(input=source, mechanism={**lake.workspace.settings()["mechanism"], **EXPONENTIAL}, **sections)


def price(lake: Lake) -> float:
    """What a record costs."""
    return 24 * build_bundle(config_of(lake)).guarantee.pure


def budgets(**limits: Any) -> dict[str, Any]:
    return {"unit": "pure", "relation": "any_text", **limits}


def interrupt(lake: Lake, step: str, config: Any, run_id: str = "night-1") -> None:
    with die_after(step):
        lake.run(config, run_id=run_id)


def charged(lake: Lake) -> dict[str, int]:
    """Tokens that each released record's draws hold, by the draws; what the ledger must say too."""
    return {row["id"]: row["privacy"]["tokens"] for row in lake.draws() if row["status"] == "released"}


# Resumed under other settings.


@pytest.mark.long
def test_resumed_run_keeps_to_the_budgets_it_began_with(lake: Lake):
    """As it reserves, and as it draws. Without them all records would be drawn, and those that were refused when it was
    reserved would be charged to nobody.
    """
    cost = price(lake)
    interrupt(lake, "intent", config_of(lake, budgets=budgets(author=2 * cost)))
    interrupt(lake, "reserve", config_of(lake))
    assert lake.reserved() == 8 * 24
    report = lake.run(config_of(lake), run_id="night-1")
    assert (report.released, report.quarantined) == (8, {"over_author_budget": 4})
    assert {record: spent for record, spent in lake.spent().items() if spent} == charged(lake)
    assert lake.reserved() == 0


@pytest.mark.long
def test_resumed_run_keeps_to_the_longest_text_it_began_with(lake: Lake):
    """By a policy whose tokens are counted: the long record was not reserved."""
    text = {"profile": "readable"}
    lake.sql("UPDATE {input} SET body = repeat('waab ', 200) WHERE id = 'r00003'")
    interrupt(lake, "reserve", config_of(lake, text=text, input={"max_bytes": 400}))
    report = lake.run(config_of(lake, text=text), run_id="night-1")
    assert report.quarantined == {"oversize": 1}
    assert {record: spent for record, spent in lake.spent().items() if spent} == {
        record: tokens for record, tokens in charged(lake).items() if tokens
    }
    assert lake.reserved() == 0
    again = lake.run(config_of(lake, text=text))
    assert (again.records, again.released) == (1, 1), "the settings of today hold from the next run on"


@pytest.mark.long
def test_settling_frees_the_reserved_and_charges_the_unreserved(lake: Lake):
    """Somebody has deleted a reservation, and added one of which nothing is drawn."""
    interrupt(lake, "draws", config_of(lake))
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


@pytest.mark.long
def test_an_epoch_is_known_by_its_key_and_a_run_by_its_tables(drawn: Lake):
    """Rotate, run, put the old file back, rotate again, begin again under the same run id: an epoch of the same number
    has other noise, and the run reserves and settles for itself.
    """
    first = {row["id"]: row["text"] for row in drawn.draws()}
    drawn.workspace.write_key("key", (drawn.root / "key.1").read_text())
    rotate_key(drawn.root / "key")
    shutil.rmtree(drawn.home)
    drawn.forget()
    reset(config_of(drawn).home, lambda: drawn.spark)
    assert drawn.run(config_of(drawn), run_id="night-1").released == 12
    assert {row["__epoch"] for row in drawn.draws()} == {2}
    assert {row["id"]: row["text"] for row in drawn.draws()} != first
    assert drawn.spent() == dict.fromkeys(first, 48)
    assert drawn.reserved() == 0


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


@pytest.mark.long
@pytest.mark.parametrize("changes", ["feed", "scan"])
def test_a_corrected_author_is_charged_and_the_old_charge_stays(drawn: Lake, changes: str):
    """For all that was charged of its records, a draw and an abandoned run; once, and without drawing anything, however
    often the author changes.
    """
    lake, config = drawn, config_of(drawn, input={"changes": changes})
    lake.update("author = 'a1'", body="waab waac")
    interrupt(lake, "reserve", config, "night-2")
    abandon(config.home, lambda: lake.spark, "night-2")
    texts = {name: row["text"] for name, row in lake.newest().items()}
    before = {"a0": 3 * 24, "a1": 3 * 48, "a2": 3 * 24, "a3": 3 * 24}
    assert spent_by_author(lake) == before

    lake.sql("RESTORE TABLE {input} TO VERSION AS OF 0")
    lake.update("author = 'a1'", author="a2")
    report = lake.run(config)
    assert (report.records, report.corrected) == (0, 3)
    assert spent_by_author(lake) == {**before, "a2": 3 * 24 + 3 * 48}
    assert spent_by_record(lake)["r00001"] == 48
    assert {name: row["text"] for name, row in lake.newest().items()} == texts
    assert lake.newest()["r00001"]["__author"] == "a2"

    # One is not touched, one goes back to an author that has paid, and one is edited too.
    lake.sql(
        "UPDATE {input} SET note = 5, author = CASE id WHEN 'r00005' THEN 'a1' WHEN 'r00009' THEN 'a3' ELSE author END,"
        " body = CASE id WHEN 'r00009' THEN 'waad' ELSE body END"
    )
    report = lake.run(config)
    assert (report.records, report.released, report.corrected) == (1, 1, 1)
    assert spent_by_author(lake) == {**before, "a2": 3 * 24 + 3 * 48, "a3": 3 * 24 + 48 + 24}
    assert spent_by_record(lake) == {
        **{f"r{number:05d}": 24 for number in range(12)},
        "r00001": 48,
        "r00005": 48,
        "r00009": 72,
    }


def test_charge_of_a_corrected_author_counts_against_its_budget(drawn: Lake):
    """A limit that the charge takes up admits nothing more; the old author has nothing back, and nothing is drawn."""
    lake, cost = drawn, price(drawn)
    before = lake.newest()["r00001"]
    config = config_of(lake, budgets=budgets(author=4 * cost, record=10 * cost))
    lake.update("id = 'r00001'", author="a2")
    lake.write(corpus_with_authors(15).slice(12, 3).set_column(4, "author", [["a2", "a1", "a1"]]))
    report = lake.run(config)
    assert (report.corrected, report.released, report.quarantined) == (1, 1, {"over_author_budget": 2})
    # Three of a1 were drawn, and a fourth has room.
    assert {name: row["status"] for name, row in lake.newest().items() if name > "r00011"} == {
        "r00012": "quarantined",
        "r00013": "released",
        "r00014": "quarantined",
    }
    assert spent_by_author(lake) == {"a0": 3 * 24, "a1": 4 * 24, "a2": 4 * 24, "a3": 3 * 24}
    assert spent_by_record(lake)["r00001"] == 24
    after = lake.newest()["r00001"]
    assert (after["__author"], after["text"]) == ("a2", before["text"])


# Publications.


def exposed(lake: Lake) -> set[tuple[str, ...]]:
    """What the public rows say that they expose."""
    rows = lake.spark.read.format("delta").load(str(lake.public)).select("privacy.exposes").distinct().collect()
    return {tuple(row.exposes) for row in rows}


def test_published_rows_say_what_is_true_of_the_publication(drawn: Lake):
    """A private rule that was added later, over the same draws; and what readers have seen stays said."""
    lake = drawn
    plain = ("edited", "kept_changed", "presence", "withdrawn", "column:day")
    assert {tuple(row["privacy"]["exposes"]) for row in lake.draws()} == {plain}
    private = config_of(lake, gate={"unknown_rate": 0.9})
    lake.release(private)
    assert exposed(lake) == {("edited", "gate", "kept_changed", "presence", "withdrawn", "column:day")}
    lake.release(config_of(lake, output={"order": "input"}))
    assert exposed(lake) == {("edited", "gate", "kept_changed", "layout", "presence", "withdrawn", "column:day")}
    found = verify_by_spark(lake.spark, str(lake.public), None, None).manifest.exposes
    assert found == ("column:day", "edited", "gate", "kept_changed", "layout", "presence", "withdrawn")


# Tables that are gone.


def test_withdrawn_record_stays_out_whatever_befalls_the_tables(drawn: Lake):
    """A release that its ledger knows is not begun again by accident; where it is on purpose, withdrawals hold, and the
    same contexts cost nothing more.
    """
    lake, config = drawn, config_of(drawn)
    withdraw(config, lambda: lake.spark, ["r00004"])
    with pytest.raises(ReleaseError, match="some or all of its tables are at"):
        reset(config.home, lambda: lake.spark)
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

    assert len(reset(config.home, lambda: lake.spark)) == 1
    with pytest.raises(ReleaseError, match="lists no tables of it"):
        reset(config.home, lambda: lake.spark)
    lake.update("id = 'r00000'", author="a3")
    assert lake.run(config).released == 11
    assert "r00004" not in lake.newest()
    spent = {record: tokens for record, tokens in spent_by_record(lake).items() if tokens}
    assert spent == {f"r{number:05d}": 24 for number in range(12)}
    assert spent_by_author(lake) == {"a0": 3 * 24, "a1": 3 * 24, "a2": 3 * 24, "a3": 4 * 24}


def test_withdrawal_that_dies_is_finished_and_in_the_ledger_once(drawn: Lake):
    lake, config = drawn, config_of(drawn)
    with die_after("withdraw"):
        withdraw(config, lambda: lake.spark, ["r00002"], run_id="erasure")
    withdraw(config, lambda: lake.spark, ["r00002", "r00003"], run_id="erasure")
    assert [row["record_id"] for row in lake.entries() if row["kind"] == "withdraw"] == ["r00002", "r00003"]
    newest = lake.newest()
    assert [newest[name]["status"] for name in ("r00002", "r00003")] == ["withdrawn", "withdrawn"]
