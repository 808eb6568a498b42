"""The site of `make docs`: no broken link, all pages in the navigation, nothing from other hosts, lists as written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from support.documents import DOCS
from support.repository import ROOT

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")

GITHUB = MarkdownIt("commonmark").enable("table")
BLOCKS = re.compile(r"<(h[1-6]|ul|ol|li|pre|table|tr)\b")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: mkdocs.yml makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def article(site: Path, path: Path) -> str:
    place = path.relative_to(ROOT).with_suffix(".html").as_posix().replace("README", "index")
    page = (site / place).read_text("utf-8")
    return page[page.index("<article") : page.index("</article>")]


def test_documents_have_the_blocks_that_github_shows(site: Path):
    """Python-Markdown asks for other indentation than GitHub: without care a table in a list becomes a paragraph."""
    for path in DOCS:
        said = Counter(BLOCKS.findall(GITHUB.render(path.read_text("utf-8"))))
        assert Counter(BLOCKS.findall(article(site, path))) == said, path


def test_pages_load_nothing_from_other_hosts(site: Path):
    pages = [*site.rglob("*.html")]
    assert len(pages) > len(DOCS)
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"?(?:https?:)?//|<link[^>]*\bhref=\"?(?:https?:)?//")
    assert [path.name for path in pages if loaded.search(path.read_text("utf-8"))] == []
    styles = [
        path.name for path in site.rglob("*.css") if re.search(r"url\(\"?https?:|@import", path.read_text("utf-8"))
    ]
    assert styles == []


def test_the_search_finds_settings_and_configurations(site: Path):
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert {"index.html", "docs/settings.html#tree", "conf/index.html#confnightlyyaml"} <= places


def test_links_to_configurations_lead_to_their_page(site: Path):
    assert 'href="../conf/index.html#confreleaseyaml"' in article(site, ROOT / "docs" / "releases.md")
    assert 'href="../results' not in article(site, ROOT / "research" / "docs" / "benchmarks.md")
