"""Markdown files of the repository, cut into prose and code."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from support.repository import ROOT

DOCS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "research").glob("*.md"),
        *(ROOT / "research/docs").rglob("*.md"),
    ]
)


@dataclass(frozen=True)
class Document:
    """A Markdown file, cut into prose and code.

    ``prose``: lines outside code blocks, with their numbers; ``code``: code blocks, with their language and text;
    ``spans``: what stands between single backticks in prose.
    """

    prose: tuple[tuple[int, str], ...]
    code: tuple[tuple[str, str], ...]
    spans: tuple[str, ...]


def cut_document(text: str) -> Document:
    """Cut a text as CommonMark reads it."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    blocks = [token for token in tokens if token.type in ("fence", "code_block")]
    inside = {line for block in blocks for line in range(*(block.map or (0, 0)))}
    prose = [(number, line) for number, line in enumerate(text.split("\n"), 1) if number - 1 not in inside]
    spans = [part.content for token in tokens for part in token.children or () if part.type == "code_inline"]
    code = [(block.info, block.content.removesuffix("\n")) for block in blocks]
    return Document(tuple(prose), tuple(code), tuple(" ".join(span.split()) for span in spans))


@functools.cache
def read_document(path: Path) -> Document:
    """The file, cut."""
    return cut_document(path.read_text("utf-8"))
