"""Markdown files of the repository, cut into prose and code."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from support.repository import ROOT

DOCS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "research").glob("*.md"),
        *(ROOT / "research/docs").rglob("*.md"),
    ]
)

SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Document:
    """A Markdown file, cut into prose and code.

    ``prose``: lines outside code blocks, with their numbers; ``code``: code blocks, with their language and text;
    ``spans``: what stands between single backticks in prose.
    """

    prose: tuple[tuple[int, str], ...]
    code: tuple[tuple[str, str], ...]
    spans: tuple[str, ...]


def cut_document(text: str) -> Document:  # noqa: C901 - one pass over the lines
    """Fenced blocks, and blocks indented by four columns more than what they belong to, are code."""
    prose: list[tuple[int, str]] = []
    code: list[tuple[str, list[str]]] = []
    fence, indent, after_blank, inside = "", 0, True, False
    for number, line in enumerate(text.split("\n"), 1):
        depth = len(line) - len(line.lstrip())
        if fence:
            if line.strip() == fence:
                fence = ""
            else:
                code[-1][1].append(line)
        elif line.strip().startswith("```"):
            fence = "```"
            code.append((line.strip().removeprefix("```"), []))
        elif not line.strip():
            after_blank = True
            if inside:
                code[-1][1].append("")
            prose.append((number, ""))
            continue
        elif depth >= indent + 4 and (after_blank or inside):
            if not inside:
                code.append(("", []))
            inside = True
            code[-1][1].append(line)
            after_blank = False
            continue
        else:
            item = re.match(r" *([-*]|\d+\.) +", line)
            if item:
                indent = len(item[0])
            elif after_blank and depth < indent:
                indent = 0
            prose.append((number, line))
        inside, after_blank = False, False
    running = "\n".join(line for _, line in prose)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) ?)", running)
    spans = [" ".join(span.split()) for part in paragraphs for span in SPAN.findall(part)]
    return Document(tuple(prose), tuple((language, "\n".join(lines)) for language, lines in code), tuple(spans))


@functools.cache
def read_document(path: Path) -> Document:
    """The file, cut."""
    return cut_document(path.read_text("utf-8"))
