"""Mechanisms that draw from whole numbers, end to end in Spark, over a pass that only splits and joins.

In one session, in turns, over the same Parquet files of film reviews (54,000 words x 300, every token drawn, nothing
kept by word):

* job: the main job's own path from Parquet to Parquet with exponential and 256 neighbours: scan, tokenise, look up,
draw, join, account, arrange by ids, write; staircase and tree: the same with these mechanisms;
* input order: the same with ``output.order: input``, which arranges nothing and shows the sizes of the texts;
* split and join: ``mapInArrow`` with Arrow's ``utf8_split_whitespace`` and ``binary_join``, and the same write of ids
and texts.

A profile of the same code in one process says where the time goes, and how long the bundle takes to build. Policies
take turns in one process, too: processor time a word of text, for `strict` with `length: as_is`, `readable`, and
`readable` with `repeat: same`. ``--policies`` measures these alone, and puts them beside the other results.

    python research/benchmarks/tables.py [--smallest] [--copies N] [--policies] [--billion]

``--billion`` runs the job alone over 1,000,000,000 tokens and more, the texts 88 times under new ids, and reports its
time, memory and files; it takes some 10 GB of disk. Writes research/results/tables.json or tables_billion.json and
prints tables. Without the data directory: the demo embedding and gensim's articles.
"""

from __future__ import annotations

import json
import lzma
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from common import (
    DATA,
    RESULTS,
    SLOTS,
    load_embedding,
    machine,
    make_parser,
    processor_seconds,
    real_texts,
    save_results,
    timed,
    timed_calls,
)

ROUNDS, COPIES, BILLION_COPIES = 3, 4, 88
EPSILON, NEIGHBOURS = 8.0, 256
MECHANISMS: dict[str, dict[str, Any]] = {
    "exponential": {"neighbours": NEIGHBOURS},
    "staircase": {},
    "tree": {"sizes": [20]},
}
FILES = 8
PASSAGES = 100_000
ENCODER = {"words": 100_000, "columns": 200, "subjects": 200, "texts": 20_000, "text_words": 150}
POLICIES: dict[str, dict[str, Any]] = {
    "strict": {"profile": "strict", "length": "as_is"},
    "readable": {"profile": "readable"},
    "readable_same": {"profile": "readable", "repeat": "same"},
}


def reviews(count: int | None = None) -> list[str]:
    """Film reviews of the data directory, else the news articles of gensim's wheel; the first ``count``."""
    source = DATA / "aclImdb.jsonl.xz"
    if not source.exists():
        return list(islice(real_texts(), count))
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in islice(lines, count)]


def write_reviews(path: Path, texts: list[str], copies: int) -> None:
    """Write the texts ``copies`` times under new ids, as Parquet files of some row groups."""
    path.mkdir()
    column = pa.array(texts)
    for number in range(FILES * copies):
        part = column.take(pa.array(range(number % FILES, len(column), FILES)))
        ids = pa.array([f"{number}-{row}" for row in range(len(part))])
        pq.write_table(
            pa.table({"id": ids, "text_body": part}), path / f"part-{number:03d}.parquet", row_group_size=2_000
        )


class Tables:
    """The job over one embedding and its session."""

    def __init__(self, home: Path, *, smallest: bool = False) -> None:
        self.home = home
        name = "small" if smallest else "mixed" if (DATA / "mixed_w2v_300d.f16.npz").exists() else "demo"
        embedding = load_embedding(name)
        self.shape = embedding.vectors.shape
        embedding.save(home / "embedding")
        (home / "key").touch(mode=0o600)
        (home / "key").write_text(os.urandom(32).hex())
        self.settings: dict[str, Any] = {
            "format_version": 2,
            "release": "bench",
            "input": {"path": "", "id": "id", "text": "text_body"},
            "mechanism": {},
            "bundle_store": str(home / "bundles"),
            "text": {"profile": "strict", "length": "as_is"},
            "key": {"file": str(home / "key")},
            "output": {"path": ""},
            "spark": {"master": f"local[{SLOTS}]", "options": {"spark.driver.memory": "2g"}},
        }

    def config(self, corpus: Path, run: str, mechanism: str, /, **sections: Any) -> Any:
        """Return the configuration of one run; ``sections`` stand in place of the shared ones."""
        from wordveil.config.load import parse_config

        shared = {"epsilon": EPSILON, "embedding": str(self.home / "embedding"), "public": True}
        places = {
            "mechanism": {"name": mechanism, **shared, **MECHANISMS[mechanism]},
            "input": {**self.settings["input"], "path": str(corpus)},
            "output": {"path": str(self.home / f"out-{run}")},
        }
        return parse_config({**self.settings, **places, **sections}, "benchmark")

    def build(self, mechanism: str) -> dict[str, float]:
        """Build a bundle; seconds and the greatest resident size of the process so far."""
        from wordveil.assembly.bundles import build_bundle

        started = time.perf_counter()
        bundle = build_bundle(self.config(self.home / "none", "none", mechanism))
        taken = time.perf_counter() - started
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"seconds": taken, "resident_bytes": resident, "bundle_bytes": bundle.payload_bytes}

    def run(
        self, corpus: Path, run: str, mechanism: str = "exponential", /, order: str = "hashed", **sections: Any
    ) -> Any:
        """Run the job once and return its report."""
        from wordveil.spark.platform.session import build_session
        from wordveil.spark.sanitise.job import run_sanitise

        output = {"path": str(self.home / f"out-{run}"), "order": order}
        config = self.config(corpus, run, mechanism, output=output, **sections)
        return run_sanitise(config, lambda: build_session(config.spark))

    def compare(self, corpus: Path, number: int) -> tuple[Any, dict[str, tuple[float, float]]]:
        """Compare one round: the report of a job, and seconds and processor seconds of each pass."""
        report, found = None, {}
        for name in (*MECHANISMS, "input_order", "split_and_join"):
            processor, started, run = processor_seconds(), time.perf_counter(), f"{name}-{number}"
            if name in MECHANISMS:
                self.run(corpus, run, name)
            elif name == "input_order":
                report = self.run(corpus, run, order="input")
            else:
                self.split_and_join(corpus, run)
            found[name] = (time.perf_counter() - started, processor_seconds() - processor)
        return report, found

    def split_and_join(self, corpus: Path, run: str) -> None:
        """Split and join, and do nothing else."""
        from pyspark.sql import SparkSession

        def split_join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa
            import pyarrow.compute as pc

            for batch in batches:
                text = pc.binary_join(pc.utf8_split_whitespace(batch.column(1)), " ")
                yield pa.RecordBatch.from_arrays([batch.column(0), text], names=["id", "text"])

        spark = SparkSession.getActiveSession()
        if spark is None:
            raise SystemExit("The job left no session.")
        table = spark.read.parquet(str(corpus)).select("id", "text_body")
        table.mapInArrow(split_join, "id string, text string").write.parquet(str(self.home / f"plain-{run}"))


def make_sanitiser(config: Any) -> tuple[Any, Any]:
    """Return what a worker has: the sanitiser of a configuration, and its bundle."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.crypto.keys import load_key
    from wordveil.records.sanitiser import RecordSanitiser, RecordSettings

    bundle = build_bundle(config)
    keys = load_key(config.key.file, None).for_release("bench")
    return RecordSanitiser(RecordSettings("bench", "profile", config.policy, ()), bundle, keys), bundle


def read_batches(corpus: Path) -> list[pa.RecordBatch]:
    """Read the first file's records as a worker gets them."""
    from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN

    table = pq.read_table(min(corpus.glob("*.parquet"))).combine_chunks()
    columns = [table["id"].chunk(0), table["text_body"].chunk(0), pa.nulls(len(table), pa.string())]
    batch = pa.RecordBatch.from_arrays(columns, names=["id", TEXT_COLUMN, REASON_COLUMN])
    return [batch.slice(start, 1024) for start in range(0, len(table), 1024)]


def compare_policies(tables: Tables, corpus: Path) -> dict[str, Any]:
    """Measure nanoseconds of processor time a word of text under each policy, in this process, on one thread, in
    turns.
    """
    sanitisers = {
        name: make_sanitiser(tables.config(corpus, "policies", "tree", text=text))[0] for name, text in POLICIES.items()
    }
    return time_in_turns(sanitisers, corpus, "strict")


def time_in_turns(sanitisers: dict[str, Any], corpus: Path, base: str) -> dict[str, Any]:
    """Measure nanoseconds of processor time a word of text, of each sanitiser and over that of ``base``."""
    from wordveil.records.schema import WORDS_COLUMN

    before = machine()
    parts = read_batches(corpus)
    rounds: list[dict[str, float]] = []
    for _ in range(ROUNDS + 1):
        rounds.append({})
        for name, sanitiser in sanitisers.items():
            started = time.process_time()
            words = sum(part.column(WORDS_COLUMN).sum().as_py() for one in parts for part in sanitiser.sanitise(one))
            rounds[-1][name] = (time.process_time() - started) / words * 1e9
    rounds = rounds[1:]  # the first loads compiled code
    return {
        "machine": before,
        "words": words,
        "rounds": rounds,
        "nanoseconds_a_word": {name: statistics.median(one[name] for one in rounds) for name in sanitisers},
        f"over_{base}": {name: statistics.median(one[name] / one[base] for one in rounds) for name in sanitisers},
    }


def name_sections(tables: Tables, *, smallest: bool) -> dict[str, dict[str, Any]]:
    """Name the sections of `tree` and of `passages` that are compared."""
    shared = {"epsilon": EPSILON, "embedding": str(tables.home / "embedding") if smallest else "glove", "public": True}
    tree = {"name": "tree", "clusters": [5 if smallest else 500], "least": 5, **shared}
    passages = {"name": "passages", "passages": "wordnet", "clusters": 4 if smallest else ENCODER["subjects"], **shared}
    return {
        "tree": {"mechanism": tree, "text": POLICIES["strict"]},
        "passages": {"mechanism": passages, "text": {"profile": "passages"}},
    }


def compare_passages(tables: Tables, corpus: Path, *, smallest: bool) -> dict[str, Any]:
    """Measure batches under `passages` and `tree`, and the encoder alone, in this process, on one thread."""
    sanitisers = {
        name: make_sanitiser(tables.config(corpus, name, "tree", **section))[0]
        for name, section in name_sections(tables, smallest=smallest).items()
    }
    return {**time_in_turns(sanitisers, corpus, "tree"), "encoder": time_encoder(smallest=smallest)}


def compare_passage_jobs(tables: Tables, corpus: Path, *, smallest: bool) -> dict[str, Any]:
    """Measure the job under `passages` and `tree`, and the pass that splits and joins, in one session, in turns."""
    from large_input import Memory
    from wordveil.assembly.bundles import build_bundle

    jobs = name_sections(tables, smallest=smallest)
    for name, sections in jobs.items():
        build_bundle(tables.config(corpus, name, "tree", **sections))
    rounds: list[dict[str, float]] = []
    peaks: dict[str, dict[str, int]] = {}
    for number in range(ROUNDS + 1):
        rounds.append({})
        for name, sections in jobs.items():
            started = time.perf_counter()
            with Memory() as memory:
                tables.run(corpus, f"turns-{name}-{number}", "tree", **sections)
            rounds[-1][name], peaks[name] = time.perf_counter() - started, memory.peak
        started = time.perf_counter()
        tables.split_and_join(corpus, f"turns-passages-{number}")
        rounds[-1]["split_and_join"] = time.perf_counter() - started
    rounds = rounds[1:]  # the first starts the session and loads compiled code
    return {
        "rounds": rounds,
        "over_tree": statistics.median(one["passages"] / one["tree"] for one in rounds),
        "over_split_and_join": statistics.median(one["passages"] / one["split_and_join"] for one in rounds),
        "peak_resident_bytes": peaks,
    }


def time_passage_build(tables: Tables, texts: list[str], *, smallest: bool) -> dict[str, Any]:
    """Measure the build of a bundle from many passages, in this process, on one thread."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.records.codec import cut_sentences

    sentences = cut_sentences(pa.array(texts, pa.string()))[0].unique()[: 2_000 if smallest else PASSAGES]
    pq.write_table(pa.table({"text": sentences}), tables.home / "passages.parquet")
    section = name_sections(tables, smallest=smallest)["passages"]
    section["mechanism"]["passages"] = str(tables.home / "passages.parquet")
    started = time.perf_counter()
    bundle = build_bundle(tables.config(tables.home / "none", "none", "tree", **section))
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = time.perf_counter() - started
    return {
        "passages": len(sentences),
        "seconds": seconds,
        "resident_bytes": resident,
        "bundle_bytes": bundle.payload_bytes,
    }


def time_encoder(*, smallest: bool) -> dict[str, Any]:
    """Measure words a second of processor time that the encoder of texts reads, on one thread; the median of rounds."""
    from wordveil.mechanisms.inputs import rank_frequencies
    from wordveil.mechanisms.passages.encoder import SumEncoder

    texts, length, width = 100 if smallest else ENCODER["texts"], ENCODER["text_words"], ENCODER["columns"]
    rng = np.random.default_rng(0)
    vectors = rng.integers(-3_000, 3_000, (ENCODER["words"], width)).astype(np.int16)
    centres = np.trunc(rng.normal(0, 200, (ENCODER["subjects"], width))).astype(np.float32)
    encoder = SumEncoder(vectors, centres, (width // 2, width - width // 2))
    ids = rng.choice(len(vectors), texts * length, p=rank_frequencies(len(vectors))).astype(np.int32)
    offsets = np.arange(texts + 1, dtype=np.int64) * length
    encoder.encode(ids, offsets)  # loads compiled code
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        encoder.encode(ids, offsets)
        rounds.append(len(ids) / (time.process_time() - started))
    return {**ENCODER, "texts": texts, "rounds": rounds, "words_a_second": statistics.median(rounds)}


def profile(tables: Tables, corpus: Path, mechanism: str) -> dict[str, float]:
    """Measure microseconds a token of each step, in this process, on one thread, without Spark; the best of three
    rounds.
    """
    from wordveil.crypto.streams import KeyedStream
    from wordveil.records import sanitiser as module
    from wordveil.records.sanitiser import RecordSanitiser
    from wordveil.text.codec import Codec

    sanitiser, bundle = make_sanitiser(tables.config(corpus, "profile", mechanism))
    parts = read_batches(corpus)
    totals: dict[str, float] = {}
    patched: dict[tuple[Any, str], str] = {
        (Codec, "encode"): "texts to ids",
        (Codec, "decode"): "ids to texts",
        (module, "frame_records"): "what contexts and tags cover",
        (module, "derive_contexts"): "contexts (BLAKE2b)",
        (RecordSanitiser, "_tags"): "content tags (BLAKE2b)",
        (RecordSanitiser, "_privacy"): "accounting",
        (KeyedStream, "record_words"): "random words (AES)",
        (type(bundle.mechanism), "draw"): "drawing, with random words",
    }
    rounds = []
    with timed_calls(totals, patched):
        for _ in range(4):
            totals.clear()
            with timed(totals, "all"):
                drawn = sum(
                    part.column("privacy").field("tokens").to_numpy().sum()
                    for one in parts
                    for part in sanitiser.sanitise(one)
                )
            rounds.append({name: seconds / drawn * 1e6 for name, seconds in totals.items()})
    best = min(rounds[1:], key=lambda steps: steps["all"])
    return {**best, "the rest": best["all"] - sum(share for name, share in best.items() if name != "all")}


def billion() -> None:
    """Measure the job alone over the texts 88 times under new ids."""
    from large_input import Memory

    before = machine()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        tables = Tables(home)
        tables.build("exponential")
        write_reviews(home / "corpus", reviews(), BILLION_COPIES)
        with Memory() as memory:
            report = tables.run(home / "corpus", "billion")
        sizes = sorted(file.stat().st_size for file in (home / "out-billion").glob("*.parquet"))
        read = sum(file.stat().st_size for file in (home / "corpus").iterdir())
    content = {
        "machine": before,
        "tokens": report.tokens,
        "records": report.records,
        "seconds": report.seconds,
        "tokens_per_second": report.tokens_per_second,
        "peak_resident_bytes": memory.peak,
        "input_bytes": read,
        "output_files": len(sizes),
        "output_bytes": sum(sizes),
        "output_file_bytes": {"smallest": sizes[0], "median": statistics.median(sizes), "largest": sizes[-1]},
    }
    save_results("tables_billion", content, smallest=False)
    Console().print(content)


def policies() -> None:
    """Measure the policies alone; their figures go into the file of the other results."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        tables = Tables(home)
        write_reviews(home / "corpus", reviews(), 1)
        compared = compare_policies(tables, home / "corpus")
    content = json.loads((RESULTS / "tables.json").read_text())
    save_results("tables", {**content, "policies": compared}, smallest=False)
    show_policies(compared)


def passages(*, smallest: bool) -> None:
    """Measure `passages` alone; the figures go into the file of the other results."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        tables = Tables(home, smallest=smallest)
        texts = reviews(1_000 if smallest else None)
        build = time_passage_build(tables, texts, smallest=smallest)
        write_reviews(home / "corpus", texts, 1)
        compared = {
            **compare_passages(tables, home / "corpus", smallest=smallest),
            "build": build,
            "jobs": compare_passage_jobs(tables, home / "corpus", smallest=smallest),
        }
    content = json.loads((RESULTS / "tables.json").read_text())
    save_results("tables", {**content, "passages": compared}, smallest=smallest)
    show_passages(compared)


def show_passages(compared: dict[str, Any]) -> None:
    """Show what a whole text costs."""
    table = Table("mechanism", "nanoseconds a word", "over tree", title=f"{compared['words']:,} words, one process")
    for name, nanoseconds in compared["nanoseconds_a_word"].items():
        table.add_row(name, f"{nanoseconds:.0f}", f"{compared['over_tree'][name]:.2f}")
    Console().print(table)
    print(f"the encoder reads {compared['encoder']['words_a_second'] / 1e6:.1f} million words a second")
    build, jobs = compared["build"], compared["jobs"]
    print(
        f"{build['passages']:,} passages: built in {build['seconds']:.0f} s, "
        f"{build['resident_bytes'] / 2**30:.1f} GiB resident, a bundle of {build['bundle_bytes'] / 2**20:.0f} MiB"
    )
    print(
        f"the job takes {jobs['over_tree']:.2f} of tree's time and {jobs['over_split_and_join']:.2f} of the pass that "
        f"splits and joins; its largest worker has "
        f"{jobs['peak_resident_bytes']['passages']['largest worker'] / 2**20:.0f} MiB, tree's "
        f"{jobs['peak_resident_bytes']['tree']['largest worker'] / 2**20:.0f} MiB"
    )


def show_policies(compared: dict[str, Any]) -> None:
    """Show what each policy costs."""
    table = Table("policy", "nanoseconds a word", "over strict", title=f"{compared['words']:,} words, one process")
    for name, nanoseconds in compared["nanoseconds_a_word"].items():
        table.add_row(name, f"{nanoseconds:.0f}", f"{compared['over_strict'][name]:.2f}")
    Console().print(table)


def show(content: dict[str, Any]) -> None:
    """Show the tables of the results."""
    words, dimension = content["words"], content["dimension"]
    table = Table(title=f"{words:,} x {dimension}, {content['tokens']:,} tokens, {SLOTS} cores")
    for heading in ("pass", "seconds", "million tokens a second"):
        table.add_column(heading, justify="right")
    for name in (*MECHANISMS, "input_order", "split_and_join"):
        seconds = statistics.median(run[name] for run in content["runs"])
        table.add_row(name.replace("_", " "), f"{seconds:.1f}", f"{content['tokens'] / seconds / 1e6:.2f}")
    Console().print(table)
    print(f"arranging rows by ids takes {content['arranging'] - 1:.1%} of the job without it (median of the rounds)")
    print(f"the job reaches {content['ratio']:.2f} of the pass that splits and joins (median of the rounds)")
    for name, build in content["build"].items():
        print(
            f"{name}: {content['over_exponential'][name]:.2f} of exponential's speed; the bundle took "
            f"{build['seconds']:.0f} s and is {build['bundle_bytes'] / 2**20:.0f} MiB; "
            f"{build['resident_bytes'] / 2**30:.1f} GiB resident"
        )
    steps = Table(title="Microseconds a token, one process")
    steps.add_column("step")
    for name in MECHANISMS:
        steps.add_column(name, justify="right")
    for step in content["microseconds_per_token"]["exponential"]:
        steps.add_row(step, *(f"{content['microseconds_per_token'][name].get(step, 0.0):.4f}" for name in MECHANISMS))
    Console().print(steps)
    show_policies(content["policies"])
    show_passages(content["passages"])


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--copies", type=int, default=COPIES, help="how often the texts are repeated under new ids")
    parser.add_argument("--billion", action="store_true", help="the job alone over 1,000,000,000 tokens")
    parser.add_argument("--policies", action="store_true", help="the policies alone")
    parser.add_argument(
        "--passages", action="store_true", help="one draw for a whole text, its encoder, its build and its job, alone"
    )
    arguments = parser.parse_args()
    if arguments.billion:
        billion()
        return
    if arguments.policies:
        policies()
        return
    if arguments.passages:
        passages(smallest=arguments.smallest)
        return
    before = machine()
    texts = reviews(100 if arguments.smallest else None)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        tables = Tables(home, smallest=arguments.smallest)
        build = {mechanism: tables.build(mechanism) for mechanism in MECHANISMS}
        write_reviews(home / "warm", texts[:2000], 1)
        write_reviews(home / "corpus", texts, 1 if arguments.smallest else arguments.copies)
        tables.run(home / "warm", "warm")
        tables.split_and_join(home / "warm", "warm")
        rounds = [tables.compare(home / "corpus", number) for number in range(1 if arguments.smallest else ROUNDS)]
        compared = compare_policies(tables, home / "corpus")
        whole = {
            **compare_passages(tables, home / "corpus", smallest=arguments.smallest),
            "build": time_passage_build(tables, texts, smallest=arguments.smallest),
            "jobs": compare_passage_jobs(tables, home / "corpus", smallest=arguments.smallest),
        }
        steps = {mechanism: profile(tables, home / "corpus", mechanism) for mechanism in MECHANISMS}
    report, tokens = rounds[0][0], rounds[0][0].tokens
    runs = [{name: seconds for name, (seconds, _) in passes.items()} for _, passes in rounds]
    spent = {name: statistics.median(passes[name][1] for _, passes in rounds) for name in runs[0]}
    content = {
        "machine": before,
        "words": tables.shape[0],
        "dimension": tables.shape[1],
        "epsilon": EPSILON,
        "neighbours": NEIGHBOURS,
        "tokens": tokens,
        "records": report.records,
        "build": build,
        "runs": runs,
        "tokens_per_second": {name: tokens / statistics.median(run[name] for run in runs) for name in MECHANISMS},
        "over_exponential": {
            name: statistics.median(run["exponential"] / run[name] for run in runs) for name in MECHANISMS
        },
        "arranging": statistics.median(run["exponential"] / run["input_order"] for run in runs),
        "ratio": statistics.median(run["split_and_join"] / run["exponential"] for run in runs),
        "processor_nanoseconds_per_token": {name: seconds / tokens * 1e9 for name, seconds in spent.items()},
        "microseconds_per_token": steps,
        "policies": compared,
        "passages": whole,
    }
    save_results("tables", content, smallest=arguments.smallest)
    show(content)


if __name__ == "__main__":
    main()
