"""The page that follows a text and a night runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.commands import Commands, run_page
from support.repository import ROOT

PAGE = ROOT / "docs" / "how-it-works.md"
LIB = ROOT / "lib" / "wordveil"


@pytest.mark.long
def test_the_page_runs_from_top_to_bottom(spark: Any, call: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run_page(PAGE, {"spark": spark}, call)


def test_the_page_names_files_that_exist():
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", PAGE.read_text("utf-8")))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (LIB / name).exists()] == []
