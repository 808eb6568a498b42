"""What the benchmarks share beside laplace_exact.py: the machine's description, result files, jobs in sessions of their
own.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np

from laplace_exact import DATA, RESULTS, SLOTS, Job
from wordveil.config.load import Config, parse_config
from wordveil.embeddings import embedding
from wordveil.embeddings.embedding import Embedding

MECHANISM = {
    "name": "tree",
    "clusters": [500],
    "classes": "stop-words:en",
    "output": "representative",
    "epsilon": 8.0,
    "embedding": "glove",
}
"""What `wordveil init` drafts, and the README's epsilon."""


def draft_job(store: str, mechanism: dict[str, Any], text: dict[str, Any]) -> Config:
    """A job whose sections for input, key and output nothing reads. ``store``: of bundles."""
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


def machine() -> dict[str, Any]:
    """Processor, cores, NumPy, and how busy the machine was: a load near 0 means that nothing else was running."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {"cores": SLOTS, "processor": model, "numpy": version("numpy"), "load_before": round(os.getloadavg()[0], 2)}


def save_results(name: str, quick: bool, content: dict[str, Any]) -> None:  # noqa: FBT001 - a flag of the command line
    """``content`` as research/results/<name>.json; quick runs get a separate name."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}{'_quick' if quick else ''}.json"
    file.write_text(json.dumps(content, indent=1) + "\n")


def glove() -> Embedding:
    """Real GloVe vectors, kept in 8 bits around 127.5; one step is 0.0207 (their lengths are known to be 3.7 to
    18.9).
    """
    words = gzip.decompress((DATA / "glove840B_300d_9910.words.gz").read_bytes()).decode().split()
    levels = np.frombuffer(gzip.decompress((DATA / "glove840B_300d_9910_u8.vecs.gz").read_bytes()), np.uint8)
    return embedding.check_embedding(
        words, ((levels.reshape(len(words), -1) - 127.5) * 0.0207).astype(np.float32), "glove"
    )


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:  # it has ended
        return found
    return found


def descendants(pid: int) -> Iterator[int]:
    """Children, their children and so on."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def processor_seconds() -> float:
    """Processor time of this process, of all that it has started and that they have, ended ones included."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError):  # it has ended, and its parent has its time
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def command(pid: int) -> str:
    """The command line; empty once the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def built_job(home: Path, name: str, first_pass: str, profile: dict[str, Any]) -> Job:
    """A job whose bundle is built, so that no session builds it."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.config.load import parse_config

    job = Job(home, name, first_pass, profile)
    settings = {
        **job.settings,
        "input": {**job.settings["input"], "path": str(home / "no-input")},
        "output": {"path": str(home / "no-output")},
    }
    build_bundle(parse_config(settings, "benchmark"))
    return job


def index_file(job: Job) -> Path:
    """The file of the job's bundle that workers map into memory."""
    (file,) = (job.home / "bundles").glob("*/index.bin")
    return file


class FreshSession:
    """A separate process that runs jobs in one Spark session.

    ``cores``: the cores that it and all it starts may use; None for all.
    """

    def __init__(self, job: Job, master: str, cores: set[int] | None = None, **options: Any) -> None:
        settings = {**job.settings["spark"], **options, "master": master}
        first_pass = settings["options"]["spark.executorEnv.WORDVEIL_FIRST_PASS"]
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, job, settings, first_pass, cores))
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
        """Tokens and seconds of one run over ``corpus``; ``meanwhile`` is called until it has ended."""
        self._pipe.send((corpus, run))
        while not self._pipe.poll(0.2):
            if meanwhile is not None:
                meanwhile()
        answer: dict[str, Any] = self._pipe.recv()
        return answer


def _serve(pipe: Any, job: Job, settings: dict[str, Any], first_pass: str, cores: set[int] | None) -> None:
    """Run what comes through the pipe until it is closed."""
    if cores is not None:
        os.sched_setaffinity(0, cores)
    os.environ["WORDVEIL_FIRST_PASS"] = first_pass
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
