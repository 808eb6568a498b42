"""Files that earlier versions left on a disk, and the newest one's public table, which tests read without Spark."""

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
from wordveil.release.verify import Verified, verify_table

VERSIONS = sorted(
    (file.parent for file in (ROOT / "tests" / "releases").glob("*/expected.json")),
    key=lambda version: tuple(map(int, version.name.split("."))),
)
"""Directories with the files that versions wrote by tests/releases/make.py."""
RELEASE = VERSIONS[-1]
"""A release of two nights with a rotated key, a changed record and a withdrawn one."""
KEPT = RELEASE / "release" / "public"
"""Its table of four rows, at version 2."""
SIGNED = 2


def load_kept_key(directory: Path) -> MasterKey:
    """The key of the release ``kept-release``. Git does not keep the mode that a key needs."""
    file = Path(shutil.copy(RELEASE / "release.key", directory / "release.key"))
    file.chmod(0o600)
    return load_key(str(file), None)


def copy_version(version: Path, target: Path) -> Path:
    """Copy a version's files to where they may change. Git does not keep the mode that a key needs."""
    shutil.copytree(version, target, copy_function=shutil.copy)  # Delta ages its log by the times of files
    for key in target.glob("*.key"):
        key.chmod(0o600)
    return target


def sign_again(table: Path, key: MasterKey, **more: Any) -> None:
    """Sign a table's manifest with ``more`` in it."""
    place = table / "_manifest.json"
    told = json.loads(place.read_text("utf-8"))["manifest"]
    signed = sign(Manifest.from_dict({**told, **more}), key.signing_key(told["release"]))
    place.write_text(json.dumps(signed), "utf-8")


def copy_signed(directory: Path) -> Path:
    """Copy the table, which verifies at the version ``SIGNED``."""
    return Path(shutil.copytree(KEPT, directory / "public"))


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
