"""What the benchmarks share beside laplace_exact.py: the machine's description, result files, jobs in sessions of their
own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from wordveil.config.load import Config, parse_config
from wordveil.crypto.keys import create_key
from wordveil.embeddings import embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.version import __version__

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
RESULTS = ROOT / "research" / "results"
SLOTS = len(os.sched_getaffinity(0))
EPSILON = 20.0
N_MAX = 512
SMALL = 500
"""Words of the embedding of a smallest run."""
MECHANISM = {
    "name": "tree",
    "clusters": [500],
    "classes": "stop-words:en",
    "merge": "sensitive",
    "output": "representative",
    "epsilon": 8.0,
    "embedding": "glove",
}
"""What `wordveil init` drafts, and the README's epsilon."""


def draft_mechanism(home: str, *, smallest: bool) -> dict[str, Any]:
    """:data:`MECHANISM`; for a smallest run over few words, which are saved in ``home``."""
    if not smallest:
        return MECHANISM
    load_embedding("small").save(Path(home) / "small")
    plain = {name: value for name, value in MECHANISM.items() if name != "merge"}  # few of its words are there
    return {**plain, "clusters": [5], "least": 5, "embedding": str(Path(home) / "small")}


def draft_job(store: str, mechanism: dict[str, Any], text: dict[str, Any]) -> Config:
    """Return a job whose sections for input, key and output nothing reads. ``store``: of bundles."""
    return parse_config(
        {
            "format_version": 2,
            "release": "benchmark",
            "input": {"path": "/nowhere", "id": "id", "text": "text"},
            "mechanism": {**mechanism, "public": True},
            "bundle_store": store,
            "text": text,
            "key": {"env": "NO_KEY"},
            "output": {"path": "/nowhere-else"},
        },
        "research/benchmarks/common.py",
    )


def draft_release(*arguments: Any, **sections: dict[str, Any]) -> Config:
    """Return the configuration that :func:`draft_settings` drafts."""
    return parse_config(draft_settings(*arguments, **sections), "research/benchmarks/common.py")


def draft_settings(
    home: Path, mechanism: dict[str, Any], source: dict[str, Any], place: str = "", **sections: dict[str, Any]
) -> dict[str, Any]:
    """Return a release of the columns ``source``, with its key and bundles in ``home``. Its tables and its input are at
    ``place``, by default there too. ``sections`` are merged into its own.
    """
    place, key = place or str(home), home / "key"
    if not key.exists():
        create_key(key)
    settings: dict[str, Any] = {
        "format_version": 2,
        "release": "benchmark",
        "input": {"path": f"{place}/input", "format": "delta", "changes": "feed", **source},
        "mechanism": {**mechanism, "public": True},
        "bundle_store": str(home / "bundles"),
        "build_missing": True,
        "text": {"profile": "strict", "n_max": 8},
        "key": {"file": str(key)},
        "output": {"path": f"{place}/release", "format": "delta"},
        "ledger": {"path": f"{place}/ledger"},
        "gate": {"min_records": 10},
    }
    return settings | {name: {**settings.get(name, {}), **section} for name, section in sections.items()}


def machine() -> dict[str, Any]:
    """Processor, cores, versions, and how busy the machine was: a load near 0 means that nothing else was running."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "cores": SLOTS,
        "processor": model,
        "wordveil": __version__,
        "numpy": version("numpy"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def make_parser(documentation: str | None) -> argparse.ArgumentParser:
    """Make the options of a benchmark: each has a smallest run, which the tests execute."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="as little as shows that it runs; keeps no results")
    return parser


def save_results(name: str, content: dict[str, Any], *, smallest: bool) -> None:
    """``content`` as research/results/<name>.json, but that of a smallest run, which shows nothing."""
    if not smallest:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def glove() -> Embedding:
    """Real GloVe vectors, kept in 8 bits around 127.5; one step is 0.0207 (their lengths are known to be 3.7 to
    18.9).
    """
    words = gzip.decompress((DATA / "glove840B_300d_9910.words.gz").read_bytes()).decode().split()
    levels = np.frombuffer(gzip.decompress((DATA / "glove840B_300d_9910_u8.vecs.gz").read_bytes()), np.uint8)
    return embedding.check_embedding(
        words, ((levels.reshape(len(words), -1) - 127.5) * 0.0207).astype(np.float32), "glove"
    )


def load_embedding(name: str) -> Any:
    """Load an embedding by name: the demo one, its ``small`` beginning, or the 300-dimensional one of the data
    directory.
    """
    if name in ("demo", "small"):
        whole = embedding.load("demo")
        size = SMALL if name == "small" else whole.size
        return embedding.check_embedding(whole.words.to_pylist()[:size], whole.vectors[:size], name)
    with np.load(DATA / "mixed_w2v_300d.f16.npz") as file:
        return embedding.check_embedding(file["words"].tolist(), file["vectors"].astype(np.float32), "mixed_w2v_300d")


def real_texts() -> Iterator[str]:
    """Newswire from the data directory, else the news articles of gensim's wheel."""
    source = DATA / "c50_reuters.jsonl.xz"
    if source.exists():
        with lzma.open(source, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]
    else:
        from gensim.test.utils import datapath

        for _ in range(10):
            yield from Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()


def write_corpus(path: Path, records: int) -> int:
    """``records`` texts as Parquet, a few files a slot; returns the number of texts."""
    texts = [text for text, _ in zip(real_texts(), range(records), strict=False)]
    path.mkdir()
    files = 4 * SLOTS
    for number in range(files):
        part = texts[number::files]
        ids = [f"{number}-{i}" for i in range(len(part))]
        pq.write_table(pa.table({"id": ids, "text_body": part}), path / f"part-{number:03d}.parquet")
    return len(texts)


class Job:
    """The main job over one embedding, its bundle built once."""

    def __init__(self, home: Path, name: str, profile: dict[str, Any]) -> None:
        self.home = home
        self.name = name
        embedding_path = home / f"embedding-{name}"
        load_embedding(name).save(embedding_path)
        key = home / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(os.urandom(32).hex())
        self.settings: dict[str, Any] = {
            "format_version": 2,
            "release": "bench",
            "input": {"path": "", "id": "id", "text": "text_body"},
            "mechanism": {"name": "laplace", "epsilon": EPSILON, "embedding": str(embedding_path), "public": True},
            "bundle_store": str(home / "bundles"),
            "build_missing": True,
            "text": profile,
            "key": {"file": str(key)},
            "output": {"path": ""},
            "spark": {"master": f"local[{SLOTS}]"},
        }

    def save_index(self) -> str:
        """Save the candidate rows of the bundle's index as a file of their own, and return its path."""
        (file,) = (self.home / "bundles").glob("*/index.bin")
        shape = json.loads((file.parent / "manifest.json").read_text())["content"]["files"]["index.bin"]["shape"]
        path = self.home / "index.npy"
        np.save(path, np.fromfile(file, "<f4").reshape(shape)[:-1])
        return str(path)

    def run(self, corpus: Path, run: str) -> Any:
        """Run once and return the report."""
        from wordveil.config.load import parse_config
        from wordveil.spark.platform.session import build_session
        from wordveil.spark.sanitise.job import run_sanitise

        settings = {
            **self.settings,
            "input": {**self.settings["input"], "path": str(corpus)},
            "output": {"path": str(self.home / f"out-{self.name}-{run}")},
        }
        config = parse_config(settings, "benchmark")
        return run_sanitise(config, lambda: build_session(config.spark))


@contextmanager
def timed(totals: dict[str, float], what: str) -> Iterator[None]:
    """Adds the body's time to ``totals[what]``."""
    started = time.perf_counter()
    try:
        yield
    finally:
        totals[what] = totals.get(what, 0.0) + time.perf_counter() - started


@contextmanager
def timed_calls(totals: dict[str, float], places: dict[tuple[Any, str], str]) -> Iterator[None]:
    """Adds the time of each call of a method or function to ``totals``: ``places`` has (owner, name) and what it is
    called there.
    """
    originals = {place: getattr(*place) for place in places}
    for (owner, method), what in places.items():

        def wrapper(*arguments: Any, _original: Any = originals[owner, method], _what: str = what, **named: Any) -> Any:
            with timed(totals, _what):
                return _original(*arguments, **named)

        setattr(owner, method, wrapper)
    try:
        yield
    finally:
        for (owner, method), original in originals.items():
            setattr(owner, method, original)


def processor_seconds() -> float:
    """Processor time of this process, of all that it has started and that they have, ended ones included."""
    mine, total = psutil.Process(), 0.0
    for process in (mine, *mine.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has ended, and its parent has its time
            total += sum(process.cpu_times()[:4])
    return total


def built_job(home: Path, name: str, profile: dict[str, Any]) -> Job:
    """Return a job whose bundle is built, so that no session builds it."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.config.load import parse_config

    job = Job(home, name, profile)
    settings = {
        **job.settings,
        "input": {**job.settings["input"], "path": str(home / "no-input")},
        "output": {"path": str(home / "no-output")},
    }
    build_bundle(parse_config(settings, "benchmark"))
    return job


def index_file(job: Job) -> Path:
    """Return the file of the job's bundle that workers map into memory."""
    (file,) = (job.home / "bundles").glob("*/index.bin")
    return file


class FreshSession:
    """A separate process that runs jobs in one Spark session.

    ``cores``: the cores that it and all it starts may use; None for all.
    """

    def __init__(self, job: Job, master: str, cores: set[int] | None = None, **options: Any) -> None:
        settings = {**job.settings["spark"], **options, "master": master}
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, job, settings, cores))
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join(60)
        if self._process.is_alive():
            self._process.terminate()

    @property
    def pid(self) -> int | None:
        """The driver's process."""
        return self._process.pid

    def run(self, corpus: Path, run: str, meanwhile: Callable[[], None] | None = None) -> dict[str, Any]:
        """Measure tokens and seconds of one run over ``corpus``; ``meanwhile`` is called until it has ended."""
        self._pipe.send((corpus, run))
        while not self._pipe.poll(0.2):
            if meanwhile is not None:
                meanwhile()
        answer: dict[str, Any] = self._pipe.recv()
        return answer


def _serve(pipe: Any, job: Job, settings: dict[str, Any], cores: set[int] | None) -> None:
    """Run what comes through the pipe until it is closed."""
    if cores is not None:
        os.sched_setaffinity(0, cores)
    job.settings["spark"] = settings
    while True:
        try:
            corpus, run = pipe.recv()
        except EOFError:
            break
        report = job.run(corpus, run)
        pipe.send({"tokens": report.tokens, "seconds": report.seconds})
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()
