"""Lists of neighbours, block by block on all cores. Blocks stay on disk until the build is done, so it can resume."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

from wordveil.arrays import Float64
from wordveil.geometry.spaces import SPACES, Space, digest_points
from wordveil.neighbours.lists import NeighbourLists, NeighbourSearch, block_rows

# Raised when the same task may lead to other lists: blocks of older versions are then not used.
_VERSION = 2
Span = tuple[int, int]


class TooManyEntriesError(ValueError):
    """Error for lists that would take more memory than allowed."""


@dataclass(frozen=True)
class ListTask:
    """Task of computing lists: all that a process needs for some of them, as for :class:`NeighbourSearch`."""

    metric: str
    points: Float64
    max_length: int | None
    within: float

    def search(self) -> NeighbourSearch:
        """Make a search that computes blocks."""
        return NeighbourSearch(SPACES[self.metric], self.points, self.max_length, self.within)

    @property
    def digest(self) -> str:
        """Identifier of the lists."""
        label = f"{_VERSION} {self.metric} {self.points.shape} {self.max_length} {self.within}"
        return digest_points(label, self.points)[:32]


@cache
def _find_libraries() -> ThreadpoolController:
    """Find the libraries that start threads, once: it takes 5 ms, and a search for an epsilon builds very often."""
    return ThreadpoolController()


@contextmanager
def start_threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Start threads for jobs, and limit NumPy to one: its own would leave cores idle between products."""
    with _find_libraries().limit(limits=1), ThreadPoolExecutor(number) as pool:
        yield pool


def compute_here(task: ListTask, spans: Sequence[Span]) -> Iterator[tuple[Span, NeighbourLists]]:
    """Compute blocks on all cores of this machine, and yield each when it is done."""
    search = task.search()
    cores = len(os.sched_getaffinity(0))
    with start_threads(cores) as pool:
        # A few at a time, so that finished blocks do not pile up in memory.
        for first in range(0, len(spans), cores):
            batch = spans[first : first + cores]
            yield from zip(batch, pool.map(lambda span: search.block(*span), batch), strict=True)


@dataclass(frozen=True)
class BuildContext:
    """Context of a build: progress, and kept blocks. Nothing here changes what is built.

    ``progress``: gets a line of text as each step begins. ``steps``: gets the numbers of steps done and of all.
    ``kept``: directory for finished blocks, or None. ``compute``: computes a task's blocks in any order. ``used``:
    directories with blocks of this build.
    """

    progress: Callable[[str], None] = lambda _: None
    steps: Callable[[int, int], None] = lambda _done, _all: None
    kept: Path | None = None
    compute: Callable[[ListTask, Sequence[Span]], Iterable[tuple[Span, NeighbourLists]]] = compute_here
    used: list[Path] = field(default_factory=list)

    def lists(
        self, space: Space, points: Float64, max_length: int | None, within: float, max_entries: int
    ) -> NeighbourLists:
        """Find the lists of all points. Raise :class:`TooManyEntriesError` beyond ``max_entries`` entries."""
        task = ListTask(space.name, points, max_length, within)
        block_size = block_rows(len(points))
        spans = list(pairwise([*range(0, len(points), block_size), len(points)]))
        directory = self.kept / f"lists-{task.digest}" if self.kept else None
        if directory:
            self.used.append(directory)
        done = {span: lists for span in spans if (lists := _read(directory, span)) is not None}
        self.progress("finding the neighbours of every word")
        entries = sum(len(lists.ids) for lists in done.values())
        self.steps(len(done), len(spans))
        for span, lists in self.compute(task, [span for span in spans if span not in done]):
            done[span] = lists
            entries += len(lists.ids)
            if entries > max_entries:
                raise TooManyEntriesError(f"over {max_entries:,} entries")
            _keep(directory, span, lists)
            self.steps(len(done), len(spans))
        return NeighbourLists.join([done[span] for span in spans])

    def forget(self) -> None:
        """Delete the blocks that this build kept."""
        for directory in self.used:
            shutil.rmtree(directory, ignore_errors=True)
        if self.kept:
            with suppress(OSError):  # it holds another build's blocks
                self.kept.rmdir()

    def forget_unused(self, seconds: float) -> None:
        """Delete blocks that no build has used for so many seconds, after marking those that this one used."""
        if self.kept is None:
            return
        with suppress(OSError):  # another process tidies up, or may alone
            for directory in self.used:
                os.utime(directory)
            for directory in self.kept.iterdir():
                if time.time() - directory.stat().st_mtime > seconds:
                    shutil.rmtree(directory, ignore_errors=True)


def _file(directory: Path, span: Span) -> Path:
    return directory / f"{span[0]:09d}-{span[1]:09d}.npz"


def _keep(directory: Path | None, span: Span, lists: NeighbourLists) -> None:
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f".{os.getpid()}-{span[0]}.npz"
    with draft.open("wb") as file:
        np.savez(file, **asdict(lists))
    draft.rename(_file(directory, span))


def _read(directory: Path | None, span: Span) -> NeighbourLists | None:
    """Read a block from disk, or return None if it is missing or damaged."""
    if directory is None:
        return None
    try:
        with np.load(_file(directory, span)) as file:
            arrays = {name: file[name] for name in file.files}
        farthest = float(arrays.pop("farthest"))
        return NeighbourLists(**arrays, farthest=farthest)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
