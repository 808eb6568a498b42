"""What a release costs beside a one-shot job, and what a night costs when little or nothing has changed.

In one session, one after the other, on real text (film reviews; without the data directory gensim's news articles):

* job and release: the same records from Parquet to Parquet, and from Delta as a release's first run, with journal,
  ledger, reservations and settlement, in turns;
* a million records: a first run, a night without a change, a night after 1% of the records were edited, by the change
  data feed and by comparing contents;
* merge: at three sizes, a first run beside a plain copy to Delta, and a run after 1% was edited beside Delta's MERGE of
  the same rows into that copy;
* publication: a million records in directories of a hundred days, and without directories, after a run over edits of
  1%, and after one over 1% that were added;
* ledger: what each author has spent, over ten million entries.

    python research/benchmarks/releases.py [--smallest] [--only PART]

Writes research/results/releases.json and prints a table.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from rich.console import Console
from rich.table import Table

from common import RESULTS, SLOTS, machine, make_parser, processor_seconds, save_results
from tables import Tables, reviews, write_reviews

PARTS = ("overhead", "nights", "merge", "publication", "ledger")
ROUNDS, COPIES = 3, 8
RECORDS, ENTRIES, AUTHORS, DAYS = 1_000_000, 10_000_000, 100_000, 100
WARM, MERGED = 10_000, (40_000, 400_000, 2_000_000)
PUBLICATIONS = {
    "first": "of a first run",
    "of_each_day": "with 1% edited, of each day",
    "a_day": "with a day of 1% added",
    "to_each_day": "with 1% added, to each day",
}
PLAIN_PUBLICATIONS = {
    "first": "of a first run, without directories",
    "edited": "with 1% edited, without directories",
    "added": "with 1% added, without directories",
}
MERGE_STEPS = {
    "copy": "plain copy to Delta",
    "first": "first run",
    "merge": "MERGE of 1% into the copy",
    "night": "run with 1% edited",
}
WORDS_A_RECORD = 60
N_MAX = 64


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Measure how long an action takes, and what it gives."""
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


class Releases(Tables):
    """Jobs and releases over one embedding, in one session that knows Delta."""

    def __init__(self, home: Path, *, smallest: bool) -> None:
        super().__init__(home, smallest=smallest)
        self.settings["text"] = {"profile": "strict", "n_max": N_MAX}
        self._spark: Any = None

    @property
    def spark(self) -> Any:
        """The session."""
        from wordveil.config.schema import SparkSection
        from wordveil.spark.platform.session import build_session

        if self._spark is None:
            options = self.settings["spark"]["options"]
            self._spark = build_session(SparkSection(master=f"local[{SLOTS}]", options=options), delta=True)
        return self._spark

    def write_delta(self, frame: Any, name: str) -> Path:
        """Write a Delta table with its change data feed on."""
        path = self.home / name
        frame.write.format("delta").mode("append").option("delta.enableChangeDataFeed", "true").save(str(path))
        return path

    def job(self, corpus: Path, run: str) -> Any:
        """Return a one-shot job."""
        from wordveil.spark.sanitise.job import run_sanitise

        return run_sanitise(self.config(corpus, run, "exponential"), lambda: self.spark)

    def release_config(self, table: Path, run: str, changes: str = "feed", days: tuple[str, ...] = ()) -> Any:
        """Return a release; in directories of ``days``, if there is such a column."""
        read = {"path": str(table), "format": "delta", "changes": changes, "keep": [*days]}
        tables = {
            "input": {**self.settings["input"], **read},
            "output": {"path": str(self.home / f"release-{run}"), "format": "delta", "partition_by": [*days]},
            "ledger": {"path": str(self.home / f"ledger-{run}")},
        }
        return self.config(table, run, "exponential", **tables, gate={"min_records": 1})

    def release(self, table: Path, run: str, changes: str = "feed") -> Any:
        """Run a release once and return its report."""
        from wordveil.spark.release.run import run_release

        return run_release(self.release_config(table, run, changes), lambda: self.spark)


def overhead(benchmark: Releases, corpus: Path, rounds: int) -> dict[str, Any]:
    """Sanitise reviews of ``N_MAX`` tokens each, from Parquet to Parquet and as a release's first run, in turns: wall
    and
    processor time.

    Processor time measures the work, even where others use the same machine. Wall time is what a user waits for.
    """
    name = corpus.name
    table = benchmark.write_delta(benchmark.spark.read.parquet(str(corpus)), f"reviews-{name}")
    kinds = {"job": partial(benchmark.job, corpus), "release": partial(benchmark.release, table)}
    found: dict[str, Any] = {f"{what}{kind}": [] for what in ("", "processor_") for kind in kinds}
    for number in range(rounds):
        for kind, action in kinds.items():
            before = processor_seconds()
            taken, report = seconds(partial(action, f"{name}-{number}"))
            found[kind].append(taken)
            found[f"processor_{kind}"].append(processor_seconds() - before)
            found |= {"tokens": report.tokens, "records": report.records}
    for what in ("", "processor_"):
        found[f"{what}overhead"] = (
            statistics.median(found[f"{what}release"]) / statistics.median(found[f"{what}job"]) - 1
        )
    return found


def short_records(benchmark: Releases, texts: list[str], records: int) -> Any:
    """Many short records with numbers as ids."""
    from pyspark.sql import functions as F  # noqa: N812

    spark = benchmark.spark
    pieces = []
    for text in texts:
        words = text.split()
        pieces += [" ".join(words[start : start + WORDS_A_RECORD]) for start in range(0, len(words), WORDS_A_RECORD)]
    base = spark.createDataFrame(
        [(number, piece) for number, piece in enumerate(pieces)], "piece bigint, text_body string"
    )
    base = base.repartition(8)
    copies = -(-records // len(pieces))
    frame = base.crossJoin(F.broadcast(spark.range(copies).withColumnRenamed("id", "copy")))
    frame = frame.select((F.col("copy") * len(pieces) + F.col("piece")).cast("string").alias("id"), "text_body")
    return frame.limit(records)


def nights(benchmark: Releases, texts: list[str], records: int) -> dict[str, Any]:
    """Measure a release of many short records over some nights."""
    spark, table = benchmark.spark, benchmark.write_delta(short_records(benchmark, texts, records), "short")
    found: dict[str, Any] = {"records": records}
    for changes in ("feed", "scan"):
        found[f"first_{changes}"], first = seconds(lambda changes=changes: benchmark.release(table, changes, changes))
    found["first_records"] = first.records
    taken, report = seconds(lambda: benchmark.release(table, "feed"))
    found["unchanged"], found["unchanged_records"], found["unchanged_changes"] = taken, report.records, report.changes
    spark.sql(f"UPDATE delta.`{table}` SET text_body = concat('edited ', text_body) WHERE cast(id AS bigint) % 100 = 7")  # noqa: S608
    for changes in ("feed", "scan"):
        taken, report = seconds(lambda changes=changes: benchmark.release(table, changes, changes))
        found[f"edited_{changes}"], found["edited_records"] = taken, report.records
    return found


def merge(benchmark: Releases, texts: list[str], records: int) -> dict[str, Any]:
    """Processor seconds of a first run and a night, and of what plain Delta does with the same rows."""
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F  # noqa: N812

    spark, copy = benchmark.spark, str(benchmark.home / f"copy-{records}")
    table = benchmark.write_delta(short_records(benchmark, texts, records), f"merged-{records}")
    is_edited = F.col("id").cast("bigint") % 100 == 7

    def read() -> Any:
        return spark.read.format("delta").load(str(table))

    def update() -> None:
        target = DeltaTable.forPath(spark, copy).alias("t")
        target.merge(read().where(is_edited).alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()

    found: dict[str, Any] = {"records": records}
    actions: dict[str, Callable[[], object]] = {
        "copy": lambda: read().write.format("delta").save(copy),
        "first": lambda: benchmark.release(table, f"merge-{records}"),
        "edit": lambda: DeltaTable.forPath(spark, str(table)).update(is_edited, {"text_body": F.upper("text_body")}),
        "merge": update,
        "night": lambda: benchmark.release(table, f"merge-{records}"),
    }
    for name, action in actions.items():
        before = processor_seconds()
        taken, _ = seconds(action)
        found[name] = {"seconds": taken, "processor_seconds": processor_seconds() - before}
    return found


def publication(benchmark: Releases, texts: list[str], records: int) -> dict[str, Any]:
    """Measure nights of a release in directories, and of one without."""
    from pyspark.sql import functions as F  # noqa: N812

    made = short_records(benchmark, texts, records)
    number = F.col("id").cast("bigint")
    made = made.withColumn("day", F.format_string("d%03d", F.floor(number * DAYS / records)))

    def add(table: str, begin: str, day: str | None = None) -> None:
        """1% more, of each day or of a new one."""
        more = made.where(number % DAYS == 0).withColumn("id", F.concat(F.lit(begin), "id"))
        benchmark.write_delta(more.withColumn("day", F.lit(day)) if day else more, table)

    def edit(table: str) -> None:
        update = f"UPDATE delta.`{benchmark.home / table}` SET text_body = concat('edited ', text_body)"  # noqa: S608
        benchmark.spark.sql(f"{update} WHERE cast(id AS bigint) % {DAYS} = 7")

    in_days: dict[str, Callable[[], object]] = {
        "first": lambda: benchmark.write_delta(made, "days"),
        "of_each_day": lambda: edit("days"),
        "a_day": lambda: add("days", "x", "new"),
        "to_each_day": lambda: add("days", "y"),
    }
    plain: dict[str, Callable[[], object]] = {
        "first": lambda: benchmark.write_delta(made, "plain"),
        "edited": lambda: edit("plain"),
        "added": lambda: add("plain", "x"),
    }
    found = measure_nights(benchmark, "days", ("day",), in_days)
    return {"records": records, "directories": DAYS, **found, "plain": measure_nights(benchmark, "plain", (), plain)}


def measure_nights(
    benchmark: Releases, table: str, days: tuple[str, ...], changes: dict[str, Callable[[], object]]
) -> dict[str, Any]:
    """Measure the seconds of each night's steps, and the files that its publication left and wrote."""
    from wordveil.spark.release.night import run_night

    config = benchmark.release_config(benchmark.home / table, table, days=days)
    found: dict[str, Any] = {}
    files: set[str] = set()
    for name, change in changes.items():
        change()
        times = [time.perf_counter()]
        night = run_night(
            config, lambda: benchmark.spark, done=lambda _, times=times: times.append(time.perf_counter())
        )
        published: Any = night.publication
        listed = {file["path"] for file in published.document["manifest"]["files"]}
        found[name] = dict(zip(("sanitise", "gate", "publish"), np.diff(times).tolist(), strict=True))
        found[name] |= {"files_left": len(listed & files), "files_written": len(listed - files)}
        files = listed
    return found


def ledger(benchmark: Releases, entries: int) -> dict[str, Any]:
    """Measure what each author has spent, over many entries."""
    from pyspark.sql import functions as F  # noqa: N812

    from wordveil.privacy.relations import Relation
    from wordveil.release.budgets import Budget
    from wordveil.spark.platform.delta_table import DeltaTable
    from wordveil.spark.release.ledger import Ledger, Terms
    from wordveil.spark.release.ledger_report import sum_costs

    spark = benchmark.spark
    store = DeltaTable(spark, str(benchmark.home / "ledger-large"), "ledger")
    book = Ledger(store)
    book.create()
    terms = Terms("bench", "tables", "run", 1, "0" * 16, 0.5, 8.0, 0.0, "euclidean:0", "any_text")
    drawn = spark.range(entries).select(
        F.col("id").cast("string").alias("record_id"),
        (F.col("id") % AUTHORS).cast("string").alias("author"),
        F.lit(N_MAX).cast("bigint").alias("reserved"),
        F.lit(N_MAX).cast("bigint").alias("tokens"),
        F.md5(F.col("id").cast("string")).cast("binary").alias("content_tag"),
    )
    written, _ = seconds(lambda: book.settle(terms, drawn))
    budget = Budget("pure", Relation.ANY_TEXT, author=1e9)
    taken, rows = seconds(lambda: sum_costs(store.read(), "author", budget).count())
    return {"entries": entries, "authors": rows, "write": written, "by_author": taken}


def main() -> None:
    """Measure all parts, or those that are asked for; the file keeps the others."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; repeatable")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the part overhead")
    chosen = parser.parse_args()
    part, rounds = (5_000, 1) if chosen.smallest else (1, chosen.rounds)
    about, parts = machine(), chosen.only or PARTS
    file = RESULTS / "releases.json"
    content: dict[str, Any] = json.loads(file.read_text("utf-8")) if chosen.only else {}
    with tempfile.TemporaryDirectory() as directory:
        benchmark = Releases(Path(directory), smallest=chosen.smallest)
        benchmark.build("exponential")
        texts = reviews(100 if chosen.smallest else None)
        if not chosen.smallest:  # the first run compiles
            merge(benchmark, texts, WARM)
        if "overhead" in parts:
            write_reviews(benchmark.home / "overhead", texts, max(1, COPIES // part))
            content["overhead"] = overhead(benchmark, benchmark.home / "overhead", rounds)
        if "nights" in parts:
            content["nights"] = nights(benchmark, texts, RECORDS // part)
        if "merge" in parts:
            content["merge"] = {"sizes": [merge(benchmark, texts, size // part) for size in MERGED]}
        if "publication" in parts:
            content["publication"] = publication(benchmark, texts, RECORDS // part)
        if "ledger" in parts:
            content["ledger"] = ledger(benchmark, ENTRIES // part)
    for name in parts:
        content[name]["machine"] = about
    save_results("releases", content, smallest=chosen.smallest)
    show({name: content[name] for name in parts})


def show_publications(nights: dict[str, Any], labels: dict[str, str]) -> dict[str, str]:
    """Show what each publication took and wrote."""
    return {
        f"publication {label}": f"{nights[name]['publish']:.1f} s, {nights[name]['files_written']} files written, "
        f"{nights[name]['files_left']} left"
        for name, label in labels.items()
    }


def show(content: dict[str, Any]) -> None:
    """Show the figures as a table."""
    table = Table("what", "figure", title="Releases")
    rows = {}
    if over := content.get("overhead"):
        size = f"{over['records']:,} records, {over['tokens']:,} tokens"
        for what in ("", "processor_"):
            of = f"{size}, processor time" if what else size
            rows[f"job, {of}"] = f"{statistics.median(over[f'{what}job']):.1f} s"
            rows[f"first run, {of}"] = (
                f"{statistics.median(over[f'{what}release']):.1f} s, {over[f'{what}overhead']:+.0%}"
            )
    if night := content.get("nights"):
        rows[f"first run over {night['records']:,} records"] = f"{night['first_feed']:.1f} s"
        rows["a night without a change"] = f"{night['unchanged']:.2f} s, {night['unchanged_records']} rows drawn"
        rows["1% edited, by the change data feed"] = f"{night['edited_feed']:.1f} s, {night['edited_records']:,} drawn"
        rows["1% edited, contents compared"] = f"{night['edited_scan']:.1f} s"
    for found in content.get("merge", {}).get("sizes", ()):
        for name, label in MERGE_STEPS.items():
            rows[f"{label}, {found['records']:,} records, processor time"] = f"{found[name]['processor_seconds']:.1f} s"
    if found := content.get("publication"):
        rows |= show_publications(found, PUBLICATIONS) | show_publications(found["plain"], PLAIN_PUBLICATIONS)
    if book := content.get("ledger"):
        rows[f"ledger by author, {book['entries']:,} entries"] = f"{book['by_author']:.1f} s"
    for what, figure in rows.items():
        table.add_row(what, figure)
    Console().print(table)


if __name__ == "__main__":
    main()
