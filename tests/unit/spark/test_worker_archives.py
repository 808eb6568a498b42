"""A worker reads an archive that it imports from when it is new or has changed, and not at each task."""

from __future__ import annotations

import importlib
import os
import sys
import zipimport
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from wordveil.spark.sanitise.worker import keep_archives


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Writes an archive of one empty module, and imports that module from it."""
    path = tmp_path / "modules.zip"
    monkeypatch.syspath_prepend(str(path))
    made: list[str] = []

    def write(name: str) -> Path:
        with ZipFile(path, "w") as opened:
            opened.writestr(f"{name}.py", "")
        os.utime(path, ns=(len(made), len(made)))
        made.append(name)
        importlib.invalidate_caches()
        importlib.import_module(name)
        return path

    yield write
    for name in made:
        sys.modules.pop(name, None)
    sys.path_importer_cache.pop(str(path), None)


def test_an_archive_that_has_not_changed_is_not_read_again(
    archive: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
):
    path, read, seen = str(archive("wordveil_first")), zipimport._read_directory, []
    keep_archives()
    monkeypatch.setattr(zipimport, "_read_directory", lambda place: seen.append(place) or read(place))
    importlib.invalidate_caches()
    assert path not in seen


def test_a_changed_archive_is_read_again(archive: Callable[[str], Path]):
    archive("wordveil_first")
    keep_archives()
    archive("wordveil_second")
    assert "wordveil_second" in sys.modules


def test_a_deleted_archive_is_no_longer_imported_from(archive: Callable[[str], Path]):
    path = archive("wordveil_first")
    keep_archives()
    path.unlink()
    importlib.invalidate_caches()
    del sys.modules["wordveil_first"]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("wordveil_first")
