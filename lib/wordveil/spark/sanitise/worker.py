"""Code that runs in Spark's Python workers. It imports neither the configuration nor the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from wordveil.artifacts.bundle import Bundle, open_bundle
from wordveil.artifacts.ngram_model import open_model
from wordveil.artifacts.sealed import unseal
from wordveil.crypto.keys import ReleaseKeys, Secret
from wordveil.errors import WordveilError, WorkerError
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings, find_refusals
from wordveil.records.schema import ID_REASONS, REASON_COLUMN
from wordveil.text.slots import NgramModel

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class BundlePlace:
    """Place of a bundle or an n-gram model: ``path``, or an ``archive`` that Spark unpacked, maybe with a ``key``."""

    path: str
    archive: bool
    key: Secret | None = None

    def resolve(self) -> Path:
        """Return the absolute directory on this machine. Spark's root for files may be relative to the worker."""
        if not self.archive:
            return Path(self.path)
        from pyspark import SparkFiles  # a bundle in place is opened without PySpark

        directory = Path(os.path.abspath(SparkFiles.get(self.path)))  # noqa: PTH100 - resolve() would follow links away from the executor
        return directory if self.key is None else unseal(directory, self.key)


@dataclass(frozen=True)
class Sanitise:
    """Body of ``mapInArrow``: takes batches and returns sanitised batches, without side effects.

    ``identity`` carries the bundle's manifest. Each worker checks the payload at ``location`` and the n-gram ``model``,
    if the policy names one, once.
    """

    settings: RecordSettings
    keys: ReleaseKeys
    location: BundlePlace
    identity: bytes
    model: BundlePlace | None = None

    def sanitiser(self) -> RecordSanitiser:
        """Return the sanitiser of batches; each worker makes it once."""
        return _sanitiser(self.settings, self.keys, self.location, self.identity, self.model)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sanitise batches. Raises :class:`WorkerError` without the original message, which may quote a record."""
        with _hide_messages():
            sanitiser = self.sanitiser()
            for batch in batches:
                yield from sanitiser.sanitise(batch)


@dataclass(frozen=True)
class Inspect:
    """Body of ``mapInArrow`` that draws nothing: returns batches without text, with each record's outcome."""

    job: Sanitise

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Inspect batches. Raises :class:`WorkerError` as :class:`Sanitise` does."""
        with _hide_messages():
            sanitiser = self.job.sanitiser()
            for batch in batches:
                yield from sanitiser.inspect(batch)


@dataclass(frozen=True)
class SanitiseColumns:
    """Body of a function for SQL, from ids and text columns to structs of :attr:`TextColumns.struct_fields`."""

    job: Sanitise
    max_bytes: int

    def __call__(self, ids: pa.Array, *texts: pa.Array) -> pa.StructArray:
        """Sanitise columns. Raises :class:`WorkerError` as :class:`Sanitise` does."""
        with _hide_messages():
            reason = find_refusals(ids, texts, self.max_bytes)
            columns = self.job.settings.columns
            readable = [pc.if_else(reason.is_null(), text, pa.scalar(None, text.type)) for text in texts]
            sound_ids = pc.if_else(pc.is_in(reason, pa.array(ID_REASONS)), pa.scalar(None, ids.type), ids)
            names = ["id", *columns.inputs, REASON_COLUMN]
            batch = pa.RecordBatch.from_arrays([sound_ids, *readable, reason], names=names)
            done = pa.Table.from_batches(self.job(iter([batch]))).combine_chunks()
            fields = list(columns.struct_fields)
            values = [done.column(field.name).combine_chunks() for field in fields]
            return pa.StructArray.from_arrays(values, fields=fields)


@contextmanager
def _hide_messages() -> Iterator[None]:
    try:
        yield
    except WordveilError:
        raise
    except Exception as error:  # noqa: BLE001 - its message must not reach a log
        raise WorkerError(f"{type(error).__name__} at {_find_line(error.__traceback__)}") from None


@lru_cache(maxsize=2)
def _sanitiser(
    settings: RecordSettings,
    keys: ReleaseKeys,
    location: BundlePlace,
    identity: bytes,
    model: BundlePlace | None = None,
) -> RecordSanitiser:
    ngrams = _model(model, settings.policy.ngrams) if model else None
    return RecordSanitiser(settings, load_bundle(location, identity), keys, ngrams)


@lru_cache(maxsize=1)
def load_bundle(location: BundlePlace, identity: bytes) -> Bundle:
    """Load and verify the bundle. Spark keeps workers from job to job, and they keep the bundle."""
    # Spark runs one task on each core. A BLAS that starts a thread for each core in each task would make them compete.
    threadpool_limits(limits=1)
    keep_archives()
    return open_bundle(location.resolve(), identity)


@lru_cache(maxsize=1)
def _model(location: BundlePlace, digest: str | None) -> NgramModel:
    return open_model(location.resolve(), digest)


def keep_archives() -> None:
    """Make Python read an archive on its path again only if the file has changed.

    Spark clears a worker's import caches at the start of every task, and Python before 3.13 then reads the listing of
    every archive immediately. Spark's own two have thousands of entries, and reading them takes longer than sanitising
    some thousand words.
    """
    if sys.version_info < (3, 13):
        for finder in sys.path_importer_cache.values():
            if isinstance(finder, zipimporter):
                finder.invalidate_caches = _invalidate_if_changed(finder)  # type: ignore[method-assign]


def _invalidate_if_changed(finder: zipimporter) -> Callable[[], None]:
    known = _stamp(finder.archive)

    def read_if_changed() -> None:
        nonlocal known
        if (now := _stamp(finder.archive)) != known:
            zipimporter.invalidate_caches(finder)
            known = now

    return read_if_changed


def _stamp(archive: str) -> tuple[int, int] | None:
    try:
        status = os.stat(archive)  # noqa: PTH116 - importers know their archives by their names
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _find_line(traceback: TracebackType | None) -> str:
    line = "an unknown line"
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE):
            line = f"{file.name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line
