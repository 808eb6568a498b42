"""Outputs in Parquet: written beside their place, moved there, and complete or refused."""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wordveil.errors import ConfigError, Fault, InputError, OutputExistsError
from wordveil.spark.platform.filesystem import Files

MARKER = "_wordveil.json"
"""Name of the file that a run writes last into an output on an object store. Readers of Parquet skip it."""
# A directory gets another name in one step. Object stores copy one file after the other.
_ATOMIC = {"file", "hdfs", "viewfs"}


@dataclass(frozen=True)
class Draft:
    """Output that is being written: beside its final path, and moved there at the end."""

    files: Files
    directory: Any
    run_id: str

    @property
    def path(self) -> str:
        """Path to write to."""
        return str(self.directory)

    def publish(self, *, overwrite: bool) -> None:
        """Move the table to its final path, without checksum files. ``overwrite`` replaces an existing one."""
        self.files.delete_checksums(self.directory)
        sizes = None if _is_atomic(self.files) else self.files.list_files(self.directory)
        aside = None
        if overwrite and self.files.exists():
            aside = self.files.sibling(f"{_draft_prefix(self.files)}{self.run_id}.replaced")
            self.files.move(self.files.path, aside)
        try:
            self.files.move(self.directory, self.files.path)
        except Exception:
            if aside is not None:
                self.files.move(aside, self.files.path)
                raise
            if self.files.exists():
                raise OutputExistsError(
                    f"output.path = {self.files.path}: another process created it while the job ran. The job changed "
                    "nothing there. Choose another path."
                ) from None
            raise
        if sizes is not None:
            self._mark(sizes)
        if aside is not None:
            self.files.delete(aside)

    def _mark(self, sizes: dict[str, int]) -> None:
        """Mark the table as complete. Two runs may have moved their files there at the same time."""
        try:
            self.files.write_new(json.dumps({"run_id": self.run_id, "files": sizes}), self.files.below(MARKER))
        except Py4JError:
            raise OutputExistsError(
                f"output.path = {self.files.path}: {MARKER} cannot be written there, or another run has written it. "
                "The table is not complete, or has files of two runs. Delete it, and run again."
            ) from None

    def discard(self) -> None:
        """Delete the written files, if any."""
        with suppress(Exception):
            self.files.delete(self.directory)


def draft_output(spark: SparkSession, path: str, run_id: str, *, overwrite: bool) -> Draft:
    """Return the draft of an output, at a path that no other attempt uses.

    Raises :class:`OutputExistsError` without ``overwrite``, and :class:`ConfigError` if nothing can be written.
    """
    files = Files(spark, path)
    if files.exists() and not overwrite:
        state = f"already exists{', but ' + fault if (fault := _find_fault(files)) else ''}"
        raise OutputExistsError(
            f"output.path = {path}: {state}. Choose another path, or pass --overwrite to replace it."
        )
    directory = files.sibling(f"{_draft_prefix(files)}{run_id}-{secrets.token_hex(4)}")
    try:
        files.try_directory(directory)
    except Py4JError:
        problem = (
            "no directory can be created beside it: a file is in the way, or the parent directory is read-only or "
            "belongs to another user. Choose a path that you may write to."
        )
        raise ConfigError("configuration", [Fault("output.path", path, problem)]) from None
    return Draft(files, directory, run_id)


def list_drafts(files: Files) -> list[str]:
    """List the drafts of an output beside it: other runs are writing them, or interrupted runs left them."""
    return [str(path) for path in files.list_beside(_draft_prefix(files))]


def require_complete(files: Files) -> None:
    """Raise :class:`InputError` if an output on an object store is not all of what a run wrote."""
    if fault := _find_fault(files):
        raise InputError(f"output.path = {files.path}: {fault}. Wait for the run, or write the output again.")


def _find_fault(files: Files) -> str | None:
    if _is_atomic(files):
        return None
    marker = files.below(MARKER)
    if not files.exists(marker):
        drafts = "".join(f"; {draft} has the rest" for draft in list_drafts(files))
        return f"it has no {MARKER}, which a run writes last: a run is moving files there, or was killed{drafts}"
    present = files.list_files()
    present.pop(MARKER)
    try:
        is_whole = json.loads(files.read(marker))["files"] == present
    except (ValueError, TypeError, KeyError):
        is_whole = False
    return None if is_whole else f"its files are not those that its {MARKER} lists"


def _is_atomic(files: Files) -> bool:
    return str(files.path.toUri().getScheme()) in _ATOMIC


def _draft_prefix(files: Files) -> str:
    return f".{files.path.getName()}.wordveil-"
