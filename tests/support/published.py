"""A release of two nights and its public table, which tests read without Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.repository import ROOT
from wordveil.crypto.keys import MasterKey, load_key
from wordveil.errors import ReleaseError
from wordveil.release.lake_table import LakeTable
from wordveil.release.manifest import Manifest, sign
from wordveil.release.verify import PublishedTable, Verified, verify_table

RELEASE = ROOT / "tests" / "published"
"""A release of two nights with a rotated key, a changed record and a withdrawn one."""
KEPT = RELEASE / "release" / "public"
"""Its table of four rows in one file, at version 2."""

SIGNED = 2


def load_kept_key(directory: Path) -> MasterKey:
    """The key of the release ``kept-release``. Git does not keep the mode that a key needs."""
    file = Path(shutil.copy(RELEASE / "release.key", directory / "release.key"))
    file.chmod(0o600)
    return load_key(str(file), None)


def sign_again(table: PublishedTable, key: MasterKey, version: int = 2, **more: Any) -> None:
    """Write the manifest of a table whose manifest is of another format or version of the table, or lacks ``more``."""
    place = Path(table.path) / "_manifest.json"
    told = json.loads(place.read_text("utf-8"))["manifest"]
    snapshot = table.describe(version)
    values = {name: value for name, value in told.items() if name not in ("reader_version", "reader_features")}
    values |= {"format_version": 3, "public_version": version, "metadata": snapshot.metadata}
    values |= {"protocol": snapshot.protocol, "schema": snapshot.schema, "partition_by": list(snapshot.partition_by)}
    values |= {"records": snapshot.records, "files": [file._asdict() for file in snapshot.files], **more}
    signed = sign(Manifest.from_dict(values), key.signing_key(told["release"]))
    place.write_text(json.dumps(signed), "utf-8")


def copy_signed(directory: Path) -> Path:
    """A copy of the table that verifies at the version ``SIGNED``, which replaced the file of version 1."""
    table = Path(shutil.copytree(KEPT, directory / "public"))
    sign_again(LakeTable(str(table)), load_kept_key(directory))
    return table


def verify(table: Path | str, **given: Any) -> Verified:
    """Verify without Spark, and without a pinned key unless one is given."""
    return verify_table(LakeTable(str(table)), **given)


def refuse(table: Path | str, **given: Any) -> str:
    with pytest.raises(ReleaseError) as caught:
        verify(table, **given)
    return str(caught.value)


def log(table: Path, version: int, kind: str = "json") -> Path:
    return table / "_delta_log" / f"{version:020d}.{kind}"


def read_actions(table: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log(table, version).read_text("utf-8").splitlines()]


def forget_summaries(table: Path) -> None:
    for summary in table.glob("_delta_log/*.crc"):
        summary.unlink()


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit, and nothing that sums up the log."""
    forget_summaries(table)
    log(table, version).write_text("".join(f"{json.dumps(action)}\n" for action in actions), "utf-8")
