"""The page that follows a text and a night runs as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.commands import Commands
from support.repository import ROOT

PAGE = ROOT / "docs" / "how-it-works.md"
LIB = ROOT / "lib" / "wordveil"


def test_the_page_runs_from_top_to_bottom(spark: Any, call: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"python", "bash"}
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
            continue
        for line in block.splitlines():
            call(*shlex.split(line)[1:])


def test_the_page_names_files_that_exist():
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", PAGE.read_text("utf-8")))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (LIB / name).exists()] == []
