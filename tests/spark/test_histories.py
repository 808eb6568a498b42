"""Random histories of a release: edits, corrected authors, changed kept columns, deaths, budgets, withdrawals, rotated
keys, publications. After each step the ledger is held against sums that come from the files of the draws and from the
history alone.
"""

from __future__ import annotations

import copy
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.releases import EXPONENTIAL, DiedError, Lake
from support.workspaces import WORDS, Workspace
from wordveil.assembly.bundles import build_bundle
from wordveil.crypto.keys import rotate_key
from wordveil.errors import ReleaseError
from wordveil.spark.platform import delta_table
from wordveil.spark.release.run import abandon, withdraw
from wordveil.spark.release.verify import verify_by_spark

TOKENS = 6
"""What each text costs."""
SECONDS, STEPS = 600, 18
GIVEN_UP = 0
"""In place of the epoch, for what a run had reserved that was given up."""
Record = tuple[str, str, str]
"""Body, author and kept column of a record."""
Payers = dict[tuple[str, str, int], dict[str, None]]
"""By record, sanitised text and epoch: the authors who pay for a draw, the first one first."""


class History:
    """A release, its input's versions, and what happens to both."""

    def __init__(self, spark: Any, root: Path, seed: int) -> None:
        self.lake = Lake(spark, Workspace(root))
        self.rng = np.random.default_rng(seed)
        self.told = [f"seed {seed}"]
        self.numbers = itertools.count()
        self.records: dict[str, Record] = {}
        """The rows of the input."""
        self.versions: list[dict[str, Record]] = []
        """The same for each version of the input."""
        self.limit: int | None = None
        """How many texts of an author the next run may charge."""
        self.on_exceeded = "quarantine"
        self.limits: dict[int, int | None] = {}
        """The same for the runs that have begun, by their numbers."""
        self.withdrawn: set[str] = set()
        mechanism = {**self.lake.workspace.settings()["mechanism"], **EXPONENTIAL}
        text = {"profile": "strict", "n_max": TOKENS}
        self.sections = {"input": {"author": "author"}, "mechanism": mechanism, "text": text}
        self.price = build_bundle(self.lake.config(**self.sections)).guarantee.pure
        self.insert(8)

    @property
    def config(self) -> Any:
        """The configuration of the next run."""
        if self.limit is None:
            return self.lake.config(**self.sections)
        limit = self.limit * TOKENS * self.price * (1 + 1e-12)
        budgets = {"unit": "pure", "relation": "any_text", "author": limit, "on_exceeded": self.on_exceeded}
        return self.lake.config(**self.sections, budgets=budgets)

    def choose(self, values: Any) -> Any:
        """One of them."""
        options = sorted(values)
        return options[int(self.rng.integers(len(options)))]

    def step(self) -> None:
        """Do something at random, and check what it has left."""
        acts = [
            self.insert,
            self.edit,
            self.edit,
            self.correct,
            self.move,
            self.delete,
            self.restore,
            self.run,
            self.run,
            self.die,
            self.die,
        ]
        acts += [self.abandon] * 2 * bool(self.open_runs()) or [self.withdraw, self.rotate, self.change_limit]
        acts += [] if self.open_runs() or not self.limits else [self.publish]
        act = acts[int(self.rng.integers(len(acts)))]
        self.told.append(act.__name__)
        act()
        self.check()

    # What happens to the input. Each is one version of it.

    def insert(self, count: int = 2) -> None:
        """New records."""
        authors = (f"a{self.rng.integers(3)}" for _ in range(count))
        new = {f"r{next(self.numbers):03d}": (self.new_text(), author, "d0") for author in authors}
        self.write(new)
        self.commit({**self.records, **new})

    def edit(self) -> None:
        """Another text, or the one that a record had first."""
        name, (_, *others) = self.choose(self.records.items())
        first = next(version[name][0] for version in self.versions if name in version)
        body = first if self.rng.random() < 0.3 else self.new_text()
        self.lake.update(f"id = '{name}'", body=body)
        self.commit({**self.records, name: (body, *others)})

    def correct(self) -> None:
        """Another author."""
        name, (body, author, day) = self.choose(self.records.items())
        author = self.choose({"a0", "a1", "a2", "a3"} - {author})
        self.lake.update(f"id = '{name}'", author=author)
        self.commit({**self.records, name: (body, author, day)})

    def move(self) -> None:
        """Another value of a kept column, for all records of an author."""
        author = self.choose({author for _, author, _ in self.records.values()})
        day = f"d{self.rng.integers(3)}"
        self.lake.update(f"author = '{author}'", day=day)
        moved = {name: (*record[:2], day) for name, record in self.records.items() if record[1] == author}
        self.commit({**self.records, **moved})

    def delete(self) -> None:
        """A record leaves, and the last one stays."""
        if len(self.records) > 1:
            name = self.choose(self.records)
            self.lake.delete(f"id = '{name}'")
            self.commit({key: value for key, value in self.records.items() if key != name})

    def restore(self) -> None:
        """A record that was deleted comes back as it was, and costs nothing more."""
        gone = {name: kept for version in self.versions for name, kept in version.items() if name not in self.records}
        if gone:
            name, record = self.choose(gone.items())
            self.write({name: record})
            self.commit({**self.records, name: record})

    def new_text(self) -> str:
        """A text that no record has had."""
        return f"{' '.join(self.rng.choice(WORDS, 3))} zz{next(self.numbers)}"

    def write(self, records: dict[str, Record]) -> None:
        """Add rows to the input."""
        bodies, authors, days = map(list, zip(*records.values(), strict=True))
        self.lake.write(pa.table({"id": list(records), "body": bodies, "day": days, "author": authors}))

    def commit(self, records: dict[str, Record]) -> None:
        """The input has a new version."""
        self.records = records
        self.versions.append(copy.copy(records))

    # What happens to the release.

    def run(self) -> None:
        """A run that ends, after it has finished what another one began."""
        self.lake.run(self.config)

    def die(self) -> None:
        """A run that dies after one of its first commits."""
        commits, last = itertools.count(1), int(self.rng.integers(1, 7))

        def committed(step: str) -> None:
            if next(commits) == last:
                raise DiedError(step)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delta_table, "after_commit", committed)
            try:
                self.run()
            except DiedError as error:
                self.told[-1] += f" after {error}"

    def abandon(self) -> None:
        """Give up a run, where nothing of it is drawn."""
        try:
            abandon(self.config.home, lambda: self.lake.spark, self.open_runs()[0])
        except ReleaseError as error:
            assert "its draws are written already" in str(error)

    def withdraw(self) -> None:
        """Withdraw a record that the release holds."""
        held = {row["id"] for row in self.rows("draws") if row["id"] is not None} - self.withdrawn
        if held:
            name = self.choose(held)
            withdraw(self.config, lambda: self.lake.spark, [name])
            self.withdrawn.add(name)

    def rotate(self) -> None:
        """A new epoch of the key."""
        rotate_key(self.lake.root / "key")

    def change_limit(self) -> None:
        """Another limit for each author, and what becomes of edits beyond it."""
        self.limit = self.choose([2, 4, 6, 100])
        self.on_exceeded = self.choose(["quarantine", "keep_last"])

    def publish(self) -> None:
        """Readers get the newest released draws, and nothing that was withdrawn."""
        self.lake.release(self.config)
        newest = {row["id"]: row for row in sorted(self.lake.draws(), key=lambda row: row["__seq"])}
        released = {name: row["text"] for name, row in newest.items() if row["status"] == "released"}
        assert {row["id"]: row["text"] for row in self.lake.rows(self.lake.public)} == released
        assert not self.withdrawn & set(released)
        verify_by_spark(self.lake.spark, str(self.lake.public), None, None)

    # What it must have cost.

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows that were ever written to a table of the release."""
        home = self.lake.home / table
        commits = sorted((home / "_delta_log").glob("[0-9]*.json"))
        actions = (json.loads(line) for commit in commits for line in commit.read_text("utf-8").splitlines())
        names = [action["add"]["path"] for action in actions if "add" in action]
        return [row for name in names for row in pq.ParquetFile(home / unquote(name)).read().to_pylist()]

    def runs(self) -> Iterator[tuple[dict[str, Any], str]]:
        """The runs that have begun, each with the event that ended it; empty for one that is open."""
        events = sorted(self.rows("journal"), key=lambda event: event["seq"])
        for event in events:
            if event["event"] == "intent":
                ends = [end["event"] for end in events if end["run_id"] == event["run_id"] and end is not event]
                yield {**json.loads(event["body"]), "seq": event["seq"], "run_id": event["run_id"]}, "".join(ends[:1])

    def open_runs(self) -> list[str]:
        """The runs that have begun and not ended."""
        return [intent["run_id"] for intent, end in self.runs() if not end]

    def check(self) -> None:
        """Hold the ledger against what was drawn and given up."""
        self.lake.forget()
        entries = self.lake.entries() if (self.lake.ledger / "_delta_log").exists() else []
        payers = self.find_payers(entries)
        if self.open_runs():  # has reserved, and not settled
            return
        assert sum(row["reserved_tokens"] for row in entries) == 0
        self.check_kept()
        by_record: Counter[str] = Counter()
        by_author: Counter[str] = Counter()
        for row in entries:
            by_author[row["author"]] += row["spent_tokens"]
            by_record[row["record_id"]] += row["spent_tokens"] * (row["kind"] != "attribute")
        draws = Counter(name for name, _, _ in payers)
        assert +by_record == Counter({name: TOKENS * count for name, count in draws.items()})
        least, most = count_payers(payers), Counter(itertools.chain(*payers.values()))
        for author in by_author.keys() | most.keys():
            assert TOKENS * least[author] <= by_author[author] <= TOKENS * most[author], author

    def check_kept(self) -> None:
        """Hold the kept column of released records against what the last run that read them has found."""
        days: dict[str, str] = {}
        for intent, end in self.runs():
            if intent["kind"] == "sanitise" and end == "finished":
                days |= {name: day for name, (_, _, day) in self.versions[intent["version"]].items()}
        if days:
            found = {name: row["day"] for name, row in self.lake.newest().items() if row["status"] == "released"}
            assert found == {name: days[name] for name in found}

    def find_payers(self, entries: list[dict[str, Any]]) -> Payers:
        """Each draw that costs and who pays for it: whoever was the record's author then, or in a later run that still
        read it. Checks texts, limits and withdrawals on the way.
        """
        texts: dict[tuple[str, int, str], str] = {}
        payers: Payers = {}
        gone: set[str] = set()
        draws = defaultdict(set)
        for row in self.rows("draws"):
            if row["status"] == "released":
                assert row["privacy"]["tokens"] == TOKENS
                draws[row["run_id"]].add((row["id"], row["text"], row["__epoch"]))
        for intent, end in self.runs():
            limit = self.limits.setdefault(intent["seq"], self.limit)
            ours = [row for row in entries if row["run_id"] == intent["run_id"]]
            gone |= {row["record_id"] for row in ours if row["kind"] == "withdraw"}
            if intent["kind"] != "sanitise" or not ours:
                continue
            then = self.versions[intent["version"]]
            for draw in payers:
                payers[draw] |= {then[draw[0]][1]: None} if draw[0] in then.keys() - gone else {}
            new = draws[intent["run_id"]] - payers.keys()
            if end == "abandoned":
                new = {(row["record_id"], intent["run_id"], GIVEN_UP) for row in ours if row["kind"] == "reserve"}
            payers |= {draw: {then[draw[0]][1]: None} for draw in new}
            assert not gone & {name for name, _, _ in new}
            for name, text, epoch in draws[intent["run_id"]]:
                assert texts.setdefault((name, epoch, then[name][0]), text) == text, "a text has one draw in an epoch"
            costs = count_payers(payers)
            assert limit is None or all(costs[then[name][1]] <= limit for name, _, _ in new)
        return payers


def count_payers(payers: Payers) -> Counter[str]:
    """How many draws each author must have paid for. What was given up has shown nothing: who became its record's
    author later need not pay for it, but does where other draws of the record were attributed at that time.
    """
    named = ([next(iter(authors))] if draw[2] == GIVEN_UP else authors for draw, authors in payers.items())
    return Counter(itertools.chain(*named))


def tell(history: History) -> Iterator[None]:
    """Each step of a history; a failure says what has happened."""
    for _ in range(STEPS):
        try:
            history.step()
        except BaseException as error:
            error.add_note("\n".join(history.told))
            raise
        yield


@pytest.mark.long
def test_the_ledger_of_random_histories_is_an_independent_sum(spark: Any, tmp_path: Path):
    """Ten minutes of them, and three at least."""
    until = time.monotonic() + SECONDS
    for seed in itertools.count():
        if seed >= 3 and time.monotonic() > until:
            break
        (root := tmp_path / str(seed)).mkdir()
        for _ in tell(History(spark, root, seed)):
            pass


@pytest.mark.long
def test_a_ledger_that_lost_or_invented_an_entry_is_noticed(spark: Any, tmp_path: Path):
    """The check of the histories can fail."""
    history = History(spark, tmp_path, 0)
    history.run()
    history.check()
    ledger = f"delta.`{history.lake.ledger}`"
    sound = spark.sql(f"DESCRIBE HISTORY {ledger}").agg({"version": "max"}).collect()[0][0]
    for statement in (
        f"INSERT INTO {ledger} SELECT * FROM {ledger} WHERE kind = 'settle' LIMIT 1",
        f"DELETE FROM {ledger} WHERE kind = 'settle' AND record_id = 'r000'",
        f"UPDATE {ledger} SET author = 'a3' WHERE record_id = 'r000'",
    ):
        spark.sql(statement)
        with pytest.raises(AssertionError):
            history.check()
        spark.sql(f"RESTORE TABLE {ledger} TO VERSION AS OF {sound}")
        history.check()
